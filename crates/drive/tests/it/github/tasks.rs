//! Issues that wait for the agent.

use repertoire_drive::github::tasks::issues::{IssueRules, Outcome, Report, report, tasks};
use repertoire_github::comment::Harmless;
use repertoire_scripted::github::{FakeGitHub, Fault};

use super::{BOT, client};

fn rules() -> IssueRules {
    IssueRules {
        task_label: "agent-task".to_owned(),
        failed_label: "agent-failed".to_owned(),
        own_login: BOT.to_owned(),
        allowed_bots: vec!["planner[bot]".to_owned()],
        allowed_users: vec!["trusted".to_owned()],
    }
}

fn repository() -> FakeGitHub {
    FakeGitHub::new("octo", "repo")
        .collaborator("ada", "write")
        .collaborator("rita", "triage")
        .user("trusted")
}

fn failure(run: &str) -> Report<'_> {
    Report {
        outcome: Outcome::Failed,
        run,
        ours: "Failed: the tests stay red.",
        theirs: "cc @ada",
        chars_max: 1500,
    }
}

#[tokio::test]
async fn only_issues_that_somebody_entitled_asked_for_are_picked() {
    let mut fake = repository();
    for (number, labeller) in [
        (1, "ada"),
        (2, "rita"),
        (3, "stranger"),
        (4, "planner[bot]"),
        (5, "other[bot]"),
        (6, "trusted"),
        (7, "ada"),
        (8, "ada"),
        (9, "ada"),
        (10, "ada"),
    ] {
        let title = format!("Issue {number}");
        fake =
            fake.issue(number, &title, "text", "stranger").label_by(number, "agent-task", labeller);
    }
    let server = fake
        .label(7, "agent-failed")
        .assign(8, "ada")
        .assign(9, BOT)
        .label(9, "priority-1")
        .label(9, "priority-0")
        .closed(10)
        .pull(11, "bot/x", BOT)
        .label_by(11, "agent-task", "ada")
        .page_size(3)
        .start()
        .await;
    let (found, passed) = tasks(&client(&server), &rules()).await.unwrap();
    let ids: Vec<_> = found.iter().map(|task| (task.id.as_str(), task.priority)).collect();
    assert_eq!(ids, [("issue-1", 5), ("issue-4", 5), ("issue-6", 5), ("issue-9", 1)]);
    let why: Vec<_> = passed.iter().map(|it| format!("{} {}", it.id, it.why)).collect();
    assert_eq!(
        why,
        [
            "issue-2 got its label from rita, who may not write here",
            "issue-3 got its label from stranger, who may not write here",
            "issue-5 got its label from other[bot], who may not write here",
            "issue-7 has the label `agent-failed`; take it off to have it tried again",
            "issue-8 is assigned to ada",
        ]
    );
    assert!(server.writes().is_empty());
}

#[tokio::test]
async fn an_issue_whose_labeller_is_not_known_is_not_picked() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .with(|state| {
            state.issues.get_mut(&1).unwrap().labels.push("agent-task".to_owned());
        })
        .start()
        .await;
    let (found, passed) = tasks(&client(&server), &rules()).await.unwrap();
    assert!(found.is_empty());
    assert_eq!(passed[0].why, "does not say who added the label `agent-task`");
}

#[tokio::test]
async fn a_permission_that_cannot_be_asked_is_an_error_and_no_yes() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .label_by(1, "agent-task", "ada")
        .fault(Fault::forbidden("/permission", "metadata=read").times(9))
        .start()
        .await;
    assert!(tasks(&client(&server), &rules()).await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn a_task_that_failed_is_labelled_said_once_and_not_picked_again() {
    let server =
        repository().issue(1, "A", "", "ada").label_by(1, "agent-task", "ada").start().await;
    let client = client(&server);
    for _ in 0..2 {
        report(&client, 1, &rules(), &failure("77"), &Harmless::default()).await.unwrap();
    }
    assert_eq!(server.labels(1), ["agent-task", "agent-failed"]);
    let comments = server.comments(1);
    assert_eq!(comments.len(), 1);
    assert!(comments[0].contains("the tests stay red") && !comments[0].contains("@ada"));
    assert!(tasks(&client, &rules()).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_failure_is_labelled_even_if_it_cannot_be_said() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .fault(Fault::forbidden("/comments", "issues=write").times(9))
        .start()
        .await;
    let said = report(&client(&server), 1, &rules(), &failure("77"), &Harmless::default()).await;
    assert!(said.unwrap_err().is_forbidden());
    assert_eq!(server.labels(1), ["agent-failed"]);
}

#[tokio::test]
async fn what_is_done_or_waits_is_said_without_a_label() {
    let server = repository().issue(1, "A", "", "ada").start().await;
    for (outcome, run) in [(Outcome::Done, "1"), (Outcome::Waiting, "2")] {
        let said = Report { outcome, ..failure(run) };
        report(&client(&server), 1, &rules(), &said, &Harmless::default()).await.unwrap();
    }
    assert!(server.labels(1).is_empty());
    assert_eq!(server.comments(1).len(), 2);
}
