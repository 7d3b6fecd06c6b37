//! The end of the page: insights, recommended tests, and left-out findings.

use super::card::{believed, class, severity};
use super::{name, prose};
use crate::record::{Insight, Review, TestRecommendation};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX, PAGE_LEFT_OUT_MAX};
use crate::report::words;

pub(super) fn insights(review: &Review) -> String {
    if review.insights.is_empty() {
        return String::new();
    }
    let cards: String =
        review.insights.iter().map(|insight| show_insight(review, insight)).collect();
    format!(
        "<section aria-labelledby=\"insights\">\n<h2 id=\"insights\">Cross-cutting insights</h2>\n{cards}</section>\n"
    )
}

fn show_insight(review: &Review, insight: &Insight) -> String {
    let pair = insight.categories.each_ref().map(|key| name(words::category(review, key)));
    let related: Vec<String> = insight.related.iter().map(|id| reference(review, id)).collect();
    format!(
        "<article class=\"card insight {}\">\n<div class=\"top\">{}<span class=\"cats\">{}</span>\
         <span class=\"self\">{}</span></div>\n<h3>{}</h3>\n<p class=\"place\">{}:{}</p>\n\
         <div class=\"prose\">{}</div>\n<div class=\"foot\">{}<span>From {}</span></div>\n</article>\n",
        class(insight.severity),
        severity(insight.severity),
        pair.join(" and "),
        name(&insight.id),
        prose::inline(&words::one_line(&insight.title, NAME_CHARS_MAX)),
        name(insight.file.as_str()),
        insight.line,
        prose::block(&insight.insight),
        believed(&insight.validation),
        related.join(", ")
    )
}

/// The id of a finding, as a link if the finding is reported.
fn reference(review: &Review, id: &str) -> String {
    match review.findings.iter().position(|finding| finding.id == id) {
        Some(at) => format!("<a href=\"#f{}\">{}</a>", at + 1, name(id)),
        None => name(id),
    }
}

pub(super) fn tests(review: &Review) -> String {
    if review.test_recommendations.is_empty() {
        return String::new();
    }
    let items: String =
        review.test_recommendations.iter().map(|test| show_test(review, test)).collect();
    format!(
        "<section aria-labelledby=\"tests\">\n<h2 id=\"tests\">Test recommendations</h2>\n<ul class=\"tests\">\n\
         {items}</ul>\n</section>\n"
    )
}

fn show_test(review: &Review, test: &TestRecommendation) -> String {
    let mut notes = Vec::new();
    if let Some(file) = &test.file {
        notes.push(format!("<code>{}</code>", name(file.as_str())));
    }
    if let Some(finding) = &test.catches {
        notes.push(format!("would have caught {}", reference(review, finding)));
    }
    format!(
        "<li><span>{}</span><small>{}</small></li>\n",
        prose::inline(&words::one_line(&test.test, LINE_CHARS_MAX)),
        notes.join(" · ")
    )
}

pub(super) fn left_out(review: &Review) -> String {
    if review.left_out.is_empty() && review.skipped.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for left_out in review.left_out.iter().take(PAGE_LEFT_OUT_MAX) {
        let place = match left_out.lines {
            Some(lines) => format!("{}:{lines}", name(&left_out.file)),
            None => name(&left_out.file),
        };
        rows.push_str(&format!(
            "<tr><td>{}<small>{place}</small></td><td>{}</td><td>{}<small>{}</small></td></tr>\n",
            prose::inline(&words::one_line(&left_out.title, NAME_CHARS_MAX)),
            name(&left_out.agent),
            words::why(left_out.why),
            prose::inline(&words::one_line(&left_out.reason, NAME_CHARS_MAX))
        ));
    }
    let more = review.left_out.len().saturating_sub(PAGE_LEFT_OUT_MAX);
    if more > 0 {
        rows.push_str(&format!(
            "<tr><td colspan=\"3\">… and {} more</td></tr>\n",
            words::thousands(more as u64)
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
        words::left_out_words(review)
    };
    format!(
        "<details class=\"more\">\n<summary><h2>Left out</h2><span>{words}</span></summary>\n{table}{}</details>\n",
        skipped(review)
    )
}

fn skipped(review: &Review) -> String {
    let items: String = review
        .skipped
        .iter()
        .take(PAGE_LEFT_OUT_MAX)
        .map(|file| {
            format!("<li><code>{}</code> {}</li>", name(file.path.as_str()), name(&file.reason))
        })
        .collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<h3>Files that were not looked at</h3>\n<ul class=\"plain\">{items}</ul>\n")
}

pub(super) fn footer(review: &Review) -> String {
    format!("<footer>Made by <code>rep review</code> · {}</footer>\n", name(&review.id))
}
