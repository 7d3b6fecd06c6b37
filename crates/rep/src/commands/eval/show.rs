//! Prints the result of an evaluation for people.

use std::io;

use repertoire_select::eval::compare::{MetricDifference, QueryChange};
use repertoire_select::eval::skills::SkillFigures;
use repertoire_select::eval::{AnswerFault, EvalMetric, EvalReport, FailedQuery};
use repertoire_text::terminal::printable_line;

use super::{EvalMeasurement, EvalQueryFiles};
use crate::schema::{ComparisonJson, MissedMinimumJson};
use crate::ui::{self, TerminalUi};

const BAR_COLUMNS: usize = 20;
/// Maximum number of lines for each list of the summary.
const LINES_MAX: usize = 5;
const CHANGES_MAX: usize = 20;
/// Indentation of the continuation lines of a reason.
const INDENT: &str = "           ";

pub(super) fn print_problems(found: &EvalQueryFiles, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    for problem in &found.problems {
        let line =
            format!("{} {}", ui.paint(ui::WARN, "warning:"), printable_line(&problem.to_string()));
        ui.print_note(&line)?;
        let hint = format!("{} {}", ui.paint(ui::ACCENT, "hint:"), printable_line(&problem.help));
        ui.print_note(&hint)?;
    }
    if !found.not_labelled.is_empty() {
        let files = found.not_labelled.join(", ");
        ui.print_note(&format!(
            "Passed over, for want of labelled queries: {}",
            printable_line(&files)
        ))?;
    }
    Ok(())
}

