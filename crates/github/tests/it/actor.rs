//! Who may ask.

use proptest::prelude::*;
use repertoire_github::actor::{
    AccountPermission, ActorRules, KnownPermissions, PermissionLookup, RunAdmission,
    accounts_to_look_up, decide_admission,
};
use repertoire_github::event::{AccountKind, GitHubAccount, GitHubEventContext};

use crate::fixtures::{context, names};

fn rules() -> ActorRules {
    ActorRules { bot_login: "github-actions[bot]".to_owned(), ..ActorRules::default() }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn is(login: &str, permission: AccountPermission) -> KnownPermissions {
    KnownPermissions::default().with(login, PermissionLookup::Is(permission))
}

#[track_caller]
fn refused(
    context: &GitHubEventContext,
    answers: &KnownPermissions,
    rules: &ActorRules,
    expect: &str,
) {
    match decide_admission(context, answers, rules).admission {
        RunAdmission::Refused { reason } => assert!(reason.contains(expect), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_can_push_may_work() {
    let context = context("issue_comment.created");
    for permission in
        [AccountPermission::Write, AccountPermission::Maintain, AccountPermission::Admin]
    {
        let answers = is("Ada-Maintainer", permission);
        assert_eq!(decide_admission(&context, &answers, &rules()).admission, RunAdmission::Write);
    }
    for permission in [AccountPermission::Triage, AccountPermission::Read, AccountPermission::None]
    {
        let answers = is("ada-maintainer", permission);
        refused(&context, &answers, &rules(), "write access");
    }
}

#[test]
fn whoever_is_on_the_list_may_ask_and_no_more() {
    let context = context("issue_comment.created.by-reader");
    let rules = ActorRules { allowed_non_write_users: list(&["@Rita-Reader"]), ..rules() };
    let admitted = decide_admission(&context, &is("rita-reader", AccountPermission::Read), &rules);
    assert_eq!((admitted.admission, admitted.warnings), (RunAdmission::Read, Vec::new()));
    refused(&context, &KnownPermissions::default(), &rules, "nobody said");
}

#[test]
fn everybody_on_the_list_is_said_loudly() {
    let context = context("issue_comment.created.by-reader");
    let rules = ActorRules { allowed_non_write_users: list(&["*"]), ..rules() };
    let admitted = decide_admission(&context, &is("rita-reader", AccountPermission::Read), &rules);
    assert_eq!(admitted.admission, RunAdmission::Read);
    assert!(admitted.warnings[0].contains("anybody may call"));
}

#[test]
fn no_answer_is_a_no_even_for_those_on_the_list() {
    let context = context("issue_comment.created");
    let rules = ActorRules { allowed_non_write_users: list(&["*", "ada-maintainer"]), ..rules() };
    let answers = KnownPermissions::default()
        .with("ada-maintainer", PermissionLookup::Unknown("status 503".to_owned()));
    refused(&context, &answers, &rules, "status 503");
    refused(&context, &KnownPermissions::default(), &rules, "nobody said");
    assert_eq!(AccountPermission::parse("superuser"), None);
}

#[test]
fn what_the_event_says_of_an_association_is_not_believed() {
    // The fixture says that the author is a member.
    let context = context("issue_comment.created");
    refused(&context, &is("ada-maintainer", AccountPermission::Read), &rules(), "read access");
}

#[test]
fn bots_come_in_by_name() {
    let context = context("issue_comment.created.by-other-bot");
    let anybody = is("renovate[bot]", AccountPermission::Admin);
    refused(&context, &anybody, &rules(), "not on the list");
    for name in ["renovate[bot]", "Renovate"] {
        let rules = ActorRules { allowed_bots: list(&[name]), ..rules() };
        assert_eq!(accounts_to_look_up(&context, &rules).len(), 1);
        assert_eq!(decide_admission(&context, &anybody, &rules).admission, RunAdmission::Write);
        // Being named is not being able to push.
        assert_eq!(
            decide_admission(&context, &KnownPermissions::default(), &rules).admission,
            RunAdmission::Read
        );
    }
    assert!(accounts_to_look_up(&context, &rules()).is_empty());
    let all = ActorRules { allowed_bots: list(&["*"]), ..rules() };
    let admitted = decide_admission(&context, &KnownPermissions::default(), &all);
    assert_eq!((admitted.admission, admitted.warnings.len()), (RunAdmission::Read, 1));
}

#[test]
fn the_bot_itself_never_comes_in() {
    let context = context("issue_comment.created.by-own-bot");
    let rules = ActorRules {
        allowed_bots: list(&["*", "github-actions[bot]"]),
        allowed_non_write_users: list(&["*", "github-actions[bot]"]),
        ..rules()
    };
    refused(
        &context,
        &is("github-actions[bot]", AccountPermission::Admin),
        &rules,
        "the bot itself",
    );
}

#[test]
fn for_a_label_the_person_who_added_it_counts() {
    // Mallory wrote the issue, Ada labelled it.
    let context = context("issues.labeled.task");
    assert_eq!(context.entity.as_ref().unwrap().author.login, "mallory-outside");
    let answers = is("ada-maintainer", AccountPermission::Write);
    assert_eq!(decide_admission(&context, &answers, &rules()).admission, RunAdmission::Write);
    refused(&context, &is("mallory-outside", AccountPermission::Write), &rules(), "ada-maintainer");
}

#[test]
fn both_must_be_entitled_when_a_run_is_started_again() {
    let mut context = context("issue_comment.created");
    context.rerun_by =
        Some(GitHubAccount { login: "rita-reader".to_owned(), kind: AccountKind::Unknown });
    let answers = is("ada-maintainer", AccountPermission::Write);
    refused(&context, &answers, &rules(), "rita-reader");
    let answers = answers.with("rita-reader", PermissionLookup::Is(AccountPermission::Read));
    refused(&context, &answers, &rules(), "rita-reader");
    let rules = ActorRules { allowed_non_write_users: list(&["rita-reader"]), ..rules() };
    assert_eq!(decide_admission(&context, &answers, &rules).admission, RunAdmission::Read);
    assert_eq!(accounts_to_look_up(&context, &rules).len(), 2);
}

#[test]
fn the_clock_is_the_owner_but_whoever_starts_it_again_is_not() {
    let mut context = context("schedule");
    assert!(accounts_to_look_up(&context, &rules()).is_empty());
    let admitted = decide_admission(&context, &KnownPermissions::default(), &rules());
    assert_eq!(admitted.admission, RunAdmission::Write);
    context.rerun_by = Some(GitHubAccount { login: "mallory".to_owned(), kind: AccountKind::User });
    refused(&context, &KnownPermissions::default(), &rules(), "mallory");
}

proptest! {
    #[test]
    fn nobody_gets_more_than_the_service_says(
        at in 0usize..30,
        permission in prop::option::of(prop::sample::select(vec![
            AccountPermission::None, AccountPermission::Read, AccountPermission::Triage, AccountPermission::Write,
        ])),
        everybody in any::<bool>(),
    ) {
        let names = names();
        let context = context(&names[at % names.len()]);
        let mut answers = KnownPermissions::default();
        if let Some(permission) = permission {
            answers = answers.with(&context.actor.login, PermissionLookup::Is(permission));
        }
        let lists = if everybody { list(&["*"]) } else { Vec::new() };
        let rules = ActorRules { allowed_bots: lists.clone(), allowed_non_write_users: lists, ..rules() };
        let admission = decide_admission(&context, &answers, &rules).admission;
        let clock = context.event.as_str() == "schedule";
        let writes = permission.is_some_and(AccountPermission::can_write) && !context.actor.is_bot();
        prop_assert_eq!(admission == RunAdmission::Write, clock || writes);
    }
}
