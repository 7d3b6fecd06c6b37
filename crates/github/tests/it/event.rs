//! Reading events.

use proptest::prelude::*;
use repertoire_github::event::{AccountKind, ActionsEnvironment, EventName, read_event};

use crate::fixtures::{context, names, payload, surroundings};

#[test]
fn every_fixture_is_read() {
    let names = names();
    assert!(names.len() > 30);
    for name in names {
        let context = context(&name);
        assert_eq!(context.repository.full_name(), "brewery/kettle", "{name}");
        assert_eq!(context.repository.default_branch.as_deref(), Some("main"));
        let run = "https://github.com/brewery/kettle/actions/runs/991";
        assert_eq!(context.run.url.as_deref(), Some(run));
        let about = name.starts_with("issue") || name.starts_with("pull");
        assert_eq!(context.entity.is_some(), about, "{name}");
    }
}

#[test]
fn a_comment_on_a_pull_request_is_about_a_pull_request_without_branches() {
    let entity = context("issue_comment.created.on-pull").entity.unwrap();
    assert!(entity.is_pull && entity.pull.is_none());
    assert_eq!(entity.number, 7);
    assert_eq!(context("issue_comment.created.on-pull").is_fork(), None);
}

#[test]
fn a_comment_at_a_line_knows_its_pull_request_and_its_place() {
    let context = context("pull_request_review_comment.created");
    let entity = context.entity.as_ref().unwrap();
    assert_eq!((entity.number, entity.is_pull), (7, true));
    let pull = entity.pull.as_ref().unwrap();
    assert_eq!((pull.head_ref.as_str(), pull.base_ref.as_str()), ("timer-width", "main"));
    let said = context.said.unwrap();
    assert_eq!(said.place, Some(("src/timer.rs".to_owned(), Some(13))));
    assert_eq!(said.comment, Some(81001));
}

#[test]
fn an_edit_says_what_was_there_before() {
    let said = context("issue_comment.edited.added").said.unwrap();
    assert_eq!(said.before.as_deref(), Some("Why does it stop?"));
}

#[test]
fn an_edit_of_the_title_brings_no_new_text() {
    let said = context("issues.edited.title").said.unwrap();
    assert_eq!(said.before.as_ref(), Some(&said.text));
}

#[test]
fn what_is_gone_brings_no_text() {
    for name in ["issue_comment.deleted", "pull_request_review.dismissed"] {
        assert_eq!(context(name).said, None, "{name}");
    }
    for name in ["issues.labeled.task", "pull_request.synchronize", "issues.assigned"] {
        assert_eq!(context(name).said, None, "{name}");
    }
}

#[test]
fn a_review_without_a_text_is_an_empty_text() {
    assert_eq!(context("pull_request_review.submitted.empty").said.unwrap().text, "");
}

#[test]
fn the_label_is_the_one_that_was_just_added() {
    assert_eq!(context("issues.labeled.other").label.as_deref(), Some("bug"));
    assert_eq!(context("issues.opened.with-label").label, None);
}

#[test]
fn bots_are_told_by_kind_and_by_name() {
    let bot = context("issue_comment.created.by-other-bot").actor;
    assert!(bot.is_bot() && bot.kind == AccountKind::Bot);
    let around =
        ActionsEnvironment { actor: Some("renovate[bot]".to_owned()), ..surroundings("push") };
    assert!(read_event("{}", &around).unwrap().actor.is_bot());
    assert!(!context("issues.opened").actor.is_bot());
}

#[test]
fn forks_are_told_by_where_the_change_is() {
    assert_eq!(context("pull_request.opened").is_fork(), Some(false));
    assert_eq!(context("pull_request.opened.from-fork").is_fork(), Some(true));
    assert_eq!(context("pull_request.opened.from-nowhere").is_fork(), Some(true));
    assert_eq!(context("issues.opened").is_fork(), Some(false));
}

#[test]
fn inputs_are_texts_and_what_is_no_text_is_left_out() {
    let inputs = context("repository_dispatch").inputs;
    assert_eq!(inputs.get("attempts").map(String::as_str), Some("2"));
    assert!(!inputs.contains_key("deep"));
    assert!(context("workflow_dispatch.bare").inputs.is_empty());
}

