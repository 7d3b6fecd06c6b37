//! Parses severities and bold labels: `Injection (Critical)`, `**Name (Major):**`, `**Name** (Severity: Minor): text`.

use super::ReviewSeverity;
use super::inline::{InlineMarkdown, InlineStyle, normalise_words};

/// Maximum length of a bold paragraph that counts as a label without a colon or a severity, in words.
const LABEL_WORDS_MAX: usize = 8;
/// Maximum length of any label, in bytes.
const LABEL_BYTES_MAX: usize = 200;

/// A text that starts in bold.
pub(super) struct BoldLead {
    /// The bold part, without severity and colon.
    pub(super) name: String,
    /// The severity in parentheses, within the bold part or right after it.
    pub(super) severity: Option<ReviewSeverity>,
    /// The text after the bold part.
    pub(super) rest: InlineMarkdown,
    /// True if a colon or a dash separates the two.
    pub(super) parted: bool,
}

impl BoldLead {
    /// The label as the text of a title.
    pub(super) fn title_text(&self) -> String {
        match self.severity {
            Some(severity) => format!("{} ({severity})", self.name),
            None => self.name.clone(),
        }
    }
}

/// Parses a text that starts in bold.
pub(super) fn parse_lead(inline: &InlineMarkdown) -> Option<BoldLead> {
    let first = inline.runs.iter().position(|run| !is_blank(&run.text))?;
    let strong = inline.runs[first..]
        .iter()
        .take_while(|run| run.style == InlineStyle::Strong || is_blank(&run.text))
        .count();
    let (bold, rest) = inline.runs[first..].split_at(strong);
    let bold = super::inline::join_plain(bold.iter().map(|run| run.text.as_str()));
    if bold.is_empty() {
        return None;
    }
    let (name, mut severity) = split_severity(&bold);
    let mut parted = bold.ends_with(':');
    let mut rest = InlineMarkdown { runs: rest.to_vec(), links: inline.links.clone() };
    if let Some(run) = rest.runs.first_mut().filter(|run| run.style == InlineStyle::Plain) {
        let mut text = run.text.trim_start();
        if severity.is_none()
            && let Some((group, after)) = leading_group(text)
            && let Some(found) = severity_in(group)
        {
            severity = Some(found);
            text = after.trim_start();
        }
        let after = text.trim_start_matches([':', '-', '–', '—']);
        parted |= after.len() < text.len();
        run.text = after.trim_start().to_owned();
    }
    Some(BoldLead { name, severity, rest, parted })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns true if a bold lead acts as a heading: nothing follows it, or it has a severity.
pub(super) fn is_title(lead: &BoldLead) -> bool {
    if lead.name.is_empty() || lead.name.len() > LABEL_BYTES_MAX {
        return false;
    }
    if lead.severity.is_some() {
        return lead.parted || lead.rest.is_blank();
    }
    let is_sentence = lead.name.ends_with(['.', '!', '?', ';', ',']);
    let is_short = lead.name.split(' ').count() <= LABEL_WORDS_MAX;
    lead.rest.is_blank() && (lead.parted || is_short && !is_sentence)
}

/// The highest severity that a text names.
pub(super) fn severity_in(text: &str) -> Option<ReviewSeverity> {
    text.split(|c: char| !c.is_alphanumeric()).filter_map(ReviewSeverity::from_word).max()
}

/// Severities of other scales.
const FOREIGN: &[&str] = &[
    "blocker",
    "blocking",
    "fatal",
    "severe",
    "high",
    "medium",
    "moderate",
    "low",
    "important",
    "trivial",
    "warning",
    "error",
    "info",
    "informational",
    "nit",
    "p0",
    "p1",
    "p2",
    "p3",
    "p4",
];

/// Returns a severity of another scale in parentheses or brackets at the end: `Injection (Blocker)`.
pub(super) fn foreign_severity(text: &str) -> Option<&str> {
    let text = text.trim_end_matches([':', ' ']).strip_suffix([')', ']'])?;
    let group = &text[text.rfind(['(', '['])? + 1..];
    let word = group.split(':').next_back()?.trim();
    let is_known = FOREIGN.iter().any(|known| word.eq_ignore_ascii_case(known));
    is_known.then_some(word)
}

/// Splits a name from the severity that follows it in parentheses or brackets.
pub(super) fn split_severity(text: &str) -> (String, Option<ReviewSeverity>) {
    let mut found = None;
    for (open, close) in [('(', ')'), ('[', ']')] {
        let mut from = 0;
        while let Some(start) = text[from..].find(open).map(|at| from + at) {
            let Some(end) = text[start..].find(close).map(|at| start + at) else { break };
            if let Some(severity) = severity_in(&text[start + 1..end]) {
                found = Some((start, end, severity));
            }
            from = end + 1;
        }
    }
    let Some((start, end, severity)) = found else { return (trim_marks(text), None) };
    let before = trim_marks(&text[..start]);
    let name = if before.is_empty() { trim_marks(&text[end + 1..]) } else { before };
    (name, Some(severity))
}

/// Returns the severity that a title names without parentheses: `Critical`, `Critical issues`, `Major: Injection`.
pub(super) fn bare_severity(name: &str) -> Option<ReviewSeverity> {
    let words = normalise_words(name);
    let (first, rest) = words.split_once(' ').unwrap_or((words.as_str(), ""));
    let severity = ReviewSeverity::from_word(first)?;
    let says_no_more =
        matches!(rest, "" | "issues" | "findings" | "checks" | "problems" | "severity" | "level");
    let after = name.trim_start_matches(|c: char| !c.is_alphanumeric()).get(first.len()..)?;
    let is_parted = after.trim_start().starts_with([':', '–', '—', '-']);
    (says_no_more || is_parted).then_some(severity)
}

/// Trims whitespace, colons and dashes.
fn trim_marks(text: &str) -> String {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—');
    text.trim_matches(is_mark).to_owned()
}

/// Removes a section number: `1.2 Security` becomes `Security`.
pub(super) fn without_section_number(name: &str) -> &str {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')'));
    let number = &name[..name.len() - rest.len()];
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.contains(['.', ')'])
        && rest.starts_with(' ');
    if is_number { rest.trim_start() } else { name }
}

