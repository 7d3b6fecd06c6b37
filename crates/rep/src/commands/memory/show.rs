//! `rep memory show`: prints a failure and its fixes.

use repertoire_checks::memory::Memory;
use repertoire_journal::{Failure as Known, FailureFilter, Journal};

use super::{ScopeArg, failed, state_style};
use crate::cli::Ctx;
use crate::commands::runs::now_ms;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::Clock;
use crate::schema::improve::{FailureJson, FixJson};
use crate::ui::{self, Ui};

/// Maximum number of lines shown of a patch.
const PATCH_LINES_SHOWN: usize = 40;

/// Arguments of `rep memory show`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Signature of the failure, or a prefix of it
    #[arg(value_name = "SIGNATURE")]
    signature: String,
    #[command(flatten)]
    scope: ScopeArg,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let json = runtime()?.block_on(async {
        let scope = ctx.scope(&args.scope).await?;
        let journal = ctx.journal_if_there().await?;
        let journal = journal.ok_or_else(|| unknown(&args.signature))?;
        let failure = find(&journal, &scope, &args.signature).await?;
        let memory = Memory::new(journal.clone(), &scope);
        let fixes = journal.fixes(&scope, &failure.signature).await.map_err(failed)?;
        let fixes = fixes.into_iter().map(|fix| {
            let (state, why) = memory.state_of(&fix, now_ms());
            FixJson { fix, state, why }
        });
        Ok::<_, Failure>(FailureJson { fixes: fixes.collect(), failure })
    })?;
    if ui.json {
        ui.print_json(&json)?;
    } else {
        print(&json, ui)?;
    }
    Ok(Exit::Done)
}

/// Finds a failure by a prefix of its signature, which must match only one.
pub(super) async fn find(
    journal: &Journal,
    scope: &str,
    signature: &str,
) -> Result<Known, Failure> {
    let filter = FailureFilter {
        scope: scope.to_owned(),
        signature: Some(signature.to_lowercase()),
        limit: 5,
        ..FailureFilter::default()
    };
    let mut found = journal.failures(&filter).await.map_err(failed)?.items;
    match found.len() {
        0 => Err(unknown(signature)),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<_> = found.iter().map(|failure| failure.signature.as_str()).collect();
            let names = names.join(", ");
            Err(Failure::no(format!("`{signature}` is the start of more than one: {names}"))
                .hint("Write more of it."))
        }
    }
}

fn unknown(signature: &str) -> Failure {
    Failure::no(format!("the failure `{signature}` was not seen here before"))
        .hint("`rep memory` lists those that were.")
}

fn print(json: &FailureJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let (failure, clock) = (&json.failure, Clock::local(now_ms()));
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
            clock.brief(failure.last_ms),
            clock.brief(failure.first_ms)
        ),
    };
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, told))?;
    if json.fixes.is_empty() {
        let line = format!("\nNo fix is known. `rep memory teach {}` says one.", failure.signature);
        return writeln!(ui.out, "{line}");
    }
    for known in &json.fixes {
        print_fix(known, ui)?;
    }
    Ok(())
}

fn print_fix(known: &FixJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let fix = &known.fix;
    let state = ui.paint(state_style(Some(known.state)), known.state.as_str());
    let kind = fix.fix.remedy.kind();
    writeln!(ui.out, "\n{state} {:.2}  {kind} {}: {}", fix.confidence, fix.id, known.why)?;
    let text = ui::printable_lines(&fix.fix.remedy.text());
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
