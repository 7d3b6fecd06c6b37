use super::*;
use crate::activate::{ActivationBudget, estimate_tokens};
use crate::testing::make_entry;

const HOUR_MS: u64 = 60 * 60 * 1000;

fn text_only() -> ActivationRequest<'static> {
    ActivationRequest { listing: ResourceListingMode::Skipped, ..ActivationRequest::default() }
}

fn outcome_of(
    ledger: &mut Ledger,
    entry: &CatalogEntry,
    request: &ActivationRequest<'_>,
    now_ms: u64,
) -> LedgerRecordOutcome {
    ledger.activate(entry, request, now_ms).1.outcome
}

fn ids(held: &[LedgerEntry]) -> Vec<&str> {
    held.iter().map(|held| held.activation.id.as_str()).collect()
}

#[test]
fn the_same_skill_is_activated_once() {
    let mut ledger = Ledger::default();
    let pdf = make_entry("pdf", "", "Fill it.");
    assert_eq!(outcome_of(&mut ledger, &pdf, &text_only(), 0), LedgerRecordOutcome::Activated);
    assert_eq!(outcome_of(&mut ledger, &pdf, &text_only(), 5), LedgerRecordOutcome::AlreadyActive);
    assert_eq!((ledger.hits(), ledger.misses()), (1, 1));
    assert_eq!(ledger.get("pdf", 5).unwrap().used_ms, 5);
}

#[test]
fn a_body_that_was_cut_to_the_total_budget_is_not_activated_again() {
    let mut ledger = Ledger::default();
    let long = make_entry("long", "", &"A line of text.\n".repeat(2_000));
    let budget = ActivationBudget { total_chars_max: Some(5_000), ..ActivationBudget::default() };
    let request = ActivationRequest { budget, ..text_only() };
    outcome_of(&mut ledger, &long, &request, 0);
    assert_eq!(outcome_of(&mut ledger, &long, &request, 1), LedgerRecordOutcome::AlreadyActive);
    assert_eq!((ledger.hits(), ledger.misses()), (1, 1));
}

#[test]
fn a_changed_file_or_other_arguments_replace_the_activation() {
    let mut ledger = Ledger::default();
    let old = make_entry("pdf", "", "Old $ARGUMENTS");
    let new = make_entry("pdf", "", "New $ARGUMENTS");
    outcome_of(&mut ledger, &old, &text_only(), 0);
    let changed = LedgerRecordOutcome::Changed { previous: old.skill.digest() };
    assert_eq!(outcome_of(&mut ledger, &new, &text_only(), 1), changed);
    let request = ActivationRequest { arguments: "x", ..text_only() };
    let changed = LedgerRecordOutcome::Changed { previous: new.skill.digest() };
    assert_eq!(outcome_of(&mut ledger, &new, &request, 2), changed);
    assert_eq!(ledger.held().len(), 1);
    assert_eq!(ledger.held()[0].activation.body, "New x");
}

#[test]
fn an_activation_without_resources_does_not_poison_a_later_one_with_them() {
    let mut ledger = Ledger::default();
    let pdf = make_entry("pdf", "", "Fill it.");
    outcome_of(&mut ledger, &pdf, &text_only(), 0);
    assert_eq!(
        outcome_of(&mut ledger, &pdf, &ActivationRequest::default(), 1),
        LedgerRecordOutcome::Extended
    );
    assert!(ledger.get("pdf", 1).unwrap().activation.resources.is_some());
    assert_eq!(outcome_of(&mut ledger, &pdf, &text_only(), 2), LedgerRecordOutcome::AlreadyActive);
    assert!(ledger.get("pdf", 2).unwrap().activation.resources.is_some());
}

#[test]
fn a_larger_budget_extends_a_body_that_was_cut() {
    let mut ledger = Ledger::default();
    let long = make_entry("long", "", &"A line.\n".repeat(200));
    let tight = ActivationBudget { body_chars_max: 200, ..ActivationBudget::default() };
    let tight = ActivationRequest { budget: tight, ..text_only() };
    outcome_of(&mut ledger, &long, &tight, 0);
    assert_eq!(outcome_of(&mut ledger, &long, &text_only(), 1), LedgerRecordOutcome::Extended);
    assert_eq!(outcome_of(&mut ledger, &long, &tight, 2), LedgerRecordOutcome::AlreadyActive);
    assert_eq!(ledger.held()[0].activation.cut, None);
}

