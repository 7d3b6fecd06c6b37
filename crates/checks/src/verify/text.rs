//! A verification as text for a terminal: a line per check, failures by cause, and the verdict as
//! the last line.

use repertoire_text::terminal::printable;

use super::super::analyse::{Analysis, Group};
use super::super::error::ParsedError;
use super::{CheckOutcome, CheckReport, Verdict, Verification};
use crate::limits::REPORT_ERRORS_SHOWN;
use repertoire_text::styles::Styles;

/// Renders the report.
pub fn text(verification: &Verification, styles: &Styles) -> String {
    let width = verification.checks.iter().map(|check| check.name.chars().count()).max();
    let mut out: String =
        verification.checks.iter().map(|check| line(check, width.unwrap_or(0), styles)).collect();
    for check in verification.checks.iter().filter(|check| !check.analysis.errors.is_empty()) {
        let name = paint(styles.strong, &printable(&check.name));
        out.push_str(&format!("\n{name}: {}\n", counted(&check.analysis)));
        out.push_str(&groups(&check.analysis, styles));
    }
    if !verification.suspicions.is_empty() {
        out.push_str(&format!("\n{}\n", paint(styles.warn, "Not to be believed yet:")));
        for suspicion in &verification.suspicions {
            let check = suspicion.check.as_ref().map(|check| format!("{}: ", printable(check)));
            let check = check.unwrap_or_default();
            out.push_str(&format!("  {check}{}\n", printable(&suspicion.message)));
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
        paint(style(verification.verdict, styles), words(verification.verdict))
    ));
    out
}

/// Renders an analysis on its own.
pub fn analysis_text(analysis: &Analysis, styles: &Styles) -> String {
    format!("{}\n{}", counted(analysis), groups(analysis, styles))
}

pub(super) fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotVerifiable => "no checks configured",
    }
}

fn style(verdict: Verdict, styles: &Styles) -> anstyle::Style {
    match verdict {
        Verdict::Passed => styles.good,
        Verdict::Failed => styles.bad,
        Verdict::Inconclusive | Verdict::NotVerifiable => styles.warn,
    }
}

fn line(check: &CheckReport, width: usize, styles: &Styles) -> String {
    let (mark, colour) = match check.result {
        CheckOutcome::Passed => ("PASS", styles.good),
        CheckOutcome::Failed => ("FAIL", styles.bad),
        CheckOutcome::TimedOut => ("TIME", styles.bad),
        CheckOutcome::Skipped => ("SKIP", styles.faint),
        CheckOutcome::CouldNotRun => ("????", styles.warn),
    };
    let name = printable(&check.name);
    let name = format!("{name}{}", " ".repeat(width.saturating_sub(check.name.chars().count())));
    let about = about(check).join(", ");
    let about = if about.is_empty() { about } else { format!("  {}", paint(styles.faint, &about)) };
    format!("{} {name}{about}\n", paint(colour, mark))
}

/// Details of a check beyond its result.
pub(super) fn about(check: &CheckReport) -> Vec<String> {
    let mut about = Vec::new();
    if check.attempts > 0 {
        about.push(seconds(check.duration_ms));
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
        about.push(plural(check.analysis.warnings as usize, "warning"));
    }
    if !check.critical {
        about.push("need not pass".to_owned());
    }
    about.extend(check.reason.as_deref().map(printable));
    about
}

pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

pub(super) fn plural(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// The numbers of errors and groups.
pub(super) fn counted(analysis: &Analysis) -> String {
    let errors = plural(analysis.errors.len(), "error");
    let groups = plural(analysis.groups.len(), "group");
    let cut = if analysis.truncated { "; some of the output was not seen" } else { "" };
    match analysis.errors.len() {
        0 => format!("no errors{cut}"),
        _ => format!("{errors} in {groups}{cut}"),
    }
}

fn groups(analysis: &Analysis, styles: &Styles) -> String {
    let mut out = String::new();
    let mut room = REPORT_ERRORS_SHOWN;
    for (at, group) in analysis.groups.iter().enumerate() {
        if room == 0 {
            let left = analysis.groups.len() - at;
            out.push_str(&format!("  and {} more\n", plural(left, "group")));
            break;
        }
        let first = if analysis.fix_first == Some(at) && analysis.groups.len() > 1 {
            ", first"
        } else {
            ""
        };
        let heading = format!("{}{first}", cause(group));
        out.push_str(&format!("  {}\n", paint(styles.warn, &printable(&heading))));
        let errors = group.errors.iter().filter_map(|at| analysis.errors.get(*at));
        for error in errors.take(room) {
            out.push_str(&told(error, styles));
        }
        room = room.saturating_sub(group.errors.len());
    }
    out
}

/// The heading of a group.
pub(super) fn cause(group: &Group) -> String {
    match &group.cause {
        Some(cause) => format!("{}: {cause}", group.category),
        None => group.category.to_string(),
    }
}

fn told(error: &ParsedError, styles: &Styles) -> String {
    let mut head: Vec<String> = Vec::new();
    head.extend(error.place().map(|place| paint(styles.accent, &printable(&place))));
    head.extend(error.code.as_deref().map(|code| paint(styles.faint, &printable(code))));
    head.extend(error.test.as_deref().map(|test| paint(styles.strong, &printable(test))));
    let lines: Vec<String> = error.message.lines().map(printable).collect();
    let (first, rest) =
        lines.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    head.push(first.to_owned());
    let mut out = format!("    {}\n", head.join("  "));
    rest.iter().for_each(|line| out.push_str(&format!("      {line}\n")));
    error.context.iter().for_each(|line| {
        out.push_str(&format!("      {}\n", paint(styles.faint, &printable(line))));
    });
    out
}

fn paint(style: anstyle::Style, text: &str) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}
