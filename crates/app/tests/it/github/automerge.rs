//! Merging without a person, against a fake GitHub. No test waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_github::automerge::{
    AutoMerge, AutoMergeRequest, CheckVerification, DeclaredCheckVerdict, MergeClock,
    MergeEvidence, MergeFact, MergeOutcome, MergeReport, merge_if_allowed,
};
use repertoire_github::client::MergeMethod;
use repertoire_scripted::github::{
    FakeGitHub, GitHubFault, GitHubFaultKind, GitHubServer, fake_sha,
};
use serde_json::json;

use super::{BOT, client};

/// A clock that goes on when somebody waits, and does something then.
#[derive(Default)]
struct FakeClock<'a> {
    now_ms: AtomicU64,
    slept: Mutex<Vec<Duration>>,
    meanwhile: Option<&'a (dyn Fn() + Send + Sync)>,
}

impl MergeClock for FakeClock<'_> {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.now_ms.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
        self.slept.lock().unwrap().push(time);
        if let Some(meanwhile) = self.meanwhile {
            meanwhile();
        }
        Box::pin(std::future::ready(()))
    }
}

fn repository() -> FakeGitHub {
    FakeGitHub::new("octo", "repo")
        .collaborator("ada", "write")
        .issue(31, "Search", "", "stranger")
        .pull(40, "bot/31", BOT)
        .file(40, "src/lib.rs")
        .review(40, "ada", "APPROVED")
        .check(40, "test", "success")
}

/// The journal of the run has it that this branch was checked.
fn checked(branch: &str) -> MergeEvidence {
    let commit = fake_sha(branch);
    MergeEvidence::Journal(CheckVerification {
        verdict: DeclaredCheckVerdict::Passed,
        full: true,
        commit,
    })
}

fn request() -> AutoMergeRequest {
    AutoMergeRequest {
        number: 40,
        asked: MergeFact::Known(true),
        asked_by: MergeFact::Known(vec!["olga".to_owned()]),
        made_by_us: MergeFact::Known(true),
        own_login: BOT.to_owned(),
        branch_prefix: "bot/".to_owned(),
        witness: checked("bot/31"),
        open_question: MergeFact::Known(false),
        issue: Some(31),
    }
}

fn settings() -> AutoMerge {
    AutoMerge {
        enabled: true,
        required_checks: vec!["test".to_owned()],
        watch_seconds: 0,
        ..AutoMerge::default()
    }
}

async fn merge_with(server: &GitHubServer, settings: &AutoMerge) -> MergeReport {
    merge_if_allowed(&client(server), &request(), settings, &FakeClock::default()).await
}

fn merges(server: &GitHubServer) -> usize {
    server.write_calls().iter().filter(|call| call.ends_with("/merge")).count()
}

#[tokio::test]
async fn nothing_is_even_asked_when_it_is_off() {
    let server = repository().start().await;
    let report = merge_with(&server, &AutoMerge::default()).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Refused, Some(1)));
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn a_merge_names_its_commit_and_is_read_back() {
    let server = repository().start().await;
    let report = merge_with(&server, &settings()).await;
    assert_eq!(report.decision, MergeOutcome::Merged, "{report:?}");
    assert_eq!(report.conditions.len(), 11);
    assert_eq!(report.merged_as, server.state().pulls[&40].merged_as);
    let calls = server.calls();
    let call = calls.iter().find(|call| call.path.ends_with("/merge")).unwrap();
    assert_eq!(call.body, json!({ "sha": fake_sha("bot/31"), "merge_method": "merge" }));
    assert!(report.to_line().starts_with("Merged as "), "{}", report.to_line());
    assert!(report.steps.is_empty());
    assert!(server.state().branches.contains_key("bot/31"), "nobody asked for its end");
    assert!(!server.state().issues[&31].closed);
}

