//! What the server answers, turn by turn.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::recorded::Recorded;

/// The answers, in the order in which they are given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub(crate) turns: Vec<Turn>,
    #[serde(default)]
    pub(crate) repeat_last: bool,
    #[serde(default)]
    pub(crate) by_results: bool,
    #[serde(default)]
    pub(crate) aside: Option<String>,
}

impl Script {
    /// A script without turns.
    pub fn new() -> Self {
        Script::default()
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Gives the last turn again and again, instead of failing when the script is used up.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// Chooses the turn by how many answers of tools the request carries, so that one server serves many runs.
    #[must_use]
    pub fn by_results(mut self) -> Self {
        self.by_results = true;
        self
    }

    /// Answers requests without tools with this, and uses up no turn: some agents ask for a title on the side.
    #[must_use]
    pub fn aside(mut self, text: impl Into<String>) -> Self {
        self.aside = Some(text.into());
        self
    }

    /// The turn for a request, when so many turns have been given.
    pub(crate) fn turn_for(&self, request: &Recorded, used: usize) -> Option<(Turn, usize)> {
        let number = if self.by_results { request.tool_results() } else { used };
        let last = self.turns.last().filter(|_| self.repeat_last);
        Some((self.turns.get(number).or(last)?.clone(), number))
    }

    /// Reads a script from JSON: `{"turns": [{"text": "…"}, {"tools": [{"name": "…", "arguments": {…}}]}]}`.
    ///
    /// # Errors
    ///
    /// Where the JSON is wrong.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// One answer: thoughts, then text, then calls of tools; or a failure.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    pub(crate) thinking: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) usage: Usage,
    /// The reason to stop in the protocol's own word, where it is not the usual one.
    pub(crate) stop: Option<String>,
    pub(crate) fault: Option<Fault>,
    #[serde(skip)]
    pub(crate) respond: Option<Respond>,
}

/// Computes an answer from the request.
pub(crate) type Respond = Arc<dyn Fn(&Recorded) -> Turn + Send + Sync>;

impl Turn {
    /// An answer of text.
    pub fn text(text: impl Into<String>) -> Self {
        Turn { text: Some(text.into()), ..Turn::default() }
    }

    /// A call of a tool.
    pub fn tool(name: impl Into<String>, arguments: Value) -> Self {
        Turn::tools(vec![ToolUse::new(name, arguments)])
    }

    /// Calls of several tools at once.
    pub fn tools(tools: Vec<ToolUse>) -> Self {
        Turn { tools, ..Turn::default() }
    }

    /// Thoughts; more is added with [`and_text`](Self::and_text) and [`and_tool`](Self::and_tool).
    pub fn thinking(thoughts: impl Into<String>) -> Self {
        Turn { thinking: Some(thoughts.into()), ..Turn::default() }
    }

    /// An answer that depends on the request.
    pub fn respond(respond: impl Fn(&Recorded) -> Turn + Send + Sync + 'static) -> Self {
        Turn { respond: Some(Arc::new(respond)), ..Turn::default() }
    }

    /// A failure, with enough of an answer to fail in the middle of.
    pub fn fail(fault: Fault) -> Self {
        let turn = match fault {
            Fault::CutMidToolCall | Fault::MalformedArguments => {
                Turn::tool("bash", serde_json::json!({ "command": "echo one two three four five" }))
            }
            _ => Turn::text("An answer that is long enough to be sent in several pieces."),
        };
        turn.with_fault(fault)
    }

    /// Adds text.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.tools.push(ToolUse::new(name, arguments));
        self
    }

    /// Sets the tokens that it claims to have used.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the reason to stop, in the protocol's own word.
    #[must_use]
    pub fn with_stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Makes it fail.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("thinking", &self.thinking)
            .field("text", &self.text)
            .field("tools", &self.tools)
            .field("fault", &self.fault)
            .field("computed", &self.respond.is_some())
            .finish_non_exhaustive()
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// The call's id; one is made if it is absent.
    #[serde(default)]
    pub id: Option<String>,
}

impl ToolUse {
    /// A call with an id that is made by the server.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        ToolUse { name: name.into(), arguments, id: None }
    }
}

/// The tokens that an answer claims to have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Read, and not from a cache.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Read from the cache.
    pub cache_read_tokens: u64,
    /// Written to the cache; only Anthropic's protocol tells it.
    pub cache_write_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Usage { input_tokens: 100, output_tokens: 20, cache_read_tokens: 0, cache_write_tokens: 0 }
    }
}

/// How an answer goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Another status than 200.
    Status {
        /// The status.
        status: u16,
        /// Headers besides the usual ones.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body.
        body: String,
    },
    /// The request is read, and nothing is ever answered.
    StallBeforeHeaders,
    /// The answer stops coming, and the connection stays open.
    StallMidStream {
        /// After this many events.
        after_events: usize,
    },
    /// The connection is closed in the middle of a call's arguments.
    CutMidToolCall,
    /// The arguments of the calls lack their end; all else is in order.
    MalformedArguments,
    /// The connection is closed in the middle of the text.
    CutMidText,
    /// The stream tells of an overloaded server half-way.
    ErrorInStream,
    /// Every event takes this long.
    Slow {
        /// How long.
        ms_per_event: u64,
    },
    /// The second event is not JSON.
    GarbageEvent,
    /// The second event is this large.
    HugeEvent {
        /// How large.
        bytes: usize,
    },
}

impl Fault {
    /// Another status than 200, with a body.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Fault::Status { status, headers: BTreeMap::new(), body: body.into() }
    }

    /// Another status than 200, with headers and a body.
    pub fn status_with(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Fault::Status { status, headers: headers.iter().map(owned).collect(), body: body.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_can_be_written_as_json() {
        let json = r#"{
            "turns": [
                { "thinking": "hm", "text": "I look.", "tools": [{ "name": "bash", "arguments": { "command": "ls" } }] },
                { "text": "x", "usage": { "input_tokens": 7 }, "fault": { "stall_mid_stream": { "after_events": 2 } } },
                { "fault": { "status": { "status": 429, "headers": { "retry-after": "1" }, "body": "{}" } } },
                { "text": "y", "fault": "cut_mid_text" }
            ],
            "repeat_last": true
        }"#;
        let script = Script::from_json(json).unwrap();
        assert_eq!(script.turns.len(), 4);
        assert!(script.repeat_last);
        assert_eq!(script.turns[0].tools[0].name, "bash");
        assert_eq!(script.turns[1].usage.input_tokens, 7);
        assert_eq!(script.turns[1].fault, Some(Fault::StallMidStream { after_events: 2 }));
        let expect = Fault::status_with(429, &[("retry-after", "1")], "{}");
        assert_eq!(script.turns[2].fault, Some(expect));
        assert_eq!(script.turns[3].fault, Some(Fault::CutMidText));
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        let error = Script::from_json(r#"{ "turns": [{ "txt": "x" }] }"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `txt`"), "{error}");
    }
}
