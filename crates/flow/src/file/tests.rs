//! Reading: everything that can be wrong with a file, with its position, and no slow paths.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use repertoire_skill::skill::{Skill, SkillOrigin};
use repertoire_text::Limits;
use repertoire_text::fs::write_atomic;

use super::*;

#[track_caller]
fn read(yaml: &str) -> LoadedWorkflow {
    let around = WorkflowContext {
        name: "test",
        description: "For tests.",
        siblings: ("test", &[]),
        read: &|_| Err("there is no such file".to_owned()),
    };
    read_source(Source::new("workflow.yaml", yaml.to_owned()), &around)
}

#[track_caller]
fn says(yaml: &str, expect: &[&str]) {
    let found: Vec<String> = read(yaml)
        .diagnostics
        .iter()
        .map(|found| {
            let at = found.position.expect("every finding has its place");
            format!("{} {}:{} {}", found.code.id, at.line, at.column, found.message)
        })
        .collect();
    assert_eq!(found, expect);
}

const STEP: &str = "  - { id: one, title: One, actions: [Do it], next: end }\n";

#[test]
fn a_field_that_is_not_known_is_named_with_what_is_meant() {
    says(
        &format!("descripton: x\nsteps:\n{STEP}"),
        &["RS700 1:1 `descripton` is no known field here; is `description` meant?"],
    );
    says(
        "steps:\n  - { id: one, title: One, nxt: end }\n",
        &["RS700 2:28 `nxt` is no known field here; is `next` meant?"],
    );
}

#[test]
fn a_field_that_is_missing_is_named() {
    says("description: x\n", &["RS700 1:1 `steps` is missing"]);
    says("steps:\n  - { id: one, next: end }\n", &["RS700 2:5 `title` is missing"]);
    says("steps:\n  - { id: one, title: One }\n", &["RS700 2:5 `next` is missing"]);
}

#[test]
fn a_value_of_another_type_is_pointed_at() {
    says("steps: 5\n", &["RS700 1:8 a list is expected here, and this is the number 5"]);
    says(
        "steps:\n  - { id: one, title: [a], next: end }\n",
        &["RS700 2:23 a text is expected here, and this is a list"],
    );
    says(
        "steps:\n  - { id: one, title: One, loop: { max: -1 }, next: end }\n",
        &["RS700 2:41 a whole number from 0 is expected here, and this is the number -1"],
    );
    says(
        "parameters: { p: { type: txt } }\nsteps: []\n",
        &["RS700 1:26 `txt` is no known word here; is `text` meant?"],
    );
    says("- a\n- b\n", &["RS700 1:1 a workflow is a mapping of fields, and this is a list"]);
}

#[test]
fn a_long_text_at_the_wrong_place_is_not_quoted() {
    says(
        "steps:\n  - id: one\n    title: One\n    next: end\n    actions: |\n      Do it.\n      Do it well.\n",
        &[
            "RS700 6:7 a list is expected here, and this is a text of 2 lines; begin each entry with `- `",
        ],
    );
    let long = "word ".repeat(30);
    says(
        &format!("parameters: {long}\nsteps: []\n"),
        &[
            "RS700 1:13 a mapping is expected here, and this is the text `word word word word word word word word…`",
        ],
    );
    says(
        "parameters: { p: 5, q: { required: maybe } }\nsteps: []\n",
        &["RS700 1:18 a mapping of fields is expected here, and this is the number 5"],
    );
    says(
        "parameters: { q: { required: maybe } }\nsteps: []\n",
        &["RS700 1:30 `true` or `false` is expected here, and this is the text `maybe`"],
    );
}

#[test]
fn a_template_without_quotes_is_told_from_a_mapping() {
    let help = |yaml: &str| read(yaml).diagnostics[0].help.clone().unwrap_or_default();
    let unquoted = help("checks:\n  tests:\n    command: {{ test_command }}\n");
    assert!(unquoted.ends_with("If `{{ … }}` is meant as text, quote it."), "{unquoted}");
    assert!(!help("? [a, b]\n: c\n").contains("{{"));
}

