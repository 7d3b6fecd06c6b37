//! The end of a run: delivery of its work, and the report.

use repertoire_journal::{Command, Payload, Run};

use super::{DriveError, PlanRunSession, deliver_work};
use crate::limits::DIFF_BYTES_MAX;
use crate::records;
use crate::watchdog::waiting_choices;
use repertoire_git::repo::DiffTarget;

impl PlanRunSession<'_> {
    /// Delivers the work and completes the run.
    pub(super) async fn complete_run(&mut self) -> Result<(), DriveError> {
        self.keep_plan(&[]).await?;
        let delivered =
            deliver_work(&self.worktrees, &self.worktree, self.request.ending, &self.run.name)
                .await;
        let payload = match delivered {
            Ok(payload) => payload,
            Err(error) => {
                let reason = format!("merge_failed: {error}");
                return self
                    .end_run(Payload::RunWaiting { reason, choices: waiting_choices() })
                    .await;
            }
        };
        let head = Some(self.git.head_commit().await?.as_str().to_owned());
        let done = self.state.tasks.values().filter(|task| task.touched).count();
        let tasks = if done == 1 { "task" } else { "tasks" };
        let request = &self.request;
        let has_checks = !request.checks.is_empty() || !request.final_checks.is_empty();
        let vouched = match (request.review, has_checks) {
            (true, true) => "nothing waits for review, and the checks are green",
            (true, false) => "nothing waits for review; no check was declared",
            (false, true) => "the checks are green; nothing was reviewed",
            (false, false) => "nothing was reviewed and no check was declared",
        };
        let summary = format!("{done} {tasks} done; nothing is open, {vouched}");
        self.append(vec![payload]).await?;
        self.end_run(Payload::RunCompleted { summary, head }).await
    }

    /// Stops the run and writes a report.
    pub(super) async fn end_run(&mut self, how: Payload) -> Result<(), DriveError> {
        let reason = how.name().to_lowercase();
        self.append(vec![Payload::PostmortemStart { reason }, how]).await?;
        self.record_report().await
    }

    /// Writes the report. Since the run has stopped, an error is recorded but not returned.
    pub(super) async fn record_report(&mut self) -> Result<(), DriveError> {
        let run = self.runner.current_run(&self.run).await?;
        let (status, files) = match self.write_report(&run).await {
            Ok(files) => ("ok".to_owned(), files),
            Err(DriveError::Stopped(why)) => (format!("failed: {why}"), Vec::new()),
            Err(error) => return Err(error),
        };
        let ended = Payload::PostmortemEnd { status, files };
        let order = Command::Event(ended);
        self.runner.journal.order(&run.id, order).await?;
        Ok(())
    }

    pub(super) async fn write_report(&self, run: &Run) -> Result<Vec<String>, DriveError> {
        let steps = self.runner.journal.steps(&run.id).await?;
        let mut files = vec![
            self.records.write_file("summary.json", &records::summary_json(run, &steps))?,
            self.records.write_file("report.tsv", &records::steps_table(&steps))?,
            self.records.write_file(
                "report.md",
                &records::post_mortem(run, &steps, &self.state.learnings),
            )?,
        ];
        let of = DiffTarget::Commits {
            from: self.worktree.base_oid.clone(),
            to: self.git.head_commit().await?,
        };
        let diff = self.git.diff(&of, DIFF_BYTES_MAX).await?;
        files.push(self.records.write_file("changes.diff", &diff.text)?);
        Ok(files.iter().map(|name| self.records.dir().join(name).to_string()).collect())
    }
}
