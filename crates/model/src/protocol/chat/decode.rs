//! Decodes Chat Completions chunks and complete answers to deltas.

use serde_json::Value;

use crate::error::ModelError;
use crate::error_parsing;
use crate::limits::TOOL_CALLS_MAX;
use crate::protocol::{ModelService, ResponseDecoder};
use crate::request::ModelRequest;
use crate::response::{ResponseDelta, StopReason, TokenUsage};

/// Converts chunks to deltas.
///
/// Servers differ in how they send tool calls: in pieces or at once, with or without an id or an
/// index, with arguments as text or as an object, and some send `stop` instead of `tool_calls`. The
/// decoder accepts all variants.
#[derive(Clone, Debug)]
pub(super) struct ChatDecoder {
    service: ModelService,
    /// The number of calls earlier in the conversation, so that generated ids are unique.
    calls_before: usize,
    calls: Vec<ChatToolCall>,
    refused: bool,
    stop: Option<String>,
    done: bool,
}

#[derive(Clone, Debug, Default)]
struct ChatToolCall {
    /// The server's index, if it sent one.
    index: Option<u64>,
    id: String,
    /// Arguments that arrived before the name.
    early: String,
    started: bool,
}

impl ChatDecoder {
    /// Creates a decoder for the answer to a request.
    pub(super) fn new(request: &ModelRequest<'_>) -> Self {
        let calls = request.messages.iter().map(|message| message.tool_calls().count());
        ChatDecoder {
            service: request.model.service,
            calls_before: calls.sum(),
            calls: Vec::new(),
            refused: false,
            stop: None,
            done: false,
        }
    }
}

impl ResponseDecoder for ChatDecoder {
    fn is_done(&self) -> bool {
        self.done
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn decode_event(&mut self, data: &str, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            return self.finish(out);
        }
        let chunk: Value = error_parsing::parse_json(self.service, data)?;
        self.decode_chunk(&chunk, "delta", out)
    }

    fn decode_answer(
        &mut self,
        answer: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        self.decode_chunk(answer, "message", out)?;
        self.finish(out)
    }

    fn finish(&mut self, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let Some(reason) = &self.stop else {
            return Err(ModelError::BrokenOff { service: self.service });
        };
        out.push(ResponseDelta::Stop(self.stop_reason(reason)));
        self.done = true;
        Ok(())
    }
}

impl ChatDecoder {
    fn stop_reason(&self, reason: &str) -> StopReason {
        let called = self.calls.iter().any(|call| call.started);
        match reason {
            _ if self.refused => StopReason::Refusal,
            "stop" | "tool_calls" | "function_call" if called => StopReason::ToolUse,
            "stop" | "tool_calls" | "function_call" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        }
    }

    /// Decodes a chunk or an answer. `field` holds the content: `delta` in a chunk, `message` in a
    /// complete answer.
    fn decode_chunk(
        &mut self,
        chunk: &Value,
        field: &str,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        if !chunk["error"].is_null() {
            return Err(error_parsing::stream_error(self.service, &chunk["error"]));
        }
        push_usage(&chunk["usage"], out);
        let choice = &chunk["choices"][0];
        self.decode_text(&choice[field], out);
        for call in choice[field]["tool_calls"].as_array().into_iter().flatten() {
            self.decode_call(call, out)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop = Some(reason.to_owned());
        }
        Ok(())
    }

    fn decode_text(&mut self, words: &Value, out: &mut Vec<ResponseDelta>) {
        let text = |field: &str| words[field].as_str().filter(|text| !text.is_empty());
        if let Some(thoughts) = text("reasoning_content").or_else(|| text("reasoning")) {
            out.push(ResponseDelta::Thinking(thoughts.to_owned()));
        }
        if let Some(more) = text("content") {
            out.push(ResponseDelta::Text(more.to_owned()));
        }
        if let Some(refusal) = text("refusal") {
            self.refused = true;
            out.push(ResponseDelta::Text(refusal.to_owned()));
        }
    }

    fn decode_call(
        &mut self,
        piece: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        let function = &piece["function"];
        let name = function["name"].as_str().unwrap_or_default();
        let at = self.find_or_add_call(piece, name)?;
        let ordinal = self.calls_before + at;
        let call = &mut self.calls[at];
        let mut arguments = arguments_of(&function["arguments"]);
        if !call.started && name.is_empty() {
            call.early.push_str(&arguments);
            return Ok(());
        }
        if !call.started {
            call.started = true;
            if call.id.is_empty() {
                call.id = format!("call_{ordinal}");
            }
            let (id, name) = (call.id.clone(), name.to_owned());
            out.push(ResponseDelta::ToolCallStart { index: at, id, name });
            arguments.insert_str(0, &std::mem::take(&mut call.early));
        }
        if !arguments.is_empty() {
            out.push(ResponseDelta::ToolCallArguments { index: at, json: arguments });
        }
        Ok(())
    }

    /// Finds or adds the call to which a piece belongs. A new id starts a new call regardless of
    /// the index, because some servers send the same index for all calls.
    fn find_or_add_call(&mut self, piece: &Value, name: &str) -> Result<usize, ModelError> {
        let id = piece["id"].as_str().unwrap_or_default();
        let index = piece["index"].as_u64();
        let is_same = |call: &ChatToolCall| match (index, id.is_empty()) {
            (Some(_), true) => call.index == index,
            (Some(_), false) => call.index == index && (call.id.is_empty() || call.id == id),
            (None, false) => call.id == id,
            (None, true) => name.is_empty(),
        };
        if let Some(at) = self.calls.iter().rposition(is_same) {
            if self.calls[at].id.is_empty() {
                self.calls[at].id = id.to_owned();
            }
            return Ok(at);
        }
        if self.calls.len() >= TOOL_CALLS_MAX {
            let message = format!("an answer with more than {TOOL_CALLS_MAX} calls of tools");
            return Err(ModelError::Protocol { service: self.service, message });
        }
        self.calls.push(ChatToolCall { index, id: id.to_owned(), ..ChatToolCall::default() });
        Ok(self.calls.len() - 1)
    }
}

/// Returns arguments as text; some servers send an object instead.
fn arguments_of(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Decodes the usage. Cached tokens are included in the prompt tokens. Only some servers report
/// cache writes.
fn push_usage(usage: &Value, out: &mut Vec<ResponseDelta>) {
    let Some(prompt) = usage["prompt_tokens"].as_u64() else {
        return;
    };
    let detail = |field: &str| usage["prompt_tokens_details"][field].as_u64().unwrap_or_default();
    let (read, written) = (detail("cached_tokens"), detail("cache_write_tokens"));
    out.push(ResponseDelta::Usage(TokenUsage {
        input_tokens: prompt.saturating_sub(read).saturating_sub(written),
        output_tokens: usage["completion_tokens"].as_u64().unwrap_or_default(),
        cache_read_tokens: read,
        cache_write_tokens: written,
    }));
}
