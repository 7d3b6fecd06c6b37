//! Who may ask.

use proptest::prelude::*;
use repertoire_github::actor::{Admission, Answer, Answers, Permission, Rules, admit, to_ask};
use repertoire_github::event::{Account, AccountKind, Context};

use crate::fixtures::{context, names};

fn rules() -> Rules {
    Rules { bot_login: "github-actions[bot]".to_owned(), ..Rules::default() }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn is(login: &str, permission: Permission) -> Answers {
    Answers::default().with(login, Answer::Is(permission))
}

#[track_caller]
fn refused(context: &Context, answers: &Answers, rules: &Rules, expect: &str) {
    match admit(context, answers, rules).admission {
        Admission::Refused { reason } => assert!(reason.contains(expect), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_can_push_may_work() {
    let context = context("issue_comment.created");
    for permission in [Permission::Write, Permission::Maintain, Permission::Admin] {
        let answers = is("Ada-Maintainer", permission);
        assert_eq!(admit(&context, &answers, &rules()).admission, Admission::Write);
    }
    for permission in [Permission::Triage, Permission::Read, Permission::None] {
        let answers = is("ada-maintainer", permission);
        refused(&context, &answers, &rules(), "write access");
    }
}

#[test]
fn whoever_is_on_the_list_may_ask_and_no_more() {
    let context = context("issue_comment.created.by-reader");
    let rules = Rules { allowed_non_write_users: list(&["@Rita-Reader"]), ..rules() };
    let admitted = admit(&context, &is("rita-reader", Permission::Read), &rules);
    assert_eq!((admitted.admission, admitted.warnings), (Admission::Read, Vec::new()));
    refused(&context, &Answers::default(), &rules, "nobody said");
}

#[test]
fn everybody_on_the_list_is_said_loudly() {
    let context = context("issue_comment.created.by-reader");
    let rules = Rules { allowed_non_write_users: list(&["*"]), ..rules() };
    let admitted = admit(&context, &is("rita-reader", Permission::Read), &rules);
    assert_eq!(admitted.admission, Admission::Read);
    assert!(admitted.warnings[0].contains("anybody may call"));
}

#[test]
fn no_answer_is_a_no_even_for_those_on_the_list() {
    let context = context("issue_comment.created");
    let rules = Rules { allowed_non_write_users: list(&["*", "ada-maintainer"]), ..rules() };
    let answers =
        Answers::default().with("ada-maintainer", Answer::Unknown("status 503".to_owned()));
    refused(&context, &answers, &rules, "status 503");
    refused(&context, &Answers::default(), &rules, "nobody said");
    assert_eq!(Permission::parse("superuser"), None);
}

#[test]
fn what_the_event_says_of_an_association_is_not_believed() {
    // The fixture says that the author is a member.
    let context = context("issue_comment.created");
    refused(&context, &is("ada-maintainer", Permission::Read), &rules(), "read access");
}

#[test]
fn bots_come_in_by_name() {
    let context = context("issue_comment.created.by-other-bot");
    let anybody = is("renovate[bot]", Permission::Admin);
    refused(&context, &anybody, &rules(), "not on the list");
    for name in ["renovate[bot]", "Renovate"] {
        let rules = Rules { allowed_bots: list(&[name]), ..rules() };
        assert_eq!(to_ask(&context, &rules).len(), 1);
        assert_eq!(admit(&context, &anybody, &rules).admission, Admission::Write);
        // Being named is not being able to push.
        assert_eq!(admit(&context, &Answers::default(), &rules).admission, Admission::Read);
    }
    assert!(to_ask(&context, &rules()).is_empty());
    let all = Rules { allowed_bots: list(&["*"]), ..rules() };
    let admitted = admit(&context, &Answers::default(), &all);
    assert_eq!((admitted.admission, admitted.warnings.len()), (Admission::Read, 1));
}

#[test]
fn the_bot_itself_never_comes_in() {
    let context = context("issue_comment.created.by-own-bot");
    let rules = Rules {
        allowed_bots: list(&["*", "github-actions[bot]"]),
        allowed_non_write_users: list(&["*", "github-actions[bot]"]),
        ..rules()
    };
    refused(&context, &is("github-actions[bot]", Permission::Admin), &rules, "the bot itself");
}

#[test]
fn for_a_label_the_person_who_added_it_counts() {
    // Mallory wrote the issue, Ada labelled it.
    let context = context("issues.labeled.task");
    assert_eq!(context.entity.as_ref().unwrap().author.login, "mallory-outside");
    let answers = is("ada-maintainer", Permission::Write);
    assert_eq!(admit(&context, &answers, &rules()).admission, Admission::Write);
    refused(&context, &is("mallory-outside", Permission::Write), &rules(), "ada-maintainer");
}

#[test]
fn both_must_be_entitled_when_a_run_is_started_again() {
    let mut context = context("issue_comment.created");
    context.rerun_by =
        Some(Account { login: "rita-reader".to_owned(), kind: AccountKind::Unknown });
    let answers = is("ada-maintainer", Permission::Write);
    refused(&context, &answers, &rules(), "rita-reader");
    let answers = answers.with("rita-reader", Answer::Is(Permission::Read));
    refused(&context, &answers, &rules(), "rita-reader");
    let rules = Rules { allowed_non_write_users: list(&["rita-reader"]), ..rules() };
    assert_eq!(admit(&context, &answers, &rules).admission, Admission::Read);
    assert_eq!(to_ask(&context, &rules).len(), 2);
}

#[test]
fn the_clock_is_the_owner_but_whoever_starts_it_again_is_not() {
    let mut context = context("schedule");
    assert!(to_ask(&context, &rules()).is_empty());
    let admitted = admit(&context, &Answers::default(), &rules());
    assert_eq!(admitted.admission, Admission::Write);
    context.rerun_by = Some(Account { login: "mallory".to_owned(), kind: AccountKind::User });
    refused(&context, &Answers::default(), &rules(), "mallory");
}

proptest! {
    #[test]
    fn nobody_gets_more_than_the_service_says(
        at in 0usize..30,
        permission in prop::option::of(prop::sample::select(vec![
            Permission::None, Permission::Read, Permission::Triage, Permission::Write,
        ])),
        everybody in any::<bool>(),
    ) {
        let names = names();
        let context = context(&names[at % names.len()]);
        let mut answers = Answers::default();
        if let Some(permission) = permission {
            answers = answers.with(&context.actor.login, Answer::Is(permission));
        }
        let lists = if everybody { list(&["*"]) } else { Vec::new() };
        let rules = Rules { allowed_bots: lists.clone(), allowed_non_write_users: lists, ..rules() };
        let admission = admit(&context, &answers, &rules).admission;
        let clock = context.event.as_str() == "schedule";
        let writes = permission.is_some_and(Permission::can_write) && !context.actor.is_bot();
        prop_assert_eq!(admission == Admission::Write, clock || writes);
    }
}
