//! The memory operations of a journal: failures that runs observed, and lessons that people teach.

use std::collections::BTreeSet;

use crate::error::JournalError;
use crate::event::{Event, Payload};
use crate::journal::{Journal, JournalPage, page};
use crate::limits::{LESSONS_MAX, PAGE_MAX};
use crate::memory::{FailureKnowledge, KnownFailure, KnownFix, MemoryObservation};
use crate::replay::{ReplayDifference, compare_values};
use crate::sanitise;
use crate::store::memory::MemoryEntry;
use crate::store::{StoreFault, StoreTx};
use crate::transaction::{OperationContext, OperationResult, StoreOperation};

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
    /// The number of failures to skip, as returned in [`JournalPage::next`].
    pub after: u64,
}

/// A failure with fixes, from a person or imported from another memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryLesson {
    /// The failure. Its scope is replaced by the one it is taught for.
    pub failure: KnownFailure,
    pub fixes: Vec<KnownFix>,
}

impl Journal {
    /// Returns a failure, or `None` if it was not observed in this repository.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn find_failure(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<Option<KnownFailure>, JournalError> {
        Ok(self.known(scope, signature).await?.failure)
    }

    /// Returns the known fixes of a failure, by descending confidence; among equals, the one that
    /// worked last comes first.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_fixes(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<Vec<KnownFix>, JournalError> {
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
    pub async fn known(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<FailureKnowledge, JournalError> {
        if !sanitise::is_id(signature) {
            return Ok(FailureKnowledge::default());
        }
        let scope = scope.replace('\0', " ");
        self.perform_read(|| self.store().known(&scope, signature)).await
    }

    /// Lists failures, the most frequent first.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_failures(
        &self,
        filter: &FailureFilter,
    ) -> Result<JournalPage<KnownFailure>, JournalError> {
        let limit = page(filter.limit);
        let clean = FailureFilter {
            scope: filter.scope.replace('\0', " "),
            category: filter.category.as_deref().map(sanitise::name),
            signature: filter.signature.as_deref().map(sanitise::name),
            ..filter.clone()
        };
        let mut items = self.perform_read(|| self.store().list_failures(&clean, limit + 1)).await?;
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = more.then(|| filter.after + u64::from(limit));
        Ok(JournalPage { items, damaged: Vec::new(), next })
    }

    /// Lists the repositories in the memory, with the number of failures of each.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn list_scopes(&self) -> Result<Vec<(String, u64)>, JournalError> {
        self.perform_read(|| self.store().list_scopes(PAGE_MAX)).await
    }

    /// Stores lessons from a person or another memory, without a run. Existing values win, and
    /// importing the same lesson twice changes nothing. Secrets are redacted.
    ///
    /// # Errors
    ///
    /// If a value is too large or invalid; nothing is stored then.
    pub async fn store_lessons(
        &self,
        scope: &str,
        lessons: Vec<MemoryLesson>,
    ) -> Result<(), JournalError> {
        sanitise::refuse_larger("the list of lessons", lessons.len(), LESSONS_MAX)?;
        let at_ms = (self.clock())();
        let entries = lessons.into_iter().map(|lesson| lesson_entry(scope, lesson, at_ms));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.perform_write(&RememberOperation { entries }).await
    }

    /// Deletes a failure with its fixes, or all failures of a repository, and returns the number of
    /// failures. The events of the runs that observed them stay until the runs are deleted.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn delete_failures(
        &self,
        scope: &str,
        signature: Option<&str>,
    ) -> Result<u64, JournalError> {
        let clean = scope.replace('\0', " ");
        if !signature.is_none_or(sanitise::is_id) {
            return Ok(0);
        }
        self.perform_write(&UnlearnOperation { scope: &clean, signature }).await
    }

    /// Rebuilds the memory of a repository from its observations and compares it with the stored
    /// one.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn replay_memory(&self, scope: &str) -> Result<Vec<ReplayDifference>, JournalError> {
        let mut differences = Vec::new();
        for signature in self.signatures_of(scope).await? {
            self.replay_failure(scope, &signature, &mut differences).await?;
        }
        Ok(differences)
    }

    /// Returns the signatures of all failures and of all observations of a repository.
    async fn signatures_of(&self, scope: &str) -> Result<BTreeSet<String>, JournalError> {
        let observed = self.perform_read(|| self.store().list_observed_signatures(scope)).await?;
        let mut signatures: BTreeSet<String> = observed.into_iter().collect();
        let mut filter = FailureFilter { scope: scope.to_owned(), ..FailureFilter::default() };
        loop {
            let page = self.list_failures(&filter).await?;
            signatures.extend(page.items.into_iter().map(|failure| failure.signature));
            match page.next {
                Some(next) => filter.after = next,
                None => return Ok(signatures),
            }
        }
    }

    async fn replay_failure(
        &self,
        scope: &str,
        signature: &str,
        differences: &mut Vec<ReplayDifference>,
    ) -> Result<(), JournalError> {
        let mut folded = FailureKnowledge::default();
        let mut last = 0;
        loop {
            let store = self.store();
            let page = self
                .perform_read(|| store.list_observations(scope, signature, last, PAGE_MAX))
                .await?;
            let Some((id, ..)) = page.last() else { break };
            last = *id;
            for (_, at_ms, observation) in &page {
                folded.apply(scope, signature, observation, *at_ms);
            }
        }
        let stored = self.known(scope, signature).await?;
        let (there, fixes_there) = known_as_json(&stored);
        let (here, fixes_here) = known_as_json(&folded);
        compare_values(&format!("failure {signature}"), &there, &here, differences);
        compare_values(&format!("fixes of {signature}"), &fixes_there, &fixes_here, differences);
        Ok(())
    }
}

