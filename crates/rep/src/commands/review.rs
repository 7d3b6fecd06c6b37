//! `rep review`: agents review a change and the engine checks their findings. For a clean change it
//! prints one line.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::review_setup::incremental;
use repertoire_review::change::ReviewChange;
use repertoire_review::extract::ReviewSeverity;
use repertoire_review::instructions::ResolvedSkill;
use repertoire_review::pipeline::{self, Progress, ReviewPlan};
use repertoire_review::questions::{Answer, Question, ReviewAnswerProvider};
use repertoire_review::record::{CallOutcome, ReviewDepth, ReviewRecord};
use repertoire_review::report::{ReportFormat, ReportTextLayout, Styles, render_review};
use repertoire_review::run_event::ReviewRequest;
use repertoire_review::scope::ReviewInputs;
use repertoire_review::store::new_review_id;
use repertoire_text::clock::{Clock, SystemClock};
use repertoire_text::terminal::printable_line;
use tokio_util::sync::CancellationToken;

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::{check_output, write_output};
use crate::review_flags::ReviewFlags;
use crate::ui::{self, TerminalUi};

mod earlier;
mod preview;
mod recording;
mod skills;

use recording::ReviewRecording;

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
pub(crate) struct ReviewArgs {
    #[command(subcommand)]
    action: Option<ReviewAction>,
    #[command(flatten)]
    flags: ReviewFlags,
    #[command(flatten)]
    output: ReviewOutputArgs,
    /// Print the prompt of every agent without calling a model
    #[arg(long, help_heading = OUT)]
    dry_run: bool,
    /// Exit with 1 if there is a finding of this severity or higher, or `never` [default: major]
    #[arg(long, value_name = "SEVERITY", value_parser = parse_fail_on, help_heading = OUT)]
    fail_on: Option<FailOn>,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewAction {
    /// Print the review data in skills: focus areas, patterns, rules, methods
    Skills(skills::ReviewSkillsArgs),
    /// List the reviews of this project
    List(earlier::ReviewListArgs),
    /// Print an earlier review, in any format
    Show(earlier::ReviewShowArgs),
}

/// The format and destination of a report
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewOutputArgs {
    /// Format of the report: text, markdown, json, sarif, github, rdjson, html
    #[arg(long, value_name = "FORMAT", value_parser = parse_format, help_heading = OUT)]
    format: Option<ReportFormat>,
    /// Also write the report to this file, in the format of its extension, or given as FORMAT=FILE
    /// (may be repeated)
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUT)]
    files: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct FailOn(Option<ReviewSeverity>);

fn parse_fail_on(word: &str) -> Result<FailOn, String> {
    if word.eq_ignore_ascii_case("never") {
        Ok(FailOn(None))
    } else {
        match crate::review_flags::parse_severity(word) {
            Ok(severity) => Ok(FailOn(Some(severity))),
            Err(known) => Err(format!("{known}, never")),
        }
    }
}

fn parse_format(word: &str) -> Result<ReportFormat, String> {
    ReportFormat::from_word(word).ok_or_else(|| {
        let all: Vec<&str> = ReportFormat::ALL.iter().map(|format| format.as_str()).collect();
        format!("one of {}", all.join(", "))
    })
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ReviewArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    match &args.action {
        Some(ReviewAction::Skills(args)) => return skills::run(ctx, args, ui),
        Some(ReviewAction::List(args)) => return earlier::list_reviews(ctx, args, ui),
        Some(ReviewAction::Show(args)) => return earlier::show_review(ctx, args, ui),
        None => {}
    }
    args.output.output_files(ctx)?;
    let workspace = ctx.project_dir(None);
    let runtime = build_runtime()?;
    runtime.block_on(async {
        let gathered = ctx.gather_change(&args.flags.to_options(), &workspace).await?;
        match ctx.config_before(&gathered, &workspace)? {
            Some(config) => {
                let before = CliContext::new(ctx.env, config);
                run_review(&before, args, &workspace, gathered, ui).await
            }
            None => run_review(ctx, args, &workspace, gathered, ui).await,
        }
    })
}

