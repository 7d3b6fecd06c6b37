//! Merging without a person: a pull request is opened, and a later event decides. Each event is a process of its own, as in a
//! workflow.

use repertoire_scripted::ModelScript;
use repertoire_scripted::github::{FakeCheck, FakePullFile, FakeReview};
use serde_json::{Value, json};

use super::stage::{BOT, Stage, account, comment, dispatch, issue};
use super::{WORKS, run};
use crate::workspace::Ran;

const ON: &str = "\
[plan.checks.alpha]
command = \"test -f README.md\"
[github.auto_merge]
enabled = true
required_checks = [\"ci\"]
wait_seconds = 0
watch_seconds = 0
delete_branch = true
close_issue = true
";

fn stage_with(toml: &str, files: &[(&str, &str)]) -> Stage {
    let files = [&[("repertoire.toml", toml)], files].concat();
    let stage = Stage::new(
        &files,
        |github| {
            github.collaborator("bob", "write").user("stranger").issue(
                31,
                "Write alpha",
                "Please write alpha.",
                "stranger",
            )
        },
        ModelScript::new(),
    );
    stage.ws.write("agent.yaml", WORKS);
    stage
}

fn called(text: &str, author: &str) -> Value {
    comment(issue(31, "Write alpha", "Please write alpha.", "stranger"), text, author)
}

/// Lets Ada ask for work on issue 31, and gives back the pull request that came of it.
fn opened(stage: &Stage) -> u64 {
    let event = called("@repertoire write alpha", "ada");
    let ran = run(stage, "issue_comment", &event, &["--pull-request"]);
    assert_eq!(ran.code, 0, "{ran}");
    stage.output("pull_request").parse().unwrap_or_else(|_| panic!("{ran}"))
}

/// What the service knows of a pull request after a while: its file, and how the check `ci` ended.
fn checked(stage: &Stage, number: u64, conclusion: &str) {
    stage.github.change_state(|state| {
        let pull = state.pulls.get_mut(&number).unwrap();
        pull.files = vec![FakePullFile {
            path: "alpha.txt".to_owned(),
            additions: 1,
            ..FakePullFile::default()
        }];
        let check = FakeCheck {
            name: "ci".to_owned(),
            status: "completed".to_owned(),
            conclusion: Some(conclusion.to_owned()),
            app: "github-actions".to_owned(),
            completes_after: None,
        };
        state.checks.insert(pull.head_sha.clone(), vec![check]);
    });
}

fn pull_event(stage: &Stage, number: u64, sender: &str, more: Value) -> Value {
    let state = stage.github.state();
    let (pull, text) = (&state.pulls[&number], &state.issues[&number]);
    let repository = json!({ "full_name": "octo/repo", "default_branch": "main" });
    let base = stage.git(&["rev-parse", &format!("origin/{}", pull.base)]);
    let mut event = json!({
        "repository": repository, "sender": account(sender),
        "pull_request": {
            "number": number, "title": text.title, "body": text.body, "state": "open",
            "user": account(&text.author), "draft": pull.draft, "labels": [], "assignees": [],
            "head": { "ref": pull.head, "sha": pull.head_sha, "repo": repository },
            "base": { "ref": pull.base, "sha": base, "repo": repository },
        },
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// Somebody approves, and the workflow runs.
fn approved(stage: &Stage, number: u64, by: &str) -> Ran {
    stage.github.change_state(|state| {
        let pull = state.pulls.get_mut(&number).unwrap();
        pull.reviews.push(FakeReview {
            author: by.to_owned(),
            state: "APPROVED".to_owned(),
            commit: pull.head_sha.clone(),
            ..FakeReview::default()
        });
    });
    let review = json!({ "id": 7, "body": null, "user": account(by), "state": "approved" });
    let more = json!({ "action": "submitted", "review": review });
    let event = pull_event(stage, number, by, more);
    run(stage, "pull_request_review", &event, &[])
}

/// A workflow of the repository ended on the branch of a pull request.
fn ended(stage: &Stage, number: u64) -> Ran {
    let branch = stage.github.state().pulls[&number].head.clone();
    let event = json!({
        "action": "completed", "sender": account(BOT),
        "repository": { "full_name": "octo/repo", "default_branch": "main" },
        "workflow_run": { "head_branch": branch, "conclusion": "success" },
    });
    run(stage, "workflow_run", &event, &[])
}

fn merges(stage: &Stage) -> usize {
    stage.github.write_calls().iter().filter(|call| call.ends_with("/merge")).count()
}

/// Nothing was merged, the step is green, and this is why.
#[track_caller]
fn not_merged(stage: &Stage, number: u64, ran: &Ran, part: &str) {
    assert_eq!((ran.code, stage.output("conclusion")), (0, "skipped".to_owned()), "{ran}");
    assert!(stage.output("reason").contains(part), "{ran}");
    assert_eq!(stage.github.state().pulls[&number].merged_as, None, "{ran}");
}

/// The next process knows nothing of this one.
fn forget_journal(stage: &Stage) {
    std::fs::remove_file(stage.ws.path("data/journal.sqlite")).unwrap();
    for rest in ["wal", "shm"] {
        let _ = std::fs::remove_file(stage.ws.path(&format!("data/journal.sqlite-{rest}")));
    }
}

#[test]
fn an_approval_after_green_checks_merges_deletes_the_branch_and_closes_the_issue() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    let state = stage.github.state();
    assert!(!state.pulls[&number].draft, "nobody could mark a draft as ready");
    assert!(state.issues[&number].body.starts_with("<!-- repertoire:made {"));
    let said = &stage.github.comments(31)[0];
    assert!(said.contains("Not merged: required check `ci` is missing"), "{said}");
    checked(&stage, number, "success");
    not_merged(&stage, number, &ended(&stage, number), "Not merged yet: 0 of 1 approvals");

    let asked_before = stage.model.requests().len();
    let ran = approved(&stage, number, "bob");
    assert_eq!((ran.code, stage.output("conclusion")), (0, "done".to_owned()), "{ran}");
    let state = stage.github.state();
    assert!(state.pulls[&number].merged_as.is_some(), "{ran}");
    assert!(state.issues[&31].closed, "{ran}");
    assert_eq!(stage.branches(), ["main"], "{ran}");
    assert!(ran.stdout.contains("Merged as "), "{ran}");
    assert_eq!(stage.model.requests().len(), asked_before, "no agent was asked");
    // Said again, there is nothing to merge.
    approved(&stage, number, "bob");
    assert_eq!(merges(&stage), 1);
}

#[test]
fn without_the_journal_the_required_checks_stand_in() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    forget_journal(&stage);
    checked(&stage, number, "success");
    let ran = approved(&stage, number, "bob");
    assert!(stage.github.state().pulls[&number].merged_as.is_some(), "{ran}");

    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    forget_journal(&stage);
    checked(&stage, number, "success");
    let head = stage.github.state().pulls[&number].head_sha.clone();
    stage.github.change_state(|state| state.push(number, "bob", &head));
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "bob has moved its branch");
}

#[test]
fn whoever_asked_does_not_approve() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    checked(&stage, number, "success");
    not_merged(&stage, number, &approved(&stage, number, "ada"), "0 of 1 approvals");
    // Nor does somebody who may not write, and they cannot ask for a merge either.
    not_merged(&stage, number, &approved(&stage, number, "rita"), "nobody who may has asked");
    // A later process goes by what the pull request says of itself, and without it goes nowhere.
    forget_journal(&stage);
    not_merged(&stage, number, &ended(&stage, number), "0 of 1 approvals");
    let body = stage.github.state().issues[&number].body.clone();
    let without = body.replace("\"asked_by\":", "\"nobody\":");
    stage.github.change_state(|state| state.issues.get_mut(&number).unwrap().body = without);
    not_merged(&stage, number, &ended(&stage, number), "who asked for it is not known");
    stage.github.change_state(|state| state.issues.get_mut(&number).unwrap().body.clear());
    approved(&stage, number, "bob");
    assert_eq!(merges(&stage), 0);
}

