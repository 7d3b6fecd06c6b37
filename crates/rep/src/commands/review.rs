//! `rep review`: agents review a change and the engine checks their findings. For a clean change it
//! prints one line.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_review::asking::{Answer, Panel, Question};
use repertoire_review::change::Change;
use repertoire_review::extract::Severity;
use repertoire_review::instructions::Resolved;
use repertoire_review::pipeline::{self, Plan, Progress};
use repertoire_review::record::{CallOutcome, Depth, Review};
use repertoire_review::report::{Format, Look, Styles, render};
use repertoire_review::scope::Gathered;
use repertoire_text::clock::{Clock, SystemClock};
use repertoire_text::terminal::printable;
use tokio_util::sync::CancellationToken;

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::project_files::{check_output, write_output};
use crate::reviewing::{Planned, ReviewFlags, since};
use crate::running::runtime;
use crate::ui::{self, Ui};

mod kept;
mod preview;
mod skills;

const OUT: &str = "Output";
const AFTER_HELP: &str = "\
Examples:
  rep review --patterns-only --base main       no model: what the patterns of skills find on this branch
  rep review --backend claude                  what is not committed yet, by a few agents
  rep review --base main --depth deep -o review.html -o review.sarif
  rep review src/login.rs                      what is not committed in a file, or all of it
  rep review show --format markdown            the last one again, and nothing is paid twice

Severities: critical, major, minor, suggestion. A comment `rep:ignore[security] -- why` on a line or above it says
that something is meant so.

Exit codes: 0 nothing at or over --fail-on, 1 something is, 2 wrong use, 3 not everything could be looked at.";

/// Arguments of `rep review`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    flags: ReviewFlags,
    #[command(flatten)]
    output: Output,
    /// Print the prompt of every agent without calling a model
    #[arg(long, help_heading = OUT)]
    dry_run: bool,
    /// Exit with 1 if there is a finding of this severity or higher, or `never` [default: major]
    #[arg(long, value_name = "SEVERITY", value_parser = fail_on, help_heading = OUT)]
    fail_on: Option<FailOn>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the review data in skills: focus areas, patterns, rules, methods
    Skills(skills::Args),
    /// List the reviews of this project
    List(kept::ListArgs),
    /// Print an earlier review, in any format
    Show(kept::ShowArgs),
}

/// The format and destination of a report
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Format of the report: text, markdown, json, sarif, github, rdjson, html
    #[arg(long, value_name = "FORMAT", value_parser = format, help_heading = OUT)]
    format: Option<Format>,
    /// Also write the report to this file, in the format of its extension, or given as FORMAT=FILE
    /// (may be repeated)
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUT)]
    files: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct FailOn(Option<Severity>);

