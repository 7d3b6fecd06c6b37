//! Finds the change of an agent from which a fix can be learnt, in the past steps of a run. Pure. A
//! success is learnt once, and only the change between the failing and the passing checks belongs
//! to it.

use std::collections::BTreeSet;

use super::state::{PastStep, PlanStepKind, VerifiedAfter};

/// A change that resolved failures, according to the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenLesson {
    /// The signatures of the failures before the change.
    pub failures: BTreeSet<String>,
    /// The commit before the agent's step.
    pub from: String,
    /// The commit on which the checks first passed.
    pub to: String,
}

/// The lesson of the last step, which must be a passed verification. There is none if a review is
/// still to come, or if the success was used before.
pub fn find_lesson(history: &[PastStep], review: bool) -> Option<ProvenLesson> {
    let (last, before) = history.split_last()?;
    if !is_proof(last, review) {
        return None;
    }
    let mut to = last.began_on.clone()?;
    let mut from = None;
    for past in before.iter().rev().filter(|past| past.is_counted()) {
        match (past.kind, &from) {
            (PlanStepKind::Implementation, _) => from = past.began_on.clone(),
            (PlanStepKind::Verification, None) if past.is_ok() && past.after != last.after => {
                to = past.began_on.clone()?;
            }
            // A review without a verdict is repeated, and the work stays as it is.
            (PlanStepKind::Review, None) if !past.rejects_work() => {}
            (PlanStepKind::Verification | PlanStepKind::Recovery, Some(_))
                if is_red_for(past, last) =>
            {
                let failures = past.result.failures.clone().filter(|all| !all.is_empty())?;
                return Some(ProvenLesson { failures, from: from?, to });
            }
            _ => return None,
        }
    }
    None
}

/// Returns true if this verification is the last step of a task, so that no review follows.
fn is_proof(past: &PastStep, review: bool) -> bool {
    let end = if review { VerifiedAfter::Review } else { VerifiedAfter::Implementation };
    past.kind == PlanStepKind::Verification
        && [Some(VerifiedAfter::Everything), Some(end)].contains(&past.after)
}

/// Only the same checks can tell that a failure is gone: the final verification runs more checks
/// than that of a task.
fn is_red_for(red: &PastStep, green: &PastStep) -> bool {
    let is_final = |past: &PastStep| past.after == Some(VerifiedAfter::Everything);
    red.is_bad() && is_final(red) == is_final(green) && (is_final(red) || red.task == green.task)
}

#[cfg(test)]
mod tests {
    use repertoire_journal::event::{StepOutcome, TaskRef};

    use super::*;
    use crate::state::PlanStepEnd;
    use crate::step_result::PlanStepResult;

    /// Steps in short form: the kind, what it came after, and how it ended. The last one is in
    /// progress.
    fn history(words: &[&str]) -> Vec<PastStep> {
        let task = |id: &str| Some(TaskRef { id: id.to_owned(), label: id.to_owned() });
        let past = |(at, words): (usize, &&str)| {
            let mut parts = words.split(' ');
            let kind = PlanStepKind::from_word(parts.next().unwrap()).unwrap();
            let (mut ended, mut after, mut about) = (None, None, task("a"));
            for part in parts {
                match part {
                    "ok" => ended = Some(PlanStepEnd::With(StepOutcome::Ok)),
                    "red" => ended = Some(PlanStepEnd::With(StepOutcome::Failed)),
                    "back" => ended = Some(PlanStepEnd::With(StepOutcome::SentBack)),
                    "lost" => ended = Some(PlanStepEnd::Interrupted),
                    "done" => after = Some(VerifiedAfter::Implementation),
                    "reviewed" => after = Some(VerifiedAfter::Review),
                    "final" => (after, about) = (Some(VerifiedAfter::Everything), None),
                    other => about = task(other),
                }
            }
            let number = u32::try_from(at).unwrap();
            let result = match ended {
                Some(PlanStepEnd::With(StepOutcome::Failed | StepOutcome::SentBack)) => {
                    PlanStepResult {
                        failures: Some([format!("of {at}")].into()),
                        ..PlanStepResult::default()
                    }
                }
                _ => PlanStepResult::default(),
            };
            let (began_on, reason) = (Some(format!("c{at}")), None);
            PastStep { number, kind, after, task: about, began_on, ended, reason, result }
        };
        words.iter().enumerate().map(past).collect()
    }

    /// The step whose failures are gone, and the two commits; or nothing.
    #[track_caller]
    fn check(review: bool, words: &[&str], expected: Option<(&str, &str, &str)>) {
        let lesson = find_lesson(&history(words), review);
        let found = lesson.as_ref().map(|lesson| {
            let failure = lesson.failures.first().unwrap();
            (failure.as_str(), lesson.from.as_str(), lesson.to.as_str())
        });
        assert_eq!(found, expected, "{words:?}");
    }

    const I: &str = "implementation ok";
    const RED: &str = "verification done red";
    const GREEN: &str = "verification done ok";

    #[test]
    fn without_a_review_green_checks_are_the_proof() {
        let now = "verification done";
        check(false, &[I, RED, I, now], Some(("of 1", "c2", "c3")));
        check(false, &[I, RED, I, RED, "implementation red", I, now], Some(("of 3", "c4", "c6")));
        check(false, &[I, RED, "recovery done back", I, now], Some(("of 2", "c3", "c4")));
        check(false, &[I, RED, "recovery done lost", I, now], Some(("of 1", "c3", "c4")));
        check(false, &[I, RED, "recovery done ok", now], None);
        check(false, &[I, now], None);
        check(false, &[I, RED, "implementation ok b", "verification done b"], None);
    }

    #[test]
    fn with_a_review_the_last_checks_are_the_proof_of_the_first_green_change() {
        let now = "verification reviewed";
        check(true, &[I, RED, I, "verification done"], None);
        check(true, &[I, RED, I, GREEN, "review ok", now], Some(("of 1", "c2", "c3")));
        let twice = ["review red", "review lost", "review ok"];
        let twice = [&[I, RED, I, GREEN], &twice[..], &[now]].concat();
        check(true, &twice, Some(("of 1", "c2", "c3")));
        check(true, &[I, RED, I, GREEN, "review back", I, GREEN, "review ok", now], None);
        check(true, &[I, RED, I, GREEN, "review ok", "verification reviewed ok", now], None);
    }

    #[test]
    fn what_the_final_checks_found_is_proved_by_them_and_by_nothing_less() {
        let red = "verification final red";
        let (work, done) = ("implementation ok f", "verification done ok f");
        check(false, &[red, work, "verification done f"], None);
        check(false, &[red, work, done, "verification final"], Some(("of 0", "c1", "c2")));
        let now = "verification final";
        check(false, &[red, work, done, "verification final ok", now], None);
        check(false, &[I, RED, I, GREEN, now], None);
    }
}
