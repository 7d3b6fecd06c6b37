//! `rep github detect`: for every trigger, what would happen.

use camino::Utf8Path;
use insta::assert_snapshot;
use serde_json::Value;

use crate::workspace::{Ran, Workspace};

/// A project with an event in it.
fn with_event(ws: &Workspace, name: &str) {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../github/tests/it/events");
    let text = repertoire_text::fs::read_text(&dir.join(format!("{name}.json")), 1 << 20).unwrap();
    ws.write("project/event.json", text);
}

fn event_of(name: &str) -> &str {
    name.split('.').next().unwrap()
}

fn detect(ws: &Workspace, name: &str, more: &[&str]) -> Ran {
    with_event(ws, name);
    let args = ["github", "detect", "--event", "event.json", "--event-name", event_of(name)];
    ws.rep_with(&[&args, more].concat())
}

fn facts(ws: &Workspace, name: &str, more: &str) -> Value {
    with_event(ws, name);
    let line =
        format!("github detect --json --event event.json --event-name {} {more}", event_of(name));
    ws.json(&line, "github-detect.json")
}

#[test]
fn every_trigger_is_explained() {
    let ws = Workspace::with_shipped_pack();
    ws.write("project/repertoire.toml", "[github]\nassignee_trigger = \"repertoire-bot\"\n");
    for (name, mode, trigger) in [
        ("issues.opened", "agent", "issue_opened"),
        ("issues.labeled.task", "agent", "issue_labeled"),
        ("issues.labeled.bot", "tag", "label"),
        ("issues.assigned", "tag", "assignee"),
        ("issue_comment.created", "tag", "mention"),
        ("pull_request_review.submitted", "tag", "mention"),
        ("pull_request_review_comment.created", "tag", "mention"),
        ("workflow_dispatch", "agent", "workflow_dispatch"),
        ("repository_dispatch", "agent", "explicit_prompt"),
    ] {
        let said = facts(&ws, name, "");
        assert_eq!(said["detection"]["mode"], mode, "{name}");
        assert_eq!(said["detection"]["trigger"]["trigger"], trigger, "{name}");
        assert_eq!(said["asks"][0], "ada-maintainer");
        assert_eq!(said["admitted"], Value::Null);
        assert_eq!(said["warnings"].as_array().unwrap().len(), 0);
        assert!(said["mode"]["tools"].as_array().unwrap().len() > 8);
    }
    for name in ["pull_request.opened", "schedule", "push", "issue_comment.created.quoted"] {
        let said = facts(&ws, name, "");
        assert_eq!((&said["detection"]["mode"], &said["mode"]), (&Value::Null, &Value::Null));
    }
    assert_eq!(facts(&ws, "push", "--mode agent")["detection"]["mode"], "agent");
    assert_eq!(
        facts(&ws, "push", "--prompt x")["detection"]["trigger"]["trigger"],
        "explicit_prompt"
    );
    ws.write("project/repertoire.toml", "[github.continuous]\nenabled = true\n");
    let said = facts(&ws, "schedule", "");
    assert_eq!(said["detection"]["mode"], "continuous");
    assert_eq!(said["admitted"]["admission"]["admission"], "write");
}