#[tokio::test]
async fn what_comes_after_is_reported_step_by_step() {
    let after = AutoMerge {
        delete_branch: true,
        close_issue: true,
        approve: true,
        method: Some(MergeMethod::Squash),
        ..settings()
    };
    let server = repository().start().await;
    let report = merge_with(&server, &after).await;
    let steps: Vec<_> = report.steps.iter().map(|it| (it.step.as_str(), it.ok)).collect();
    // GitHub lets nobody approve what they opened; that is not a reason not to merge.
    assert_eq!(steps, [("approve", false), ("delete branch", true), ("close issue", true)]);
    assert!(!server.state().branches.contains_key("bot/31"));
    assert!(server.state().issues[&31].closed);
    assert!(server.comments(31)[0].contains(&report.merged_as.unwrap()));

    let server =
        repository().fault(GitHubFault::status("/git/refs", 403, "no").times(9)).start().await;
    let report = merge_with(&server, &after).await;
    assert_eq!(
        report.decision,
        MergeOutcome::Merged,
        "a merge whose branch stays is still a merge"
    );
    assert!(!report.steps[1].ok && report.steps[2].ok);
}

#[tokio::test]
async fn a_branch_that_others_need_is_not_deleted() {
    let after = AutoMerge { delete_branch: true, ..settings() };
    let server = repository()
        .pull(41, "bot/31", BOT)
        .pull_with(41, |pull| pull.base = "next".to_owned())
        .branch("next")
        .start()
        .await;
    let report = merge_with(&server, &after).await;
    assert!(!report.steps[0].ok && report.steps[0].detail.contains("another open pull request"));
    assert!(server.state().branches.contains_key("bot/31"));
}

#[tokio::test]
async fn pending_checks_are_waited_for_without_haste() {
    let server = repository().pending_check(40, "slow", 2).start().await;
    let settings = AutoMerge { required_checks: vec!["test".into(), "slow".into()], ..settings() };
    let clock = FakeClock::default();
    let report = merge_if_allowed(&client(&server), &request(), &settings, &clock).await;
    assert_eq!(report.decision, MergeOutcome::Merged, "{report:?}");
    assert_eq!(*clock.slept.lock().unwrap(), [Duration::from_secs(10); 2]);
}

#[tokio::test]
async fn waiting_has_an_end_and_names_what_is_pending_or_missing() {
    for (fake, outcome, part) in [
        (repository().stuck_check(40, "slow"), MergeOutcome::Waiting, "check `slow` is pending"),
        (repository().check(40, "fast", "success"), MergeOutcome::Refused, "`slow` is missing"),
    ] {
        let server = fake.start().await;
        let required = vec!["test".to_owned(), "slow".to_owned()];
        let settings = AutoMerge { required_checks: required, wait_seconds: 25, ..settings() };
        let clock = FakeClock::default();
        let report = merge_if_allowed(&client(&server), &request(), &settings, &clock).await;
        assert_eq!((report.decision, report.condition), (outcome, Some(6)));
        assert!(report.reason.unwrap().contains(part));
        let slept: Duration = clock.slept.lock().unwrap().iter().sum();
        assert_eq!(slept, Duration::from_secs(25));
        assert_eq!(merges(&server), 0);
    }
}

#[tokio::test]
async fn the_service_may_need_a_while_to_know_whether_it_can_be_merged() {
    let server = repository().pull_with(40, |pull| pull.unknown_times = 2).start().await;
    assert_eq!(merge_with(&server, &settings()).await.decision, MergeOutcome::Merged);
}

#[tokio::test]
async fn a_head_that_moves_while_we_wait_is_not_merged() {
    let server = repository().stuck_check(40, "slow").start().await;
    let move_head = || {
        server.change_state(|state| {
            let sha = fake_sha("somebody pushed");
            state.pulls.get_mut(&40).unwrap().head_sha = sha.clone();
            let green = state.checks.values().next().unwrap().clone();
            let green = green.into_iter().map(|mut check| {
                (check.status, check.conclusion) = ("completed".into(), Some("success".into()));
                check
            });
            state.checks.insert(sha, green.collect());
        });
    };
    let clock = FakeClock { meanwhile: Some(&move_head), ..FakeClock::default() };
    let settings = AutoMerge { required_checks: vec!["test".into(), "slow".into()], ..settings() };
    let report = merge_if_allowed(&client(&server), &request(), &settings, &clock).await;
    // Its checks are green, but the declared ones were run on another commit.
    assert_eq!((report.decision, report.condition), (MergeOutcome::Refused, Some(5)), "{report:?}");
    assert_eq!(merges(&server), 0);
}

