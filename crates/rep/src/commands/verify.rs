//! `rep verify`: runs the declared checks. The verdict is based on their exit codes.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::declared::{Check, CheckEvent, CheckOptions, CheckStatus};
use repertoire_checks::error::Category;
use repertoire_checks::limits::VERIFICATION_BYTES_MAX;
use repertoire_checks::verify::{self, CheckOutcome, CheckReport, Options, Verdict, Verification};
use repertoire_sandbox::workplace::Workplace;
use repertoire_text::fs;
use repertoire_text::styles::Styles;
use repertoire_text::terminal::printable;
use tokio_util::sync::CancellationToken;

use crate::cli::Ctx;
use crate::consent::CHECK_KEYS;
use crate::failure::{Exit, Failure, Outcome};
use crate::project_files::{check_output, write_output};
use crate::running::runtime;
use crate::ui::{self, Ui};

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
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
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
    format: Option<Format>,
    /// Also write the report to this file, in the format of its extension: .txt, .json, .html (may
    /// be repeated)
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = OUT)]
    files: Vec<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if let Some(file) = &args.read {
        return read::run(ctx, args, file, ui);
    }
    let files = files(ctx, args)?;
    let before = args.compare.as_ref().map(|path| earlier(&ctx.typed_path(path))).transpose()?;
    let ctx = &ctx.with_consent(CHECK_KEYS, ui)?;
    let checks = declared(ctx, args)?;
    let cancel = CancellationToken::new();
    let options = Options {
        checks: CheckOptions { parallel: args.parallel, fail_fast: args.fail_fast },
        before: before.as_ref(),
    };
    let verification = runtime()?.block_on(attend(ctx, &checks, options, &cancel, ui))?;
    let usual = if ui.json { Format::Json } else { Format::Text };
    let styles = if ui.colour { Styles::ansi() } else { Styles::plain() };
    let text = render(&verification, args.format.unwrap_or(usual), &styles);
    ui.out.write_all(text.as_bytes())?;
    for (format, path) in &files {
        let text = render(&verification, *format, &Styles::plain());
        write_output(ctx, path, text.as_bytes())?;
    }
    if checks.is_empty() {
        ui.note("hint: Declare checks in `plan.checks` of repertoire.toml, or name one with `--check COMMAND`.")?;
    }
    if ctx.sandbox()?.is_enforced() {
        network_hints(&checks, &verification).iter().try_for_each(|hint| ui.note(hint))?;
    }
    if cancel.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    Ok(match verification.verdict {
        Verdict::Passed => Exit::Done,
        Verdict::Failed => Exit::No,
        Verdict::Inconclusive | Verdict::NotVerifiable => Exit::CannotRun,
    })
}

/// Returns hints for checks that failed without network access with errors that suggest they need
/// it.
fn network_hints(checks: &[Check], verification: &Verification) -> Vec<String> {
    let is_offline = |report: &&CheckReport| {
        checks.iter().any(|check| check.name == report.name && !check.network)
    };
    let reports = verification.checks.iter().filter(|report| seems_to_need_network(report));
    reports.filter(is_offline).map(network_hint).collect()
}

fn seems_to_need_network(report: &CheckReport) -> bool {
    let mut groups = report.analysis.groups.iter();
    report.result == CheckOutcome::Failed
        && groups.any(|group| matches!(group.category, Category::Network | Category::Dependency))
}

fn network_hint(report: &CheckReport) -> String {
    let name = printable(&report.name);
    format!(
        "hint: The sandbox has no network. If `{name}` needs it, set `network = true` for this check in \
         `plan.checks` of repertoire.toml."
    )
}

/// Returns the checks of the configuration and of the command line.
fn declared(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<Check>, Failure> {
    let mut checks = ctx.checks("plan.checks")?;
    checks.extend(ctx.checks("plan.final_checks")?);
    let typed = args.checks.iter().enumerate();
    checks.extend(typed.map(|(at, command)| Check::new(format!("check-{}", at + 1), command)));
    Ok(checks)
}

/// Runs the checks and prints their progress. Ctrl-C cancels them.
async fn attend(
    ctx: &Ctx<'_>,
    checks: &[Check],
    options: Options<'_>,
    cancel: &CancellationToken,
    ui: &mut Ui<'_>,
) -> Result<Verification, Failure> {
    let spill = ctx.env.output_dir().join("verify");
    let mut workplace = Workplace::new(ctx.project_dir(None), spill, ctx.sandbox()?);
    workplace.environment = ctx.env.tool_environment(false);
    workplace.limits.usage = ctx.usage_limits();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    // The receiver is gone once all is over.
    let on_event = |event: CheckEvent| drop(tell.send(line(&event)));
    let work = verify::verify(checks, &workplace, options, cancel, &on_event);
    tokio::pin!(work);
    let quiet = ui.json;
    let done = loop {
        tokio::select! {
            biased;
            Some(line) = told.recv() => {
                if !quiet {
                    ui.note(&line)?;
                }
            }
            done = &mut work => break done,
            _ = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    while let Ok(line) = told.try_recv() {
        if !quiet {
            ui.note(&line)?;
        }
    }
    workplace.clean_up();
    done.map_err(|error| {
        Failure::usage(error.to_string())
            .hint("Checks are declared in `plan.checks` of repertoire.toml.")
    })
}

fn line(event: &CheckEvent) -> String {
    match event {
        CheckEvent::Started { name, attempt: 1 } => format!("  … {}", printable(name)),
        CheckEvent::Started { name, attempt } => {
            format!("  … {}, attempt {attempt}", printable(name))
        }
        CheckEvent::Ended(result) => {
            let (name, time) = (printable(&result.name), ui::time(result.duration_ms));
            match &result.status {
                CheckStatus::Passed => format!("  ✓ {name} ({time})"),
                CheckStatus::Failed => format!("  ✗ {name} ({time})"),
                CheckStatus::TimedOut => format!("  ✗ {name}: it took too long ({time})"),
                CheckStatus::Skipped(why) => format!("  - {name}: {}", printable(why)),
            }
        }
    }
}

fn render(verification: &Verification, format: Format, styles: &Styles) -> String {
    match format {
        Format::Text => verify::text(verification, styles),
        Format::Json => json(verification),
        Format::Html => verify::html(verification),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    let text =
        serde_json::to_string_pretty(value).expect("the record has no maps and no strange numbers");
    format!("{text}\n")
}

/// Returns the files to write with their formats. Files that cannot be written are refused before
/// any check runs.
fn files(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<(Format, Utf8PathBuf)>, Failure> {
    args.files.iter().map(|path| parse_output_file(ctx, path)).collect()
}

fn parse_output_file(ctx: &Ctx<'_>, path: &Utf8Path) -> Result<(Format, Utf8PathBuf), Failure> {
    let format = match path.extension() {
        Some("txt") => Format::Text,
        Some("json") => Format::Json,
        Some("html" | "htm") => Format::Html,
        _ => {
            return Err(Failure::usage(format!("`{path}` does not say which format it is"))
                .hint("Name it .txt, .json or .html."));
        }
    };
    let path = ctx.typed_path(path);
    check_output(ctx, &path)?;
    Ok((format, path))
}

/// Reads an earlier verification from a JSON file.
fn earlier(path: &Utf8Path) -> Result<Verification, Failure> {
    let text = fs::read_text(path, VERIFICATION_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("`--compare {path}` cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("`--compare {path}` is no verification: {error}"))
            .hint("`rep verify -o FILE.json` writes one.")
    })
}
