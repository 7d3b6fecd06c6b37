//! `rep memory`: shows past failures of this repository's checks, and the fixes that worked.

use repertoire_checks::memory::{FixState, Memory, scope_of};
use repertoire_git::repo::GitError;
use repertoire_journal::{FailureFilter, Journal, JournalError};

use crate::cli::Ctx;
use crate::commands::runs::now_ms;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::Clock;
use crate::schema::improve::{FailureRow, MemoryJson};
use crate::ui::{self, Ui};

mod change;
mod show;

/// Number of failures listed by default.
const SHOWN: u32 = 20;

/// Arguments of `rep memory`; without a subcommand, failures are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// The repository
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ScopeArg {
    /// Use this repository instead of the one of the working folder, named as in `rep memory list`
    #[arg(long, value_name = "REPOSITORY")]
    scope: Option<String>,
}

/// Filters of `rep memory list`
#[derive(Debug, clap::Args)]
struct ListArgs {
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
    scope: ScopeArg,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List failures, the most frequent first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a failure, the fixes that were tried, and how far each is trusted
    Show(show::Args),
    /// Print the whole memory as JSON, for inspection or for another machine
    Export(change::ExportArgs),
    /// Import the output of `export`; its fixes are only suggested until they have worked here
    Import(change::ImportArgs),
    /// Add a fix for a failure
    Teach(change::TeachArgs),
    /// Forget a failure, or all failures of this repository
    Forget(change::ForgetArgs),
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        None => list(ctx, &args.list, ui),
        Some(Action::List(args)) => list(ctx, args, ui),
        Some(Action::Show(args)) => show::run(ctx, args, ui),
        Some(Action::Export(args)) => change::export(ctx, args, ui),
        Some(Action::Import(args)) => change::import(ctx, args, ui),
        Some(Action::Teach(args)) => change::teach(ctx, args, ui),
        Some(Action::Forget(args)) => change::forget(ctx, args, ui),
    }
}

impl Ctx<'_> {
    /// Returns the key of the repository: `--scope`, or the repository of the working folder.
    /// Outside of git, the key is the path of the folder.
    pub(crate) async fn scope(&self, arg: &ScopeArg) -> Result<String, Failure> {
        if let Some(scope) = &arg.scope {
            return Ok(scope.clone());
        }
        let dir = self.project_dir(None);
        let git = self.git(&dir)?;
        match scope_of(&git).await {
            Ok(scope) => Ok(scope),
            Err(GitError::NotARepository { .. }) => Ok(format!("path:{dir}")),
            Err(error) => {
                let hint = "`--scope` names a repository without asking git.";
                Err(Failure::cannot_run(error.to_string()).hint(hint))
            }
        }
    }
}

/// Converts a journal error to a failure.
fn failed(error: JournalError) -> Failure {
    match error {
        JournalError::NotRemembered { .. } | JournalError::TooLarge { .. } => {
            Failure::no(error.to_string())
        }
        _ => Failure::cannot_run(error.to_string()),
    }
}

fn list(ctx: &Ctx<'_>, args: &ListArgs, ui: &mut Ui<'_>) -> Outcome {
    let json = runtime()?.block_on(async {
        let scope = ctx.scope(&args.scope).await?;
        match ctx.journal_if_there().await? {
            Some(journal) => read(args, scope, &journal).await,
            None => Ok(MemoryJson { scope, failures: Vec::new(), next: None, others: Vec::new() }),
        }
    })?;
    if ui.json {
        ui.print_json(&json)?;
        return Ok(Exit::Done);
    }
    if json.failures.is_empty() {
        return nothing(args, &json, ui);
    }
    table(&json, ui)?;
    if let Some(next) = json.next {
        let line = format!("There are more: --after {next} goes on.");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(Exit::Done)
}

fn nothing(args: &ListArgs, json: &MemoryJson, ui: &mut Ui<'_>) -> Outcome {
    let line = if args.category.is_some() || args.after > 0 {
        "No failure is like that. `rep memory` lists all.".to_owned()
    } else {
        format!(
            "Nothing is remembered of {} yet. `rep plan run --self-improve` remembers what fails and what helps; \
             `rep memory teach` says it by hand.",
            json.scope
        )
    };
    writeln!(ui.out, "{}", ui::wrap(&line, ui.columns.min(100), ""))?;
    if !json.others.is_empty() {
        writeln!(ui.out, "Something is known of {}; see --scope.", json.others.join(", "))?;
    }
    Ok(Exit::Done)
}

async fn read(args: &ListArgs, scope: String, journal: &Journal) -> Result<MemoryJson, Failure> {
    let filter = FailureFilter {
        scope: scope.clone(),
        category: args.category.clone(),
        limit: args.limit,
        after: args.after,
        ..FailureFilter::default()
    };
    let page = journal.failures(&filter).await.map_err(failed)?;
    let memory = Memory::new(journal.clone(), &scope);
    let mut failures = Vec::new();
    for failure in page.items {
        let fixes = journal.fixes(&scope, &failure.signature).await.map_err(failed)?;
        let best = fixes.first();
        failures.push(FailureRow {
            best: best.map(|fix| memory.state_of(fix, now_ms()).0),
            confidence: best.map(|fix| fix.confidence),
            fixes: fixes.len(),
            failure,
        });
    }
    let scopes = journal.scopes().await.map_err(failed)?;
    let others = scopes.into_iter().map(|(other, _)| other).filter(|other| *other != scope);
    let others = others.collect();
    Ok(MemoryJson { scope, failures, next: page.next, others })
}

const HEADINGS: [&str; 5] = ["signature", "seen", "last", "fix", "failure"];

fn table(json: &MemoryJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let clock = Clock::local(now_ms());
    let rows: Vec<[String; 5]> = json.failures.iter().map(|row| cells(row, &clock)).collect();
    let widths: [usize; 4] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::width(&row[at]));
        cells.chain([HEADINGS[at].len()]).max().unwrap_or(0)
    });
    let left = ui.columns.saturating_sub(widths.iter().sum::<usize>() + 8).max(20);
    let head: String = (0..4).map(|at| ui::pad(HEADINGS[at], widths[at] + 2)).collect();
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("{head}{}", HEADINGS[4])))?;
    for (row, shown) in json.failures.iter().zip(&rows) {
        let mut line: String = (0..3).map(|at| ui::pad(&shown[at], widths[at] + 2)).collect();
        line.push_str(&ui.paint(state_style(row.best), ui::pad(&shown[3], widths[3] + 2)));
        line.push_str(&ui::fit(&shown[4], left));
        writeln!(ui.out, "{line}")?;
    }
    Ok(())
}

fn cells(row: &FailureRow, clock: &Clock) -> [String; 5] {
    let failure = &row.failure;
    let fix = match (row.best, row.confidence) {
        (Some(best), Some(confidence)) => format!("{} {confidence:.2}", best.as_str()),
        _ => "none".to_owned(),
    };
    let code = failure.code.as_deref().map(|code| format!("{code}: ")).unwrap_or_default();
    [
        failure.signature.clone(),
        format!("{}x", failure.seen),
        clock.age(failure.last_ms),
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