pub(super) fn print_report(
    measured: &EvalMeasurement<'_>,
    ui: &mut TerminalUi<'_>,
) -> io::Result<()> {
    print_heading(measured, ui)?;
    let report = &measured.report;
    for metric in EvalMetric::ALL {
        let line = metric_line(metric, report.figures.get(metric), ui);
        writeln!(ui.out, "{line}")?;
    }
    writeln!(ui.out)?;
    let calibration = &report.calibration;
    if let Some((error, brier)) = calibration.expected_error.zip(calibration.brier) {
        let scores = ui::format_count(calibration.count, "score");
        let line = format!("{scores}: calibration error {error:.3}, Brier score {brier:.3}");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    if let Some(times) = report.latency {
        let (p50, p95, p99) =
            (format_ms(times.p50_us), format_ms(times.p95_us), format_ms(times.p99_us));
        let line =
            format!("a query takes {p50} (p95 {p95}, p99 {p99}, max {})", format_ms(times.max_us));
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    print_confusions(report, ui)?;
    print_weakest_skills(report, ui)
}

fn format_ms(us: u64) -> String {
    format!("{:.2} ms", us as f64 / 1e3)
}

fn print_heading(measured: &EvalMeasurement<'_>, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    let counts = &measured.report.counts;
    let queries = ui::format_count(counts.queries, "query").replace("querys", "queries");
    let files = ui::format_count(measured.found.files.len(), "file");
    let skills = ui::format_count(measured.skills, "skill");
    let title = ui.paint(ui::STRONG, format!("{queries} in {files}, {skills}"));
    let (positive, negative, empty) = (counts.positive, counts.negative, counts.empty);
    let kinds =
        [(positive, "with a right skill"), (negative, "with a wrong one"), (empty, "with none")];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    writeln!(ui.out, "{title} {}", ui.paint(ui::FAINT, format!("({})", kinds.join(", "))))?;
    if measured.found.unknown_skill > 0 {
        let unknown = measured.found.unknown_skill;
        let line = format!("{unknown} more about skills that are not there are not counted");
        writeln!(ui.out, "{}", ui.paint(ui::WARN, line))?;
    }
    writeln!(ui.out)
}

fn metric_line(metric: EvalMetric, value: Option<f64>, ui: &TerminalUi<'_>) -> String {
    let name = ui::pad_columns(metric.as_str(), 11);
    // Leave out the meaning on a narrow screen; it is in the documentation as well.
    let room = ui.columns.saturating_sub(42);
    let meaning = if ui::text_width(metric.meaning()) > room { "" } else { metric.meaning() };
    let meaning = ui.paint(ui::FAINT, meaning);
    let Some(value) = value else {
        let none = ui.paint(ui::FAINT, format!("{:>6}", "-"));
        let line = format!("  {name} {} {none}  {meaning}", " ".repeat(BAR_COLUMNS));
        return line.trim_end().to_owned();
    };
    format!("  {name} {} {value:>6.3}  {meaning}", draw_bar(value, ui)).trim_end().to_owned()
}

fn draw_bar(value: f64, ui: &TerminalUi<'_>) -> String {
    let full = ((value * BAR_COLUMNS as f64).round() as usize).min(BAR_COLUMNS);
    let style = match value {
        value if value >= 0.8 => ui::GOOD,
        value if value >= 0.5 => ui::WARN,
        _ => ui::BAD,
    };
    let rest = ui.paint(ui::FAINT, "░".repeat(BAR_COLUMNS - full));
    format!("{}{rest}", ui.paint(style, "█".repeat(full)))
}

fn print_confusions(report: &EvalReport, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    if report.confusions.is_empty() {
        return Ok(());
    }
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Picked instead"))?;
    for pair in report.confusions.iter().take(LINES_MAX) {
        let (picked, right) = (printable_line(&pair.picked), printable_line(&pair.right));
        let line = format!("{:>4}  {picked} for {right}", pair.count);
        let room = ui.columns.saturating_sub(ui::text_width(&line) + 4).max(20);
        let example = ui.paint(ui::FAINT, format!("\"{}\"", ui::fit_columns(&pair.example, room)));
        writeln!(ui.out, "{line}  {example}")?;
    }
    print_more(report.confusions.len(), LINES_MAX, "--json", ui)
}

/// Prints the skills with the most wrong answers (missed queries and false picks), the worst first.
fn print_weakest_skills(report: &EvalReport, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    let mut rows: Vec<&SkillFigures> =
        report.skills.iter().filter(|row| wrong_answers(row) > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(wrong_answers(row)));
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Weakest skills"))?;
    let shown = &rows[..rows.len().min(LINES_MAX)];
    print_skill_rows(shown, ui)?;
    print_more(rows.len(), LINES_MAX, "--per-skill", ui)
}

pub(super) fn print_skills(report: &EvalReport, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Every skill"))?;
    print_skill_rows(&report.skills.iter().collect::<Vec<_>>(), ui)
}

/// The number of missed queries and false picks.
fn wrong_answers(row: &SkillFigures) -> usize {
    row.positives - row.picked + row.false_picks
}

fn print_skill_rows(rows: &[&SkillFigures], ui: &mut TerminalUi<'_>) -> io::Result<()> {
    let names = rows.iter().map(|row| ui::text_width(&row.skill));
    let columns = names.max().unwrap_or(0).clamp(5, 32);
    for row in rows {
        let name = ui::pad_columns(&ui::fit_columns(&row.skill, columns), columns);
        let recall = match row.recall {
            Some(recall) => {
                format!("{} {:>3} of {}", draw_bar(recall, ui), row.picked, row.positives)
            }
            None => format!("{} {:>3} of 0", " ".repeat(BAR_COLUMNS), 0),
        };
        let line = format!("  {name}  {recall} picked{}", describe_false_picks(row));
        writeln!(ui.out, "{line}")?;
    }
    Ok(())
}

fn describe_false_picks(row: &SkillFigures) -> String {
    if row.false_picks == 0 {
        return String::new();
    }
    let second = row.false_picks - row.stolen - row.forbidden - row.unasked;
    let parts = [
        (row.stolen, "stolen"),
        (row.forbidden, "forbidden"),
        (row.unasked, "unasked"),
        (second, "beside a right one"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    format!(", {} ({})", ui::format_count(row.false_picks, "false pick"), parts.join(", "))
}

fn print_more(all: usize, shown: usize, flag: &str, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    if all <= shown {
        return Ok(());
    }
    let line = format!("      and {} more, see {flag}", all - shown);
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))
}

/// Prints every query with a wrong answer.
pub(super) fn print_failures(report: &EvalReport, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    if report.failures.is_empty() {
        return Ok(());
    }
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "What went wrong"))?;
    for failed in &report.failures {
        print_failure(failed, ui)?;
    }
    Ok(())
}

