//! `rep workflow start`: a run, at its first step.

use std::collections::BTreeMap;

use repertoire_drive::workflow::{Begin, Head};

use repertoire_flow::engine::is_id;
use repertoire_flow::file;
use repertoire_skill::trust::Trust;

use super::{FormatFlag, find, now_ms, owner, pair, print_step, ready, run_failed, scripts};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// What to start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workflow, also `skill/name` for one that sub-agents go through
    name: String,
    /// The value of a parameter; `@FILE` reads a file, `-` the input (may be repeated)
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// A name for the run; by default the workflow's with a few letters
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The run whose sub-agent starts this one
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    #[command(flatten)]
    format: FormatFlag,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut parameters = BTreeMap::new();
    for text in &args.parameters {
        let (name, value) = pair(ctx, text, "--param")?;
        if parameters.insert(name.clone(), value).is_some() {
            return Err(Failure::usage(format!("parameter `{name}` is given twice")));
        }
    }
    let parent = match &args.parent {
        Some(wanted) => Some(ctx.runs().resolve(wanted).map_err(run_failed)?),
        None => None,
    };
    let catalog = ctx.catalog()?;
    let entry = owner(catalog, &args.name)?;
    let trusted = entry.trust == Trust::Trusted;
    let now_ms = now_ms();
    let head = Head {
        begun_ms: now_ms,
        updated_ms: now_ms,
        folder: ctx.project_dir(None),
        parent,
        trusted,
    };
    let id = args.id.clone().unwrap_or_else(|| new_id(&args.name));
    if !is_id(&id) {
        return Err(Failure::usage(format!("`--id {id}`: this cannot be a name"))
            .hint("Use letters, digits, `.`, `_` and `-`, and begin with a letter or digit."));
    }
    let format = args.format.of(ctx, ui);
    if !file::is_workflow(&entry.skill)
        && let Some(script) = scripts::of(entry)
    {
        let run = scripts::start(ctx, entry, script, (id, head), parameters)?;
        return scripts::print(&run, format, ui);
    }
    let (_, loaded) = find(catalog, &args.name)?;
    let workflow = ready(loaded, ui)?;
    let runs_commands = workflow.workflow().checks.values().any(|check| !check.command.is_empty());
    if !trusted && runs_commands {
        ui.note(&format!(
            "note: `{}` {}; commands that it declares are not run before `rep trust {}`",
            entry.id,
            match entry.trust {
                Trust::Changed => "has changed since it was trusted",
                Trust::Untrusted | Trust::Trusted => "is not trusted yet",
            },
            entry.id
        ))?;
    }
    let begin = Begin { id, head, parameters };
    let run = ctx.runs().start(&workflow, &begin).map_err(run_failed)?;
    print_step(&run, format, ui)?;
    Ok(Exit::Done)
}

/// A name that an agent can type and a person can tell apart: the workflow's, and eight random letters.
fn new_id(workflow: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let stem: String = workflow
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' })
        .take(40)
        .collect();
    let random = uuid::Uuid::now_v7().as_u128() as u64;
    let letters: String =
        (0..8).map(|at| char::from(LETTERS[(random >> (5 * at)) as usize & 31])).collect();
    format!("{}-{letters}", stem.trim_start_matches('-'))
}
