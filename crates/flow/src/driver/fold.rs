//! The fold of a workflow run: from its events to its state, by replaying the engine.
//!
//! A pure function. The last event says which state it led to when it was recorded; if the replay
//! leads elsewhere, the run was recorded by another version of this program, and is left as it is. A
//! state of the same version has the same digest; one of another version has the same step and turn.

use camino::Utf8PathBuf;
use repertoire_journal::event::EVENT_VERSION;
use repertoire_journal::{Event, Payload};

use super::events::{ReachedState, WorkflowRunEvent, WorkflowRunRequest, take_reached_state};
use super::scripts::ScriptRun;
use super::{AnyWorkflowRun, StoredWorkflowRun, WorkflowRunError, WorkflowRunMetadata};
use crate::check::{CheckedWorkflow, ThawError};
use crate::engine;
use crate::state::{STATE_VERSION, WorkflowFingerprint, WorkflowRunId};

/// The names of the events that this version knows.
const EVENT_NAMES: &[&str] =
    &["start", "input", "script_start", "script_step", "script_resume", "script_abort"];

/// Folds all events of a run.
///
/// # Errors
///
/// If an event cannot be read, or the events lead to another state than they did when they were
/// recorded.
pub fn fold_run(id: &str, events: Vec<Event>) -> Result<AnyWorkflowRun, WorkflowRunError> {
    let mut fold = WorkflowRunFold { id, origin: None, run: None, reached: None };
    for event in events {
        fold.apply_event(event)?;
    }
    fold.finish()
}

/// Returns the state that the last event of a run led to, without folding the events before it.
///
/// # Errors
///
/// If the event cannot be read.
pub(super) fn read_reached_state(
    id: &str,
    last: Option<Event>,
) -> Result<ReachedState, WorkflowRunError> {
    let damaged = |message: String| WorkflowRunError::Damaged { id: id.to_owned(), message };
    let Some(Event { seq, payload: Payload::KindEvent { mut data, .. }, .. }) = last else {
        return Err(damaged("it has no event that can be read".to_owned()));
    };
    take_reached_state(&mut data).map_err(|error| damaged(format!("event {seq}: {error}")))
}

/// A fold in progress.
struct WorkflowRunFold<'a> {
    id: &'a str,
    origin: Option<RunOrigin>,
    run: Option<AnyWorkflowRun>,
    /// The state that the last event led to when it was recorded.
    reached: Option<ReachedState>,
}

/// The first event of a run.
struct RunOrigin {
    name: String,
    request: WorkflowRunRequest,
    head: WorkflowRunMetadata,
}

