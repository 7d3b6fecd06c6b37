//! The operations on workflow runs, shared by the command line, MCP and the web page.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::{
    self, CheckRecord, EngineAction, EngineInput, GateVerdict, ItemRecord, PersonChoice,
    StepReport, compute_verdict, gate_acceptance, is_id, is_proven, outdated_checks,
};
use crate::file::{self, LoadedWorkflow};
use crate::state::{
    CheckProof, GateCheckResult, GateReview, ItemStatus, WaitReason, WorkFingerprint,
    WorkflowRunStatus,
};
use crate::workflow::{Gate, StepId};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_skill::catalog::{Catalog, SkillNotFound};
use repertoire_skill::trust::TrustLevel;
use tokio_util::sync::CancellationToken;

use super::find::{self, FindError, find_workflow};
use super::work_state::fingerprint_work;
use super::{
    AnyWorkflowRun, NewScriptRun, NewWorkflowRun, ProgramError, ScriptDecision, ScriptEnvironment,
    ScriptError, ScriptReport, ScriptRun, StoredWorkflowRun, WorkflowRunError, WorkflowRunRequest,
    WorkflowRunStore, check_command, is_built_in_check, run_check,
};
use crate::limits::CHECK_TIMEOUT;

/// Creates the environment in which programs of a run are executed, for the folder of the run.
pub type WorkplaceFactory = Arc<dyn Fn(&Utf8Path) -> RunWorkplace + Send + Sync>;

/// The dependencies of the workflow operations.
#[derive(Clone)]
pub struct WorkflowOperations {
    pub runs: WorkflowRunStore,
    /// Returns the skills. Most operations do not need them, so they are loaded on demand.
    pub catalog: Arc<dyn Fn() -> Arc<Catalog> + Send + Sync>,
    /// The folder that new runs belong to.
    pub folder: Utf8PathBuf,
    pub workplace: WorkplaceFactory,
}

/// The parameters of a run to start.
#[derive(Clone, Debug, Default)]
pub struct WorkflowStartRequest {
    /// The name of the workflow, or `skill/name` for one that sub-agents go through.
    pub workflow: String,
    pub parameters: BTreeMap<String, String>,
    /// The id of the run; generated if `None`.
    pub id: Option<String>,
    /// The run whose sub-agent starts this one.
    pub parent: Option<String>,
}

/// A run that was started.
pub struct StartedWorkflow {
    pub standing: AnyWorkflowRun,
    /// Set if the workflow declares commands that will not be run, because its skill is not
    /// trusted.
    pub withheld: Option<WithheldCommands>,
}

/// Commands that are not run until their skill is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldCommands {
    pub skill: String,
    /// Tells a skill that was never trusted from one that has changed since.
    pub trust: TrustLevel,
}

/// Begins the note of a check that was run again.
const RUN_AGAIN: &str =
    "run again when the gate was left, because the work is not known to be the same: ";

/// Checks of a gate that have passed, but whose result does not count for the work as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutdatedChecks {
    pub names: Vec<String>,
    /// The work as it is now; `None` if it has no fingerprint, so that nothing says whether it has
    /// changed.
    pub work: Option<WorkFingerprint>,
}

/// The run after the work at a gate was verified.
enum GateProof {
    /// The step may be left, if the engine agrees.
    Leave(StoredWorkflowRun),
    /// A person has to accept the gate first.
    Wait(StoredWorkflowRun),
}

/// The result of a step, as an agent reports it.
#[derive(Clone, Debug)]
pub enum StepResultReport {
    /// The step was carried out.
    Done(StepReport),
    /// The step could not be carried out, with the reason.
    Failed(String),
}

/// The results of a review to record.
#[derive(Clone, Debug, Default)]
pub struct GateReviewRecord {
    /// The gate of the review, if several are possible.
    pub gate: Option<StepId>,
    pub items: Vec<ItemRecord>,
    pub checks: Vec<CheckToRecord>,
}

/// A check to record.
#[derive(Clone, Debug)]
pub enum CheckToRecord {
    /// Run the command of the check with this name.
    Run(String),
    /// Run it again, because it has passed on other work than there is now.
    RunAgain(String),
    /// Record a result that was reported, for a check without a command.
    Claimed(CheckRecord),
}

