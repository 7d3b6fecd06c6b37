//! What the server was asked.

use std::collections::BTreeMap;

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
}

impl Recorded {
    /// The text of the last message of the user, whichever protocol it came in.
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array();
        let mut users = messages.into_iter().flatten().filter(|message| message["role"] == "user");
        users.next_back().map(|message| text_of(&message["content"])).unwrap_or_default()
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
