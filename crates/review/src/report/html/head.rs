//! The top of the page: verdict, figures, warnings, navigation and overview.

use crate::extract::Severity;

use super::card::{class, severity};
use super::file::{FileView, dots};
use super::{name, prose};
use crate::record::{Review, Subject};
use crate::report::limits::{LINE_CHARS_MAX, NAME_CHARS_MAX};
use crate::report::words;

/// The headline, such as `6 findings`.
pub(super) fn verdict(review: &Review) -> String {
    if review.is_clean() {
        let is_whole = review.failed_calls().next().is_none();
        return if is_whole { "No findings" } else { "Incomplete" }.to_owned();
    }
    if review.findings.is_empty() {
        return words::count(review.insights.len(), "insight");
    }
    words::count(review.findings.len(), "finding")
}

pub(super) fn header(review: &Review) -> String {
    let kind = match review.subject {
        Subject::Code => "Code review",
        Subject::Docs => "Documentation review",
    };
    // If a call failed, a review without findings is incomplete rather than clean.
    let is_whole = review.failed_calls().next().is_none();
    let class = review.worst().map_or(if is_whole { "clean" } else { "minor" }, class);
    let mut facts = vec![format!("<span>{}</span>", name(&review.scope.words))];
    if let Some(branch) = &review.scope.branch {
        facts.push(format!("<span>branch <code>{}</code></span>", name(branch)));
    }
    let commits = [&review.scope.base, &review.scope.head];
    let commits: Vec<String> = commits
        .into_iter()
        .flatten()
        .map(|commit| format!("<code>{}</code>", commit_name(commit)))
        .collect();
    if !commits.is_empty() {
        facts.push(format!("<span>{}</span>", commits.join(" → ")));
    }
    if let Some(moment) = words::moment(review.started_ms) {
        facts.push(format!("<span>{moment}</span>"));
    }
    format!(
        "<header class=\"hero {class}\">\n<div>\n<p class=\"eyebrow\">{kind} · {}</p>\n<h1>{}</h1>\n{}\
         <p class=\"facts\">{}</p>\n{}</div>\n</header>\n",
        words::depth(review.depth),
        verdict(review),
        bar(review),
        facts.join(" "),
        figures(review)
    )
}

fn commit_name(commit: &str) -> String {
    let is_hash = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let end = commit.char_indices().nth(10).map_or(commit.len(), |(at, _)| at);
    name(if is_hash { &commit[..end] } else { commit })
}

/// A bar of the severities, with a legend.
fn bar(review: &Review) -> String {
    let all = review.findings.len();
    if all == 0 {
        return String::new();
    }
    let (mut rects, mut at, mut legend) = (String::new(), 0, String::new());
    for severity in Severity::ALL {
        let number = words::with_severity(review, severity);
        if number == 0 {
            continue;
        }
        rects.push_str(&format!(
            "<rect class=\"{}\" x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"6\"/>",
            class(severity),
            at as f64 * 1000.0 / all as f64,
            number as f64 * 1000.0 / all as f64
        ));
        at += number;
        let plural = if severity == Severity::Suggestion && number > 1 { "s" } else { "" };
        legend.push_str(&format!(
            "<li><span class=\"key {}\"></span>{} {}{plural}</li>",
            class(severity),
            words::thousands(number as u64),
            severity.as_str().to_lowercase()
        ));
    }
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 1000 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{rects}</svg>\n\
         <ul class=\"legend\">{legend}</ul>\n"
    )
}

fn figures(review: &Review) -> String {
    let added: usize = review.files.iter().map(|file| file.added).sum();
    let removed: usize = review.files.iter().map(|file| file.removed).sum();
    let mut out = String::new();
    let mut figure = |label: &str, value: &str, note: String| {
        out.push_str(&format!("<div><dt>{label}</dt><dd>{value}<small>{note}</small></dd></div>"));
    };
    let files = words::thousands(review.files.len() as u64);
    figure("Files", &files, format!("+{added} −{removed}"));
    figure("Agents", &words::agents(review).to_string(), String::new());
    let failed = review.failed_calls().count();
    let note = if failed > 0 { format!("{failed} failed") } else { String::new() };
    figure("Calls", &review.calls_made().to_string(), note);
    figure("Left out", &words::thousands(review.left_out.len() as u64), String::new());
    figure("Time", &words::time(review.duration_ms), String::new());
    if let Some(cost) = words::cost(review) {
        match cost.strip_prefix("at least ") {
            Some(sum) => figure("Cost", &format!("≥ {sum}"), "not all known".to_owned()),
            None => figure("Cost", &cost, String::new()),
        }
    }
    format!("<dl class=\"figures\">{out}</dl>\n")
}

