use super::*;

fn read(name: &str, skill: Option<&str>, text: &str) -> QueryLabels {
    parse_labels(&LabelFile { path: name.into(), text, skill })
}

fn shown(labels: &QueryLabels) -> String {
    let mut out = String::new();
    for query in &labels.queries {
        let gold: Vec<String> = query.gold.iter().map(|(name, g)| format!("{name}={g}")).collect();
        let not: Vec<String> = query.not.iter().map(|name| format!("-{name}")).collect();
        let all = [gold, not].concat().join(" ");
        out += &format!("{} {} [{all}]\n", query.place.line, query.task.text);
    }
    for problem in &labels.problems {
        out += &format!("{problem}\n");
    }
    out
}

#[track_caller]
fn check(name: &str, skill: Option<&str>, text: &str, expect: &str) {
    assert_eq!(shown(&read(name, skill, text)).trim_end(), expect.trim());
}

#[test]
fn a_list_beside_a_skill() {
    let text = "[\n  {\"query\": \"fill the form\", \"should_trigger\": true},\n  {\"query\": \"bake\",\n   \"should_trigger\": false}\n]";
    check("trigger-evals.json", Some("pdf"), text, "2 fill the form [pdf=1]\n3 bake [-pdf]");
    let text = r#"[{"prompt": "a", "expected": true}, {"input": "b", "trigger": false}]"#;
    check("x.json", Some("pdf"), text, "1 a [pdf=1]\n1 b [-pdf]");
    let wrong = "x.json:1: nothing says which skill `should_trigger` is about";
    check("x.json", None, r#"[{"query": "a", "should_trigger": true}]"#, wrong);
}

#[test]
fn every_prompt_of_skill_creator_should_trigger_its_skill() {
    let text = r#"{"skill_name": "pdf", "evals": [
        {"id": 0, "prompt": "fill the form", "expected_output": "a form", "files": []},
        {"id": 1, "prompt": "merge", "expected": "one file", "assertions": ["it is one"]}]}"#;
    check("evals.json", Some("folder"), text, "2 fill the form [pdf=1]\n3 merge [pdf=1]");
}

#[test]
fn wrapped_lists_in_their_variants() {
    let text =
        r#"{"skill": "pdf", "cases": [{"text": "a", "should_trigger": false}], "tests": ["b"]}"#;
    check("x.json", None, text, "1 a [-pdf]\n1 b [pdf=1]");
    let text = r#"{"should_trigger": ["a"], "should_not_trigger": ["b", {"query": "c"}]}"#;
    check("x.json", Some("pdf"), text, "1 a [pdf=1]\n1 b [-pdf]\n1 c [-pdf]");
    let text =
        r#"{"skill": "pdf", "task": "forms", "evals": [{"task": "a", "tests": ["it works"]}]}"#;
    check("x.json", None, text, "1 a [pdf=1]");
    let text = "[{\"skill\": \"a\", \"evals\": [\"x\"]},\n {\"skill\": \"b\", \"evals\": [\"y\"]}]";
    check("x.json", None, text, "1 x [a=1]\n2 y [b=1]");
}

#[test]
fn a_line_for_each_query() {
    let text = concat!(
        "\u{feff}{\"query\": \"a\", \"gold\": [\"x\", \"y\"]}\r\n",
        "\n",
        "{\"query\": \"b\", \"gold\": {\"x\": 2, \"y\": 0}, \"not\": [\"z\"]}\n",
        "{\"query\": \"c\", \"gold\": []}\n",
        "{\"id\": \"7\", \"text\": \"d\", \"rel\": {}, \"neg_of\": \"z\"}\n",
        "{\"query\": \"e\", \"gold\": \"x\"}",
    );
    let expect = "1 a [x=1 y=1]\n3 b [x=2 -z]\n4 c []\n5 d [-z]\n6 e [x=1]";
    check("a.evals.jsonl", None, text, expect);
    check("a.json", None, text, expect);
    let labels = read("a.evals.jsonl", None, text);
    let abstain: Vec<bool> = labels.queries.iter().map(LabelledQuery::should_abstain).collect();
    assert_eq!(abstain, [false, false, true, false, false]);
}

#[test]
fn the_rest_of_a_task() {
    let text =
        r#"{"query": "a", "gold": [], "paths": ["src/a.rs"], "event": "push", "hints": "x"}"#;
    let task = read("a.jsonl", None, text).queries.remove(0).task;
    assert_eq!((task.paths[0].as_str(), task.event.as_deref()), ("src/a.rs", Some("push")));
    assert_eq!(task.hints, ["x"]);
}

#[test]
fn a_bad_line_does_not_lose_the_rest() {
    let text = r#"{"query": "a", "gold": ["x"]}
{"query": "b", "gold": ["x"}
{"query": "", "gold": ["x"]}
{"query": "c"}
{"query": "d", "gold": 7}
{"query": "e", "gold": ["x"], "not": ["x"]}
{"query": "f", "gold": [], "paths": [1]}
17
{"query": "g", "gold": []}"#;
    let expect = "
1 a [x=1]
9 g []
a.jsonl:2: this is not JSON: expected `,` or `]` (column 28)
a.jsonl:3: there is no text to select for
a.jsonl:4: nothing says which skill is right
a.jsonl:5: `gold` is not a list of skills
a.jsonl:6: `x` is both right and wrong
a.jsonl:7: `paths` is not a list of texts
a.jsonl:8: this is not a query";
    check("a.jsonl", None, text, expect);
}

#[test]
fn a_file_that_is_something_else_is_told_apart_from_a_broken_one() {
    let other = read("benchmark.json", Some("pdf"), r#"{"runs": [{"pass_rate": 1}]}"#);
    assert!(!other.is_labelled);
    assert_eq!(shown(&other).trim(), "benchmark.json:1: there are no queries in it");
    let broken = read("evals.json", Some("pdf"), "[\n{\"query\": \"a\"},\n]");
    assert!(broken.is_labelled);
    assert_eq!(shown(&broken).trim(), "evals.json:3: this is not JSON: expected value (column 1)");
    assert!(!read("a.json", None, "7").is_labelled);
    assert!(read("a.jsonl", None, "").queries.is_empty());
}

#[test]
fn problems_and_nesting_have_an_end() {
    let labels = read("a.jsonl", None, &"x\n".repeat(1000));
    assert_eq!(labels.problems.len(), LABEL_PROBLEMS_MAX + 1);
    assert_eq!(labels.problems[LABEL_PROBLEMS_MAX].message, "980 more problems in this file");
    let deep = "{\"evals\":[".repeat(100_000);
    assert!(read("a.json", None, &deep).queries.is_empty());
    let closed = format!("{deep}{}", "]}".repeat(100_000));
    assert_eq!(read("a.json", None, &closed).problems.len(), 1);
}

#[test]
fn a_query_with_a_skill_that_is_not_there_is_set_aside() {
    let text = "{\"query\": \"a\", \"gold\": [\"PDF\"]}\n{\"query\": \"b\", \"gold\": [], \"not\": [\"gone\"]}";
    let resolve = |name: &str| (name == "PDF").then(|| "pdf".to_owned());
    let (queries, problems) = resolve_names(read("a.jsonl", None, text).queries, resolve);
    assert_eq!(queries.len(), 1);
    assert!(queries[0].gold.contains_key("pdf"));
    assert_eq!(
        problems[0].to_string(),
        "a.jsonl:2: unknown skill `gone`; the query is not counted"
    );
}
