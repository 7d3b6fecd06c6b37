//! Combines the stages that use what skills declare: hints, events, paths, phrases, patterns and negative
//! phrases.

use super::events::Events;
use super::hints::Hints;
use super::negatives::Negatives;
use super::paths::Paths;
use super::patterns::Patterns;
use super::phrases::Phrases;
use crate::document::Document;
use crate::evidence::Evidence;
use crate::selection::Unresolved;
use crate::settings::{Stage, Stages};
use crate::task::Task;

/// The compiled triggers of a catalog.
#[derive(Debug)]
pub(crate) struct Triggers {
    hints: Hints,
    events: Events,
    paths: Paths,
    phrases: Phrases,
    patterns: Patterns,
    negatives: Negatives,
}

/// The triggers that fired for a task.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    /// Evidence for skills.
    pub(crate) pro: Vec<Evidence>,
    /// Evidence against skills.
    pub(crate) contra: Vec<Evidence>,
    /// Names in hints that do not identify a single skill.
    pub(crate) unresolved: Vec<Unresolved>,
}

impl Triggers {
    pub(crate) fn new(documents: &[Document<'_>]) -> Self {
        Triggers {
            hints: Hints::new(documents),
            events: Events::new(documents),
            paths: Paths::new(documents),
            phrases: Phrases::new(documents),
            patterns: Patterns::new(documents),
            negatives: Negatives::new(documents),
        }
    }

    /// Iterates over triggers that cannot be used: the index of the skill, the trigger and the reason.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let globs = self.paths.problems().iter();
        let globs = globs.map(|found| (found.skill, found.glob.as_str(), found.message.as_str()));
        let patterns = self.patterns.problems().iter();
        globs.chain(
            patterns.map(|found| (found.skill, found.pattern.as_str(), found.message.as_str())),
        )
    }

    pub(crate) fn find(&self, task: &Task, stages: Stages) -> Fired {
        let mut fired = Fired::default();
        if stages.has(Stage::Hints) {
            (fired.pro, fired.unresolved) = self.hints.find(task);
        }
        if stages.has(Stage::Events) {
            fired.pro.extend(self.events.find(task));
        }
        if stages.has(Stage::Paths) {
            fired.pro.extend(self.paths.find(task));
        }
        if stages.has(Stage::Phrases) {
            fired.pro.extend(self.phrases.find(task));
        }
        if stages.has(Stage::Patterns) {
            fired.pro.extend(self.patterns.find(task));
        }
        if stages.has(Stage::Negatives) {
            fired.contra = self.negatives.find(task);
        }
        fired
    }
}
