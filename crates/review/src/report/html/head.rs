//! The top of the page: verdict, figures, warnings, navigation and overview.

use crate::extract::ReviewSeverity;

use super::card::{severity_class, severity_label};
use super::file::{FileView, render_severity_dots};
use super::{escape_name, prose};
use crate::record::{ReviewRecord, ReviewSubject};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX};
use crate::report::phrases;

/// The headline, such as `6 findings`.
pub(super) fn verdict_text(review: &ReviewRecord) -> String {
    if review.is_clean() {
        let is_whole = review.failed_calls().next().is_none();
        return if is_whole { "No findings" } else { "Incomplete" }.to_owned();
    }
    if review.findings.is_empty() {
        return phrases::format_count(review.insights.len(), "insight");
    }
    phrases::format_count(review.findings.len(), "finding")
}

pub(super) fn render_header(review: &ReviewRecord) -> String {
    let kind = match review.subject {
        ReviewSubject::Code => "Code review",
        ReviewSubject::Docs => "Documentation review",
    };
    // If a call failed, a review without findings is incomplete rather than clean.
    let is_whole = review.failed_calls().next().is_none();
    let class =
        review.worst_severity().map_or(if is_whole { "clean" } else { "minor" }, severity_class);
    let mut facts = vec![format!("<span>{}</span>", escape_name(&review.scope.words))];
    if let Some(branch) = &review.scope.branch {
        facts.push(format!("<span>branch <code>{}</code></span>", escape_name(branch)));
    }
    let commits = [&review.scope.base, &review.scope.head];
    let commits: Vec<String> = commits
        .into_iter()
        .flatten()
        .map(|commit| format!("<code>{}</code>", format_commit(commit)))
        .collect();
    if !commits.is_empty() {
        facts.push(format!("<span>{}</span>", commits.join(" → ")));
    }
    if let Some(moment) = phrases::format_time(review.started_ms) {
        facts.push(format!("<span>{moment}</span>"));
    }
    format!(
        "<header class=\"hero {class}\">\n<div>\n<p class=\"eyebrow\">{kind} · {}</p>\n<h1>{}</h1>\n{}\
         <p class=\"facts\">{}</p>\n{}</div>\n</header>\n",
        phrases::depth_name(review.depth),
        verdict_text(review),
        render_severity_bar(review),
        facts.join(" "),
        render_figures(review)
    )
}

fn format_commit(commit: &str) -> String {
    let is_hash = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let end = commit.char_indices().nth(10).map_or(commit.len(), |(at, _)| at);
    escape_name(if is_hash { &commit[..end] } else { commit })
}

/// A bar of the severities, with a legend.
fn render_severity_bar(review: &ReviewRecord) -> String {
    let all = review.findings.len();
    if all == 0 {
        return String::new();
    }
    let (mut rects, mut at, mut legend) = (String::new(), 0, String::new());
    for severity in ReviewSeverity::ALL {
        let number = phrases::count_with_severity(review, severity);
        if number == 0 {
            continue;
        }
        rects.push_str(&format!(
            "<rect class=\"{}\" x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"6\"/>",
            severity_class(severity),
            at as f64 * 1000.0 / all as f64,
            number as f64 * 1000.0 / all as f64
        ));
        at += number;
        let plural = if severity == ReviewSeverity::Suggestion && number > 1 { "s" } else { "" };
        legend.push_str(&format!(
            "<li><span class=\"key {}\"></span>{} {}{plural}</li>",
            severity_class(severity),
            phrases::format_number(number as u64),
            severity.as_str().to_lowercase()
        ));
    }
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 1000 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{rects}</svg>\n\
         <ul class=\"legend\">{legend}</ul>\n"
    )
}

fn render_figures(review: &ReviewRecord) -> String {
    let added: usize = review.files.iter().map(|file| file.added).sum();
    let removed: usize = review.files.iter().map(|file| file.removed).sum();
    let mut out = String::new();
    let mut figure = |label: &str, value: &str, note: String| {
        out.push_str(&format!("<div><dt>{label}</dt><dd>{value}<small>{note}</small></dd></div>"));
    };
    let files = phrases::format_number(review.files.len() as u64);
    figure("Files", &files, format!("+{added} −{removed}"));
    figure("Agents", &phrases::count_agents(review).to_string(), String::new());
    let failed = review.failed_calls().count();
    let note = if failed > 0 { format!("{failed} failed") } else { String::new() };
    figure("Calls", &review.calls_made().to_string(), note);
    figure("Left out", &phrases::format_number(review.left_out.len() as u64), String::new());
    figure("Time", &phrases::format_duration(review.duration_ms), String::new());
    if let Some(cost) = phrases::review_cost(review) {
        match cost.strip_prefix("at least ") {
            Some(sum) => figure("Cost", &format!("≥ {sum}"), "not all known".to_owned()),
            None => figure("Cost", &cost, String::new()),
        }
    }
    format!("<dl class=\"figures\">{out}</dl>\n")
}