#[test]
fn whoever_had_it_run_again_does_not_approve_either() {
    let mut stage = stage_with(ON, &[]);
    for (name, value) in
        [("GITHUB_ACTOR", "ada"), ("GITHUB_TRIGGERING_ACTOR", "bob"), ("GITHUB_RUN_ATTEMPT", "2")]
    {
        stage.ws.set(name, value);
    }
    let number = opened(&stage);
    checked(&stage, number, "success");
    not_merged(&stage, number, &approved(&stage, number, "bob"), "0 of 1 approvals");
}

#[test]
fn whoever_made_an_issue_a_task_does_not_approve_it() {
    let toml = format!("{ON}[github.continuous]\nenabled = true\nsources = [\"issue\"]\n");
    let stage = Stage::new(
        &[("repertoire.toml", &toml)],
        |github| {
            github
                .collaborator("bob", "write")
                .collaborator("carol", "write")
                .issue(31, "Write alpha", "Please write alpha.", "carol")
                .label_by(31, "agent-task", "bob")
        },
        ModelScript::new(),
    );
    stage.ws.write("agent.yaml", WORKS);
    let number = task_done(&stage);
    checked(&stage, number, "success");
    not_merged(&stage, number, &approved(&stage, number, "bob"), "0 of 1 approvals");
    not_merged(&stage, number, &approved(&stage, number, "carol"), "0 of 1 approvals");
    let ran = approved(&stage, number, "ada");
    assert!(stage.github.state().issues[&31].closed, "{ran}");
    assert_eq!(merges(&stage), 1, "{ran}");
}

