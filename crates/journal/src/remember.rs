//! The memory that programs use: what runs have seen, and what people teach.

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

/// Which failures to list.
#[derive(Clone, Debug, Default)]
pub struct FailureFilter {
    /// Of this repository.
    pub scope: String,
    /// Only of this kind.
    pub category: Option<String>,
    /// Only those whose signature begins so.
    pub signature: Option<String>,
    /// How many at most; 0 for as many as a page may have.
    pub limit: u32,
    /// How many to leave out: what [`Page::next`] said.
    pub after: u64,
}

/// A failure with fixes, from a person or from another memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// The failure. Its scope is the one that it is taught for.
    pub failure: Failure,
    /// What helped.
    pub fixes: Vec<KnownFix>,
}

impl Journal {
    /// A failure, if it was seen in this repository.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn failure(
        &self,
        scope: &str,
        signature: &str,
    ) -> Result<Option<Failure>, JournalError> {
        Ok(self.known(scope, signature).await?.failure)
    }

    /// What was tried against a failure, the most trusted first; of equals the one that worked last.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn fixes(&self, scope: &str, signature: &str) -> Result<Vec<KnownFix>, JournalError> {
        let mut fixes: Vec<KnownFix> =
            self.known(scope, signature).await?.fixes.into_values().collect();
        fixes.sort_by(|a, b| {
            b.confidence.total_cmp(&a.confidence).then(b.last_worked_ms.cmp(&a.last_worked_ms))
        });
        Ok(fixes)
    }

    /// All that is known of a failure.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn known(&self, scope: &str, signature: &str) -> Result<Known, JournalError> {
        match text::is_id(signature) {
            true => {
                let scope = scope.replace('\0', " ");
                self.read(|| self.store().known(&scope, signature)).await
            }
            false => Ok(Known::default()),
        }
    }

    /// Failures, the most frequent first.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
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

    /// The repositories that something is known of, with how many failures each.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn scopes(&self) -> Result<Vec<(String, u64)>, JournalError> {
        self.read(|| self.store().scopes(PAGE_MAX)).await
    }

    /// Remembers what a person teaches, or what comes from another memory, without a run. What is known here stands, and the
    /// same lesson twice changes nothing. Secrets are taken out.
    ///
    /// # Errors
    ///
    /// When a part of it is too large or makes no sense; nothing is stored then.
    pub async fn remember(&self, scope: &str, lessons: Vec<Lesson>) -> Result<(), JournalError> {
        text::refuse_larger("the list of lessons", lessons.len(), LESSONS_MAX)?;
        let at_ms = (self.clock())();
        let entries = lessons.into_iter().map(|lesson| taught(scope, lesson, at_ms));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.write(&Remember { entries }).await
    }

    /// Forgets a failure with its fixes, or all of a repository; says how many failures those were. The events of the runs
    /// that saw them stay until the runs are forgotten.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn unlearn(&self, scope: &str, signature: Option<&str>) -> Result<u64, JournalError> {
        let clean = scope.replace('\0', " ");
        match signature.is_none_or(text::is_id) {
            true => self.write(&Unlearn { scope: &clean, signature }).await,
            false => Ok(0),
        }
    }

    /// Folds all observations of a repository anew and compares the result with what is stored.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
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
        let value =
            |known: &Known| (serde_json::json!(known.failure), serde_json::json!(known.fixes));
        let ((there, fixes_there), (here, fixes_here)) = (value(&stored), value(&folded));
        compare(&format!("failure {signature}"), &there, &here, differences);
        compare(&format!("fixes of {signature}"), &fixes_there, &fixes_here, differences);
        Ok(())
    }
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

/// What an event says to the memory.
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
            // The answer to the first commit may have been lost.
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
