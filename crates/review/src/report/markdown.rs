//! Renders a review as Markdown, for comments, summaries and files.
//!
//! Model output cannot change the structure: it is only ever a paragraph, a list or a code block.

use crate::extract::Severity;

use super::limits::{FIX_LINES_MAX, LINE_CHARS_MAX, NAME_CHARS_MAX};
use super::{text, words};
use crate::finding::Fix;
use crate::record::{ExcerptLine, Insight, Reported, Review, TestRecommendation};

mod calls;
mod escape;

use escape::{block, cell, code, fence, line};

/// Renders the review. A clean review is a single sentence, after any warnings.
pub fn render(review: &Review) -> String {
    let mut parts = warnings(review);
    if review.is_clean() {
        parts.push(line(&text::clean(review)));
        return parts.join("\n\n") + "\n";
    }
    parts.push(header(review));
    parts.push(summary_table(review));
    for severity in Severity::ALL {
        let findings: Vec<&Reported> =
            review.findings.iter().filter(|finding| finding.severity == severity).collect();
        if !findings.is_empty() {
            parts.push(format!("## {}", section(severity)));
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
        parts.push(left_out(review));
    }
    parts.push(calls::render(review));
    parts.join("\n\n") + "\n"
}

fn section(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "Critical",
        Severity::Major => "Major",
        Severity::Minor => "Minor",
        Severity::Suggestion => "Suggestions",
    }
}

fn warnings(review: &Review) -> Vec<String> {
    let mut out = Vec::new();
    if !review.unresolved_skills.is_empty() {
        let head = "> **Warning:** The following skills could not be resolved and were skipped:";
        let named = review.unresolved_skills.iter().map(|skill| {
            let source = line(&words::one_line(&skill.source, NAME_CHARS_MAX));
            format!("> - {source}: {}", line(&words::one_line(&skill.reason, NAME_CHARS_MAX)))
        });
        let lines: Vec<String> = std::iter::once(head.to_owned()).chain(named).collect();
        out.push(lines.join("\n"));
    }
    for warning in words::warnings(review) {
        out.push(format!("> **Warning:** {}", line(&words::one_line(&warning, LINE_CHARS_MAX))));
    }
    out
}

fn header(review: &Review) -> String {
    let mut facts = vec![format!("**Scope:** {}", line(&short(&review.scope.words)))];
    if let Some(branch) = &review.scope.branch {
        facts.push(format!("**Branch:** {}", code(&short(branch))));
    }
    let commits = [("Base", &review.scope.base), ("Head", &review.scope.head)];
    for (name, commit) in commits {
        if let Some(commit) = commit {
            facts.push(format!("**{name}:** {}", code(&short(commit))));
        }
    }
    facts.push(format!("**Depth:** {}", words::depth(review.depth)));
    if let Some(moment) = words::moment(review.started_ms) {
        facts.push(format!("**When:** {moment}"));
    }
    let skills: Vec<String> = review.skills.iter().map(|skill| code(&short(&skill.name))).collect();
    if !skills.is_empty() {
        facts.push(format!("**Skills:** {}", skills.join(", ")));
    }
    let facts = facts.join(" · ");
    let title = match review.subject {
        crate::record::Subject::Code => "# Code Review",
        crate::record::Subject::Docs => "# Documentation Review",
    };
    format!("{title}\n\n{}\n\n{facts}\n\n{}", line(&text::summary(review)), files(review))
}

fn short(text: &str) -> String {
    words::one_line(text, NAME_CHARS_MAX)
}

/// The list of files, collapsed if there are more than ten.
fn files(review: &Review) -> String {
    let rows = review.files.iter().map(|file| {
        let from = match &file.old_path {
            Some(old) => format!(" (was {})", code(&short(old.as_str()))),
            None => String::new(),
        };
        let path = code(&short(file.path.as_str()));
        format!("- {path}{from} +{} −{}", file.added, file.removed)
    });
    let rows: Vec<String> = rows.collect();
    let head = format!("**Files** ({})", rows.len());
    if rows.len() <= 10 {
        return format!("{head}\n\n{}", rows.join("\n"));
    }
    format!(
        "<details>\n<summary>{}</summary>\n\n{}\n\n</details>",
        words::count(rows.len(), "file"),
        rows.join("\n")
    )
}