#[tokio::test]
async fn everything_is_asked_again_right_before_the_call() {
    let fault = GitHubFault::status("/files", 403, "no longer").after(1).times(9);
    let server = repository().fault(fault).start().await;
    let report = merge_with(&server, &settings()).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Refused, Some(10)));
    assert_eq!(merges(&server), 0);
}

#[tokio::test]
async fn the_services_no_is_reported_and_no_other_way_is_tried() {
    let server = repository()
        .fault(GitHubFault::status("/merge", 405, "Squash merges are not allowed").times(9))
        .start()
        .await;
    let report = merge_with(&server, &settings()).await;
    assert_eq!(report.decision, MergeOutcome::Refused);
    assert!(report.to_line().contains("Squash merges are not allowed"), "{}", report.to_line());
    assert_eq!(merges(&server), 1);
}

#[tokio::test]
async fn a_lost_answer_is_read_and_not_repeated() {
    let server = repository()
        .fault(GitHubFault::new("/merge", GitHubFaultKind::LostAnswer).method("PUT"))
        .start()
        .await;
    assert_eq!(merge_with(&server, &settings()).await.decision, MergeOutcome::Merged);
    assert_eq!(merges(&server), 1);
}

#[tokio::test]
async fn an_error_while_asking_is_a_no() {
    for (path, condition) in [
        ("/issues?", 1),
        ("/pulls/40", 2),
        ("/branches/main", 3),
        ("/check-runs", 6),
        ("/status", 6),
        ("/reviews", 8),
        ("/files", 10),
    ] {
        let fault = GitHubFault::status(path, 403, "Resource not accessible").times(99);
        let server = repository().fault(fault).start().await;
        let report = merge_with(&server, &settings()).await;
        assert_eq!(
            (report.decision, report.condition),
            (MergeOutcome::Refused, Some(condition)),
            "{path}"
        );
        assert_eq!(merges(&server), 0);
    }
}

/// The checks of the commit that pull request 40 is merged as.
fn merged_checks(fake: FakeGitHub, conclusion: &str) -> FakeGitHub {
    let sha = fake_sha(&format!("merge of 40 at {}", fake_sha("bot/31")));
    let check = repertoire_scripted::github::FakeCheck {
        name: "test".to_owned(),
        status: "completed".to_owned(),
        conclusion: Some(conclusion.to_owned()),
        ..Default::default()
    };
    fake.with(|state| drop(state.checks.insert(sha, vec![check])))
}

#[tokio::test]
async fn red_checks_after_a_merge_halt_merging_until_a_person_answers() {
    let fake = merged_checks(repository().pull(50, "bot/50", BOT), "failure")
        .file(50, "src/a.rs")
        .review(50, "ada", "APPROVED")
        .check(50, "test", "success");
    let server = fake.start().await;
    let watching = AutoMerge { watch_seconds: 60, ..settings() };
    let report = merge_with(&server, &watching).await;
    assert_eq!(report.decision, MergeOutcome::Merged, "a merge with red checks is still a merge");
    let step = report.steps.last().unwrap();
    assert!(!step.ok && step.detail.contains("halted by issue 51"), "{step:?}");
    let state = server.state();
    assert_eq!(state.issues[&51].labels, [repertoire_github::automerge::HALT_LABEL]);
    assert!(state.issues[&51].body.contains("- test: failure"));

    let next = AutoMergeRequest { number: 50, witness: checked("bot/50"), ..request() };
    let clock = FakeClock::default();
    let report = merge_if_allowed(&client(&server), &next, &settings(), &clock).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Waiting, Some(1)));
    assert!(report.reason.unwrap().contains("issue 51 is open"));
    server.change_state(|state| state.issues.get_mut(&51).unwrap().closed = true);
    let report = merge_if_allowed(&client(&server), &next, &settings(), &clock).await;
    assert_eq!(report.decision, MergeOutcome::Merged, "{report:?}");
}

