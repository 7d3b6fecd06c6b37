//! The memory operations of a journal: failures that runs observed, and lessons that people teach.

use crate::error::JournalError;
use crate::event::{Event, Payload};
use crate::journal::{Journal, Page, page};
use crate::limits::{LESSONS_MAX, PAGE_MAX};
use crate::memory::{Failure, Known, KnownFix, Observation};
use crate::replay::{Difference, compare};
use crate::store::memory::Entry;
use crate::store::{Fault, Tx};
use crate::text;
use crate::write::{Done, Operation, Work};

/// Selects the failures to list.
#[derive(Clone, Debug, Default)]
pub struct FailureFilter {
    /// Only failures of this repository.
    pub scope: String,
    pub category: Option<String>,
    /// Only failures whose signature begins with this.
    pub signature: Option<String>,
    /// The maximum number of failures; 0 for the maximum page size.
    pub limit: u32,
    /// The number of failures to skip, as returned in [`Page::next`].
    pub after: u64,
}

/// A failure with fixes, from a person or imported from another memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// The failure. Its scope is replaced by the one it is taught for.
    pub failure: Failure,
    pub fixes: Vec<KnownFix>,
}

impl Journal {
    /// Returns a failure, or `None` if it was not observed in this repository.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn failure(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<Option<Failure>, JournalError> {
        Ok(self.known(scope, signature).await?.failure)
    }

    /// Returns the known fixes of a failure, by descending confidence; among equals, the one that
    /// worked last comes first.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn fixes(&self, scope: &str, signature: &str) -> Result<Vec<KnownFix>, JournalError> {
        let mut fixes: Vec<KnownFix> =
            self.known(scope, signature).await?.fixes.into_values().collect();
        fixes.sort_by(|a, b| {
            b.confidence.total_cmp(&a.confidence).then(b.last_worked_ms.cmp(&a.last_worked_ms))
        });
        Ok(fixes)
    }

    /// Returns a failure with its fixes.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn known(&self, scope: &str, signature: &str) -> Result<Known, JournalError> {
        if !text::is_id(signature) {
            return Ok(Known::default());
        }
        let scope = scope.replace('\0', " ");
        self.read(|| self.store().known(&scope, signature)).await
    }

    /// Lists failures, the most frequent first.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn failures(&self, filter: &FailureFilter) -> Result<Page<Failure>, JournalError> {
        let limit = page(filter.limit);
        let clean = FailureFilter {
            scope: filter.scope.replace('\0', " "),
            category: filter.category.as_deref().map(text::name),
            signature: filter.signature.as_deref().map(text::name),
            ..filter.clone()
        };
        let mut items = self.read(|| self.store().failures(&clean, limit + 1)).await?;
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = more.then(|| filter.after + u64::from(limit));
        Ok(Page { items, next })
    }

    /// Lists the repositories in the memory, with the number of failures of each.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn scopes(&self) -> Result<Vec<(String, u64)>, JournalError> {
        self.read(|| self.store().scopes(PAGE_MAX)).await
    }

    /// Stores lessons from a person or another memory, without a run. Existing values win, and
    /// importing the same lesson twice changes nothing. Secrets are redacted.
    ///
    /// # Errors
    ///
    /// If a value is too large or invalid; nothing is stored then.
    pub async fn remember(&self, scope: &str, lessons: Vec<Lesson>) -> Result<(), JournalError> {
        text::refuse_larger("the list of lessons", lessons.len(), LESSONS_MAX)?;
        let at_ms = (self.clock())();
        let entries = lessons.into_iter().map(|lesson| taught(scope, lesson, at_ms));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.write(&Remember { entries }).await
    }

    /// Deletes a failure with its fixes, or all failures of a repository, and returns the number of
    /// failures. The events of the runs that observed them stay until the runs are deleted.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn unlearn(&self, scope: &str, signature: Option<&str>) -> Result<u64, JournalError> {
        let clean = scope.replace('\0', " ");
        if !signature.is_none_or(text::is_id) {
            return Ok(0);
        }
        self.write(&Unlearn { scope: &clean, signature }).await
    }

    /// Rebuilds the memory of a repository from its observations and compares it with the stored
    /// one.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn replay_memory(&self, scope: &str) -> Result<Vec<Difference>, JournalError> {
        let mut differences = Vec::new();
        let mut filter = FailureFilter { scope: scope.to_owned(), ..FailureFilter::default() };
        loop {
            let page = self.failures(&filter).await?;
            for failure in &page.items {
                self.replay_failure(failure, &mut differences).await?;
            }
            match page.next {
                Some(next) => filter.after = next,
                None => return Ok(differences),
            }
        }
    }

    async fn replay_failure(
        &self,
        failure: &Failure,
        differences: &mut Vec<Difference>,
    ) -> Result<(), JournalError> {
        let (scope, signature) = (&failure.scope, &failure.signature);
        let mut folded = Known::default();
        let mut last = 0;
        loop {
            let store = self.store();
            let page = self.read(|| store.observations(scope, signature, last, PAGE_MAX)).await?;
            let Some((id, ..)) = page.last() else { break };
            last = *id;
            for (_, at_ms, observation) in &page {
                folded.apply(scope, signature, observation, *at_ms);
            }
        }
        let stored = self.known(scope, signature).await?;
        let (there, fixes_there) = known_as_json(&stored);
        let (here, fixes_here) = known_as_json(&folded);
        compare(&format!("failure {signature}"), &there, &here, differences);
        compare(&format!("fixes of {signature}"), &fixes_there, &fixes_here, differences);
        Ok(())
    }
}

