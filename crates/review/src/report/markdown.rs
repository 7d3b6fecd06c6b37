//! Renders a review as Markdown, for comments, summaries and files.
//!
//! Model output cannot change the structure: it is only ever a paragraph, a list or a code block.

use crate::extract::ReviewSeverity;

use super::limits::{FIX_LINES_MAX, LINE_CHARS_MAX, NAME_CHARS_MAX};
use super::{phrases, text};
use crate::finding::FindingFix;
use crate::record::{
    ExcerptLine, ReportedFinding, ReviewInsight, ReviewRecord, TestRecommendation,
};

mod calls;
mod escape;

use escape::{code_block, code_span, escape_block, escape_cell, escape_line};

/// Renders the review. A clean review is a single sentence, after any warnings.
pub fn render_markdown(review: &ReviewRecord) -> String {
    let mut parts = render_warnings(review);
    if review.is_clean() {
        parts.push(escape_line(&text::clean_summary(review)));
        return parts.join("\n\n") + "\n";
    }
    parts.push(render_header(review));
    parts.push(summary_table(review));
    for severity in ReviewSeverity::ALL {
        let findings: Vec<&ReportedFinding> =
            review.findings.iter().filter(|finding| finding.severity == severity).collect();
        if !findings.is_empty() {
            parts.push(format!("## {}", section_title(severity)));
            parts.extend(findings.into_iter().map(|finding| show_finding(review, finding)));
        }
    }
    if !review.insights.is_empty() {
        parts.push("## Cross-Cutting Insights".to_owned());
        parts.extend(review.insights.iter().map(|insight| show_insight(review, insight)));
    }
    if !review.test_recommendations.is_empty() {
        parts.push("## Test Recommendations".to_owned());
        let tests: Vec<String> = review.test_recommendations.iter().map(show_test).collect();
        parts.push(tests.join("\n"));
    }
    if !review.left_out.is_empty() || !review.skipped.is_empty() {
        parts.push(render_left_out(review));
    }
    parts.push(calls::render_calls(review));
    parts.join("\n\n") + "\n"
}

fn section_title(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical => "Critical",
        ReviewSeverity::Major => "Major",
        ReviewSeverity::Minor => "Minor",
        ReviewSeverity::Suggestion => "Suggestions",
    }
}

fn render_warnings(review: &ReviewRecord) -> Vec<String> {
    let mut out = Vec::new();
    if !review.unresolved_skills.is_empty() {
        let head = "> **Warning:** The following skills could not be resolved and were skipped:";
        let named = review.unresolved_skills.iter().map(|skill| {
            let source = escape_line(&phrases::to_one_line(&skill.source, NAME_CHARS_MAX));
            format!(
                "> - {source}: {}",
                escape_line(&phrases::to_one_line(&skill.reason, NAME_CHARS_MAX))
            )
        });
        let lines: Vec<String> = std::iter::once(head.to_owned()).chain(named).collect();
        out.push(lines.join("\n"));
    }
    for warning in phrases::all_warnings(review) {
        out.push(format!(
            "> **Warning:** {}",
            escape_line(&phrases::to_one_line(&warning, LINE_CHARS_MAX))
        ));
    }
    out
}

fn render_header(review: &ReviewRecord) -> String {
    let mut facts = vec![format!("**Scope:** {}", escape_line(&short_text(&review.scope.words)))];
    if let Some(branch) = &review.scope.branch {
        facts.push(format!("**Branch:** {}", code_span(&short_text(branch))));
    }
    let commits = [("Base", &review.scope.base), ("Head", &review.scope.head)];
    for (name, commit) in commits {
        if let Some(commit) = commit {
            facts.push(format!("**{name}:** {}", code_span(&short_text(commit))));
        }
    }
    facts.push(format!("**Depth:** {}", phrases::depth_name(review.depth)));
    if let Some(moment) = phrases::format_time(review.started_ms) {
        facts.push(format!("**When:** {moment}"));
    }
    let skills: Vec<String> =
        review.skills.iter().map(|skill| code_span(&short_text(&skill.name))).collect();
    if !skills.is_empty() {
        facts.push(format!("**Skills:** {}", skills.join(", ")));
    }
    let facts = facts.join(" · ");
    let title = match review.subject {
        crate::record::ReviewSubject::Code => "# Code Review",
        crate::record::ReviewSubject::Docs => "# Documentation Review",
    };
    format!(
        "{title}\n\n{}\n\n{facts}\n\n{}",
        escape_line(&text::summary_line(review)),
        render_files(review)
    )
}

fn short_text(text: &str) -> String {
    phrases::to_one_line(text, NAME_CHARS_MAX)
}

/// The list of files, collapsed if there are more than ten.
fn render_files(review: &ReviewRecord) -> String {
    let rows = review.files.iter().map(|file| {
        let from = match &file.old_path {
            Some(old) => format!(" (was {})", code_span(&short_text(old.as_str()))),
            None => String::new(),
        };
        let path = code_span(&short_text(file.path.as_str()));
        format!("- {path}{from} +{} −{}", file.added, file.removed)
    });
    let rows: Vec<String> = rows.collect();
    let head = format!("**Files** ({})", rows.len());
    if rows.len() <= 10 {
        return format!("{head}\n\n{}", rows.join("\n"));
    }
    format!(
        "<details>\n<summary>{}</summary>\n\n{}\n\n</details>",
        phrases::format_count(rows.len(), "file"),
        rows.join("\n")
    )
}

