//! Verifying the digests of a run. Reading a damaged run fails; this names the first bad event.

use crate::error::JournalError;
use crate::journal::{DamagedRow, Journal};
use crate::limits::{PAGE_MAX, REPLAY_ATTEMPTS_MAX};
use crate::run::RunId;
use crate::sanitise;
use crate::store::StoreFault;
use crate::store::events::{ChainBreak, MISSING_EVENT, OTHER_LAST_EVENT, find_chain_break};
use crate::store::row_digest::NO_PREDECESSOR;
use crate::store::rows::{RunRow, decode_step, to_unsigned};

/// The result of verifying the digests of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestReport {
    /// The number of events that fit, up to the first bad one.
    pub events: u64,
    /// The number of steps that fit, up to the first bad one.
    pub steps: u64,
    /// The first problem; `None` if everything fits.
    pub problem: Option<DigestProblem>,
}

/// The first thing of a run that does not fit its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestProblem {
    /// The number of the bad event; `None` if the events fit, and the run or a step does not.
    pub event: Option<u64>,
    /// A sentence that names the problem.
    pub what: String,
}

impl Journal {
    /// Verifies the digests of a run: the chain of its events, then its state and its steps.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store cannot be used.
    pub async fn verify_run(&self, id: &RunId) -> Result<DigestReport, JournalError> {
        if !sanitise::is_id(id.as_str()) {
            return Err(JournalError::unknown_run(id));
        }
        for _ in 0..REPLAY_ATTEMPTS_MAX {
            let row = self.require_run_row(id).await?;
            let end = row.chain_end();
            let report = self.verify_once(id, row).await?;
            // If the run changed in the meantime, the parts that were read are not one consistent
            // state.
            if self.require_run_row(id).await?.chain_end() == end {
                return Ok(report);
            }
        }
        Err(JournalError::refused(id, "it goes on too fast to be verified; pause it first"))
    }

    /// Verifies the digests of all runs, and returns the damaged ones. This reads the whole journal.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_damaged_runs(&self) -> Result<Vec<DamagedRow>, JournalError> {
        let mut damaged = Vec::new();
        for id in self.list_run_ids().await? {
            match self.verify_run(&id).await {
                Ok(DigestReport { problem: None, .. }) => {}
                Ok(DigestReport { problem: Some(problem), .. }) => {
                    damaged.push(DamagedRow { id: id.to_string(), what: problem.what });
                }
                // The run was removed meanwhile, or a worker adds events to it all the time.
                Err(JournalError::NotFound { .. } | JournalError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }

    async fn require_run_row(&self, id: &RunId) -> Result<RunRow, JournalError> {
        let row = self.perform_read(|| self.store().run_row(id.as_str())).await?;
        row.ok_or_else(|| JournalError::unknown_run(id))
    }

    async fn verify_once(&self, id: &RunId, row: RunRow) -> Result<DigestReport, JournalError> {
        let (events, broken) = match row.chain_end() {
            Some((end, head)) => self.verify_events(id, end, &head).await?,
            // Decoding the row names the value that cannot be read.
            None => (0, None),
        };
        if let Some((seq, problem)) = broken {
            let what = format!("event {seq} {problem}");
            let problem = Some(DigestProblem { event: Some(seq), what });
            return Ok(DigestReport { events, steps: 0, problem });
        }
        let expected = match row.decode() {
            Ok(stored) => u64::from(stored.run.steps),
            Err(fault) => {
                let problem = Some(self.state_problem(fault).await?);
                return Ok(DigestReport { events, steps: 0, problem });
            }
        };
        let (steps, problem) = self.verify_steps(id, expected).await?;
        Ok(DigestReport { events, steps, problem })
    }

    /// Returns the number of events that fit, and the number of the first bad event with its
    /// problem. `end` and `head` are the number and the digest of the last event by the run's row.
    async fn verify_events(
        &self,
        id: &RunId,
        end: u64,
        head: &[u8],
    ) -> Result<(u64, Option<(u64, String)>), JournalError> {
        let (mut seq, mut before, mut page) = (0, NO_PREDECESSOR.to_vec(), PAGE_MAX);
        loop {
            let rows = match self.perform_read(|| self.store().event_rows(id, seq, page)).await {
                Ok(rows) => rows,
                // Read one event at a time to find the one that cannot be read.
                Err(JournalError::Damaged { .. } | JournalError::Altered { .. }) if page > 1 => {
                    page = 1;
                    continue;
                }
                Err(JournalError::Damaged { what, .. } | JournalError::Altered { what, .. }) => {
                    return Ok((seq, Some((seq + 1, format!("cannot be read: {what}")))));
                }
                Err(error) => return Err(error),
            };
            if let Some(ChainBreak { seq, problem }) = find_chain_break(seq, Some(&before), &rows) {
                return Ok((seq - 1, Some((seq, problem.to_owned()))));
            }
            let Some(last) = rows.into_iter().next_back() else { break };
            (seq, before) = (to_unsigned(last.seq), last.row_digest);
        }
        if seq < end {
            return Ok((seq, Some((seq + 1, MISSING_EVENT.to_owned()))));
        }
        if before != head {
            return Ok((seq.saturating_sub(1), Some((seq, OTHER_LAST_EVENT.to_owned()))));
        }
        Ok((seq, None))
    }

    async fn verify_steps(
        &self,
        id: &RunId,
        expected: u64,
    ) -> Result<(u64, Option<DigestProblem>), JournalError> {
        let rows = self.perform_read(|| self.store().step_rows(id)).await?;
        let mut steps = 0;
        for row in rows {
            match decode_step(id, row) {
                Ok(step) if u64::from(step.number) == steps + 1 => steps += 1,
                Ok(_) => break,
                Err(fault) => return Ok((steps, Some(self.state_problem(fault).await?))),
            }
        }
        let missing = || {
            let what = format!("step {} of run {id} is missing", steps + 1);
            DigestProblem { event: None, what }
        };
        Ok((steps, (steps < expected).then(missing)))
    }

    /// Returns the problem of a row that does not fit, and every other fault as an error.
    async fn state_problem(&self, fault: StoreFault) -> Result<DigestProblem, JournalError> {
        match fault.into_row_problem() {
            Ok(what) => Ok(DigestProblem { event: None, what }),
            Err(fault) => Err(self.store().explain_fault(fault).await),
        }
    }
}
