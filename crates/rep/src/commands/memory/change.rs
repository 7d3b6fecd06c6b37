//! `rep memory export`, `import`, `teach` and `forget`.

use camino::Utf8PathBuf;
use repertoire_checks::limits::MEMORY_FILE_BYTES_MAX;
use repertoire_checks::memory::{self, ExchangeError, Memory, Trust};
use repertoire_checks::signature::Signature;
use repertoire_journal::limits::FIX_BYTES_MAX;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{Failure as Known, Fix, KnownFix, Lesson, Remedy};

use super::show::find;
use super::{ScopeArg, failed};
use crate::cli::Ctx;
use crate::commands::runs::now_ms;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::improve::{Exchanged, FailureJson, FixJson, ForgottenJson};
use crate::ui::{self, Ui};

/// Arguments of `rep memory export`
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    scope: ScopeArg,
}

/// Arguments of `rep memory import`
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// A file with the output of `rep memory export`
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,
    /// Trust the success records in the file; only for files that you wrote yourself, such as a
    /// cache
    #[arg(long)]
    trust: bool,
    #[command(flatten)]
    scope: ScopeArg,
}

/// Arguments of `rep memory teach`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("remedy").required(true))]
pub(crate) struct TeachArgs {
    /// Signature of the failure, as in `rep memory` or `rep verify --json`
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
    scope: ScopeArg,
}

/// Arguments of `rep memory forget`
#[derive(Debug, clap::Args)]
pub(crate) struct ForgetArgs {
    /// Signature of the failure, or a prefix of it
    #[arg(value_name = "SIGNATURE", required_unless_present = "all")]
    signature: Option<String>,
    /// Forget all failures of this repository
    #[arg(long, conflicts_with = "signature")]
    all: bool,
    #[command(flatten)]
    scope: ScopeArg,
}

pub(crate) fn export(ctx: &Ctx<'_>, args: &ExportArgs, ui: &mut Ui<'_>) -> Outcome {
    let file = runtime()?.block_on(async {
        let scope = ctx.scope(&args.scope).await?;
        match ctx.journal_if_there().await? {
            Some(journal) => Memory::new(journal, scope).export().await.map_err(failed),
            None => {
                let version = memory::MEMORY_VERSION;
                Ok(Exchanged { version, scope, failures: Vec::new() })
            }
        }
    })?;
    ui.print_json(&file)?;
    Ok(Exit::Done)
}

pub(crate) fn import(ctx: &Ctx<'_>, args: &ImportArgs, ui: &mut Ui<'_>) -> Outcome {
    let path = ctx.env.here.join(&args.file);
    let text = repertoire_text::fs::read_text(&path, MEMORY_FILE_BYTES_MAX)
        .map_err(|error| Failure::no(format!("{}: {error}", args.file)))?;
    let file = memory::parse(&text).map_err(|error| not_taken(&args.file, error))?;
    let trust = if args.trust { Trust::Records } else { Trust::Nothing };
    let done = runtime()?.block_on(async {
        let memory = Memory::new(ctx.journal(None).await?, ctx.scope(&args.scope).await?);
        memory.import(file, trust).await.map_err(|error| not_taken(&args.file, error))
    })?;
    if ui.json {
        ui.print_json(&done)?;
        return Ok(Exit::Done);
    }
    let fixes = if done.fixes == 1 { "1 fix".to_owned() } else { format!("{} fixes", done.fixes) };
    writeln!(ui.out, "Took {} and {fixes}.", ui::count(done.failures, "failure"))?;
    for line in &done.left_out {
        ui.note(&format!("left out: {line}"))?;
    }
    if !args.trust && done.fixes > 0 {
        ui.note("they are suggestions until they have worked here; `--trust` believes the file")?;
    }
    Ok(Exit::Done)
}

fn not_taken(file: &Utf8PathBuf, error: ExchangeError) -> Failure {
    match error {
        ExchangeError::Journal(error) => failed(error),
        error => Failure::no(format!("{file}: {error}")),
    }
}

