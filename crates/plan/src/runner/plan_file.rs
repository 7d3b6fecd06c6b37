//! The plan file of a run: reading it, restoring it after agents, and updating it to match the
//! journal.

use crate::limits::PLAN_BYTES_MAX;
use camino::Utf8Path;
use repertoire_journal::Payload;
use repertoire_journal::event::TaskRef;
use repertoire_text::fs;

use super::{DriveError, PlanRunSession};
use crate::file;
use crate::plan_sync;
use crate::state::{PlanStepEnd, PlanStepKind};

/// The plan as the engine last wrote it, in the records of a run.
const PLAN_LEFT: &str = "plan.md";

impl PlanRunSession<'_> {
    /// The current plan in the worktree.
    pub(super) fn plan_found(&self) -> Option<String> {
        if self.request.asked.is_some() {
            // A requested task has no file, so only the engine can have changed the plan.
            return Some(self.plan_text.clone());
        }
        file::read_plan(&self.worktree.dir, &self.request.plan)
    }

    /// The plan of the workspace, for a worktree without one because git does not track it.
    pub(super) fn plan_of_workspace(&self) -> Result<String, DriveError> {
        let original = Utf8Path::new(&self.run.workspace).join(&self.request.plan);
        fs::read_text(&original, PLAN_BYTES_MAX as u64).map_err(|error| {
            DriveError::Stopped(format!("the plan {original} cannot be read: {error}"))
        })
    }

    /// Reads the plan for the first time, or finds out what has changed since the engine last wrote
    /// it. Between steps only people change it; in an interrupted step it may have been the agent.
    pub(super) fn take_up_plan(&mut self) -> Result<Vec<Payload>, DriveError> {
        if let Some(asked) = &self.request.asked {
            let text = asked.to_plan();
            self.plan_text = plan_sync::with_marks(&text, &self.request.plan, &self.state);
            let first = plan_sync::first_read(&text, &self.request.plan);
            return Ok((!self.state.is_read).then_some(first).into_iter().collect());
        }
        let found = self.plan_found();
        let path = &self.request.plan;
        if !self.state.is_read {
            self.plan_text = found.map_or_else(|| self.plan_of_workspace(), Ok)?;
            return Ok(vec![plan_sync::first_read(&self.plan_text, path)]);
        }
        let left = self.records.read(PLAN_LEFT, PLAN_BYTES_MAX as u64);
        let Some(before) = left.or_else(|| found.clone()) else {
            self.plan_text = self.plan_of_workspace()?;
            return Ok(Vec::new());
        };
        let last = self.state.last_step();
        let is_cut_short = last.is_some_and(|past| past.ended == Some(PlanStepEnd::Interrupted));
        let kept = if self.state.looked && !is_cut_short {
            plan_sync::accept_edits(&before, found.as_deref(), path, &self.state)
        } else {
            let work = last.filter(|past| past.kind == PlanStepKind::Implementation);
            let own = work.and_then(|past| past.task.as_ref()).map(|task| task.id.as_str());
            plan_sync::reconcile_plan(&before, found.as_deref(), path, &self.state, own)
        };
        self.plan_text = kept.text;
        Ok(kept.events)
    }

    /// Restores the plan after an agent's step. `own` is the task that the agent implemented.
    pub(super) fn settle_plan(&mut self, own: Option<&TaskRef>) -> Vec<Payload> {
        let (found, path) = (self.plan_found(), &self.request.plan);
        let own = own.map(|task| task.id.as_str());
        let kept =
            plan_sync::reconcile_plan(&self.plan_text, found.as_deref(), path, &self.state, own);
        if found.as_deref() != Some(&kept.text) {
            // `keep_plan` writes it again before the next step, and reports the error.
            let _ = file::write(&self.worktree.dir, path, &kept.text);
        }
        self.plan_text = kept.text;
        kept.events
    }

    /// Updates the plan file to match the journal, adds notes on failed tasks, and commits it.
    pub(super) async fn keep_plan(&mut self, happened: &[Payload]) -> Result<(), DriveError> {
        let text = match self.state.fallback {
            Some(_) => self.plan_text.clone(),
            None => {
                let noted = plan_sync::with_notes(&self.plan_text, happened);
                plan_sync::with_marks(&noted, &self.request.plan, &self.state)
            }
        };
        let is_file = self.request.asked.is_none();
        if is_file && self.plan_found().as_deref() != Some(&text) {
            file::write(&self.worktree.dir, &self.request.plan, &text)?;
        }
        self.records.write_file(PLAN_LEFT, &text)?;
        self.plan_text = text;
        if self.request.asked.is_some() {
            return Ok(());
        }
        let paths = [self.request.plan.to_string()];
        if !self.git.is_ignored(&paths[0]).await? {
            self.git.commit_paths(&paths, &plan_sync::commit_message(happened)).await?;
        }
        Ok(())
    }
}
