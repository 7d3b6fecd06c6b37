//! `rep plan`: runs, checks and shows plans, which are checklists that agents work through.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_plan::document::{Plan, parse_bytes};
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_plan::places::{FOLDERS, NAMES, tasks_below};
use repertoire_text::fs::read_bytes_beneath;
use repertoire_text::terminal::printable;

use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

mod check;
mod next;
mod prompt;
pub(crate) mod run;
mod status;

/// Arguments of `rep plan`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Work through a plan until it is done
    Run(run::Args),
    /// Print the exact prompt of the next step
    Prompt(prompt::Args),
    /// Show which task comes next, and why
    Next(next::Args),
    /// Show the progress of a plan, and which tasks are blocked
    Status(status::Args),
    /// Check a plan: boxes, blockers, skills, specifications
    Check(check::Args),
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        Action::Run(args) => run::run(ctx, args, ui),
        Action::Prompt(args) => prompt::run(ctx, args, ui),
        Action::Next(args) => next::run(ctx, args, ui),
        Action::Status(args) => status::run(ctx, args, ui),
        Action::Check(args) => check::run(ctx, args, ui),
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
    pub(crate) fn file(&self, ctx: &Ctx<'_>) -> Result<Utf8PathBuf, Failure> {
        let Some(typed) = &self.path else { return default_file(ctx) };
        let path = ctx.typed_path(typed);
        match (path.exists(), path.is_dir()) {
            (true, true) => Err(Failure::usage(format!("`{typed}` is a folder"))
                .hint("Name the file of the plan in it.")),
            (true, false) => Ok(path),
            (false, _) => {
                Err(Failure::usage(format!("there is no `{}`", printable(typed.as_str())))
                    .hint("Name a Markdown file with tasks such as `- [ ] what to do`."))
            }
        }
    }

    /// Reads the plan. Its path is kept as typed, or as short as possible, for findings and JSON.
    pub(crate) fn read(&self, ctx: &Ctx<'_>) -> Result<Plan, Failure> {
        let path = self.file(ctx)?;
        read_file(&path)
    }
}

/// Returns the plan's path relative to the workspace.
pub(crate) fn find_plan(
    ctx: &Ctx<'_>,
    plan: &PlanArg,
    workspace: &Utf8Path,
) -> Result<Utf8PathBuf, Failure> {
    let file = plan.file(ctx)?;
    let mut below = ctx.below(workspace, &[file])?;
    below.pop().ok_or_else(|| Failure::usage("there is no plan here"))
}

pub(crate) fn read_file(path: &Utf8Path) -> Result<Plan, Failure> {
    let dir = path.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let name = Utf8Path::new(path.file_name().unwrap_or_default());
    let bytes = read_bytes_beneath(dir, name, PLAN_BYTES_MAX as u64)
        .map_err(|error| Failure::cannot_run(format!("{path} cannot be read: {error}")))?;
    Ok(parse_bytes(&bytes, path))
}

/// Returns the default plan of a project. Several candidates in one folder are an error.
fn default_file(ctx: &Ctx<'_>) -> Result<Utf8PathBuf, Failure> {
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
                    .map(|name| printable(&format!("{folder}/{name}/tasks.md")))
                    .collect();
                let more = if names.len() > shown.len() { ", …" } else { "" };
                return Err(Failure::usage(format!("there are {} plans in {folder}", names.len()))
                    .hint(format!("Name one: {}{more}", shown.join(", "))));
            }
        }
    }
    Err(Failure::usage("there is no plan here").hint(format!(
        "Looked for {}, specs/*/tasks.md and openspec/changes/*/tasks.md; name another file.",
        NAMES.join(", ")
    )))
}