/// The reason an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowOperationError {
    /// The name does not lead to a workflow.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The workflow has errors.
    #[error("workflow `{}` cannot run", .0.name)]
    Broken(Box<LoadedWorkflow>),
    /// The id is not valid for a run.
    #[error("`{0}` cannot be the name of a run")]
    BadId(String),
    /// A script accepts only an outcome and arguments in a report.
    #[error("a script is told how a step ended, and what it takes along")]
    ScriptTakesLess,
    /// The word is not a valid choice.
    #[error("`{word}` is no choice{}", if *script { " for a script" } else { "" })]
    NoChoice {
        word: String,
        /// True if the run is of a script, which has fewer choices.
        script: bool,
    },
    /// The script has changed since the run was started, or is no longer trusted.
    #[error(transparent)]
    NotTrustedNow(ProgramError),
    /// A person has reviewed a gate and does not accept it.
    #[error("a person has not accepted gate `{gate}`")]
    NotAccepted { gate: StepId, run: String },
    /// A check fails on the work as it is now, so a person cannot accept the gate.
    #[error("check `{name}` fails on the work as it is now: {note}")]
    RedNow { name: String, note: String },
    #[error(transparent)]
    Run(#[from] WorkflowRunError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl From<SkillNotFound> for WorkflowOperationError {
    fn from(error: SkillNotFound) -> Self {
        WorkflowOperationError::Find(error.into())
    }
}

impl WorkflowOperations {
    /// Starts a run.
    ///
    /// # Errors
    ///
    /// [`WorkflowOperationError`]; no run is stored then.
    #[tracing::instrument(name = "workflow_start", skip_all, fields(workflow = %start.workflow))]
    pub async fn start(
        &self,
        start: WorkflowStartRequest,
        cancel: &CancellationToken,
    ) -> Result<StartedWorkflow, WorkflowOperationError> {
        let parent = match &start.parent {
            Some(wanted) => Some(self.runs.resolve_id(wanted).await?),
            None => None,
        };
        let catalog = (self.catalog)();
        let entry = find::find_owner(&catalog, &start.workflow)?;
        let trusted = entry.trust == TrustLevel::Trusted;
        let id = start.id.unwrap_or_else(|| new_id(&start.workflow));
        if !is_id(&id) {
            return Err(WorkflowOperationError::BadId(id));
        }
        let request = WorkflowRunRequest { parameters: start.parameters, parent, trusted };
        let begin = NewWorkflowRun { id, folder: self.folder.clone(), request };
        if !file::is_workflow(&entry.skill)
            && let Some(script) = find::script_of(entry)
        {
            let new = NewScriptRun {
                begin,
                workflow: entry.id.clone(),
                skill_dir: entry.skill.origin.dir(),
                script,
            };
            let folder = self.folder.clone();
            let run = self
                .run_staged(&folder, cancel, async |stage| self.runs.start_script(new, stage).await)
                .await?;
            return Ok(StartedWorkflow {
                standing: AnyWorkflowRun::Script(Box::new(run)),
                withheld: None,
            });
        }
        let (_, loaded) = find_workflow(&catalog, &start.workflow)?;
        let Some(workflow) = &loaded.checked else {
            return Err(WorkflowOperationError::Broken(Box::new(loaded)));
        };
        let runs_commands =
            workflow.workflow().checks.values().any(|check| !check.command.is_empty());
        let withheld = (!trusted && runs_commands)
            .then(|| WithheldCommands { skill: entry.id.clone(), trust: entry.trust });
        let run = self.runs.start(workflow, &begin).await?;
        Ok(StartedWorkflow { standing: AnyWorkflowRun::Workflow(Box::new(run)), withheld })
    }

