//! Issues that wait for the agent.

use std::collections::BTreeSet;
use std::time::Duration;

use repertoire_github::actor;
use repertoire_github::comment::NeutraliseRules;
use repertoire_github::tasks::SkippedTask;
use repertoire_github::tasks::issues::{
    IssueOutcome, IssueReport, IssueRules, OutcomeLabels, claim_issue, find_issue_tasks,
    report_outcome,
};
use repertoire_scripted::github::{FakeGitHub, GitHubFault, GitHubServer};

use super::{BOT, client};

const WORKING: &str = "agent:continuous";

fn rules() -> IssueRules {
    let bots = ["planner[bot]", "asker[bot]"].map(str::to_owned);
    IssueRules {
        task_label: "agent-task".to_owned(),
        ended: OutcomeLabels {
            done: "agent-done".to_owned(),
            failed: "agent-failed".to_owned(),
            waiting: "agent-waiting".to_owned(),
        },
        working_label: Some(WORKING.to_owned()),
        lease: Duration::from_secs(3600),
        who: actor::ActorRules {
            allowed_bots: bots.to_vec(),
            allowed_non_write_users: vec!["trusted".to_owned()],
            bot_login: BOT.to_owned(),
            also_own: Vec::new(),
        },
        again: BTreeSet::new(),
    }
}

fn repository() -> FakeGitHub {
    FakeGitHub::new("octo", "repo")
        .collaborator("ada", "write")
        .collaborator("rita", "triage")
        .collaborator("planner[bot]", "write")
        .user("asker[bot]")
        .user("trusted")
}

/// What is picked, and what is not and why.
async fn picked(server: &GitHubServer, rules: &IssueRules) -> (Vec<String>, Vec<String>) {
    let (found, passed) = find_issue_tasks(&client(server), rules).await.unwrap();
    let line = |one: &SkippedTask| format!("{} {}", one.id, one.why);
    (found.into_iter().map(|task| task.id).collect(), passed.iter().map(line).collect())
}

fn failure(run: &str) -> IssueReport<'_> {
    IssueReport {
        outcome: IssueOutcome::Failed,
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
        (12, "asker[bot]"),
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
    let (found, passed) = find_issue_tasks(&client(&server), &rules()).await.unwrap();
    let ids: Vec<_> = found.iter().map(|task| (task.id.as_str(), task.priority)).collect();
    assert_eq!(ids, [("issue-1", 5), ("issue-4", 5), ("issue-9", 1)]);
    let why: Vec<_> = passed.iter().map(|it| format!("{} {}", it.id, it.why)).collect();
    assert_eq!(
        why,
        [
            "issue-2 got its label from rita, who may not write here",
            "issue-3 got its label from stranger, who may not write here",
            "issue-5 got its label from other[bot], who may not write here",
            // Who may only ask questions cannot have work done by a label either, be it a person or a program.
            "issue-6 got its label from trusted, who may not write here",
            "issue-12 got its label from asker[bot], who may not write here",
            "issue-7 has the label `agent-failed`; take it off to have it tried again",
            "issue-8 is assigned to ada",
        ]
    );
    assert!(server.write_calls().is_empty());
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
    let (found, passed) = find_issue_tasks(&client(&server), &rules()).await.unwrap();
    assert!(found.is_empty());
    assert_eq!(passed[0].why, "does not say who added the label `agent-task`");
}

