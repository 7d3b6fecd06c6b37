use super::super::{AutoMergeRequest, CheckVerification, MergeEvidence, RefusalProspect};
use super::*;
use RefusalProspect::{Later, Never, Perhaps, Soon};

const BOT: &str = "repertoire[bot]";

fn head() -> String {
    "a1".repeat(20)
}

fn unknown<T>() -> MergeFact<T> {
    MergeFact::Unknown("the service failed".to_owned())
}

fn check_of(name: &str, conclusion: Option<&str>) -> HeadCheck {
    HeadCheck {
        name: name.to_owned(),
        app: Some("github-actions".to_owned()),
        conclusion: conclusion.map(str::to_owned),
    }
}

fn review(login: &str, state: &str) -> ReviewFacts {
    ReviewFacts {
        login: login.to_owned(),
        is_bot: login.ends_with("[bot]"),
        can_write: MergeFact::Known(true),
        state: state.to_owned(),
        commit: Some(head()),
    }
}

/// Facts for which the pull request is merged.
fn facts() -> MergeFacts {
    MergeFacts {
        request: AutoMergeRequest {
            number: 40,
            asked: MergeFact::Known(true),
            asked_by: MergeFact::Known(vec!["Olga".to_owned()]),
            made_by_us: MergeFact::Known(true),
            own_login: BOT.to_owned(),
            branch_prefix: "bot/".to_owned(),
            witness: MergeEvidence::Journal(CheckVerification {
                verdict: DeclaredCheckVerdict::Passed,
                full: true,
                commit: head(),
            }),
            open_question: MergeFact::Known(false),
            issue: None,
        },
        pinned: Some(head()),
        halted: MergeFact::Known(None),
        pull: MergeFact::Known(PullFacts {
            open: true,
            merged: false,
            draft: false,
            same_repository: true,
            author: BOT.to_owned(),
            head: "bot/31".to_owned(),
            head_sha: head(),
            base: "main".to_owned(),
            labels: vec!["bug".to_owned()],
            mergeable: Some(true),
            mergeable_state: Some("clean".to_owned()),
            changed_lines: 12,
        }),
        base: MergeFact::Known(BaseFacts {
            is_default: true,
            protected: false,
            required_checks: vec!["lint".to_owned()],
            required_approvals: 0,
            resolves_conversations: false,
        }),
        checks: MergeFact::Known(vec![
            check_of("test", Some("success")),
            check_of("lint", Some("success")),
            check_of("docs", Some("neutral")),
        ]),
        reviews: MergeFact::Known(vec![review("ada", "APPROVED")]),
        paths: MergeFact::Known(vec!["src/lib.rs".to_owned()]),
        movers: unknown(),
    }
}

fn settings() -> AutoMerge {
    AutoMerge { enabled: true, required_checks: vec!["test".to_owned()], ..AutoMerge::default() }
}

#[track_caller]
fn merges(change: impl FnOnce(&mut MergeFacts, &mut AutoMerge)) {
    let (mut facts, mut settings) = (facts(), settings());
    change(&mut facts, &mut settings);
    let (decision, conditions) = decide_merge(&facts, &settings);
    assert_eq!(decision, MergeDecision::Merge { head: head() });
    assert_eq!(conditions.len(), 11);
    assert!(conditions.iter().all(|condition| condition.ok));
}

/// Asserts the condition that refuses, a part of the reason, and the prospect.
#[track_caller]
fn refuses(
    n: u8,
    part: &str,
    prospect: RefusalProspect,
    change: impl FnOnce(&mut MergeFacts, &mut AutoMerge),
) {
    let (mut facts, mut settings) = (facts(), settings());
    change(&mut facts, &mut settings);
    let (decision, conditions) = decide_merge(&facts, &settings);
    let MergeDecision::Refuse(refusal) = decision else { panic!("it was merged") };
    assert_eq!((refusal.condition, refusal.prospect), (n, prospect), "{refusal:?}");
    assert!(refusal.reason.contains(part), "{}", refusal.reason);
    assert!(!refusal.next.is_empty());
    assert_eq!(conditions.last(), Some(&ConditionResult { n, ok: false }));
    assert_eq!(conditions.len(), usize::from(n), "it stops at the first no");
}

