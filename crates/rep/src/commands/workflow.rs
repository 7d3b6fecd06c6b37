//! `rep workflow`: shows, checks and runs workflows whose gates the engine enforces.

use std::sync::Arc;

use camino::Utf8Path;
use repertoire_flow::driver::desk::{Desk, DeskError, MakeWorkplace, Standing};
use repertoire_flow::driver::find::{self, FindError};
use repertoire_flow::driver::{ProgramError, Run, RunError, Runs};
use repertoire_flow::engine::Refusal;
use repertoire_flow::file::{self, Loaded};
use repertoire_flow::render;
use repertoire_flow::step::{Addressing, StepView, ViewError, view};
use repertoire_sandbox::workplace::Workplace;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::discover::discover;
use repertoire_skill::name::nearest;
use repertoire_text::invisible;
use repertoire_text::terminal::{self, printable};
use tokio_util::sync::CancellationToken;

use self::programs::attended;
use super::not_found;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

mod ask;
mod check;
mod gate;
mod graph;
mod list;
mod programs;
mod record;
mod resume;
mod runs;
mod scripts;
mod show;
mod start;
mod status;
mod step;

/// Arguments of `rep workflow`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List workflows
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show the steps of a workflow and their transitions
    Show(show::Args),
    /// Check workflows: every path, every gate, every name
    Check(check::Args),
    /// Print the JSON Schema of workflow.yaml, for editors
    Schema,
    /// Draw a workflow as a graph
    Graph(graph::Args),
    /// Start a run, and print its first step
    Start(start::Args),
    /// Print the current step of a run; with a report, advance to the next
    Step(Box<step::Args>),
    /// Record the findings of a review
    Record(record::Args),
    /// Ask the user a question, on behalf of a sub-agent
    Ask(ask::Args),
    /// Show the verdict of a gate, and why
    Gate(gate::Args),
    /// Show the current step of a run, and its history
    Status(status::Args),
    /// List runs, or remove some
    Runs(runs::Args),
    /// Resume a run that waits for a person or was left
    Resume(resume::Args),
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        Action::List(args) => list::run(ctx, args, ui),
        Action::Show(args) => show::run(ctx, args, ui),
        Action::Check(args) => check::run(ctx, args, ui),
        Action::Schema => {
            ui.print_json(&file::schema())?;
            Ok(Exit::Done)
        }
        Action::Graph(args) => graph::run(ctx, args, ui),
        Action::Start(args) => start::run(ctx, args, ui),
        Action::Step(args) => step::run(ctx, args, ui),
        Action::Record(args) => record::run(ctx, args, ui),
        Action::Ask(args) => ask::run(ctx, args, ui),
        Action::Gate(args) => gate::run(ctx, args, ui),
        Action::Status(args) => status::run(ctx, args, ui),
        Action::Runs(args) => runs::run(ctx, args, ui),
        Action::Resume(args) => resume::run(ctx, args, ui),
    }
}

/// Output format of a step
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For agents: escaped tags
    Xml,
    /// For people and simple agents
    Text,
    /// For programs
    Json,
}

/// The output format
#[derive(Debug, clap::Args)]
pub(crate) struct FormatFlag {
    /// Output format of the step [default: text on a terminal, xml elsewhere]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl FormatFlag {
    fn of(&self, ctx: &Ctx<'_>, ui: &Ui<'_>) -> Format {
        match self.format {
            Some(format) => format,
            None if ui.json => Format::Json,
            None if ctx.env.is_terminal => Format::Text,
            None => Format::Xml,
        }
    }
}

impl Ctx<'_> {
    /// Returns the store of workflow runs.
    fn runs(&self) -> Runs {
        Runs::new(self.env.data_dir().join("workflows"))
    }
}

impl Ctx<'_> {
    /// Runs an action on workflows. Ctrl-C cancels it.
    fn at_desk<T>(
        &self,
        ask: impl AsyncFnOnce(&Desk, &CancellationToken) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let request = self.config.request()?;
        let desk = Desk {
            runs: self.runs(),
            catalog: Arc::new(move || Arc::new(discover(&request))),
            folder: self.project_dir(None),
            workplace: self.make_workplace()?,
            now_ms: Arc::new(now_ms),
        };
        attended(async |cancel| ask(&desk, cancel).await)
    }

    /// Returns a factory for the environment in which a workflow's programs run: the folder of the
    /// run, with the same sandbox as an agent's commands.
    pub(crate) fn make_workplace(&self) -> Result<MakeWorkplace, Failure> {
        let spill = self.env.output_dir().join("workflows");
        let (sandbox, environment) = (self.sandbox()?, self.env.tool_environment(false));
        let usage = self.usage_limits();
        Ok(Arc::new(move |folder| {
            let mut workplace = Workplace::new(folder, spill.clone(), sandbox.clone());
            workplace.environment = environment.clone();
            workplace.limits.usage = usage;
            workplace
        }))
    }
}

