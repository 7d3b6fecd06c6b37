use super::*;

fn fix(word: &str) -> FailureFix {
    FailureFix {
        remedy: FixRemedy::Command(vec!["cargo".into(), word.into()]),
        preconditions: Vec::new(),
        origin: FixOrigin::Learnt,
    }
}

fn tried(word: &str, outcome: FixOutcome) -> MemoryObservation {
    let run = Some(RunId::known("r"));
    MemoryObservation::Tried { fix: fix(word), outcome, reason: "why".into(), run }
}

fn seen(tool: &str) -> MemoryObservation {
    let (category, example) = ("build".to_owned(), "it broke".to_owned());
    MemoryObservation::Seen { category, code: None, tool: tool.to_owned(), example }
}

fn after(observations: &[MemoryObservation]) -> FailureKnowledge {
    let mut known = FailureKnowledge::default();
    for (at_ms, observation) in (1..).zip(observations) {
        known.apply("repo", "abc", observation, at_ms);
    }
    known
}

#[track_caller]
fn check(outcomes: &[FixOutcome], confidence: f64) {
    let observations: Vec<_> = outcomes.iter().map(|outcome| tried("a", *outcome)).collect();
    let known = after(&observations);
    let fix = &known.fixes[&fix("a").id()];
    assert!((fix.confidence - confidence).abs() < 0.006, "{} for {outcomes:?}", fix.confidence);
    assert_eq!(fix.tried, fix.worked + fix.failed);
}

#[test]
fn confidence_rises_and_falls_as_the_skill_says() {
    use FixOutcome::{Failed, Unknown, Worked};
    check(&[Worked], 0.65);
    check(&[Worked, Worked], 0.76);
    check(&[Worked, Failed], 0.46);
    check(&[Worked, Failed, Failed], 0.32);
    check(&[Worked, Failed, Failed, Failed, Failed], 0.16);
    check(&[Worked, Unknown, Unknown], 0.65);
}

#[test]
fn what_could_not_be_verified_changes_no_count() {
    let known = after(&[tried("a", FixOutcome::Unknown)]);
    let fix = &known.fixes[&fix("a").id()];
    assert_eq!((fix.tried, fix.last_ms, fix.evidence.len()), (0, None, 0));
    assert_eq!(fix.last_reason, "why");
}

#[test]
fn a_fix_belongs_to_the_tool_that_it_was_verified_with() {
    let known = after(&[seen("cargo"), tried("a", FixOutcome::Worked), seen("tsc")]);
    let failure = known.failure.unwrap();
    assert_eq!((failure.tool.as_str(), failure.seen), ("cargo", 2));
    assert_eq!((failure.first_ms, failure.last_ms), (1, 3));
}

#[test]
fn the_same_remedy_is_the_same_fix_whoever_found_it() {
    let taught = FailureFix { origin: FixOrigin::Taught, ..fix("a") };
    assert_eq!(taught.id(), fix("a").id());
    assert_ne!(fix("a").id(), fix("b").id());
    let words = FailureFix { remedy: FixRemedy::Advice("cargo a".into()), ..fix("a") };
    assert_ne!(words.id(), fix("a").id());
}

#[test]
fn a_lesson_does_not_overwrite_what_was_seen_here() {
    let mut known = after(&[seen("cargo"), tried("a", FixOutcome::Worked)]);
    let mine = known.clone();
    let failure = KnownFailure { seen: 0, ..mine.failure.clone().unwrap() };
    let lesson = MemoryObservation::Taught { failure, fixes: vec![KnownFix::new(fix("a"), 9)] };
    known.apply("repo", "abc", &lesson, 9);
    assert_eq!(known, mine);
}

#[test]
fn the_weakest_fix_makes_room() {
    let mut observations = vec![tried("weak", FixOutcome::Failed)];
    let worked = |n| tried(&format!("w{n}"), FixOutcome::Worked);
    observations.extend((0..FIXES_MAX).map(worked));
    let known = after(&observations);
    assert_eq!(known.fixes.len(), FIXES_MAX);
    assert!(!known.fixes.contains_key(&fix("weak").id()));
}