fn pull_of(facts: &mut MergeFacts) -> &mut PullFacts {
    match &mut facts.pull {
        MergeFact::Known(pull) => pull,
        MergeFact::Unknown(why) => panic!("{why}"),
    }
}

fn base_of(facts: &mut MergeFacts) -> &mut BaseFacts {
    match &mut facts.base {
        MergeFact::Known(base) => base,
        MergeFact::Unknown(why) => panic!("{why}"),
    }
}

fn verification_of(facts: &mut MergeFacts) -> &mut CheckVerification {
    match &mut facts.request.witness {
        MergeEvidence::Journal(found) => found,
        other => panic!("{other:?}"),
    }
}

fn checks(facts: &mut MergeFacts, checks: &[(&str, Option<&str>)]) {
    let all = checks.iter().map(|(name, conclusion)| check_of(name, *conclusion));
    facts.checks = MergeFact::Known(all.collect());
}

#[test]
fn it_is_off_unless_switched_on() {
    merges(|_, _| {});
    refuses(1, "is off", Never, |_, settings| *settings = AutoMerge::default());
    refuses(1, "is off", Never, |_, settings| settings.enabled = false);
    refuses(1, "nobody who may", Never, |facts, _| facts.request.asked = MergeFact::Known(false));
    refuses(1, "not known", Never, |facts, _| facts.request.asked = unknown());
    refuses(1, "issue 7 is open", Later, |facts, _| facts.halted = MergeFact::Known(Some(7)));
    refuses(1, "not known", Never, |facts, _| facts.halted = unknown());
}

#[test]
fn only_our_own_open_ready_pull_requests_are_merged() {
    refuses(2, "merged already", Never, |facts, _| pull_of(facts).merged = true);
    refuses(2, "is closed", Never, |facts, _| pull_of(facts).open = false);
    refuses(2, "draft", Later, |facts, _| pull_of(facts).draft = true);
    refuses(2, "another repository", Never, |facts, _| pull_of(facts).same_repository = false);
    refuses(2, "opened by mallory", Never, |facts, _| pull_of(facts).author = "mallory".to_owned());
    refuses(2, "not one of ours", Never, |facts, _| pull_of(facts).head = "feature".to_owned());
    refuses(2, "not one of ours", Never, |facts, _| facts.request.branch_prefix.clear());
    refuses(2, "no run of ours", Never, |facts, _| {
        facts.request.made_by_us = MergeFact::Known(false)
    });
    refuses(2, "not known", Never, |facts, _| facts.request.made_by_us = unknown());
    refuses(2, "not known", Never, |facts, _| facts.pull = unknown());
}

#[test]
fn protected_and_release_branches_have_to_be_named() {
    refuses(3, "not a branch", Never, |facts, _| base_of(facts).is_default = false);
    refuses(3, "is protected", Never, |facts, _| base_of(facts).protected = true);
    refuses(3, "looks like a release", Never, |facts, _| {
        pull_of(facts).base = "release/1.2".to_owned()
    });
    refuses(3, "not a branch", Never, |_, settings| {
        settings.base_branches = vec!["next".to_owned()]
    });
    refuses(3, "not known", Never, |facts, _| facts.base = unknown());
    merges(|facts, settings| {
        base_of(facts).protected = true;
        settings.base_branches = vec!["main".to_owned()];
    });
}

#[test]
fn a_head_that_moved_starts_again() {
    refuses(4, "the head moved", Never, |facts, _| facts.pinned = Some("b2".repeat(20)));
    refuses(4, "full name", Never, |facts, _| pull_of(facts).head_sha = "a1a1a1a".to_owned());
    merges(|facts, _| facts.pinned = None);
}

#[test]
fn the_declared_checks_passed_in_full_on_that_commit() {
    refuses(5, "failed", Never, |facts, _| {
        verification_of(facts).verdict = DeclaredCheckVerdict::Failed
    });
    refuses(5, "inconclusive", Never, |facts, _| {
        verification_of(facts).verdict = DeclaredCheckVerdict::Inconclusive
    });
    refuses(5, "only some", Never, |facts, _| verification_of(facts).full = false);
    refuses(5, "were run on", Never, |facts, _| verification_of(facts).commit = "b2".repeat(20));
    refuses(5, "not known: lost", Never, |facts, _| {
        facts.request.witness = MergeEvidence::Nobody("lost".to_owned());
    });
}