/// Finds the workflow of a skill, or with `skill/name` one for its sub-agents.
fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<(&'a Entry, Loaded), Failure> {
    find::find(catalog, name).map_err(|error| no_workflow(catalog, error))
}

fn no_workflow(catalog: &Catalog, error: FindError) -> Failure {
    let message = error.to_string();
    match error {
        FindError::NoSkill(error) => not_found(catalog, &[error]),
        FindError::Script { skill } => {
            Failure::no(message).hint(format!("`rep workflow start {skill}` runs it as it is."))
        }
        FindError::NoWorkflow { .. } => Failure::no(message).hint(format!(
            "A workflow has a {} beside its SKILL.md; `rep workflow list` shows those that do.",
            file::FILE
        )),
        FindError::NoSuchWorkflow { skill, has, .. } => {
            Failure::no(message).hint(format!("Skill `{skill}` has {}.", has.join(", ")))
        }
    }
}

/// Converts an error to a failure with hints for the run of that name.
fn desk_failed(ctx: &Ctx<'_>, run: &str, error: DeskError, ui: &mut Ui<'_>) -> Failure {
    let message = error.to_string();
    match error {
        DeskError::Find(error) => match ctx.catalog() {
            Ok(catalog) => no_workflow(catalog, error),
            Err(failure) => failure,
        },
        DeskError::Broken(loaded) => match ready(*loaded, ui) {
            Err(failure) => failure,
            Ok(_) => Failure::no(message),
        },
        DeskError::BadId(id) => Failure::usage(format!("`--id {id}`: this cannot be a name"))
            .hint("Use letters, digits, `.`, `_` and `-`, and begin with a letter or digit."),
        DeskError::ScriptTakesLess => Failure::usage(message)
            .hint("Use `--outcome`, and `--set NAME=VALUE` for the options of its next command."),
        DeskError::NoChoice { word, script: true } => {
            Failure::usage(format!("`--choice {word}`: this is no choice for a script"))
                .hint("Use continue or abort.")
        }
        DeskError::NoChoice { word, script: false } => {
            Failure::usage(format!("`--choice {word}`: this is no choice"))
                .hint("Use continue, must-only, skip, abort, or take:OUTCOME.")
        }
        DeskError::NotTrustedNow(error) => {
            let ProgramError::NotTrusted { workflow } = &error else {
                return record::not_run(error);
            };
            Failure::no(message).hint(format!(
                "Its files may have changed since the run was started. Look at them, then `rep trust {workflow}`, and go on."
            ))
        }
        DeskError::NotAccepted { run, .. } => Failure::no(message).hint(format!(
            "Record what is wrong, and the gate fails: `rep workflow record {run} 'ID=FAIL: why'`."
        )),
        DeskError::Run(error) => failed_for(run, error),
        DeskError::Script(error) => scripts::failed(error),
        DeskError::Program(error) => record::not_run(error),
    }
}

/// Prints the current step of a run.
fn print_standing(standing: &Standing, format: Format, ui: &mut Ui<'_>) -> Outcome {
    print_view(&standing.view().map_err(cannot_show)?, format, ui)?;
    Ok(match standing {
        Standing::Workflow(run) => exit_of(run),
        Standing::Script(run) => scripts::exit_of(run),
    })
}

/// Returns the workflow in runnable form, or prints the errors that prevent it.
fn ready(loaded: Loaded, ui: &mut Ui<'_>) -> Result<repertoire_flow::Checked, Failure> {
    match loaded.checked {
        Some(checked) => Ok(checked),
        None => {
            for found in loaded.diagnostics.iter().filter(|found| found.is_error()) {
                let shown =
                    terminal::render(found, Some(loaded.source.text()), ui.diagnostics_colour());
                writeln!(ui.err, "{shown}").map_err(Failure::from)?;
            }
            Err(Failure::no(format!("workflow `{}` cannot run", loaded.name))
                .hint("Mend what is shown above."))
        }
    }
}

fn print_step(run: &Run, format: Format, ui: &mut Ui<'_>) -> Result<(), Failure> {
    let view = view(&run.workflow, &run.state, &Addressing::Run).map_err(cannot_show)?;
    print_view(&view, format, ui)
}

fn print_view(view: &StepView, format: Format, ui: &mut Ui<'_>) -> Result<(), Failure> {
    match format {
        Format::Xml => ui.out.write_all(invisible::removed(&render::xml(view)).0.as_bytes())?,
        // Text goes to terminals, so escape control sequences that may come from untrusted files.
        Format::Text => {
            writeln!(
                ui.out,
                "{}",
                crate::ui::printable_lines(&render::text_within(view, ui.columns.min(100)))
            )?;
        }
        Format::Json => ui.print_json(&render::json(view))?,
    }
    Ok(())
}

