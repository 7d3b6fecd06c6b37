//! Replaying the events of a run, to check that the stored state matches them.

use serde_json::{Value, json};

use crate::error::JournalError;
use crate::event::{Event, Payload};
use crate::fold::FoldedRun;
use crate::journal::Journal;
use crate::limits::{PAGE_MAX, REPLAY_ATTEMPTS_MAX};
use crate::run::{Run, RunId};
use crate::store::events::UNKNOWN;

/// The result of replaying a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayReport {
    /// The number of events that were replayed.
    pub events: u64,
    /// The number of steps the events resulted in.
    pub steps: u64,
    /// The differences between the stored and the replayed state; empty if they agree.
    pub differences: Vec<ReplayDifference>,
}

/// A difference between the stored and the replayed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayDifference {
    /// The name of the value, for instance `run.status` or `step 3.outcome`.
    pub what: String,
    /// The stored value.
    pub stored: String,
    /// The replayed value, or the reason there is none.
    pub replayed: String,
}

impl Journal {
    /// Rebuilds a run from its events and compares the result with the stored state.
    ///
    /// # Errors
    ///
    /// If there is no such run, or the store cannot be used.
    pub async fn replay_run(&self, id: &RunId) -> Result<ReplayReport, JournalError> {
        for _ in 0..REPLAY_ATTEMPTS_MAX {
            let stored = self.run(id).await?.ok_or_else(|| JournalError::unknown_run(id))?;
            let replayed = self.replay_once(&stored).await?;
            // If the run changed in the meantime, the parts that were read are not one consistent
            // state.
            if self.run(id).await?.as_ref() == Some(&stored) {
                return Ok(replayed);
            }
        }
        Err(JournalError::refused(id, "it goes on too fast to be replayed; pause it first"))
    }

    async fn replay_once(&self, stored: &Run) -> Result<ReplayReport, JournalError> {
        let mut folded = FoldedRun::default();
        let mut differences = Vec::new();
        let events = self.fold_events(stored, &mut folded, &mut differences).await?;
        let steps = folded.steps.len() as u64;
        if events < stored.seq {
            let (there, here) = (stored.seq.to_string(), events.to_string());
            differences.push(ReplayDifference {
                what: "run.seq".into(),
                stored: there,
                replayed: here,
            });
            return Ok(ReplayReport { events, steps, differences });
        }
        let there = self.steps(&stored.id).await?;
        let has_lease = self.lease_until(&stored.id).await?.is_some();
        compare_values("run", &json!(stored), &json!(folded.run), &mut differences);
        for at in 0..there.len().max(folded.steps.len()) {
            let (there, here) = (there.get(at), folded.steps.get(at));
            compare_values(
                &format!("step {}", at + 1),
                &json!(there),
                &json!(here),
                &mut differences,
            );
        }
        differences.extend(lease_difference(stored, has_lease));
        Ok(ReplayReport { events, steps, differences })
    }

    /// Folds events up to the first that does not fit, and returns the number of folded events.
    async fn fold_events(
        &self,
        stored: &Run,
        folded: &mut FoldedRun,
        differences: &mut Vec<ReplayDifference>,
    ) -> Result<u64, JournalError> {
        let mut events = 0;
        loop {
            let page = self.events(&stored.id, events, PAGE_MAX).await?;
            if page.is_empty() {
                return Ok(events);
            }
            for event in &page {
                differences.extend(unreadable_event(event));
                if let Err(error) = folded.apply(event) {
                    differences.push(fold_difference(event, error.to_string()));
                    return Ok(events);
                }
                events += 1;
            }
        }
    }
}

fn unreadable_event(event: &Event) -> Option<ReplayDifference> {
    let Payload::Note { name, .. } = &event.payload else { return None };
    let name = name.strip_prefix(UNKNOWN)?;
    Some(ReplayDifference {
        what: format!("event {}", event.seq),
        stored: format!("{name}, version {}", event.v),
        replayed: "cannot be told: this version of `rep` cannot read this event".to_owned(),
    })
}

fn fold_difference(event: &Event, why: String) -> ReplayDifference {
    ReplayDifference {
        what: format!("event {}", event.seq),
        stored: event.payload.name().to_owned(),
        replayed: why,
    }
}

/// A run that a worker holds has a lease, and no other run has one.
fn lease_difference(run: &Run, has_lease: bool) -> Option<ReplayDifference> {
    let describe = |has_lease: bool| if has_lease { "a lease" } else { "no lease" }.to_owned();
    let is_held = run.worker.is_some();
    (is_held != has_lease).then(|| ReplayDifference {
        what: "the run's lease".to_owned(),
        stored: describe(has_lease),
        replayed: describe(is_held),
    })
}

/// Compares two values, field by field if both are objects. A field that only one of them has
/// differs from null.
pub(crate) fn compare_values(
    what: &str,
    stored: &Value,
    replayed: &Value,
    differences: &mut Vec<ReplayDifference>,
) {
    match (stored, replayed) {
        (Value::Object(stored), Value::Object(replayed)) => {
            let only_replayed = replayed.keys().filter(|key| !stored.contains_key(*key));
            for key in stored.keys().chain(only_replayed) {
                let there = stored.get(key).unwrap_or(&Value::Null);
                let here = replayed.get(key).unwrap_or(&Value::Null);
                if there != here {
                    differences.push(value_difference(&format!("{what}.{key}"), there, here));
                }
            }
        }
        (there, here) if there != here => differences.push(value_difference(what, there, here)),
        _ => {}
    }
}

fn value_difference(what: &str, stored: &Value, replayed: &Value) -> ReplayDifference {
    ReplayDifference {
        what: what.to_owned(),
        stored: stored.to_string(),
        replayed: replayed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_only_the_replayed_value_has_is_a_difference() {
        let mut differences = Vec::new();
        let stored = json!({ "same": 1, "gone": 2, "null": null });
        let replayed = json!({ "same": 1, "more": 3, "none": null });
        compare_values("run", &stored, &replayed, &mut differences);
        let told: Vec<_> = differences
            .iter()
            .map(|one| (one.what.as_str(), one.stored.as_str(), one.replayed.as_str()))
            .collect();
        assert_eq!(told, [("run.gone", "2", "null"), ("run.more", "null", "3")]);
    }
}