/// Sets up a run of another process, with GitHub as the only evidence.
fn of_service(facts: &mut MergeFacts, movers: &[&str]) {
    facts.request.witness = MergeEvidence::Service;
    facts.movers = MergeFact::Known(movers.iter().map(|login| (*login).to_owned()).collect());
}

#[test]
fn where_the_run_is_not_known_the_required_checks_speak_for_a_branch_that_only_we_moved() {
    merges(|facts, _| of_service(facts, &[BOT, "Repertoire[bot]"]));
    refuses(5, "eve has moved", Never, |facts, _| of_service(facts, &[BOT, "eve"]));
    refuses(5, "nobody is known", Never, |facts, _| of_service(facts, &[]));
    refuses(5, "who moved its branch is not known", Never, |facts, _| {
        facts.request.witness = MergeEvidence::Service;
    });
}

#[test]
fn what_was_skipped_vouches_for_nothing() {
    let skipped = |facts: &mut MergeFacts, settings: &mut AutoMerge| {
        checks(facts, &[("test", Some("skipped")), ("lint", Some("success"))]);
        settings.skippable_checks = vec!["test".to_owned()];
    };
    merges(skipped);
    refuses(6, "every required check was skipped", Never, |facts, settings| {
        skipped(facts, settings);
        of_service(facts, &[BOT]);
    });
}

#[test]
fn waiting_is_for_what_nobody_has_to_do() {
    let worth = |change: fn(&mut MergeFacts, &mut AutoMerge)| {
        let (mut facts, mut settings) = (facts(), settings());
        checks(&mut facts, &[("test", None), ("lint", Some("success"))]);
        change(&mut facts, &mut settings);
        is_worth_waiting(&facts, &settings)
    };
    assert!(worth(|_, _| {}));
    assert!(worth(|facts, _| pull_of(facts).mergeable_state = Some("blocked".to_owned())));
    assert!(!worth(|facts, _| facts.reviews = MergeFact::Known(vec![])));
    assert!(!worth(|facts, _| facts.paths = MergeFact::Known(vec!["LICENSE".to_owned()])));
    assert!(!worth(|_, settings| settings.frozen = true));
}

#[test]
fn required_checks_are_compared_by_name() {
    refuses(6, "no required check", Never, |_, settings| settings.required_checks.clear());
    refuses(6, "not known", Never, |facts, _| facts.checks = unknown());
    refuses(6, "`test` is missing on a1a1a1a; present: `a`, `b`, `lint`", Perhaps, |facts, _| {
        let green = Some("success");
        checks(facts, &[("lint", green), ("a", green), ("b", green)]);
    });
    refuses(6, "present: none", Perhaps, |facts, _| checks(facts, &[]));
    refuses(6, "`lint` is missing", Perhaps, |facts, _| {
        checks(facts, &[("test", Some("success"))])
    });
    refuses(6, "`lint`, `test` are pending", Soon, |facts, _| {
        checks(facts, &[("test", None), ("lint", None)]);
    });
    for conclusion in
        ["failure", "cancelled", "timed_out", "action_required", "neutral", "skipped", "stale"]
    {
        refuses(6, &format!("ended with `{conclusion}`"), Never, |facts, _| {
            checks(facts, &[("lint", Some("success")), ("test", Some(conclusion))]);
        });
    }
    refuses(6, "`Test` is missing", Perhaps, |_, settings| {
        settings.required_checks = vec!["Test".to_owned()]
    });
}

#[test]
fn one_name_with_several_runs_is_as_good_as_the_worst() {
    let green = Some("success");
    refuses(6, "ended with `failure`", Never, |facts, _| {
        checks(facts, &[("lint", green), ("test", green), ("test", Some("failure"))]);
    });
    for order in [[green, None], [None, green]] {
        refuses(6, "pending", Soon, |facts, _| {
            checks(facts, &[("lint", green), ("test", order[0]), ("test", order[1])]);
        });
    }
}

