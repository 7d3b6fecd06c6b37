//! The conversation between a user and an agent, with its activated skills. A plain value, so that
//! it can be saved to disk and resumed.

use std::collections::BTreeSet;

use repertoire_model::{ModelMessage, ToolResult, UserPart};
use repertoire_skill::ledger::Ledger;
use serde::{Deserialize, Serialize};

use crate::event::TodoItem;

/// The version of the serialised format.
pub const CONVERSATION_VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conversation {
    /// The version of the serialised format.
    pub version: u32,
    pub id: String,
    /// The agent with which it was started.
    pub agent: Option<String>,
    /// All messages, the system prompt first.
    pub messages: Vec<ModelMessage>,
    /// The skills activated in the conversation.
    pub ledger: Ledger,
    /// Skills whose text is in the first messages, which compaction never changes.
    pub head_skills: BTreeSet<String>,
    pub todos: Vec<TodoItem>,
    /// The session at an external backend, if one executes the conversation.
    pub session: Option<String>,
    /// The backend to which the session belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_at: Option<String>,
    /// The skills selected for the first task, best first. They stay first in the skill list for
    /// the whole conversation: a changed description would invalidate the provider's prompt cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub winners: Vec<String>,
    /// The number of messages that the provider last counted, and their tokens.
    #[serde(skip)]
    pub measured: Option<(usize, u64)>,
}

impl Conversation {
    /// Creates an empty conversation.
    pub fn new(id: impl Into<String>) -> Self {
        Conversation {
            version: CONVERSATION_VERSION,
            id: id.into(),
            agent: None,
            messages: Vec::new(),
            ledger: Ledger::default(),
            head_skills: BTreeSet::new(),
            todos: Vec::new(),
            session: None,
            session_at: None,
            winners: Vec::new(),
            measured: None,
        }
    }

    /// Adds results for calls that were left open by an interrupted run, and removes results
    /// without a call: providers reject such conversations.
    pub fn repair_tool_calls(&mut self) {
        let before = self.messages.len();
        let mut mended: Vec<ModelMessage> = Vec::with_capacity(before);
        let mut open: Vec<String> = Vec::new();
        for mut message in std::mem::take(&mut self.messages) {
            if let ModelMessage::User { content } = &mut message {
                content.retain(|part| match part {
                    UserPart::ToolResult(result) => open.contains(&result.call_id),
                    UserPart::Text { .. } => true,
                });
                open.retain(|id| !has_result_for(content, id));
                if content.is_empty() {
                    continue;
                }
            }
            if !open.is_empty() && !matches!(message, ModelMessage::System { .. }) {
                insert_results(&mut mended, &mut message, std::mem::take(&mut open));
            }
            open.extend(message.tool_calls().map(|call| call.id.clone()));
            mended.push(message);
        }
        if !open.is_empty() {
            mended.push(ModelMessage::tool_results(interrupted_results(open)));
        }
        if mended.len() != before {
            self.measured = None;
        }
        self.messages = mended;
    }

    /// Returns the texts of all messages, oldest first, as context for selecting skills.
    pub fn message_texts(&self) -> Vec<String> {
        let spoken =
            self.messages.iter().filter(|message| !matches!(message, ModelMessage::System { .. }));
        spoken.map(ModelMessage::text).filter(|text| !text.is_empty()).collect()
    }

    /// The approximate number of tokens: the provider's count plus an estimate for newer messages.
    /// At least half of our own estimate, in case a provider reports far too little.
    pub fn estimate_tokens(&self) -> u64 {
        let all: u64 = self.messages.iter().map(estimate_message_tokens).sum();
        let Some((counted, tokens)) = self.measured else { return all };
        let rest = self.messages.get(counted..).unwrap_or(&self.messages);
        (tokens + rest.iter().map(estimate_message_tokens).sum::<u64>()).max(all / 2)
    }
}

/// Estimates the tokens of a message.
pub fn estimate_message_tokens(message: &ModelMessage) -> u64 {
    let bytes = match message {
        ModelMessage::System { text } => text.len(),
        ModelMessage::User { content } => content
            .iter()
            .map(|part| match part {
                UserPart::Text { text } => text.len(),
                UserPart::ToolResult(result) => result.text.len() + 40,
            })
            .sum(),
        ModelMessage::Assistant { content } => content.iter().map(part_bytes).sum(),
    };
    bytes as u64 / 4 + 4
}

