//! `rep eval`: selects skills for labelled queries and measures how often the right ones are
//! picked.

mod configuration;
mod files;
mod show;

use camino::Utf8PathBuf;
use rayon::prelude::*;
use repertoire_select::SkillSelector;
use repertoire_select::eval::{
    Answer, EvalComparison, EvalMetric, EvalReport, LabelledQuery, plot,
};
use repertoire_skill::catalog::Catalog;

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::write_output;
use crate::schema::{ComparisonJson, EvalJson, MissedMinimumJson};
use crate::ui::{self, TerminalUi};
use configuration::EvalOverrides;
use files::EvalQueryFiles;

const TITLE: &str = "How sure, and how often right";

/// Arguments of `rep eval`
#[derive(Debug, clap::Args)]
pub(crate) struct EvalArgs {
    /// Files of labelled queries (default: those in the folders of the skills)
    #[arg(value_name = "FILE")]
    files: Vec<Utf8PathBuf>,
    /// Fail if a metric is lower than this: `recall@1=0.7`, `abstention=0.9`, `queries=40` (may be
    /// repeated)
    #[arg(long = "min", value_name = "METRIC=VALUE", value_parser = parse_minimum)]
    floors: Vec<EvalMinimum>,
    /// Draw a calibration plot, confidence against the share of right answers, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<Utf8PathBuf>,
    /// Compare two configurations: `default`, or
    /// `threshold=0.5,max_skills=1,without=meaning+context,only=words`
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = configuration::parse_overrides)]
    #[arg(conflicts_with_all = ["floors", "plot", "failures", "per_skill"])]
    compare: Vec<EvalOverrides>,
    /// List every query that failed, with the skills that were picked instead and why
    #[arg(long)]
    failures: bool,
    /// Show the metrics of every skill
    #[arg(long)]
    per_skill: bool,
    /// Measure the time per query
    #[arg(long)]
    time: bool,
}

/// The minimum required of a metric.
#[derive(Clone, Copy, Debug)]
struct EvalMinimum {
    /// `None` stands for the number of queries.
    metric: Option<EvalMetric>,
    min: f64,
}

/// The measurements to print.
struct EvalMeasurement<'a> {
    found: &'a EvalQueryFiles,
    skills: usize,
    report: EvalReport,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &EvalArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let catalog = ctx.load_catalog()?;
    let found = match args.files.as_slice() {
        [] => files::read_beside_skills(ctx, catalog, ui.json),
        typed => files::read_named_files(ctx, catalog, typed)?,
    };
    if !ui.json || found.queries.is_empty() {
        show::print_problems(&found, ui)?;
    }
    if found.queries.is_empty() {
        return Err(queries_missing(&found, args));
    }
    let selector = ctx.build_selector(catalog, ctx.config.selection_settings())?;
    match args.compare.as_slice() {
        [before, after] => compare_configurations(selector, &found, catalog, (before, after), ui),
        _ => measure_queries(ctx, args, selector, &found, catalog, ui),
    }
}

fn measure_queries(
    ctx: &CliContext<'_>,
    args: &EvalArgs,
    selector: &SkillSelector,
    found: &EvalQueryFiles,
    catalog: &Catalog,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let answers = if args.time {
        found.queries.iter().map(|query| answer_timed(query, selector)).collect()
    } else {
        answer_queries(&found.queries, selector)
    };
    let report = EvalReport::from_answers(&found.queries, &answers);
    let short: Vec<MissedMinimumJson> =
        args.floors.iter().filter_map(|floor| floor.check_report(&report)).collect();
    if let Some(path) = &args.plot {
        let svg = plot::calibration_svg(&report.calibration, TITLE);
        let typed = ctx.typed_path(path);
        // A typo in the path must not create folders.
        if typed.parent().is_some_and(|dir| !dir.as_str().is_empty() && !dir.is_dir()) {
            return Err(CliFailure::wrong_usage(format!(
                "`--plot {path}`: there is no such folder"
            )));
        }
        write_output(ctx, &typed, svg.as_bytes())?;
    }
    let exit = if short.is_empty() { CliExit::Done } else { CliExit::No };
    let measured = EvalMeasurement { found, skills: count_offered_skills(catalog), report };
    if ui.json {
        ui.print_json(&build_json(measured, short, None))?;
        return Ok(exit);
    }
    show::print_report(&measured, ui)?;
    if args.per_skill {
        show::print_skills(&measured.report, ui)?;
    }
    if args.failures {
        show::print_failures(&measured.report, ui)?;
    }
    if let Some(path) = &args.plot {
        writeln!(ui.out, "{} {path}", ui.paint(ui::GOOD, "wrote"))?;
    }
    show::print_missed_minimums(&short, ui)?;
    show::print_suggestion(&measured.report, args.failures, ui)?;
    Ok(exit)
}

