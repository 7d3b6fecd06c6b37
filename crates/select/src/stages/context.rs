//! Boosts skills by the conversation, earlier uses and the agent, each with its reason. The boosts are small:
//! they help skills that nearly fit, and do nothing for those that do not.

use crate::index::SkillIndex;
use crate::model::SelectionModel;
use crate::selection::SelectionReason;
use crate::task::Task;

/// The maximum boost from the conversation.
const CONVERSATION: f32 = 0.08;
/// The similarity to the conversation at which the boost starts, and at which it is at its maximum.
const CLOSENESS: [f32; 2] = [0.25, 0.65];
/// The number of bytes of the conversation that are read, from its end.
const CONVERSATION_BYTES: usize = 4000;
/// The boost per doubling of earlier uses, and the maximum boost.
const USAGE: [f32; 2] = [0.01, 0.05];
/// The boost for a skill that is made for the current agent.
const AGENT: f32 = 0.05;
/// The minimum score of a skill that is boosted.
pub(crate) const FIT_MIN: f32 = 0.3;

/// The context of a task, encoded once.
pub(crate) struct SelectionContext<'a> {
    task: &'a Task,
    conversation: Option<crate::vectors::TextVector>,
}

impl<'a> SelectionContext<'a> {
    pub(crate) fn new(task: &'a Task, model: &SelectionModel) -> Self {
        let mut recent = String::new();
        for said in task.conversation.iter().rev() {
            let room = CONVERSATION_BYTES.saturating_sub(recent.len());
            recent.push_str(&said[said.ceil_char_boundary(said.len().saturating_sub(room))..]);
            recent.push('\n');
            if room == 0 {
                break;
            }
        }
        let is_said = !recent.trim().is_empty();
        SelectionContext { task, conversation: is_said.then(|| model.vectors().encode(&recent)) }
    }

    /// Returns the boosts for a skill, with their reasons.
    pub(crate) fn find_boosts(
        &self,
        skill: usize,
        id: &str,
        agent: Option<&str>,
        index: &SkillIndex,
    ) -> Vec<(f32, SelectionReason)> {
        let mut found = Vec::new();
        if let Some(conversation) = &self.conversation {
            let [from, full] = CLOSENESS;
            let share = (index.closeness(skill, conversation) - from) / (full - from);
            let boost = CONVERSATION * share.clamp(0.0, 1.0);
            if boost > 0.0 {
                found.push((boost, SelectionReason::Conversation { boost }));
            }
        }
        if let Some(times) = self.task.usage.get(id).copied().filter(|times| *times > 0) {
            let doublings = libm::log2f(times as f32 + 1.0);
            let boost = (USAGE[0] * doublings).min(USAGE[1]);
            found.push((boost, SelectionReason::Usage { times, boost }));
        }
        if let (Some(wanted), Some(agent)) = (agent, &self.task.agent)
            && wanted == agent
        {
            found.push((AGENT, SelectionReason::Agent { agent: agent.clone(), boost: AGENT }));
        }
        found
    }
}
