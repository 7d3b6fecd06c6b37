//! Finds negative triggers: phrases by which a skill rules itself out.

use super::phrases::{PhraseSet, longest_phrase};
use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::selection::SelectionReason;
use crate::task::Task;

/// Below 1, because a task may be about several things.
const STRENGTH: f32 = 0.9;

/// The negative phrases of all skills.
#[derive(Debug)]
pub(crate) struct NegativePhrases(PhraseSet);

impl NegativePhrases {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> NegativePhrases {
        NegativePhrases(PhraseSet::new(documents, |document| &document.triggers.not))
    }

    /// Returns the skills that the task rules out, in catalog order. The strength counts against the skill;
    /// the reason is the longest phrase.
    pub(crate) fn find(&self, task: &Task) -> Vec<StageEvidence> {
        let found = self.0.find(&task.text);
        let evidence = found.chunk_by(|a, b| a.skill == b.skill).filter_map(|found| {
            let longest = longest_phrase(found)?;
            let reason = SelectionReason::Not { phrase: longest.written.to_owned() };
            Some(StageEvidence { skill: longest.skill, strength: STRENGTH, reason })
        });
        evidence.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_under_not_speaks_against_its_skill_once() {
        let mut document = SkillDocument::new("a", "a", "", "");
        document.triggers.not = vec!["Excel".to_owned(), "pivot-table".to_owned()];
        document.triggers.keywords = vec!["table".to_owned()];
        let negatives = NegativePhrases::new(&[SkillDocument::new("b", "b", "", ""), document]);
        let expect = StageEvidence {
            skill: 1,
            strength: STRENGTH,
            reason: SelectionReason::Not { phrase: "pivot-table".to_owned() },
        };
        assert_eq!(negatives.find(&Task::new("two pivot tables in EXCEL")), [expect]);
        assert_eq!(negatives.find(&Task::new("an excellent table")), []);
    }
}