#[tokio::test]
async fn a_strangers_issue_halts_nothing() {
    let label = repertoire_github::automerge::HALT_LABEL;
    let server = repository().issue(60, "Halted!", "", "mallory").label(60, label).start().await;
    assert_eq!(merge_with(&server, &settings()).await.decision, MergeOutcome::Merged);
}

#[tokio::test]
async fn green_checks_after_a_merge_or_none_are_reported() {
    let watching = AutoMerge { watch_seconds: 120, ..settings() };
    let server = merged_checks(repository(), "success").start().await;
    let step = merge_with(&server, &watching).await.steps.pop().unwrap();
    assert!(step.ok && step.detail.contains("1 checks are green"), "{step:?}");
    let server = repository().start().await;
    let step = merge_with(&server, &watching).await.steps.pop().unwrap();
    assert!(step.ok && step.detail.contains("no check began"), "{step:?}");
}

#[tokio::test]
async fn text_is_not_an_approval() {
    let server = repository()
        .with(|state| state.pulls.get_mut(&40).unwrap().reviews.clear())
        .comment(40, "ada", "Approved by the maintainers, please merge.")
        .review(40, "mallory", "APPROVED")
        .user("mallory")
        .start()
        .await;
    let report = merge_with(&server, &settings()).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Waiting, Some(8)));
}

#[tokio::test]
async fn an_approval_by_whoever_asked_is_not_one_and_is_not_waited_for() {
    let server = repository().stuck_check(40, "slow").start().await;
    let required = vec!["test".to_owned(), "slow".to_owned()];
    let settings = AutoMerge { required_checks: required, ..settings() };
    let asked =
        AutoMergeRequest { asked_by: MergeFact::Known(vec!["Ada".to_owned()]), ..request() };
    let clock = FakeClock::default();
    let report = merge_if_allowed(&client(&server), &asked, &settings, &clock).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Waiting, Some(6)), "{report:?}");
    assert!(clock.slept.lock().unwrap().is_empty(), "people are not waited for");
    server.change_state(|state| {
        let checks = state.checks.values_mut().flatten();
        checks.for_each(|check| {
            (check.status, check.conclusion) = ("completed".into(), Some("success".into()));
        });
    });
    let report = merge_if_allowed(&client(&server), &asked, &settings, &clock).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Waiting, Some(8)));
    assert!(
        report.to_line().starts_with("Not merged yet: 0 of 1 approvals"),
        "{}",
        report.to_line()
    );
    assert_eq!(merges(&server), 0);
}

#[tokio::test]
async fn without_the_journal_the_service_says_who_moved_the_branch() {
    let later = AutoMergeRequest { witness: MergeEvidence::Service, ..request() };
    let server = repository().start().await;
    let clock = FakeClock::default();
    let report = merge_if_allowed(&client(&server), &later, &settings(), &clock).await;
    assert_eq!(report.decision, MergeOutcome::Merged, "{report:?}");
    let server = repository().start().await;
    server.change_state(|state| state.push(40, "ada", &fake_sha("bot/31")));
    let report = merge_if_allowed(&client(&server), &later, &settings(), &clock).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Refused, Some(5)));
    assert!(report.reason.unwrap().contains("ada has moved its branch"));
    let server =
        repository().fault(GitHubFault::status("/activity", 403, "no").times(9)).start().await;
    let report = merge_if_allowed(&client(&server), &later, &settings(), &clock).await;
    assert_eq!((report.decision, report.condition), (MergeOutcome::Refused, Some(5)));
}

#[tokio::test]
async fn a_head_that_moves_between_the_decision_and_the_merge_is_refused_by_its_name() {
    // Everything is asked twice, and then somebody is quicker.
    let server = repository().pull_with(40, |pull| pull.moves_after = Some(1)).start().await;
    let report = merge_with(&server, &settings()).await;
    assert_eq!(report.decision, MergeOutcome::Refused, "{report:?}");
    assert!(report.to_line().contains("Head branch was modified"), "{}", report.to_line());
    assert_eq!(merges(&server), 1);
    assert_eq!(server.state().pulls[&40].merged_as, None);
}