    /// Returns the state of a run, after applying the report if there is one. `at` is the turn of
    /// the report, so that a repeated report counts once; without a report it means that the step
    /// is done.
    ///
    /// # Errors
    ///
    /// [`WorkflowOperationError`]; the run is unchanged then.
    #[tracing::instrument(name = "workflow_step", skip_all, fields(run = %wanted))]
    pub async fn advance_run(
        &self,
        wanted: &str,
        at: Option<u32>,
        said: Option<StepResultReport>,
        cancel: &CancellationToken,
    ) -> Result<AnyWorkflowRun, WorkflowOperationError> {
        let run = match self.runs.open_any(wanted).await? {
            AnyWorkflowRun::Script(run) => {
                let report = script_report(at, said)?;
                return self.step_script(*run, report, cancel).await;
            }
            AnyWorkflowRun::Workflow(run) => *run,
        };
        let action = match (said, at) {
            (Some(StepResultReport::Failed(message)), _) => EngineAction::Error { message },
            (Some(StepResultReport::Done(report)), _) => EngineAction::Leave(report),
            (None, Some(_)) => EngineAction::Leave(StepReport::default()),
            (None, None) => return Ok(AnyWorkflowRun::Workflow(Box::new(run))),
        };
        let seen = run.state.turn;
        let run = if matches!(action, EngineAction::Leave(_)) {
            match self.prove_gate(run, at, cancel).await? {
                GateProof::Leave(run) => run,
                GateProof::Wait(run) => return Ok(AnyWorkflowRun::Workflow(Box::new(run))),
            }
        } else {
            run
        };
        // Another process may have left the step while checks ran: the report is about that step.
        let at = at.or((run.state.turn != seen).then_some(seen));
        let run = self.runs.continue_run(run, &EngineInput { at, action }).await?;
        Ok(AnyWorkflowRun::Workflow(Box::new(run)))
    }

    /// Verifies the work before a gate is left. Built-in checks are run now, whatever was recorded
    /// before, and so are commands that have passed on other work than there is now. A gate that
    /// would pass by its items alone needs the acceptance of a person.
    async fn prove_gate(
        &self,
        mut run: StoredWorkflowRun,
        at: Option<u32>,
        cancel: &CancellationToken,
    ) -> Result<GateProof, WorkflowOperationError> {
        let is_current = run.state.status == WorkflowRunStatus::Active
            && at.is_none_or(|at| at == run.state.turn);
        let step = run.workflow.find_step(&run.state.step);
        let gate = step.and_then(|step| step.decide.as_gate()).filter(|_| is_current);
        let Some(gate) = gate.cloned() else { return Ok(GateProof::Leave(run)) };
        let id = run.state.step.clone();
        let known: Vec<String> =
            gate.checks.iter().filter(|name| is_built_in_check(&run, name)).cloned().collect();
        if !known.is_empty() {
            let seen = run.state.turn;
            let known = known.into_iter().map(CheckToRecord::Run).collect();
            run = self.record_checks(run, &id, known, cancel).await?;
            if run.state.turn != seen {
                return Ok(GateProof::Leave(run));
            }
        }
        let mut is_current = true;
        if is_gate_passed(&run, &id, &gate) {
            let outdated = self.outdated_checks(&run, &id).await.names;
            if !outdated.is_empty() {
                let seen = run.state.turn;
                let outdated = outdated.into_iter().map(CheckToRecord::RunAgain).collect();
                run = self.record_checks(run, &id, outdated, cancel).await?;
                if run.state.turn != seen {
                    return Ok(GateProof::Leave(run));
                }
                // Where no fingerprint can be made, a check that was just run is as current as can be.
                let still = self.outdated_checks(&run, &id).await;
                is_current = still.names.is_empty() || still.work.is_none();
            }
        }
        let none = GateReview::default();
        let review = run.state.reviews.get(&id).unwrap_or(&none);
        let is_shown = is_current && is_proven(run.workflow.workflow(), &gate, review);
        if !is_gate_passed(&run, &id, &gate) || is_shown {
            return Ok(GateProof::Leave(run));
        }
        match gate_acceptance(&run.workflow, &run.state) {
            Some(true) => Ok(GateProof::Leave(run)),
            Some(false) => Err(WorkflowOperationError::NotAccepted {
                gate: id,
                run: run.state.run.to_string(),
            }),
            None => {
                let at = Some(run.state.turn);
                let input = EngineInput { at, action: EngineAction::AskAcceptance };
                Ok(GateProof::Wait(self.runs.continue_run(run, &input).await?))
            }
        }
    }