/// A table of categories by severity. Each finding counts only for its leading category, so that the totals add up.
fn summary_table(review: &ReviewRecord) -> String {
    let mut rows = vec![
        "## Summary\n".to_owned(),
        "| Category | Critical | Major | Minor | Suggestion | Total |".to_owned(),
        "|---|---:|---:|---:|---:|---:|".to_owned(),
    ];
    for (key, title) in phrases::table_categories(review) {
        rows.push(summary_row(
            &escape_cell(&short_text(title)),
            phrases::category_counts(review, key),
        ));
    }
    let totals = ReviewSeverity::ALL.map(|severity| phrases::count_with_severity(review, severity));
    rows.push(summary_row("**Total**", totals));
    rows.join("\n")
}

fn summary_row(name: &str, counts: [usize; 4]) -> String {
    let cells = counts.map(|number| match number {
        0 => "–".to_owned(),
        number => number.to_string(),
    });
    format!("| {name} | {} | {} |", cells.join(" | "), counts.iter().sum::<usize>())
}

fn show_finding(review: &ReviewRecord, finding: &ReportedFinding) -> String {
    let place = code_span(&format!("{}:{}", short_text(finding.file.as_str()), finding.lines));
    let badge = finding.agents_badge().map(|badge| format!(" `[{badge}]`")).unwrap_or_default();
    let mut parts = vec![
        format!(
            "### {}: {}{badge}",
            escape_line(&finding.id),
            escape_line(&short_text(&finding.title))
        ),
        format!(
            "{place} · {}",
            escape_line(&short_text(&phrases::category_titles(review, finding)))
        ),
        escape_block(&finding.description),
    ];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(render_labelled("What goes wrong:", &finding.failure_scenario));
    }
    for (label, text) in phrases::labelled_texts(review, finding) {
        parts.push(render_labelled(&format!("{}:", escape_line(&short_text(&label))), &text));
    }
    if !finding.excerpt.is_empty() {
        parts.push(render_excerpt(&finding.excerpt));
    }
    match &finding.fix {
        Some(FindingFix::Diff(diff)) => {
            parts.push(format!("**Fix:**\n\n{}", code_block("diff", &truncate_fix(diff))))
        }
        Some(FindingFix::Prompt(prompt)) => {
            parts.push(format!("**Fix prompt:**\n\n{}", code_block("text", &truncate_fix(prompt))));
        }
        None => {}
    }
    let agents: Vec<String> =
        finding.agents.iter().map(|agent| escape_line(&short_text(agent))).collect();
    let believed = escape_line(&phrases::to_one_line(
        &phrases::describe_validation(&finding.validation),
        LINE_CHARS_MAX,
    ));
    parts.push(format!("_Found by:_ {}. _Why believed:_ {believed}", agents.join(", ")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// A label and a text: on one line if the text has only one.
fn render_labelled(label: &str, text: &str) -> String {
    if text.trim().contains('\n') {
        format!("**{label}**\n\n{}", escape_block(text))
    } else {
        format!("**{label}** {}", escape_block(text))
    }
}

/// Truncates a fix to [`FIX_LINES_MAX`] lines of at most [`LINE_CHARS_MAX`] characters.
fn truncate_fix(text: &str) -> String {
    let lines =
        text.lines().take(FIX_LINES_MAX).map(|line| phrases::clip_text(line, LINE_CHARS_MAX));
    let mut out: Vec<String> = lines.collect();
    let more = text.lines().count().saturating_sub(FIX_LINES_MAX);
    if more > 0 {
        out.push(format!("… ({} more)", phrases::format_count(more, "line")));
    }
    out.join("\n")
}

fn render_excerpt(lines: &[ExcerptLine]) -> String {
    let digits = lines.iter().map(|line| line.number.to_string().len()).max().unwrap_or(1);
    let rows = lines.iter().map(|line| {
        let mark = if line.cited { '>' } else { ' ' };
        let text = phrases::clip_text(&line.text, LINE_CHARS_MAX);
        format!("{mark} {:>digits$} | {text}", line.number).trim_end().to_owned()
    });
    code_block("text", &rows.collect::<Vec<_>>().join("\n"))
}

fn show_insight(review: &ReviewRecord, insight: &ReviewInsight) -> String {
    let place = code_span(&format!("{}:{}", short_text(insight.file.as_str()), insight.line));
    let pair = insight
        .categories
        .each_ref()
        .map(|key| escape_line(&short_text(phrases::category_title(review, key))));
    let related: Vec<String> =
        insight.related.iter().map(|id| escape_line(&short_text(id))).collect();
    let believed = escape_line(&phrases::to_one_line(
        &phrases::describe_validation(&insight.validation),
        LINE_CHARS_MAX,
    ));
    [
        format!("### {}: {}", escape_line(&insight.id), escape_line(&short_text(&insight.title))),
        format!(
            "**{}** · {place} · {} · from {}",
            insight.severity,
            pair.join(" and "),
            related.join(", ")
        ),
        escape_block(&insight.insight),
        format!("_Why believed:_ {believed}"),
    ]
    .join("\n\n")
}

fn show_test(test: &TestRecommendation) -> String {
    let mut out = format!("- {}", escape_line(&phrases::to_one_line(&test.test, LINE_CHARS_MAX)));
    if let Some(file) = &test.file {
        out.push_str(&format!(" in {}", code_span(&short_text(file.as_str()))));
    }
    if let Some(finding) = &test.catches {
        out.push_str(&format!(" (would have caught {})", escape_line(&short_text(finding))));
    }
    out
}

fn render_left_out(review: &ReviewRecord) -> String {
    let mut lines = vec!["## Left Out\n".to_owned()];
    for (why, number) in phrases::count_left_out(review) {
        lines.push(format!("- {number} {}", phrases::describe_reason(why)));
    }
    for file in &review.skipped {
        let reason = escape_line(&short_text(&file.reason));
        lines.push(format!(
            "- {} was not looked at: {reason}",
            code_span(&short_text(file.path.as_str()))
        ));
    }
    lines.join("\n")
}
