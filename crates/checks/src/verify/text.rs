//! A verification as text for a terminal: a line per check, failures by cause, and the verdict as
//! the last line.

use repertoire_text::terminal::printable_line;

use super::super::analyse::{ErrorGroup, OutputAnalysis};
use super::super::error::ParsedError;
use super::{CheckOutcome, CheckReport, VerificationReport, VerificationVerdict};
use crate::limits::REPORT_ERRORS_SHOWN;
use repertoire_text::styles::Styles;

/// Renders the report.
pub fn render_text(verification: &VerificationReport, styles: &Styles) -> String {
    let width = verification.checks.iter().map(|check| check.name.chars().count()).max();
    let mut out: String = verification
        .checks
        .iter()
        .map(|check| render_check_line(check, width.unwrap_or(0), styles))
        .collect();
    for check in verification.checks.iter().filter(|check| !check.analysis.errors.is_empty()) {
        let name = paint_text(styles.strong, &printable_line(&check.name));
        out.push_str(&format!("\n{name}: {}\n", format_counts(&check.analysis)));
        out.push_str(&render_groups(&check.analysis, styles));
    }
    if !verification.suspicions.is_empty() {
        out.push_str(&format!("\n{}\n", paint_text(styles.warn, "Not to be believed yet:")));
        for suspicion in &verification.suspicions {
            let check =
                suspicion.check.as_ref().map(|check| format!("{}: ", printable_line(check)));
            let check = check.unwrap_or_default();
            out.push_str(&format!("  {check}{}\n", printable_line(&suspicion.message)));
        }
    }
    if let Some(compared) = &verification.compared {
        let (new, remaining, gone) =
            (compared.new.len(), compared.remaining.len(), compared.gone.len());
        out.push_str(&format!(
            "\nCompared with before: {new} new, {remaining} still there, {gone} gone.\n"
        ));
    }
    let gap = if out.is_empty() { "" } else { "\n" };
    out.push_str(&format!(
        "{gap}{}\n",
        paint_text(
            verdict_style(verification.verdict, styles),
            verdict_label(verification.verdict)
        )
    ));
    out
}

/// Renders an analysis on its own.
pub fn analysis_text(analysis: &OutputAnalysis, styles: &Styles) -> String {
    format!("{}\n{}", format_counts(analysis), render_groups(analysis, styles))
}

pub(super) fn verdict_label(verdict: VerificationVerdict) -> &'static str {
    match verdict {
        VerificationVerdict::Passed => "passed",
        VerificationVerdict::Failed => "failed",
        VerificationVerdict::Inconclusive => "inconclusive",
        VerificationVerdict::NotVerifiable => "no checks configured",
    }
}

fn verdict_style(verdict: VerificationVerdict, styles: &Styles) -> anstyle::Style {
    match verdict {
        VerificationVerdict::Passed => styles.good,
        VerificationVerdict::Failed => styles.bad,
        VerificationVerdict::Inconclusive | VerificationVerdict::NotVerifiable => styles.warn,
    }
}

fn render_check_line(check: &CheckReport, width: usize, styles: &Styles) -> String {
    let (mark, colour) = match check.result {
        CheckOutcome::Passed => ("PASS", styles.good),
        CheckOutcome::Failed => ("FAIL", styles.bad),
        CheckOutcome::TimedOut => ("TIME", styles.bad),
        CheckOutcome::Skipped => ("SKIP", styles.faint),
        CheckOutcome::CouldNotRun => ("????", styles.warn),
    };
    let name = printable_line(&check.name);
    let name = format!("{name}{}", " ".repeat(width.saturating_sub(check.name.chars().count())));
    let about = check_details(check).join(", ");
    let about =
        if about.is_empty() { about } else { format!("  {}", paint_text(styles.faint, &about)) };
    format!("{} {name}{about}\n", paint_text(colour, mark))
}

/// Details of a check beyond its result.
pub(super) fn check_details(check: &CheckReport) -> Vec<String> {
    let mut about = Vec::new();
    if check.attempts > 0 {
        about.push(format_seconds(check.duration_ms));
    }
    if let Some(code) = check.exit_code.filter(|code| *code != 0) {
        about.push(format!("exit code {code}"));
    }
    if let Some(tests) = check.tests {
        let mut said = format!("{} tests", tests.run);
        for (number, word) in [(tests.failed, "failed"), (tests.skipped, "left out")] {
            if number > 0 {
                said.push_str(&format!(", {number} {word}"));
            }
        }
        about.push(said);
    }
    if check.flaky {
        about.push(format!("unstable: passed on attempt {}", check.attempts));
    }
    if check.analysis.warnings > 0 {
        about.push(format_plural(check.analysis.warnings as usize, "warning"));
    }
    if !check.critical {
        about.push("need not pass".to_owned());
    }
    about.extend(check.reason.as_deref().map(printable_line));
    about
}

pub(super) fn format_seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

pub(super) fn format_plural(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// The numbers of errors and groups.
pub(super) fn format_counts(analysis: &OutputAnalysis) -> String {
    let errors = format_plural(analysis.errors.len(), "error");
    let groups = format_plural(analysis.groups.len(), "group");
    let cut = if analysis.truncated { "; some of the output was not seen" } else { "" };
    match analysis.errors.len() {
        0 => format!("no errors{cut}"),
        _ => format!("{errors} in {groups}{cut}"),
    }
}

fn render_groups(analysis: &OutputAnalysis, styles: &Styles) -> String {
    let mut out = String::new();
    let mut room = REPORT_ERRORS_SHOWN;
    for (at, group) in analysis.groups.iter().enumerate() {
        if room == 0 {
            let left = analysis.groups.len() - at;
            out.push_str(&format!("  and {} more\n", format_plural(left, "group")));
            break;
        }
        let first = if analysis.fix_first == Some(at) && analysis.groups.len() > 1 {
            ", first"
        } else {
            ""
        };
        let heading = format!("{}{first}", group_heading(group));
        out.push_str(&format!("  {}\n", paint_text(styles.warn, &printable_line(&heading))));
        let errors = group.errors.iter().filter_map(|at| analysis.errors.get(*at));
        for error in errors.take(room) {
            out.push_str(&render_error(error, styles));
        }
        room = room.saturating_sub(group.errors.len());
    }
    out
}

/// The heading of a group.
pub(super) fn group_heading(group: &ErrorGroup) -> String {
    match &group.cause {
        Some(cause) => format!("{}: {cause}", group.category),
        None => group.category.to_string(),
    }
}

fn render_error(error: &ParsedError, styles: &Styles) -> String {
    let mut head: Vec<String> = Vec::new();
    head.extend(error.location().map(|place| paint_text(styles.accent, &printable_line(&place))));
    head.extend(error.code.as_deref().map(|code| paint_text(styles.faint, &printable_line(code))));
    head.extend(error.test.as_deref().map(|test| paint_text(styles.strong, &printable_line(test))));
    let lines: Vec<String> = error.message.lines().map(printable_line).collect();
    let (first, rest) =
        lines.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    head.push(first.to_owned());
    let mut out = format!("    {}\n", head.join("  "));
    rest.iter().for_each(|line| out.push_str(&format!("      {line}\n")));
    error.context.iter().for_each(|line| {
        out.push_str(&format!("      {}\n", paint_text(styles.faint, &printable_line(line))));
    });
    out
}

fn paint_text(style: anstyle::Style, text: &str) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}
