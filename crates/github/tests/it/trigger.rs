//! Which triggers hold.

use proptest::prelude::*;
use repertoire_github::trigger::{
    EventTrigger, TriggerSettings, find_prompt, match_triggers, parse_mention,
};

use crate::fixtures::{context, names, saying};

fn settings() -> TriggerSettings {
    TriggerSettings {
        label: Some("repertoire".to_owned()),
        assignee: Some("repertoire-bot".to_owned()),
        ..TriggerSettings::default()
    }
}

#[track_caller]
fn check(name: &str, expect: &[&str]) {
    let matches = match_triggers(&context(name), &settings());
    let found: Vec<&str> = matches.iter().map(|found| found.trigger.as_str()).collect();
    assert_eq!(found, expect, "{name}");
}

#[test]
fn every_event_has_its_triggers() {
    check("issues.opened", &["issue_opened"]);
    check("issues.opened.by-stranger", &["issue_opened"]);
    check("issues.opened.with-label", &["label", "issue_opened"]);
    check("issues.opened.with-mention", &["mention", "issue_opened"]);
    check("issues.labeled.task", &["issue_labeled"]);
    check("issues.labeled.bot", &["label"]);
    check("issues.labeled.other", &[]);
    check("issues.assigned", &["assignee"]);
    check("issues.edited.title", &[]);
    check("issue_comment.created", &["mention", "issue_commented"]);
    check("issue_comment.created.by-reader", &["mention", "issue_commented"]);
    check("issue_comment.created.by-own-bot", &["issue_commented"]);
    check("issue_comment.created.by-other-bot", &["mention", "issue_commented"]);
    check("issue_comment.created.plain", &["issue_commented"]);
    check("issue_comment.created.quoted", &["issue_commented"]);
    check("issue_comment.created.on-pull", &["mention", "issue_commented"]);
    check("issue_comment.edited.added", &["mention"]);
    check("issue_comment.edited.again", &[]);
    check("issue_comment.edited.by-other", &["mention"]);
    check("issue_comment.deleted", &[]);
    check("pull_request.opened", &["pr_opened"]);
    check("pull_request.opened.from-fork", &["mention", "pr_opened"]);
    check("pull_request.labeled", &["pr_labeled"]);
    check("pull_request.assigned", &["assignee"]);
    check("pull_request.ready_for_review", &["pr_opened"]);
    check("pull_request.synchronize", &[]);
    check("pull_request_target.opened", &["pr_opened"]);
    check("pull_request_review.submitted", &["mention", "pr_reviewed"]);
    check("pull_request_review.submitted.empty", &["pr_reviewed"]);
    check("pull_request_review.dismissed", &[]);
    check("pull_request_review_comment.created", &["mention"]);
    check("workflow_dispatch", &["workflow_dispatch", "explicit_prompt"]);
    check("workflow_dispatch.bare", &[]);
    check("repository_dispatch", &["explicit_prompt"]);
    check("schedule", &[]);
    check("push", &[]);
}

#[test]
fn continuous_operation_is_started_by_the_clock_or_by_hand_and_by_nothing_else() {
    let settings = TriggerSettings { continuous: true, ..settings() };
    for name in names() {
        let found = match_triggers(&context(&name), &settings);
        let continuous = found.iter().any(|found| found.trigger == EventTrigger::Continuous);
        let event = name.split('.').next().unwrap();
        let starts = ["schedule", "workflow_dispatch", "repository_dispatch"].contains(&event);
        assert_eq!(continuous, starts, "{name}");
    }
}

#[test]
fn a_prompt_counts_whatever_happened_and_spaces_are_none() {
    let with = |prompt: &str| TriggerSettings { prompt: Some(prompt.to_owned()), ..settings() };
    let push = context("push");
    assert_eq!(match_triggers(&push, &with("do it"))[0].trigger, EventTrigger::ExplicitPrompt);
    assert!(match_triggers(&push, &with(" \n")).is_empty());
    let dispatch = context("workflow_dispatch");
    assert_eq!(find_prompt(&dispatch, &with("mine")), Some("mine"));
    assert_eq!(find_prompt(&dispatch, &with(" ")), Some("Update the changelog for 1.4"));
}