    /// Runs checks of a gate, and records their results.
    async fn record_checks(
        &self,
        run: StoredWorkflowRun,
        gate: &StepId,
        checks: Vec<CheckToRecord>,
        cancel: &CancellationToken,
    ) -> Result<StoredWorkflowRun, WorkflowOperationError> {
        let record = GateReviewRecord { gate: Some(gate.clone()), items: Vec::new(), checks };
        self.record_review(run.state.run.as_str(), record, cancel, |_, _| {}).await
    }

    /// Finds the checks of a gate that have passed, but not on the work as it is now. A gate that was
    /// left has none.
    pub async fn outdated_checks(&self, run: &StoredWorkflowRun, id: &StepId) -> OutdatedChecks {
        let gate = run.workflow.find_step(id).and_then(|step| step.decide.as_gate());
        let review = run.state.reviews.get(id).filter(|review| !review.passed);
        let (Some(gate), Some(review)) = (gate, review) else { return OutdatedChecks::default() };
        let find = |now| outdated_checks(run.workflow.workflow(), gate, review, now);
        // Without a fingerprint, every check is outdated.
        if find(None).is_empty() {
            return OutdatedChecks::default();
        }
        let workplace = (self.workplace)(&run.head.folder);
        let work = fingerprint_work(&workplace).await;
        OutdatedChecks { names: find(work.as_ref()), work }
    }

    async fn step_script(
        &self,
        mut run: ScriptRun,
        report: Option<(Option<u32>, ScriptReport)>,
        cancel: &CancellationToken,
    ) -> Result<AnyWorkflowRun, WorkflowOperationError> {
        if let Some((at, report)) = report {
            self.expect_trusted(&run)?;
            let folder = run.head.folder.clone();
            // While this waits for the lock, another process may leave the step.
            let at = at.unwrap_or(run.turn());
            run = self
                .run_staged(&folder, cancel, async |stage| {
                    self.runs.step_script(&run.run, at, report, stage).await
                })
                .await?;
        }
        Ok(AnyWorkflowRun::Script(Box::new(run)))
    }

    /// Records the results of a review. Requested checks are run one after the other; `told` is
    /// called with the name and command of each before.
    ///
    /// # Errors
    ///
    /// [`WorkflowOperationError`]; nothing is recorded then.
    #[tracing::instrument(name = "workflow_review", skip_all, fields(run = %wanted))]
    pub async fn record_review<F: FnMut(&str, &str)>(
        &self,
        wanted: &str,
        record: GateReviewRecord,
        cancel: &CancellationToken,
        mut told: F,
    ) -> Result<StoredWorkflowRun, WorkflowOperationError> {
        let GateReviewRecord { gate, items, checks: asked } = record;
        let mut checks = Vec::new();
        let mut at = None;
        for check in asked {
            match check {
                CheckToRecord::Claimed(record) => checks.push(record),
                CheckToRecord::Run(ref name) | CheckToRecord::RunAgain(ref name) => {
                    let run = self.runs.open_run(wanted).await?;
                    at = at.or(Some(run.state.turn));
                    let mut record =
                        self.run_check(run, gate.as_ref(), name, cancel, &mut told).await?;
                    if matches!(check, CheckToRecord::RunAgain(_)) {
                        record.result.note.insert_str(0, RUN_AGAIN);
                    }
                    checks.push(record);
                }
            }
        }
        let action = EngineAction::Record { gate, items, checks };
        Ok(self.runs.apply_input(wanted, &EngineInput { at, action }).await?)
    }

    /// Runs a check. No lock is held in the meantime, so others may record. The engine compares the
    /// turn and the command again afterwards: the result of a check that ran before a repair must
    /// not count after it.
    async fn run_check<F: FnMut(&str, &str)>(
        &self,
        mut run: StoredWorkflowRun,
        gate: Option<&StepId>,
        name: &str,
        cancel: &CancellationToken,
        told: &mut F,
    ) -> Result<CheckRecord, WorkflowOperationError> {
        run.head.trusted = self.is_trusted_now(&run);
        let command = check_command(&run, name)?;
        if !run.head.trusted && !command.is_empty() && !is_built_in_check(&run, name) {
            return Err(ProgramError::NotTrusted { workflow: run.state.workflow.clone() }.into());
        }
        // Try to record a result first, so that no check is run whose result could not be recorded.
        let result = GateCheckResult {
            status: ItemStatus::Fail,
            proof: CheckProof::Run { command: command.clone(), exit_code: None, work: None },
            note: String::new(),
        };
        let trial = EngineAction::Record {
            gate: gate.cloned(),
            items: Vec::new(),
            checks: vec![CheckRecord { name: name.to_owned(), result }],
        };
        engine::advance_run(&run.workflow, &run.state, &EngineInput::about_now(trial))
            .map_err(WorkflowRunError::from)?;
        if !command.is_empty() {
            told(name, &command);
        }
        self.perform_check(&run, name, cancel).await
    }