#[test]
fn nothing_is_merged_unless_somebody_switched_it_on() {
    let stage = stage_with("[plan.checks.alpha]\ncommand = \"test -f README.md\"\n", &[]);
    let number = opened(&stage);
    let state = stage.github.state();
    assert!(state.pulls[&number].draft);
    assert!(!state.issues[&number].body.contains("repertoire:made"));
    stage.github.change_state(|state| state.pulls.get_mut(&number).unwrap().draft = false);
    checked(&stage, number, "success");
    let ready = pull_event(&stage, number, "bob", json!({ "action": "ready_for_review" }));
    for ran in [
        approved(&stage, number, "bob"),
        ended(&stage, number),
        run(&stage, "pull_request", &ready, &[]),
        run(&stage, "schedule", &json!({ "schedule": "0 3 * * *" }), &[]),
        run(&stage, "workflow_dispatch", &dispatch(None, "ada"), &[]),
    ] {
        not_merged(&stage, number, &ran, "");
    }
    assert_eq!(merges(&stage), 0);
}

#[test]
fn a_required_check_is_missed_by_name_and_red_by_name() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "required check `ci` is missing");
    checked(&stage, number, "failure");
    let ran = ended(&stage, number);
    not_merged(&stage, number, &ran, "required check `ci` ended with `failure`");
    assert!(ran.stderr.contains("`ci` counts whoever reports it"), "{ran}");
    checked(&stage, number, "success");
    let ran = ended(&stage, number);
    assert_eq!((merges(&stage), stage.output("conclusion")), (1, "done".to_owned()), "{ran}");
}

#[test]
fn a_head_that_moves_before_the_merge_is_not_merged() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    checked(&stage, number, "success");
    // Once to find it, twice to decide.
    stage.github.change_state(|state| state.pulls.get_mut(&number).unwrap().moves_after = Some(2));
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "Head branch was modified");
    assert_eq!(merges(&stage), 1);
}

#[test]
fn the_clock_and_a_person_by_hand_look_at_all_that_are_open() {
    let stage = stage_with(ON, &[]);
    let number = opened(&stage);
    checked(&stage, number, "success");
    let ran = run(&stage, "workflow_dispatch", &dispatch(None, "ada"), &["--dry-run"]);
    not_merged(&stage, number, &ran, "can be merged would be decided");
    let ran = run(&stage, "schedule", &json!({ "schedule": "0 3 * * *" }), &[]);
    not_merged(&stage, number, &ran, "0 of 1 approvals");
    stage.github.change_state(|state| {
        let pull = state.pulls.get_mut(&number).unwrap();
        let (author, decided) = ("bob".to_owned(), "APPROVED".to_owned());
        let commit = pull.head_sha.clone();
        pull.reviews.push(FakeReview { author, state: decided, commit, ..FakeReview::default() });
    });
    let ran = run(&stage, "workflow_dispatch", &dispatch(None, "ada"), &[]);
    assert_eq!((ran.code, merges(&stage)), (0, 1), "{ran}");
}

#[test]
fn a_draft_that_was_wished_for_waits_for_a_person() {
    let stage = stage_with(&format!("[github]\ndraft = true\n{ON}"), &[]);
    let number = opened(&stage);
    assert!(stage.github.state().pulls[&number].draft);
    checked(&stage, number, "success");
    not_merged(&stage, number, &approved(&stage, number, "bob"), "Not merged yet: it is a draft");
    stage.github.change_state(|state| state.pulls.get_mut(&number).unwrap().draft = false);
    let ready = pull_event(&stage, number, "bob", json!({ "action": "ready_for_review" }));
    let ran = run(&stage, "pull_request", &ready, &[]);
    assert_eq!((ran.code, merges(&stage)), (0, 1), "{ran}");
}

