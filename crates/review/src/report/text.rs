//! Renders a review for a terminal.

use anstyle::Style;
use repertoire_text::styles::Styles;
use repertoire_text::terminal::printable;

use super::Look;
use super::limits::{FIX_LINES_MAX, LINE_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::words;
use crate::extract::Severity;
use crate::finding::Fix;
use crate::record::{Depth, ExcerptLine, Insight, Reported, Review, TestRecommendation};

mod pen;

use pen::Pen;

/// Renders the review. A clean review is one line, after any warnings.
pub fn render(review: &Review, look: &Look) -> String {
    let mut pen = Pen::new(look);
    warnings(&mut pen, review);
    if review.is_clean() {
        pen.line("", &clean(review), Style::new());
        return pen.done();
    }
    if !pen.is_empty() {
        pen.blank();
    }
    for finding in &review.findings {
        show_finding(&mut pen, review, finding);
    }
    if !review.insights.is_empty() {
        pen.heading("Cross-cutting insights");
        review.insights.iter().for_each(|insight| show_insight(&mut pen, review, insight));
    }
    if !review.test_recommendations.is_empty() {
        pen.heading("Test recommendations");
        review.test_recommendations.iter().for_each(|test| show_test(&mut pen, test));
        pen.blank();
    }
    pen.wrapped("", "", &summary(review), pen.styles.strong);
    if !review.left_out.is_empty() {
        let text = format!("Left out: {}.", words::left_out_words(review));
        pen.wrapped("", "", &text, pen.styles.faint);
    }
    if !review.skipped.is_empty() {
        let text = format!("Not looked at: {}.", skipped(review));
        pen.wrapped("", "", &text, pen.styles.faint);
    }
    pen.done()
}

fn warnings(pen: &mut Pen, review: &Review) {
    for skill in &review.unresolved_skills {
        let text = format!(
            "the skill `{}` could not be resolved and was skipped: {}",
            words::one_line(&skill.source, NAME_CHARS_MAX),
            words::one_line(&skill.reason, TEXT_CHARS_MAX)
        );
        pen.wrapped("", "warning: ", &text, pen.styles.warn);
    }
    for warning in words::warnings(review) {
        let text = words::one_line(&warning, TEXT_CHARS_MAX);
        pen.wrapped("", "warning: ", &text, pen.styles.warn);
    }
}

/// `No findings in 4 files (quick review, 4 agents; security, bugs).`
pub(super) fn clean(review: &Review) -> String {
    let mut how = words::kind(review);
    if review.depth != Depth::Patterns {
        how.push_str(&format!(", {}", words::count(words::agents(review), "agent")));
    }
    let failed = review.failed_calls().count();
    if failed > 0 {
        how.push_str(&format!(", {failed} without an answer"));
    }
    let categories: Vec<&str> =
        review.categories.iter().map(|known| known.title.as_str()).collect();
    if !categories.is_empty() {
        how.push_str(&format!("; {}", categories.join(", ").to_lowercase()));
    }
    if !review.left_out.is_empty() {
        how.push_str(&format!("; {} left out", review.left_out.len()));
    }
    if !review.skipped.is_empty() {
        how.push_str(&format!("; {} not looked at", words::count(review.skipped.len(), "file")));
    }
    format!("No findings in {} ({how}).", words::count(review.files.len(), "file"))
}

fn show_finding(pen: &mut Pen, review: &Review, finding: &Reported) {
    let severity = style_of(&pen.styles, finding.severity);
    let title = words::one_line(&finding.title, NAME_CHARS_MAX);
    pen.titled(finding.severity.as_str(), severity, &title);
    let place = format!("{}:{}", printable(finding.file.as_str()), finding.lines);
    let categories = words::categories(review, finding);
    pen.pair("  ", &place, pen.styles.accent, &categories, pen.styles.faint);
    if !finding.excerpt.is_empty() {
        pen.blank();
        excerpt(pen, &finding.excerpt, severity);
    }
    pen.blank();
    pen.paragraphs("  ", "", &finding.description);
    pen.paragraphs("  ", "What goes wrong: ", &finding.failure_scenario);
    for (label, text) in words::points(review, finding) {
        pen.paragraphs("  ", &format!("{label}: "), &text);
    }
    show_fix(pen, finding.fix.as_ref());
    pen.wrapped("  ", "", &found_by(finding), pen.styles.faint);
    pen.blank();
}

fn excerpt(pen: &mut Pen, lines: &[ExcerptLine], severity: Style) {
    let digits = lines.iter().map(|line| line.number.to_string().len()).max().unwrap_or(1);
    for line in lines {
        let mark = if line.cited { '>' } else { ' ' };
        let added = if line.added { '+' } else { ' ' };
        let gutter = format!("  {mark} {:>digits$} |{added}", line.number);
        let style = if line.cited { severity } else { pen.styles.faint };
        pen.code(&gutter, style, &line.text, Style::new());
    }
}

fn show_fix(pen: &mut Pen, fix: Option<&Fix>) {
    match fix {
        None => {}
        Some(Fix::Prompt(prompt)) => pen.paragraphs("  ", "Fix: ", prompt),
        Some(Fix::Diff(diff)) => {
            pen.line("  ", "Fix:", Style::new());
            for line in diff.lines().take(FIX_LINES_MAX) {
                let style = match line.as_bytes().first() {
                    Some(b'+') => pen.styles.good,
                    Some(b'-') => pen.styles.bad,
                    _ => Style::new(),
                };
                pen.whole_code("    ", &words::clip(line, LINE_CHARS_MAX), style);
            }
            let more = diff.lines().count().saturating_sub(FIX_LINES_MAX);
            if more > 0 {
                pen.line("    ", &format!("… ({} more)", words::count(more, "line")), Style::new());
            }
            pen.blank();
        }
    }
}

fn found_by(finding: &Reported) -> String {
    let agents = finding.agents.join(", ");
    let badge = finding.badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    let believed = words::believed(&finding.validation);
    let text = match agents.as_str() {
        "" => believed,
        agents => format!("found by {agents}{badge}; {believed}"),
    };
    words::clip(&format!("{}: {text}", finding.id), TEXT_CHARS_MAX)
}

fn show_insight(pen: &mut Pen, review: &Review, insight: &Insight) {
    let title = words::one_line(&insight.title, NAME_CHARS_MAX);
    pen.titled(insight.severity.as_str(), style_of(&pen.styles, insight.severity), &title);
    let place = format!("{}:{}", printable(insight.file.as_str()), insight.line);
    let pair = insight.categories.each_ref().map(|key| words::category(review, key));
    let about = format!("{}, from {}", pair.join(" and "), insight.related.join(", "));
    pen.pair("  ", &place, pen.styles.accent, &about, pen.styles.faint);
    pen.blank();
    pen.paragraphs("  ", "", &insight.insight);
    let believed = format!("{}: {}", insight.id, words::believed(&insight.validation));
    pen.wrapped("  ", "", &words::clip(&believed, TEXT_CHARS_MAX), pen.styles.faint);
    pen.blank();
}

fn show_test(pen: &mut Pen, test: &TestRecommendation) {
    let mut text = words::one_line(&test.test, TEXT_CHARS_MAX);
    if let Some(file) = &test.file {
        text.push_str(&format!(" in {file}"));
    }
    if let Some(finding) = &test.catches {
        text.push_str(&format!(" (would have caught {finding})"));
    }
    pen.wrapped("", "- ", &text, Style::new());
}

/// `6 findings (1 critical, 5 minor) in 4 files; quick review of main...HEAD, 9 calls, 2 min 5 s, $0.1200.`
pub(super) fn summary(review: &Review) -> String {
    let mut found = words::count(review.findings.len(), "finding");
    let severities = words::by_severity(review);
    if !severities.is_empty() {
        found.push_str(&format!(" ({severities})"));
    }
    if !review.insights.is_empty() {
        found.push_str(&format!(" and {}", words::count(review.insights.len(), "insight")));
    }
    let files = words::count(review.files.len(), "file");
    let mut how = format!("{} of {}", words::kind(review), review.scope.words);
    let calls = review.calls_made();
    if calls > 0 {
        how.push_str(&format!(", {}", words::count(calls, "call")));
    }
    let failed = review.failed_calls().count();
    if failed > 0 {
        how.push_str(&format!(", {failed} without an answer"));
    }
    how.push_str(&format!(", {}", words::time(review.duration_ms)));
    if let Some(cost) = words::cost(review) {
        how.push_str(&format!(", cost {cost}"));
    }
    format!("{found} in {files}; {how}.")
}

/// The first ten skipped files with their reasons.
fn skipped(review: &Review) -> String {
    let named = review.skipped.iter().take(10).map(|file| {
        format!("{} ({})", words::one_line(file.path.as_str(), NAME_CHARS_MAX), file.reason)
    });
    let mut out = named.collect::<Vec<_>>().join(", ");
    let more = review.skipped.len().saturating_sub(10);
    if more > 0 {
        out.push_str(&format!(", {} more", words::thousands(more as u64)));
    }
    out
}

fn style_of(styles: &Styles, severity: Severity) -> Style {
    match severity {
        Severity::Critical => styles.bad,
        Severity::Major => styles.warn,
        Severity::Minor => styles.accent,
        Severity::Suggestion => styles.faint,
    }
}
