//! Phrases and figures that several formats share.

use crate::extract::Severity;
pub(super) use repertoire_text::invisible::shown_in_report as visible;

use super::limits::NAME_CHARS_MAX;
use crate::finding::Phase;
use crate::record::{Call, CallOutcome, Depth, Reported, Review, Subject, Validation, Why};

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", thousands(number as u64)),
    }
}

/// `1,234`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `0.3 s`, `12 s`, `2 min 5 s`.
pub(super) fn time(ms: u64) -> String {
    match ms {
        0..=9_999 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..=119_999 => format!("{} s", ms / 1000),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// `$0.0123`.
pub(super) fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// `2026-11-16 09:30 UTC`. Returns `None` if the time is out of range.
pub(super) fn moment(ms: u64) -> Option<String> {
    let stamp = jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
    Some(stamp.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The cost of the whole review. Returns `None` if no call was made.
pub(super) fn cost(review: &Review) -> Option<String> {
    cost_of(&review.calls.iter().collect::<Vec<_>>())
}

/// The known cost of several calls. Returns `None` if none was made.
pub(super) fn cost_of(calls: &[&Call]) -> Option<String> {
    let mut made = calls.iter().filter(|call| call.outcome.is_made()).peekable();
    made.peek()?;
    let (mut sum, mut known, mut whole) = (0.0, false, true);
    for call in made {
        sum += call.cost_usd.unwrap_or_default();
        known |= call.cost_usd.is_some();
        // A call that failed before it reached a model probably cost nothing.
        whole &=
            call.cost_usd.is_some() || (call.outcome == CallOutcome::Failed && tokens(call) == 0);
    }
    Some(match (known, whole) {
        (true, true) => dollars(sum),
        (true, false) => format!("at least {}", dollars(sum)),
        (false, _) => "unknown".to_owned(),
    })
}

/// The input and output tokens of a call.
pub(super) fn tokens(call: &Call) -> u64 {
    call.input_tokens.saturating_add(call.output_tokens)
}

/// `quick review`, `review by patterns alone`, `deep review of documentation`.
pub(super) fn kind(review: &Review) -> String {
    let of = match review.subject {
        Subject::Code => "",
        Subject::Docs => " of documentation",
    };
    match review.depth {
        Depth::Patterns => format!("review{of} by patterns alone"),
        Depth::Quick => format!("quick review{of}"),
        Depth::Deep => format!("deep review{of}"),
    }
}

/// `quick`, `deep`, `patterns`.
pub(super) fn depth(depth: Depth) -> &'static str {
    match depth {
        Depth::Patterns => "patterns",
        Depth::Quick => "quick",
        Depth::Deep => "deep",
    }
}

/// `code`, `docs`.
pub(super) fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Code => "code",
        Subject::Docs => "docs",
    }
}

/// `completed`, `failed`, `skipped`, `not asked`.
pub(super) fn outcome(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Completed => "completed",
        CallOutcome::Failed => "failed",
        CallOutcome::Skipped => "skipped",
        CallOutcome::Unasked => "not asked",
    }
}

