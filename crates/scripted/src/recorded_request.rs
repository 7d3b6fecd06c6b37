//! Recorded requests.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    /// The path with its query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// The time at which it was received completely.
    pub received: Instant,
}

impl RecordedRequest {
    /// The text of the last user message, in either chat protocol.
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array();
        let mut users = messages.into_iter().flatten().filter(|message| message["role"] == "user");
        users.next_back().map(|message| content_text(&message["content"])).unwrap_or_default()
    }

    /// The number of tool results in the request.
    pub fn tool_results(&self) -> usize {
        ["messages", "input"].iter().map(|key| count_results(&self.body[*key])).sum()
    }

    /// Returns true if the request offers tools.
    pub fn has_tools(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Counts the tool results in a list of messages or parts, in any of the protocols.
fn count_results(list: &Value) -> usize {
    let count = |part: &Value| usize::from(is_tool_result(part)) + count_results(&part["content"]);
    list.as_array().map_or(0, |parts| parts.iter().map(count).sum())
}

fn is_tool_result(part: &Value) -> bool {
    let kind = part["type"].as_str().unwrap_or_default();
    kind == "tool_result" || kind.ends_with("_call_output") || part["role"] == "tool"
}
