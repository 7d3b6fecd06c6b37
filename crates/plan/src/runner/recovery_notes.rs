//! The notes about a recovery for the agent that continues: what is fixed, what did not help, and
//! what may help.

use repertoire_journal::{FixOutcome, FixRemedy};

use crate::limits::{OFFER_CHARS_MAX, OFFERS_SHOWN};
use repertoire_checks::declared::{failure_notes, fence_block};
use repertoire_checks::memory::{FixAdvice, FixOffer};
use repertoire_checks::recover::{RecoverAttempt, RecoverResult};

/// Describes the failing checks, the attempts so far, and fixes that may help.
pub(super) fn recovery_notes(recovered: &RecoverResult) -> String {
    let (waits, fixes): (Vec<&RecoverAttempt>, Vec<&RecoverAttempt>) =
        recovered.attempts.iter().partition(|attempt| attempt.fix.is_none());
    let (kept, reverted): (Vec<&RecoverAttempt>, Vec<&RecoverAttempt>) =
        fixes.into_iter().partition(|attempt| attempt.outcome == FixOutcome::Worked);
    [
        failure_notes(&recovered.verdict),
        attempts_section("Mended already, and committed; leave it as it is", &kept),
        attempts_section("Tried without success, and taken back", &reverted),
        attempts_section("Waited for, in case it passes by itself", &waits),
        offers_section(&recovered.advice),
    ]
    .concat()
}

fn attempts_section(heading: &str, attempts: &[&RecoverAttempt]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = attempts.iter().map(|attempt| describe_attempt(attempt)).collect();
    format!("\n{heading}:\n\n{}\n", lines.join("\n"))
}

fn describe_attempt(attempt: &RecoverAttempt) -> String {
    let strategy = attempt.strategy.as_str().replace('_', " ");
    let command = attempt.fix.as_ref().and_then(|fix| match &fix.remedy {
        FixRemedy::Command(words) => Some(format!(" (`{}`)", words.join(" "))),
        _ => None,
    });
    format!("- {strategy}{}: {}", command.unwrap_or_default(), attempt.reason)
}

/// Fixes that worked before, for the agent to judge.
fn offers_section(advice: &FixAdvice) -> String {
    let all: Vec<String> = advice.offers.iter().take(OFFERS_SHOWN).map(describe_offer).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("\nSeen before; this is what was tried then:\n\n{}", all.join("\n"))
    }
}

fn describe_offer(offer: &FixOffer) -> String {
    let remedy = &offer.fix.fix.remedy;
    let language = match remedy {
        FixRemedy::Patch(_) => "diff",
        FixRemedy::Command(_) => "sh",
        FixRemedy::Advice(_) => "text",
    };
    let text = remedy.to_text();
    let cut = match text.char_indices().nth(OFFER_CHARS_MAX) {
        None => fence_block(language, &text),
        Some((at, _)) => {
            let left = text[at..].chars().count();
            format!(
                "{}({left} characters more are left out.)\n",
                fence_block(language, &text[..at])
            )
        }
    };
    format!("A {} ({}):\n\n{cut}", remedy.kind(), offer.reason)
}

#[cfg(test)]
mod tests {
    use repertoire_journal::memory::FixOrigin;
    use repertoire_journal::{FailureFix, KnownFix};

    use super::*;
    use repertoire_checks::declared::CheckRunVerdict;
    use repertoire_checks::memory::FixState;
    use repertoire_checks::recover::{FailureClass, RecoverState, RecoverStrategy};

    fn fix(remedy: FixRemedy) -> FailureFix {
        FailureFix { remedy, preconditions: Vec::new(), origin: FixOrigin::Learnt }
    }

    fn attempt(
        strategy: RecoverStrategy,
        fix: Option<FailureFix>,
        outcome: FixOutcome,
        reason: &str,
    ) -> RecoverAttempt {
        RecoverAttempt {
            signature: "9f2c41d07ab3e655".to_owned(),
            class: FailureClass::Mechanical,
            strategy,
            fix,
            backup: None,
            changed: Vec::new(),
            outcome,
            reason: reason.to_owned(),
            seconds: 0.1,
        }
    }

    #[test]
    fn what_is_mended_what_was_taken_back_and_what_may_help_are_told_apart() {
        let command = |words: &[&str]| {
            fix(FixRemedy::Command(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        let patch = "diff --git a/a.md b/a.md\n@@ -1 +1 @@\n-old\n+```new```\n";
        let offer = FixOffer {
            signature: "9f2c41d07ab3e655".to_owned(),
            fix: KnownFix::new(fix(FixRemedy::Patch(patch.to_owned())), 5),
            state: FixState::Suggested,
            reason: "same failure: nobody has verified it here".to_owned(),
            similarity: None,
        };
        let recovered = RecoverResult {
            attempts: vec![
                attempt(RecoverStrategy::Backoff, None, FixOutcome::Failed, "after 1.0 s"),
                attempt(
                    RecoverStrategy::LinterFix,
                    Some(command(&["cargo", "fmt"])),
                    FixOutcome::Worked,
                    "the failure is gone, and nothing new came",
                ),
                attempt(
                    RecoverStrategy::LearnedFix,
                    Some(command(&["mender", "now"])),
                    FixOutcome::Failed,
                    "the failure is still there",
                ),
            ],
            state: RecoverState::Red { reason: "enough".to_owned() },
            payloads: Vec::new(),
            advice: FixAdvice { offers: vec![offer], ..FixAdvice::default() },
            verdict: CheckRunVerdict::default(),
            tried: Default::default(),
        };
        assert_eq!(
            recovery_notes(&recovered),
            "\nMended already, and committed; leave it as it is:\n\n\
             - linter fix (`cargo fmt`): the failure is gone, and nothing new came\n\n\
             Tried without success, and taken back:\n\n\
             - learned fix (`mender now`): the failure is still there\n\n\
             Waited for, in case it passes by itself:\n\n- backoff: after 1.0 s\n\n\
             Seen before; this is what was tried then:\n\n\
             A patch (same failure: nobody has verified it here):\n\n\
             ````diff\ndiff --git a/a.md b/a.md\n@@ -1 +1 @@\n-old\n+```new```\n````\n"
        );
    }
}