impl WorkflowRunFold<'_> {
    fn apply_event(&mut self, event: Event) -> Result<(), WorkflowRunError> {
        let Event { v, seq, at_ms, payload, .. } = event;
        match payload {
            Payload::RunCreated { name, workspace, request, .. } => {
                let request: WorkflowRunRequest =
                    serde_json::from_value(request).map_err(|error| self.damaged(seq, error))?;
                let head = WorkflowRunMetadata {
                    begun_ms: at_ms,
                    updated_ms: at_ms,
                    folder: Utf8PathBuf::from(workspace),
                    parent: request.parent.clone(),
                    trusted: request.trusted,
                };
                self.origin = Some(RunOrigin { name, request, head });
            }
            Payload::KindEvent { name, data } => {
                if !EVENT_NAMES.contains(&name.as_str()) {
                    let message = format!("its event {seq}, `{name}`, is not known here");
                    return Err(self.other_version(message));
                }
                let (event, reached) = WorkflowRunEvent::from_kind_event(name, data)
                    .map_err(|error| self.unreadable(v, seq, error))?;
                self.reached = Some(reached);
                self.apply_kind_event(seq, event)?;
            }
            Payload::Note { name, .. } if name.starts_with("unknown:") => {
                return Err(self.unreadable(v, seq, "it cannot be read"));
            }
            _ => {}
        }
        match &mut self.run {
            Some(AnyWorkflowRun::Workflow(run)) => {
                (run.seq, run.head.updated_ms) = (seq, at_ms);
            }
            Some(AnyWorkflowRun::Script(run)) => (run.seq, run.head.updated_ms) = (seq, at_ms),
            None => {}
        }
        Ok(())
    }

    fn apply_kind_event(
        &mut self,
        seq: u64,
        event: WorkflowRunEvent,
    ) -> Result<(), WorkflowRunError> {
        let run = match (self.run.take(), event) {
            (None, WorkflowRunEvent::Start { version, fingerprint, workflow }) => {
                self.start_workflow(version, &fingerprint, &workflow)?
            }
            (None, WorkflowRunEvent::ScriptStart { version, skill_dir, script, shown }) => {
                let RunOrigin { name, head, .. } = self.take_origin(version)?;
                let run = ScriptRun::new(self.id, name, head, skill_dir, script, shown);
                AnyWorkflowRun::Script(Box::new(run))
            }
            (Some(AnyWorkflowRun::Workflow(mut run)), WorkflowRunEvent::Input { input }) => {
                engine::advance_in_place(&run.workflow, &mut run.state, &input)
                    .map_err(|refusal| self.other_version(format!("event {seq}: {refusal}")))?;
                AnyWorkflowRun::Workflow(run)
            }
            (
                Some(AnyWorkflowRun::Script(run)),
                event @ (WorkflowRunEvent::ScriptStep { .. }
                | WorkflowRunEvent::ScriptResume { .. }
                | WorkflowRunEvent::ScriptAbort {}),
            ) => {
                let run = run
                    .apply_event(&event)
                    .map_err(|error| self.other_version(format!("event {seq}: {error}")))?;
                AnyWorkflowRun::Script(Box::new(run))
            }
            _ => return Err(self.damaged(seq, "it cannot follow the events before it")),
        };
        self.run = Some(run);
        Ok(())
    }

    fn start_workflow(
        &mut self,
        version: u32,
        fingerprint: &WorkflowFingerprint,
        frozen: &str,
    ) -> Result<AnyWorkflowRun, WorkflowRunError> {
        let RunOrigin { request, head, .. } = self.take_origin(version)?;
        let workflow =
            CheckedWorkflow::thaw(frozen.as_bytes(), fingerprint).map_err(|error| match error {
                ThawError::Changed => WorkflowRunError::Damaged {
                    id: self.id.to_owned(),
                    message: "its workflow is not the workflow that the run was started with"
                        .to_owned(),
                },
                ThawError::OtherVersion(message) => self.other_version(message),
            })?;
        let state = engine::start(&workflow, WorkflowRunId::new(self.id), &request.parameters)
            .map_err(|refusal| self.other_version(refusal.to_string()))?;
        Ok(AnyWorkflowRun::Workflow(Box::new(StoredWorkflowRun { head, workflow, state, seq: 0 })))
    }

    /// Returns the first event of the run, after checking that its events can be read here.
    fn take_origin(&mut self, version: u32) -> Result<RunOrigin, WorkflowRunError> {
        if version > STATE_VERSION {
            let id = self.id.to_owned();
            return Err(WorkflowRunError::Newer { id, version });
        }
        self.origin.take().ok_or_else(|| self.damaged(1, "it does not create the run"))
    }

    fn finish(mut self) -> Result<AnyWorkflowRun, WorkflowRunError> {
        let (Some(run), Some(reached)) = (self.run.take(), self.reached.take()) else {
            return Err(self.damaged(1, "the run was never started"));
        };
        let replayed = match &run {
            AnyWorkflowRun::Workflow(run) => ReachedState::from_state(&run.state)?,
            AnyWorkflowRun::Script(run) => run.reached_state()?,
        };
        if !reached.is_reached_by(&replayed) {
            let message = "its events lead to another state here".to_owned();
            return Err(self.other_version(message));
        }
        Ok(run)
    }

    fn damaged(&self, seq: u64, why: impl ToString) -> WorkflowRunError {
        let message = format!("event {seq}: {}", why.to_string());
        WorkflowRunError::Damaged { id: self.id.to_owned(), message }
    }

    /// An event that cannot be read is damage, unless a later version has written it.
    fn unreadable(&self, v: u32, seq: u64, why: impl ToString) -> WorkflowRunError {
        if v > EVENT_VERSION {
            self.other_version(format!("its event {seq} is not known here"))
        } else {
            self.damaged(seq, why)
        }
    }

    fn other_version(&self, message: String) -> WorkflowRunError {
        WorkflowRunError::OtherVersion { id: self.id.to_owned(), message }
    }
}

#[cfg(test)]
mod tests;
