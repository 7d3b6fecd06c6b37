//! Runs of script workflows: the script prints its steps, and the state of the run is kept here.
//!
//! A script runs in the sandbox, once per step. Its output is stored, so that a step that is
//! requested twice is shown twice and run once. Command lines in its output are replaced by ours.

use crate::external::{
    self, ProgressError, ScriptOutputError, ScriptProgress, ScriptStatus, StepScript,
    is_placeholder,
};
use crate::state::{STATE_VERSION, WorkflowRunId};
use crate::step::{ChoiceView, NextStep, NextStepOption, ShellCommand, StepView};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::ProcessResult;
use repertoire_sandbox::workplace::RunWorkplace;
use serde::Serialize;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

use super::WorkflowRunMetadata;
use super::events::{
    ReachedState, ScriptReport, TurnReport, WorkflowRunEvent, WorkflowRunPhase, digest_state,
};
use super::programs::{ProgramError, run_program};
use super::store::{
    NewWorkflowRun, RecordedEvent, WorkflowRunError, WorkflowRunStore, run_metadata,
};
use crate::limits::SCRIPT_TIMEOUT;

/// A run of a script.
#[derive(Clone, Debug)]
pub struct ScriptRun {
    pub head: WorkflowRunMetadata,
    pub run: WorkflowRunId,
    /// The name of the skill.
    pub workflow: String,
    /// The folder of the skill.
    skill_dir: Utf8PathBuf,
    script: StepScript,
    state: ScriptRunState,
    /// The number of its last event.
    pub(super) seq: u64,
}

/// The part of a script run that its events change.
#[derive(Clone, Debug, Serialize)]
struct ScriptRunState {
    progress: ScriptProgress,
    /// The parsed output of the script for the current step.
    shown: StepView,
    /// The last report, so that repeating it changes nothing.
    last: Option<TurnReport>,
    /// True if a person has ended the run.
    aborted: bool,
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
    /// The run; its parameters are arguments of the script, by the names of their options.
    pub begin: NewWorkflowRun,
    /// The name of the skill.
    pub workflow: String,
    pub skill_dir: &'a Utf8Path,
    pub script: StepScript,
}

/// The execution environment of a script.
#[derive(Clone, Copy)]
pub struct ScriptEnvironment<'a> {
    pub workplace: &'a RunWorkplace,
    pub cancel: &'a CancellationToken,
}

/// A person's decision about the run of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptDecision {
    /// Continue a run that waits.
    Continue,
    /// End the run.
    Abort,
}

impl WorkflowRunStore {
    /// Starts a script, and stores its first step.
    ///
    /// # Errors
    ///
    /// [`ScriptError`]; no run is stored then.
    pub async fn start_script(
        &self,
        new: NewScriptRun<'_>,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let NewScriptRun { begin, workflow, skill_dir, script } = new;
        if !begin.request.trusted {
            return Err(ProgramError::NotTrusted { workflow }.into());
        }
        let script = with_arguments(script, &begin.request.parameters)?;
        // A script may have effects, so don't run it for a run that could not be stored.
        self.expect_free_id(&begin.id).await?;
        let first = ScriptProgress::start_run(&script);
        let shown = run_step(&script, &first, skill_dir, stage).await?;
        let mut run = ScriptRun::new(
            &begin.id,
            workflow,
            WorkflowRunMetadata::default(),
            skill_dir.to_owned(),
            script,
            shown,
        );
        let event = run.record_event(run.start_event())?;
        let row = self.create_run(&begin, &run.workflow, event).await?;
        run.head = run_metadata(&row, &begin.request);
        run.seq = row.seq;
        Ok(run)
    }

    /// Leaves the step of a script at turn `at`, and shows the next one. The current script is run: the
    /// caller must have checked that it is still trusted.
    ///
    /// # Errors
    ///
    /// [`ScriptError`]; the run is unchanged then.
    pub async fn step_script(
        &self,
        id: &WorkflowRunId,
        at: u32,
        report: ScriptReport,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        // A script must not run twice for one report, so the lock is held while it runs.
        let _held = self.lock_run(id.as_str()).await?;
        let run = self.open_script(id.as_str()).await?;
        let report = TurnReport { turn: at, report };
        if run.state.last.as_ref() == Some(&report) {
            return Ok(run);
        }
        run.require_turn(at)?;
        let progress = run.progress_after(&report)?;
        let shown = run.show_next_step(&progress, stage).await?;
        self.record_script(run, WorkflowRunEvent::ScriptStep { report, shown }).await
    }

