//! `rep verify memory export`, `import`, `teach` and `forget`.

use camino::Utf8PathBuf;
use repertoire_checks::limits::MEMORY_FILE_BYTES_MAX;
use repertoire_checks::memory::{self, ExchangeError, FailureMemory, MemoryImportTrust};
use repertoire_checks::signature::FailureSignature;
use repertoire_journal::limits::FIX_BYTES_MAX;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFix, FixRemedy, KnownFailure as Known, KnownFix, MemoryLesson};

use super::show::find_failure;
use super::{RepositoryArg, memory_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::improve::{FailureJson, FixJson, MemoryFile, MemoryForgetJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep verify memory export`
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    scope: RepositoryArg,
}

/// Arguments of `rep verify memory import`
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// A file with the output of `rep verify memory export`
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,
    /// Trust the success records in the file; only for files that you wrote yourself, such as a
    /// cache
    #[arg(long)]
    trust: bool,
    #[command(flatten)]
    scope: RepositoryArg,
}

/// Arguments of `rep verify memory teach`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("remedy").required(true))]
pub(crate) struct TeachArgs {
    /// Signature of the failure, as in `rep verify memory` or `rep verify --json`
    #[arg(value_name = "SIGNATURE")]
    signature: String,
    /// A patch in the format of `git diff`
    #[arg(long, value_name = "FILE", group = "remedy")]
    patch: Option<Utf8PathBuf>,
    /// Advice for the person or agent who fixes it
    #[arg(long, value_name = "TEXT", group = "remedy")]
    advice: Option<String>,
    /// A program with its arguments, up to the end of the line; no shell is involved
    #[arg(long, value_name = "WORD", group = "remedy", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
    /// Apply the fix only if this file exists (may be repeated)
    #[arg(long = "if-exists", value_name = "PATH")]
    if_exists: Vec<String>,
    #[command(flatten)]
    scope: RepositoryArg,
}

/// Arguments of `rep verify memory forget`
#[derive(Debug, clap::Args)]
pub(crate) struct ForgetArgs {
    /// Signature of the failure, or a prefix of it
    #[arg(value_name = "SIGNATURE", required_unless_present = "all")]
    signature: Option<String>,
    /// Forget all failures of this repository
    #[arg(long, conflicts_with = "signature")]
    all: bool,
    #[command(flatten)]
    scope: RepositoryArg,
}

pub(crate) fn export_memory(
    ctx: &CliContext<'_>,
    args: &ExportArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let file = build_runtime()?.block_on(async {
        let scope = ctx.repository_key(&args.scope).await?;
        match ctx.open_existing_journal().await? {
            Some(journal) => {
                FailureMemory::new(journal, scope).export().await.map_err(memory_failure)
            }
            None => {
                let version = memory::MEMORY_VERSION;
                Ok(MemoryFile { version, scope, failures: Vec::new() })
            }
        }
    })?;
    ui.print_json(&file)?;
    Ok(CliExit::Done)
}

pub(crate) fn import_memory(
    ctx: &CliContext<'_>,
    args: &ImportArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let path = ctx.env.here.join(&args.file);
    let text = repertoire_text::fs::read_text(&path, MEMORY_FILE_BYTES_MAX)
        .map_err(|error| CliFailure::negative_answer(format!("{}: {error}", args.file)))?;
    let file =
        memory::parse_memory_file(&text).map_err(|error| import_failure(&args.file, error))?;
    let trust = if args.trust { MemoryImportTrust::Records } else { MemoryImportTrust::Nothing };
    let done = build_runtime()?.block_on(async {
        let memory =
            FailureMemory::new(ctx.journal(None).await?, ctx.repository_key(&args.scope).await?);
        memory.import(file, trust).await.map_err(|error| import_failure(&args.file, error))
    })?;
    if ui.json {
        ui.print_json(&done)?;
        return Ok(CliExit::Done);
    }
    let fixes = if done.fixes == 1 { "1 fix".to_owned() } else { format!("{} fixes", done.fixes) };
    writeln!(ui.out, "Took {} and {fixes}.", ui::format_count(done.failures, "failure"))?;
    for line in &done.left_out {
        ui.print_note(&format!("left out: {line}"))?;
    }
    if !args.trust && done.fixes > 0 {
        ui.print_note(
            "they are suggestions until they have worked here; `--trust` believes the file",
        )?;
    }
    Ok(CliExit::Done)
}

fn import_failure(file: &Utf8PathBuf, error: ExchangeError) -> CliFailure {
    match error {
        ExchangeError::Journal(error) => memory_failure(error),
        error => CliFailure::negative_answer(format!("{file}: {error}")),
    }
}

pub(crate) fn teach_fix(
    ctx: &CliContext<'_>,
    args: &TeachArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let signature = args.signature.to_lowercase();
    let signature: FailureSignature =
        signature.parse().map_err(|error| CliFailure::wrong_usage(format!("{error}")))?;
    let fix = fix_of(ctx, args)?;
    if let Some(why) = memory::refuse_to_remember(&fix) {
        return Err(CliFailure::negative_answer(format!("this is not remembered: {why}"))
            .hint("`--advice` can say in words what a person should do."));
    }
    let (name, json) = (signature.to_string(), ui.json);
    let taught = build_runtime()?.block_on(async {
        let scope = ctx.repository_key(&args.scope).await?;
        let journal = ctx.journal(None).await?;
        let known = journal.find_failure(&scope, &name).await.map_err(memory_failure)?;
        let failure = known.unwrap_or_else(|| unseen_failure(&scope, &name));
        let lesson = MemoryLesson { failure, fixes: vec![KnownFix::new(fix.clone(), now_ms())] };
        journal.store_lessons(&scope, vec![lesson]).await.map_err(memory_failure)?;
        let failure = find_failure(&journal, &scope, &name).await?;
        let memory = FailureMemory::new(journal.clone(), &scope);
        let fixes = journal.list_fixes(&scope, &name).await.map_err(memory_failure)?;
        let fixes = fixes.into_iter().filter(|known| known.id == fix.id()).map(|fix| {
            let (state, why) = memory.state_of(&fix, now_ms());
            FixJson { fix, state, why }
        });
        Ok::<_, CliFailure>(FailureJson { fixes: fixes.collect(), failure })
    })?;
    if json {
        ui.print_json(&taught)?;
        return Ok(CliExit::Done);
    }
    let what = match &fix.remedy {
        FixRemedy::Patch(_) => "A patch",
        FixRemedy::Command(_) => "A command",
        FixRemedy::Advice(_) => "Advice",
    };
    writeln!(ui.out, "{what} for {name} is remembered in {}.", taught.failure.scope)?;
    if let Some(FixJson { state, why, .. }) = taught.fixes.first() {
        ui.print_note(&format!("It is {}: {why}.", state.as_str()))?;
    }
    Ok(CliExit::Done)
}

/// Creates the record of a failure that is taught before it has occurred.
fn unseen_failure(scope: &str, signature: &str) -> Known {
    let now_ms = now_ms();
    Known {
        scope: scope.to_owned(),
        signature: signature.to_owned(),
        category: "unknown".to_owned(),
        code: None,
        tool: String::new(),
        example: String::new(),
        seen: 0,
        first_ms: now_ms,
        last_ms: now_ms,
    }
}

fn fix_of(ctx: &CliContext<'_>, args: &TeachArgs) -> Result<FailureFix, CliFailure> {
    let remedy = match (&args.patch, &args.advice) {
        (Some(path), _) => {
            let text =
                repertoire_text::fs::read_text(&ctx.env.here.join(path), FIX_BYTES_MAX as u64)
                    .map_err(|error| CliFailure::negative_answer(format!("{path}: {error}")))?;
            FixRemedy::Patch(text)
        }
        (None, Some(text)) => FixRemedy::Advice(text.clone()),
        (None, None) => FixRemedy::Command(args.command.clone()),
    };
    let preconditions = args.if_exists.iter().map(|path| format!("exists {path}")).collect();
    Ok(FailureFix { remedy, preconditions, origin: FixOrigin::Taught })
}

pub(crate) fn forget_failures(
    ctx: &CliContext<'_>,
    args: &ForgetArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let done = build_runtime()?.block_on(async {
        let scope = ctx.repository_key(&args.scope).await?;
        let Some(journal) = ctx.open_existing_journal().await? else {
            return Ok(MemoryForgetJson { scope, failures: 0 });
        };
        let signature = match &args.signature {
            Some(text) => Some(find_failure(&journal, &scope, text).await?.signature),
            None => None,
        };
        let failures =
            journal.delete_failures(&scope, signature.as_deref()).await.map_err(memory_failure)?;
        Ok::<_, CliFailure>(MemoryForgetJson { scope, failures })
    })?;
    if ui.json {
        ui.print_json(&done)?;
    } else {
        let count = ui::format_count(usize::try_from(done.failures).unwrap_or(0), "failure");
        writeln!(ui.out, "Forgot {count} of {}.", done.scope)?;
    }
    Ok(CliExit::Done)
}
