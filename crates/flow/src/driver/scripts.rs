//! Runs of script workflows: the script prints its steps, and the state of the run is kept here.
//!
//! A script runs in the sandbox, once per step. Its output is stored, so that a step that is
//! requested twice is shown twice and run once. Command lines in its output are replaced by ours.

use crate::external::{
    self, ProgressError, ScriptOutputError, ScriptProgress, ScriptStatus, StepScript,
    is_placeholder,
};
use crate::state::WorkflowRunId;
use crate::step::{ChoiceView, NextStep, NextStepOption, ShellCommand, StepView};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::ProcessResult;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::fs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

use super::programs::{ProgramError, run_program};
use super::store::{
    RunFileVersion, WorkflowRunError, WorkflowRunMetadata, WorkflowRunStore, acquire_lock,
    write_file,
};
use crate::limits::{RUN_FILE_BYTES_MAX, SCRIPT_TIMEOUT};

/// The file of a script run.
pub(super) const SCRIPT: &str = "script.json";
const VERSION: u32 = 1;

/// A run of a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptRun {
    version: u32,
    pub head: WorkflowRunMetadata,
    pub run: WorkflowRunId,
    /// The name of the skill.
    pub workflow: String,
    /// The folder of the skill.
    skill_dir: Utf8PathBuf,
    script: StepScript,
    pub progress: ScriptProgress,
    /// The parsed output of the script for the current step.
    shown: StepView,
    /// The last report, so that repeating it changes nothing.
    last: Option<TurnReport>,
    /// True if a person has ended the run.
    aborted: bool,
}

/// A report about a step of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptReport {
    pub outcome: Option<String>,
    /// Arguments to pass to the script, by the names of their options.
    pub set: BTreeMap<String, String>,
}

/// A report with its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TurnReport {
    turn: u32,
    report: ScriptReport,
}

/// The reason a script did not return its step. The run is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The stored run cannot be used.
    #[error(transparent)]
    Run(#[from] WorkflowRunError),
    /// The script was not run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The script failed.
    #[error("`{command}` has failed: {how}")]
    Failed {
        command: String,
        /// The exit status, and the tail of the output.
        how: String,
    },
    /// The output of the script is not a step.
    #[error(transparent)]
    Output(#[from] ScriptOutputError),
    /// The step cannot be left this way.
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// The report is about another turn.
    #[error("{}; the run is at turn {now}", if at > now { format!("there was no turn {at} yet") } else { format!("turn {at} is over, and was ended by another report") })]
    OtherTurn {
        /// The turn of the report.
        at: u32,
        /// The current turn of the run.
        now: u32,
    },
    /// Required arguments of the script are missing.
    #[error("the script needs {}", .0.join(", "))]
    Missing(
        /// The names of the missing arguments.
        Vec<String>,
    ),
    /// The script's next command has no such argument.
    #[error("the script's next command has no `--{name}`{}", if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) })]
    NoSuchArgument { name: String, known: Vec<String> },
    /// The run does not wait for a decision.
    #[error("the run waits for no decision")]
    NotWaiting,
}

/// The parameters of a script run to start.
pub struct NewScriptRun<'a> {
    /// A unique id.
    pub id: String,
    pub head: WorkflowRunMetadata,
    /// The name of the skill.
    pub workflow: String,
    pub skill_dir: &'a Utf8Path,
    pub script: StepScript,
    /// Arguments, by the names of their options.
    pub arguments: BTreeMap<String, String>,
}

/// The execution environment of a script.
#[derive(Clone, Copy)]
pub struct ScriptEnvironment<'a> {
    pub workplace: &'a RunWorkplace,
    pub cancel: &'a CancellationToken,
    /// The current time, in milliseconds since 1970.
    pub now_ms: u64,
}

impl WorkflowRunStore {
    /// Returns true if a run is of a script.
    pub fn is_script(&self, wanted: &str) -> Result<bool, WorkflowRunError> {
        Ok(self.run_folder(&self.resolve_id(wanted)?).join(SCRIPT).is_file())
    }

