//! `rep workflow`: shows, checks and runs workflows whose gates the engine enforces.

use std::sync::Arc;

use camino::Utf8Path;
use repertoire_flow::driver::find::{self, FindError};
use repertoire_flow::driver::operations::{
    WorkflowOperationError, WorkflowOperations, WorkplaceFactory,
};
use repertoire_flow::driver::{
    AnyWorkflowRun, ProgramError, StoredWorkflowRun, WorkflowRunError, WorkflowRunListEntry,
    WorkflowRunStore,
};
use repertoire_flow::engine::EngineRefusal;
use repertoire_flow::file::{self, LoadedWorkflow};
use repertoire_flow::render;
use repertoire_flow::step::{StepAddressing, StepView, ViewError, build_view};
use repertoire_journal::Target;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::discover::discover_catalog;
use repertoire_skill::name::nearest_name;
use repertoire_text::invisible;
use repertoire_text::terminal::{self, printable_line};
use tokio_util::sync::CancellationToken;

use self::interrupt::run_until_interrupted;
use super::not_found;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

mod ask;
mod check;
mod gate;
mod graph;
mod interrupt;
mod list;
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
pub(crate) struct WorkflowArgs {
    #[command(subcommand)]
    action: WorkflowAction,
}

#[derive(Debug, clap::Subcommand)]
enum WorkflowAction {
    /// List workflows
    #[command(visible_alias = "ls")]
    List(list::WorkflowListArgs),
    /// Show the steps of a workflow and their transitions
    Show(show::WorkflowShowArgs),
    /// Check workflows: every path, every gate, every name
    Check(check::WorkflowCheckArgs),
    /// Print the JSON Schema of workflow.yaml, for editors
    Schema,
    /// Draw a workflow as a graph
    Graph(graph::WorkflowGraphArgs),
    /// Start a run, and print its first step
    Start(start::WorkflowStartArgs),
    /// Print the current step of a run; with a report, advance to the next
    Step(Box<step::WorkflowStepArgs>),
    /// Record the findings of a review
    Record(record::WorkflowRecordArgs),
    /// Ask the user a question, on behalf of a sub-agent
    Ask(ask::WorkflowAskArgs),
    /// Show the verdict of a gate, and why
    Gate(gate::WorkflowGateArgs),
    /// Show the current step of a run, and its history
    Status(status::WorkflowStatusArgs),
    /// List runs, or remove some
    Runs(runs::WorkflowRunsArgs),
    /// Resume a run that waits for a person or was left
    Resume(resume::WorkflowResumeArgs),
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &WorkflowArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    match &args.action {
        WorkflowAction::List(args) => list::run(ctx, args, ui),
        WorkflowAction::Show(args) => show::run(ctx, args, ui),
        WorkflowAction::Check(args) => check::run(ctx, args, ui),
        WorkflowAction::Schema => {
            ui.print_json(&file::workflow_schema())?;
            Ok(CliExit::Done)
        }
        WorkflowAction::Graph(args) => graph::run(ctx, args, ui),
        WorkflowAction::Start(args) => start::run(ctx, args, ui),
        WorkflowAction::Step(args) => step::run(ctx, args, ui),
        WorkflowAction::Record(args) => record::run(ctx, args, ui),
        WorkflowAction::Ask(args) => ask::run(ctx, args, ui),
        WorkflowAction::Gate(args) => gate::run(ctx, args, ui),
        WorkflowAction::Status(args) => status::run(ctx, args, ui),
        WorkflowAction::Runs(args) => runs::run(ctx, args, ui),
        WorkflowAction::Resume(args) => resume::run(ctx, args, ui),
    }
}

/// Output format of a step
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StepOutputFormat {
    /// For agents: escaped tags
    Xml,
    /// For people and simple agents
    Text,
    /// For programs
    Json,
}

/// The output format
#[derive(Debug, clap::Args)]
pub(crate) struct StepFormatArg {
    /// Output format of the step [default: text on a terminal, xml elsewhere]
    #[arg(long, value_enum)]
    format: Option<StepOutputFormat>,
}

impl StepFormatArg {
    fn resolve(&self, ctx: &CliContext<'_>, ui: &TerminalUi<'_>) -> StepOutputFormat {
        match self.format {
            Some(format) => format,
            None if ui.json => StepOutputFormat::Json,
            None if ctx.env.is_terminal => StepOutputFormat::Text,
            None => StepOutputFormat::Xml,
        }
    }
}