    async fn perform_check(
        &self,
        run: &StoredWorkflowRun,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<CheckRecord, WorkflowOperationError> {
        let workplace = (self.workplace)(&run.head.folder);
        let record = run_check(run, name, &workplace, CHECK_TIMEOUT, cancel).await;
        workplace.clean_up();
        Ok(record?)
    }

    /// Runs the outdated and the built-in checks of a gate whose failed items a person is about to
    /// accept: a red check is never accepted.
    async fn expect_green(
        &self,
        run: &StoredWorkflowRun,
        choice: &PersonChoice,
        cancel: &CancellationToken,
    ) -> Result<(), WorkflowOperationError> {
        let WorkflowRunStatus::Waiting(WaitReason::Limit { gate, .. }) = &run.state.status else {
            return Ok(());
        };
        if !matches!(choice, PersonChoice::Skip | PersonChoice::MustOnly) {
            return Ok(());
        }
        let mut names = self.outdated_checks(run, gate).await.names;
        let gate = run.workflow.find_step(gate).and_then(|step| step.decide.as_gate());
        let checks = gate.iter().flat_map(|gate| &gate.checks);
        names.extend(checks.filter(|name| is_built_in_check(run, name)).cloned());
        let mut run = run.clone();
        run.head.trusted = self.is_trusted_now(&run);
        for name in names {
            let CheckRecord { name, result } = self.perform_check(&run, &name, cancel).await?;
            if result.status != ItemStatus::Pass {
                return Err(WorkflowOperationError::RedNow { name, note: result.note });
            }
        }
        Ok(())
    }

    /// Continues a waiting run with the choice of a person.
    ///
    /// # Errors
    ///
    /// [`WorkflowOperationError`]; the run is unchanged then.
    pub async fn apply_choice(
        &self,
        wanted: &str,
        word: &str,
        note: &str,
        cancel: &CancellationToken,
    ) -> Result<AnyWorkflowRun, WorkflowOperationError> {
        let none = |script| WorkflowOperationError::NoChoice { word: word.to_owned(), script };
        let run = match self.runs.open_any(wanted).await? {
            AnyWorkflowRun::Workflow(run) => {
                let choice = PersonChoice::parse(word).ok_or_else(|| none(false))?;
                self.expect_green(&run, &choice, cancel).await?;
                let input =
                    EngineInput::about_now(EngineAction::Choose { choice, note: note.to_owned() });
                let run = self.runs.continue_run(*run, &input).await?;
                return Ok(AnyWorkflowRun::Workflow(Box::new(run)));
            }
            AnyWorkflowRun::Script(run) => run,
        };
        let decision = match word {
            "continue" => ScriptDecision::Continue,
            "abort" => ScriptDecision::Abort,
            _ => return Err(none(true)),
        };
        if decision == ScriptDecision::Continue {
            self.expect_trusted(&run)?;
        }
        // The decision is about the turn that was read, also if another process leaves it first.
        let run = self
            .run_staged(&run.head.folder, cancel, async |stage| {
                self.runs.decide_script(&run.run, run.turn(), decision, stage).await
            })
            .await?;
        Ok(AnyWorkflowRun::Script(Box::new(run)))
    }

    /// Continues a waiting run with the answers of a person, by the ids of the questions.
    ///
    /// # Errors
    ///
    /// [`WorkflowOperationError`]; the run is unchanged then.
    pub async fn answer(
        &self,
        wanted: &str,
        answers: BTreeMap<String, String>,
    ) -> Result<StoredWorkflowRun, WorkflowOperationError> {
        let input = EngineInput::about_now(EngineAction::Answer { answers });
        Ok(self.runs.apply_input(wanted, &input).await?)
    }

    /// Returns true if the skill is trusted now. The trust at the start of the run does not cover
    /// the files that a command would execute now. If the skill was not trusted then, its workflow
    /// must be the one the run was started with.
    fn is_trusted_now(&self, run: &StoredWorkflowRun) -> bool {
        let catalog = (self.catalog)();
        let Ok((entry, loaded)) = find_workflow(&catalog, &run.state.workflow) else {
            return false;
        };
        let is_same =
            loaded.checked.is_some_and(|checked| *checked.fingerprint() == run.state.fingerprint);
        entry.trust == TrustLevel::Trusted && (run.head.trusted || is_same)
    }

    /// Refuses to run a script that is no longer trusted. The current script is run and not the one
    /// at the start of the run, so a changed script needs new consent.
    fn expect_trusted(&self, run: &ScriptRun) -> Result<(), WorkflowOperationError> {
        let catalog = (self.catalog)();
        let entry = catalog.resolve(&run.workflow)?;
        let is_same = entry.skill.origin.dir() == run.skill_dir();
        if is_same && entry.trust == TrustLevel::Trusted {
            return Ok(());
        }
        let workflow = run.workflow.clone();
        Err(WorkflowOperationError::NotTrustedNow(ProgramError::NotTrusted { workflow }))
    }

    /// Runs a script in the folder of its run.
    async fn run_staged<T>(
        &self,
        folder: &Utf8Path,
        cancel: &CancellationToken,
        work: impl AsyncFnOnce(ScriptEnvironment<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, WorkflowOperationError> {
        let workplace = (self.workplace)(folder);
        let stage = ScriptEnvironment { workplace: &workplace, cancel };
        let done = work(stage).await;
        workplace.clean_up();
        Ok(done?)
    }
}

fn is_gate_passed(run: &StoredWorkflowRun, id: &StepId, gate: &Gate) -> bool {
    let none = GateReview::default();
    let review = run.state.reviews.get(id).unwrap_or(&none);
    matches!(compute_verdict(gate, review), GateVerdict::Pass { .. })
}

/// Converts a report for a script; `None` if nothing is reported.
fn script_report(
    at: Option<u32>,
    said: Option<StepResultReport>,
) -> Result<Option<(Option<u32>, ScriptReport)>, WorkflowOperationError> {
    let report = match said {
        None => StepReport::default(),
        Some(StepResultReport::Failed(_)) => return Err(WorkflowOperationError::ScriptTakesLess),
        Some(StepResultReport::Done(report)) => report,
    };
    let StepReport { outcome, confidence, facts, set, output } = report;
    if output.is_some() || confidence.is_some() || !facts.is_empty() {
        return Err(WorkflowOperationError::ScriptTakesLess);
    }
    let reports = at.is_some() || outcome.is_some() || !set.is_empty();
    let outcome = outcome.map(|outcome| outcome.to_string());
    Ok(reports.then_some((at, ScriptReport { outcome, set })))
}

/// Generates an id that is easy to type and to tell apart: the name of the workflow and eight
/// random characters.
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
    match stem.trim_start_matches('-') {
        "" => format!("run-{letters}"),
        stem => format!("{stem}-{letters}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn can_be_sent<T: Send>(_: &T) {}

    /// Checks at compile time that the futures are `Send`, since servers run them on any thread.
    #[test]
    fn what_is_asked_can_move_between_threads() {
        fn check(operations: &WorkflowOperations, cancel: &CancellationToken) {
            can_be_sent(&operations.start(WorkflowStartRequest::default(), cancel));
            can_be_sent(&operations.advance_run("run", None, None, cancel));
            can_be_sent(&operations.record_review(
                "run",
                GateReviewRecord::default(),
                cancel,
                |_, _| {},
            ));
            can_be_sent(&operations.apply_choice("run", "continue", "", cancel));
        }
        let _ = check;
    }

    #[test]
    fn a_name_is_made_of_the_workflows_whatever_that_is() {
        for workflow in ["planner", "skill/part", "--", "größe", ""] {
            let id = new_id(workflow);
            assert!(is_id(&id), "{id}");
        }
        assert_ne!(new_id("planner"), new_id("planner"));
    }
}
