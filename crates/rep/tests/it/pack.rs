//! The pack that ships: our own skills pass our own rules.

use crate::workspace::Workspace;

#[test]
fn every_built_in_skill_passes_lint_without_an_error_or_a_warning() {
    let ws = Workspace::with_shipped_pack();
    assert_eq!(ws.rep("list").code, 0);
    let pack = ws.path("data/skills");
    let report = ws.json(&format!("--json lint {pack}"), "lint.json");
    let summary = &report["summary"];
    assert!(summary["files"].as_u64().unwrap() >= 16, "{summary}");
    assert_eq!(
        (summary["errors"].as_u64(), summary["warnings"].as_u64()),
        (Some(0), Some(0)),
        "{report:#}"
    );
}

#[test]
fn the_skills_of_the_seeds_are_all_there() {
    let names = Workspace::with_shipped_pack().rep("list --names --scope builtin").stdout;
    for name in [
        "danish-tender-guidelines",
        "complexity-calculator",
        "architecture-analyzer",
        "error-analyzer",
        "failure-memory",
        "verification-loop",
        "recovery",
        "auto-merge",
        "agent-mode",
        "tag-mode",
        "continuous-mode",
        "researcher",
        "code-reviewer",
        "planner",
        "git-operator",
        "github-agent",
    ] {
        assert!(names.lines().any(|line| line == name), "{name}");
    }
}

#[test]
fn a_built_in_skill_that_you_have_changed_stays_yours_and_doctor_says_so() {
    let ws = Workspace::with_shipped_pack();
    assert_eq!(ws.rep("list").code, 0);
    ws.skill("data/skills/recovery", "recovery", "Mine. Use when lost.");
    let ran = ws.rep("doctor");
    assert!(ran.stdout.contains("RS318"), "{ran}");
    assert!(ws.rep("show recovery").stdout.contains("Mine. Use when lost."));
}
