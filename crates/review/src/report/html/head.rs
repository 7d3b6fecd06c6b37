//! The top of the page: verdict, figures, warnings, and the overview of the findings.

use minijinja::{Value, context};

use super::prose::line_values;
use super::{severity_class, severity_values, short_name};
use crate::extract::ReviewSeverity;
use crate::record::{ReviewRecord, ReviewSubject};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX};
use crate::report::phrases;

pub(super) fn header_values(review: &ReviewRecord) -> Value {
    // If a call failed, a review without findings is incomplete rather than clean.
    let is_whole = review.failed_calls().next().is_none();
    let commits = [&review.scope.base, &review.scope.head];
    context! {
        kind => match review.subject {
            ReviewSubject::Code => "Code review",
            ReviewSubject::Docs => "Documentation review",
        },
        class => review.worst_severity().map_or(if is_whole { "clean" } else { "minor" }, severity_class),
        depth => phrases::depth_name(review.depth),
        verdict => verdict_text(review),
        severities => severity_shares(review),
        scope => short_name(&review.scope.words),
        branch => review.scope.branch.as_deref().map(short_name),
        commits => commits.into_iter().flatten().map(|commit| format_commit(commit)).collect::<Vec<String>>(),
        started => phrases::format_time(review.started_ms),
        figures => header_figures(review),
    }
}

/// The headline, such as `6 findings`.
fn verdict_text(review: &ReviewRecord) -> String {
    if review.is_clean() {
        let is_whole = review.failed_calls().next().is_none();
        return if is_whole { "No findings" } else { "Incomplete" }.to_owned();
    }
    if review.findings.is_empty() {
        return phrases::format_count(review.insights.len(), "insight");
    }
    phrases::format_count(review.findings.len(), "finding")
}

fn format_commit(commit: &str) -> String {
    let is_hash = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let end = commit.char_indices().nth(10).map_or(commit.len(), |(at, _)| at);
    short_name(if is_hash { &commit[..end] } else { commit })
}

/// The severities with their places in a bar that is 1000 wide, and their entries in the legend.
fn severity_shares(review: &ReviewRecord) -> Vec<Value> {
    let all = review.findings.len() as f64;
    let (mut out, mut at) = (Vec::new(), 0);
    for severity in ReviewSeverity::ALL {
        let number = phrases::count_with_severity(review, severity);
        if number == 0 {
            continue;
        }
        let plural = if severity == ReviewSeverity::Suggestion && number > 1 { "s" } else { "" };
        let (count, name) =
            (phrases::format_number(number as u64), severity.as_str().to_lowercase());
        out.push(context! {
            class => severity_class(severity),
            x => format!("{:.2}", at as f64 * 1000.0 / all),
            width => format!("{:.2}", number as f64 * 1000.0 / all),
            legend => format!("{count} {name}{plural}"),
        });
        at += number;
    }
    out
}

/// Labels, values and notes.
fn header_figures(review: &ReviewRecord) -> Vec<Value> {
    let added: usize = review.files.iter().map(|file| file.added).sum();
    let removed: usize = review.files.iter().map(|file| file.removed).sum();
    let failed = review.failed_calls().count();
    let failed = if failed > 0 { format!("{failed} failed") } else { String::new() };
    let files = phrases::format_number(review.files.len() as u64);
    let left_out = phrases::format_number(review.left_out.len() as u64);
    let mut figures = vec![
        ("Files", files, format!("+{added} −{removed}")),
        ("Agents", phrases::count_agents(review).to_string(), String::new()),
        ("Calls", review.calls_made().to_string(), failed),
        ("Left out", left_out, String::new()),
        ("Time", phrases::format_duration(review.duration_ms), String::new()),
    ];
    figures.extend(phrases::review_cost(review).map(|cost| match cost.strip_prefix("at least ") {
        Some(sum) => ("Cost", format!("≥ {sum}"), "not all known".to_owned()),
        None => ("Cost", cost, String::new()),
    }));
    figures.into_iter().map(Value::from).collect()
}

pub(super) fn warning_values(review: &ReviewRecord) -> Vec<Value> {
    let skills = review.unresolved_skills.iter().map(|skill| {
        let spans = line_values(&skill.reason, LINE_CHARS_MAX);
        context! { skill => short_name(&skill.source), spans }
    });
    let others = phrases::all_warnings(review);
    let others = others.iter().map(
        |warning| context! { skill => None::<&str>, spans => line_values(warning, LINE_CHARS_MAX) },
    );
    skills.chain(others).collect()
}

/// The findings as the overview lists them.
pub(super) fn finding_values(review: &ReviewRecord) -> Vec<Value> {
    let findings = review.findings.iter().map(|finding| {
        context! {
            severity => severity_values(finding.severity),
            title => line_values(&finding.title, NAME_CHARS_MAX),
            place => format!("{}:{}", short_name(finding.file.as_str()), finding.lines),
        }
    });
    findings.collect()
}

/// The categories that a review looked for.
pub(super) fn category_names(review: &ReviewRecord) -> Vec<String> {
    review.categories.iter().map(|known| short_name(&known.title)).collect()
}

/// The table of findings by category and severity.
pub(super) fn heat_map_values(review: &ReviewRecord) -> Value {
    let rows = phrases::table_categories(review).into_iter().map(|(key, title)| {
        let counts = phrases::category_counts(review, key);
        let cells = ReviewSeverity::ALL.into_iter().zip(counts);
        let cells = cells.map(|(severity, number)| heat_cell(review, key, severity, number));
        context! { title => short_name(title), cells => cells.collect::<Vec<Value>>() }
    });
    context! {
        severities => ReviewSeverity::ALL.map(|severity| severity.to_string()),
        rows => rows.collect::<Vec<Value>>(),
    }
}

/// A cell with the number of the first of its findings.
fn heat_cell(review: &ReviewRecord, key: &str, severity: ReviewSeverity, number: usize) -> Value {
    let first = review.findings.iter().position(|finding| {
        finding.severity == severity && phrases::leading_category(finding) == key
    });
    context! {
        heat => match number {
            0..=2 => number,
            3..=5 => 3,
            _ => 4,
        },
        class => severity_class(severity),
        first => first.unwrap_or_default() + 1,
        number => phrases::format_number(number as u64),
    }
}
