//! Decodes Anthropic's stream events and complete answers to deltas.

use serde_json::Value;

use super::STRUCTURED_OUTPUT;
use crate::error::ModelError;
use crate::error_parsing;
use crate::limits::TOOL_CALLS_MAX;
use crate::protocol::{ModelService, ResponseDecoder};
use crate::request::{ModelRequest, ResponseFormat};
use crate::response::{ResponseDelta, StopReason, TokenUsage};

/// Converts events to deltas.
#[derive(Clone, Debug, Default)]
pub(super) struct AnthropicDecoder {
    /// True if a call of [`STRUCTURED_OUTPUT`] is the answer.
    shaped: bool,
    /// Text that is held back until it is known whether it is the answer or text around it.
    held: String,
    blocks: Vec<ToolUseBlock>,
    calls: usize,
    answered: bool,
    stop: Option<String>,
    done: bool,
}

#[derive(Clone, Debug)]
struct ToolUseBlock {
    index: usize,
    kind: ToolUseKind,
    /// Arguments that came with the start of the block; used only if no deltas follow.
    initial: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolUseKind {
    Call,
    Answer,
}

impl AnthropicDecoder {
    /// Creates a decoder for the answer to a request.
    pub(super) fn new(request: &ModelRequest<'_>) -> Self {
        AnthropicDecoder {
            shaped: request.format != ResponseFormat::Text,
            ..AnthropicDecoder::default()
        }
    }
}

impl ResponseDecoder for AnthropicDecoder {
    fn is_done(&self) -> bool {
        self.done
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn decode_event(&mut self, data: &str, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError> {
        let event: Value = error_parsing::parse_json(ModelService::Anthropic, data)?;
        match event["type"].as_str() {
            Some("message_start") => push_usage(&event["message"]["usage"], out),
            Some("content_block_start") => {
                self.start_block(index_of(&event), &event["content_block"], out)?;
            }
            Some("content_block_delta") => {
                self.decode_delta(index_of(&event), &event["delta"], out)
            }
            Some("content_block_stop") => self.stop_block(index_of(&event), out),
            Some("message_delta") => {
                push_usage(&event["usage"], out);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(reason.to_owned());
                }
            }
            Some("message_stop") => self.finish(out)?,
            Some("error") => {
                return Err(error_parsing::stream_error(ModelService::Anthropic, &event["error"]));
            }
            _ if !event["error"].is_null() => {
                return Err(error_parsing::stream_error(ModelService::Anthropic, &event["error"]));
            }
            _ => {}
        }
        Ok(())
    }

    fn decode_answer(
        &mut self,
        answer: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        if !answer["error"].is_null() {
            return Err(error_parsing::stream_error(ModelService::Anthropic, &answer["error"]));
        }
        push_usage(&answer["usage"], out);
        for (index, block) in answer["content"].as_array().into_iter().flatten().enumerate() {
            self.start_block(index, block, out)?;
            self.stop_block(index, out);
        }
        self.stop = answer["stop_reason"].as_str().map(str::to_owned);
        self.finish(out)
    }

    fn finish(&mut self, out: &mut Vec<ResponseDelta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let Some(reason) = self.stop.clone() else {
            return Err(ModelError::BrokenOff { service: ModelService::Anthropic });
        };
        self.release_held_text(out);
        self.done = true;
        out.push(ResponseDelta::Stop(self.stop_reason(&reason)));
        Ok(())
    }
}

impl AnthropicDecoder {
    fn stop_reason(&self, reason: &str) -> StopReason {
        match reason {
            "end_turn" | "stop_sequence" => StopReason::EndTurn,
            "tool_use" if self.answered && self.calls == 0 => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn start_block(
        &mut self,
        index: usize,
        block: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        match block["type"].as_str() {
            Some("text") => self.push_or_hold_text(string_field(block, "text"), out),
            Some("thinking") => {
                // Push it even if the text is hidden: the signature that follows belongs to it.
                out.push(ResponseDelta::Thinking(string_field(block, "thinking")));
                push_text(out, string_field(block, "signature"), ResponseDelta::ThinkingSignature);
            }
            Some("redacted_thinking") => {
                out.push(ResponseDelta::RedactedThinking(string_field(block, "data")))
            }
            Some("tool_use") => self.start_call(index, block, out)?,
            _ => {}
        }
        Ok(())
    }

    fn start_call(
        &mut self,
        index: usize,
        block: &Value,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        if self.blocks.len() >= TOOL_CALLS_MAX {
            let message = format!("an answer with more than {TOOL_CALLS_MAX} calls of tools");
            return Err(ModelError::Protocol { service: ModelService::Anthropic, message });
        }
        let name = block["name"].as_str().unwrap_or_default();
        let input = block["input"].as_object().filter(|input| !input.is_empty());
        let initial = input.map(|_| block["input"].to_string());
        let kind = if self.shaped && name == STRUCTURED_OUTPUT {
            ToolUseKind::Answer
        } else {
            ToolUseKind::Call
        };
        self.blocks.push(ToolUseBlock { index, kind, initial });
        match kind {
            ToolUseKind::Answer => {
                self.answered = true;
                push_text(out, std::mem::take(&mut self.held), ResponseDelta::Thinking);
            }
            ToolUseKind::Call => {
                self.calls += 1;
                self.release_held_text(out);
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                out.push(ResponseDelta::ToolCallStart { index, id, name: name.to_owned() });
            }
        }
        Ok(())
    }

    fn decode_delta(&mut self, index: usize, delta: &Value, out: &mut Vec<ResponseDelta>) {
        match delta["type"].as_str() {
            Some("text_delta") => self.push_or_hold_text(string_field(delta, "text"), out),
            Some("thinking_delta") => {
                push_text(out, string_field(delta, "thinking"), ResponseDelta::Thinking)
            }
            Some("signature_delta") => {
                push_text(out, string_field(delta, "signature"), ResponseDelta::ThinkingSignature)
            }
            Some("input_json_delta") => {
                self.push_arguments(index, string_field(delta, "partial_json"), out)
            }
            _ => {}
        }
    }

    fn push_arguments(&mut self, index: usize, json: String, out: &mut Vec<ResponseDelta>) {
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else {
            return;
        };
        if json.is_empty() {
            return;
        }
        block.initial = None;
        out.push(match block.kind {
            ToolUseKind::Call => ResponseDelta::ToolCallArguments { index, json },
            ToolUseKind::Answer => ResponseDelta::Text(json),
        });
    }

    fn stop_block(&mut self, index: usize, out: &mut Vec<ResponseDelta>) {
        let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
        if let Some(json) = block.and_then(|block| block.initial.take()) {
            self.push_arguments(index, json, out);
        }
    }

    fn push_or_hold_text(&mut self, text: String, out: &mut Vec<ResponseDelta>) {
        match (self.shaped, self.answered) {
            (false, _) => push_text(out, text, ResponseDelta::Text),
            (true, false) => self.held.push_str(&text),
            (true, true) => push_text(out, text, ResponseDelta::Thinking),
        }
    }

    /// Emits held text that turned out to be regular text.
    fn release_held_text(&mut self, out: &mut Vec<ResponseDelta>) {
        push_text(out, std::mem::take(&mut self.held), ResponseDelta::Text);
    }
}

fn index_of(event: &Value) -> usize {
    event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or_default()
}

fn push_text(
    out: &mut Vec<ResponseDelta>,
    text: String,
    make: impl FnOnce(String) -> ResponseDelta,
) {
    if !text.is_empty() {
        out.push(make(text));
    }
}

fn push_usage(usage: &Value, out: &mut Vec<ResponseDelta>) {
    let usage = TokenUsage {
        input_tokens: token_count(usage, "input_tokens"),
        output_tokens: token_count(usage, "output_tokens"),
        cache_read_tokens: token_count(usage, "cache_read_input_tokens"),
        cache_write_tokens: token_count(usage, "cache_creation_input_tokens"),
    };
    if usage != TokenUsage::default() {
        out.push(ResponseDelta::Usage(usage));
    }
}

fn string_field(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn token_count(usage: &Value, field: &str) -> u64 {
    usage[field].as_u64().unwrap_or_default()
}
