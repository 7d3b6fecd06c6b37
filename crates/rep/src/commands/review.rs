//! `rep review`: agents look at a change, the engine checks what they find, and a clean change is one line.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::clock::{Clock, SystemClock};
use repertoire_drive::review::asking::Panel;
use repertoire_drive::review::change::Change;
use repertoire_drive::review::pipeline::{self, Plan, Progress};
use repertoire_drive::review::record::{CallOutcome, Depth, Review};
use repertoire_drive::review::report::{Format, Look, Styles, render};
use repertoire_skill::review::Severity;
use repertoire_text::fs;
use repertoire_text::terminal::printable;
use tokio_util::sync::CancellationToken;

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::reviewing::ReviewFlags;
use crate::running::runtime;
use crate::ui::{self, Ui};

mod kept;
mod preview;
mod skills;

const OUT: &str = "Output";

/// What to look at, how, and what to print.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    flags: ReviewFlags,
    #[command(flatten)]
    output: Output,
    /// Print what every agent would be told, and ask nobody
    #[arg(long, help_heading = OUT)]
    dry_run: bool,
    /// Exit with 1 when there is something at or over this severity, or `never` [default: major]
    #[arg(long, value_name = "SEVERITY", value_parser = fail_on, help_heading = OUT)]
    fail_on: Option<FailOn>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print what a review takes from skills: focus areas, patterns, rules, methods
    Skills(skills::Args),
    /// List the reviews of this project
    List(kept::ListArgs),
    /// Print a review that was made before, in any format
    Show(kept::ShowArgs),
}

/// Where a report goes, and how it looks.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// How the report looks: text, markdown, json, sarif, github, rdjson, html
    #[arg(long, value_name = "FORMAT", value_parser = format, help_heading = OUT)]
    format: Option<Format>,
    /// Write it to a file as well, in the format that its ending asks for or FORMAT=FILE says (may be repeated)
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUT)]
    files: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct FailOn(Option<Severity>);

fn fail_on(word: &str) -> Result<FailOn, String> {
    match word.eq_ignore_ascii_case("never") {
        true => Ok(FailOn(None)),
        false => crate::reviewing::severity(word).map(|severity| FailOn(Some(severity))),
    }
}

fn format(word: &str) -> Result<Format, String> {
    Format::from_word(word).ok_or_else(|| {
        let all: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
        format!("one of {}", all.join(", "))
    })
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        Some(Action::Skills(args)) => return skills::run(ctx, args, ui),
        Some(Action::List(args)) => return kept::list(ctx, args, ui),
        Some(Action::Show(args)) => return kept::show(ctx, args, ui),
        None => {}
    }
    let files = args.output.checked(ctx)?;
    let workspace = ctx.project_dir(None);
    let catalog = ctx.catalog()?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let plan = ctx.review_plan(&args.flags, catalog, &workspace).await?;
        say_unresolved(&plan, ui)?;
        if args.dry_run {
            return preview::run(&plan, ui);
        }
        let review = match plan.depth == Depth::Patterns || plan.gathered.change.files.is_empty() {
            true => look(&plan, &Nobody, ui).await?,
            false => {
                let agents = ctx.reviewers(&args.flags, &plan.gathered)?;
                attend(&plan, agents, ui).await?
            }
        };
        let change = &plan.gathered.change;
        let kept = ctx.reviews(&workspace).keep(&review, change);
        args.output.print(&review, change, &files, ui)?;
        if let Err(error) = kept {
            ui.note(&ui.paint_err(ui::WARN, format!("! the review is not kept: {error}")))?;
        }
        let configured = || ctx.review_fail_on(&plan.gathered);
        let limit = args.fail_on.map_or_else(configured, |FailOn(limit)| limit);
        verdict(limit, &review)
    })
}

/// Which skills do not take part, and where they were looked for: the report says only that they are missing.
fn say_unresolved(plan: &Plan, ui: &mut Ui<'_>) -> Result<(), Failure> {
    for missing in &plan.unresolved {
        let looked = match missing.searched.is_empty() {
            true => String::new(),
            false => format!(" (looked in {})", missing.searched.join(", ")),
        };
        let text = format!("! no skill `{}`: {}{looked}", missing.source, missing.reason);
        ui.note(&ui.paint_err(ui::WARN, printable(&text)))?;
    }
    Ok(())
}

/// Nobody is asked where no model takes part.
struct Nobody;

impl Panel for Nobody {
    fn ask<'a>(
        &'a self,
        _: &'a repertoire_drive::review::asking::Question,
    ) -> futures_util::future::BoxFuture<'a, repertoire_drive::review::asking::Answer> {
        Box::pin(async { repertoire_drive::review::asking::Answer::default() })
    }
}