#[test]
fn an_activation_is_fresh_for_an_hour() {
    let mut ledger = Ledger::default();
    let pdf = make_entry("pdf", "", "Fill it.");
    outcome_of(&mut ledger, &pdf, &text_only(), 1_000);
    assert!(ledger.get("pdf", 1_000 + HOUR_MS).is_some());
    assert!(ledger.get("pdf", 1_001 + HOUR_MS).is_none());
    assert!(ledger.get("pdf", 0).is_some(), "a clock that goes back makes nothing old");
    let later = 1_001 + HOUR_MS;
    assert_eq!(outcome_of(&mut ledger, &pdf, &text_only(), later), LedgerRecordOutcome::Activated);
    assert_eq!(ledger.get("pdf", later).unwrap().activated_ms, later);
}

#[test]
fn the_least_recently_used_skill_gives_way_and_is_named() {
    let mut ledger = Ledger::new(HOUR_MS, 2);
    for (now_ms, name) in ["a", "b", "a"].into_iter().enumerate() {
        outcome_of(&mut ledger, &make_entry(name, "", "x"), &text_only(), now_ms as u64);
    }
    let (_, recorded) = ledger.activate(&make_entry("c", "", "x"), &text_only(), 9);
    assert_eq!(recorded.evicted, ["b"]);
    assert_eq!(ids(ledger.held()), ["a", "c"]);
}

#[test]
fn one_skill_or_all_can_be_cleared() {
    let mut ledger = Ledger::default();
    for name in ["a", "b", "c"] {
        outcome_of(&mut ledger, &make_entry(name, "", "x"), &text_only(), 0);
    }
    assert!(ledger.remove_skill("b"));
    assert!(!ledger.remove_skill("b"));
    assert_eq!(ids(ledger.held()), ["a", "c"]);
    ledger.remove_all();
    assert!(ledger.held().is_empty());
}

#[test]
fn the_newest_bodies_are_put_back_within_the_budget() {
    let mut ledger = Ledger::default();
    for name in ["old", "mid", "new"] {
        let body = format!("{name}\n{}", "word ".repeat(800));
        outcome_of(&mut ledger, &make_entry(name, "", &body), &text_only(), 0);
    }
    let found = ledger.reattach(&ReattachBudget { tokens_each: 500, tokens_total: 1_000 });
    let names: Vec<&str> = found.activations.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(names, ["new", "mid"]);
    assert_eq!(found.left_out, ["old"]);
    assert!(found.activations.iter().all(|one| estimate_tokens(&one.body) <= 500));
    assert!(found.activations[0].body.starts_with("new\nword"));
    let whole = ledger.reattach(&ReattachBudget::default());
    assert_eq!((whole.activations.len(), whole.activations[2].cut), (3, None));
}

#[test]
fn a_ledger_comes_back_from_disk_as_it_was() {
    let mut ledger = Ledger::new(5, 7);
    let request = ActivationRequest { arguments: "x", ..ActivationRequest::default() };
    outcome_of(&mut ledger, &make_entry("pdf", "", &"Fill it.\n".repeat(9_000)), &request, 3);
    outcome_of(&mut ledger, &make_entry("b", "", "B."), &text_only(), 4);
    let text = serde_json::to_string(&ledger).unwrap();
    let back: Ledger = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    assert_eq!(ids(back.held()), ["pdf", "b"]);
    assert_eq!(back.held()[0].activation.resources, Some(Vec::new()));
}

#[test]
fn unknown_fields_are_passed_over_and_a_later_version_is_refused() {
    let digest = ContentDigest::hash_bytes(b"");
    let held = format!(
        r#"{{"id":"a","name":"a","digest":"{digest}","body":"b","file":"/a","root":"/","scope":"user","new":1}}"#
    );
    let ledger: Ledger =
        serde_json::from_str(&format!(r#"{{"version":1,"held":[{held}],"x":{{}}}}"#)).unwrap();
    assert_eq!(ledger.held()[0].activation.trust, crate::trust::TrustLevel::Untrusted);
    let error = serde_json::from_str::<Ledger>(r#"{"version":2}"#).unwrap_err();
    assert_eq!(error.to_string(), "the ledger has version 2; this program knows version 1");
}
