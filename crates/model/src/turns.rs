//! Normalises a conversation for both protocols: the system prompt first, then alternating turns,
//! and in each user turn the tool results before any text.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::message::{AssistantPart, ModelMessage, ToolCall, ToolResult, UserPart};

/// A normalised conversation without empty parts.
#[derive(Debug, Default)]
pub(crate) struct NormalisedConversation<'a> {
    /// The system messages at the start.
    pub(crate) system: Vec<&'a str>,
    pub(crate) turns: Vec<NormalisedTurn<'a>>,
}

/// Consecutive messages of one side.
#[derive(Debug)]
pub(crate) enum NormalisedTurn<'a> {
    /// The user, tool results, and later system messages.
    User {
        results: Vec<&'a ToolResult>,
        texts: Vec<Cow<'a, str>>,
    },
    Assistant(Vec<&'a AssistantPart>),
}

impl<'a> NormalisedConversation<'a> {
    /// Normalises messages.
    pub(crate) fn from_messages(messages: &'a [ModelMessage]) -> Self {
        let mut conversation = NormalisedConversation::default();
        for message in messages {
            match message {
                ModelMessage::System { text } => conversation.add_system(text),
                ModelMessage::User { content } => content.iter().for_each(|part| match part {
                    UserPart::Text { text } => conversation.add_text(Cow::Borrowed(text)),
                    UserPart::ToolResult(result) => conversation.last_user_turn().0.push(result),
                }),
                ModelMessage::Assistant { content } => {
                    content.iter().for_each(|part| conversation.add_assistant_part(part));
                }
            }
        }
        conversation
    }

    fn add_system(&mut self, text: &'a str) {
        if text.trim().is_empty() {
            return;
        }
        if self.turns.is_empty() {
            self.system.push(text);
        } else {
            self.add_text(Cow::Owned(wrap_reminder(text)));
        }
    }

    fn add_text(&mut self, text: Cow<'a, str>) {
        if !text.trim().is_empty() {
            self.last_user_turn().1.push(text);
        }
    }

    fn add_assistant_part(&mut self, part: &'a AssistantPart) {
        if matches!(part, AssistantPart::Text { text } if text.trim().is_empty()) {
            return;
        }
        match self.turns.last_mut() {
            Some(NormalisedTurn::Assistant(parts)) => parts.push(part),
            _ => self.turns.push(NormalisedTurn::Assistant(vec![part])),
        }
    }

    fn last_user_turn(&mut self) -> (&mut Vec<&'a ToolResult>, &mut Vec<Cow<'a, str>>) {
        if !matches!(self.turns.last(), Some(NormalisedTurn::User { .. })) {
            self.turns.push(NormalisedTurn::User { results: Vec::new(), texts: Vec::new() });
        }
        match self.turns.last_mut() {
            Some(NormalisedTurn::User { results, texts }) => (results, texts),
            _ => unreachable!("a turn of the user was just added"),
        }
    }
}

/// Wraps a system message in the middle of a conversation, for which the protocols have no role.
fn wrap_reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", text.trim_end())
}

/// The arguments of a call for sending them back. Servers reject anything but an object, but the
/// model should still see what it wrote.
pub(crate) fn arguments_to_send(call: &ToolCall) -> Value {
    call.parse_arguments().unwrap_or_else(|_| json!({ "malformed_arguments": call.arguments }))
}

/// Maps a thinking budget to an effort level, for models without a budget.
pub(crate) fn effort_level(tokens: u32) -> &'static str {
    match tokens {
        0..=2048 => "low",
        2049..=16384 => "medium",
        _ => "high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_tools_come_before_text_and_neighbours_are_one_turn() {
        let result = ToolResult { call_id: "a".into(), text: "1".into(), is_error: false };
        let messages = [
            ModelMessage::system("be brief"),
            ModelMessage::user("hello"),
            ModelMessage::assistant("  "),
            ModelMessage::user("again"),
            ModelMessage::assistant("hm"),
            ModelMessage::User {
                content: vec![
                    UserPart::Text { text: "and".into() },
                    UserPart::ToolResult(result.clone()),
                ],
            },
            ModelMessage::system("time is short"),
        ];
        let conversation = NormalisedConversation::from_messages(&messages);
        assert_eq!(conversation.system, ["be brief"]);
        assert_eq!(conversation.turns.len(), 3);
        assert!(
            matches!(&conversation.turns[0], NormalisedTurn::User { texts, .. } if texts.len() == 2)
        );
        let NormalisedTurn::User { results, texts } = &conversation.turns[2] else {
            panic!("the last turn is the user's");
        };
        assert_eq!(results, &[&result]);
        assert_eq!(texts[1], "<system-reminder>\ntime is short\n</system-reminder>");
    }
}