#[test]
fn the_remedy_is_there_for_who_has_only_the_program() {
    let help = read("steps: 5\n").diagnostics[0].help.clone().unwrap_or_default();
    assert!(help.contains("`rep workflow schema`"), "{help}");
}

#[test]
fn a_block_has_one_key_which_is_known() {
    let action = |block: &str| {
        format!(
            "steps:\n  - id: one\n    title: One\n    next: end\n    actions:\n      - {block}\n"
        )
    };
    says(&action("forbidden: [a]"), &[]);
    says(
        &action("{ forbidden: [a], text: b }"),
        &["RS700 6:9 a block has one key, its kind, and here are 2"],
    );
    says(
        &action("forbiden: [a]"),
        &["RS700 6:9 `forbiden` is no kind of block; is `forbidden` meant?"],
    );
    says(
        &action("forbidden: a"),
        &[
            "RS700 6:20 a list is expected here, and this is the text `a`; begin each entry with `- `",
        ],
    );
    let no_kind = "is no kind of block; text with a colon is quoted, or written after `|`";
    says(&action("Note: do this"), &[&format!("RS700 6:9 `Note` {no_kind}")]);
    says(
        &action("Whenever somebody asks you to do something else: say no"),
        &[&format!("RS700 6:9 `Whenever somebody asks you to do somethi…` {no_kind}")],
    );
    says(
        &action("state_banner: { checkpoint: c, mod: x }"),
        &["RS700 6:40 `mod` is no known field here; is `mode` meant?"],
    );
    says(
        &action("dispatch: { single: { task: t }, parallel: { agents: [] } }"),
        &["RS700 6:19 one key is expected here, and there are 2"],
    );
}

#[test]
fn what_looks_like_something_else_is_text_where_text_is_wanted() {
    let loaded =
        read("steps:\n  - { id: one, title: 12, actions: ['12'], output: yes, next: end }\n");
    let workflow = loaded.workflow.expect("it can be read");
    assert_eq!(
        (workflow.steps[0].title.as_str(), workflow.steps[0].output.as_deref()),
        ("12", Some("yes"))
    );
}

#[test]
fn several_mistakes_are_found_at_once_in_the_order_of_the_file() {
    says(
        "steps:
  - { id: one, title: One, nxt: end }
  - { id: two, title: Two, next: end }
  - { id: three, next: end }
phase: {}
",
        &[
            "RS700 2:28 `nxt` is no known field here; is `next` meant?",
            "RS700 4:5 `title` is missing",
            "RS700 5:1 `phase` is no known field here; is `phases` meant?",
        ],
    );
}

