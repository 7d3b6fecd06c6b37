//! `rep eval`: labelled queries in every form, against skills in folders.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

const INVOICES: &str = "Checks invoices against purchase orders and delivery notes. Use when an invoice has to be approved or disputed.";
const PHOTOS: &str = "Sorts photographs by date and place and removes blurred pictures. Use when a folder of photographs is to be tidied.";

/// Two skills that have little in common.
fn office() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/invoices", "invoices", INVOICES);
    ws.skill("project/.claude/skills/photos", "photos", PHOTOS);
    ws
}

/// The same with queries beside both, of which some go wrong.
fn labelled() -> Workspace {
    let ws = office();
    ws.write(
        "project/.claude/skills/invoices/evals/evals.json",
        r#"{"skill_name": "invoices", "evals": [
  {"id": 0, "prompt": "Check this invoice against the purchase order", "expected_output": "A verdict"},
  {"id": 1, "prompt": "The supplier charged us twice", "expected_output": "A letter"}
]}"#,
    );
    ws.write(
        "project/.claude/skills/photos/trigger-evals.json",
        r#"[
  {"query": "tidy my folder of holiday photographs", "should_trigger": true},
  {"query": "sort these photographs of invoices into the accounts", "should_trigger": false},
  {"query": "What is the capital of France?", "should_trigger": false}
]"#,
    );
    ws
}