/// Returns the failure and its fixes as JSON.
fn known_as_json(known: &Known) -> (serde_json::Value, serde_json::Value) {
    (serde_json::json!(known.failure), serde_json::json!(known.fixes))
}

fn taught(scope: &str, lesson: Lesson, at_ms: u64) -> Result<Entry, JournalError> {
    let Lesson { mut failure, mut fixes } = lesson;
    failure.scope = scope.to_owned();
    text::fit_failure(
        &mut failure.scope,
        &mut failure.category,
        &mut failure.tool,
        &mut failure.example,
    )?;
    if !text::is_id(&failure.signature) {
        let why = format!(
            "`{}` is no signature: it looks like `9f2c41d07ab3e655`",
            text::name(&failure.signature)
        );
        return Err(JournalError::NotRemembered { why });
    }
    for known in &mut fixes {
        text::fit_fix(&mut known.fix)?;
        known.id = known.fix.id();
        text::fit_record(known);
    }
    let (scope, signature) = (failure.scope.clone(), failure.signature.clone());
    let observation = Observation::Taught { failure, fixes };
    Ok(Entry { scope, signature, at_ms, run: None, observation })
}

/// Converts an event to a memory entry; `None` if it contains no observation.
pub(crate) fn entry_of(event: &Event) -> Option<Entry> {
    let (scope, signature, observation) = match &event.payload {
        Payload::FailureSeen { scope, signature, category, code, tool, example } => {
            let observation = Observation::Seen {
                category: category.clone(),
                code: code.clone(),
                tool: tool.clone(),
                example: example.clone(),
            };
            (scope, signature, observation)
        }
        Payload::FixTried { scope, signature, fix, outcome, reason } => {
            let observation = Observation::Tried {
                fix: fix.clone(),
                outcome: *outcome,
                reason: reason.clone(),
                run: Some(event.run.clone()),
            };
            (scope, signature, observation)
        }
        _ => return None,
    };
    let (scope, signature) = (scope.clone(), signature.clone());
    Some(Entry { scope, signature, at_ms: event.at_ms, run: Some(event.run.clone()), observation })
}

struct Remember {
    entries: Vec<Entry>,
}

impl Operation for Remember {
    type Out = ();

    async fn perform(&self, tx: &mut Tx, work: &Work<'_>) -> Result<Done<()>, Fault> {
        tx.lock_memory().await?;
        for entry in &self.entries {
            // Skip entries that are stored already: the acknowledgement of the first commit may
            // have been lost.
            if !tx.has_memory(entry, work.batch).await? {
                tx.observe(entry, work.batch).await?;
            }
        }
        Ok(Done::plain(()))
    }
}

struct Unlearn<'a> {
    scope: &'a str,
    signature: Option<&'a str>,
}

impl Operation for Unlearn<'_> {
    type Out = u64;

    async fn perform(&self, tx: &mut Tx, _: &Work<'_>) -> Result<Done<u64>, Fault> {
        tx.lock_memory().await?;
        Ok(Done::plain(tx.delete_known(self.scope, self.signature).await?))
    }
}