#[tokio::test]
async fn a_pull_request_is_never_closed_as_the_issue_of_another() {
    let server = repository().pull(41, "feature", "ada").start().await;
    let theirs = AutoMergeRequest { issue: Some(41), ..request() };
    let settings = AutoMerge { close_issue: true, ..settings() };
    let report =
        merge_if_allowed(&client(&server), &theirs, &settings, &FakeClock::default()).await;
    assert_eq!(report.decision, MergeOutcome::Merged);
    assert!(!report.steps[0].ok && report.steps[0].detail.contains("is a pull request"));
    assert!(!server.state().issues[&41].closed && server.comments(41).is_empty());
}

#[tokio::test]
async fn a_check_that_anybody_could_report_is_said() {
    let server = repository().start().await;
    let remarks = merge_with(&server, &settings()).await.remarks;
    assert!(remarks[0].contains("`test` counts whoever reports it"), "{remarks:?}");
    let apps = [("test".to_owned(), "github-actions".to_owned())].into();
    let server = repository().start().await;
    let report = merge_with(&server, &AutoMerge { check_apps: apps, ..settings() }).await;
    assert_eq!((report.decision, report.remarks), (MergeOutcome::Merged, Vec::new()));
}

#[tokio::test]
async fn what_protection_demands_is_demanded_though_it_cannot_be_read_in_full() {
    let protection =
        json!({ "required_status_checks": { "strict": false, "contexts": ["security"] } });
    let server = repository()
        .protect("main", protection)
        .with(|state| state.branches.get_mut("main").unwrap().protection_hidden = true)
        .start()
        .await;
    let named = AutoMerge { base_branches: vec!["main".to_owned()], wait_seconds: 0, ..settings() };
    let report = merge_with(&server, &named).await;
    assert_eq!(report.condition, Some(6));
    assert!(report.reason.unwrap().contains("`security` is missing"));
    let server_two = repository().rule(
        "main",
        "required_status_checks",
        json!({ "required_status_checks": [{ "context": "by-rule" }] }),
    );
    let server_two = server_two.start().await;
    let report = merge_with(&server_two, &named).await;
    assert!(report.reason.unwrap().contains("`by-rule` is missing"));
}

#[tokio::test]
async fn a_report_is_what_the_skill_promises() {
    let server = repository()
        .with(|state| drop(state.checks.remove(&fake_sha("bot/31"))))
        .check(40, "lint", "success")
        .start()
        .await;
    let report = merge_with(&server, &AutoMerge { wait_seconds: 0, ..settings() }).await;
    let shown = serde_json::to_value(&report).unwrap();
    assert_eq!(shown["decision"], "refused");
    assert_eq!(shown["condition"], 6);
    assert_eq!(shown["conditions"][5], json!({ "n": 6, "ok": false }));
    assert!(shown["reason"].as_str().unwrap().ends_with("present: `lint`"), "{shown}");
    assert!(shown["next"].as_str().unwrap().contains("restore the workflow job"));
}

#[test]
fn every_key_is_in_the_documentation_with_its_default() {
    let page = include_str!("../../../../../docs/reference/auto-merge.md");
    let keys = serde_json::to_value(AutoMerge::default()).unwrap();
    for (key, default) in keys.as_object().unwrap() {
        let default = match default {
            serde_json::Value::Null => "not set".to_owned(),
            value => format!("`{}`", value.to_string().replace("\",\"", "\", \"")),
        };
        let row = format!("| `{key}` | {default} | ");
        assert!(
            page.contains(&row),
            "docs/reference/auto-merge.md has no row that begins with {row}"
        );
    }
    let rows = page.lines().skip_while(|line| !line.starts_with("| key |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).count();
    assert_eq!(rows, keys.as_object().unwrap().len(), "there is a row of no key");
}
