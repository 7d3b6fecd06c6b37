//! `rep plan`: runs, checks and shows plans, which are checklists that agents work through.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_plan::document::{PlanDocument, parse_plan_bytes};
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_plan::locations::{FOLDERS, NAMES, tasks_below};
use repertoire_text::fs::read_bytes_beneath;
use repertoire_text::terminal::printable_line;

use crate::cli::CliContext;
use crate::failure::{CliFailure, CliResult};
use crate::ui::TerminalUi;

mod check;
mod next;
mod prompt;
pub(crate) mod run;
mod status;

/// Arguments of `rep plan`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    action: PlanAction,
}

#[derive(Debug, clap::Subcommand)]
enum PlanAction {
    /// Work through a plan until it is done
    Run(run::PlanRunArgs),
    /// Print the exact prompt of the next step
    Prompt(prompt::PlanPromptArgs),
    /// Show which task comes next, and why
    Next(next::PlanNextArgs),
    /// Show the progress of a plan, and which tasks are blocked
    Status(status::PlanStatusArgs),
    /// Check a plan: boxes, blockers, skills, specifications
    Check(check::PlanCheckArgs),
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &PlanArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    match &args.action {
        PlanAction::Run(args) => run::run(ctx, args, ui),
        PlanAction::Prompt(args) => prompt::run(ctx, args, ui),
        PlanAction::Next(args) => next::run(ctx, args, ui),
        PlanAction::Status(args) => status::run(ctx, args, ui),
        PlanAction::Check(args) => check::run(ctx, args, ui),
    }
}

/// The plan
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArg {
    /// File of the plan [default: the first of PLAN.md, plan.md, TASKS.md, tasks.md, or the only
    /// tasks.md of a spec or change]
    #[arg(value_name = "PLAN")]
    path: Option<Utf8PathBuf>,
}

impl PlanArg {
    /// Returns the path of the named plan, or of the project's default plan.
    pub(crate) fn plan_path(&self, ctx: &CliContext<'_>) -> Result<Utf8PathBuf, CliFailure> {
        let Some(typed) = &self.path else { return find_default_plan(ctx) };
        let path = ctx.typed_path(typed);
        match (path.exists(), path.is_dir()) {
            (true, true) => Err(CliFailure::wrong_usage(format!("`{typed}` is a folder"))
                .hint("Name the file of the plan in it.")),
            (true, false) => Ok(path),
            (false, _) => Err(CliFailure::wrong_usage(format!(
                "there is no `{}`",
                printable_line(typed.as_str())
            ))
            .hint("Name a Markdown file with tasks such as `- [ ] what to do`.")),
        }
    }

    /// Reads the plan. Its path is kept as typed, or as short as possible, for findings and JSON.
    pub(crate) fn read_plan(&self, ctx: &CliContext<'_>) -> Result<PlanDocument, CliFailure> {
        let path = self.plan_path(ctx)?;
        read_plan_file(&path)
    }
}

/// Returns the plan's path relative to the workspace.
pub(crate) fn find_plan(
    ctx: &CliContext<'_>,
    plan: &PlanArg,
    workspace: &Utf8Path,
) -> Result<Utf8PathBuf, CliFailure> {
    let file = plan.plan_path(ctx)?;
    let mut below = ctx.make_relative_to(workspace, &[file])?;
    below.pop().ok_or_else(|| CliFailure::wrong_usage("there is no plan here"))
}

pub(crate) fn read_plan_file(path: &Utf8Path) -> Result<PlanDocument, CliFailure> {
    let dir = path.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let name = Utf8Path::new(path.file_name().unwrap_or_default());
    let bytes = read_bytes_beneath(dir, name, PLAN_BYTES_MAX as u64)
        .map_err(|error| CliFailure::cannot_run(format!("{path} cannot be read: {error}")))?;
    Ok(parse_plan_bytes(&bytes, path))
}

/// Returns the default plan of a project. Several candidates in one folder are an error.
fn find_default_plan(ctx: &CliContext<'_>) -> Result<Utf8PathBuf, CliFailure> {
    let at = |relative: &str| ctx.typed_path(Utf8Path::new(relative));
    if let Some(path) = NAMES.iter().map(|name| at(name)).find(|path| path.is_file()) {
        return Ok(path);
    }
    for folder in FOLDERS {
        let found = tasks_below(&ctx.env.here.join(folder));
        match found.as_slice() {
            [] => {}
            [name] => return Ok(at(&format!("{folder}/{name}/tasks.md"))),
            names => {
                let shown: Vec<String> = names
                    .iter()
                    .take(5)
                    .map(|name| printable_line(&format!("{folder}/{name}/tasks.md")))
                    .collect();
                let more = if names.len() > shown.len() { ", …" } else { "" };
                return Err(CliFailure::wrong_usage(format!(
                    "there are {} plans in {folder}",
                    names.len()
                ))
                .hint(format!("Name one: {}{more}", shown.join(", "))));
            }
        }
    }
    Err(CliFailure::wrong_usage("there is no plan here").hint(format!(
        "Looked for {}, specs/*/tasks.md and openspec/changes/*/tasks.md; name another file.",
        NAMES.join(", ")
    )))
}