/// Links to the files.
pub(super) fn navigation(review: &Review, files: &[FileView]) -> String {
    let mut out = "<nav aria-label=\"Files\">\n<h2>Files</h2>\n<ol>\n".to_owned();
    for (at, file) in files.iter().enumerate() {
        let class = if file.found.is_empty() { " class=\"none\"" } else { "" };
        out.push_str(&format!(
            "<li{class}><a href=\"#file{}\"><span class=\"path\">{}</span>{}</a></li>\n",
            at + 1,
            name(&file.path),
            dots(review, file)
        ));
    }
    out.push_str("</ol>\n");
    if !review.findings.is_empty() {
        out.push_str("<p class=\"keys\"><kbd>j</kbd> next finding <kbd>k</kbd> previous</p>\n");
    }
    out.push_str("</nav>\n");
    out
}

pub(super) fn warnings(review: &Review) -> String {
    let skills = review.unresolved_skills.iter().map(|skill| {
        format!(
            "The skill <code>{}</code> could not be resolved and was skipped: {}",
            name(&skill.source),
            prose::inline(&words::one_line(&skill.reason, LINE_CHARS_MAX))
        )
    });
    let others = words::warnings(review);
    let others =
        others.iter().map(|warning| prose::inline(&words::one_line(warning, LINE_CHARS_MAX)));
    let items: Vec<String> = skills.chain(others).map(|text| format!("<li>{text}</li>")).collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<ul class=\"warnings\" aria-label=\"Warnings\">{}</ul>\n", items.join("\n"))
}

/// The list of findings, and a table by category and severity.
pub(super) fn overview(review: &Review) -> String {
    if review.findings.is_empty() {
        return checked(review);
    }
    format!(
        "<section class=\"overview\" aria-labelledby=\"overview\">\n<h2 id=\"overview\">Overview</h2>\n\
         <div class=\"two\">\n{}{}</div>\n</section>\n",
        list(review),
        heat_map(review)
    )
}

/// The categories that a review without findings looked for.
fn checked(review: &Review) -> String {
    let names: Vec<String> =
        review.categories.iter().map(|known| format!("<li>{}</li>", name(&known.title))).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"checked\"><h2 id=\"checked\">Looked for</h2><ul class=\"chips\">{}</ul></section>\n",
        names.join("")
    )
}

fn list(review: &Review) -> String {
    let mut out = "<ol class=\"list\">\n".to_owned();
    for (at, finding) in review.findings.iter().enumerate() {
        out.push_str(&format!(
            "<li><a href=\"#f{}\">{}<span class=\"what\">{}</span><span class=\"where\">{}:{}</span></a></li>\n",
            at + 1,
            severity(finding.severity),
            prose::inline(&words::one_line(&finding.title, NAME_CHARS_MAX)),
            name(finding.file.as_str()),
            finding.lines
        ));
    }
    out.push_str("</ol>\n");
    out
}

fn heat_map(review: &Review) -> String {
    let mut out = "<table class=\"heat\">\n<caption>Findings by category and severity</caption>\n<thead><tr><td></td>"
        .to_owned();
    for severity in Severity::ALL {
        out.push_str(&format!("<th scope=\"col\">{severity}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (key, title) in words::table_categories(review) {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", name(title)));
        for (severity, number) in Severity::ALL.into_iter().zip(words::category_counts(review, key))
        {
            out.push_str(&heat_cell(review, key, severity, number));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

/// A cell with a link to the first of its findings.
fn heat_cell(review: &Review, key: &str, severity: Severity, number: usize) -> String {
    let is_here = |finding: &crate::record::Reported| {
        finding.severity == severity && words::lead(finding) == key
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
        class(severity),
        words::thousands(number as u64)
    )
}
