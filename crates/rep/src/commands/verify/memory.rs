//! `rep verify memory`: shows past failures of this repository's checks, and the fixes that worked.

use repertoire_checks::memory::{FailureMemory, FixState, scope_of};
use repertoire_git::repo::GitError;
use repertoire_journal::{FailureFilter, Journal, JournalError};

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::LocalClock;
use crate::schema::improve::{FailureRow, MemoryJson};
use crate::ui::{self, TerminalUi};

mod actions;
mod show;

/// Number of failures listed by default.
const SHOWN: u32 = 20;

/// Arguments of `rep verify memory`; without a subcommand, failures are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct VerifyMemoryArgs {
    #[command(subcommand)]
    action: Option<MemoryAction>,
    #[command(flatten)]
    list: MemoryListArgs,
}

/// The repository
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RepositoryArg {
    /// Use this repository instead of the one of the working folder, named as in `rep verify memory list`
    #[arg(long, value_name = "REPOSITORY")]
    scope: Option<String>,
}

/// Filters of `rep verify memory list`
#[derive(Debug, clap::Args)]
struct MemoryListArgs {
    /// Only failures of this kind: build, lint, test_failure and so on
    #[arg(long, value_name = "KIND")]
    category: Option<String>,
    /// List at most this many failures
    #[arg(long, value_name = "N", default_value_t = SHOWN, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Continue at the position that a previous list ended with
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    #[command(flatten)]
    scope: RepositoryArg,
}

#[derive(Debug, clap::Subcommand)]
enum MemoryAction {
    /// List failures, the most frequent first
    #[command(visible_alias = "ls")]
    List(MemoryListArgs),
    /// Show a failure, the fixes that were tried, and how far each is trusted
    Show(show::MemoryShowArgs),
    /// Print the whole memory as JSON, for inspection or for another machine
    Export(actions::ExportArgs),
    /// Import the output of `export`; its fixes are only suggested until they have worked here
    Import(actions::ImportArgs),
    /// Add a fix for a failure
    Teach(actions::TeachArgs),
    /// Forget a failure, or all failures of this repository
    Forget(actions::ForgetArgs),
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &VerifyMemoryArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    match &args.action {
        None => list_failures(ctx, &args.list, ui),
        Some(MemoryAction::List(args)) => list_failures(ctx, args, ui),
        Some(MemoryAction::Show(args)) => show::run(ctx, args, ui),
        Some(MemoryAction::Export(args)) => actions::export_memory(ctx, args, ui),
        Some(MemoryAction::Import(args)) => actions::import_memory(ctx, args, ui),
        Some(MemoryAction::Teach(args)) => actions::teach_fix(ctx, args, ui),
        Some(MemoryAction::Forget(args)) => actions::forget_failures(ctx, args, ui),
    }
}

impl CliContext<'_> {
    /// Returns the key of the repository: `--scope`, or the repository of the working folder.
    /// Outside of git, the key is the path of the folder.
    pub(crate) async fn repository_key(&self, arg: &RepositoryArg) -> Result<String, CliFailure> {
        if let Some(scope) = &arg.scope {
            return Ok(scope.clone());
        }
        let dir = self.project_dir(None);
        let git = self.git_in(&dir)?;
        match scope_of(&git).await {
            Ok(scope) => Ok(scope),
            Err(GitError::NotARepository { .. }) => Ok(format!("path:{dir}")),
            Err(error) => {
                let hint = "`--scope` names a repository without asking git.";
                Err(CliFailure::cannot_run(error.to_string()).hint(hint))
            }
        }
    }
}

/// Converts a journal error to a failure.
fn memory_failure(error: JournalError) -> CliFailure {
    match error {
        JournalError::NotRemembered { .. } | JournalError::TooLarge { .. } => {
            CliFailure::negative_answer(error.to_string())
        }
        _ => CliFailure::cannot_run(error.to_string()),
    }
}

