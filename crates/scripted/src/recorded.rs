//! What the server was asked.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

/// A request, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The path, with what follows a `?`.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
    /// When all of it was there.
    pub received: Instant,
}

impl Recorded {
    /// The text of the last message of the user, whichever protocol it came in.
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array();
        let mut users = messages.into_iter().flatten().filter(|message| message["role"] == "user");
        users.next_back().map(|message| text_of(&message["content"])).unwrap_or_default()
    }

    /// How many answers of tools it carries.
    pub fn tool_results(&self) -> usize {
        ["messages", "input"].iter().map(|key| results_in(&self.body[*key])).sum()
    }

    /// Whether it offers tools.
    pub fn has_tools(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Answers of tools in a list of messages or of their parts, in any of the protocols.
fn results_in(list: &Value) -> usize {
    let own = |part: &Value| {
        let kind = part["type"].as_str().unwrap_or_default();
        kind == "tool_result" || kind.ends_with("_call_output") || part["role"] == "tool"
    };
    let count = |part: &Value| usize::from(own(part)) + results_in(&part["content"]);
    list.as_array().map_or(0, |parts| parts.iter().map(count).sum())
}
