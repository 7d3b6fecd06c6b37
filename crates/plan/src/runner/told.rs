//! What an agent is told of a recovery that came before it: what is mended already, what did not help, and what may.

use repertoire_journal::{FixOutcome, Remedy};

use repertoire_checks::declared::{fenced, notes};
use repertoire_checks::memory::{Advice, Offer};
use repertoire_checks::recover::{Attempt, Recovered};
use crate::limits::{OFFER_CHARS_MAX, OFFERS_SHOWN};

/// What the last checks said, with what was tried and what may help.
pub(super) fn told(recovered: &Recovered) -> String {
    let is_kept = |one: &&Attempt| one.fix.is_some() && one.outcome == FixOutcome::Worked;
    let is_gone = |one: &&Attempt| one.fix.is_some() && one.outcome != FixOutcome::Worked;
    let is_wait = |one: &&Attempt| one.fix.is_none();
    let some = |heading: &str, is_meant: &dyn Fn(&&Attempt) -> bool| {
        let lines: Vec<String> = recovered.attempts.iter().filter(is_meant).map(in_words).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("\n{heading}:\n\n{}\n", lines.join("\n")),
        }
    };
    [
        notes(&recovered.verdict),
        some("Mended already, and committed; leave it as it is", &is_kept),
        some("Tried without success, and taken back", &is_gone),
        some("Waited for, in case it passes by itself", &is_wait),
        offers(&recovered.advice),
    ]
    .concat()
}

fn in_words(attempt: &Attempt) -> String {
    let strategy = attempt.strategy.as_str().replace('_', " ");
    let command = attempt.fix.as_ref().and_then(|fix| match &fix.remedy {
        Remedy::Command(words) => Some(format!(" (`{}`)", words.join(" "))),
        _ => None,
    });
    format!("- {strategy}{}: {}", command.unwrap_or_default(), attempt.reason)
}

/// What helped before and may help again, for an agent to judge.
fn offers(advice: &Advice) -> String {
    let all: Vec<String> = advice.offers.iter().take(OFFERS_SHOWN).map(offered).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("\nSeen before; this is what was tried then:\n\n{}", all.join("\n")),
    }
}

fn offered(offer: &Offer) -> String {
    let remedy = &offer.fix.fix.remedy;
    let language = match remedy {
        Remedy::Patch(_) => "diff",
        Remedy::Command(_) => "sh",
        Remedy::Advice(_) => "text",
    };
    let text = remedy.text();
    let cut = match text.char_indices().nth(OFFER_CHARS_MAX) {
        None => fenced(language, &text),
        Some((at, _)) => {
            let left = text[at..].chars().count();
            format!("{}({left} characters more are left out.)\n", fenced(language, &text[..at]))
        }
    };
    format!("A {} ({}):\n\n{cut}", remedy.kind(), offer.reason)
}

#[cfg(test)]
mod tests {
    use repertoire_journal::memory::FixOrigin;
    use repertoire_journal::{Fix, KnownFix};

    use super::*;
    use repertoire_checks::declared::Verdict;
    use repertoire_checks::memory::FixState;
    use repertoire_checks::recover::{Class, State, Strategy};

    fn fix(remedy: Remedy) -> Fix {
        Fix { remedy, preconditions: Vec::new(), origin: FixOrigin::Learnt }
    }

    fn attempt(strategy: Strategy, fix: Option<Fix>, outcome: FixOutcome, reason: &str) -> Attempt {
        Attempt {
            signature: "9f2c41d07ab3e655".to_owned(),
            class: Class::Mechanical,
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
            fix(Remedy::Command(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        let patch = "diff --git a/a.md b/a.md\n@@ -1 +1 @@\n-old\n+```new```\n";
        let offer = Offer {
            signature: "9f2c41d07ab3e655".to_owned(),
            fix: KnownFix::new(fix(Remedy::Patch(patch.to_owned())), 5),
            state: FixState::Suggested,
            reason: "same failure: nobody has verified it here".to_owned(),
            similarity: None,
        };
        let recovered = Recovered {
            attempts: vec![
                attempt(Strategy::Backoff, None, FixOutcome::Failed, "after 1.0 s"),
                attempt(
                    Strategy::LinterFix,
                    Some(command(&["cargo", "fmt"])),
                    FixOutcome::Worked,
                    "the failure is gone, and nothing new came",
                ),
                attempt(
                    Strategy::LearnedFix,
                    Some(command(&["mender", "now"])),
                    FixOutcome::Failed,
                    "the failure is still there",
                ),
            ],
            state: State::Red { reason: "enough".to_owned() },
            payloads: Vec::new(),
            advice: Advice { offers: vec![offer], ..Advice::default() },
            verdict: Verdict::default(),
            tried: Default::default(),
        };
        assert_eq!(
            told(&recovered),
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