impl CliContext<'_> {
    /// Opens the store of workflow runs.
    async fn workflow_runs(&self) -> Result<WorkflowRunStore, CliFailure> {
        let journal = self.journal(None).await?;
        journal.leave_open();
        Ok(WorkflowRunStore::new(journal, self.run_places().runs))
    }

    /// Runs an action on the store of workflow runs.
    fn use_workflow_runs<T>(
        &self,
        work: impl AsyncFnOnce(&WorkflowRunStore) -> Result<T, CliFailure>,
    ) -> Result<T, CliFailure> {
        build_runtime()?.block_on(async { work(&self.workflow_runs().await?).await })
    }

    /// Lists the runs of workflows. Without a journal there are none, and none is created.
    fn list_workflow_runs(&self) -> Result<Vec<WorkflowRunListEntry>, CliFailure> {
        match self.journal_target(None) {
            Target::File(path) if !path.exists() => Ok(Vec::new()),
            _ => self.use_workflow_runs(async |runs| {
                runs.list_runs().await.map_err(workflow_run_failure)
            }),
        }
    }
}

impl CliContext<'_> {
    /// Runs an action on workflows. Ctrl-C cancels it.
    fn run_workflow_action<T>(
        &self,
        ask: impl AsyncFnOnce(&WorkflowOperations, &CancellationToken) -> Result<T, CliFailure>,
    ) -> Result<T, CliFailure> {
        let request = self.config.discovery_request()?;
        let workplace = self.make_workplace()?;
        run_until_interrupted(async |cancel| {
            let operations = WorkflowOperations {
                runs: self.workflow_runs().await?,
                catalog: Arc::new(move || Arc::new(discover_catalog(&request))),
                folder: self.project_dir(None),
                workplace,
            };
            ask(&operations, cancel).await
        })
    }

    /// Returns a factory for the environment in which a workflow's programs run: the folder of the
    /// run, with the same sandbox as an agent's commands.
    pub(crate) fn make_workplace(&self) -> Result<WorkplaceFactory, CliFailure> {
        let spill = self.env.output_dir().join("workflows");
        let (sandbox, environment) = (self.configured_sandbox()?, self.env.tool_environment(false));
        let usage = self.usage_limits();
        Ok(Arc::new(move |folder| {
            let mut workplace = RunWorkplace::new(folder, spill.clone(), sandbox.clone());
            workplace.environment = environment.clone();
            workplace.limits.usage = usage;
            workplace
        }))
    }
}

/// Finds the workflow of a skill, or with `skill/name` one for its sub-agents.
fn find_workflow<'a>(
    catalog: &'a Catalog,
    name: &str,
) -> Result<(&'a CatalogEntry, LoadedWorkflow), CliFailure> {
    find::find_workflow(catalog, name).map_err(|error| no_workflow(catalog, error))
}

fn no_workflow(catalog: &Catalog, error: FindError) -> CliFailure {
    let message = error.to_string();
    match error {
        FindError::NoSkill(error) => not_found(catalog, &[error]),
        FindError::Script { skill } => CliFailure::negative_answer(message)
            .hint(format!("`rep workflow start {skill}` runs it as it is.")),
        FindError::NoWorkflow { .. } => CliFailure::negative_answer(message).hint(format!(
            "A workflow has a {} beside its SKILL.md; `rep workflow list` shows those that do.",
            file::FILE
        )),
        FindError::NoSuchWorkflow { skill, has, .. } => CliFailure::negative_answer(message)
            .hint(format!("Skill `{skill}` has {}.", has.join(", "))),
    }
}