async fn look(plan: &Plan, panel: &dyn Panel, _: &mut Ui<'_>) -> Result<Review, Failure> {
    let begun = Instant::now();
    let head = (name(), SystemClock.now_ms());
    let review = pipeline::run(plan, panel, &|_| {}, &CancellationToken::new(), head).await;
    Ok(Review { duration_ms: begun.elapsed().as_millis() as u64, ..review })
}

/// Runs the review and tells what happens, until it is done or somebody presses Ctrl-C.
async fn attend(
    plan: &Plan,
    mut agents: repertoire_drive::review::asking::Agents,
    ui: &mut Ui<'_>,
) -> Result<Review, Failure> {
    let begun = Instant::now();
    let head = (name(), SystemClock.now_ms());
    let cancel = CancellationToken::new();
    agents.options.cancel = cancel.child_token();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel::<String>();
    let listener = move |progress: Progress<'_>| {
        // Nobody listens any more when the command ends.
        let _ = sender.send(line(progress));
    };
    let work = pipeline::run(plan, &agents, &listener, &cancel, head);
    tokio::pin!(work);
    let review = loop {
        tokio::select! {
            review = &mut work => break review,
            Some(line) = told.recv() => ui.note(&line)?,
            _ = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => {
                ui.note("stopping; what was found so far is reported")?;
                cancel.cancel();
            }
        }
    };
    while let Ok(line) = told.try_recv() {
        ui.note(&line)?;
    }
    Ok(Review { duration_ms: begun.elapsed().as_millis() as u64, ..review })
}

fn line(progress: Progress<'_>) -> String {
    match progress {
        Progress::Phase(phase, calls) => format!("{phase}: {}", ui::count(calls, "call")),
        Progress::Asked(_, name) => format!("  … {name}"),
        Progress::Answered(call) => {
            let time = ui::time(call.duration_ms);
            let cost =
                call.cost_usd.map(|cost| format!(", {}", ui::dollars(cost))).unwrap_or_default();
            match call.outcome {
                CallOutcome::Completed => format!("  ✓ {} ({time}{cost})", call.agent),
                _ => {
                    format!("  ✗ {}: {}", call.agent, call.reason.as_deref().unwrap_or("no answer"))
                }
            }
        }
    }
}

/// A name that sorts by time: seconds, and a little that makes it the only one.
fn name() -> String {
    let id = uuid::Uuid::now_v7().simple().to_string();
    format!("{}-{}", &id[..12], &id[28..])
}

/// How the command ends: findings say no, and who could not look says nothing.
fn verdict(limit: Option<Severity>, review: &Review) -> Outcome {
    let worst = review.worst();
    if limit.is_some_and(|limit| worst.is_some_and(|worst| worst >= limit)) {
        return Ok(Exit::No);
    }
    let missing: Vec<&str> = review.failed_calls().map(|call| call.agent.as_str()).collect();
    match missing.as_slice() {
        [] => Ok(Exit::Done),
        names => Err(Failure::cannot_run(format!(
            "{} gave no answer, so nobody knows whether the change is clean: {}",
            ui::count(names.len(), "reviewer"),
            names.join(", ")
        ))),
    }
}

impl Output {
    /// The files that were asked for, with their formats.
    fn checked(&self, ctx: &Ctx<'_>) -> Result<Vec<(Format, Utf8PathBuf)>, Failure> {
        let one = |text: &String| {
            let said = text
                .split_once('=')
                .and_then(|(word, file)| Some((Format::from_word(word)?, file)));
            let (format, file) = match said {
                Some((format, file)) => (Some(format), Utf8Path::new(file)),
                None => (Format::from_path(Utf8Path::new(text)), Utf8Path::new(text)),
            };
            let format = format.ok_or_else(|| {
                Failure::usage(format!("`{text}` does not say which format it is"))
                    .hint("Name it .md, .json, .sarif, .html or .txt, or write FORMAT=FILE.")
            })?;
            Ok((format, ctx.typed_path(file)))
        };
        self.files.iter().map(one).collect()
    }

    /// Prints a review, and writes it to files.
    pub(crate) fn print(
        &self,
        review: &Review,
        change: &Change,
        files: &[(Format, Utf8PathBuf)],
        ui: &mut Ui<'_>,
    ) -> Result<(), Failure> {
        for (format, path) in files {
            let text = render(*format, review, change, &Look::default());
            fs::write_atomic(path, text.as_bytes()).map_err(|error| {
                Failure::cannot_run(format!("{path} cannot be written: {error}"))
            })?;
        }
        let usual = if ui.json { Format::Json } else { Format::Text };
        let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
        let look = Look { width: ui.columns, styles };
        let text = render(self.format.unwrap_or(usual), review, change, &look);
        ui.out.write_all(text.as_bytes())?;
        for (format, path) in files {
            ui.note(&format!("{format}: {path}"))?;
        }
        Ok(())
    }
}
