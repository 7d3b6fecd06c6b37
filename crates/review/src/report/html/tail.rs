//! The end of the page: insights, recommended tests, and left-out findings.

use super::card::{render_validation, severity_class, severity_label};
use super::{escape_name, prose};
use crate::record::{ReviewInsight, ReviewRecord, TestRecommendation};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX, PAGE_LEFT_OUT_MAX};
use crate::report::phrases;

pub(super) fn render_insights(review: &ReviewRecord) -> String {
    if review.insights.is_empty() {
        return String::new();
    }
    let cards: String =
        review.insights.iter().map(|insight| render_insight(review, insight)).collect();
    format!(
        "<section aria-labelledby=\"insights\">\n<h2 id=\"insights\">Cross-cutting insights</h2>\n{cards}</section>\n"
    )
}

fn render_insight(review: &ReviewRecord, insight: &ReviewInsight) -> String {
    let pair =
        insight.categories.each_ref().map(|key| escape_name(phrases::category_title(review, key)));
    let related: Vec<String> = insight.related.iter().map(|id| finding_link(review, id)).collect();
    format!(
        "<article class=\"card insight {}\">\n<div class=\"top\">{}<span class=\"cats\">{}</span>\
         <span class=\"self\">{}</span></div>\n<h3>{}</h3>\n<p class=\"place\">{}:{}</p>\n\
         <div class=\"prose\">{}</div>\n<div class=\"foot\">{}<span>From {}</span></div>\n</article>\n",
        severity_class(insight.severity),
        severity_label(insight.severity),
        pair.join(" and "),
        escape_name(&insight.id),
        prose::render_inline(&phrases::to_one_line(&insight.title, NAME_CHARS_MAX)),
        escape_name(insight.file.as_str()),
        insight.line,
        prose::render_block(&insight.insight),
        render_validation(&insight.validation),
        related.join(", ")
    )
}

/// The id of a finding, as a link if the finding is reported.
fn finding_link(review: &ReviewRecord, id: &str) -> String {
    match review.findings.iter().position(|finding| finding.id == id) {
        Some(at) => format!("<a href=\"#f{}\">{}</a>", at + 1, escape_name(id)),
        None => escape_name(id),
    }
}

pub(super) fn render_tests(review: &ReviewRecord) -> String {
    if review.test_recommendations.is_empty() {
        return String::new();
    }
    let items: String =
        review.test_recommendations.iter().map(|test| render_test(review, test)).collect();
    format!(
        "<section aria-labelledby=\"tests\">\n<h2 id=\"tests\">Test recommendations</h2>\n<ul class=\"tests\">\n\
         {items}</ul>\n</section>\n"
    )
}

fn render_test(review: &ReviewRecord, test: &TestRecommendation) -> String {
    let mut notes = Vec::new();
    if let Some(file) = &test.file {
        notes.push(format!("<code>{}</code>", escape_name(file.as_str())));
    }
    if let Some(finding) = &test.catches {
        notes.push(format!("would have caught {}", finding_link(review, finding)));
    }
    format!(
        "<li><span>{}</span><small>{}</small></li>\n",
        prose::render_inline(&phrases::to_one_line(&test.test, LINE_CHARS_MAX)),
        notes.join(" · ")
    )
}

pub(super) fn render_left_out(review: &ReviewRecord) -> String {
    if review.left_out.is_empty() && review.skipped.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for left_out in review.left_out.iter().take(PAGE_LEFT_OUT_MAX) {
        let place = match left_out.lines {
            Some(lines) => format!("{}:{lines}", escape_name(&left_out.file)),
            None => escape_name(&left_out.file),
        };
        rows.push_str(&format!(
            "<tr><td>{}<small>{place}</small></td><td>{}</td><td>{}<small>{}</small></td></tr>\n",
            prose::render_inline(&phrases::to_one_line(&left_out.title, NAME_CHARS_MAX)),
            escape_name(&left_out.agent),
            phrases::describe_reason(left_out.why),
            prose::render_inline(&phrases::to_one_line(&left_out.reason, NAME_CHARS_MAX))
        ));
    }
    let more = review.left_out.len().saturating_sub(PAGE_LEFT_OUT_MAX);
    if more > 0 {
        rows.push_str(&format!(
            "<tr><td colspan=\"3\">… and {} more</td></tr>\n",
            phrases::format_number(more as u64)
        ));
    }
    let table = if rows.is_empty() {
        String::new()
    } else {
        format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Findings that were left out\"><table>\n\
            <thead><tr><th scope=\"col\">Finding</th><th scope=\"col\">Agent</th><th scope=\"col\">Why</th></tr></thead>\n\
            <tbody>\n{rows}</tbody></table></div>\n"
        )
    };
    let words = if review.left_out.is_empty() {
        "no findings".to_owned()
    } else {
        phrases::left_out_text(review)
    };
    format!(
        "<details class=\"more\">\n<summary><h2>Left out</h2><span>{words}</span></summary>\n{table}{}</details>\n",
        render_skipped(review)
    )
}

fn render_skipped(review: &ReviewRecord) -> String {
    let items: String = review
        .skipped
        .iter()
        .take(PAGE_LEFT_OUT_MAX)
        .map(|file| {
            format!(
                "<li><code>{}</code> {}</li>",
                escape_name(file.path.as_str()),
                escape_name(&file.reason)
            )
        })
        .collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<h3>Files that were not looked at</h3>\n<ul class=\"plain\">{items}</ul>\n")
}

pub(super) fn render_footer(review: &ReviewRecord) -> String {
    format!("<footer>Made by <code>rep review</code> · {}</footer>\n", escape_name(&review.id))
}