/// Converts an error to a failure with hints for the run of that name.
fn workflow_failure(
    ctx: &CliContext<'_>,
    run: &str,
    error: WorkflowOperationError,
    ui: &mut TerminalUi<'_>,
) -> CliFailure {
    let message = error.to_string();
    match error {
        WorkflowOperationError::Find(error) => match ctx.load_catalog() {
            Ok(catalog) => no_workflow(catalog, error),
            Err(failure) => failure,
        },
        WorkflowOperationError::Broken(loaded) => match runnable_workflow(*loaded, ui) {
            Err(failure) => failure,
            Ok(_) => CliFailure::negative_answer(message),
        },
        WorkflowOperationError::BadId(id) => CliFailure::wrong_usage(format!("`--id {id}`: this cannot be a name"))
            .hint("Use letters, digits, `.`, `_` and `-`, and begin with a letter or digit."),
        WorkflowOperationError::ScriptTakesLess => CliFailure::wrong_usage(message)
            .hint("Use `--outcome`, and `--set NAME=VALUE` for the options of its next command."),
        WorkflowOperationError::NoChoice { word, script: true } => {
            CliFailure::wrong_usage(format!("`--choice {word}`: this is no choice for a script"))
                .hint("Use continue or abort.")
        }
        WorkflowOperationError::NoChoice { word, script: false } => {
            CliFailure::wrong_usage(format!("`--choice {word}`: this is no choice"))
                .hint("Use continue, must-only, skip, abort, or take:OUTCOME.")
        }
        WorkflowOperationError::NotTrustedNow(error) => {
            let ProgramError::NotTrusted { workflow } = &error else {
                return record::program_failure(error);
            };
            CliFailure::negative_answer(message).hint(format!(
                "Its files may have changed since the run was started. Look at them, then `rep trust {workflow}`, and go on."
            ))
        }
        WorkflowOperationError::NotAccepted { run, .. } => CliFailure::negative_answer(message).hint(format!(
            "Record what is wrong, and the gate fails: `rep workflow record {run} 'ID=FAIL: why'`."
        )),
        WorkflowOperationError::RedNow { .. } => CliFailure::negative_answer(message).hint(format!(
            "A red check is for nobody to accept: `rep workflow resume {run} --choice continue` allows one more iteration."
        )),
        WorkflowOperationError::Run(error) => workflow_run_failure_for(run, error),
        WorkflowOperationError::Script(error) => scripts::script_failure(error),
        WorkflowOperationError::Program(error) => record::program_failure(error),
    }
}

/// Prints the current step of a run.
fn print_run_state(
    standing: &AnyWorkflowRun,
    format: StepOutputFormat,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    print_view(&standing.render_step().map_err(cannot_show)?, format, ui)?;
    Ok(match standing {
        AnyWorkflowRun::Workflow(run) => exit_of(run),
        AnyWorkflowRun::Script(run) => scripts::exit_of(run),
    })
}

/// Returns the workflow in runnable form, or prints the errors that prevent it.
fn runnable_workflow(
    loaded: LoadedWorkflow,
    ui: &mut TerminalUi<'_>,
) -> Result<repertoire_flow::CheckedWorkflow, CliFailure> {
    match loaded.checked {
        Some(checked) => Ok(checked),
        None => {
            for found in loaded.diagnostics.iter().filter(|found| found.is_error()) {
                let shown = terminal::render_diagnostic(
                    found,
                    Some(loaded.source.text()),
                    ui.diagnostics_colour(),
                );
                writeln!(ui.err, "{shown}").map_err(CliFailure::from)?;
            }
            Err(CliFailure::negative_answer(format!("workflow `{}` cannot run", loaded.name))
                .hint("Mend what is shown above."))
        }
    }
}

fn print_step(
    run: &StoredWorkflowRun,
    format: StepOutputFormat,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let view = build_view(&run.workflow, &run.state, &StepAddressing::Run).map_err(cannot_show)?;
    print_view(&view, format, ui)
}

fn print_view(
    view: &StepView,
    format: StepOutputFormat,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    match format {
        StepOutputFormat::Xml => {
            ui.out.write_all(invisible::removed(&render::render_xml(view)).0.as_bytes())?
        }
        // Text goes to terminals, so escape control sequences that may come from untrusted files.
        StepOutputFormat::Text => {
            writeln!(
                ui.out,
                "{}",
                crate::ui::printable_lines(&render::render_text_within(view, ui.columns.min(100)))
            )?;
        }
        StepOutputFormat::Json => ui.print_json(&render::json(view))?,
    }
    Ok(())
}

fn cannot_show(error: ViewError) -> CliFailure {
    CliFailure::cannot_run(error.to_string())
        .hint("`rep workflow status RUN` shows what the run has. The workflow has to be mended, and a new run started.")
}

/// Converts an error of a run to a failure. A refusal by the engine is a negative answer; the rest
/// means that the command could not run.
fn workflow_run_failure(error: WorkflowRunError) -> CliFailure {
    workflow_run_failure_for("RUN", error)
}

