//! The events of workflow runs, as they stand in the journal.
//!
//! A run is its events: the workflow that it was started with, and every input that the engine has
//! accepted. [`super::fold`] replays the engine over them. What a script has printed is part of its
//! event, so that a replay runs nothing.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use repertoire_journal::Payload;
use repertoire_skill::skill::ContentDigest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::WorkflowRunError;
use crate::check::CheckedWorkflow;
use crate::engine::{EngineInput, PersonChoice};
use crate::external::StepScript;
use crate::limits::RUN_STATE_BYTES_MAX;
use crate::state::{WaitReason, WorkflowFingerprint, WorkflowRunState, WorkflowRunStatus};
use crate::step::StepView;

/// The request of a workflow run. The workflow itself is in the first event, because requests are
/// read with every list of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRunRequest {
    /// Values of parameters, as they were typed.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The run whose sub-agent started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// True if the skill was trusted when the run was started, so that its commands may be run.
    #[serde(default)]
    pub trusted: bool,
}

/// An event of a workflow run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "name", content = "data", rename_all = "snake_case")]
pub enum WorkflowRunEvent {
    /// A run of a workflow file was started.
    Start {
        /// The version of the events of this run.
        version: u32,
        fingerprint: WorkflowFingerprint,
        /// The workflow with everything it injects, as [`CheckedWorkflow::freeze`] writes it.
        workflow: String,
    },
    /// The engine has accepted an input.
    Input { input: EngineInput },
    /// A run of a script was started, and has shown its first step.
    ScriptStart {
        /// The version of the events of this run.
        version: u32,
        /// The folder of the skill.
        skill_dir: Utf8PathBuf,
        /// The script with the caller's arguments.
        script: StepScript,
        shown: StepView,
    },
    /// A step of a script was left.
    ScriptStep {
        report: TurnReport,
        /// The next step, if the script was run.
        shown: Option<StepView>,
    },
    /// A person has let a script continue.
    ScriptResume {
        /// The next step, if the script was run.
        shown: Option<StepView>,
    },
    /// A person has ended the run of a script.
    ScriptAbort {},
}

/// The state that an event led to. A replay that leads elsewhere was made by another version of the
/// engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedState {
    /// The digest of the whole state. Another version of the program may have other fields in its
    /// state, so the digest is compared only by the version that has recorded it.
    pub digest: String,
    /// The version of the program that has recorded the event.
    #[serde(default)]
    pub program: String,
    /// The current step, for lists.
    pub step: String,
    /// The current turn, for lists.
    pub turn: u32,
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
pub struct TurnReport {
    pub turn: u32,
    pub report: ScriptReport,
}

/// The status of a run, in the terms of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkflowRunPhase {
    Active,
    Waiting { reason: String, choices: Vec<String> },
    Done,
    Aborted,
}

impl WorkflowRunEvent {
    /// Converts the event to one of the journal, with the state that it leads to.
    pub(super) fn into_payload(self, reached: &ReachedState) -> Payload {
        let mut parts = json!(self);
        let name = parts["name"].as_str().unwrap_or_default().to_owned();
        let mut data = parts["data"].take();
        data[REACHED] = json!(reached);
        Payload::KindEvent { name, data }
    }

    /// Reads an event of the journal, with the state that it led to.
    pub(super) fn from_kind_event(
        name: String,
        mut data: Value,
    ) -> Result<(Self, ReachedState), serde_json::Error> {
        let reached = take_reached_state(&mut data)?;
        let parts = [("name".to_owned(), Value::String(name)), ("data".to_owned(), data)];
        Ok((serde_json::from_value(Value::Object(parts.into_iter().collect()))?, reached))
    }
}

/// The version of this program.
const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The key of the state that an event led to, in the data of the event.
const REACHED: &str = "reached";

/// Takes the state that an event led to out of its data.
pub(super) fn take_reached_state(data: &mut Value) -> Result<ReachedState, serde_json::Error> {
    serde_json::from_value(data.get_mut(REACHED).map(Value::take).unwrap_or_default())
}

impl ReachedState {
    /// Describes a state.
    ///
    /// # Errors
    ///
    /// [`WorkflowRunError::TooLarge`] if the state has become too large.
    pub(super) fn from_state(state: &WorkflowRunState) -> Result<Self, WorkflowRunError> {
        Ok(Self::new(digest_state(state)?, state.step.to_string(), state.turn))
    }

    pub(super) fn new(digest: String, step: String, turn: u32) -> Self {
        ReachedState { digest, program: PROGRAM_VERSION.to_owned(), step, turn }
    }

    /// Returns true if a replay of the events leads to this state.
    pub(super) fn is_reached_by(&self, replayed: &ReachedState) -> bool {
        let is_same_place = (&self.step, self.turn) == (&replayed.step, replayed.turn);
        is_same_place && (self.program != replayed.program || self.digest == replayed.digest)
    }
}

/// Computes the digest of a state.
///
/// # Errors
///
/// [`WorkflowRunError::TooLarge`] if the state is too large.
pub(super) fn digest_state(state: &impl Serialize) -> Result<String, WorkflowRunError> {
    let bytes = serde_json::to_vec(state).expect("a state has only text keys");
    if bytes.len() > RUN_STATE_BYTES_MAX {
        let (bytes, limit) = (bytes.len(), RUN_STATE_BYTES_MAX);
        return Err(WorkflowRunError::TooLarge { bytes, limit });
    }
    Ok(ContentDigest::hash_bytes(&bytes).to_string())
}

impl WorkflowRunPhase {
    pub(super) fn from_state(workflow: &CheckedWorkflow, state: &WorkflowRunState) -> Self {
        match &state.status {
            WorkflowRunStatus::Active => WorkflowRunPhase::Active,
            WorkflowRunStatus::Done => WorkflowRunPhase::Done,
            WorkflowRunStatus::Aborted => WorkflowRunPhase::Aborted,
            WorkflowRunStatus::Waiting(waiting) => WorkflowRunPhase::Waiting {
                reason: waiting.to_string(),
                choices: offered_choices(workflow, waiting),
            },
        }
    }

    /// Returns the event of the journal that follows from a change of the status; `None` if the
    /// status has not changed.
    pub(super) fn change_event(&self, before: &WorkflowRunPhase) -> Option<Payload> {
        if self == before {
            return None;
        }
        Some(match self.clone() {
            WorkflowRunPhase::Active => {
                Payload::RunResumed { by: "a person".to_owned(), limits: None }
            }
            WorkflowRunPhase::Waiting { reason, choices } => {
                Payload::RunWaiting { reason, choices }
            }
            WorkflowRunPhase::Done => {
                Payload::RunCompleted { summary: "the workflow is complete".to_owned(), head: None }
            }
            WorkflowRunPhase::Aborted => {
                Payload::RunCancelled { reason: "a person has ended it".to_owned() }
            }
        })
    }
}

/// Returns the choices that a person is offered. Questions have to be answered, so none is offered
/// for them.
pub fn offered_choices(workflow: &CheckedWorkflow, waiting: &WaitReason) -> Vec<String> {
    match waiting {
        WaitReason::Questions { .. } => Vec::new(),
        waiting => PersonChoice::possible_choices(workflow, waiting)
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}