    /// Starts a script, and stores its first step.
    pub async fn start_script(
        &self,
        begin: NewScriptRun<'_>,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let workflow = begin.workflow;
        if !begin.head.trusted {
            return Err(ProgramError::NotTrusted { workflow }.into());
        }
        let script = with_arguments(begin.script, &begin.arguments)?;
        let progress = ScriptProgress::start_run(&script);
        let skill_dir = begin.skill_dir.to_owned();
        let shown = run_step(&script, &progress, &skill_dir, stage).await?;
        let progress = external::apply_shown_step(progress, &shown);
        let run = ScriptRun {
            version: VERSION,
            head: begin.head,
            run: WorkflowRunId::new(&begin.id),
            workflow,
            skill_dir,
            script,
            progress,
            shown,
            last: None,
            aborted: false,
        };
        self.create_run_folder(&begin.id, |made| write_run(made, &run))?;
        Ok(run)
    }

    /// Reads a script run.
    pub fn open_script(&self, wanted: &str) -> Result<ScriptRun, WorkflowRunError> {
        read_run(&self.run_folder(&self.resolve_id(wanted)?))
    }

    /// Leaves a step of a script, and shows the next one. The current script is run: the caller
    /// must have checked that it is still trusted.
    pub async fn step_script(
        &self,
        wanted: &str,
        at: Option<u32>,
        report: ScriptReport,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let id = self.resolve_id(wanted)?;
        let place = self.run_folder(&id);
        let _held = acquire_lock(&place, &id)?;
        let run = read_run(&place)?;
        let now = run.progress.turn;
        let reported = TurnReport { turn: at.unwrap_or(now), report };
        if run.last.as_ref() == Some(&reported) {
            return Ok(run);
        }
        if reported.turn != now {
            return Err(ScriptError::OtherTurn { at: reported.turn, now });
        }
        let outcome = reported.report.outcome.as_deref();
        let mut progress = external::advance_script(&run.progress, &run.shown, outcome)?;
        replace_arguments(&mut progress.call.arguments, &reported.report.set)?;
        show_and_store(&place, run, progress, reported, stage).await
    }

    /// Applies a person's decision about a run that waits: continue once more, or abort.
    pub async fn decide_script(
        &self,
        wanted: &str,
        go_on: bool,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let id = self.resolve_id(wanted)?;
        let place = self.run_folder(&id);
        let _held = acquire_lock(&place, &id)?;
        let run = read_run(&place)?;
        if !go_on {
            let head = WorkflowRunMetadata { updated_ms: stage.now_ms, ..run.head.clone() };
            let run = ScriptRun { aborted: true, head, ..run };
            write_run(&place, &run)?;
            return Ok(run);
        }
        let progress = external::resume_script(&run.progress).ok_or(ScriptError::NotWaiting)?;
        let report = TurnReport { turn: run.progress.turn, report: ScriptReport::default() };
        show_and_store(&place, run, progress, report, stage).await
    }
}

/// Runs the script for the next step, and stores the run.
async fn show_and_store(
    place: &Utf8Path,
    run: ScriptRun,
    progress: ScriptProgress,
    report: TurnReport,
    stage: ScriptEnvironment<'_>,
) -> Result<ScriptRun, ScriptError> {
    let (progress, shown) = match progress.standing {
        ScriptStatus::Active => {
            let shown = run_step(&run.script, &progress, &run.skill_dir, stage).await?;
            (external::apply_shown_step(progress, &shown), shown)
        }
        ScriptStatus::Done | ScriptStatus::Stopped { .. } | ScriptStatus::Unrouted { .. } => {
            (progress, run.shown.clone())
        }
    };
    let head = WorkflowRunMetadata { updated_ms: stage.now_ms, ..run.head.clone() };
    let run = ScriptRun { head, progress, shown, last: Some(report), ..run };
    write_run(place, &run)?;
    Ok(run)
}

impl ScriptRun {
    /// The folder of the skill that contains the script.
    pub fn skill_dir(&self) -> &Utf8Path {
        &self.skill_dir
    }