async fn run_review(
    ctx: &CliContext<'_>,
    args: &ReviewArgs,
    workspace: &Utf8Path,
    gathered: ReviewInputs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let files = args.output.output_files(ctx)?;
    let catalog = ctx.load_catalog()?;
    let options = args.flags.to_options();
    let mut plan = ctx.review_plan(&options, catalog, workspace, gathered)?;
    let limit = args.fail_on.map_or_else(|| ctx.review_fail_on(), |FailOn(limit)| limit);
    check_limits(limit, &plan)?;
    warn_of_unresolved(&plan, ui)?;
    let store = if options.incremental { ctx.existing_reviews(workspace).await? } else { None };
    let before = match &store {
        Some(store) => incremental::continue_earlier(store, &mut plan)
            .await
            .map_err(earlier::review_store_failure)?,
        None => None,
    };
    if args.dry_run {
        return preview::run(&plan, ui);
    }
    let is_empty = plan.gathered.change.files.is_empty();
    if is_empty && before.is_none() && args.output.is_text(ui) {
        return report_nothing(&plan, ui);
    }
    let cancel = CancellationToken::new();
    let is_patterns = plan.depth == ReviewDepth::Patterns;
    let panel: Box<dyn ReviewAnswerProvider> = if is_patterns || is_empty {
        Box::new(SilentPanel)
    } else {
        let mut agents = ctx.build_reviewers(&options, &plan.gathered)?;
        agents.options.cancel = cancel.child_token();
        Box::new(agents)
    };
    let id = new_review_id();
    // Hooks run patterns on every commit, so the journal is not opened for them.
    let recording = if is_patterns && !options.incremental {
        ReviewRecording::Off
    } else {
        let request = ReviewRequest::from_plan(&plan, options.incremental);
        ReviewRecording::start(ctx, store, workspace, (&id, &request)).await
    };
    let run = AttendedReview { plan: &plan, panel: &*panel, recording: &recording, id };
    let mut review = match run.run(&cancel, ui).await {
        Ok(review) => review,
        Err(failure) => {
            recording.fail(&failure).await;
            return Err(failure);
        }
    };
    if let Some(before) = &before {
        incremental::carry_over(&mut review, before);
    }
    let change = &plan.gathered.change;
    let kept = recording.finish(&review, change).await;
    args.output.print_review(ctx, (&review, change), &files, ui)?;
    if let Err(failure) = kept {
        let text = format!("! the review is not kept: {}", failure.message);
        ui.print_note(&ui.paint_err(ui::WARN, text))?;
    }
    if cancel.is_cancelled() {
        Ok(CliExit::Interrupted)
    } else {
        judge_review(limit, &plan, &review)
    }
}

/// Rejects settings with which a review could not find anything or could not fail.
fn check_limits(limit: Option<ReviewSeverity>, plan: &ReviewPlan) -> Result<(), CliFailure> {
    if let Some(limit) = limit.filter(|limit| plan.min_severity > *limit) {
        return Err(CliFailure::wrong_usage(format!(
            "nothing below {} is reported, so findings from {limit} on could not make it fail",
            plan.min_severity
        ))
        .hint("Give `--fail-on` the same severity, or `never`."));
    }
    if plan.depth == ReviewDepth::Patterns
        && !plan.skills.iter().any(|one| one.trusted && has_patterns(one))
    {
        return Err(CliFailure::wrong_usage(
            "there is no pattern to run: no skill that takes part has one that is trusted",
        )
        .hint("Leave out `--skills` and `--no-skills` for the usual ones."));
    }
    Ok(())
}

fn has_patterns(resolved: &ResolvedSkill) -> bool {
    let patterns = &resolved.skill.auto_validated_patterns;
    patterns.iter().any(|pattern| pattern.pattern.is_some() && pattern.unusable.is_none())
}

/// Warns about requested skills that were not found, and says where they were searched.
fn warn_of_unresolved(plan: &ReviewPlan, ui: &mut TerminalUi<'_>) -> Result<(), CliFailure> {
    for skill in &plan.unresolved {
        let text = format!("! {}; going on with the others", printable_line(&skill.reason));
        ui.print_note(&ui.paint_err(ui::WARN, text))?;
        for place in &skill.searched {
            ui.print_note(&format!("    searched {}", printable_line(place)))?;
        }
    }
    Ok(())
}

