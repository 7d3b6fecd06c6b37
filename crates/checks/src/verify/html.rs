//! A verification as a self-contained HTML page. It loads nothing and runs no scripts, and all
//! output of tools is escaped.

use super::super::analyse::ErrorGroup;
use super::super::error::ParsedError;
use super::text::{
    check_details, format_counts, format_plural, format_seconds, group_heading, verdict_label,
};
use super::{CheckOutcome, CheckReport, VerificationMode, VerificationReport, VerificationVerdict};
use crate::limits::REPORT_ERRORS_SHOWN;
use repertoire_text::html::{escape_visibly as esc, source_hash};

const STYLE: &str = include_str!("html/style.css");

/// Renders the page.
pub fn render_html(verification: &VerificationReport) -> String {
    let mut out = render_head(verification);
    out.push_str(&render_header(verification));
    out.push_str("<main>\n");
    out.push_str(&render_suspicions(verification));
    out.push_str("<ol class=\"checks\">\n");
    verification.checks.iter().for_each(|report| out.push_str(&render_check(report)));
    out.push_str("</ol>\n");
    if verification.checks.is_empty() {
        out.push_str("<p class=\"none\">No checks are declared, so nothing could be verified. That is no pass.</p>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn render_head(verification: &VerificationReport) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(STYLE)
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"referrer\" content=\"no-referrer\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Verification: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        verdict_label(verification.verdict)
    )
}

fn render_header(verification: &VerificationReport) -> String {
    let passed = verification.checks.iter().filter(|check| check.result == CheckOutcome::Passed);
    let mut facts = vec![format!(
        "{} of {} passed",
        passed.count(),
        format_plural(verification.checks.len(), "check")
    )];
    let errors = verification.errors().count();
    if errors > 0 {
        facts.push(format_plural(errors, "error"));
    }
    facts.push(format_seconds(verification.duration_ms));
    facts.extend(verification.state.commit.as_deref().map(|commit| {
        let commit: String = commit.chars().take(10).collect();
        let clean = match verification.state.clean {
            Some(true) => "clean",
            Some(false) => "with changes",
            None => "unknown state",
        };
        format!("commit {commit}, {clean}")
    }));
    facts.push(match verification.mode {
        VerificationMode::Fast => "the first red ends it".to_owned(),
        VerificationMode::Full => "all was run that could be".to_owned(),
    });
    facts.extend(verification.compared.as_ref().map(|compared| {
        let (new, remaining, gone) =
            (compared.new.len(), compared.remaining.len(), compared.gone.len());
        format!("compared with before: {new} new, {remaining} still there, {gone} gone")
    }));
    let facts: String = facts.iter().map(|fact| format!("<li>{}</li>", esc(fact))).collect();
    let kind = match verification.verdict {
        VerificationVerdict::Passed => "good",
        VerificationVerdict::Failed => "bad",
        VerificationVerdict::Inconclusive | VerificationVerdict::NotVerifiable => "unsure",
    };
    format!(
        "<header class=\"{kind}\">\n<p class=\"what\">Verification</p>\n<h1>{}</h1>\n<ul class=\"facts\">{facts}</ul>\n</header>\n",
        verdict_label(verification.verdict)
    )
}

fn render_suspicions(verification: &VerificationReport) -> String {
    if verification.suspicions.is_empty() {
        return String::new();
    }
    let rows = verification.suspicions.iter().map(|suspicion| {
        let check = suspicion.check.as_deref().map(|name| format!("<b>{}</b> ", esc(name)));
        format!("<li>{}{}</li>\n", check.unwrap_or_default(), esc(&suspicion.message))
    });
    let rows: String = rows.collect();
    format!(
        "<section class=\"suspicions\">\n<h2>Not to be believed yet</h2>\n<ul>\n{rows}</ul>\n</section>\n"
    )
}

fn render_check(check: &CheckReport) -> String {
    let (kind, word) = match check.result {
        CheckOutcome::Passed => ("good", "passed"),
        CheckOutcome::Failed => ("bad", "failed"),
        CheckOutcome::TimedOut => ("bad", "took too long"),
        CheckOutcome::Skipped => ("quiet", "skipped"),
        CheckOutcome::CouldNotRun => ("unsure", "could not run"),
    };
    let about = check_details(check).join(" · ");
    let mut out = format!(
        "<li class=\"check {kind}\">\n<div class=\"head\"><span class=\"result\">{word}</span><h2>{}</h2><span class=\"about\">{}</span></div>\n<pre class=\"command\">{}</pre>\n",
        esc(&check.name),
        esc(&about),
        esc(&check.command)
    );
    if !check.analysis.errors.is_empty() {
        out.push_str(&format!(
            "<p class=\"counted\">{}</p>\n",
            esc(&format_counts(&check.analysis))
        ));
        let mut room = REPORT_ERRORS_SHOWN;
        for (at, one) in check.analysis.groups.iter().enumerate() {
            if room == 0 {
                break;
            }
            let first = check.analysis.fix_first == Some(at) && check.analysis.groups.len() > 1;
            let errors = one.errors.iter().filter_map(|at| check.analysis.errors.get(*at));
            out.push_str(&render_group(one, first, errors.take(room)));
            room = room.saturating_sub(one.errors.len());
        }
        if check.analysis.errors.len() > REPORT_ERRORS_SHOWN {
            out.push_str("<p class=\"counted\">More errors are not shown here; the JSON report has all.</p>\n");
        }
    }
    if !check.output.is_empty() {
        let size = format_plural(check.output_bytes as usize, "byte");
        out.push_str(&format!(
            "<details>\n<summary>Output, {size}</summary>\n<pre class=\"output\">{}</pre>\n</details>\n",
            esc(&check.output)
        ));
    }
    out.push_str("</li>\n");
    out
}

fn render_group<'a>(
    group: &ErrorGroup,
    first: bool,
    errors: impl Iterator<Item = &'a ParsedError>,
) -> String {
    let mark = if first { "<span class=\"first\">first</span> " } else { "" };
    let errors: String = errors.map(render_error).collect();
    format!(
        "<section class=\"group\">\n<h3>{mark}{}</h3>\n<ul>\n{errors}</ul>\n</section>\n",
        esc(&group_heading(group))
    )
}

fn render_error(error: &ParsedError) -> String {
    let mut out = String::from("<li>");
    out.extend(error.location().map(|place| render_span("place", &place)));
    out.extend(error.code.as_deref().map(|code| render_span("code", code)));
    out.extend(error.test.as_deref().map(|test| render_span("test", test)));
    out.push_str(&format!("<div class=\"message\">{}</div>", esc(&error.message)));
    if !error.context.is_empty() {
        let lines = error.context.iter().map(|line| {
            if line.starts_with('>') { format!("<mark>{}</mark>", esc(line)) } else { esc(line) }
        });
        let lines: Vec<String> = lines.collect();
        out.push_str(&format!("<pre class=\"context\">{}</pre>", lines.join("\n")));
    }
    out.push_str("</li>\n");
    out
}

fn render_span(class: &str, text: &str) -> String {
    format!("<span class=\"{class}\">{}</span> ", esc(text))
}