/// Links to the files.
pub(super) fn render_navigation(review: &ReviewRecord, files: &[FileView]) -> String {
    let mut out = "<nav aria-label=\"Files\">\n<h2>Files</h2>\n<ol>\n".to_owned();
    for (at, file) in files.iter().enumerate() {
        let class = if file.found.is_empty() { " class=\"none\"" } else { "" };
        out.push_str(&format!(
            "<li{class}><a href=\"#file{}\"><span class=\"path\">{}</span>{}</a></li>\n",
            at + 1,
            escape_name(&file.path),
            render_severity_dots(review, file)
        ));
    }
    out.push_str("</ol>\n");
    if !review.findings.is_empty() {
        out.push_str("<p class=\"keys\"><kbd>j</kbd> next finding <kbd>k</kbd> previous</p>\n");
    }
    out.push_str("</nav>\n");
    out
}

pub(super) fn render_warnings(review: &ReviewRecord) -> String {
    let skills = review.unresolved_skills.iter().map(|skill| {
        format!(
            "The skill <code>{}</code> could not be resolved and was skipped: {}",
            escape_name(&skill.source),
            prose::render_inline(&phrases::to_one_line(&skill.reason, LINE_CHARS_MAX))
        )
    });
    let others = phrases::all_warnings(review);
    let others = others
        .iter()
        .map(|warning| prose::render_inline(&phrases::to_one_line(warning, LINE_CHARS_MAX)));
    let items: Vec<String> = skills.chain(others).map(|text| format!("<li>{text}</li>")).collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<ul class=\"warnings\" aria-label=\"Warnings\">{}</ul>\n", items.join("\n"))
}

/// The list of findings, and a table by category and severity.
pub(super) fn render_overview(review: &ReviewRecord) -> String {
    if review.findings.is_empty() {
        return render_checked_categories(review);
    }
    format!(
        "<section class=\"overview\" aria-labelledby=\"overview\">\n<h2 id=\"overview\">Overview</h2>\n\
         <div class=\"two\">\n{}{}</div>\n</section>\n",
        render_finding_list(review),
        render_heat_map(review)
    )
}

/// The categories that a review without findings looked for.
fn render_checked_categories(review: &ReviewRecord) -> String {
    let names: Vec<String> = review
        .categories
        .iter()
        .map(|known| format!("<li>{}</li>", escape_name(&known.title)))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"checked\"><h2 id=\"checked\">Looked for</h2><ul class=\"chips\">{}</ul></section>\n",
        names.join("")
    )
}

fn render_finding_list(review: &ReviewRecord) -> String {
    let mut out = "<ol class=\"list\">\n".to_owned();
    for (at, finding) in review.findings.iter().enumerate() {
        out.push_str(&format!(
            "<li><a href=\"#f{}\">{}<span class=\"what\">{}</span><span class=\"where\">{}:{}</span></a></li>\n",
            at + 1,
            severity_label(finding.severity),
            prose::render_inline(&phrases::to_one_line(&finding.title, NAME_CHARS_MAX)),
            escape_name(finding.file.as_str()),
            finding.lines
        ));
    }
    out.push_str("</ol>\n");
    out
}

fn render_heat_map(review: &ReviewRecord) -> String {
    let mut out = "<table class=\"heat\">\n<caption>Findings by category and severity</caption>\n<thead><tr><td></td>"
        .to_owned();
    for severity in ReviewSeverity::ALL {
        out.push_str(&format!("<th scope=\"col\">{severity}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (key, title) in phrases::table_categories(review) {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape_name(title)));
        for (severity, number) in
            ReviewSeverity::ALL.into_iter().zip(phrases::category_counts(review, key))
        {
            out.push_str(&render_heat_cell(review, key, severity, number));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

/// A cell with a link to the first of its findings.
fn render_heat_cell(
    review: &ReviewRecord,
    key: &str,
    severity: ReviewSeverity,
    number: usize,
) -> String {
    let is_here = |finding: &crate::record::ReportedFinding| {
        finding.severity == severity && phrases::leading_category(finding) == key
    };
    let heat = match number {
        0 => return "<td class=\"h0\"><span>–</span></td>".to_owned(),
        1 => 1,
        2 => 2,
        3..=5 => 3,
        _ => 4,
    };
    let first = review.findings.iter().position(is_here).unwrap_or_default() + 1;
    format!(
        "<td class=\"{} h{heat}\"><a href=\"#f{first}\">{}</a></td>",
        severity_class(severity),
        phrases::format_number(number as u64)
    )
}