/// Without the scores, which change whenever selection learns something.
fn steady(shown: &impl std::fmt::Display) -> String {
    let hidden = |word: &str| {
        let number = word.trim_end_matches([',', ':']);
        let is_score = number.starts_with("0.") && number.len() == 4;
        if is_score { word.replace(number, "[S]") } else { word.to_owned() }
    };
    let line = |line: &str| match line.split_once("calibration error") {
        Some(_) => "[…] scores: calibration error […]".to_owned(),
        None => line.split(' ').map(hidden).collect::<Vec<_>>().join(" "),
    };
    shown.to_string().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn files_beside_the_skills_are_found_and_summed_up() {
    assert_snapshot!(steady(&labelled().rep("eval")), @"
    5 queries in 2 files, 3 skills (3 with a right skill, 2 with a wrong one)

      accuracy    ████████████░░░░░░░░  0.600  queries answered right
      trigger     █████████████░░░░░░░  0.667  queries whose skill was picked
      abstention  ██████████░░░░░░░░░░  0.500  queries that no wrong skill was picked for
      precision   █████████████░░░░░░░  0.667  picks that were right
      recall@1    ████████████████████  1.000  right skills that rank first
      recall@3    ████████████████████  1.000  right skills among the first three
      recall@5    ████████████████████  1.000  right skills among the first five
      ndcg@5      ████████████████████  1.000  order of the first five
      mrr         ████████████████████  1.000  one over the place of the first right skill

    […] scores: calibration error […]

    Weakest skills
      invoices  ██████████░░░░░░░░░░   1 of 2 picked
      photos    ████████████████████   1 of 1 picked, 1 false pick (1 forbidden)
    [stderr]

    2 queries went wrong; `--failures` says how.
    [exit 0]
    ");
}

#[test]
fn failures_say_what_was_picked_and_what_was_wanted() {
    let ran = labelled().rep("eval --failures --per-skill");
    let (_, details) = ran.stdout.split_once("Every skill").unwrap();
    assert_snapshot!(steady(&details), @r#"

      invoices  ██████████░░░░░░░░░░   1 of 2 picked
      photos    ████████████████████   1 of 1 picked, 1 false pick (1 forbidden)

    What went wrong
      silent .claude/skills/invoices/evals/evals.json:3
        "The supplier charged us twice"
        wanted invoices [S], place 1, under the threshold of [S], has no "supplier", "twice",
               "charged"
      forbidden .claude/skills/photos/trigger-evals.json:3
        "sort these photographs of invoices into the accounts"
        picked photos [S]: "photographs" in description; "sort" in description; meaning [S] close
        wanted not photos
    "#);
    assert_snapshot!(ran.stderr, @"

    1 of 2 are silent: put the words that users say into the description or `triggers`, or try `--compare default threshold=0.5`.
    ");
}

#[test]
fn a_named_file_has_a_line_for_each_query() {
    let ws = office();
    ws.write(
        "project/team.jsonl",
        concat!(
            "{\"query\": \"approve this invoice\", \"gold\": [\"invoices\"]}\n",
            "{\"query\": \"What is the capital of France?\", \"gold\": []}\n",
        ),
    );
    assert_snapshot!(steady(&ws.rep("eval team.jsonl")), @"
    2 queries in 1 file, 3 skills (1 with a right skill, 1 with none)

      accuracy    ████████████████████  1.000  queries answered right
      trigger     ████████████████████  1.000  queries whose skill was picked
      abstention  ████████████████████  1.000  queries that no wrong skill was picked for
      precision   ████████████████████  1.000  picks that were right
      recall@1    ████████████████████  1.000  right skills that rank first
      recall@3    ████████████████████  1.000  right skills among the first three
      recall@5    ████████████████████  1.000  right skills among the first five
      ndcg@5      ████████████████████  1.000  order of the first five
      mrr         ████████████████████  1.000  one over the place of the first right skill

    […] scores: calibration error […]
    [stderr]

    Every query was answered right. `--min accuracy=1` keeps it so.
    [exit 0]
    ");
}

#[test]
fn what_cannot_be_used_is_said_and_the_rest_is_counted() {
    let ws = office();
    ws.write(
        "project/team.jsonl",
        concat!(
            "{\"query\": \"approve this invoice\", \"gold\": [\"invoices\"]}\n",
            "{\"query\": \"approve that invoice\", \"gold\": [\"invoice\"]\n",
            "{\"query\": \"bake bread\", \"gold\": [\"baking\"]}\n",
            "{\"query\": \"bake a cake\"}\n",
        ),
    );
    let ran = ws.rep("eval team.jsonl");
    assert_snapshot!(ran.stderr, @r#"
    warning: team.jsonl:2: this is not JSON: EOF while parsing an object (column 53)
    hint: Check quotes, commas and brackets.
    warning: team.jsonl:3: unknown skill `baking`; the query is not counted
    hint: `rep list` shows every skill; correct the name or add the skill.
    warning: team.jsonl:4: nothing says which skill is right
    hint: Add `"gold": ["skill-name"]`, or `"gold": []` where no skill fits.

    Every query was answered right. `--min accuracy=1` keeps it so.
    "#);
    assert!(
        ran.stdout.starts_with("1 query in 1 file, 3 skills (1 with a right skill)\n1 more about")
    );
    let report = ws.json("--json eval team.jsonl", "eval.json");
    assert_eq!(report["unknown_skill"], 1);
    assert_eq!(report["problems"].as_array().unwrap().len(), 3);
    assert_eq!(report["report"]["counts"]["queries"], 1);
}

#[test]
fn a_figure_that_is_too_low_fails() {
    let ws = labelled();
    let ran = ws.rep("eval --min accuracy=0.99 --min recall@5=0.1 --min queries=6");
    let tail: Vec<&str> = ran.stdout.lines().rev().take(2).collect();
    assert_snapshot!(tail.join("\n"), @"
    too low: 5 queries, 6 were asked for
    too low: accuracy is 0.600, 0.99 was asked for
    ");
    assert_eq!(ran.code, 1);
    assert_eq!(ws.rep("eval --min queries=5 --min recall@5=0.1").code, 0);
    let report = ws.json("--json eval --min queries=6", "eval.json");
    assert_eq!(report["short"][0]["metric"], "queries");
    ws.write(
        "project/team.jsonl",
        "{\"query\": \"approve this invoice\", \"gold\": [\"invoices\"]}\n",
    );
    let ran = ws.rep("eval --min abstention=0.5 team.jsonl");
    assert!(
        ran.stdout.ends_with("too low: abstention is measured by no query, 0.5 was asked for\n")
    );
    assert_eq!(ran.code, 1);
}

#[test]
fn figures_and_configurations_that_do_not_exist_are_wrong_use() {
    let ws = labelled();
    let check = |args: &[&str], expect: &str| {
        let ran = ws.rep_with(&[&["eval"], args].concat());
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains(expect), "{ran}");
    };
    check(&["--min", "mood=1"], "there is no metric `mood`; there are accuracy, trigger");
    check(&["--min", "mrr=70"], "`mrr` lies between 0 and 1; 70 % is 0.7");
    check(&["--min", "mrr"], "expected METRIC=VALUE");
    check(&["--compare", "default", "mood=good"], "there is no key `mood`");
    check(&["--compare", "default"], "2 values required");
    check(&["--compare", "default", "default", "--min", "mrr=1"], "cannot be used with");
    check(&["nowhere.jsonl"], "there is no `nowhere.jsonl`");
}

#[test]
fn two_configurations_are_compared_query_by_query() {
    let ran = labelled().rep("eval --compare default threshold=1");
    assert_snapshot!(ran, @r#"
    5 queries in 2 files, 3 skills (3 with a right skill, 2 with a wrong one)

    A  default
    B  threshold=1

                       A      B   B - A
      accuracy     0.600  0.400  -0.200
      trigger      0.667  0.000  -0.667
      abstention   0.500  1.000  +0.500
      precision    0.667      -       -
      recall@1     1.000  1.000       =
      recall@3     1.000  1.000       =
      recall@5     1.000  1.000       =
      ndcg@5       1.000  1.000       =
      mrr          1.000  1.000       =

    Right only in B (1)
      "sort these photographs of invoices into the accounts"
        A picks photos, wanted not photos .claude/skills/photos/trigger-evals.json:3

    Right only in A (2)
      "Check this invoice against the purchase order"
        B picks nothing, wanted invoices .claude/skills/invoices/evals/evals.json:2
      "tidy my folder of holiday photographs"
        B picks nothing, wanted photos .claude/skills/photos/trigger-evals.json:2

    B wins 1, A wins 2: may be chance (sign test, p = 1.000).
    [exit 0]
    "#);
    let report = labelled().json("--json eval --compare default threshold=1", "eval.json");
    assert_eq!(report["comparison"]["after"], "threshold=1");
    assert!(
        report["comparison"]["changes"]["lost"].as_array().is_some_and(|lost| !lost.is_empty())
    );
}

#[test]
fn the_plot_is_a_file() {
    let ws = labelled();
    let ran = ws.rep("eval --plot calibration.svg");
    assert!(ran.stdout.contains("wrote calibration.svg"), "{ran}");
    let svg = ws.text("project/calibration.svg");
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"), "{svg}");
    let ran = ws.rep("eval --plot nowhere/calibration.svg");
    assert_eq!(ran.code, 2, "{ran}");
}

#[test]
fn json_has_the_published_keys_and_is_the_same_every_time() {
    let ws = labelled();
    let report = ws.json("--json eval", "eval.json");
    assert_eq!(
        keys(&report),
        [
            "files",
            "not_labelled",
            "skills",
            "problems",
            "unknown_skill",
            "report",
            "short",
            "comparison"
        ]
    );
    assert_eq!(report["report"]["counts"]["queries"], 5);
    assert_eq!(report["report"]["latency"], serde_json::Value::Null);
    assert_eq!(ws.raw("--json eval"), ws.raw("--json eval"));
    let timed = ws.json("--json eval --time", "eval.json");
    assert!(timed["report"]["latency"]["p50_us"].is_u64());
}

#[test]
fn without_queries_there_is_a_hint_how_to_write_one() {
    assert_snapshot!(office().rep("eval"), @r#"
    [stderr]
    error: there are no labelled queries beside the skills
    hint: Write `evals/evals.json` in a skill's folder: [{"query": "what a user would say", "should_trigger": true}].
    hint: Or name a file with a line for each query: {"query": "what a user would say", "gold": ["skill-name"]}.
    [exit 3]
    "#);
    let ws = office();
    ws.write("project/.claude/skills/photos/evals/benchmark.json", r#"{"runs": 3}"#);
    let ran = ws.rep("eval");
    assert!(ran.stderr.starts_with("Passed over, for want of labelled queries: .claude/skills/photos/evals/benchmark.json\n"), "{ran}");
}

#[test]
#[cfg(unix)]
fn nothing_outside_a_skill_is_read() {
    let ws = labelled();
    ws.write("project/secret.json", r#"[{"query": "a secret", "should_trigger": true}]"#);
    ws.write("project/secrets/a.json", r#"[{"query": "a secret", "should_trigger": true}]"#);
    let skill = ws.path("project/.claude/skills/photos");
    std::os::unix::fs::symlink("../../../secret.json", skill.join("evals.json")).unwrap();
    std::os::unix::fs::symlink("../../../secrets", skill.join("evals")).unwrap();
    let ran = ws.rep("eval");
    assert_snapshot!(ran.stderr, @"
    warning: .claude/skills/photos/evals.json:1: a symbolic link leads out of the folder
    hint: Copy the file into the folder.

    2 queries went wrong; `--failures` says how.
    ");
    assert!(ran.stdout.starts_with("5 queries in 2 files"), "{ran}");
}

#[test]
fn a_named_file_in_a_skills_folder_is_about_that_skill() {
    let ws = labelled();
    let ran = ws.rep("eval .claude/skills/photos/trigger-evals.json");
    assert!(ran.stdout.starts_with("3 queries in 1 file, 3 skills"), "{ran}");
    let ran = ws.rep("-C .claude/skills eval photos/trigger-evals.json");
    assert!(ran.stdout.starts_with("3 queries in 1 file, 3 skills"), "{ran}");
}
