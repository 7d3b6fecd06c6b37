//! Every call, and everything that can go wrong with one.

use repertoire_github::client::retry::CallRetryPolicy;
use repertoire_github::client::{ClientError, ClientSettings, GitHubClient, MergeMethod, NewPull};
use repertoire_model::ApiSecret;
use repertoire_scripted::github::{
    FakeGitHub, GitHubFault, GitHubFaultKind, GitHubServer, TOKEN, fake_sha,
};
use serde_json::json;

const NOW_MS: u64 = 1_000_000_000;
const BOT: &str = "github-actions[bot]";

fn settings(server: &GitHubServer) -> ClientSettings {
    let token = Some(ApiSecret::new(TOKEN));
    let policy = CallRetryPolicy { initial_ms: 1, margin_ms: 0, ..CallRetryPolicy::default() };
    ClientSettings {
        policy,
        clock: || NOW_MS,
        timeout_ms: 5_000,
        ..ClientSettings::new(&server.url(), token, "octo", "repo")
    }
}

fn client(server: &GitHubServer) -> GitHubClient {
    GitHubClient::new(settings(server)).unwrap()
}

fn repository() -> FakeGitHub {
    FakeGitHub::new("octo", "repo")
        .collaborator("ada", "maintain")
        .collaborator("rita", "triage")
        .issue(31, "Search is empty", "It finds nothing.", "stranger")
        .label_by(31, "agent-task", "ada")
}