#[test]
fn a_check_may_have_to_come_from_an_app_and_may_be_skipped_if_so_configured() {
    let app = |app: &str| BTreeMap::from([("test".to_owned(), app.to_owned())]);
    refuses(6, "missing", Perhaps, |_, settings| settings.check_apps = app("trusted-ci"));
    merges(|_, settings| settings.check_apps = app("github-actions"));
    merges(|facts, settings| {
        checks(facts, &[("lint", Some("success")), ("test", Some("skipped"))]);
        settings.skippable_checks = vec!["test".to_owned()];
    });
}

#[test]
fn nothing_else_may_be_red() {
    let green = Some("success");
    for bad in ["failure", "error", "timed_out", "cancelled", "action_required"] {
        let all = [("lint", green), ("test", green), ("docs", Some(bad))];
        refuses(7, "`docs`", Never, |facts, _| checks(facts, &all));
        merges(|facts, settings| {
            checks(facts, &all);
            settings.optional_checks = vec!["docs".to_owned()];
        });
    }
    merges(|facts, _| checks(facts, &[("lint", green), ("test", green), ("slow", None)]));
}

#[test]
fn approvals_are_counted_from_people_who_may_write() {
    let reviews =
        |facts: &mut MergeFacts, all: Vec<ReviewFacts>| facts.reviews = MergeFact::Known(all);
    refuses(8, "0 of 1", Later, |facts, _| reviews(facts, vec![]));
    refuses(8, "0 of 1", Later, |facts, _| reviews(facts, vec![review(BOT, "APPROVED")]));
    refuses(8, "0 of 1", Later, |facts, _| reviews(facts, vec![review("other[bot]", "APPROVED")]));
    refuses(8, "0 of 1", Later, |facts, _| reviews(facts, vec![review("ada", "COMMENTED")]));
    refuses(8, "0 of 1", Later, |facts, _| {
        reviews(facts, vec![review("ada", "APPROVED"), review("Ada", "DISMISSED")]);
    });
    for can_write in [MergeFact::Known(false), unknown()] {
        refuses(8, "0 of 1", Later, |facts, _| {
            reviews(facts, vec![ReviewFacts { can_write, ..review("ada", "APPROVED") }]);
        });
    }
    refuses(8, "1 of 2", Later, |facts, _| {
        base_of(facts).required_approvals = 2;
        reviews(facts, vec![review("ada", "APPROVED"), review("ADA", "APPROVED")]);
    });
    refuses(8, "not known", Never, |facts, _| facts.reviews = unknown());
    merges(|facts, settings| {
        settings.required_approvals = 2;
        reviews(facts, vec![review("ada", "APPROVED"), review("bob", "APPROVED")]);
    });
}

#[test]
fn the_author_does_not_approve_their_own() {
    refuses(8, "0 of 1", Later, |facts, _| {
        pull_of(facts).author = "Robot".to_owned();
        facts.request.own_login = "robot".to_owned();
        facts.reviews = MergeFact::Known(vec![review("robot", "APPROVED")]);
    });
}

#[test]
fn whoever_asked_for_the_work_does_not_approve_it() {
    refuses(8, "0 of 1 approvals of a1a1a1a", Later, |facts, _| {
        facts.reviews = MergeFact::Known(vec![review("olga", "APPROVED")]);
    });
    merges(|facts, _| {
        facts.reviews =
            MergeFact::Known(vec![review("olga", "APPROVED"), review("ada", "APPROVED")]);
    });
    refuses(8, "who asked for it is not known", Never, |facts, _| {
        facts.request.asked_by = unknown();
    });
    merges(|facts, settings| {
        facts.request.asked_by = unknown();
        settings.required_approvals = 0;
    });
}

#[test]
fn only_an_approval_of_the_head_counts() {
    for commit in [Some("b2".repeat(20)), None] {
        refuses(8, "0 of 1", Later, |facts, _| {
            facts.reviews =
                MergeFact::Known(vec![ReviewFacts { commit, ..review("ada", "APPROVED") }]);
        });
    }
}