#[test]
fn a_mention_by_somebody_with_write_access() {
    let ws = Workspace::with_shipped_pack();
    assert_snapshot!(detect(&ws, "issue_comment.created", &["--permission", "write"]), @r#"
    Event     issue_comment.created on issue 12 of brewery/kettle
    Result    the mode `tag` answers
    Actor     ada-maintainer may have work done: ada-maintainer has write access
    Mode      `tag`, priority 50, skill `tag-mode`; 100 % sure
    Why       `mention`: the text that this event brought has the phrase "@repertoire"
    Tools     read, search, grep, glob, list, todo, skill, skill_search, bash, git, write, edit,
              run_tests
    Reports   one comment that is kept up to date, label `agent:working` while at work; a branch if
              something changes; a pull request if asked for, as far as the configuration lets it
    Not       `continuous`: none of `continuous` held
    Not       `agent`: none of `workflow_dispatch`, `explicit_prompt`, `issue_opened`, `issue_labeled`,
              `manual` held
    [exit 0]
    "#);
}

#[test]
fn a_mention_by_somebody_who_may_not() {
    let ws = Workspace::with_shipped_pack();
    let more = ["--permission", "read"];
    assert_snapshot!(detect(&ws, "issue_comment.created.by-reader", &more), @r#"
    Event     issue_comment.created on issue 12 of brewery/kettle
    Result    nothing: whoever asked may not
    Actor     rita-reader is refused: rita-reader has read access; write access or a place on the list
              `github.allowed_non_write_users` is needed
    Mode      `tag`, priority 50, skill `tag-mode`; 100 % sure
    Why       `mention`: the text that this event brought has the phrase "@repertoire"
    Not       `continuous`: none of `continuous` held
    Not       `agent`: none of `workflow_dispatch`, `explicit_prompt`, `issue_opened`, `issue_labeled`,
              `manual` held
    [exit 0]
    "#);
}

#[test]
fn a_pull_request_from_a_fork() {
    let ws = Workspace::with_shipped_pack();
    assert_snapshot!(detect(&ws, "pull_request_target.opened", &[]), @r#"
    Event     pull_request_target.opened on pull request 8 of brewery/kettle
    Result    nothing: no mode takes `pr_opened`
    Actor     mallory-outside; GitHub would be asked what mallory-outside may do in this repository
    Fork      from another repository: nothing of it is run, and nothing is pushed
    Not       `continuous`: none of `continuous` held
    Not       `tag`: none of `mention`, `label`, `assignee` held
    Not       `agent`: none of `workflow_dispatch`, `explicit_prompt`, `issue_opened`, `issue_labeled`,
              `manual` held
    [exit 0]
    "#);
}

#[test]
fn the_prompt_is_shown_when_asked_for() {
    let ws = Workspace::with_shipped_pack();
    let said = facts(&ws, "issue_comment.edited.by-other", "--show-prompt --permission write");
    let (system, user) = (&said["prompt"]["system"], &said["prompt"]["user"]);
    let (system, user) = (system.as_str().unwrap(), user.as_str().unwrap());
    assert!(system.contains("called by ada-maintainer (permission write)"), "{system}");
    assert!(user.contains("<<<BEGIN DATA preview: instruction, written by \"mallory-outside\""));
    let shown = detect(&ws, "issue_comment.created", &["--show-prompt"]).stdout;
    assert!(shown.contains("\nSystem prompt\nYou are the agent of brewery/kettle"), "{shown}");
    assert_eq!(facts(&ws, "issue_comment.created", "")["prompt"], Value::Null);
}

#[test]
fn the_environment_of_actions_is_enough() {
    let mut ws = Workspace::with_shipped_pack();
    with_event(&ws, "issue_comment.created");
    let path = ws.path("project/event.json");
    ws.set("GITHUB_EVENT_PATH", path.as_str());
    ws.set("GITHUB_EVENT_NAME", "issue_comment");
    ws.set("GITHUB_ACTOR", "ada-maintainer");
    ws.set("GITHUB_TRIGGERING_ACTOR", "rita-reader");
    ws.set("GITHUB_RUN_ATTEMPT", "2");
    let said = ws.json("github detect --json", "github-detect.json");
    assert_eq!(said["asks"], serde_json::json!(["ada-maintainer", "rita-reader"]));
    assert_eq!(said["rerun_by"]["login"], "rita-reader");
}

#[test]
fn without_skills_the_modes_of_the_program_act_loudly() {
    let ws = Workspace::with_shipped_pack();
    ws.write("project/repertoire.toml", "skills_enabled = false\n");
    let ran = detect(&ws, "issue_comment.created", &[]);
    assert!(ran.stdout.contains("part of the program"), "{ran}");
    assert_eq!(ran.stderr, "warning: skills are off: the modes that are part of the program act\n");
}

#[test]
fn a_mode_of_the_project_acts_once_the_checkout_is_trusted() {
    let ws = Workspace::with_shipped_pack();
    let text = "---\nname: gate-mode\ntype: mode\ndescription: Looks at pull requests. Use when one is opened.\ntriggers: [pr_opened]\n---\n\n# Gate\n\n## System Prompt Template\n\n```text\nLook.\n```\n\n## User Prompt Template\n\n```text\n{{body}}\n```\n";
    ws.write("project/.claude/skills/gate-mode/SKILL.md", text);
    let ran = detect(&ws, "pull_request.opened", &[]);
    assert!(ran.stdout.contains("nothing: no mode takes `pr_opened`"), "{ran}");
    assert!(ran.stderr.contains("RS806"), "{ran}");
    let said = facts(&ws, "pull_request.opened", "--trust-checkout");
    assert_eq!(said["detection"]["mode"], "gate");
    assert_eq!(said["mode"]["origin"]["scope"], "project");
}

#[test]
fn what_is_wrong_is_one_message() {
    let ws = Workspace::with_shipped_pack();
    assert_snapshot!(ws.rep("github detect"), @r#"
    [stderr]
    error: there is no event
    hint: Pass `--event FILE`, or run it in a workflow, where GITHUB_EVENT_PATH names the file.
    [exit 2]
    "#);
    ws.write("project/event.json", "{\"repository\": 7}");
    assert_snapshot!(ws.rep("github detect --event event.json --event-name push"), @r#"
    [stderr]
    error: [TMP]/project/event.json: `repository` of the event cannot be read: invalid type: integer `7`, expected an object with `full_name`
    [exit 3]
    "#);
    assert_snapshot!(ws.rep("github detect --event gone.json --event-name push"), @r#"
    [stderr]
    error: [TMP]/project/gone.json: there is no such file
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("github detect --event event.json"), @r#"
    [stderr]
    error: the name of the event is missing: set GITHUB_EVENT_NAME, or pass `--event-name`
    [exit 2]
    "#);
}