#[tokio::test]
async fn what_somebody_may_do_is_told_by_permission_and_role() {
    let server = repository().start().await;
    let client = client(&server);
    for (login, permission, role, writes) in [
        ("ada", "write", "maintain", true),
        ("rita", "read", "triage", false),
        ("stranger", "read", "read", false),
    ] {
        let found = client.get_permission(login).await.unwrap();
        assert_eq!(
            (found.permission.as_str(), found.role_name.as_deref(), found.can_write()),
            (permission, Some(role), writes)
        );
    }
    assert!(client.get_permission("nobody").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_call_carries_what_github_asks_for() {
    let server = repository().start().await;
    client(&server).get_issue(31).await.unwrap();
    let call = &server.calls()[0];
    assert_eq!(call.request_line(), "GET /repos/octo/repo/issues/31");
    let header = |name: &str| call.headers[name].as_str();
    assert_eq!(header("accept"), "application/vnd.github+json");
    assert_eq!(header("x-github-api-version"), "2022-11-28");
    assert!(header("user-agent").starts_with("repertoire/"));
    assert_eq!(header("authorization"), format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn an_apps_token_may_not_ask_who_it_is_and_a_persons_may() {
    let app = repository().start().await;
    assert!(client(&app).get_own_user().await.unwrap_err().is_forbidden());
    let person = repository().token_of("ada").start().await;
    assert_eq!(client(&person).get_own_user().await.unwrap().login, "ada");
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let mut fake = repository().page_size(2);
    for number in 1..=5 {
        fake =
            fake.issue(number, &format!("Issue {number}"), "", "ada").label(number, "agent-task");
    }
    let server = fake.issue(9, "Other", "", "ada").start().await;
    let found = client(&server).list_labelled_issues("agent-task").await.unwrap();
    assert!(found.whole);
    let numbers: Vec<u64> = found.items.iter().map(|issue| issue.number).collect();
    assert_eq!(numbers, [31, 1, 2, 3, 4, 5], "oldest first");
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn a_list_without_end_is_cut_and_says_so() {
    let server = repository().page_size(1).start().await;
    server.change_state(|state| {
        let comment = repertoire_scripted::github::FakeComment::default();
        state.issues.get_mut(&31).unwrap().comments = vec![comment; 40];
    });
    let found = client(&server).list_comments(31).await.unwrap();
    assert_eq!((found.items.len(), found.whole), (30, false));
}

#[tokio::test]
async fn a_link_to_another_host_is_not_followed() {
    let elsewhere = repository().start().await;
    let link =
        format!("<{}/repos/octo/repo/issues/31/comments?page=2>; rel=\"next\"", elsewhere.url());
    let headers = vec![("link".to_owned(), link)];
    let fault = GitHubFault::new("/comments", GitHubFaultKind::Headers { headers });
    let server = repository().fault(fault).start().await;
    let error = client(&server).list_comments(31).await.unwrap_err();
    assert!(error.to_string().contains("the next page is somewhere else"), "{error}");
    assert!(elsewhere.calls().is_empty());
}

#[tokio::test]
async fn failures_of_the_server_are_repeated() {
    let fault = GitHubFault::status("/issues/31", 502, "Bad Gateway").times(2);
    let server = repository().fault(fault).start().await;
    assert_eq!(client(&server).get_issue(31).await.unwrap().title, "Search is empty");
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn failures_without_end_are_an_error() {
    let server =
        repository().fault(GitHubFault::status("/issues/31", 500, "oh").times(99)).start().await;
    let error = client(&server).get_issue(31).await.unwrap_err();
    assert!(matches!(error, ClientError::Server { status: 500, .. }), "{error}");
    assert_eq!(server.calls().len(), 5);
}

#[tokio::test]
async fn a_dropped_connection_is_repeated() {
    let server =
        repository().fault(GitHubFault::new("/issues/31", GitHubFaultKind::Dropped)).start().await;
    client(&server).get_issue(31).await.unwrap();
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn a_limit_that_ends_soon_is_waited_for() {
    let now_s = NOW_MS / 1000;
    let server = repository()
        .fault(GitHubFault::primary_limit("/issues/31", now_s))
        .fault(GitHubFault::secondary_limit("/comments", 0))
        .start()
        .await;
    let client = client(&server);
    client.get_issue(31).await.unwrap();
    // A limit means that nothing was done, so that this is simply repeated.
    client.create_comment(31, "hello <!-- m -->", BOT, "<!-- m -->").await.unwrap();
    assert_eq!(server.comments(31), ["hello <!-- m -->"]);
    assert_eq!(server.calls().len(), 4);
}

#[tokio::test]
async fn a_limit_that_lasts_is_an_error_with_its_end() {
    let reset_s = NOW_MS / 1000 + 3600;
    let server = repository()
        .fault(GitHubFault::primary_limit("/issues/31", reset_s))
        .fault(GitHubFault::secondary_limit("/user", 3600))
        .start()
        .await;
    let client = client(&server);
    for error in [client.get_issue(31).await.map(drop), client.get_own_user().await.map(drop)] {
        let error = error.unwrap_err();
        let ClientError::Limited { until_ms, .. } = error else { panic!("{error}") };
        assert_eq!(until_ms, NOW_MS + 3_600_000);
    }
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn a_comment_whose_answer_was_lost_is_written_once() {
    for kind in [GitHubFaultKind::LostAnswer, GitHubFaultKind::Dropped] {
        let fault = GitHubFault::new("/comments", kind).method("POST");
        let server = repository().fault(fault).start().await;
        let client = client(&server);
        let written = client.create_comment(31, "done <!-- run:7 -->", BOT, "<!-- run:7 -->");
        assert_eq!(written.await.unwrap().user.unwrap().login, BOT);
        assert_eq!(server.comments(31), ["done <!-- run:7 -->"]);
    }
}

#[tokio::test]
async fn somebody_elses_comment_is_not_taken_for_ours() {
    let fault = GitHubFault::new("/comments", GitHubFaultKind::Dropped).method("POST");
    let server = repository().comment(31, "mallory", "<!-- run:7 -->").fault(fault).start().await;
    client(&server).create_comment(31, "x <!-- run:7 -->", BOT, "<!-- run:7 -->").await.unwrap();
    assert_eq!(server.comments(31).len(), 2);
}

#[tokio::test]
async fn a_call_that_hangs_has_an_end_and_is_looked_for() {
    let fault = GitHubFault::new("/comments", GitHubFaultKind::HangAfter).method("POST");
    let server = repository().fault(fault).start().await;
    let client =
        GitHubClient::new(ClientSettings { timeout_ms: 150, ..settings(&server) }).unwrap();
    client.create_comment(31, "x <!-- m -->", BOT, "<!-- m -->").await.unwrap();
    assert_eq!(server.comments(31).len(), 1);

    let server =
        repository().fault(GitHubFault::new("/user", GitHubFaultKind::Hang).times(9)).start().await;
    let policy = CallRetryPolicy { attempts_max: 2, initial_ms: 1, ..CallRetryPolicy::default() };
    let settings = ClientSettings { timeout_ms: 50, policy, ..settings(&server) };
    let error = GitHubClient::new(settings).unwrap().get_own_user().await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { limit_ms: 50, .. }), "{error}");
}

#[tokio::test]
async fn answers_that_are_no_json_or_too_long_are_not_understood() {
    for kind in [GitHubFaultKind::Malformed, GitHubFaultKind::Huge { bytes: 9 * 1024 * 1024 }] {
        let server = repository().fault(GitHubFault::new("/issues/31", kind)).start().await;
        let error = client(&server).get_issue(31).await.unwrap_err();
        assert!(matches!(error, ClientError::Unclear { .. }), "{error}");
        assert_eq!(server.calls().len(), 1, "the next answer would be no better");
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let server = repository()
        .fault(GitHubFault::forbidden("/labels", "issues=write; pull_requests=write"))
        .start()
        .await;
    let client = client(&server);
    let error = client.add_label(31, "x").await.unwrap_err().to_string();
    assert!(error.contains("it needs `issues=write; pull_requests=write`"), "{error}");
    let error = client.get_issue(99).await.unwrap_err().to_string();
    assert!(error.contains("not visible to this token"), "{error}");
    let error = client.create_comment(31, "  ", BOT, "m").await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: 422, .. }), "{error}");
    assert!(error.to_string().contains("IssueComment body missing_field"), "{error}");
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_never_shown() {
    let fault = GitHubFault::status("/issues/31", 422, &format!("no {TOKEN} here"));
    let server = repository().fault(fault).start().await;
    let error = client(&server).get_issue(31).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(TOKEN), "{error}");
    let wrong = ClientSettings { token: Some(ApiSecret::new("ghs_other")), ..settings(&server) };
    let error = GitHubClient::new(wrong).unwrap().add_label(31, "x").await.unwrap_err();
    assert!(matches!(error, ClientError::Unauthorised { .. }), "{error}");
    let none = GitHubClient::new(ClientSettings { token: None, ..settings(&server) }).unwrap();
    assert!(none.get_issue(31).await.is_ok(), "what is public can be read");
    assert!(matches!(none.close_issue(31).await, Err(ClientError::Unauthorised { .. })));
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_not_sent() {
    let server = repository().start().await;
    let client = client(&server);
    let refused = [
        client.get_permission("../../user").await.map(drop),
        client.get_branch("../collaborators").await.map(drop),
        client.delete_branch("heads/../main").await,
        client.remove_label(31, "..").await,
        client.list_check_runs("main/../..").await.map(drop),
    ];
    for done in refused {
        assert!(matches!(done, Err(ClientError::BadName { .. })), "{done:?}");
    }
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn labels_are_added_and_removed_one_by_one() {
    let server = repository().start().await;
    let client = client(&server);
    client.create_label("agent:working", "ededed", "At work").await.unwrap();
    client.create_label("agent:working", "ededed", "At work").await.unwrap();
    client.add_label(31, "agent:working").await.unwrap();
    client.add_label(31, "a/b ä?#").await.unwrap();
    client.add_label(31, "agent:working").await.unwrap();
    client.remove_label(31, "a/b ä?#").await.unwrap();
    client.remove_label(31, "never there").await.unwrap();
    assert_eq!(server.labels(31), ["agent-task", "agent:working"]);
}

#[tokio::test]
async fn who_added_a_label_is_the_last_who_did() {
    let server = repository().label_by(31, "other", "stranger").start().await;
    let client = client(&server);
    let who = async |label: &str| {
        let events = client.timeline(31).await.unwrap();
        events.labelled(label)?.actor.clone().map(|who| who.login)
    };
    assert_eq!(who("Agent-Task").await.as_deref(), Some("ada"));
    assert_eq!(who("other").await.as_deref(), Some("stranger"));
    client.remove_label(31, "other").await.unwrap();
    assert_eq!(who("other").await, None);
}

#[tokio::test]
async fn an_edit_is_told_from_every_other_change() {
    let server = repository().comment(31, "ada", "and?").start().await;
    let client = client(&server);
    assert_eq!(client.get_last_edited(31).await.unwrap(), None);
    client.update_issue(31, "Other title", "Other text").await.unwrap();
    let edited = client.get_last_edited(31).await.unwrap().unwrap();
    assert!(edited.ends_with('Z'), "{edited}");
    let error = client.get_last_edited(9_999).await.unwrap_err().to_string();
    assert!(error.contains("Could not resolve"), "{error}");
}

#[tokio::test]
async fn a_pull_request_is_opened_once() {
    let fault = GitHubFault::new("/pulls", GitHubFaultKind::LostAnswer).method("POST");
    let server = repository().branch("bot/31").fault(fault).start().await;
    let client = client(&server);
    let new = NewPull { title: "Fix", body: "It", head: "bot/31", base: "main", draft: true };
    let (pull, is_new) = client.create_pull(&new).await.unwrap();
    assert!(is_new && pull.draft);
    let (again, is_new) = client.create_pull(&new).await.unwrap();
    assert_eq!((again.number, is_new), (pull.number, false));
    assert_eq!(server.state().pulls.len(), 1);
    let missing = NewPull { head: "bot/none", ..new };
    assert!(matches!(
        client.create_pull(&missing).await,
        Err(ClientError::Refused { status: 422, .. })
    ));
}

#[tokio::test]
async fn a_pull_request_from_a_fork_is_not_taken_for_ours() {
    let server = repository()
        .pull(40, "bot/31", "mallory")
        .pull_with(40, |pull| pull.fork = Some("mallory/repo".to_owned()))
        // The service looks at the owner only, and an owner may have a fork of their own.
        .pull(41, "bot/31", "mallory")
        .pull_with(41, |pull| pull.fork = Some("octo/fork".to_owned()))
        .start()
        .await;
    assert!(client(&server).list_pulls_of("bot/31").await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_merge_names_its_commit_and_is_done_once() {
    let fault = GitHubFault::new("/merge", GitHubFaultKind::LostAnswer).method("PUT");
    let server = repository().pull(40, "bot/31", BOT).fault(fault).start().await;
    let client = client(&server);
    // The lost answer strikes here: the head is another one, so that nothing was merged and GitHub's no is heard.
    let moved = client.merge_pull(40, &fake_sha("else"), None).await;
    assert!(matches!(moved, Err(ClientError::Refused { status: 409, .. })));
    let head = fake_sha("bot/31");
    let merged = client.merge_pull(40, &head, Some(MergeMethod::Squash)).await.unwrap();
    assert!(merged.merged);
    let pull = client.get_pull(40).await.unwrap();
    assert_eq!(pull.merge_commit_sha, Some(merged.sha));

    let fault = GitHubFault::new("/merge", GitHubFaultKind::LostAnswer).method("PUT");
    let server = repository().pull(40, "bot/31", BOT).fault(fault).start().await;
    assert!(self::client(&server).merge_pull(40, &head, None).await.unwrap().merged);
    assert_eq!(server.write_calls().len(), 1, "it was read, not repeated");
}

#[tokio::test]
async fn what_a_pull_request_has_is_read() {
    let server = repository()
        .pull(40, "bot/31", BOT)
        .file(40, "src/lib.rs")
        .review(40, "ada", "APPROVED")
        .check(40, "test (ubuntu)", "success")
        .status(40, "ci/old", "pending")
        .pull_with(40, |pull| pull.diff = "diff --git a/x b/x".to_owned())
        .start()
        .await;
    let client = client(&server);
    let head = client.get_pull(40).await.unwrap().head.sha;
    assert_eq!(client.list_pull_files(40).await.unwrap().items[0].filename, "src/lib.rs");
    assert_eq!(client.get_pull_diff(40).await.unwrap(), "diff --git a/x b/x");
    assert_eq!(
        client.list_reviews(40).await.unwrap().items[0].commit_id.as_deref(),
        Some(head.as_str())
    );
    assert!(client.list_review_comments(40).await.unwrap().items.is_empty());
    let runs = client.list_check_runs(&head).await.unwrap();
    assert_eq!(runs.items[0].conclusion.as_deref(), Some("success"));
    assert_eq!(client.list_statuses(&head).await.unwrap().items[0].state, "pending");
    assert!(client.get_issue(40).await.unwrap().is_pull());
}

#[tokio::test]
async fn protection_may_be_hidden_absent_or_there() {
    let protection = json!({ "required_status_checks": { "strict": true, "contexts": ["test"] } });
    let server = repository()
        .protect("main", protection)
        .branch("free")
        .rule("main", "pull_request", json!({ "required_approving_review_count": 2 }))
        .start()
        .await;
    let client = client(&server);
    let found = client.get_protection("main").await.unwrap().unwrap();
    assert_eq!(found.required_status_checks.unwrap().contexts, ["test"]);
    assert_eq!(client.get_protection("free").await.unwrap(), None);
    let summary = client.get_branch("main").await.unwrap();
    assert!(summary.protected);
    let checks = summary.protection.unwrap().required_status_checks.unwrap();
    assert_eq!(checks.contexts, ["test"]);
    let rules = client.list_branch_rules("main").await.unwrap().items;
    assert_eq!(rules[0].parameters.as_ref().unwrap().required_approving_review_count, 2);
    server.change_state(|state| state.branches.get_mut("main").unwrap().protection_hidden = true);
    assert!(client.get_protection("main").await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn a_branch_is_deleted_once_and_a_protected_one_never() {
    let server = repository().branch("bot/31").protect("main", json!({})).start().await;
    let client = client(&server);
    client.delete_branch("bot/31").await.unwrap();
    client.delete_branch("bot/31").await.unwrap();
    assert!(matches!(client.delete_branch("main").await, Err(ClientError::Refused { .. })));
    assert_eq!(client.get_issue(31).await.unwrap().state, "open");
    assert_eq!(client.close_issue(31).await.unwrap().state, "closed");
}

#[tokio::test]
async fn an_issue_is_opened_once_and_changed() {
    let fault = GitHubFault::new("/issues", GitHubFaultKind::LostAnswer).method("POST");
    let server = repository().fault(fault).start().await;
    let client = client(&server);
    let marker = "<!-- m -->";
    let opened = client.create_issue("Halted", marker, "agent:halted", BOT, marker).await.unwrap();
    assert_eq!(opened.labels, ["agent:halted"]);
    assert_eq!(server.state().issues.len(), 2);
    let changed = client.update_issue(opened.number, "Still", "text").await.unwrap();
    assert_eq!((changed.title.as_str(), changed.body.as_deref()), ("Still", Some("text")));
}

#[tokio::test]
async fn nobody_approves_twice() {
    let server = repository().pull(40, "bot/31", "ada").start().await;
    let client = client(&server);
    for _ in 0..2 {
        client.approve_pull(40, &fake_sha("bot/31"), BOT, "checks passed").await.unwrap();
    }
    assert_eq!(server.state().pulls[&40].reviews.len(), 1);
}