#[test]
fn yaml_that_refers_to_itself_is_refused_at_once() {
    let bomb: String =
        (1..30).map(|at| format!("l{at}: &l{at} [*l{0}, *l{0}, *l{0}]\n", at - 1)).collect();
    let started = Instant::now();
    let loaded = read(&format!("l0: &l0 x\n{bomb}steps: *l29\n"));
    assert!(loaded.workflow.is_none() && !loaded.diagnostics.is_empty());
    let deep = format!("steps: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(read(&deep).workflow.is_none());
    let wide = format!("steps: [{}]", "a, ".repeat(100_000));
    assert!(read(&wide).workflow.is_none());
    assert!(read("steps: !!python/object x\n").workflow.is_none());
    assert!(read(&format!("a: {}\n", "x".repeat(600 * 1024))).workflow.is_none());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn thousands_of_wrong_names_are_told_in_no_time() {
    let declared: String = (0..6000).map(|at| format!("  name_{at}: {{}}\n")).collect();
    let used: String = (0..15_000).map(|at| format!("{{{{ nmae_{at} }}}} ")).collect();
    let yaml = format!(
        "parameters:\n{declared}steps:\n  - id: one\n    title: One\n    next: end\n    actions:\n      - '{used}'\n"
    );
    let started = Instant::now();
    let loaded = read(&yaml);
    assert!(loaded.checked.is_none() && !loaded.diagnostics.is_empty());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn keys_do_not_come_twice() {
    let loaded = read(&format!("steps:\n{STEP}steps:\n{STEP}"));
    assert!(loaded.checked.is_none() && !loaded.diagnostics.is_empty());
}

#[test]
fn an_empty_file_is_no_workflow() {
    assert!(read("").workflow.is_none());
    assert!(!read("").diagnostics.is_empty());
}

#[test]
fn the_surroundings_fill_in_what_is_missing() {
    let loaded = read(&format!("steps:\n{STEP}"));
    let workflow = loaded.checked.expect("it can run");
    assert_eq!(workflow.workflow().name, "test");
    assert_eq!(workflow.workflow().description, "For tests.");
}

/// A skill in a folder of its own.
fn skill(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Skill) {
    let dir = tempfile::tempdir().expect("a folder");
    let root = Utf8PathBuf::from_path_buf(dir.path().join("planner")).expect("UTF-8");
    let text = "---\nname: planner\ndescription: Plans. Use when there is something to plan.\n---\nBody.\n";
    write_atomic(&root.join("SKILL.md"), text.as_bytes()).expect("written");
    for (path, bytes) in files {
        write_atomic(&root.join(path), bytes).expect("written");
    }
    let file = root.join("SKILL.md");
    let loaded = repertoire_skill::load::load_skill(
        Source::new(file.clone(), text.to_owned()),
        SkillOrigin::from_file(file),
        &Limits::default(),
    );
    (dir, loaded.skill.expect("a skill"))
}

#[test]
fn a_skill_has_its_own_workflow_and_those_of_its_sub_agents() {
    let own = "resources: { r: { file: resources/r.md } }
steps:
  - id: one
    title: One
    next: end
    actions:
      - resource: r
      - convention: mine
      - dispatch: { single: { agent: explore, task: t, workflow: look } }
";
    let (_dir, skill) = skill(&[
        ("workflow.yaml", own.as_bytes()),
        ("workflows/look.yaml", format!("steps:\n{STEP}").as_bytes()),
        ("workflows/bad.yaml", b"steps: 5"),
        ("resources/r.md", b"the resource"),
        ("conventions/mine.md", b"the convention"),
    ]);
    assert!(is_workflow(&skill));
    let all = load_workflows(&skill);
    let names: Vec<(&str, bool)> =
        all.iter().map(|loaded| (loaded.name.as_str(), loaded.checked.is_some())).collect();
    assert_eq!(names, [("planner", true), ("planner/bad", false), ("planner/look", true)]);
    let workflow = all[0].workflow.as_ref().expect("it can be read");
    assert_eq!(workflow.resources["r"].text.as_deref(), Some("the resource"));
    assert_eq!(workflow.conventions["mine"], "the convention");
    let brief = workflow.steps[0].dispatches().next().expect("a dispatch").briefs()[0];
    assert_eq!(brief.workflow.as_deref(), Some("planner/look"));
}

#[test]
fn a_file_that_cannot_be_read_is_a_finding_and_no_silence() {
    let (_dir, skill_of_none) = skill(&[]);
    assert!(!is_workflow(&skill_of_none) && load_workflows(&skill_of_none).is_empty());
    let (_dir, skill) = skill(&[("workflow.yaml", b"steps: \xff\xfe")]);
    assert!(is_workflow(&skill));
    let all = load_workflows(&skill);
    assert_eq!(all.len(), 1);
    assert!(all[0].checked.is_none());
    assert_eq!(all[0].diagnostics[0].message, "the file is not UTF-8: byte 7 is wrong");
}

#[test]
fn what_is_injected_stays_in_the_folder() {
    let yaml = format!("resources: {{ r: {{ file: ../../secret.md }} }}\nsteps:\n{STEP}");
    let (_dir, skill) = skill(&[("workflow.yaml", yaml.as_bytes())]);
    assert_eq!(
        load_workflows(&skill)[0].diagnostics[0].message,
        "`../../secret.md` cannot be read: the path is absolute or climbs out of the folder"
    );
}

#[test]
fn the_schema_knows_every_field() {
    let schema = workflow_schema();
    for field in ["parameters", "steps", "checks", "entry"] {
        assert!(schema.as_value()["properties"].get(field).is_some(), "{field}");
    }
}
