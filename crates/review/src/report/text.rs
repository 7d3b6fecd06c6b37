//! Renders a review for a terminal.

use anstyle::Style;
use repertoire_text::styles::Styles;
use repertoire_text::terminal::printable_line;

use super::ReportTextLayout;
use super::limits::{FIX_LINES_MAX, LINE_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX};
use super::phrases;
use crate::extract::ReviewSeverity;
use crate::finding::FindingFix;
use crate::record::{
    ExcerptLine, ReportedFinding, ReviewDepth, ReviewInsight, ReviewRecord, TestRecommendation,
};

mod writer;

use writer::ReportTextWriter;

/// Renders the review. A clean review is one line, after any warnings.
pub fn render_text(review: &ReviewRecord, look: &ReportTextLayout) -> String {
    let mut pen = ReportTextWriter::new(look);
    write_warnings(&mut pen, review);
    if review.is_clean() {
        pen.write_line("", &clean_summary(review), Style::new());
        return pen.into_text();
    }
    if !pen.is_empty() {
        pen.write_blank();
    }
    for finding in &review.findings {
        show_finding(&mut pen, review, finding);
    }
    if !review.insights.is_empty() {
        pen.write_heading("Cross-cutting insights");
        review.insights.iter().for_each(|insight| show_insight(&mut pen, review, insight));
    }
    if !review.test_recommendations.is_empty() {
        pen.write_heading("Test recommendations");
        review.test_recommendations.iter().for_each(|test| show_test(&mut pen, test));
        pen.write_blank();
    }
    pen.write_wrapped("", "", &summary_line(review), pen.styles.strong);
    if !review.left_out.is_empty() {
        let text = format!("Left out: {}.", phrases::left_out_text(review));
        pen.write_wrapped("", "", &text, pen.styles.faint);
    }
    if !review.skipped.is_empty() {
        let text = format!("Not looked at: {}.", skipped_files_text(review));
        pen.write_wrapped("", "", &text, pen.styles.faint);
    }
    pen.into_text()
}

fn write_warnings(pen: &mut ReportTextWriter, review: &ReviewRecord) {
    for skill in &review.unresolved_skills {
        let text = format!(
            "the skill `{}` could not be resolved and was skipped: {}",
            phrases::to_one_line(&skill.source, NAME_CHARS_MAX),
            phrases::to_one_line(&skill.reason, TEXT_CHARS_MAX)
        );
        pen.write_wrapped("", "warning: ", &text, pen.styles.warn);
    }
    for warning in phrases::all_warnings(review) {
        let text = phrases::to_one_line(&warning, TEXT_CHARS_MAX);
        pen.write_wrapped("", "warning: ", &text, pen.styles.warn);
    }
}

/// `No findings in 4 files (quick review, 4 agents; security, bugs).`
pub(super) fn clean_summary(review: &ReviewRecord) -> String {
    let mut how = phrases::describe_kind(review);
    if review.depth != ReviewDepth::Patterns {
        how.push_str(&format!(
            ", {}",
            phrases::format_count(phrases::count_agents(review), "agent")
        ));
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
        how.push_str(&format!(
            "; {} not looked at",
            phrases::format_count(review.skipped.len(), "file")
        ));
    }
    format!("No findings in {} ({how}).", phrases::format_count(review.files.len(), "file"))
}

fn show_finding(pen: &mut ReportTextWriter, review: &ReviewRecord, finding: &ReportedFinding) {
    let severity = style_of(&pen.styles, finding.severity);
    let title = phrases::to_one_line(&finding.title, NAME_CHARS_MAX);
    pen.write_title(finding.severity.as_str(), severity, &title);
    let place = format!("{}:{}", printable_line(finding.file.as_str()), finding.lines);
    let categories = phrases::category_titles(review, finding);
    pen.write_pair("  ", &place, pen.styles.accent, &categories, pen.styles.faint);
    if !finding.excerpt.is_empty() {
        pen.write_blank();
        write_excerpt(pen, &finding.excerpt, severity);
    }
    pen.write_blank();
    pen.write_paragraphs("  ", "", &finding.description);
    pen.write_paragraphs("  ", "What goes wrong: ", &finding.failure_scenario);
    for (label, text) in phrases::labelled_texts(review, finding) {
        pen.write_paragraphs("  ", &format!("{label}: "), &text);
    }
    show_fix(pen, finding.fix.as_ref());
    pen.write_wrapped("  ", "", &found_by(finding), pen.styles.faint);
    pen.write_blank();
}

fn write_excerpt(pen: &mut ReportTextWriter, lines: &[ExcerptLine], severity: Style) {
    let digits = lines.iter().map(|line| line.number.to_string().len()).max().unwrap_or(1);
    for line in lines {
        let mark = if line.cited { '>' } else { ' ' };
        let added = if line.added { '+' } else { ' ' };
        let gutter = format!("  {mark} {:>digits$} |{added}", line.number);
        let style = if line.cited { severity } else { pen.styles.faint };
        pen.write_code(&gutter, style, &line.text, Style::new());
    }
}

