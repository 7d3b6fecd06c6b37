//! `rep verify memory show`: prints a failure and its fixes.

use repertoire_checks::memory::FailureMemory;
use repertoire_journal::{FailureFilter, Journal, KnownFailure as Known};

use super::{RepositoryArg, memory_failure, state_style};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::LocalClock;
use crate::schema::improve::{FailureJson, FixJson};
use crate::ui::{self, TerminalUi};

/// Maximum number of lines shown of a patch.
const PATCH_LINES_SHOWN: usize = 40;

/// Arguments of `rep verify memory show`
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryShowArgs {
    /// Signature of the failure, or a prefix of it
    #[arg(value_name = "SIGNATURE")]
    signature: String,
    #[command(flatten)]
    scope: RepositoryArg,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &MemoryShowArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let json = build_runtime()?.block_on(async {
        let scope = ctx.repository_key(&args.scope).await?;
        let journal = ctx.open_existing_journal().await?;
        let journal = journal.ok_or_else(|| unknown_failure(&args.signature))?;
        let failure = find_failure(&journal, &scope, &args.signature).await?;
        let memory = FailureMemory::new(journal.clone(), &scope);
        let fixes = journal.list_fixes(&scope, &failure.signature).await.map_err(memory_failure)?;
        let fixes = fixes.into_iter().map(|fix| {
            let (state, why) = memory.state_of(&fix, now_ms());
            FixJson { fix, state, why }
        });
        Ok::<_, CliFailure>(FailureJson { fixes: fixes.collect(), failure })
    })?;
    if ui.json {
        ui.print_json(&json)?;
    } else {
        print_failure(&json, ui)?;
    }
    Ok(CliExit::Done)
}

/// Finds a failure by a prefix of its signature, which must match only one.
pub(super) async fn find_failure(
    journal: &Journal,
    scope: &str,
    signature: &str,
) -> Result<Known, CliFailure> {
    let filter = FailureFilter {
        scope: scope.to_owned(),
        signature: Some(signature.to_lowercase()),
        limit: 5,
        ..FailureFilter::default()
    };
    let mut found = journal.list_failures(&filter).await.map_err(memory_failure)?.items;
    match found.len() {
        0 => Err(unknown_failure(signature)),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<_> = found.iter().map(|failure| failure.signature.as_str()).collect();
            let names = names.join(", ");
            Err(CliFailure::negative_answer(format!(
                "`{signature}` is the start of more than one: {names}"
            ))
            .hint("Write more of it."))
        }
    }
}

fn unknown_failure(signature: &str) -> CliFailure {
    CliFailure::negative_answer(format!("the failure `{signature}` was not seen here before"))
        .hint("`rep verify memory` lists those that were.")
}

fn print_failure(json: &FailureJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let (failure, clock) = (&json.failure, LocalClock::local(now_ms()));
    let code = failure.code.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
    writeln!(ui.out, "{}  {}{code}", ui.paint(ui::ACCENT, &failure.signature), failure.category)?;
    if !failure.example.is_empty() {
        writeln!(ui.out, "{}", ui::printable_lines(&failure.example))?;
    }
    let told = match failure.seen {
        0 => format!("not seen in {} yet", failure.scope),
        seen => format!(
            "{} times in {}, by {}; last {}, first {}",
            seen,
            failure.scope,
            failure.tool,
            clock.format_brief(failure.last_ms),
            clock.format_brief(failure.first_ms)
        ),
    };
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, told))?;
    if json.fixes.is_empty() {
        let line =
            format!("\nNo fix is known. `rep verify memory teach {}` says one.", failure.signature);
        return writeln!(ui.out, "{line}");
    }
    for known in &json.fixes {
        print_fix(known, ui)?;
    }
    Ok(())
}

fn print_fix(known: &FixJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let fix = &known.fix;
    let state = ui.paint(state_style(Some(known.state)), known.state.as_str());
    let kind = fix.fix.remedy.kind();
    writeln!(ui.out, "\n{state} {:.2}  {kind} {}: {}", fix.confidence, fix.id, known.why)?;
    let text = ui::printable_lines(&fix.fix.remedy.to_text());
    for line in text.lines().take(PATCH_LINES_SHOWN) {
        writeln!(ui.out, "    {line}")?;
    }
    let more = text.lines().count().saturating_sub(PATCH_LINES_SHOWN);
    if more > 0 {
        writeln!(ui.out, "    … {more} more lines, see --json")?;
    }
    for condition in &fix.fix.preconditions {
        writeln!(ui.out, "    {}", ui.paint(ui::FAINT, format!("only if: {condition}")))?;
    }
    Ok(())
}