/// Reports an empty change: what was searched, and which files were skipped.
fn report_nothing(plan: &ReviewPlan, ui: &mut TerminalUi<'_>) -> CliResult {
    let ReviewPlan { gathered, .. } = plan;
    let words = printable_line(&gathered.scope.words);
    writeln!(ui.out, "Nothing to review in {words}.")?;
    for skipped in &gathered.change.skipped {
        ui.print_note(&format!(
            "  {}: {}",
            printable_line(skipped.path.as_str()),
            printable_line(&skipped.reason)
        ))?;
    }
    for warning in &gathered.warnings {
        ui.print_note(&ui.paint_err(ui::WARN, format!("! {}", printable_line(warning))))?;
    }
    if gathered.change.skipped.is_empty() && gathered.scope.words == "uncommitted changes" {
        ui.print_note("hint: `--base BRANCH` looks at a branch, `--commit HEAD` at the last commit, and paths at whole files")?;
    }
    check_missed_files(plan)
}

/// A panel for reviews without a model: it answers nothing.
struct SilentPanel;

impl ReviewAnswerProvider for SilentPanel {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
        _: &'a (dyn Fn() + Send + Sync),
    ) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async { Answer::default() })
    }
}

/// A review that this process runs.
struct AttendedReview<'a> {
    plan: &'a ReviewPlan,
    panel: &'a dyn ReviewAnswerProvider,
    recording: &'a ReviewRecording,
    id: String,
}

impl AttendedReview<'_> {
    /// Runs the review and prints its progress. Ctrl-C stops it and keeps the findings so far.
    async fn run(
        self,
        cancel: &CancellationToken,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ReviewRecord, CliFailure> {
        let AttendedReview { plan, panel, recording, id } = self;
        let begun = Instant::now();
        let head = (id, SystemClock.now_ms());
        let (sender, mut told) = tokio::sync::mpsc::unbounded_channel::<String>();
        let listener = move |progress: Progress<'_>| {
            recording.note_progress(progress);
            if let Some(line) = format_progress(progress) {
                // The receiver is gone once the command ends.
                let _ = sender.send(line);
            }
        };
        let work = pipeline::run_review(plan, panel, &listener, cancel, head);
        tokio::pin!(work);
        let review = loop {
            tokio::select! {
                review = &mut work => break review,
                Some(line) = told.recv() => ui.print_note(&printable_line(&line))?,
                _ = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => {
                    ui.print_note("stopping; what was found so far is reported")?;
                    cancel.cancel();
                }
            }
        };
        while let Ok(line) = told.try_recv() {
            ui.print_note(&printable_line(&line))?;
        }
        Ok(ReviewRecord { duration_ms: begun.elapsed().as_millis() as u64, ..review })
    }
}

/// Describes progress in a line. `None` for what the report says anyway.
fn format_progress(progress: Progress<'_>) -> Option<String> {
    match progress {
        Progress::Phase(phase, calls) => {
            Some(format!("{phase}: {}", ui::format_count(calls, "call")))
        }
        Progress::Asked(_, name) => Some(format!("  … {name}")),
        Progress::Answered(call) => {
            let time = ui::format_time(call.duration_ms);
            let cost = call
                .cost_usd
                .map(|cost| format!(", {}", ui::format_dollars(cost)))
                .unwrap_or_default();
            Some(match call.outcome {
                CallOutcome::Completed => format!("  ✓ {} ({time}{cost})", call.agent),
                _ => {
                    format!("  ✗ {}: {}", call.agent, call.reason.as_deref().unwrap_or("no answer"))
                }
            })
        }
        Progress::Checked(_) => None,
    }
}

