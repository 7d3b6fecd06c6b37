//! Finds skills that declare the event that started the task, by its exact name.

use std::collections::HashMap;

use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::selection::SelectionReason;
use crate::task::Task;

/// Below 1, because several skills may declare the same event.
const STRENGTH: f32 = 0.95;

/// The skills that declare each event.
#[derive(Debug, Default)]
pub(crate) struct EventTriggers {
    skills: HashMap<String, Vec<usize>>,
}

impl EventTriggers {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> EventTriggers {
        let mut skills: HashMap<String, Vec<usize>> = HashMap::new();
        for (skill, document) in documents.iter().enumerate() {
            for event in &document.triggers.events {
                let waiting = skills.entry(event.clone()).or_default();
                if waiting.last() != Some(&skill) {
                    waiting.push(skill);
                }
            }
        }
        EventTriggers { skills }
    }

    /// Returns the skills that declare the task's event, in catalog order.
    pub(crate) fn find(&self, task: &Task) -> Vec<StageEvidence> {
        let Some(event) = &task.event else { return Vec::new() };
        let waiting = self.skills.get(event).map_or(&[] as &[usize], Vec::as_slice);
        let evidence = waiting.iter().map(|skill| StageEvidence {
            skill: *skill,
            strength: STRENGTH,
            reason: SelectionReason::Event { event: event.clone() },
        });
        evidence.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(events: &[&str]) -> SkillDocument<'static> {
        let mut document = SkillDocument::new("a", "a", "", "");
        document.triggers.events = events.iter().map(|event| event.to_string()).collect();
        document
    }

    #[test]
    fn an_event_finds_the_skills_that_name_it_exactly_and_each_once() {
        let events = EventTriggers::new(&[
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
