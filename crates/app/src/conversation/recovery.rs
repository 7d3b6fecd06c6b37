//! Recovery of a conversation whose last run was interrupted.

use std::fmt::Write as _;

use repertoire_agent::conversation::Conversation;
use repertoire_agent::{AgentEvent, EventKind, System};
use repertoire_model::{ModelMessage, UserPart};
use repertoire_skill::activate::{ActivationRequest, ResourceListingMode};

use super::state::UnfinishedTurn;
use crate::limits::{INTERRUPTED_CALLS_MAX, INTERRUPTED_CHARS_MAX};

/// The state of a run whose process ended before the run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedRun {
    /// The user's prompt.
    pub prompt: String,
    /// True if the conversation contains the prompt. It does not if the process ended before the
    /// first call of the model.
    pub prompt_is_kept: bool,
    /// The agent's answers since the conversation was last recorded.
    pub said: String,
    /// The tool calls since then.
    pub calls: Vec<String>,
}

impl InterruptedRun {
    /// Returns a note for the next run about everything the conversation does not contain; `None`
    /// if it is complete.
    pub fn resume_note(&self) -> Option<String> {
        let mut out = String::new();
        if !self.prompt_is_kept {
            let _ = write!(out, " The request was:\n{}\n", self.prompt);
        }
        if !self.said.is_empty() {
            let _ = write!(out, " You had said:\n{}\n", self.said);
        }
        if !self.calls.is_empty() {
            let calls = self.calls.join("\n");
            let _ = write!(out, " You had called, with effects that may remain:\n{calls}\n");
        }
        if out.is_empty() {
            return None;
        }
        Some(format!(
            "[The last run was interrupted before it ended.{}]",
            out.trim_end_matches('\n')
        ))
    }
}

/// Determines the state of the last run, and restores the skills it had loaded to the ledger.
pub(super) fn recover_run(
    system: &System,
    turn: UnfinishedTurn,
    conversation: &mut Conversation,
) -> InterruptedRun {
    let (before, since) = turn.events.split_at(turn.events_before_saved);
    let prompt_is_kept = contains_prompt(conversation, &turn.prompt);
    if prompt_is_kept {
        restore_skills(system, before, conversation);
    }
    let mut said = String::new();
    let mut calls = Vec::new();
    for event in since {
        match &event.kind {
            EventKind::Answer { text, .. } => said.push_str(text),
            EventKind::ToolCall { tool, subject, .. } => calls.push(format!("{tool} {subject}")),
            _ => {}
        }
    }
    calls.truncate(INTERRUPTED_CALLS_MAX);
    InterruptedRun {
        prompt: turn.prompt,
        prompt_is_kept,
        said: said.chars().take(INTERRUPTED_CHARS_MAX).collect(),
        calls,
    }
}

/// Returns true if the prompt is the last text message of the user.
fn contains_prompt(conversation: &Conversation, prompt: &str) -> bool {
    let mut messages = conversation.messages.iter().rev();
    messages.find_map(|message| ends_with_prompt(message, prompt)).unwrap_or(false)
}

/// Returns `None` for a message without text of the user.
fn ends_with_prompt(message: &ModelMessage, prompt: &str) -> Option<bool> {
    match message {
        ModelMessage::User { content } => content.iter().rev().find_map(|part| match part {
            UserPart::Text { text } => Some(text.ends_with(prompt)),
            UserPart::ToolResult(_) => None,
        }),
        _ => None,
    }
}

/// Restores skills to the ledger from the events. A run writes its ledger when it ends; until then
/// only its events show which skills it has loaded. Skills loaded after the conversation was last
/// recorded are left out, since their text is not in it.
fn restore_skills(system: &System, events: &[AgentEvent], conversation: &mut Conversation) {
    let catalog = system.catalog();
    let config = system.config();
    for event in events {
        let EventKind::SkillLoaded { skill, digest, already: false, .. } = &event.kind else {
            continue;
        };
        // A skill that has changed since is loaded again when it is needed.
        let same = |entry: &&repertoire_skill::catalog::CatalogEntry| {
            entry.skill.digest().to_string() == *digest
        };
        let Some(entry) = catalog.get(skill).filter(same) else { continue };
        let request = ActivationRequest {
            budget: config.skill_budget,
            listing: ResourceListingMode::Listed,
            references: config.references,
            session_id: Some(&conversation.id),
            ..ActivationRequest::default()
        };
        conversation.ledger.activate(entry, &request, event.at_ms);
    }
}
