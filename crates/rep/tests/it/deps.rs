//! `rep show --deps`: trees, diagrams, circles, and what is missing.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

fn graph(skills: &[(&str, &str, &str)]) -> Workspace {
    let ws = Workspace::new();
    for (name, version, needs) in skills {
        ws.skill_with(
            &format!("home/.claude/skills/{name}"),
            &format!("name: {name}\ndescription: {name}. Use when asked.\nversion: {version}\ndependencies: [{needs}]\n"),
        );
    }
    ws
}

fn house() -> Workspace {
    graph(&[
        ("house", "1.0.0", "walls@^2.0, roof"),
        ("roof", "1.1.0", "walls"),
        ("walls", "2.3.0", ""),
    ])
}

#[test]
fn a_tree_shows_versions_asked_for_and_found() {
    assert_snapshot!(house().rep("show --deps"), @r#"
    house 1.0.0
    ├── walls 2.3.0 (^2.0)
    └── roof 1.1.0
        └── walls 2.3.0
    [exit 0]
    "#);
    assert_snapshot!(house().rep("show --deps roof"), @r#"
    roof 1.1.0
    └── walls 2.3.0
    [exit 0]
    "#);
}

#[test]
fn a_diagram_is_mermaid() {
    assert_snapshot!(house().rep("show --deps --mermaid"), @r#"
    graph TD
      walls["walls"]
      roof["roof"]
      house["house"]
      roof --> walls["walls"]
      house -->|"^2.0"| walls["walls"]
      house --> roof["roof"]
    [exit 0]
    "#);
}

#[test]
fn json_gives_the_order_to_load_in() {
    let ws = house();
    let deps = ws.json("--json deps", "deps.json");
    assert_eq!(keys(&deps), ["order", "edges", "cycles"]);
    assert_eq!(deps["order"], serde_json::json!(["walls", "roof", "house"]));
}

#[test]
fn missing_and_wrong_versions_are_shown_and_the_answer_is_no() {
    let ws = graph(&[("top", "1.0.0", "absent, old@^2"), ("old", "1.0.0", "")]);
    assert_snapshot!(ws.rep("show --deps"), @r#"
    top 1.0.0
    ├── absent missing
    └── old 1.0.0 (^2) wrong version
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("show --deps --mermaid"), @r#"
    graph TD
      top["top"]
      top -.-> absent["absent (missing)"]
      top -.->|"^2"| old["old (other version)"]
    [exit 1]
    "#);
}

#[test]
fn a_circle_is_shown_as_a_path() {
    let ws = graph(&[
        ("a", "1.0.0", "b"),
        ("b", "1.0.0", "c"),
        ("c", "1.0.0", "a"),
        ("d", "1.0.0", "a"),
    ]);
    assert_snapshot!(ws.rep("show --deps"), @r#"
    a 1.0.0
    └── b 1.0.0
        └── c 1.0.0
            └── a ↻ in a circle
    d 1.0.0
    └── a 1.0.0
        └── b 1.0.0
            └── c 1.0.0
                └── a ↻ in a circle
    circle: a → b → c → a
    [exit 1]
    "#);
    let deps = ws.json("--json deps d", "deps.json");
    assert_eq!(deps["cycles"], serde_json::json!([["a", "b", "c"]]));
}

#[test]
fn nobody_needing_anybody_is_said() {
    assert_snapshot!(Workspace::new().rep("show --deps"), @r#"
    No skill depends on another.
    [exit 0]
    "#);
    assert_snapshot!(Workspace::new().rep("show --deps first-aid"), @r#"
    first-aid depends on no other skill.
    [exit 0]
    "#);
}

#[test]
fn a_missing_name_is_not_found() {
    assert_eq!(house().rep("show --deps huose").code, 1);
}
