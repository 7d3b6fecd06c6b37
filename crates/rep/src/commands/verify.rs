//! `rep verify`: runs the declared checks. The verdict is based on their exit codes.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::consent::CHECK_KEYS;
use repertoire::plan_setup::CheckStage;
use repertoire_checks::declared::{CheckDefinition, CheckEvent, CheckOptions, CheckStatus};
use repertoire_checks::error::ErrorCategory;
use repertoire_checks::limits::VERIFICATION_BYTES_MAX;
use repertoire_checks::verify::{
    self, CheckOutcome, CheckReport, VerificationReport, VerificationVerdict, VerifyOptions,
};
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::fs;
use repertoire_text::styles::Styles;
use repertoire_text::terminal::printable_line;
use tokio_util::sync::CancellationToken;

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::{check_output, write_output};
use crate::ui::{self, TerminalUi};

pub(crate) mod memory;
mod read;

const WHAT: &str = "What to run";
const OUT: &str = "Output";
const AFTER_HELP: &str = "\
Examples:
  rep verify                                  everything that is declared in `plan.checks` and `plan.final_checks`
  rep verify --check \"cargo test\" --fail-fast  one command besides, and an end at the first red
  rep verify -o before.json                   keep the result
  rep verify --compare before.json            what is new, still there and gone since then
  cargo test 2>&1 | rep verify --read -       what is wrong by the output of a command that has already run

Exit codes: 0 passed, 1 failed, 2 wrong use, 3 nobody can say: nothing is declared, a check could not be run, or a pass
is suspicious.";