fn part_bytes(part: &repertoire_model::AssistantPart) -> usize {
    use repertoire_model::AssistantPart;
    match part {
        AssistantPart::Text { text } => text.len(),
        AssistantPart::Thinking { text, signature } => {
            text.len() + signature.as_ref().map_or(0, String::len)
        }
        AssistantPart::RedactedThinking { data } => data.len(),
        AssistantPart::ToolCall(call) => call.name.len() + call.arguments.len() + 40,
    }
}

fn has_result_for(content: &[UserPart], id: &str) -> bool {
    content.iter().any(|part| matches!(part, UserPart::ToolResult(result) if result.call_id == id))
}

fn interrupted_results(calls: Vec<String>) -> Vec<ToolResult> {
    let text = "The call was interrupted before it ended; it may have had effects.";
    calls
        .into_iter()
        .map(|call_id| ToolResult { call_id, text: text.to_owned(), is_error: true })
        .collect()
}

/// Inserts results for open calls before a message: into it if it is a user message, else as a
/// separate message.
fn insert_results(mended: &mut Vec<ModelMessage>, message: &mut ModelMessage, open: Vec<String>) {
    let results = interrupted_results(open);
    match message {
        ModelMessage::User { content } => {
            let parts = results.into_iter().map(UserPart::ToolResult);
            content.splice(0..0, parts);
        }
        _ => mended.push(ModelMessage::tool_results(results)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_model::{AssistantPart, ToolCall};

    fn calling(id: &str) -> ModelMessage {
        let call = ToolCall { id: id.into(), name: "bash".into(), arguments: "{}".into() };
        ModelMessage::Assistant { content: vec![AssistantPart::ToolCall(call)] }
    }

    fn result(id: &str) -> ModelMessage {
        ModelMessage::tool_results(vec![ToolResult {
            call_id: id.into(),
            text: "ok".into(),
            is_error: false,
        }])
    }

    fn mended(messages: Vec<ModelMessage>) -> Vec<ModelMessage> {
        let mut conversation = Conversation { messages, ..Conversation::new("c") };
        conversation.repair_tool_calls();
        conversation.messages
    }

    #[test]
    fn a_whole_conversation_is_left_alone() {
        let whole = vec![
            ModelMessage::system("s"),
            ModelMessage::user("u"),
            calling("1"),
            result("1"),
            ModelMessage::assistant("done"),
        ];
        assert_eq!(mended(whole.clone()), whole);
    }

    #[test]
    fn what_the_provider_counted_is_kept_where_nothing_is_mended() {
        let messages = vec![ModelMessage::user("u"), calling("1"), result("1")];
        let mut conversation = Conversation { messages, ..Conversation::new("c") };
        conversation.measured = Some((3, 70));
        conversation.repair_tool_calls();
        assert_eq!(conversation.measured, Some((3, 70)));
        conversation.messages.push(calling("2"));
        conversation.repair_tool_calls();
        assert_eq!(conversation.measured, None);
    }

    #[test]
    fn a_call_that_was_left_open_gets_an_answer() {
        let messages = mended(vec![ModelMessage::user("u"), calling("1")]);
        assert_eq!(messages.len(), 3);
        assert!(
            matches!(&messages[2], ModelMessage::User { content } if has_result_for(content, "1"))
        );

        let messages =
            mended(vec![ModelMessage::user("u"), calling("1"), ModelMessage::user("go on")]);
        assert!(
            matches!(&messages[2], ModelMessage::User { content } if has_result_for(content, "1") && content.len() == 2)
        );
    }

    #[test]
    fn an_answer_that_nobody_asked_for_goes() {
        let messages =
            mended(vec![ModelMessage::user("u"), result("9"), ModelMessage::assistant("a")]);
        assert_eq!(messages, vec![ModelMessage::user("u"), ModelMessage::assistant("a")]);
    }

    #[test]
    fn a_conversation_survives_the_disk() {
        let mut conversation = Conversation::new("c");
        conversation.messages = vec![ModelMessage::system("s"), calling("1"), result("1")];
        let text = serde_json::to_string(&conversation).unwrap();
        let back: Conversation = serde_json::from_str(&text).unwrap();
        assert_eq!(back.messages, conversation.messages);
    }
}
