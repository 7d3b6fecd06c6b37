//! Taking up a conversation whose last run never ended.

use std::fmt::Write as _;

use repertoire_agent::conversation::Conversation;
use repertoire_agent::{Event, EventKind, System};
use repertoire_model::{Message, UserPart};
use repertoire_skill::activate::{Listing, Request};

use super::store::Held;
use crate::limits::{INTERRUPTED_CALLS_MAX, INTERRUPTED_CHARS_MAX};

/// What a run was at when its process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// What the user had asked.
    pub prompt: String,
    /// Whether that is part of the conversation; it is not if the process ended before the model was asked.
    pub prompt_is_kept: bool,
    /// What the agent had said since the conversation was last written.
    pub said: String,
    /// What it had called since then.
    pub calls: Vec<String>,
}

impl Interrupted {
    /// What the next run has to be told, if the conversation does not say it.
    pub fn told(&self) -> Option<String> {
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
        match out.is_empty() {
            true => None,
            false => Some(format!(
                "[The last run was interrupted before it ended.{}]",
                out.trim_end_matches('\n')
            )),
        }
    }
}

/// Finds out what the last run was at, and puts skills back into the ledger that it had loaded.
pub(super) fn recover(
    system: &System,
    held: &Held,
    conversation: &mut Conversation,
) -> Option<Interrupted> {
    let at_work = held.head.at_work.as_ref()?;
    let events = held.events_since(at_work.log_bytes);
    let own = |event: &&Event| event.depth == 0;
    let asked = |event: &Event| matches!(event.kind, EventKind::ModelCall { attempt: 1, .. });
    // The file was written right before the model was asked; what came after is not in it.
    let last_asked = events.iter().rposition(|event| event.depth == 0 && asked(event));
    let (before, since) = events.split_at(last_asked.unwrap_or(0));
    let prompt_is_kept = is_kept(conversation, &at_work.prompt);
    if prompt_is_kept {
        put_back_skills(system, before, conversation);
    }
    let mut said = String::new();
    let mut calls = Vec::new();
    for event in since.iter().filter(own) {
        match &event.kind {
            EventKind::Answer { text, .. } => said.push_str(text),
            EventKind::ToolCall { tool, subject, .. } => calls.push(format!("{tool} {subject}")),
            _ => {}
        }
    }
    calls.truncate(INTERRUPTED_CALLS_MAX);
    Some(Interrupted {
        prompt: at_work.prompt.clone(),
        prompt_is_kept,
        said: said.chars().take(INTERRUPTED_CHARS_MAX).collect(),
        calls,
    })
}

/// Whether the last thing that the user said in words is the prompt.
fn is_kept(conversation: &Conversation, prompt: &str) -> bool {
    let said = |message: &Message| match message {
        Message::User { content } => content.iter().rev().find_map(|part| match part {
            UserPart::Text { text } => Some(text.ends_with(prompt)),
            UserPart::ToolResult(_) => None,
        }),
        _ => None,
    };
    conversation.messages.iter().rev().find_map(said).unwrap_or(false)
}

/// A run writes its ledger when it ends. Until then the log knows which skills it has loaded; those that came after the
/// conversation was last written are not in it.
fn put_back_skills(system: &System, events: &[Event], conversation: &mut Conversation) {
    let catalog = system.catalog();
    let config = system.config();
    for event in events.iter().filter(|event| event.depth == 0) {
        let EventKind::SkillLoaded { skill, digest, already: false, .. } = &event.kind else {
            continue;
        };
        // One that has changed since is loaded anew when it is needed.
        let same =
            |entry: &&repertoire_skill::catalog::Entry| entry.skill.digest().to_string() == *digest;
        let Some(entry) = catalog.get(skill).filter(same) else { continue };
        let request = Request {
            budget: config.skill_budget,
            listing: Listing::Listed,
            references: config.references,
            session_id: Some(&conversation.id),
            ..Request::default()
        };
        conversation.ledger.activate(entry, &request, event.at_ms);
    }
}
