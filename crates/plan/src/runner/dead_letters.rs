//! Creates a dead letter for a run that failed or waits, and closes it when the run ends in another
//! way.

use repertoire_journal::{
    Command, DeadLetter, JournalError, LetterFilter, LetterStatus, Payload, Run, RunStatus,
};
use serde_json::json;

use super::{PlanRunner, all_events};
use crate::dead_letter::build_letter;
use crate::request::PlanRequest;
use crate::state::PlanState;

impl PlanRunner {
    /// Creates or closes the dead letter of a run that has stopped. Since the run is over, an error
    /// is only recorded as a note.
    pub(super) async fn settle_letter(&self, run: &Run, by: &str) {
        let request = serde_json::from_value::<PlanRequest>(run.request.clone()).ok();
        let improve = request.and_then(|request| request.improve);
        let Some(scope) = improve.filter(|improve| improve.letters).map(|improve| improve.scope)
        else {
            return;
        };
        let settled = match run.status {
            RunStatus::Failed | RunStatus::Waiting => self.create_letter(run, &scope, by).await,
            RunStatus::Completed => {
                let why = "the run is complete";
                self.close_letters(run, &scope, LetterStatus::Resolved, by, why).await
            }
            RunStatus::Cancelled => {
                let why = "the run was cancelled";
                self.close_letters(run, &scope, LetterStatus::Abandoned, by, why).await
            }
            _ => Ok(()),
        };
        if let Err(error) = settled {
            let data = json!({ "reason": error.to_string() });
            let note = Payload::Note { name: "letter_failed".to_owned(), data };
            // If the journal cannot be written either, there is no other place to report the error.
            drop(self.journal.order(&run.id, Command::Event(note)).await);
        }
    }

    async fn create_letter(&self, run: &Run, scope: &str, by: &str) -> Result<(), JournalError> {
        let state = PlanState::replay(&all_events(&self.journal, run).await?);
        match build_letter(run, &state, scope, by) {
            Some(new) => self.journal.bury(new).await.map(drop),
            None => Ok(()),
        }
    }

    async fn close_letters(
        &self,
        run: &Run,
        scope: &str,
        to: LetterStatus,
        by: &str,
        why: &str,
    ) -> Result<(), JournalError> {
        for letter in self.open_letters(run, scope).await? {
            self.journal.set_letter_status(&letter.id, to, by, why).await?;
        }
        Ok(())
    }

    async fn open_letters(&self, run: &Run, scope: &str) -> Result<Vec<DeadLetter>, JournalError> {
        let statuses = LetterStatus::ALL.iter().copied().filter(|status| status.is_open());
        let mut filter = LetterFilter {
            scope: Some(scope.to_owned()),
            statuses: statuses.collect(),
            ..LetterFilter::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self.journal.list_letters(&filter).await?;
            let mine = page.items.into_iter().filter(|letter| letter.run.as_ref() == Some(&run.id));
            found.extend(mine);
            match page.next {
                Some(next) => filter.after = next,
                None => return Ok(found),
            }
        }
    }
}