pub(crate) fn teach(ctx: &Ctx<'_>, args: &TeachArgs, ui: &mut Ui<'_>) -> Outcome {
    let signature = args.signature.to_lowercase();
    let signature: Signature =
        signature.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let fix = fix_of(ctx, args)?;
    if let Some(why) = memory::refuse_to_remember(&fix) {
        return Err(Failure::no(format!("this is not remembered: {why}"))
            .hint("`--advice` can say in words what a person should do."));
    }
    let (name, json) = (signature.to_string(), ui.json);
    let taught = runtime()?.block_on(async {
        let scope = ctx.scope(&args.scope).await?;
        let journal = ctx.journal(None).await?;
        let known = journal.failure(&scope, &name).await.map_err(failed)?;
        let failure = known.unwrap_or_else(|| unseen(&scope, &name));
        let lesson = Lesson { failure, fixes: vec![KnownFix::new(fix.clone(), now_ms())] };
        journal.remember(&scope, vec![lesson]).await.map_err(failed)?;
        let failure = find(&journal, &scope, &name).await?;
        let memory = Memory::new(journal.clone(), &scope);
        let fixes = journal.fixes(&scope, &name).await.map_err(failed)?;
        let fixes = fixes.into_iter().filter(|known| known.id == fix.id()).map(|fix| {
            let (state, why) = memory.state_of(&fix, now_ms());
            FixJson { fix, state, why }
        });
        Ok::<_, Failure>(FailureJson { fixes: fixes.collect(), failure })
    })?;
    if json {
        ui.print_json(&taught)?;
        return Ok(Exit::Done);
    }
    let what = match &fix.remedy {
        Remedy::Patch(_) => "A patch",
        Remedy::Command(_) => "A command",
        Remedy::Advice(_) => "Advice",
    };
    writeln!(ui.out, "{what} for {name} is remembered in {}.", taught.failure.scope)?;
    if let Some(FixJson { state, why, .. }) = taught.fixes.first() {
        ui.note(&format!("It is {}: {why}.", state.as_str()))?;
    }
    Ok(Exit::Done)
}

/// Creates the record of a failure that is taught before it has occurred.
fn unseen(scope: &str, signature: &str) -> Known {
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

fn fix_of(ctx: &Ctx<'_>, args: &TeachArgs) -> Result<Fix, Failure> {
    let remedy = match (&args.patch, &args.advice) {
        (Some(path), _) => {
            let text =
                repertoire_text::fs::read_text(&ctx.env.here.join(path), FIX_BYTES_MAX as u64)
                    .map_err(|error| Failure::no(format!("{path}: {error}")))?;
            Remedy::Patch(text)
        }
        (None, Some(text)) => Remedy::Advice(text.clone()),
        (None, None) => Remedy::Command(args.command.clone()),
    };
    let preconditions = args.if_exists.iter().map(|path| format!("exists {path}")).collect();
    Ok(Fix { remedy, preconditions, origin: FixOrigin::Taught })
}

pub(crate) fn forget(ctx: &Ctx<'_>, args: &ForgetArgs, ui: &mut Ui<'_>) -> Outcome {
    let done = runtime()?.block_on(async {
        let scope = ctx.scope(&args.scope).await?;
        let Some(journal) = ctx.journal_if_there().await? else {
            return Ok(ForgottenJson { scope, failures: 0 });
        };
        let signature = match &args.signature {
            Some(text) => Some(find(&journal, &scope, text).await?.signature),
            None => None,
        };
        let failures = journal.unlearn(&scope, signature.as_deref()).await.map_err(failed)?;
        Ok::<_, Failure>(ForgottenJson { scope, failures })
    })?;
    if ui.json {
        ui.print_json(&done)?;
    } else {
        let count = ui::count(usize::try_from(done.failures).unwrap_or(0), "failure");
        writeln!(ui.out, "Forgot {count} of {}.", done.scope)?;
    }
    Ok(Exit::Done)
}
