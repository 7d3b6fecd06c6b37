//! The end of the page: insights, recommended tests, and left-out findings.

use minijinja::{Value, context};

use super::card::validation_values;
use super::prose::{block_values, line_values};
use super::{severity_values, short_name};
use crate::record::{LeftOutFinding, ReviewInsight, ReviewRecord, TestRecommendation};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX, PAGE_LEFT_OUT_MAX};
use crate::report::phrases;

pub(super) fn insight_values(review: &ReviewRecord) -> Vec<Value> {
    review.insights.iter().map(|insight| one_insight_values(review, insight)).collect()
}

fn one_insight_values(review: &ReviewRecord, insight: &ReviewInsight) -> Value {
    let pair =
        insight.categories.each_ref().map(|key| short_name(phrases::category_title(review, key)));
    context! {
        severity => severity_values(insight.severity),
        categories => pair.join(" and "),
        id => short_name(&insight.id),
        title => line_values(&insight.title, NAME_CHARS_MAX),
        place => format!("{}:{}", short_name(insight.file.as_str()), insight.line),
        text => block_values(&insight.insight),
        validation => validation_values(&insight.validation),
        related => insight.related.iter().map(|id| link_values(review, id)).collect::<Vec<Value>>(),
    }
}

/// The id of a finding, with its number if the finding is reported.
fn link_values(review: &ReviewRecord, id: &str) -> Value {
    let at = review.findings.iter().position(|finding| finding.id == id);
    context! { id => short_name(id), number => at.map(|at| at + 1) }
}

pub(super) fn test_values(review: &ReviewRecord) -> Vec<Value> {
    let tests = review.test_recommendations.iter();
    tests.map(|test| one_test_values(review, test)).collect()
}

fn one_test_values(review: &ReviewRecord, test: &TestRecommendation) -> Value {
    context! {
        text => line_values(&test.test, LINE_CHARS_MAX),
        file => test.file.as_ref().map(|file| short_name(file.as_str())),
        catches => test.catches.as_ref().map(|finding| link_values(review, finding)),
    }
}

pub(super) fn left_out_values(review: &ReviewRecord) -> Value {
    let shown = review.left_out.iter().take(PAGE_LEFT_OUT_MAX);
    let more = review.left_out.len().saturating_sub(PAGE_LEFT_OUT_MAX);
    let files = review.skipped.iter().take(PAGE_LEFT_OUT_MAX).map(|file| {
        context! { path => short_name(file.path.as_str()), reason => short_name(&file.reason) }
    });
    context! {
        summary => if review.left_out.is_empty() {
            "no findings".to_owned()
        } else {
            phrases::left_out_text(review)
        },
        findings => shown.map(left_out_row).collect::<Vec<Value>>(),
        more => (more > 0).then(|| phrases::format_number(more as u64)),
        files => files.collect::<Vec<Value>>(),
    }
}

fn left_out_row(left_out: &LeftOutFinding) -> Value {
    let file = short_name(&left_out.file);
    context! {
        title => line_values(&left_out.title, NAME_CHARS_MAX),
        place => match left_out.lines {
            Some(lines) => format!("{file}:{lines}"),
            None => file,
        },
        agent => short_name(&left_out.agent),
        why => phrases::describe_reason(left_out.why),
        reason => line_values(&left_out.reason, NAME_CHARS_MAX),
    }
}
