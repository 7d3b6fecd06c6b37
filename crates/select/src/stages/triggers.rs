//! Combines the stages that use what skills declare: hints, events, paths, phrases, patterns and negative
//! phrases.

use super::events::EventTriggers;
use super::hints::NameHints;
use super::negatives::NegativePhrases;
use super::paths::PathTriggers;
use super::patterns::PatternTriggers;
use super::phrases::PhraseTriggers;
use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::selection::UnresolvedHint;
use crate::settings::{SelectionStage, StageSet};
use crate::task::Task;

/// The compiled triggers of a catalog.
#[derive(Debug)]
pub(crate) struct CompiledTriggers {
    hints: NameHints,
    events: EventTriggers,
    paths: PathTriggers,
    phrases: PhraseTriggers,
    patterns: PatternTriggers,
    negatives: NegativePhrases,
}

/// The triggers that fired for a task.
#[derive(Debug, Default)]
pub(crate) struct FiredTriggers {
    /// Evidence for skills.
    pub(crate) pro: Vec<StageEvidence>,
    /// Evidence against skills.
    pub(crate) contra: Vec<StageEvidence>,
    /// Names in hints that do not identify a single skill.
    pub(crate) unresolved: Vec<UnresolvedHint>,
}

impl CompiledTriggers {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> Self {
        CompiledTriggers {
            hints: NameHints::new(documents),
            events: EventTriggers::new(documents),
            paths: PathTriggers::new(documents),
            phrases: PhraseTriggers::new(documents),
            patterns: PatternTriggers::new(documents),
            negatives: NegativePhrases::new(documents),
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

    pub(crate) fn find(&self, task: &Task, stages: StageSet) -> FiredTriggers {
        let mut fired = FiredTriggers::default();
        if stages.has(SelectionStage::Hints) {
            (fired.pro, fired.unresolved) = self.hints.find(task);
        }
        if stages.has(SelectionStage::Events) {
            fired.pro.extend(self.events.find(task));
        }
        if stages.has(SelectionStage::Paths) {
            fired.pro.extend(self.paths.find(task));
        }
        if stages.has(SelectionStage::Phrases) {
            fired.pro.extend(self.phrases.find(task));
        }
        if stages.has(SelectionStage::Patterns) {
            fired.pro.extend(self.patterns.find(task));
        }
        if stages.has(SelectionStage::Negatives) {
            fired.contra = self.negatives.find(task);
        }
        fired
    }
}