fn list_failures(
    ctx: &CliContext<'_>,
    args: &MemoryListArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let json = build_runtime()?.block_on(async {
        let scope = ctx.repository_key(&args.scope).await?;
        match ctx.open_existing_journal().await? {
            Some(journal) => read_failures(args, scope, &journal).await,
            None => Ok(MemoryJson { scope, failures: Vec::new(), next: None, others: Vec::new() }),
        }
    })?;
    if ui.json {
        ui.print_json(&json)?;
        return Ok(CliExit::Done);
    }
    if json.failures.is_empty() {
        return print_nothing(args, &json, ui);
    }
    print_table(&json, ui)?;
    if let Some(next) = json.next {
        let line = format!("There are more: --after {next} goes on.");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(CliExit::Done)
}

fn print_nothing(args: &MemoryListArgs, json: &MemoryJson, ui: &mut TerminalUi<'_>) -> CliResult {
    let line = if args.category.is_some() || args.after > 0 {
        "No failure is like that. `rep verify memory` lists all.".to_owned()
    } else {
        format!(
            "Nothing is remembered of {} yet. `rep plan run --self-improve` remembers what fails and what helps; \
             `rep verify memory teach` says it by hand.",
            json.scope
        )
    };
    writeln!(ui.out, "{}", ui::wrap_words(&line, ui.columns.min(100), ""))?;
    if !json.others.is_empty() {
        writeln!(ui.out, "Something is known of {}; see --scope.", json.others.join(", "))?;
    }
    Ok(CliExit::Done)
}

async fn read_failures(
    args: &MemoryListArgs,
    scope: String,
    journal: &Journal,
) -> Result<MemoryJson, CliFailure> {
    let filter = FailureFilter {
        scope: scope.clone(),
        category: args.category.clone(),
        limit: args.limit,
        after: args.after,
        ..FailureFilter::default()
    };
    let page = journal.list_failures(&filter).await.map_err(memory_failure)?;
    let memory = FailureMemory::new(journal.clone(), &scope);
    let mut failures = Vec::new();
    for failure in page.items {
        let fixes = journal.list_fixes(&scope, &failure.signature).await.map_err(memory_failure)?;
        let best = fixes.first();
        failures.push(FailureRow {
            best: best.map(|fix| memory.state_of(fix, now_ms()).0),
            confidence: best.map(|fix| fix.confidence),
            fixes: fixes.len(),
            failure,
        });
    }
    let scopes = journal.list_scopes().await.map_err(memory_failure)?;
    let others = scopes.into_iter().map(|(other, _)| other).filter(|other| *other != scope);
    let others = others.collect();
    Ok(MemoryJson { scope, failures, next: page.next, others })
}

const HEADINGS: [&str; 5] = ["signature", "seen", "last", "fix", "failure"];

fn print_table(json: &MemoryJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let clock = LocalClock::local(now_ms());
    let rows: Vec<[String; 5]> = json.failures.iter().map(|row| row_cells(row, &clock)).collect();
    let widths: [usize; 4] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::text_width(&row[at]));
        cells.chain([HEADINGS[at].len()]).max().unwrap_or(0)
    });
    let left = ui.columns.saturating_sub(widths.iter().sum::<usize>() + 8).max(20);
    let head: String = (0..4).map(|at| ui::pad_columns(HEADINGS[at], widths[at] + 2)).collect();
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("{head}{}", HEADINGS[4])))?;
    for (row, shown) in json.failures.iter().zip(&rows) {
        let mut line: String =
            (0..3).map(|at| ui::pad_columns(&shown[at], widths[at] + 2)).collect();
        line.push_str(&ui.paint(state_style(row.best), ui::pad_columns(&shown[3], widths[3] + 2)));
        line.push_str(&ui::fit_columns(&shown[4], left));
        writeln!(ui.out, "{line}")?;
    }
    Ok(())
}

fn row_cells(row: &FailureRow, clock: &LocalClock) -> [String; 5] {
    let failure = &row.failure;
    let fix = match (row.best, row.confidence) {
        (Some(best), Some(confidence)) => format!("{} {confidence:.2}", best.as_str()),
        _ => "none".to_owned(),
    };
    let code = failure.code.as_deref().map(|code| format!("{code}: ")).unwrap_or_default();
    [
        failure.signature.clone(),
        format!("{}x", failure.seen),
        clock.format_age(failure.last_ms),
        fix,
        if failure.example.is_empty() {
            "not seen yet".to_owned()
        } else {
            format!("{code}{}", failure.example)
        },
    ]
}

fn state_style(state: Option<FixState>) -> anstyle::Style {
    match state {
        Some(FixState::Automatic) => ui::GOOD,
        Some(FixState::Suggested) => ui::WARN,
        Some(FixState::Retired) => ui::BAD,
        None => ui::FAINT,
    }
}