    /// Applies a person's decision about a run at turn `at`.
    ///
    /// # Errors
    ///
    /// [`ScriptError`]; the run is unchanged then.
    pub async fn decide_script(
        &self,
        id: &WorkflowRunId,
        at: u32,
        decision: ScriptDecision,
        stage: ScriptEnvironment<'_>,
    ) -> Result<ScriptRun, ScriptError> {
        let _held = self.lock_run(id.as_str()).await?;
        let run = self.open_script(id.as_str()).await?;
        if run.has_decision(at, decision) {
            return Ok(run);
        }
        run.require_turn(at)?;
        match decision {
            ScriptDecision::Abort => {
                self.record_script(run, WorkflowRunEvent::ScriptAbort {}).await
            }
            ScriptDecision::Continue => {
                let progress = run.progress_resumed()?;
                let shown = run.show_next_step(&progress, stage).await?;
                self.record_script(run, WorkflowRunEvent::ScriptResume { shown }).await
            }
        }
    }

    /// Records an event of a run whose lock is held, and returns the run after it.
    async fn record_script(
        &self,
        run: ScriptRun,
        event: WorkflowRunEvent,
    ) -> Result<ScriptRun, ScriptError> {
        // The same function as in a replay, which has to lead to the same state.
        let mut after = run.apply_event(&event)?;
        let event = after.record_event(event)?;
        let row = self.append_event(&run.run, run.seq, &run.phase(), event).await?;
        // Only a process on another machine changes a run whose lock is held here.
        let in_use = || WorkflowRunError::InUse { id: run.run.to_string() };
        let row = row.ok_or_else(in_use)?;
        (after.seq, after.head.updated_ms) = (row.seq, row.updated_ms);
        Ok(after)
    }
}

impl ScriptRun {
    /// A run that has shown its first step.
    pub(super) fn new(
        id: &str,
        workflow: String,
        head: WorkflowRunMetadata,
        skill_dir: Utf8PathBuf,
        script: StepScript,
        shown: StepView,
    ) -> Self {
        let progress = external::apply_shown_step(ScriptProgress::start_run(&script), &shown);
        let state = ScriptRunState { progress, shown, last: None, aborted: false };
        let run = WorkflowRunId::new(id);
        ScriptRun { head, run, workflow, skill_dir, script, state, seq: 0 }
    }

    /// The event that starts a run as it is now.
    pub(super) fn start_event(&self) -> WorkflowRunEvent {
        WorkflowRunEvent::ScriptStart {
            version: STATE_VERSION,
            skill_dir: self.skill_dir.clone(),
            script: self.script.clone(),
            shown: self.state.shown.clone(),
        }
    }

    /// Returns the run after an event. A pure function: what the script has printed is part of the
    /// event.
    pub(super) fn apply_event(&self, event: &WorkflowRunEvent) -> Result<Self, ScriptError> {
        let state = match event {
            WorkflowRunEvent::ScriptStep { report, shown } => {
                let progress = self.progress_after(report)?;
                self.state_showing(progress, shown.as_ref(), report.clone())
            }
            WorkflowRunEvent::ScriptResume { shown } => {
                let progress = self.progress_resumed()?;
                self.state_showing(progress, shown.as_ref(), resume_report(self.turn()))
            }
            WorkflowRunEvent::ScriptAbort {} => {
                if self.is_over() {
                    return Err(ScriptError::NotWaiting);
                }
                ScriptRunState { aborted: true, ..self.state.clone() }
            }
            WorkflowRunEvent::Start { .. }
            | WorkflowRunEvent::Input { .. }
            | WorkflowRunEvent::ScriptStart { .. } => self.state.clone(),
        };
        Ok(ScriptRun { state, ..self.clone() })
    }

    fn state_showing(
        &self,
        progress: ScriptProgress,
        shown: Option<&StepView>,
        report: TurnReport,
    ) -> ScriptRunState {
        let (progress, shown) = match shown {
            Some(shown) => (external::apply_shown_step(progress, shown), shown),
            None => (progress, &self.state.shown),
        };
        ScriptRunState { progress, shown: shown.clone(), last: Some(report), aborted: false }
    }

    /// Returns the progress after a report on the current step.
    fn progress_after(&self, report: &TurnReport) -> Result<ScriptProgress, ScriptError> {
        if self.state.aborted {
            return Err(ProgressError::NotActive.into());
        }
        let outcome = report.report.outcome.as_deref();
        let mut progress =
            external::advance_script(&self.state.progress, &self.state.shown, outcome)?;
        replace_arguments(&mut progress.call.arguments, &report.report.set)?;
        Ok(progress)
    }

    /// Fails if a report or decision about turn `at` is about another turn than the current one.
    fn require_turn(&self, at: u32) -> Result<(), ScriptError> {
        let now = self.turn();
        if at == now { Ok(()) } else { Err(ScriptError::OtherTurn { at, now }) }
    }