fn fail_on(word: &str) -> Result<FailOn, String> {
    if word.eq_ignore_ascii_case("never") {
        Ok(FailOn(None))
    } else {
        match crate::reviewing::severity(word) {
            Ok(severity) => Ok(FailOn(Some(severity))),
            Err(known) => Err(format!("{known}, never")),
        }
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
    args.output.checked(ctx)?;
    let workspace = ctx.project_dir(None);
    let runtime = runtime()?;
    runtime.block_on(async {
        let gathered = ctx.gathered(&args.flags, &workspace).await?;
        match ctx.config_before(&gathered, &workspace)? {
            Some(config) => {
                let before = Ctx { env: ctx.env, config };
                review(&before, args, &workspace, gathered, ui).await
            }
            None => review(ctx, args, &workspace, gathered, ui).await,
        }
    })
}

async fn review(
    ctx: &Ctx<'_>,
    args: &Args,
    workspace: &Utf8Path,
    gathered: Gathered,
    ui: &mut Ui<'_>,
) -> Outcome {
    let files = args.output.checked(ctx)?;
    let catalog = ctx.catalog()?;
    let Planned { plan, before } = ctx.review_plan(&args.flags, catalog, workspace, gathered)?;
    let limit = args.fail_on.map_or_else(|| ctx.review_fail_on(), |FailOn(limit)| limit);
    check_limits(limit, &plan)?;
    tell_unresolved(&plan, ui)?;
    if args.dry_run {
        return preview::run(&plan, ui);
    }
    let is_empty = plan.gathered.change.files.is_empty();
    if is_empty && before.is_none() && args.output.is_text(ui) {
        return nothing(&plan, ui);
    }
    let cancel = CancellationToken::new();
    let mut review = if plan.depth == Depth::Patterns || is_empty {
        attend(&plan, &Nobody, &cancel, ui).await?
    } else {
        let mut agents = ctx.reviewers(&args.flags, &plan.gathered)?;
        agents.options.cancel = cancel.child_token();
        attend(&plan, &agents, &cancel, ui).await?
    };
    if let Some(before) = &before {
        since::carry(&mut review, before);
    }
    let change = &plan.gathered.change;
    let kept = ctx.reviews(workspace).keep(&review, change);
    args.output.print(ctx, (&review, change), &files, ui)?;
    if let Err(error) = kept {
        ui.note(&ui.paint_err(ui::WARN, format!("! the review is not kept: {error}")))?;
    }
    if cancel.is_cancelled() { Ok(Exit::Interrupted) } else { verdict(limit, &plan, &review) }
}

/// Rejects settings with which a review could not find anything or could not fail.
fn check_limits(limit: Option<Severity>, plan: &Plan) -> Result<(), Failure> {
    if let Some(limit) = limit.filter(|limit| plan.min_severity > *limit) {
        return Err(Failure::usage(format!(
            "nothing below {} is reported, so findings from {limit} on could not make it fail",
            plan.min_severity
        ))
        .hint("Give `--fail-on` the same severity, or `never`."));
    }
    if plan.depth == Depth::Patterns
        && !plan.skills.iter().any(|one| one.trusted && has_patterns(one))
    {
        return Err(Failure::usage(
            "there is no pattern to run: no skill that takes part has one that is trusted",
        )
        .hint("Leave out `--skills` and `--no-skills` for the usual ones."));
    }
    Ok(())
}

fn has_patterns(resolved: &Resolved) -> bool {
    let patterns = &resolved.skill.auto_validated_patterns;
    patterns.iter().any(|pattern| pattern.pattern.is_some() && pattern.unusable.is_none())
}

/// Warns about requested skills that were not found, and says where they were searched.
fn tell_unresolved(plan: &Plan, ui: &mut Ui<'_>) -> Result<(), Failure> {
    for skill in &plan.unresolved {
        let text = format!("! {}; going on with the others", printable(&skill.reason));
        ui.note(&ui.paint_err(ui::WARN, text))?;
        for place in &skill.searched {
            ui.note(&format!("    searched {}", printable(place)))?;
        }
    }
    Ok(())
}

/// Reports an empty change: what was searched, and which files were skipped.
fn nothing(plan: &Plan, ui: &mut Ui<'_>) -> Outcome {
    let Plan { gathered, .. } = plan;
    let words = printable(&gathered.scope.words);
    writeln!(ui.out, "Nothing to review in {words}.")?;
    for skipped in &gathered.change.skipped {
        ui.note(&format!(
            "  {}: {}",
            printable(skipped.path.as_str()),
            printable(&skipped.reason)
        ))?;
    }
    for warning in &gathered.warnings {
        ui.note(&ui.paint_err(ui::WARN, format!("! {}", printable(warning))))?;
    }
    if gathered.change.skipped.is_empty() && gathered.scope.words == "uncommitted changes" {
        ui.note("hint: `--base BRANCH` looks at a branch, `--commit HEAD` at the last commit, and paths at whole files")?;
    }
    missed(plan)
}

/// A panel for reviews without a model: it answers nothing.
struct Nobody;

impl Panel for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async { Answer::default() })
    }
}

