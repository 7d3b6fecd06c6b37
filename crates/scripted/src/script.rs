//! Scripts: the answers of the server, turn by turn.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::recorded_request::RecordedRequest;

/// The answers, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    pub(crate) turns: Vec<ScriptedTurn>,
    #[serde(default)]
    pub(crate) repeat_last: bool,
    #[serde(default)]
    pub(crate) by_results: bool,
    #[serde(default)]
    pub(crate) aside: Option<String>,
}

impl ModelScript {
    pub fn new() -> Self {
        ModelScript::default()
    }

    #[must_use]
    pub fn turn(mut self, turn: ScriptedTurn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Repeats the last turn, instead of failing at the end of the script.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// Selects the turn by the number of tool results in the request, so that one server serves
    /// many runs.
    #[must_use]
    pub fn by_results(mut self) -> Self {
        self.by_results = true;
        self
    }

    /// Answers requests without tools with this text, without using up a turn: some agents request
    /// a title separately.
    #[must_use]
    pub fn aside(mut self, text: impl Into<String>) -> Self {
        self.aside = Some(text.into());
        self
    }

    /// The turn for a request, after `used` turns.
    pub(crate) fn turn_for(
        &self,
        request: &RecordedRequest,
        used: usize,
    ) -> Option<(ScriptedTurn, usize)> {
        let number = if self.by_results { request.tool_results() } else { used };
        let last = self.turns.last().filter(|_| self.repeat_last);
        Some((self.turns.get(number).or(last)?.clone(), number))
    }

    /// Parses a script from JSON: `{"turns": [{"text": "…"}, {"tools": [{"name": "…", "arguments":
    /// {…}}]}]}`.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON is invalid.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// A scripted answer: thinking, then text, then tool calls; or a failure.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedTurn {
    pub(crate) thinking: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) tools: Vec<ScriptedToolUse>,
    pub(crate) usage: ScriptedUsage,
    /// The stop reason in the protocol's own terms, if it is not the usual one.
    pub(crate) stop: Option<String>,
    pub(crate) fault: Option<ModelFault>,
    #[serde(skip)]
    pub(crate) respond: Option<TurnFactory>,
}

/// Computes an answer from the request.
pub(crate) type TurnFactory = Arc<dyn Fn(&RecordedRequest) -> ScriptedTurn + Send + Sync>;

impl ScriptedTurn {
    /// Creates a text answer.
    pub fn text(text: impl Into<String>) -> Self {
        ScriptedTurn { text: Some(text.into()), ..ScriptedTurn::default() }
    }

    /// Creates an answer with a tool call.
    pub fn tool(name: impl Into<String>, arguments: Value) -> Self {
        ScriptedTurn::tools(vec![ScriptedToolUse::new(name, arguments)])
    }

    /// Creates an answer with several tool calls.
    pub fn tools(tools: Vec<ScriptedToolUse>) -> Self {
        ScriptedTurn { tools, ..ScriptedTurn::default() }
    }

    /// Creates an answer with thinking; [`and_text`](Self::and_text) and
    /// [`and_tool`](Self::and_tool) add more.
    pub fn thinking(thoughts: impl Into<String>) -> Self {
        ScriptedTurn { thinking: Some(thoughts.into()), ..ScriptedTurn::default() }
    }

    /// Creates an answer that depends on the request.
    pub fn respond(
        respond: impl Fn(&RecordedRequest) -> ScriptedTurn + Send + Sync + 'static,
    ) -> Self {
        ScriptedTurn { respond: Some(Arc::new(respond)), ..ScriptedTurn::default() }
    }

    /// Creates a failure, with enough of an answer to fail in the middle of it.
    pub fn fail(fault: ModelFault) -> Self {
        let turn = match fault {
            ModelFault::CutMidToolCall | ModelFault::MalformedArguments => ScriptedTurn::tool(
                "bash",
                serde_json::json!({ "command": "echo one two three four five" }),
            ),
            _ => ScriptedTurn::text("An answer that is long enough to be sent in several pieces."),
        };
        turn.with_fault(fault)
    }

    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.tools.push(ScriptedToolUse::new(name, arguments));
        self
    }

    /// Sets the reported usage.
    #[must_use]
    pub fn with_usage(mut self, usage: ScriptedUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the stop reason, in the protocol's own terms.
    #[must_use]
    pub fn with_stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    #[must_use]
    pub fn with_fault(mut self, fault: ModelFault) -> Self {
        self.fault = Some(fault);
        self
    }
}

impl fmt::Debug for ScriptedTurn {
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

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedToolUse {
    pub name: String,
    pub arguments: Value,
    /// The id of the call; generated if absent.
    #[serde(default)]
    pub id: Option<String>,
}

impl ScriptedToolUse {
    /// Creates a call with a generated id.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        ScriptedToolUse { name: name.into(), arguments, id: None }
    }
}

/// The reported token usage of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedUsage {
    /// Input tokens, without those read from a cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    /// Input tokens written to the cache; only Anthropic's protocol reports them.
    pub cache_write_tokens: u64,
}

impl Default for ScriptedUsage {
    fn default() -> Self {
        ScriptedUsage {
            input_tokens: 100,
            output_tokens: 20,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
        }
    }
}

/// A fault of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// A status other than 200.
    Status {
        status: u16,
        /// Additional headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        body: String,
    },
    /// The request is read, but never answered.
    StallBeforeHeaders,
    /// The answer stalls, and the connection stays open.
    StallMidStream { after_events: usize },
    /// The connection is closed in the middle of a call's arguments.
    CutMidToolCall,
    /// The arguments of the calls are truncated; everything else is valid.
    MalformedArguments,
    /// The connection is closed in the middle of the text.
    CutMidText,
    /// The stream reports an overloaded server halfway.
    ErrorInStream,
    /// Every event is delayed.
    Slow { ms_per_event: u64 },
    /// The second event is not JSON.
    GarbageEvent,
    /// The second event is very large.
    HugeEvent { bytes: usize },
}

impl ModelFault {
    /// A status other than 200, with a body.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        ModelFault::Status { status, headers: BTreeMap::new(), body: body.into() }
    }

    /// A status other than 200, with headers and a body.
    pub fn status_with(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ModelFault::Status {
            status,
            headers: headers.iter().map(owned).collect(),
            body: body.into(),
        }
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
        let script = ModelScript::from_json(json).unwrap();
        assert_eq!(script.turns.len(), 4);
        assert!(script.repeat_last);
        assert_eq!(script.turns[0].tools[0].name, "bash");
        assert_eq!(script.turns[1].usage.input_tokens, 7);
        assert_eq!(script.turns[1].fault, Some(ModelFault::StallMidStream { after_events: 2 }));
        let expect = ModelFault::status_with(429, &[("retry-after", "1")], "{}");
        assert_eq!(script.turns[2].fault, Some(expect));
        assert_eq!(script.turns[3].fault, Some(ModelFault::CutMidText));
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        let error = ModelScript::from_json(r#"{ "turns": [{ "txt": "x" }] }"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `txt`"), "{error}");
    }
}