/// Like [`run_failed`], with hints that name the run.
fn workflow_run_failure_for(run: &str, error: WorkflowRunError) -> CliFailure {
    let message = error.to_string();
    match error {
        WorkflowRunError::Refused(refusal) => refusal_failure(run, &refusal),
        WorkflowRunError::NotFound { .. } | WorkflowRunError::Ambiguous { .. } => {
            CliFailure::negative_answer(message).hint("`rep workflow runs` lists them.")
        }
        WorkflowRunError::Exists { .. }
        | WorkflowRunError::OfScript { .. }
        | WorkflowRunError::NotOfScript { .. } => CliFailure::negative_answer(message),
        WorkflowRunError::InUse { .. } => CliFailure::cannot_run(message).hint("Try again in a moment."),
        WorkflowRunError::Damaged { id, .. } => CliFailure::cannot_run(message).hint(format!(
            "Nothing was changed. Put the journal back from a backup, or start a new run; `rep runs rm --force {id}` removes this one."
        )),
        WorkflowRunError::Newer { .. } => CliFailure::cannot_run(message).hint("Use the later version."),
        WorkflowRunError::OtherVersion { .. } => CliFailure::cannot_run(message)
            .hint("Nothing was changed. Go on with the version that has started the run."),
        WorkflowRunError::Io { .. }
        | WorkflowRunError::TooLarge { .. }
        | WorkflowRunError::Journal(_) => CliFailure::cannot_run(message),
    }
}

fn refusal_failure(run: &str, refusal: &EngineRefusal) -> CliFailure {
    let failure = CliFailure::negative_answer(refusal.to_string());
    match refusal {
        EngineRefusal::MissingParameter { name, .. } => {
            CliFailure::wrong_usage(refusal.to_string()).hint(format!("Give `--param {name}=…`."))
        }
        EngineRefusal::WaitsForPerson { .. } => {
            failure.hint(format!("`rep workflow resume {run}` shows what can be chosen."))
        }
        EngineRefusal::GateOpen { .. } => failure.hint(format!(
            "Record a verdict with `rep workflow record {run} ID=PASS` or `'ID=FAIL: finding'`."
        )),
        EngineRefusal::CheckNeedsRun { name, .. } => {
            failure.hint(format!("`rep workflow record {run} --check {name}` runs it."))
        }
        EngineRefusal::OtherTurn { .. } => {
            failure.hint(format!("`rep workflow step {run}` prints where the run is."))
        }
        EngineRefusal::NoOutput { .. } => {
            failure.hint("Give `--output TEXT`, `--output @FILE`, or `--output -` to read it from input.")
        }
        EngineRefusal::Computed { .. } => failure.hint("Leave `--outcome` out: `--at TURN` alone goes on."),
        EngineRefusal::UnknownParameter { name, known } => {
            let failure = CliFailure::wrong_usage(refusal.to_string());
            match nearest_name(name, known.iter().map(String::as_str)) {
                Some(near) => failure.hint(format!("Did you mean `{near}`?")),
                None => failure,
            }
        }
        EngineRefusal::IncompleteItem { id } => failure.hint(format!(
            r#"For example '{{"id":"{id}","scope":"WHERE","check":"WHAT MUST HOLD","severity":"MUST"}}'."#
        )),
        EngineRefusal::NotAcceptable { .. } => failure
            .hint("A MUST that failed is not for `must-only`, and a red check for nobody: `continue` or `abort`."),
        _ => failure,
    }
}

/// Parses `name=value`, where the value may be `@file`, or `-` for standard input.
fn parse_pair(
    ctx: &CliContext<'_>,
    text: &str,
    flag: &str,
) -> Result<(String, String), CliFailure> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        CliFailure::wrong_usage(format!("`{flag} {}`: there is no `=`", printable_line(text)))
            .hint(format!("Write `{flag} NAME=VALUE`."))
    })?;
    Ok((name.to_owned(), read_value(ctx, value)?))
}

fn read_value(ctx: &CliContext<'_>, value: &str) -> Result<String, CliFailure> {
    use std::io::Read as _;
    let most = repertoire_flow::limits::REVIEW_BYTES_MAX as u64;
    if value == "-" {
        let mut text = String::new();
        std::io::stdin().lock().take(most + 1).read_to_string(&mut text).map_err(|error| {
            CliFailure::cannot_run(format!("the input cannot be read: {error}"))
        })?;
        if text.len() as u64 > most {
            return Err(CliFailure::wrong_usage(format!("the input is longer than {most} bytes")));
        }
        return Ok(text);
    }
    match value.strip_prefix('@') {
        Some(path) => {
            let path = ctx.typed_path(Utf8Path::new(path));
            repertoire_text::fs::read_text(&path, most).map_err(|error| {
                CliFailure::wrong_usage(format!("{path} cannot be read: {error}"))
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
fn exit_of(run: &StoredWorkflowRun) -> CliExit {
    use repertoire_flow::state::WorkflowRunStatus;
    match run.state.status {
        WorkflowRunStatus::Active | WorkflowRunStatus::Done => CliExit::Done,
        WorkflowRunStatus::Waiting(_) | WorkflowRunStatus::Aborted => CliExit::No,
    }
}