/// Returns the failure and its fixes as JSON.
fn known_as_json(known: &FailureKnowledge) -> (serde_json::Value, serde_json::Value) {
    (serde_json::json!(known.failure), serde_json::json!(known.fixes))
}

fn lesson_entry(
    scope: &str,
    lesson: MemoryLesson,
    at_ms: u64,
) -> Result<MemoryEntry, JournalError> {
    let MemoryLesson { mut failure, mut fixes } = lesson;
    failure.scope = scope.to_owned();
    sanitise::fit_failure(
        &mut failure.scope,
        &mut failure.category,
        &mut failure.tool,
        &mut failure.example,
    )?;
    if !sanitise::is_id(&failure.signature) {
        let why = format!(
            "`{}` is no signature: it looks like `9f2c41d07ab3e655`",
            sanitise::name(&failure.signature)
        );
        return Err(JournalError::NotRemembered { why });
    }
    for known in &mut fixes {
        sanitise::fit_fix(&mut known.fix)?;
        known.id = known.fix.id();
        sanitise::fit_record(known);
    }
    let (scope, signature) = (failure.scope.clone(), failure.signature.clone());
    let observation = MemoryObservation::Taught { failure, fixes };
    Ok(MemoryEntry { scope, signature, at_ms, run: None, observation })
}

/// Converts an event to a memory entry; `None` if it contains no observation.
pub(crate) fn event_entry(event: &Event) -> Option<MemoryEntry> {
    let (scope, signature, observation) = match &event.payload {
        Payload::FailureSeen { scope, signature, category, code, tool, example } => {
            let observation = MemoryObservation::Seen {
                category: category.clone(),
                code: code.clone(),
                tool: tool.clone(),
                example: example.clone(),
            };
            (scope, signature, observation)
        }
        Payload::FixTried { scope, signature, fix, outcome, reason } => {
            let observation = MemoryObservation::Tried {
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
    Some(MemoryEntry {
        scope,
        signature,
        at_ms: event.at_ms,
        run: Some(event.run.clone()),
        observation,
    })
}

struct RememberOperation {
    entries: Vec<MemoryEntry>,
}

impl StoreOperation for RememberOperation {
    type Out = ();

    async fn perform(
        &self,
        tx: &mut StoreTx,
        work: &OperationContext<'_>,
    ) -> Result<OperationResult<()>, StoreFault> {
        tx.lock_memory().await?;
        for entry in &self.entries {
            // Skip entries that are stored already: the acknowledgement of the first commit may
            // have been lost.
            if !tx.has_memory(entry, work.batch).await? {
                tx.store_observation(entry, work.batch).await?;
            }
        }
        Ok(OperationResult::without_receipt(()))
    }
}

struct UnlearnOperation<'a> {
    scope: &'a str,
    signature: Option<&'a str>,
}

impl StoreOperation for UnlearnOperation<'_> {
    type Out = u64;

    async fn perform(
        &self,
        tx: &mut StoreTx,
        _: &OperationContext<'_>,
    ) -> Result<OperationResult<u64>, StoreFault> {
        tx.lock_memory().await?;
        Ok(OperationResult::without_receipt(tx.delete_known(self.scope, self.signature).await?))
    }
}