fn leading_group(text: &str) -> Option<(&str, &str)> {
    let close = match text.chars().next()? {
        '(' => ')',
        '[' => ']',
        _ => return None,
    };
    let end = text.find(close)?;
    Some((&text[1..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, severity: Option<ReviewSeverity>) {
        assert_eq!(split_severity(text), (name.to_owned(), severity));
    }

    #[test]
    fn a_severity_is_taken_from_the_parentheses() {
        check(
            "Injection Vulnerabilities (Critical):",
            "Injection Vulnerabilities",
            Some(ReviewSeverity::Critical),
        );
        check("Debt (minor/MAJOR)", "Debt", Some(ReviewSeverity::Major));
        check("Tokens (OAuth) (Severity: Major)", "Tokens (OAuth)", Some(ReviewSeverity::Major));
        check("Style [suggestions]", "Style", Some(ReviewSeverity::Suggestion));
        check("(Critical) Injection", "Injection", Some(ReviewSeverity::Critical));
        check("Critical paths", "Critical paths", None);
        check("Broken (Critical", "Broken (Critical", None);
    }

    #[test]
    fn the_number_of_a_section_is_no_part_of_its_name() {
        assert_eq!(without_section_number("1.2 Security"), "Security");
        assert_eq!(without_section_number("3) Security"), "Security");
        assert_eq!(without_section_number("3 rules"), "3 rules");
        assert_eq!(without_section_number("12-factor"), "12-factor");
    }

    #[test]
    fn a_word_is_a_severity_where_nothing_else_is_meant() {
        assert_eq!(bare_severity("🔴 Critical issues"), Some(ReviewSeverity::Critical));
        assert_eq!(bare_severity("Major: Injection"), Some(ReviewSeverity::Major));
        assert_eq!(bare_severity("Critical paths"), None);
        assert_eq!(bare_severity("Minor version bumps"), None);
    }
}