/// Runs the review and prints its progress. Ctrl-C stops it and keeps the findings so far.
async fn attend(
    plan: &Plan,
    panel: &dyn Panel,
    cancel: &CancellationToken,
    ui: &mut Ui<'_>,
) -> Result<Review, Failure> {
    let begun = Instant::now();
    let head = (name(), SystemClock.now_ms());
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel::<String>();
    let listener = move |progress: Progress<'_>| {
        // The receiver is gone once the command ends.
        let _ = sender.send(line(progress));
    };
    let work = pipeline::run(plan, panel, &listener, cancel, head);
    tokio::pin!(work);
    let review = loop {
        tokio::select! {
            review = &mut work => break review,
            Some(line) = told.recv() => ui.note(&printable(&line))?,
            _ = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => {
                ui.note("stopping; what was found so far is reported")?;
                cancel.cancel();
            }
        }
    };
    while let Ok(line) = told.try_recv() {
        ui.note(&printable(&line))?;
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

/// Returns an id that sorts by time: the timestamp of a UUID v7 and four random digits.
fn name() -> String {
    let id = uuid::Uuid::now_v7().simple().to_string();
    format!("{}-{}", &id[..12], &id[28..])
}

/// Converts a review to an exit code. Findings at or over the limit are a "no"; an incomplete
/// review is never a success.
fn verdict(limit: Option<Severity>, plan: &Plan, review: &Review) -> Outcome {
    let open = review.still_open.iter().map(|reported| reported.severity).max();
    let worst = review.worst().max(open);
    if limit.is_some_and(|limit| worst.is_some_and(|worst| worst >= limit)) {
        return Ok(Exit::No);
    }
    let silent: Vec<&str> = review.failed_calls().map(|call| call.agent.as_str()).collect();
    if !silent.is_empty() {
        let names = printable(&silent.join(", "));
        return not_known_clean(format!(
            "{} gave no answer ({names})",
            ui::count(silent.len(), "reviewer")
        ));
    }
    let is_looked_at = plan.depth == Depth::Patterns || review.calls_made() > 0;
    if !is_looked_at && !review.files.is_empty() {
        return not_known_clean("no agent took part".to_owned());
    }
    missed(plan)
}

fn not_known_clean(why: String) -> Outcome {
    Err(Failure::cannot_run(format!("{why}, so nobody knows whether the change is clean")))
}

/// Fails if files were skipped because of a limit, since they may not be clean.
fn missed(plan: &Plan) -> Outcome {
    let missed = plan.gathered.change.skipped.iter().filter(|skipped| skipped.missed);
    let names: Vec<String> = missed.map(|skipped| printable(skipped.path.as_str())).collect();
    match names.as_slice() {
        [] => Ok(Exit::Done),
        [first, ..] => Err(Failure::cannot_run(format!(
            "{} could not be looked at ({first}{}), so nobody knows whether the change is clean",
            ui::count(names.len(), "file"),
            if names.len() > 1 { ", …" } else { "" }
        ))
        .hint("The report names them; a smaller scope or single files are within the limits.")),
    }
}

impl Output {
    /// Returns true if the report is printed as text only.
    fn is_text(&self, ui: &Ui<'_>) -> bool {
        self.files.is_empty() && !ui.json && matches!(self.format, None | Some(Format::Text))
    }

    /// Returns the files to write with their formats.
    fn checked(&self, ctx: &Ctx<'_>) -> Result<Vec<(Format, Utf8PathBuf)>, Failure> {
        self.files.iter().map(|text| parse_output_file(ctx, text)).collect()
    }

    /// Prints a review and writes it to the given files.
    pub(crate) fn print(
        &self,
        ctx: &Ctx<'_>,
        (review, change): (&Review, &Change),
        files: &[(Format, Utf8PathBuf)],
        ui: &mut Ui<'_>,
    ) -> Result<(), Failure> {
        let usual = if ui.json { Format::Json } else { Format::Text };
        let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
        let look = Look { width: ui.columns, styles };
        let text = render(self.format.unwrap_or(usual), review, change, &look);
        ui.out.write_all(text.as_bytes())?;
        for (format, path) in files {
            let text = render(*format, review, change, &Look::default());
            write_output(ctx, path, text.as_bytes())?;
            ui.note(&format!("{format}: {path}"))?;
        }
        Ok(())
    }
}

/// Parses the value of `--output`, `FILE` or `FORMAT=FILE`, and checks that the file can be written.
fn parse_output_file(ctx: &Ctx<'_>, text: &str) -> Result<(Format, Utf8PathBuf), Failure> {
    let said = text.split_once('=').and_then(|(word, file)| Some((Format::from_word(word)?, file)));
    let (format, file) = match said {
        Some((format, file)) => (Some(format), Utf8Path::new(file)),
        None => (Format::from_path(Utf8Path::new(text)), Utf8Path::new(text)),
    };
    let format = format.ok_or_else(|| {
        Failure::usage(format!("`{text}` does not say which format it is"))
            .hint("Name it .md, .json, .sarif, .html or .txt, or write FORMAT=FILE.")
    })?;
    let path = ctx.typed_path(file);
    check_output(ctx, &path)?;
    Ok((format, path))
}