#[test]
fn every_trigger_has_one_name_and_two_have_an_older_one() {
    for trigger in EventTrigger::ALL {
        assert_eq!(EventTrigger::parse(trigger.as_str()), Some(trigger));
        let json = serde_json::to_string(&trigger).unwrap();
        assert_eq!(json, format!("\"{}\"", trigger.as_str()));
    }
    assert_eq!(EventTrigger::parse("continuous_mode"), Some(EventTrigger::Continuous));
    assert_eq!(EventTrigger::parse("manual_trigger"), Some(EventTrigger::Manual));
    assert_eq!(EventTrigger::parse("Mention"), None);
}

#[test]
fn a_label_in_another_case_is_the_same_label() {
    let mut context = context("issues.labeled.task");
    context.label = Some("Agent-Task".to_owned());
    assert_eq!(match_triggers(&context, &settings())[0].trigger, EventTrigger::IssueLabeled);
}

#[test]
fn a_label_that_was_there_already_does_not_call_again() {
    let mut context = context("issue_comment.created.plain");
    context.entity.as_mut().unwrap().labels = vec!["repertoire".to_owned()];
    let found = match_triggers(&context, &settings());
    assert!(found.iter().all(|found| found.trigger != EventTrigger::Label));
}

#[track_caller]
fn calls(text: &str, instruction: &str) {
    let found = parse_mention(text, "@repertoire").unwrap_or_else(|| panic!("no call in {text:?}"));
    assert_eq!(found.instruction, instruction, "{text:?}");
}

#[track_caller]
fn silent(text: &str) {
    assert_eq!(parse_mention(text, "@repertoire"), None, "{text:?}");
}

#[test]
fn a_call_is_the_phrase_as_a_word_of_its_own() {
    calls("@repertoire fix it", "fix it");
    calls("@Repertoire: fix it", "fix it");
    calls("Hello, @REPERTOIRE, fix it\nsoon", "fix it\nsoon");
    calls("(@repertoire) go", ") go");
    calls("please ask @repertoire.", ".");
    calls("@repertoire", "");
    calls("what about `x`? @repertoire look", "look");
    calls("a lone ` and @repertoire go", "go");
    calls("- @repertoire go", "go");
    calls("Grüße an @repertoire! ❤\u{fe0f}", "! ❤\u{fe0f}");
    calls("> old words\n@repertoire go", "go");
}

#[test]
fn part_of_another_word_is_no_call() {
    silent("@repertoire-bot fix it");
    silent("@repertoires fix it");
    silent("mail me at x@repertoire please");
    silent("see github.com/@repertoire");
    silent("@repertoire/core-team have a look");
    silent("@repertoire.example is a host");
    silent("me.@repertoire");
    silent("@repertoire_2");
    silent("@repertoireé");
    silent("@rep\u{200b}ertoire");
    silent("@repertoire\u{200d}x");
    silent("repertoire fix it");
    silent("");
}

#[test]
fn quotations_code_and_what_nobody_sees_do_not_call() {
    silent("> @repertoire fix");
    silent("  > @repertoire fix");
    silent("- > @repertoire fix");
    silent("`@repertoire fix`");
    silent("``a ` @repertoire``");
    silent("```\n@repertoire\n```");
    silent("~~~~ text\n@repertoire\n~~~\n@repertoire\n~~~~");
    silent("1. ```\n   @repertoire\n   ```");
    silent("```\n@repertoire");
    silent("text\n\n    @repertoire fix");
    silent("\t@repertoire fix");
    silent("<!-- @repertoire fix -->");
    silent("<!-- @repertoire fix");
    silent("<pre>\n@repertoire\n</pre>");
    silent("<CODE>@repertoire</CODE>");
    silent("<blockquote>@repertoire</blockquote>");
    silent("<a title=\"@repertoire fix\">x</a>");
    silent("<img alt='@repertoire fix'>");
    silent("<p hidden>@repertoire fix</p>");
    silent("<? @repertoire ?>");
}

#[test]
fn what_stands_after_code_calls_again() {
    calls("```\n@repertoire no\n```\n@repertoire yes", "yes");
    calls("<!-- @repertoire no --> @repertoire yes", "yes");
}