#[test]
fn requested_changes_stand_until_their_author_decides_otherwise() {
    refuses(8, "bob requested changes", Later, |facts, _| {
        let all = ["APPROVED", "CHANGES_REQUESTED", "COMMENTED"].map(|state| review("bob", state));
        let all = [vec![review("ada", "APPROVED")], all.to_vec()].concat();
        facts.reviews = MergeFact::Known(all);
    });
    merges(|facts, _| {
        let all = ["CHANGES_REQUESTED", "APPROVED"].map(|state| review("bob", state));
        facts.reviews = MergeFact::Known(all.to_vec());
    });
}

#[test]
fn conversations_are_resolved_where_they_have_to_be() {
    refuses(8, "conversations", Later, |facts, _| {
        base_of(facts).resolves_conversations = true;
        pull_of(facts).mergeable_state = Some("blocked".to_owned());
    });
    merges(|facts, _| base_of(facts).resolves_conversations = true);
}

#[test]
fn the_service_has_to_be_willing() {
    let state = |facts: &mut MergeFacts, can: Option<bool>, state: &str| {
        pull_of(facts).mergeable = can;
        pull_of(facts).mergeable_state = Some(state.to_owned());
    };
    refuses(9, "conflicts", Never, |facts, _| state(facts, Some(false), "dirty"));
    refuses(9, "behind", Later, |facts, _| state(facts, Some(true), "behind"));
    refuses(9, "blocks", Later, |facts, _| state(facts, Some(true), "blocked"));
    refuses(9, "does not know yet", Soon, |facts, _| state(facts, None, "unknown"));
    refuses(9, "does not know yet", Soon, |facts, _| state(facts, None, "clean"));
    refuses(9, "not understood", Never, |facts, _| state(facts, Some(true), "new-word"));
    refuses(9, "does not know yet", Soon, |facts, _| pull_of(facts).mergeable_state = None);
    merges(|facts, _| state(facts, Some(true), "unstable"));
}

#[test]
fn a_person_decides_about_some_content() {
    for path in [".github/workflows/ci.yml", "docs/AGENTS.md", "LICENSE", ".npmrc", ".env"] {
        refuses(10, path, Never, |facts, _| {
            facts.paths = MergeFact::Known(vec!["src/a.rs".to_owned(), path.to_owned()]);
        });
    }
    refuses(10, "501 lines", Never, |facts, _| pull_of(facts).changed_lines = 501);
    refuses(10, "51 files", Never, |facts, _| {
        facts.paths = MergeFact::Known((0..51).map(|at| format!("src/{at}.rs")).collect());
    });
    refuses(10, "nothing", Never, |facts, _| facts.paths = MergeFact::Known(vec![]));
    refuses(10, "not known", Never, |facts, _| facts.paths = unknown());
}

#[test]
fn stop_signs_stop() {
    for label in ["do-not-merge", "HOLD", "wip"] {
        refuses(11, label, Later, |facts, _| pull_of(facts).labels.push(label.to_owned()));
    }
    refuses(11, "for the time being", Later, |_, settings| settings.frozen = true);
    refuses(11, "question", Later, |facts, _| facts.request.open_question = MergeFact::Known(true));
    refuses(11, "not known", Never, |facts, _| facts.request.open_question = unknown());
}

proptest::proptest! {
    /// If any single fact is unknown, the pull request is not merged.
    #[test]
    fn unknown_is_no(which in 0..11usize) {
        let mut facts = facts();
        match which {
            0 => facts.request.asked = unknown(),
            1 => facts.request.made_by_us = unknown(),
            2 => facts.request.witness = MergeEvidence::Nobody("lost".to_owned()),
            3 => facts.request.open_question = unknown(),
            4 => facts.pull = unknown(),
            5 => facts.base = unknown(),
            6 => facts.checks = unknown(),
            7 => facts.request.asked_by = unknown(),
            8 => facts.reviews = unknown(),
            9 => facts.request.witness = MergeEvidence::Service,
            _ => facts.paths = unknown(),
        }
        let (decision, _) = decide_merge(&facts, &settings());
        proptest::prop_assert!(matches!(decision, MergeDecision::Refuse(_)));
    }
}