    /// Returns `active`, `waiting`, `done` or `aborted`.
    pub fn status(&self) -> &'static str {
        match (&self.progress.standing, self.aborted) {
            (_, true) => "aborted",
            (ScriptStatus::Active, _) => "active",
            (ScriptStatus::Done, _) => "done",
            (ScriptStatus::Stopped { .. } | ScriptStatus::Unrouted { .. }, _) => "waiting",
        }
    }

    /// Returns the current step, with commands that name the run.
    pub fn view(&self) -> StepView {
        let mut view = self.shown.clone();
        view.workflow.clone_from(&self.workflow);
        view.run = Some(self.run.clone());
        view.turn = self.progress.turn;
        view.iteration = self.progress.iteration();
        view.status = self.status().to_owned();
        view.next = match (&self.progress.standing, view.next, self.aborted) {
            (_, _, true) => {
                NextStep::Complete { message: "A person has ended the run.".to_owned() }
            }
            (ScriptStatus::Done, _, _) => {
                NextStep::Complete { message: "The workflow is complete.".to_owned() }
            }
            (ScriptStatus::Stopped { step, iterations, .. }, _, _) => {
                self.loop_question(*step, *iterations)
            }
            (ScriptStatus::Unrouted { about, wanted }, _, _) => {
                let meaning = match wanted {
                    Some(call) => {
                        format!("Go on with step {}, whatever the script says.", call.step)
                    }
                    None => "Take the workflow as complete.".to_owned(),
                };
                self.person_question(about.clone(), &meaning)
            }
            (ScriptStatus::Active, NextStep::Ways { mut ways, .. }, _) => {
                for way in &mut ways {
                    let mut more: Vec<String> = Vec::new();
                    if let Some(outcome) = &way.outcome {
                        more.extend(["--outcome".to_owned(), outcome.clone()]);
                    }
                    for name in open_options(&way.command.argv) {
                        more.extend(["--set".to_owned(), format!("{name}=VALUE")]);
                    }
                    way.command =
                        self.step_command(&more.iter().map(String::as_str).collect::<Vec<_>>());
                }
                NextStep::Ways { ways, on_error: None }
            }
            // The last step is left like every other one.
            (ScriptStatus::Active, NextStep::Complete { .. }, _) => {
                let (title, command) = ("the end".to_owned(), self.step_command(&[]));
                let way =
                    NextStepOption { outcome: None, when: String::new(), to: None, title, command };
                NextStep::Ways { ways: vec![way], on_error: None }
            }
            (ScriptStatus::Active, other, _) => other,
        };
        if view.status != "active" {
            view.actions.clear();
        }
        view
    }

    fn loop_question(&self, step: usize, iterations: u32) -> NextStep {
        let about = format!("step {step} has led back {iterations} times, as often as it may");
        self.person_question(about, "Allow one more iteration.")
    }

    /// Returns the choice for a person: continue with this step, or abort the run.
    fn person_question(&self, about: String, continue_means: &str) -> NextStep {
        NextStep::Person {
            about,
            choices: vec![
                self.choice_view("continue", continue_means),
                self.choice_view("abort", "End the run."),
            ],
            questions: Vec::new(),
            command: None,
        }
    }

    fn choice_view(&self, word: &str, meaning: &str) -> ChoiceView {
        let argv = ["rep", "workflow", "resume", self.run.as_str(), "--choice", word];
        ChoiceView {
            choice: word.to_owned(),
            meaning: meaning.to_owned(),
            command: ShellCommand::new(argv),
        }
    }

    /// Returns the command that reports the current step, with further arguments.
    fn step_command(&self, more: &[&str]) -> ShellCommand {
        let turn = self.progress.turn.to_string();
        let words = ["rep", "workflow", "step", self.run.as_str(), "--at", &turn];
        ShellCommand::new(words.into_iter().chain(more.iter().copied()))
    }
}

/// Returns the options of a command whose values are instructions for the agent: sentences and
/// placeholders.
fn open_options(argv: &[String]) -> Vec<&str> {
    let is_open = |value: &String| is_placeholder(value) || value.contains(' ');
    let pairs = argv.windows(2).filter(|pair| pair[0].starts_with("--") && is_open(&pair[1]));
    pairs.map(|pair| pair[0].trim_start_matches('-')).collect()
}

