//! What is looked at: the index, a branch, a commit, a range, files, and what is in no repository.

use super::{REVIEW, before, changed, commit, git, lay, record, texts};
use crate::workspace::Workspace;

#[test]
fn every_scope_looks_at_its_own_files() {
    let ws = before();
    let project = ws.path("project");
    let seen = |args: &str| {
        let record = record(&ws, &format!("review --patterns-only {args}"));
        let paths = texts(&record["files"], "path").join(" ");
        (paths, record["scope"]["words"].as_str().unwrap().to_owned())
    };
    git(&project, &["checkout", "--quiet", "-b", "feature"]);
    ws.write("project/src/one.py", "one = 1\n");
    let one = commit(&ws, "one");
    ws.write("project/src/two.py", "two = 2\n");
    commit(&ws, "two");
    ws.write("project/src/three.py", "three = 3\n");
    git(&project, &["add", "src/three.py"]);
    ws.write("project/src/four.py", "four = 4\n");

    assert_eq!(seen("").0, "src/four.py src/three.py");
    assert_eq!(seen("--staged").0, "src/three.py");
    assert_eq!(seen("--base main").0, "src/one.py src/two.py");
    assert_eq!(seen("--base main src/two.py").0, "src/two.py");
    assert_eq!(seen(&format!("--commit {one}")).0, "src/one.py");
    assert_eq!(seen(&format!("--range {one}..HEAD")).0, "src/two.py");
    assert_eq!(seen("--range main...HEAD").0, "src/one.py src/two.py");
    // All of a file that has not changed, and of a folder everything.
    assert_eq!(seen("src/orders.py").0, "src/orders.py");
    assert_eq!(seen("tests src/four.py").0, "src/four.py tests/test_orders.py");
    assert_eq!(seen("src").0.split(' ').count(), 6);

    let wrong = ws.rep("review --patterns-only --base nowhere");
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("nowhere"), "{wrong}");
    // A folder of the project is as good as its top.
    let below = record(&ws, "-C src review --patterns-only four.py");
    assert_eq!(texts(&below["files"], "path"), ["src/four.py"]);
}

#[test]
fn agents_read_what_is_reviewed_and_not_what_is_on_disk() {
    let ws = changed();
    commit(&ws, "the change");
    let commits = record(&ws, &format!("{REVIEW} --commit HEAD"));
    lay(&ws, "before");
    let later = record(&ws, &format!("{REVIEW} --commit HEAD"));
    assert_eq!(later["findings"], commits["findings"]);
    assert_eq!(later["left_out"], commits["left_out"]);
    assert!(!later["findings"].as_array().unwrap().is_empty());
}

#[test]
fn patterns_need_no_model_and_no_key() {
    let ws = changed();
    let ran = ws.rep("review --patterns-only");
    assert_eq!(ran.code, 1, "{ran}");
    let record = record(&ws, "review --patterns-only");
    assert_eq!(record["calls"], serde_json::json!([]));
    assert!(!ws.path("data/journal.sqlite").exists(), "a hook does not wait for the journal");
    let found = record["findings"].as_array().unwrap();
    let password = found.iter().find(|one| one["pattern"] == "hardcoded_password").unwrap();
    assert_eq!(
        (&password["file"], &password["lines"]["first"]),
        (&"src/orders.py".into(), &3.into())
    );
    assert!(found.iter().all(|one| one["file"] != "tests/test_orders.py"), "{found:#?}");
    let left = record["left_out"].as_array().unwrap();
    let test = left.iter().find(|out| out["file"] == "tests/test_orders.py").unwrap();
    assert_eq!(test["why"], "false_positive_rule");
    assert!(test["reason"].as_str().unwrap().contains("Secrets in tests"), "{test}");
    // Without skills there are none, and nothing is not clean.
    let without = ws.rep("review --patterns-only --no-skills");
    assert_eq!(without.code, 2, "{without}");
    assert!(without.stderr.contains("there is no pattern to run"), "{without}");
    // With a model that nobody has, there is something to do instead.
    let model = ws.rep("review");
    assert_eq!(model.code, 3, "{model}");
    assert!(model.stderr.contains("--patterns-only"), "{model}");
}

#[test]
fn outside_of_a_repository_files_are_reviewed_as_they_are() {
    let mut ws = Workspace::with_shipped_pack();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::remove_dir_all(ws.path("project/.git")).unwrap();
    ws.write("project/a.py", "password = \"tulip-harbour-4711\"\n");
    let ran = ws.rep("review --patterns-only");
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains("name files or folders"), "{ran}");
    let ran = ws.rep("review --patterns-only a.py");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.contains("a.py:1"), "{ran}");
}

#[test]
fn a_clean_project_is_one_line_and_asks_nobody() {
    let ws = before();
    let ran = ws.rep(REVIEW);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1), "{ran}");
    assert!(ran.stderr.starts_with("hint: ") && ran.stderr.lines().count() == 1, "{ran}");
}