fn print_failure(failed: &FailedQuery, ui: &mut TerminalUi<'_>) -> io::Result<()> {
    let fault = ui.paint(ui::BAD, failed.fault);
    let place = ui.paint(ui::FAINT, printable_line(&failed.place.to_string()));
    let room = ui.columns.saturating_sub(6);
    writeln!(ui.out, "  {fault} {place}")?;
    writeln!(ui.out, "    \"{}\"", ui::fit_columns(&failed.query, room))?;
    for pick in &failed.picked {
        let mark = if failed.gold.contains(&pick.name) { "right " } else { "picked" };
        let (name, why) = (printable_line(&pick.name), pick.reasons.join("; "));
        let line = format!("{name} {:.2}: {}", pick.score, printable_line(&why));
        writeln!(ui.out, "    {mark} {}", ui::wrap_words(&line, room.saturating_sub(7), INDENT))?;
    }
    match &failed.nearest {
        Some(near) => {
            let mut line = printable_line(&near.name);
            match (near.rank, near.score) {
                (Some(rank), Some(score)) => line += &format!(" {score:.2}, place {rank}"),
                _ => line += ", without a place",
            }
            line += &near.lacked.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
            if !near.missing.is_empty() {
                line += &format!(", has no \"{}\"", near.missing.join("\", \""));
            }
            writeln!(ui.out, "    wanted {}", ui::wrap_words(&line, room.saturating_sub(7), INDENT))
        }
        None if failed.fault == AnswerFault::Unasked => writeln!(ui.out, "    wanted nothing"),
        None => writeln!(ui.out, "    wanted not {}", printable_line(&failed.not.join(", "))),
    }
}

/// Prints the metrics that are below their required minimum.
pub(super) fn print_missed_minimums(
    short: &[MissedMinimumJson],
    ui: &mut TerminalUi<'_>,
) -> io::Result<()> {
    if !short.is_empty() {
        writeln!(ui.out)?;
    }
    for MissedMinimumJson { metric, value, min } in short {
        let line = match value {
            Some(value) if metric == "queries" => format!("{value} queries, {min} were asked for"),
            Some(value) => format!("{metric} is {value:.3}, {min} was asked for"),
            None => format!("{metric} is measured by no query, {min} was asked for"),
        };
        writeln!(ui.out, "{} {line}", ui.paint(ui::BAD, "too low:"))?;
    }
    Ok(())
}

/// Suggests the step that helps most.
pub(super) fn print_suggestion(
    report: &EvalReport,
    is_told: bool,
    ui: &mut TerminalUi<'_>,
) -> io::Result<()> {
    let count =
        |fault: AnswerFault| report.failures.iter().filter(|one| one.fault == fault).count();
    let wrong = report.failures.len();
    let line = match wrong {
        0 => "Every query was answered right. `--min accuracy=1` keeps it so.".to_owned(),
        _ if !is_told => {
            let queries = ui::format_count(wrong, "query").replace("querys", "queries");
            format!("{queries} went wrong; `--failures` says how.")
        }
        _ => {
            let worst = [
                AnswerFault::Silent,
                AnswerFault::Stolen,
                AnswerFault::Forbidden,
                AnswerFault::Unasked,
            ];
            // `max_by_key` returns the last of equals. Reversed, ties go to `Silent`, the easiest
            // to fix.
            let worst = worst.into_iter().rev().max_by_key(|fault| count(*fault));
            let worst = worst.unwrap_or(AnswerFault::Silent);
            format!("{} of {wrong} are {worst}: {}", count(worst), advice_for(worst))
        }
    };
    ui.print_note(&format!("\n{line}"))
}