fn cannot_show(error: ViewError) -> Failure {
    Failure::cannot_run(error.to_string())
        .hint("`rep workflow status RUN` shows what the run has. The workflow has to be mended, and a new run started.")
}

/// Converts an error of a run to a failure. A refusal by the engine is a negative answer; the rest
/// means that the command could not run.
fn run_failed(error: RunError) -> Failure {
    failed_for("RUN", error)
}

/// Like [`run_failed`], with hints that name the run.
fn failed_for(run: &str, error: RunError) -> Failure {
    let message = error.to_string();
    match error {
        RunError::Refused(refusal) => refused(run, &refusal),
        RunError::NotFound { .. } | RunError::Ambiguous { .. } => {
            Failure::no(message).hint("`rep workflow runs` lists them.")
        }
        RunError::Exists { .. } => Failure::no(message),
        RunError::InUse { .. } => Failure::cannot_run(message).hint("Try again in a moment."),
        RunError::Damaged { .. } => Failure::cannot_run(message).hint(
            "Nothing was changed. Put the file back from a backup, or start a new run; `rep workflow runs rm` removes this one.",
        ),
        RunError::Newer { .. } => Failure::cannot_run(message).hint("Use the later version."),
        RunError::OtherVersion { .. } => Failure::cannot_run(message)
            .hint("Nothing was changed. Go on with the version that has started the run."),
        RunError::Io { .. } | RunError::TooLarge { .. } => Failure::cannot_run(message),
    }
}

fn refused(run: &str, refusal: &Refusal) -> Failure {
    let failure = Failure::no(refusal.to_string());
    match refusal {
        Refusal::MissingParameter { name, .. } => failure.hint(format!("Give `--param {name}=…`.")),
        Refusal::WaitsForPerson { .. } => {
            failure.hint(format!("`rep workflow resume {run}` shows what can be chosen."))
        }
        Refusal::GateOpen { .. } => failure.hint(format!(
            "Record a verdict with `rep workflow record {run} ID=PASS` or `'ID=FAIL: finding'`."
        )),
        Refusal::CheckNeedsRun { name, .. } => {
            failure.hint(format!("`rep workflow record {run} --check {name}` runs it."))
        }
        Refusal::OtherTurn { .. } => {
            failure.hint(format!("`rep workflow step {run}` prints where the run is."))
        }
        Refusal::NoOutput { .. } => {
            failure.hint("Give `--output TEXT`, `--output @FILE`, or `--output -` to read it from input.")
        }
        Refusal::Computed { .. } => failure.hint("Leave `--outcome` out: `--at TURN` alone goes on."),
        Refusal::UnknownParameter { name, known } => {
            match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => failure.hint(format!("Did you mean `{near}`?")),
                None => failure,
            }
        }
        Refusal::IncompleteItem { id } => failure.hint(format!(
            r#"For example '{{"id":"{id}","scope":"WHERE","check":"WHAT MUST HOLD","severity":"MUST"}}'."#
        )),
        Refusal::NotAcceptable { .. } => failure
            .hint("A MUST that failed is not for `must-only`, and a red check for nobody: `continue` or `abort`."),
        _ => failure,
    }
}

/// Parses `name=value`, where the value may be `@file`, or `-` for standard input.
fn pair(ctx: &Ctx<'_>, text: &str, flag: &str) -> Result<(String, String), Failure> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{flag} {}`: there is no `=`", printable(text)))
            .hint(format!("Write `{flag} NAME=VALUE`."))
    })?;
    Ok((name.to_owned(), value_of(ctx, value)?))
}

fn value_of(ctx: &Ctx<'_>, value: &str) -> Result<String, Failure> {
    use std::io::Read as _;
    let most = repertoire_flow::limits::REVIEW_BYTES_MAX as u64;
    if value == "-" {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .take(most + 1)
            .read_to_string(&mut text)
            .map_err(|error| Failure::cannot_run(format!("the input cannot be read: {error}")))?;
        return Ok(text);
    }
    match value.strip_prefix('@') {
        Some(path) => {
            let path = ctx.typed_path(Utf8Path::new(path));
            repertoire_text::fs::read_text(&path, most).map_err(|error| {
                Failure::usage(format!("{path} cannot be read: {error}"))
                    .hint("A value that begins with `@` names a file; give a literal `@` by `-`, from the input.")
            })
        }
        None => Ok(value.to_owned()),
    }
}

fn now_ms() -> u64 {
    use repertoire_text::clock::{Clock as _, SystemClock};
    SystemClock.now_ms()
}

/// Returns the exit code after printing a step. A run that waits for a person is a negative answer.
fn exit_of(run: &Run) -> Exit {
    use repertoire_flow::state::Status;
    match run.state.status {
        Status::Active | Status::Done => Exit::Done,
        Status::Waiting(_) | Status::Aborted => Exit::No,
    }
}