#[tokio::test]
async fn a_permission_that_cannot_be_asked_is_an_error_and_no_yes() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .label_by(1, "agent-task", "ada")
        .fault(GitHubFault::forbidden("/permission", "metadata=read").times(9))
        .start()
        .await;
    assert!(find_issue_tasks(&client(&server), &rules()).await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn a_task_that_failed_is_labelled_said_once_and_not_picked_again() {
    let server =
        repository().issue(1, "A", "", "ada").label_by(1, "agent-task", "ada").start().await;
    let client = client(&server);
    for _ in 0..2 {
        report_outcome(&client, 1, &rules(), &failure("77"), &NeutraliseRules::default())
            .await
            .unwrap();
    }
    assert_eq!(server.labels(1), ["agent-task", "agent-failed"]);
    let comments = server.comments(1);
    assert_eq!(comments.len(), 1);
    assert!(comments[0].contains("the tests stay red") && !comments[0].contains("@ada"));
    assert!(find_issue_tasks(&client, &rules()).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_failure_is_labelled_even_if_it_cannot_be_said() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .fault(GitHubFault::forbidden("/comments", "issues=write").times(9))
        .start()
        .await;
    let said =
        report_outcome(&client(&server), 1, &rules(), &failure("77"), &NeutraliseRules::default())
            .await;
    assert!(said.unwrap_err().is_forbidden());
    assert_eq!(server.labels(1), ["agent-failed"]);
}

#[tokio::test]
async fn what_is_done_or_waits_is_labelled_and_not_picked_again_until_the_label_is_off() {
    for (outcome, label) in
        [(IssueOutcome::Done, "agent-done"), (IssueOutcome::Waiting, "agent-waiting")]
    {
        let server =
            repository().issue(1, "A", "", "ada").label_by(1, "agent-task", "ada").start().await;
        let said = IssueReport { outcome, ..failure("1") };
        report_outcome(&client(&server), 1, &rules(), &said, &NeutraliseRules::default())
            .await
            .unwrap();
        assert_eq!(server.labels(1), ["agent-task", label]);
        let (found, passed) = picked(&server, &rules()).await;
        assert!(found.is_empty() && passed[0].contains(&format!("`{label}`")), "{passed:?}");
        client(&server).remove_label(1, label).await.unwrap();
        assert_eq!(picked(&server, &rules()).await.0, ["issue-1"]);
    }
}

#[tokio::test]
async fn what_was_stopped_is_picked_again() {
    let server =
        repository().issue(1, "A", "", "ada").label_by(1, "agent-task", "ada").start().await;
    let said = IssueReport { outcome: IssueOutcome::Stopped, ..failure("1") };
    report_outcome(&client(&server), 1, &rules(), &said, &NeutraliseRules::default())
        .await
        .unwrap();
    assert_eq!((server.labels(1).len(), server.comments(1).len()), (1, 1));
    assert_eq!(picked(&server, &rules()).await.0, ["issue-1"]);
}

#[tokio::test]
async fn what_a_person_wants_tried_again_is_picked_whatever_became_of_it() {
    let server = repository()
        .issue(1, "A", "", "ada")
        .label_by(1, "agent-task", "ada")
        .label_by(1, "agent-failed", BOT)
        .start()
        .await;
    let again = IssueRules { again: BTreeSet::from(["issue-1".to_owned()]), ..rules() };
    assert!(picked(&server, &rules()).await.0.is_empty());
    assert_eq!(picked(&server, &again).await.0, ["issue-1"]);
    assert_eq!(claim_issue(&client(&server), 1, &again).await.unwrap(), None);
    assert_eq!(server.labels(1), ["agent-task"], "it has not failed yet");
}

/// An issue that another run works on, since so many seconds.
async fn claimed(seconds: i64) -> GitHubServer {
    let now = jiff::Timestamp::now().as_second();
    let since = jiff::Timestamp::from_second(now - seconds).unwrap().to_string();
    repository()
        .issue(1, "A", "", "ada")
        .label_by(1, "agent-task", "ada")
        .label_by(1, WORKING, BOT)
        .with(|state| {
            let events = &mut state.issues.get_mut(&1).unwrap().events;
            events.last_mut().unwrap()["created_at"] = since.into();
        })
        .start()
        .await
}

#[tokio::test]
async fn what_another_run_works_on_is_not_picked_until_its_claim_is_old() {
    let server = claimed(60).await;
    let (found, passed) = picked(&server, &rules()).await;
    assert!(found.is_empty() && passed[0].contains("worked on by another run"), "{passed:?}");
    // Both looked at the list before either began: the second one sees it when it begins.
    let why = claim_issue(&client(&server), 1, &rules()).await.unwrap().unwrap();
    assert!(why.contains("worked on by another run since"), "{why}");
    assert!(server.write_calls().is_empty());
    let server = claimed(3601).await;
    assert_eq!(picked(&server, &rules()).await.0, ["issue-1"]);
    assert_eq!(claim_issue(&client(&server), 1, &rules()).await.unwrap(), None);
    assert_eq!(server.labels(1), ["agent-task"], "room for a label with another time");
}

#[tokio::test]
async fn what_its_author_changed_after_the_label_is_not_picked() {
    let server = repository()
        .issue(1, "A", "harmless", "stranger")
        .edit(1, "still harmless")
        .label_by(1, "agent-task", "ada")
        .issue(2, "B", "harmless", "stranger")
        .label_by(2, "agent-task", "ada")
        .edit(2, "evil")
        .issue(3, "C", "harmless", "stranger")
        .label_by(3, "agent-task", "ada")
        .rename(3, "evil", "stranger")
        .issue(4, "D", "of somebody who may", "ada")
        .label_by(4, "agent-task", "ada")
        .edit(4, "more of it")
        .issue(5, "E", "harmless", "stranger")
        .label_by(5, "agent-task", "ada")
        .comment(5, "stranger", "any news?")
        .start()
        .await;
    let (found, passed) = picked(&server, &rules()).await;
    assert_eq!(found, ["issue-1", "issue-4", "issue-5"]);
    let why = "was edited after it was labelled; label it again";
    assert_eq!(passed, [format!("issue-2 {why}"), format!("issue-3 {why}")]);
    let client = client(&server);
    client.remove_label(2, "agent-task").await.unwrap();
    server.change_state(|state| state.login = "ada".to_owned());
    client.add_label(2, "agent-task").await.unwrap();
    assert_eq!(picked(&server, &rules()).await.0, ["issue-1", "issue-2", "issue-4", "issue-5"]);
}

#[tokio::test]
async fn an_issue_of_which_nobody_says_whether_it_was_edited_is_not_picked() {
    let server = repository()
        .issue(1, "A", "", "stranger")
        .label_by(1, "agent-task", "ada")
        .fault(GitHubFault::forbidden("/graphql", "issues=read").times(9))
        .start()
        .await;
    let (found, passed) = picked(&server, &rules()).await;
    assert!(found.is_empty() && passed[0].contains("does not say whether"), "{passed:?}");
}