/// Works through the one task that waits, and gives back its pull request.
fn task_done(stage: &Stage) -> u64 {
    let clock = json!({ "schedule": "0 3 * * *" });
    let ran = run(stage, "schedule", &clock, &["--pull-request", "--json"]);
    let came: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"));
    came["tasks"][0]["pull_request"].as_u64().unwrap_or_else(|| panic!("{ran}"))
}

/// Works through the one task of `TASKS.md`, whose box is ticked in a commit after the checks.
fn ticked(check: &str) -> (Stage, u64) {
    let toml = ON.replace("test -f README.md", check);
    let stage = stage_with(
        &format!("{toml}[github.continuous]\nenabled = true\n"),
        &[("TASKS.md", "- [ ] write alpha\n")],
    );
    let number = task_done(&stage);
    checked(&stage, number, "success");
    (stage, number)
}

#[test]
fn what_was_committed_after_the_checks_is_checked_again() {
    let (stage, number) = ticked("! grep -q 'x' TASKS.md");
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "the declared checks failed");
    let (stage, number) = ticked("test -f README.md");
    let ran = approved(&stage, number, "bob");
    assert!(stage.github.state().pulls[&number].merged_as.is_some(), "{ran}");
}

#[test]
fn a_change_that_is_hidden_from_git_in_the_checkout_of_a_run_is_not_merged() {
    let (stage, number) = ticked("test -f README.md");
    let listed = stage.git(&["worktree", "list", "--porcelain"]);
    let dirs = listed.lines().filter_map(|line| line.strip_prefix("worktree "));
    let data = stage.ws.path("data");
    let mut dirs = dirs.filter(|dir| dir.starts_with(data.as_str()));
    let dir = dirs.next().unwrap_or_else(|| panic!("{listed}"));
    stage.git(&["-C", dir, "update-index", "--assume-unchanged", "repertoire.toml"]);
    let file = camino::Utf8Path::new(dir).join("repertoire.toml");
    repertoire_text::fs::write_atomic(&file, b"this is no TOML").unwrap();
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "the declared checks were run on");
}

/// Lets Ada ask for work on Carol's pull request, and gives back ours, which goes into Carol's branch.
fn opened_on_a_pull_request(files: &[(&str, &str)]) -> (Stage, u64) {
    let stage = stage_with(&format!("{ON}base_branches = [\"feature\"]\n"), &[]);
    let head = stage.branch("feature", files);
    stage.github.change_state(|state| {
        let text = repertoire_scripted::github::FakeIssue {
            title: "A feature".to_owned(),
            author: "carol".to_owned(),
            ..Default::default()
        };
        let pull = repertoire_scripted::github::FakePull {
            head: "feature".to_owned(),
            head_sha: head,
            base: "main".to_owned(),
            mergeable: Some(true),
            mergeable_state: "clean".to_owned(),
            ..Default::default()
        };
        state.issues.insert(12, text);
        state.pulls.insert(12, pull);
    });
    let mut about = issue(12, "A feature", "", "carol");
    about["pull_request"] = json!({});
    let event = comment(about, "@repertoire write alpha", "ada");
    let ran = run(&stage, "issue_comment", &event, &["--pull-request"]);
    let number = stage.output("pull_request").parse().unwrap_or_else(|_| panic!("{ran}"));
    checked(&stage, number, "success");
    (stage, number)
}

#[test]
fn the_pull_request_that_somebody_asked_about_is_not_closed() {
    let (stage, number) = opened_on_a_pull_request(&[("feature.txt", "one\n")]);
    let ran = approved(&stage, number, "bob");
    let state = stage.github.state();
    assert!(state.pulls[&number].merged_as.is_some(), "{ran}");
    assert!(!state.issues[&12].closed, "{ran}");
}

#[test]
fn files_that_nobody_checked_are_not_merged() {
    // The agent and the checks saw the configuration of the base branch; what is published has Carol's.
    let changes = [("feature.txt", "one\n"), ("AGENTS.md", "Be quick.\n")];
    let (stage, number) = opened_on_a_pull_request(&changes);
    let ran = approved(&stage, number, "bob");
    not_merged(&stage, number, &ran, "the declared checks were run on");
}
