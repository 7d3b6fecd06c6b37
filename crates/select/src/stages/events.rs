//! Finds skills that declare the event that started the task, by its exact name.

use std::collections::HashMap;

use crate::document::Document;
use crate::evidence::Evidence;
use crate::selection::Reason;
use crate::task::Task;

/// Below 1, because several skills may declare the same event.
const STRENGTH: f32 = 0.95;

/// The skills that declare each event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    skills: HashMap<String, Vec<usize>>,
}

impl Events {
    pub(crate) fn new(documents: &[Document<'_>]) -> Events {
        let mut skills: HashMap<String, Vec<usize>> = HashMap::new();
        for (skill, document) in documents.iter().enumerate() {
            for event in &document.triggers.events {
                let waiting = skills.entry(event.clone()).or_default();
                if waiting.last() != Some(&skill) {
                    waiting.push(skill);
                }
            }
        }
        Events { skills }
    }

    /// Returns the skills that declare the task's event, in catalog order.
    pub(crate) fn find(&self, task: &Task) -> Vec<Evidence> {
        let Some(event) = &task.event else { return Vec::new() };
        let waiting = self.skills.get(event).map_or(&[] as &[usize], Vec::as_slice);
        let evidence = waiting.iter().map(|skill| Evidence {
            skill: *skill,
            strength: STRENGTH,
            reason: Reason::Event { event: event.clone() },
        });
        evidence.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(events: &[&str]) -> Document<'static> {
        let mut document = Document::new("a", "a", "", "");
        document.triggers.events = events.iter().map(|event| event.to_string()).collect();
        document
    }

    #[test]
    fn an_event_finds_the_skills_that_name_it_exactly_and_each_once() {
        let events = Events::new(&[
            document(&["ci-failed", "ci-failed"]),
            document(&["CI-failed"]),
            document(&["push", "ci-failed"]),
        ]);
        let find = |event: Option<&str>| -> Vec<usize> {
            let task = Task { event: event.map(str::to_owned), ..Task::default() };
            events.find(&task).into_iter().map(|found| found.skill).collect()
        };
        assert_eq!(find(Some("ci-failed")), [0, 2]);
        assert_eq!(find(Some("push")), [2]);
        assert!(find(Some("ci")).is_empty());
        assert!(find(None).is_empty());
    }
}