    /// Returns true if the decision was applied already, so that a repetition changes nothing.
    fn has_decision(&self, at: u32, decision: ScriptDecision) -> bool {
        match decision {
            ScriptDecision::Abort => self.state.aborted && at == self.turn(),
            // A step that was left without an outcome is recorded in the same way, but may wait now.
            ScriptDecision::Continue => {
                let is_waiting = matches!(self.phase(), WorkflowRunPhase::Waiting { .. });
                self.state.last == Some(resume_report(at)) && !(is_waiting && at == self.turn())
            }
        }
    }

    /// Returns the progress after a person has let the run continue.
    fn progress_resumed(&self) -> Result<ScriptProgress, ScriptError> {
        let resumed = external::resume_script(&self.state.progress).filter(|_| !self.is_over());
        resumed.ok_or(ScriptError::NotWaiting)
    }

    /// Runs the script for the next step; `None` if the run has none.
    async fn show_next_step(
        &self,
        progress: &ScriptProgress,
        stage: ScriptEnvironment<'_>,
    ) -> Result<Option<StepView>, ScriptError> {
        match progress.standing {
            ScriptStatus::Active => {
                run_step(&self.script, progress, &self.skill_dir, stage).await.map(Some)
            }
            ScriptStatus::Done | ScriptStatus::Stopped { .. } | ScriptStatus::Unrouted { .. } => {
                Ok(None)
            }
        }
    }

    /// The digest of the state.
    fn digest(&self) -> Result<String, WorkflowRunError> {
        digest_state(&self.state)
    }

    /// Returns the event that has led to this run, as it is recorded.
    pub(super) fn record_event(
        &self,
        event: WorkflowRunEvent,
    ) -> Result<RecordedEvent, WorkflowRunError> {
        let payload = event.into_payload(&self.reached_state()?);
        Ok(RecordedEvent { payload, phase: self.phase() })
    }

    /// Describes the state, as it is recorded with an event.
    pub(super) fn reached_state(&self) -> Result<ReachedState, WorkflowRunError> {
        let step = self.state.shown.step.to_string();
        Ok(ReachedState::new(self.digest()?, step, self.turn()))
    }

    fn phase(&self) -> WorkflowRunPhase {
        match (&self.state.progress.standing, self.state.aborted) {
            (_, true) => WorkflowRunPhase::Aborted,
            (ScriptStatus::Active, _) => WorkflowRunPhase::Active,
            (ScriptStatus::Done, _) => WorkflowRunPhase::Done,
            (ScriptStatus::Stopped { step, iterations, .. }, _) => {
                waiting_phase(loop_limit_reason(*step, *iterations))
            }
            (ScriptStatus::Unrouted { about, .. }, _) => waiting_phase(about.clone()),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.phase(), WorkflowRunPhase::Done | WorkflowRunPhase::Aborted)
    }

    /// The current turn.
    pub(super) fn turn(&self) -> u32 {
        self.state.progress.turn
    }

    /// The folder of the skill that contains the script.
    pub fn skill_dir(&self) -> &Utf8Path {
        &self.skill_dir
    }

    /// Returns `active`, `waiting`, `done` or `aborted`.
    pub fn status(&self) -> &'static str {
        match self.phase() {
            WorkflowRunPhase::Aborted => "aborted",
            WorkflowRunPhase::Active => "active",
            WorkflowRunPhase::Done => "done",
            WorkflowRunPhase::Waiting { .. } => "waiting",
        }
    }

    /// Returns the current step, with commands that name the run.
    pub fn view(&self) -> StepView {
        let mut view = self.state.shown.clone();
        view.workflow.clone_from(&self.workflow);
        view.run = Some(self.run.clone());
        view.turn = self.state.progress.turn;
        view.iteration = self.state.progress.iteration();
        view.status = self.status().to_owned();
        view.next = match (&self.state.progress.standing, view.next, self.state.aborted) {
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
        self.person_question(loop_limit_reason(step, iterations), "Allow one more iteration.")
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
        let turn = self.state.progress.turn.to_string();
        let words = ["rep", "workflow", "step", self.run.as_str(), "--at", &turn];
        ShellCommand::new(words.into_iter().chain(more.iter().copied()))
    }
}

/// Returns the report that a decision to continue at this turn is recorded as.
fn resume_report(turn: u32) -> TurnReport {
    TurnReport { turn, report: ScriptReport::default() }
}

fn waiting_phase(reason: String) -> WorkflowRunPhase {
    let choices = vec!["continue".to_owned(), "abort".to_owned()];
    WorkflowRunPhase::Waiting { reason, choices }
}

fn loop_limit_reason(step: usize, iterations: u32) -> String {
    format!("step {step} has led back {iterations} times, as often as it may")
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
