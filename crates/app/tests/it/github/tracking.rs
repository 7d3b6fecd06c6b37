//! One comment and one label, whatever happens.

use repertoire_github::tracking::{CommentKind, CommentText, RunTracking, TrackingSettings};
use repertoire_model::ApiSecret;
use repertoire_scripted::github::{FakeGitHub, GitHubFault, GitHubFaultKind, GitHubServer};

use super::{BOT, client};

fn settings(run: &str, comment: CommentKind) -> TrackingSettings {
    TrackingSettings {
        number: 31,
        own_login: BOT.to_owned(),
        comment,
        mode: "tag".to_owned(),
        run: run.to_owned(),
        label: Some("agent:working".to_owned()),
        answer_chars_max: 2000,
        triggers: vec!["@repertoire".to_owned()],
        secrets: vec![ApiSecret::new("hunter2hunter2")],
    }
}

fn said(ours: &str) -> CommentText<'_> {
    CommentText { ours, theirs: "" }
}

fn repository() -> FakeGitHub {
    FakeGitHub::new("octo", "repo").issue(31, "Search", "It finds nothing.", "stranger")
}

async fn begun(server: &GitHubServer, run: &str, kind: CommentKind) -> RunTracking {
    let (tracking, errors) =
        RunTracking::begin_tracking(client(server), settings(run, kind), said("Working.")).await;
    assert_eq!(errors, []);
    tracking
}

#[tokio::test]
async fn a_run_has_one_comment_and_its_label_is_gone_at_the_end() {
    let server = repository().start().await;
    let mut tracking = begun(&server, "1", CommentKind::New).await;
    assert_eq!(server.labels(31), ["agent:working"]);
    tracking.update_comment(said("Still working.")).await.unwrap();
    let ended = tracking.end_tracking(said("Done.")).await;
    assert_eq!(ended.errors, []);
    assert!(ended.url.unwrap().contains("#issuecomment-"));
    assert!(server.labels(31).is_empty());
    let comments = server.comments(31);
    assert_eq!(comments.len(), 1);
    assert!(comments[0].starts_with("<!-- repertoire:tag:1 -->\nDone.\n"), "{}", comments[0]);
}

#[tokio::test]
async fn a_sticky_comment_keeps_earlier_answers_below() {
    let server = repository().start().await;
    for run in ["1", "2"] {
        let tracking = begun(&server, run, CommentKind::Sticky).await;
        let ended = tracking.end_tracking(said(&format!("Answer {run}."))).await;
        assert_eq!(ended.errors, []);
    }
    let comments = server.comments(31);
    assert_eq!(comments.len(), 1);
    let (top, below) = comments[0].split_once("<details>").unwrap();
    assert!(top.contains("Answer 2.") && !top.contains("Answer 1."), "{top}");
    assert!(below.contains("Answer 1.") && !below.contains("Working."), "{below}");
}

#[tokio::test]
async fn a_run_that_is_repeated_finds_its_own_comment() {
    for kind in [CommentKind::New, CommentKind::Sticky] {
        let server = repository().start().await;
        drop(begun(&server, "1", kind).await);
        let again = begun(&server, "1", kind).await;
        again.end_tracking(said("Done.")).await;
        let comments = server.comments(31);
        assert_eq!(comments.len(), 1);
        assert!(!comments[0].contains("Working."), "{}", comments[0]);
        assert!(server.labels(31).is_empty());
    }
}

#[tokio::test]
async fn somebody_elses_marker_is_not_written_over() {
    let server =
        repository().comment(31, "mallory", "<!-- repertoire:tag -->\nhello").start().await;
    begun(&server, "1", CommentKind::Sticky).await.end_tracking(said("Done.")).await;
    let comments = server.comments(31);
    assert_eq!(comments.len(), 2);
    assert_eq!(comments[0], "<!-- repertoire:tag -->\nhello");
}

#[tokio::test]
async fn what_agents_say_is_made_harmless() {
    let server = repository().start().await;
    let tracking = begun(&server, "1", CommentKind::New).await;
    let theirs = "Ask @ada, fixes #31, the key is hunter2hunter2 @repertoire \
                  <!-- repertoire:tag --> ![x](https://e.example/?k=1)";
    tracking.end_tracking(CommentText { ours: "**Done.**", theirs }).await;
    let comment = &server.comments(31)[0];
    assert!(comment.contains("**Done.**"));
    for bad in ["@ada", "fixes #31", "hunter2", "@repertoire", "<!-- repertoire:tag -->", "!["] {
        assert!(!comment.contains(bad), "{bad}: {comment}");
    }
}

#[tokio::test]
async fn the_label_is_taken_off_though_the_comment_cannot_be_written() {
    let server = repository()
        .fault(GitHubFault::forbidden("/comments", "issues=write").times(9))
        .start()
        .await;
    let (tracking, errors) = RunTracking::begin_tracking(
        client(&server),
        settings("1", CommentKind::New),
        said("Working."),
    )
    .await;
    assert_eq!(errors.len(), 1);
    assert_eq!(server.labels(31), ["agent:working"]);
    let ended = tracking.end_tracking(said("Done.")).await;
    assert_eq!(ended.errors.len(), 1);
    assert!(server.labels(31).is_empty());
}

#[tokio::test]
async fn lost_answers_make_no_second_comment_and_leave_no_label() {
    let server = repository()
        .fault(GitHubFault::new("/labels", GitHubFaultKind::LostAnswer).method("POST"))
        .fault(GitHubFault::new("/comments", GitHubFaultKind::LostAnswer).method("POST"))
        .fault(GitHubFault::new("/labels/", GitHubFaultKind::LostAnswer).method("DELETE"))
        .start()
        .await;
    let ended = begun(&server, "1", CommentKind::New).await.end_tracking(said("Done.")).await;
    assert_eq!(ended.errors, []);
    assert_eq!(server.comments(31).len(), 1);
    assert!(server.labels(31).is_empty());
}

#[tokio::test]
async fn a_comment_that_was_deleted_is_written_again() {
    let server = repository().start().await;
    let tracking = begun(&server, "1", CommentKind::New).await;
    server.change_state(|state| state.issues.get_mut(&31).unwrap().comments.clear());
    assert_eq!(tracking.end_tracking(said("Done.")).await.errors, []);
    assert_eq!(server.comments(31).len(), 1);
}

#[tokio::test]
async fn a_panic_ends_the_tracking_too() {
    let server = repository().start().await;
    let tracking = begun(&server, "1", CommentKind::New).await;
    let work = tracking.track_work(async { panic!("a defect") }, |(): &()| Default::default());
    let ended = tokio::spawn(work).await;
    assert!(ended.unwrap_err().is_panic());
    assert!(server.labels(31).is_empty());
    assert!(server.comments(31)[0].contains("broke off"));
}

#[tokio::test]
async fn nothing_is_written_if_nothing_is_wanted() {
    let server = repository().start().await;
    let quiet = TrackingSettings { label: None, ..settings("1", CommentKind::None) };
    let (tracking, errors) =
        RunTracking::begin_tracking(client(&server), quiet, said("Working.")).await;
    assert_eq!(errors, []);
    tracking.end_tracking(said("Done.")).await;
    assert!(server.write_calls().is_empty());
}