/// Replaces the values of arguments in the script's command by the reported ones.
fn replace_arguments(
    arguments: &mut [String],
    given: &BTreeMap<String, String>,
) -> Result<(), ScriptError> {
    for (name, value) in given {
        let option = format!("--{name}");
        let at = arguments.iter().position(|word| *word == option);
        let Some(old) = at.and_then(|at| arguments.get_mut(at + 1)) else {
            let known = arguments.iter().filter(|word| word.starts_with("--")).cloned().collect();
            return Err(ScriptError::NoSuchArgument { name: name.clone(), known });
        };
        old.clone_from(value);
    }
    Ok(())
}

/// Fills in the caller's arguments. An option that the skill's text does not name is appended.
fn with_arguments(
    mut script: StepScript,
    given: &BTreeMap<String, String>,
) -> Result<StepScript, ScriptError> {
    for (name, value) in given {
        let option = format!("--{name}");
        match script.arguments.iter().position(|word| *word == option) {
            Some(at) => match script.arguments.get_mut(at + 1) {
                Some(old) if !old.starts_with("--") => old.clone_from(value),
                _ => script.arguments.insert(at + 1, value.clone()),
            },
            None => script.arguments.extend([option, value.clone()]),
        }
    }
    let pairs = script.arguments.windows(2);
    let missing: Vec<String> = pairs
        .filter(|pair| is_placeholder(&pair[1]))
        .map(|pair| format!("`--param {}=…`", pair[0].trim_start_matches('-')))
        .collect();
    if !missing.is_empty() {
        return Err(ScriptError::Missing(missing));
    }
    Ok(script)
}

/// Runs the script for the current step, and parses its output.
async fn run_step(
    script: &StepScript,
    progress: &ScriptProgress,
    skill_dir: &Utf8Path,
    stage: ScriptEnvironment<'_>,
) -> Result<StepView, ScriptError> {
    let mut argv = external::build_command(script, &progress.call);
    let mut workplace = stage.workplace.clone();
    if argv.get(1).is_some_and(|word| word == "-m") {
        // Python finds modules relative to the working folder that the skill's text names. That
        // folder may be relative to the skill or to any folder above it.
        let named = script.working_dir.as_deref().unwrap_or("scripts");
        let bases = skill_dir.ancestors().chain([workplace.dir.as_path()]);
        let found = bases.map(|base| base.join(named)).find(|dir| dir.is_dir());
        workplace.dir = found.unwrap_or_else(|| skill_dir.to_owned());
    } else if let Some(file) = argv.get_mut(1) {
        *file = skill_dir.join(&*file).into_string();
    }
    // A script may use a library that several skills share, up to two folders above its own.
    for dir in skill_dir.ancestors().take(3) {
        workplace.add_readable(dir);
    }
    workplace.environment.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
    let line = ShellCommand::new(argv.iter().map(String::as_str)).line;
    let program = argv.remove(0);
    let ended = run_program(&program, argv, &workplace, SCRIPT_TIMEOUT, stage.cancel).await?;
    if ended.code != Some(0) || ended.stopped.is_some() {
        return Err(ScriptError::Failed {
            command: line,
            how: super::programs::describe_end(&ended),
        });
    }
    let view = external::parse_output(&stdout_text(&ended), script.numbering)?;
    Ok(view)
}

fn stdout_text(ended: &ProcessResult) -> String {
    String::from_utf8_lossy(&ended.stdout.bytes).into_owned()
}

fn write_run(place: &Utf8Path, run: &ScriptRun) -> Result<(), WorkflowRunError> {
    let path = place.join(SCRIPT);
    let bytes = serde_json::to_vec(run)
        .map_err(|error| WorkflowRunError::Io { path: path.clone(), source: error.into() })?;
    write_file(&path, &bytes)
}

pub(super) fn read_run(place: &Utf8Path) -> Result<ScriptRun, WorkflowRunError> {
    let path = place.join(SCRIPT);
    let damaged = |message: String| WorkflowRunError::Damaged { path: path.clone(), message };
    let text =
        fs::read_text(&path, RUN_FILE_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
    let RunFileVersion { version } =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if version > u64::from(VERSION) {
        return Err(WorkflowRunError::Newer { path, version });
    }
    serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))
}