/// Arguments of `rep verify`
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct VerifyArgs {
    #[command(subcommand)]
    action: Option<VerifyAction>,
    /// A command that must succeed, in addition to the declared checks (may be repeated)
    #[arg(long = "check", value_name = "COMMAND", help_heading = WHAT)]
    checks: Vec<String>,
    /// Start no further checks once a required one has failed
    #[arg(long, help_heading = WHAT)]
    fail_fast: bool,
    /// Run at most this many checks at once
    #[arg(long, value_name = "NUMBER", default_value_t = CheckOptions::default().parallel, help_heading = WHAT)]
    parallel: usize,
    /// Run nothing: analyse the output in this file, or `-` for standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["checks", "fail_fast", "compare", "files"],
        help_heading = WHAT
    )]
    read: Option<Utf8PathBuf>,
    /// Exit code of the command of `--read`; without it, only the errors found in the output are
    /// reported
    #[arg(long, value_name = "CODE", requires = "read", allow_hyphen_values = true, help_heading = WHAT)]
    exit_code: Option<i32>,
    /// Compare with an earlier verification, written by `--output FILE.json`
    #[arg(long, value_name = "FILE", help_heading = OUT)]
    compare: Option<Utf8PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = OUT)]
    format: Option<VerifyFormat>,
    /// Also write the report to this file, in the format of its extension: .txt, .json, .html (may
    /// be repeated)
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUT)]
    files: Vec<Utf8PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum VerifyAction {
    /// Show past failures of checks and the fixes that worked
    Memory(memory::VerifyMemoryArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum VerifyFormat {
    Text,
    Json,
    Html,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &VerifyArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if let Some(VerifyAction::Memory(args)) = &args.action {
        return memory::run(ctx, args, ui);
    }
    if let Some(file) = &args.read {
        return read::run(ctx, args, file, ui);
    }
    let files = output_files(ctx, args)?;
    let before =
        args.compare.as_ref().map(|path| read_earlier(&ctx.typed_path(path))).transpose()?;
    let ctx = &ctx.with_consent(CHECK_KEYS, ui)?;
    let checks = collect_checks(ctx, args)?;
    let cancel = CancellationToken::new();
    let options = VerifyOptions {
        checks: CheckOptions { parallel: args.parallel, fail_fast: args.fail_fast },
        before: before.as_ref(),
    };
    let verification = build_runtime()?.block_on(run_checks(ctx, &checks, options, &cancel, ui))?;
    let usual = if ui.json { VerifyFormat::Json } else { VerifyFormat::Text };
    let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
    let text = render_verification(&verification, args.format.unwrap_or(usual), &styles);
    ui.out.write_all(text.as_bytes())?;
    for (format, path) in &files {
        let text = render_verification(&verification, *format, &Styles::plain());
        write_output(ctx, path, text.as_bytes())?;
    }
    if checks.is_empty() {
        ui.print_note("hint: Declare checks in `plan.checks` of repertoire.toml, or name one with `--check COMMAND`.")?;
    }
    if ctx.configured_sandbox()?.is_enforced() {
        network_hints(&checks, &verification).iter().try_for_each(|hint| ui.print_note(hint))?;
    }
    if cancel.is_cancelled() {
        return Ok(CliExit::Interrupted);
    }
    Ok(match verification.verdict {
        VerificationVerdict::Passed => CliExit::Done,
        VerificationVerdict::Failed => CliExit::No,
        VerificationVerdict::Inconclusive | VerificationVerdict::NotVerifiable => {
            CliExit::CannotRun
        }
    })
}

/// Returns hints for checks that failed without network access with errors that suggest they need
/// it.
fn network_hints(checks: &[CheckDefinition], verification: &VerificationReport) -> Vec<String> {
    let is_offline = |report: &&CheckReport| {
        checks.iter().any(|check| check.name == report.name && !check.network)
    };
    let reports = verification.checks.iter().filter(|report| seems_to_need_network(report));
    reports.filter(is_offline).map(network_hint).collect()
}

fn seems_to_need_network(report: &CheckReport) -> bool {
    let mut groups = report.analysis.groups.iter();
    report.result == CheckOutcome::Failed
        && groups.any(|group| {
            matches!(group.category, ErrorCategory::Network | ErrorCategory::Dependency)
        })
}

fn network_hint(report: &CheckReport) -> String {
    let name = printable_line(&report.name);
    format!(
        "hint: The sandbox has no network. If `{name}` needs it, set `network = true` for this check in \
         `plan.checks` of repertoire.toml."
    )
}

/// Returns the checks of the configuration and of the command line.
fn collect_checks(
    ctx: &CliContext<'_>,
    args: &VerifyArgs,
) -> Result<Vec<CheckDefinition>, CliFailure> {
    let mut checks = ctx.declared_checks(CheckStage::EveryChange)?;
    checks.extend(ctx.declared_checks(CheckStage::Completion)?);
    let typed = args.checks.iter().enumerate();
    checks.extend(
        typed.map(|(at, command)| CheckDefinition::new(format!("check-{}", at + 1), command)),
    );
    Ok(checks)
}

/// Runs the checks and prints their progress. Ctrl-C cancels them.
async fn run_checks(
    ctx: &CliContext<'_>,
    checks: &[CheckDefinition],
    options: VerifyOptions<'_>,
    cancel: &CancellationToken,
    ui: &mut TerminalUi<'_>,
) -> Result<VerificationReport, CliFailure> {
    let spill = ctx.env.output_dir().join("verify");
    let mut workplace = RunWorkplace::new(ctx.project_dir(None), spill, ctx.configured_sandbox()?);
    workplace.environment = ctx.env.tool_environment(false);
    workplace.limits.usage = ctx.usage_limits();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    // The receiver is gone once all is over.
    let on_event = |event: CheckEvent| drop(tell.send(format_check_event(&event)));
    let work = verify::run_verification(checks, &workplace, options, cancel, &on_event);
    tokio::pin!(work);
    let quiet = ui.json;
    let done = loop {
        tokio::select! {
            biased;
            Some(line) = told.recv() => {
                if !quiet {
                    ui.print_note(&line)?;
                }
            }
            done = &mut work => break done,
            _ = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    while let Ok(line) = told.try_recv() {
        if !quiet {
            ui.print_note(&line)?;
        }
    }
    workplace.clean_up();
    done.map_err(|error| {
        CliFailure::wrong_usage(error.to_string())
            .hint("Checks are declared in `plan.checks` of repertoire.toml.")
    })
}

fn format_check_event(event: &CheckEvent) -> String {
    match event {
        CheckEvent::Started { name, attempt: 1 } => format!("  … {}", printable_line(name)),
        CheckEvent::Started { name, attempt } => {
            format!("  … {}, attempt {attempt}", printable_line(name))
        }
        CheckEvent::Ended(result) => {
            let (name, time) = (printable_line(&result.name), ui::format_time(result.duration_ms));
            match &result.status {
                CheckStatus::Passed => format!("  ✓ {name} ({time})"),
                CheckStatus::Failed => format!("  ✗ {name} ({time})"),
                CheckStatus::TimedOut => format!("  ✗ {name}: it took too long ({time})"),
                CheckStatus::Skipped(why) => format!("  - {name}: {}", printable_line(why)),
            }
        }
    }
}

fn render_verification(
    verification: &VerificationReport,
    format: VerifyFormat,
    styles: &Styles,
) -> String {
    match format {
        VerifyFormat::Text => verify::render_text(verification, styles),
        VerifyFormat::Json => to_json(verification),
        VerifyFormat::Html => verify::render_html(verification),
    }
}

fn to_json(value: &impl serde::Serialize) -> String {
    let text =
        serde_json::to_string_pretty(value).expect("the record has no maps and no strange numbers");
    format!("{text}\n")
}

/// Returns the files to write with their formats. Files that cannot be written are refused before
/// any check runs.
fn output_files(
    ctx: &CliContext<'_>,
    args: &VerifyArgs,
) -> Result<Vec<(VerifyFormat, Utf8PathBuf)>, CliFailure> {
    args.files.iter().map(|path| parse_output_file(ctx, path)).collect()
}

fn parse_output_file(
    ctx: &CliContext<'_>,
    path: &Utf8Path,
) -> Result<(VerifyFormat, Utf8PathBuf), CliFailure> {
    let format = match path.extension() {
        Some("txt") => VerifyFormat::Text,
        Some("json") => VerifyFormat::Json,
        Some("html" | "htm") => VerifyFormat::Html,
        _ => {
            return Err(CliFailure::wrong_usage(format!(
                "`{path}` does not say which format it is"
            ))
            .hint("Name it .txt, .json or .html."));
        }
    };
    let path = ctx.typed_path(path);
    check_output(ctx, &path)?;
    Ok((format, path))
}

/// Reads an earlier verification from a JSON file.
fn read_earlier(path: &Utf8Path) -> Result<VerificationReport, CliFailure> {
    let text = fs::read_text(path, VERIFICATION_BYTES_MAX).map_err(|error| {
        CliFailure::wrong_usage(format!("`--compare {path}` cannot be read: {error}"))
    })?;
    serde_json::from_str(&text).map_err(|error| {
        CliFailure::wrong_usage(format!("`--compare {path}` is no verification: {error}"))
            .hint("`rep verify -o FILE.json` writes one.")
    })
}