/// Converts a review to an exit code. Findings at or over the limit are a "no"; an incomplete
/// review is never a success.
fn judge_review(
    limit: Option<ReviewSeverity>,
    plan: &ReviewPlan,
    review: &ReviewRecord,
) -> CliResult {
    let open = review.still_open.iter().map(|reported| reported.severity).max();
    let worst = review.worst_severity().max(open);
    if limit.is_some_and(|limit| worst.is_some_and(|worst| worst >= limit)) {
        return Ok(CliExit::No);
    }
    let silent: Vec<&str> = review.failed_calls().map(|call| call.agent.as_str()).collect();
    if !silent.is_empty() {
        let names = printable_line(&silent.join(", "));
        return not_known_clean(format!(
            "{} gave no answer ({names})",
            ui::format_count(silent.len(), "reviewer")
        ));
    }
    let is_looked_at = plan.depth == ReviewDepth::Patterns || review.calls_made() > 0;
    if !is_looked_at && !review.files.is_empty() {
        return not_known_clean("no agent took part".to_owned());
    }
    check_missed_files(plan)
}

fn not_known_clean(why: String) -> CliResult {
    Err(CliFailure::cannot_run(format!("{why}, so nobody knows whether the change is clean")))
}

/// Fails if files were skipped because of a limit, since they may not be clean.
fn check_missed_files(plan: &ReviewPlan) -> CliResult {
    let missed = plan.gathered.change.skipped.iter().filter(|skipped| skipped.missed);
    let names: Vec<String> = missed.map(|skipped| printable_line(skipped.path.as_str())).collect();
    match names.as_slice() {
        [] => Ok(CliExit::Done),
        [first, ..] => Err(CliFailure::cannot_run(format!(
            "{} could not be looked at ({first}{}), so nobody knows whether the change is clean",
            ui::format_count(names.len(), "file"),
            if names.len() > 1 { ", …" } else { "" }
        ))
        .hint("The report names them; a smaller scope or single files are within the limits.")),
    }
}

impl ReviewOutputArgs {
    /// Returns true if the report is printed as text only.
    fn is_text(&self, ui: &TerminalUi<'_>) -> bool {
        self.files.is_empty() && !ui.json && matches!(self.format, None | Some(ReportFormat::Text))
    }

    /// Returns the files to write with their formats.
    fn output_files(
        &self,
        ctx: &CliContext<'_>,
    ) -> Result<Vec<(ReportFormat, Utf8PathBuf)>, CliFailure> {
        self.files.iter().map(|text| parse_output_file(ctx, text)).collect()
    }

    /// Prints a review and writes it to the given files.
    pub(crate) fn print_review(
        &self,
        ctx: &CliContext<'_>,
        (review, change): (&ReviewRecord, &ReviewChange),
        files: &[(ReportFormat, Utf8PathBuf)],
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        let usual = if ui.json { ReportFormat::Json } else { ReportFormat::Text };
        let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
        let look = ReportTextLayout { width: ui.columns, styles };
        let text = render_review(self.format.unwrap_or(usual), review, change, &look);
        ui.out.write_all(text.as_bytes())?;
        for (format, path) in files {
            let text = render_review(*format, review, change, &ReportTextLayout::default());
            write_output(ctx, path, text.as_bytes())?;
            ui.print_note(&format!("{format}: {path}"))?;
        }
        Ok(())
    }
}

/// Parses the value of `--output`, `FILE` or `FORMAT=FILE`, and checks that the file can be written.
fn parse_output_file(
    ctx: &CliContext<'_>,
    text: &str,
) -> Result<(ReportFormat, Utf8PathBuf), CliFailure> {
    let said =
        text.split_once('=').and_then(|(word, file)| Some((ReportFormat::from_word(word)?, file)));
    let (format, file) = match said {
        Some((format, file)) => (Some(format), Utf8Path::new(file)),
        None => (ReportFormat::from_path(Utf8Path::new(text)), Utf8Path::new(text)),
    };
    let format = format.ok_or_else(|| {
        CliFailure::wrong_usage(format!("`{text}` does not say which format it is"))
            .hint("Name it .md, .json, .sarif, .html or .txt, or write FORMAT=FILE.")
    })?;
    let path = ctx.typed_path(file);
    check_output(ctx, &path)?;
    Ok((format, path))
}