/// The number of agents that reviewed the change and answered.
pub(super) fn agents(review: &Review) -> usize {
    let answered = review.calls.iter().filter(|call| is_agent_phase(call.phase));
    let answered = answered.filter(|call| call.outcome == CallOutcome::Completed);
    let mut names: Vec<&str> = answered.map(|call| call.agent.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn is_agent_phase(phase: Phase) -> bool {
    matches!(phase, Phase::Thorough | Phase::Quick | Phase::Gaps)
}

/// The title of a category; its key if the review does not list it.
pub(super) fn category<'a>(review: &'a Review, key: &'a str) -> &'a str {
    review.categories.iter().find(|category| category.key == key).map_or(key, |known| &known.title)
}

/// `Security, Bugs`.
pub(super) fn categories(review: &Review, finding: &Reported) -> String {
    let names: Vec<&str> = finding.categories.iter().map(|key| category(review, key)).collect();
    names.join(", ")
}

/// The number of findings with this severity.
pub(super) fn with_severity(review: &Review, severity: Severity) -> usize {
    review.findings.iter().filter(|finding| finding.severity == severity).count()
}

/// The keys and titles of the categories that were looked for, and of others that findings have.
pub(super) fn table_categories(review: &Review) -> Vec<(&str, &str)> {
    let known = review.categories.iter();
    let mut out: Vec<(&str, &str)> =
        known.map(|known| (known.key.as_str(), known.title.as_str())).collect();
    for finding in &review.findings {
        let key = lead(finding);
        if !out.iter().any(|(known, _)| *known == key) {
            out.push((key, key));
        }
    }
    out
}

/// The leading category of a finding.
pub(super) fn lead(finding: &Reported) -> &str {
    finding.categories.first().map_or("review", String::as_str)
}

/// The number of findings led by a category, by severity, worst first.
pub(super) fn category_counts(review: &Review, key: &str) -> [usize; 4] {
    Severity::ALL.map(|severity| {
        let of = |finding: &&Reported| finding.severity == severity && lead(finding) == key;
        review.findings.iter().filter(of).count()
    })
}

/// `1 critical, 2 minor`.
pub(super) fn by_severity(review: &Review) -> String {
    let counted =
        Severity::ALL.into_iter().map(|severity| (severity, with_severity(review, severity)));
    let some = counted.filter(|(_, number)| *number > 0);
    let words = some.map(|(severity, number)| {
        let plural = if severity == Severity::Suggestion && number > 1 { "s" } else { "" };
        format!("{} {}{plural}", thousands(number as u64), severity.as_str().to_lowercase())
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes the result of a validation.
pub(super) fn believed(validation: &Validation) -> String {
    match validation {
        Validation::Pattern => "its pattern matches".to_owned(),
        Validation::Valid { reason } => with_reason("a validator agreed", reason),
        Validation::Downgraded { from, reason } => {
            with_reason(&format!("a validator agreed and thought it less than {from}"), reason)
        }
        Validation::Accepted => "not checked at this depth".to_owned(),
        Validation::Unverified { reason } => with_reason("not verified", reason),
    }
}

fn with_reason(words: &str, reason: &str) -> String {
    match reason.trim() {
        "" => words.to_owned(),
        reason => format!("{words}: {reason}"),
    }
}

/// The reason for leaving out findings, phrased so that it can follow a number.
pub(super) fn why(why: Why) -> &'static str {
    match why {
        Why::Malformed => "malformed",
        Why::NotInTheChange => "in files outside the change",
        Why::NoSuchLines => "about lines that do not exist",
        Why::OutsideTheDiff => "outside the diff",
        Why::NoFailureScenario => "without a failure scenario",
        Why::Repeated => "said twice",
        Why::SkipZone => "about what was found already",
        Why::TooMild => "too mild for the phase",
        Why::TooMany => "over an agent's limit",
        Why::Invalid => "rejected by a validator",
        Why::Unfounded => "unfounded",
        Why::FalsePositiveRule => "matched by a false-positive rule",
        Why::Suppressed => "suppressed",
        Why::Known => "reported before",
        Why::BelowMinimum => "below the severity that was asked for",
    }
}

/// The number of left-out findings by reason, most frequent first.
pub(super) fn left_out(review: &Review) -> Vec<(Why, usize)> {
    let mut counted: Vec<(Why, usize)> = Vec::new();
    for left_out in &review.left_out {
        match counted.iter_mut().find(|(why, _)| *why == left_out.why) {
            Some((_, number)) => *number += 1,
            None => counted.push((left_out.why, 1)),
        }
    }
    counted.sort_by_key(|(why, number)| (std::cmp::Reverse(*number), *why));
    counted
}

/// `2 suppressed, 1 outside the diff`.
pub(super) fn left_out_words(review: &Review) -> String {
    let words =
        left_out(review).into_iter().map(|(reason, number)| format!("{number} {}", why(reason)));
    words.collect::<Vec<_>>().join(", ")
}

/// The warnings of a review, and one for each failed call whose agent no other warning mentions. Warnings about
/// unresolved skills are not included.
pub(super) fn warnings(review: &Review) -> Vec<String> {
    let mut out = review.warnings.clone();
    for call in review.failed_calls() {
        if review.warnings.iter().any(|warning| warning.contains(&call.agent)) {
            continue;
        }
        let reason = call.reason.as_deref().unwrap_or("the reason is unknown");
        out.push(format!("{} did not answer in the {} phase: {reason}", call.agent, call.phase));
    }
    out
}

/// The phases that were planned or took place, in order.
pub(super) fn phases(review: &Review) -> Vec<Phase> {
    let mut phases: Vec<Phase> = review.planned.iter().map(|planned| planned.phase).collect();
    for call in &review.calls {
        if !phases.contains(&call.phase) {
            phases.push(call.phase);
        }
    }
    phases
}

/// The additional texts of a finding, with labels: the fields of its category, and findings of other categories.
pub(super) fn points(review: &Review, finding: &Reported) -> Vec<(String, String)> {
    let details = finding.details.iter().map(|(key, text)| (label(key), text.clone()));
    let also = finding.also.iter().map(|also| {
        let what = format!("Also {}, {}", category(review, &also.category), also.severity);
        (what, format!("{}. {}", also.title.trim_end_matches('.'), also.description))
    });
    details.chain(also).collect()
}

/// Converts a key such as `attack_vector` to `Attack vector`.
pub(super) fn label(key: &str) -> String {
    let words = clip(key, NAME_CHARS_MAX).replace(['_', '-'], " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Truncates a text to `chars_max` characters, with a note that says how many were cut.
pub(super) fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => {
            let more = text[at..].chars().count() as u64;
            format!("{} … ({} characters more)", &text[..at], thousands(more))
        }
    }
}

/// Collapses whitespace to put a text on one line, and truncates it. Invisible characters are kept: each format shows
/// them in its own way.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    clip(&text.split_whitespace().collect::<Vec<_>>().join(" "), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_how_much() {
        assert_eq!(clip("ärger", 5), "ärger");
        assert_eq!(clip("ärger", 2), "är … (3 characters more)");
        assert_eq!(one_line(" a \n b\t c ", 9), "a b c");
    }

    #[test]
    fn hidden_characters_are_seen_and_lines_stay_lines() {
        assert_eq!(visible("a\r\nb\tc\u{1b}[2J\u{202e}\r"), "a\nb\tc⟨U+001B⟩[2J⟨U+202E⟩⟨U+000D⟩");
    }

    #[test]
    fn a_key_becomes_a_label() {
        assert_eq!(label("attack_vector"), "Attack vector");
        assert_eq!(label(""), "");
    }

    #[test]
    fn a_moment_is_told_in_utc() {
        assert_eq!(moment(1_763_285_400_000).as_deref(), Some("2025-11-16 09:30 UTC"));
        assert_eq!(moment(u64::MAX), None);
    }
}