/// A table of categories by severity. Each finding counts only for its leading category, so that the totals add up.
fn summary_table(review: &Review) -> String {
    let mut rows = vec![
        "## Summary\n".to_owned(),
        "| Category | Critical | Major | Minor | Suggestion | Total |".to_owned(),
        "|---|---:|---:|---:|---:|---:|".to_owned(),
    ];
    for (key, title) in words::table_categories(review) {
        rows.push(summary_row(&cell(&short(title)), words::category_counts(review, key)));
    }
    let totals = Severity::ALL.map(|severity| words::with_severity(review, severity));
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

fn show_finding(review: &Review, finding: &Reported) -> String {
    let place = code(&format!("{}:{}", short(finding.file.as_str()), finding.lines));
    let badge = finding.badge().map(|badge| format!(" `[{badge}]`")).unwrap_or_default();
    let mut parts = vec![
        format!("### {}: {}{badge}", line(&finding.id), line(&short(&finding.title))),
        format!("{place} · {}", line(&short(&words::categories(review, finding)))),
        block(&finding.description),
    ];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(labelled("What goes wrong:", &finding.failure_scenario));
    }
    for (label, text) in words::points(review, finding) {
        parts.push(labelled(&format!("{}:", line(&short(&label))), &text));
    }
    if !finding.excerpt.is_empty() {
        parts.push(excerpt(&finding.excerpt));
    }
    match &finding.fix {
        Some(Fix::Diff(diff)) => parts.push(format!("**Fix:**\n\n{}", fence("diff", &whole(diff)))),
        Some(Fix::Prompt(prompt)) => {
            parts.push(format!("**Fix prompt:**\n\n{}", fence("text", &whole(prompt))));
        }
        None => {}
    }
    let agents: Vec<String> = finding.agents.iter().map(|agent| line(&short(agent))).collect();
    let believed = line(&words::one_line(&words::believed(&finding.validation), LINE_CHARS_MAX));
    parts.push(format!("_Found by:_ {}. _Why believed:_ {believed}", agents.join(", ")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// A label and a text: on one line if the text has only one.
fn labelled(label: &str, text: &str) -> String {
    if text.trim().contains('\n') {
        format!("**{label}**\n\n{}", block(text))
    } else {
        format!("**{label}** {}", block(text))
    }
}

/// Truncates a fix to [`FIX_LINES_MAX`] lines of at most [`LINE_CHARS_MAX`] characters.
fn whole(text: &str) -> String {
    let lines = text.lines().take(FIX_LINES_MAX).map(|line| words::clip(line, LINE_CHARS_MAX));
    let mut out: Vec<String> = lines.collect();
    let more = text.lines().count().saturating_sub(FIX_LINES_MAX);
    if more > 0 {
        out.push(format!("… ({} more)", words::count(more, "line")));
    }
    out.join("\n")
}

fn excerpt(lines: &[ExcerptLine]) -> String {
    let digits = lines.iter().map(|line| line.number.to_string().len()).max().unwrap_or(1);
    let rows = lines.iter().map(|line| {
        let mark = if line.cited { '>' } else { ' ' };
        let text = words::clip(&line.text, LINE_CHARS_MAX);
        format!("{mark} {:>digits$} | {text}", line.number).trim_end().to_owned()
    });
    fence("text", &rows.collect::<Vec<_>>().join("\n"))
}

fn show_insight(review: &Review, insight: &Insight) -> String {
    let place = code(&format!("{}:{}", short(insight.file.as_str()), insight.line));
    let pair = insight.categories.each_ref().map(|key| line(&short(words::category(review, key))));
    let related: Vec<String> = insight.related.iter().map(|id| line(&short(id))).collect();
    let believed = line(&words::one_line(&words::believed(&insight.validation), LINE_CHARS_MAX));
    [
        format!("### {}: {}", line(&insight.id), line(&short(&insight.title))),
        format!(
            "**{}** · {place} · {} · from {}",
            insight.severity,
            pair.join(" and "),
            related.join(", ")
        ),
        block(&insight.insight),
        format!("_Why believed:_ {believed}"),
    ]
    .join("\n\n")
}

fn show_test(test: &TestRecommendation) -> String {
    let mut out = format!("- {}", line(&words::one_line(&test.test, LINE_CHARS_MAX)));
    if let Some(file) = &test.file {
        out.push_str(&format!(" in {}", code(&short(file.as_str()))));
    }
    if let Some(finding) = &test.catches {
        out.push_str(&format!(" (would have caught {})", line(&short(finding))));
    }
    out
}

fn left_out(review: &Review) -> String {
    let mut lines = vec!["## Left Out\n".to_owned()];
    for (why, number) in words::left_out(review) {
        lines.push(format!("- {number} {}", words::why(why)));
    }
    for file in &review.skipped {
        let reason = line(&short(&file.reason));
        lines.push(format!("- {} was not looked at: {reason}", code(&short(file.path.as_str()))));
    }
    lines.join("\n")
}