fn compare_configurations(
    selector: &SkillSelector,
    found: &EvalQueryFiles,
    catalog: &Catalog,
    (before, after): (&EvalOverrides, &EvalOverrides),
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let under = |configuration: &EvalOverrides| {
        answer_queries(
            &found.queries,
            &selector.with_settings(configuration.apply_to(selector.settings())),
        )
    };
    let (first, second) = (under(before), under(after));
    let comparison = ComparisonJson {
        before: before.typed.clone(),
        after: after.typed.clone(),
        changes: EvalComparison::from_answers(&found.queries, &first, &second),
    };
    let report = EvalReport::from_answers(&found.queries, &second);
    let measured = EvalMeasurement { found, skills: count_offered_skills(catalog), report };
    if ui.json {
        ui.print_json(&build_json(measured, Vec::new(), Some(comparison)))?;
    } else {
        show::print_comparison(&measured, &comparison, ui)?;
    }
    Ok(CliExit::Done)
}

/// Selects for all queries in parallel. The answers are in the order of the queries.
fn answer_queries(queries: &[LabelledQuery], selector: &SkillSelector) -> Vec<Answer> {
    queries.par_iter().map(|query| Answer::from_selector(query, selector)).collect()
}

/// Selects for one query and measures the time of the selection alone.
fn answer_timed(query: &LabelledQuery, selector: &SkillSelector) -> Answer {
    let start = std::time::Instant::now();
    std::hint::black_box(selector.select(&query.task));
    let elapsed_us = u64::try_from(start.elapsed().as_micros()).ok();
    Answer { elapsed_us, ..Answer::from_selector(query, selector) }
}

/// Counts the skills that can be picked. Agents cannot.
fn count_offered_skills(catalog: &Catalog) -> usize {
    catalog.entries().iter().filter(|entry| !entry.skill.is_agent()).count()
}

fn build_json(
    measured: EvalMeasurement<'_>,
    short: Vec<MissedMinimumJson>,
    comparison: Option<ComparisonJson>,
) -> EvalJson {
    let found = measured.found;
    EvalJson {
        files: found.files.clone(),
        not_labelled: found.not_labelled.clone(),
        skills: measured.skills,
        problems: found.problems.clone(),
        unknown_skill: found.unknown_skill,
        report: measured.report,
        short,
        comparison,
    }
}

impl EvalMinimum {
    fn check_report(&self, report: &EvalReport) -> Option<MissedMinimumJson> {
        let (metric, value) = match self.metric {
            Some(metric) => (metric.as_str(), report.figures.get(metric)),
            None => ("queries", Some(report.counts.queries as f64)),
        };
        let is_short = value.is_none_or(|value| value < self.min);
        is_short.then(|| MissedMinimumJson { metric: metric.to_owned(), value, min: self.min })
    }
}

fn parse_minimum(text: &str) -> Result<EvalMinimum, String> {
    let (name, value) = text.split_once('=').ok_or("expected METRIC=VALUE, as `recall@1=0.7`")?;
    let metric = match name {
        "queries" => None,
        name => Some(EvalMetric::from_name(name).ok_or_else(|| {
            let names = EvalMetric::ALL.map(EvalMetric::as_str).join(", ");
            format!("there is no metric `{name}`; there are {names} and queries")
        })?),
    };
    let min: f64 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    let is_possible = min >= 0.0 && (metric.is_none() || min <= 1.0);
    if is_possible {
        Ok(EvalMinimum { metric, min })
    } else {
        Err(format!("`{name}` lies between 0 and 1; 70 % is 0.7"))
    }
}

fn queries_missing(found: &EvalQueryFiles, args: &EvalArgs) -> CliFailure {
    let message = match (found.unknown_skill, args.files.is_empty()) {
        (0, true) => "there are no labelled queries beside the skills",
        (0, false) => "there are no labelled queries in what was named",
        _ => "no labelled query is about a skill that is there",
    };
    CliFailure::cannot_run(message)
        .hint("Write `evals/evals.json` in a skill's folder: [{\"query\": \"what a user would say\", \"should_trigger\": true}].")
        .hint("Or name a file with a line for each query: {\"query\": \"what a user would say\", \"gold\": [\"skill-name\"]}.")
}