fn advice_for(fault: AnswerFault) -> &'static str {
    match fault {
        AnswerFault::Silent => {
            "put the words that users say into the description or `triggers`, or try `--compare default threshold=0.5`."
        }
        AnswerFault::Stolen => {
            "say in both descriptions what sets the two skills apart, or give the right one `triggers`."
        }
        AnswerFault::Forbidden => {
            "say in the description what the skill is not for, or list it under `triggers.not`."
        }
        AnswerFault::Unasked => {
            "make the descriptions more special, or try `--compare default threshold=0.7`."
        }
    }
}

/// Prints two configurations side by side.
pub(super) fn print_comparison(
    measured: &EvalMeasurement<'_>,
    comparison: &ComparisonJson,
    ui: &mut TerminalUi<'_>,
) -> io::Result<()> {
    print_heading(measured, ui)?;
    let (before, after) = (printable_line(&comparison.before), printable_line(&comparison.after));
    writeln!(ui.out, "A  {before}\nB  {after}\n")?;
    let head = format!("  {:<11} {:>6} {:>6} {:>7}", "", "A", "B", "B - A");
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, head))?;
    for row in &comparison.changes.metrics {
        writeln!(ui.out, "{}", difference_line(row, ui))?;
    }
    let changes = &comparison.changes;
    print_changed_queries(("B", "A"), &changes.gained, ui)?;
    print_changed_queries(("A", "B"), &changes.lost, ui)?;
    let (gained, lost) = (changes.gained.len(), changes.lost.len());
    let verdict = match (gained, lost) {
        (0, 0) => "Every query is answered as right or as wrong as before.".to_owned(),
        _ => {
            let p = changes.p_value;
            let sure = if p < 0.05 { "hardly chance" } else { "may be chance" };
            format!("B wins {gained}, A wins {lost}: {sure} (sign test, p = {p:.3}).")
        }
    };
    writeln!(ui.out, "\n{verdict}")
}

fn difference_line(row: &MetricDifference, ui: &TerminalUi<'_>) -> String {
    let difference = match row.difference {
        Some(by) if by.abs() < 0.000_5 => ui.paint(ui::FAINT, format!("{:>7}", "=")),
        Some(by) => {
            let style = if by > 0.0 { ui::GOOD } else { ui::BAD };
            ui.paint(style, format!("{by:>+7.3}"))
        }
        None => format!("{:>7}", "-"),
    };
    let (before, after) = (format_figure(row.before), format_figure(row.after));
    format!("  {:<11} {before} {after} {difference}", row.metric)
}

fn format_figure(value: Option<f64>) -> String {
    match value {
        Some(value) => format!("{value:>6.3}"),
        None => format!("{:>6}", "-"),
    }
}

fn print_changed_queries(
    (right, wrong): (&str, &str),
    changes: &[QueryChange],
    ui: &mut TerminalUi<'_>,
) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let title = format!("Right only in {right} ({})", changes.len());
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, title))?;
    for change in changes.iter().take(CHANGES_MAX) {
        let picked = match change.picked.as_slice() {
            [] => "nothing".to_owned(),
            picked => picked.join(", "),
        };
        let wanted = match change.gold.as_slice() {
            [] if change.not.is_empty() => "nothing".to_owned(),
            [] => format!("not {}", change.not.join(", ")),
            gold => gold.join(", "),
        };
        let said = printable_line(&format!("{wrong} picks {picked}, wanted {wanted}"));
        let room = ui.columns.saturating_sub(6);
        writeln!(ui.out, "  \"{}\"", ui::fit_columns(&change.query, room))?;
        let line = format!(
            "    {} {}",
            ui::fit_columns(&said, room),
            printable_line(&change.place.to_string())
        );
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    print_more(changes.len(), CHANGES_MAX, "--json", ui)
}