fn show_fix(pen: &mut ReportTextWriter, fix: Option<&FindingFix>) {
    match fix {
        None => {}
        Some(FindingFix::Prompt(prompt)) => pen.write_paragraphs("  ", "Fix: ", prompt),
        Some(FindingFix::Diff(diff)) => {
            pen.write_line("  ", "Fix:", Style::new());
            for line in diff.lines().take(FIX_LINES_MAX) {
                let style = match line.as_bytes().first() {
                    Some(b'+') => pen.styles.good,
                    Some(b'-') => pen.styles.bad,
                    _ => Style::new(),
                };
                pen.write_whole_code("    ", &phrases::clip_text(line, LINE_CHARS_MAX), style);
            }
            let more = diff.lines().count().saturating_sub(FIX_LINES_MAX);
            if more > 0 {
                pen.write_line(
                    "    ",
                    &format!("… ({} more)", phrases::format_count(more, "line")),
                    Style::new(),
                );
            }
            pen.write_blank();
        }
    }
}

fn found_by(finding: &ReportedFinding) -> String {
    let agents = finding.agents.join(", ");
    let badge = finding.agents_badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    let believed = phrases::describe_validation(&finding.validation);
    let text = match agents.as_str() {
        "" => believed,
        agents => format!("found by {agents}{badge}; {believed}"),
    };
    phrases::clip_text(&format!("{}: {text}", finding.id), TEXT_CHARS_MAX)
}

fn show_insight(pen: &mut ReportTextWriter, review: &ReviewRecord, insight: &ReviewInsight) {
    let title = phrases::to_one_line(&insight.title, NAME_CHARS_MAX);
    pen.write_title(insight.severity.as_str(), style_of(&pen.styles, insight.severity), &title);
    let place = format!("{}:{}", printable_line(insight.file.as_str()), insight.line);
    let pair = insight.categories.each_ref().map(|key| phrases::category_title(review, key));
    let about = format!("{}, from {}", pair.join(" and "), insight.related.join(", "));
    pen.write_pair("  ", &place, pen.styles.accent, &about, pen.styles.faint);
    pen.write_blank();
    pen.write_paragraphs("  ", "", &insight.insight);
    let believed = format!("{}: {}", insight.id, phrases::describe_validation(&insight.validation));
    pen.write_wrapped("  ", "", &phrases::clip_text(&believed, TEXT_CHARS_MAX), pen.styles.faint);
    pen.write_blank();
}

fn show_test(pen: &mut ReportTextWriter, test: &TestRecommendation) {
    let mut text = phrases::to_one_line(&test.test, TEXT_CHARS_MAX);
    if let Some(file) = &test.file {
        text.push_str(&format!(" in {file}"));
    }
    if let Some(finding) = &test.catches {
        text.push_str(&format!(" (would have caught {finding})"));
    }
    pen.write_wrapped("", "- ", &text, Style::new());
}

/// `6 findings (1 critical, 5 minor) in 4 files; quick review of main...HEAD, 9 calls, 2 min 5 s, $0.1200.`
pub(super) fn summary_line(review: &ReviewRecord) -> String {
    let mut found = phrases::format_count(review.findings.len(), "finding");
    let severities = phrases::severity_counts_text(review);
    if !severities.is_empty() {
        found.push_str(&format!(" ({severities})"));
    }
    if !review.insights.is_empty() {
        found
            .push_str(&format!(" and {}", phrases::format_count(review.insights.len(), "insight")));
    }
    let files = phrases::format_count(review.files.len(), "file");
    let mut how = format!("{} of {}", phrases::describe_kind(review), review.scope.words);
    let calls = review.calls_made();
    if calls > 0 {
        how.push_str(&format!(", {}", phrases::format_count(calls, "call")));
    }
    let failed = review.failed_calls().count();
    if failed > 0 {
        how.push_str(&format!(", {failed} without an answer"));
    }
    how.push_str(&format!(", {}", phrases::format_duration(review.duration_ms)));
    if let Some(cost) = phrases::review_cost(review) {
        how.push_str(&format!(", cost {cost}"));
    }
    format!("{found} in {files}; {how}.")
}

/// The first ten skipped files with their reasons.
fn skipped_files_text(review: &ReviewRecord) -> String {
    let named = review.skipped.iter().take(10).map(|file| {
        format!("{} ({})", phrases::to_one_line(file.path.as_str(), NAME_CHARS_MAX), file.reason)
    });
    let mut out = named.collect::<Vec<_>>().join(", ");
    let more = review.skipped.len().saturating_sub(10);
    if more > 0 {
        out.push_str(&format!(", {} more", phrases::format_number(more as u64)));
    }
    out
}

fn style_of(styles: &Styles, severity: ReviewSeverity) -> Style {
    match severity {
        ReviewSeverity::Critical => styles.bad,
        ReviewSeverity::Major => styles.warn,
        ReviewSeverity::Minor => styles.accent,
        ReviewSeverity::Suggestion => styles.faint,
    }
}
