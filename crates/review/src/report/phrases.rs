//! Phrases and figures that several formats share.

use crate::extract::ReviewSeverity;
pub(super) use repertoire_text::invisible::shown_in_report as visible;
use repertoire_text::layout::one_line;

use super::limits::NAME_CHARS_MAX;
use crate::finding::Phase;
use crate::record::{
    CallOutcome, FindingValidation, LeftOutReason, ReportedFinding, ReviewCall, ReviewDepth,
    ReviewRecord, ReviewSubject,
};

/// `1 file`, `2 files`.
pub(super) fn format_count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", format_number(number as u64)),
    }
}

/// `1,234`.
pub(super) fn format_number(number: u64) -> String {
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
pub(super) fn format_duration(ms: u64) -> String {
    match ms {
        0..=9_999 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..=119_999 => format!("{} s", ms / 1000),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// `$0.0123`.
pub(super) fn format_dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// `2026-11-16 09:30 UTC`. Returns `None` if the time is out of range.
pub(super) fn format_time(ms: u64) -> Option<String> {
    let stamp = jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
    Some(stamp.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The cost of the whole review. Returns `None` if no call was made.
pub(super) fn review_cost(review: &ReviewRecord) -> Option<String> {
    calls_cost(&review.calls.iter().collect::<Vec<_>>())
}

/// The known cost of several calls. Returns `None` if none was made.
pub(super) fn calls_cost(calls: &[&ReviewCall]) -> Option<String> {
    let mut made = calls.iter().filter(|call| call.outcome.is_made()).peekable();
    made.peek()?;
    let (mut sum, mut known, mut whole) = (0.0, false, true);
    for call in made {
        sum += call.cost_usd.unwrap_or_default();
        known |= call.cost_usd.is_some();
        // A call that failed before it reached a model probably cost nothing.
        whole &= call.cost_usd.is_some()
            || (call.outcome == CallOutcome::Failed && total_tokens(call) == 0);
    }
    Some(match (known, whole) {
        (true, true) => format_dollars(sum),
        (true, false) => format!("at least {}", format_dollars(sum)),
        (false, _) => "unknown".to_owned(),
    })
}

/// The input and output tokens of a call.
pub(super) fn total_tokens(call: &ReviewCall) -> u64 {
    call.input_tokens.saturating_add(call.output_tokens)
}

/// `quick review`, `review by patterns alone`, `deep review of documentation`.
pub(super) fn describe_kind(review: &ReviewRecord) -> String {
    let of = match review.subject {
        ReviewSubject::Code => "",
        ReviewSubject::Docs => " of documentation",
    };
    match review.depth {
        ReviewDepth::Patterns => format!("review{of} by patterns alone"),
        ReviewDepth::Quick => format!("quick review{of}"),
        ReviewDepth::Deep => format!("deep review{of}"),
    }
}

/// `quick`, `deep`, `patterns`.
pub(super) fn depth_name(depth: ReviewDepth) -> &'static str {
    match depth {
        ReviewDepth::Patterns => "patterns",
        ReviewDepth::Quick => "quick",
        ReviewDepth::Deep => "deep",
    }
}

/// `code`, `docs`.
pub(super) fn subject_name(subject: ReviewSubject) -> &'static str {
    match subject {
        ReviewSubject::Code => "code",
        ReviewSubject::Docs => "docs",
    }
}

/// `completed`, `failed`, `skipped`, `not asked`.
pub(super) fn outcome_name(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Completed => "completed",
        CallOutcome::Failed => "failed",
        CallOutcome::Skipped => "skipped",
        CallOutcome::Unasked => "not asked",
    }
}

/// The number of agents that reviewed the change and answered.
pub(super) fn count_agents(review: &ReviewRecord) -> usize {
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
pub(super) fn category_title<'a>(review: &'a ReviewRecord, key: &'a str) -> &'a str {
    review.categories.iter().find(|category| category.key == key).map_or(key, |known| &known.title)
}

/// `Security, Bugs`.
pub(super) fn category_titles(review: &ReviewRecord, finding: &ReportedFinding) -> String {
    let names: Vec<&str> =
        finding.categories.iter().map(|key| category_title(review, key)).collect();
    names.join(", ")
}

/// The number of findings with this severity.
pub(super) fn count_with_severity(review: &ReviewRecord, severity: ReviewSeverity) -> usize {
    review.findings.iter().filter(|finding| finding.severity == severity).count()
}

/// The keys and titles of the categories that were looked for, and of others that findings have.
pub(super) fn table_categories(review: &ReviewRecord) -> Vec<(&str, &str)> {
    let known = review.categories.iter();
    let mut out: Vec<(&str, &str)> =
        known.map(|known| (known.key.as_str(), known.title.as_str())).collect();
    for finding in &review.findings {
        let key = leading_category(finding);
        if !out.iter().any(|(known, _)| *known == key) {
            out.push((key, key));
        }
    }
    out
}

/// The leading category of a finding.
pub(super) fn leading_category(finding: &ReportedFinding) -> &str {
    finding.categories.first().map_or("review", String::as_str)
}

/// The number of findings led by a category, by severity, worst first.
pub(super) fn category_counts(review: &ReviewRecord, key: &str) -> [usize; 4] {
    ReviewSeverity::ALL.map(|severity| {
        let of = |finding: &&ReportedFinding| {
            finding.severity == severity && leading_category(finding) == key
        };
        review.findings.iter().filter(of).count()
    })
}

/// `1 critical, 2 minor`.
pub(super) fn severity_counts_text(review: &ReviewRecord) -> String {
    let counted = ReviewSeverity::ALL
        .into_iter()
        .map(|severity| (severity, count_with_severity(review, severity)));
    let some = counted.filter(|(_, number)| *number > 0);
    let words = some.map(|(severity, number)| {
        let plural = if severity == ReviewSeverity::Suggestion && number > 1 { "s" } else { "" };
        format!("{} {}{plural}", format_number(number as u64), severity.as_str().to_lowercase())
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes the result of a validation.
pub(super) fn describe_validation(validation: &FindingValidation) -> String {
    match validation {
        FindingValidation::Pattern => "its pattern matches".to_owned(),
        FindingValidation::Valid { reason } => with_reason("a validator agreed", reason),
        FindingValidation::Downgraded { from, reason } => {
            with_reason(&format!("a validator agreed and thought it less than {from}"), reason)
        }
        FindingValidation::Accepted => "not checked at this depth".to_owned(),
        FindingValidation::Unverified { reason } => with_reason("not verified", reason),
    }
}

fn with_reason(words: &str, reason: &str) -> String {
    match reason.trim() {
        "" => words.to_owned(),
        reason => format!("{words}: {reason}"),
    }
}

/// The reason for leaving out findings, phrased so that it can follow a number.
pub(super) fn describe_reason(why: LeftOutReason) -> &'static str {
    match why {
        LeftOutReason::Malformed => "malformed",
        LeftOutReason::NotInTheChange => "in files outside the change",
        LeftOutReason::NoSuchLines => "about lines that do not exist",
        LeftOutReason::OutsideTheDiff => "outside the diff",
        LeftOutReason::NoFailureScenario => "without a failure scenario",
        LeftOutReason::Repeated => "said twice",
        LeftOutReason::SkipZone => "about what was found already",
        LeftOutReason::TooMild => "too mild for the phase",
        LeftOutReason::TooMany => "over an agent's limit",
        LeftOutReason::Invalid => "rejected by a validator",
        LeftOutReason::Unfounded => "unfounded",
        LeftOutReason::FalsePositiveRule => "matched by a false-positive rule",
        LeftOutReason::Suppressed => "suppressed",
        LeftOutReason::Known => "reported before",
        LeftOutReason::BelowMinimum => "below the severity that was asked for",
    }
}

/// The number of left-out findings by reason, most frequent first.
pub(super) fn count_left_out(review: &ReviewRecord) -> Vec<(LeftOutReason, usize)> {
    let mut counted: Vec<(LeftOutReason, usize)> = Vec::new();
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
pub(super) fn left_out_text(review: &ReviewRecord) -> String {
    let words = count_left_out(review)
        .into_iter()
        .map(|(reason, number)| format!("{number} {}", describe_reason(reason)));
    words.collect::<Vec<_>>().join(", ")
}

/// The warnings of a review, and one for each failed call whose agent no other warning mentions. Warnings about
/// unresolved skills are not included.
pub(super) fn all_warnings(review: &ReviewRecord) -> Vec<String> {
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
pub(super) fn all_phases(review: &ReviewRecord) -> Vec<Phase> {
    let mut phases: Vec<Phase> = review.planned.iter().map(|planned| planned.phase).collect();
    for call in &review.calls {
        if !phases.contains(&call.phase) {
            phases.push(call.phase);
        }
    }
    phases
}

/// The additional texts of a finding, with labels: the fields of its category, and findings of other categories.
pub(super) fn labelled_texts(
    review: &ReviewRecord,
    finding: &ReportedFinding,
) -> Vec<(String, String)> {
    let details = finding.details.iter().map(|(key, text)| (label_from_key(key), text.clone()));
    let also = finding.also.iter().map(|also| {
        let what = format!("Also {}, {}", category_title(review, &also.category), also.severity);
        (what, format!("{}. {}", also.title.trim_end_matches('.'), also.description))
    });
    details.chain(also).collect()
}

/// Converts a key such as `attack_vector` to `Attack vector`.
pub(super) fn label_from_key(key: &str) -> String {
    let words = clip_text(key, NAME_CHARS_MAX).replace(['_', '-'], " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Truncates a text to `chars_max` characters, with a note that says how many were cut.
pub(super) fn clip_text(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => {
            let more = text[at..].chars().count() as u64;
            format!("{} … ({} characters more)", &text[..at], format_number(more))
        }
    }
}

/// Collapses whitespace to put a text on one line, and truncates it. Invisible characters are kept: each format shows
/// them in its own way.
pub(super) fn to_one_line(text: &str, chars_max: usize) -> String {
    clip_text(&one_line(text), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_how_much() {
        assert_eq!(clip_text("ärger", 5), "ärger");
        assert_eq!(clip_text("ärger", 2), "är … (3 characters more)");
        assert_eq!(to_one_line(" a \n b\t c ", 9), "a b c");
    }

    #[test]
    fn hidden_characters_are_seen_and_lines_stay_lines() {
        assert_eq!(visible("a\r\nb\tc\u{1b}[2J\u{202e}\r"), "a\nb\tc⟨U+001B⟩[2J⟨U+202E⟩⟨U+000D⟩");
    }

    #[test]
    fn a_key_becomes_a_label() {
        assert_eq!(label_from_key("attack_vector"), "Attack vector");
        assert_eq!(label_from_key(""), "");
    }

    #[test]
    fn a_moment_is_told_in_utc() {
        assert_eq!(format_time(1_763_285_400_000).as_deref(), Some("2025-11-16 09:30 UTC"));
        assert_eq!(format_time(u64::MAX), None);
    }
}