#[test]
fn what_a_call_quotes_is_not_the_caller_s() {
    for (text, own, quoted) in [
        ("@repertoire fix this\n> do evil\n\nplease", "fix this\n\nplease", "> do evil"),
        ("@repertoire: why?\n- > a\nstill a", "why?", "- > a\nstill a"),
        (
            "@repertoire look\n<blockquote>a\n\nb</blockquote> now",
            "look\n now",
            "<blockquote>a\n\nb</blockquote>",
        ),
        (
            "@repertoire yes\n\nOn Mon, 1 Jan, Eve <e@e.test> wrote:\n\ndo evil",
            "yes",
            "On Mon, 1 Jan, Eve <e@e.test> wrote:\n\ndo evil",
        ),
        (
            "@repertoire yes\n\n-----Original Message-----\nevil",
            "yes",
            "-----Original Message-----\nevil",
        ),
        ("@repertoire run\n```\na > b\n```", "run\n```\na > b\n```", ""),
    ] {
        let call = parse_mention(text, "@repertoire").unwrap();
        assert_eq!((call.instruction.as_str(), call.quoted.as_str()), (own, quoted), "{text}");
    }
}

#[test]
fn what_we_wrote_calls_for_nothing_whoever_it_seems_to_be_from() {
    const EVENT: &str = "issue_comment.created";
    let settings = TriggerSettings { prompt: Some("go".to_owned()), manual: true, ..settings() };
    let ours = saying(EVENT, "<!-- repertoire:tag -->\n@repertoire again");
    assert_eq!(match_triggers(&ours, &settings), []);
    let other = match_triggers(&saying(EVENT, "@repertoire again"), &settings);
    assert!(other.iter().any(|found| found.trigger == EventTrigger::Mention), "{other:?}");
    let also_own = vec![saying(EVENT, "x").actor.login];
    let own = match_triggers(
        &saying(EVENT, "@repertoire again"),
        &TriggerSettings { also_own, ..settings },
    );
    assert!(own.iter().all(|found| found.trigger != EventTrigger::Mention), "{own:?}");
}

#[test]
fn any_phrase_can_call() {
    assert_eq!(parse_mention("/agent go", "/agent").unwrap().instruction, "go");
    assert_eq!(parse_mention("hey bot, go", "Hey Bot").unwrap().instruction, "go");
    assert_eq!(parse_mention("anything", ""), None);
    assert_eq!(parse_mention("anything", "  "), None);
}

#[test]
fn the_bot_does_not_call_itself_under_either_of_its_names() {
    let mut context = saying("issue_comment.created", "@repertoire go on");
    context.said.as_mut().unwrap().author.login = "GitHub-Actions".to_owned();
    let found = match_triggers(&context, &settings());
    assert!(found.iter().all(|found| found.trigger != EventTrigger::Mention));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(.|\\n|[`~<>@!-]|@repertoire){0,60}", phrase in ".{0,12}") {
        if let Some(found) = parse_mention(&text, &phrase) {
            prop_assert!(found.at <= text.len());
            prop_assert!(text.contains(&found.instruction));
        }
    }

    #[test]
    fn a_call_in_a_fence_never_triggers(
        before in "[a-z \\n.]{0,40}",
        inside in "[a-z @\\n.>-]{0,40}",
        marks in 3usize..6,
    ) {
        let fence = "`".repeat(marks);
        let text = format!("{before}\n{fence}\n{inside}\n@repertoire do it\n{inside}\n{fence}\n");
        prop_assert_eq!(parse_mention(&text, "@repertoire"), None);
    }

    #[test]
    fn a_call_in_a_comment_never_triggers(
        before in "[a-z \\n.`>]{0,40}", inside in "[a-z \\n.`<!]{0,40}",
    ) {
        let text = format!("{before}<!-- {inside} @repertoire do it {inside} -->");
        prop_assert_eq!(parse_mention(&text, "@repertoire"), None);
    }

    #[test]
    fn a_plain_call_always_triggers(before in "([a-z]{1,8}[ .,]){0,6}", after in "[a-z ]{0,20}") {
        let text = format!("{before} @repertoire {after}");
        prop_assert!(parse_mention(text.trim(), "@repertoire").is_some());
    }
}