#[test]
fn the_clock_acts_for_the_owner_whatever_the_environment_says() {
    let around = ActionsEnvironment {
        actor: Some("mallory-outside".to_owned()),
        triggering_actor: Some("mallory-outside".to_owned()),
        ..surroundings("schedule")
    };
    let context = read_event(&payload("schedule"), &around).unwrap();
    assert_eq!((context.event, context.actor.login.as_str()), (EventName::Schedule, "brewery"));
    assert_eq!(context.rerun_by, None);
}

#[test]
fn the_sender_is_the_actor_and_whoever_ran_it_again_is_told() {
    let around = ActionsEnvironment {
        actor: Some("ada-maintainer".to_owned()),
        triggering_actor: Some("rita-reader".to_owned()),
        run_attempt: Some("2".to_owned()),
        ..surroundings("issue_comment")
    };
    let context = read_event(&payload("issue_comment.created"), &around).unwrap();
    assert_eq!(context.actor.login, "ada-maintainer");
    assert_eq!(context.rerun_by.unwrap().login, "rita-reader");
    // The same person again, in another spelling.
    let around =
        ActionsEnvironment { triggering_actor: Some("Ada-Maintainer".to_owned()), ..around };
    let context = read_event(&payload("issue_comment.created"), &around).unwrap();
    assert_eq!(context.rerun_by, None);
}

#[test]
fn an_event_that_nobody_knows_is_still_an_event() {
    assert_eq!(context("push").event, EventName::Other("push".to_owned()));
}

#[track_caller]
fn refused(payload: &str, event: &str, expect: &str) {
    let around =
        ActionsEnvironment { event_name: Some(event.to_owned()), ..ActionsEnvironment::default() };
    let error = read_event(payload, &around).unwrap_err().to_string();
    assert!(error.contains(expect), "{error}");
}

#[test]
fn a_bad_file_is_one_message() {
    let repository = r#""repository":{"full_name":"a/b"},"sender":{"login":"x"}"#;
    refused("", "issues", "not JSON");
    refused("[]", "issues", "not a JSON object");
    refused("{}", "issues", "GITHUB_REPOSITORY");
    refused(r#"{"repository":{"full_name":"a/b"}}"#, "push", "GITHUB_ACTOR");
    refused(r#"{"repository":7}"#, "push", "`repository` of the event cannot be read");
    refused(r#"{"repository":{"full_name":"a/../b"}}"#, "push", "not the name of a repository");
    refused(r#"{"repository":{"full_name":"../b"}}"#, "push", "not the name of a repository");
    refused(
        r#"{"repository":{"full_name":"a/b"},"sender":{"login":"x\ny"}}"#,
        "push",
        "not the name of an account",
    );
    refused(&format!("{{{repository}}}"), "issues", "has `issue`, and this one does not");
    refused(&format!("{{{repository},\"issue\":{{}}}}"), "issues", "missing field `number`");
    refused("{}", "issues\n", "GITHUB_REPOSITORY");
    refused("{}", "is sues", "not the name of an event");
    let nested = "[".repeat(100_000);
    refused(&nested, "issues", "not JSON");
}

#[test]
fn an_event_without_a_name_says_where_the_name_comes_from() {
    let error = read_event("{}", &ActionsEnvironment::default()).unwrap_err().to_string();
    assert!(error.contains("GITHUB_EVENT_NAME"), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*", name in "[a-z_]{0,12}") {
        let around = ActionsEnvironment { event_name: Some(name), ..ActionsEnvironment::default() };
        let _ = read_event(&text, &around);
    }

    #[test]
    fn no_field_of_another_kind_makes_it_panic(
        at in 0usize..60,
        with in prop::sample::select(vec!["null", "7", "\"x\"", "[]", "{}", "true"]),
    ) {
        let mut value: serde_json::Value =
            serde_json::from_str(&payload("pull_request_review_comment.created")).unwrap();
        let mut left = at;
        replace(&mut value, &mut left, &serde_json::from_str(with).unwrap());
        let _ = read_event(&value.to_string(), &surroundings("pull_request_review_comment"));
    }
}

/// Puts a value in the place of the n-th one.
fn replace(value: &mut serde_json::Value, left: &mut usize, with: &serde_json::Value) {
    if *left == 0 {
        *value = with.clone();
        *left = usize::MAX;
        return;
    }
    *left = left.saturating_sub(1);
    match value {
        serde_json::Value::Object(map) => map.values_mut().for_each(|v| replace(v, left, with)),
        serde_json::Value::Array(list) => list.iter_mut().for_each(|v| replace(v, left, with)),
        _ => {}
    }
}
