//! `rep eval`: selects skills for labelled queries and measures how often the right ones are
//! picked.

mod configuration;
mod files;
mod show;

use camino::Utf8PathBuf;
use rayon::prelude::*;
use repertoire_select::Selector;
use repertoire_select::eval::{Answer, Comparison, Metric, Query, Report, plot};
use repertoire_skill::catalog::Catalog;

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::project_files::write_output;
use crate::schema::{ComparisonJson, EvalJson, ShortJson};
use crate::ui::{self, Ui};
use configuration::Configuration;
use files::Found;

const TITLE: &str = "How sure, and how often right";

/// Arguments of `rep eval`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of labelled queries (default: those in the folders of the skills)
    #[arg(value_name = "FILE")]
    files: Vec<Utf8PathBuf>,
    /// Fail if a metric is lower than this: `recall@1=0.7`, `abstention=0.9`, `queries=40` (may be
    /// repeated)
    #[arg(long = "min", value_name = "METRIC=VALUE", value_parser = floor)]
    floors: Vec<Floor>,
    /// Draw a calibration plot, confidence against the share of right answers, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<Utf8PathBuf>,
    /// Compare two configurations: `default`, or
    /// `threshold=0.5,max_skills=1,without=meaning+context,only=words`
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = configuration::parse)]
    #[arg(conflicts_with_all = ["floors", "plot", "failures", "per_skill"])]
    compare: Vec<Configuration>,
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
struct Floor {
    /// `None` stands for the number of queries.
    metric: Option<Metric>,
    min: f64,
}

/// The measurements to print.
struct Measured<'a> {
    found: &'a Found,
    skills: usize,
    report: Report,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let catalog = ctx.catalog()?;
    let found = match args.files.as_slice() {
        [] => files::beside_skills(ctx, catalog, ui.json),
        typed => files::typed(ctx, catalog, typed)?,
    };
    if !ui.json || found.queries.is_empty() {
        show::problems(&found, ui)?;
    }
    if found.queries.is_empty() {
        return Err(no_queries(&found, args));
    }
    let selector = ctx.selector(catalog, ctx.config.selection())?;
    match args.compare.as_slice() {
        [before, after] => compare(selector, &found, catalog, (before, after), ui),
        _ => measure(ctx, args, selector, &found, catalog, ui),
    }
}

fn measure(
    ctx: &Ctx<'_>,
    args: &Args,
    selector: &Selector,
    found: &Found,
    catalog: &Catalog,
    ui: &mut Ui<'_>,
) -> Outcome {
    let answers = if args.time {
        found.queries.iter().map(|query| timed(query, selector)).collect()
    } else {
        answers(&found.queries, selector)
    };
    let report = Report::of(&found.queries, &answers);
    let short: Vec<ShortJson> =
        args.floors.iter().filter_map(|floor| floor.missed(&report)).collect();
    if let Some(path) = &args.plot {
        let svg = plot::calibration_svg(&report.calibration, TITLE);
        let typed = ctx.typed_path(path);
        // A typo in the path must not create folders.
        if typed.parent().is_some_and(|dir| !dir.as_str().is_empty() && !dir.is_dir()) {
            return Err(Failure::usage(format!("`--plot {path}`: there is no such folder")));
        }
        write_output(ctx, &typed, svg.as_bytes())?;
    }
    let exit = if short.is_empty() { Exit::Done } else { Exit::No };
    let measured = Measured { found, skills: offered(catalog), report };
    if ui.json {
        ui.print_json(&json(measured, short, None))?;
        return Ok(exit);
    }
    show::report(&measured, ui)?;
    if args.per_skill {
        show::skills(&measured.report, ui)?;
    }
    if args.failures {
        show::failures(&measured.report, ui)?;
    }
    if let Some(path) = &args.plot {
        writeln!(ui.out, "{} {path}", ui.paint(ui::GOOD, "wrote"))?;
    }
    show::short(&short, ui)?;
    show::what_next(&measured.report, args.failures, ui)?;
    Ok(exit)
}

fn compare(
    selector: &Selector,
    found: &Found,
    catalog: &Catalog,
    (before, after): (&Configuration, &Configuration),
    ui: &mut Ui<'_>,
) -> Outcome {
    let under = |configuration: &Configuration| {
        answers(
            &found.queries,
            &selector.with_settings(configuration.settings(selector.settings())),
        )
    };
    let (first, second) = (under(before), under(after));
    let comparison = ComparisonJson {
        before: before.typed.clone(),
        after: after.typed.clone(),
        changes: Comparison::of(&found.queries, &first, &second),
    };
    let report = Report::of(&found.queries, &second);
    let measured = Measured { found, skills: offered(catalog), report };
    if ui.json {
        ui.print_json(&json(measured, Vec::new(), Some(comparison)))?;
    } else {
        show::comparison(&measured, &comparison, ui)?;
    }
    Ok(Exit::Done)
}

/// Selects for all queries in parallel. The answers are in the order of the queries.
fn answers(queries: &[Query], selector: &Selector) -> Vec<Answer> {
    queries.par_iter().map(|query| Answer::of(query, selector)).collect()
}

/// Selects for one query and measures the time of the selection alone.
fn timed(query: &Query, selector: &Selector) -> Answer {
    let start = std::time::Instant::now();
    std::hint::black_box(selector.select(&query.task));
    let elapsed_us = u64::try_from(start.elapsed().as_micros()).ok();
    Answer { elapsed_us, ..Answer::of(query, selector) }
}

/// Counts the skills that can be picked. Agents cannot.
fn offered(catalog: &Catalog) -> usize {
    catalog.entries().iter().filter(|entry| !entry.skill.is_agent()).count()
}

fn json(
    measured: Measured<'_>,
    short: Vec<ShortJson>,
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

impl Floor {
    fn missed(&self, report: &Report) -> Option<ShortJson> {
        let (metric, value) = match self.metric {
            Some(metric) => (metric.as_str(), report.figures.get(metric)),
            None => ("queries", Some(report.counts.queries as f64)),
        };
        let is_short = value.is_none_or(|value| value < self.min);
        is_short.then(|| ShortJson { metric: metric.to_owned(), value, min: self.min })
    }
}

fn floor(text: &str) -> Result<Floor, String> {
    let (name, value) = text.split_once('=').ok_or("expected METRIC=VALUE, as `recall@1=0.7`")?;
    let metric = match name {
        "queries" => None,
        name => Some(Metric::from_name(name).ok_or_else(|| {
            let names = Metric::ALL.map(Metric::as_str).join(", ");
            format!("there is no metric `{name}`; there are {names} and queries")
        })?),
    };
    let min: f64 = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    let is_possible = min >= 0.0 && (metric.is_none() || min <= 1.0);
    if is_possible {
        Ok(Floor { metric, min })
    } else {
        Err(format!("`{name}` lies between 0 and 1; 70 % is 0.7"))
    }
}

fn no_queries(found: &Found, args: &Args) -> Failure {
    let message = match (found.unknown_skill, args.files.is_empty()) {
        (0, true) => "there are no labelled queries beside the skills",
        (0, false) => "there are no labelled queries in what was named",
        _ => "no labelled query is about a skill that is there",
    };
    Failure::cannot_run(message)
        .hint("Write `evals/evals.json` in a skill's folder: [{\"query\": \"what a user would say\", \"should_trigger\": true}].")
        .hint("Or name a file with a line for each query: {\"query\": \"what a user would say\", \"gold\": [\"skill-name\"]}.")
}
