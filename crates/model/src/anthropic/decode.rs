//! Decodes Anthropic's stream events and complete answers to deltas.

use serde_json::Value;

use super::STRUCTURED_OUTPUT;
use crate::error::Error;
use crate::fault;
use crate::limits::TOOL_CALLS_MAX;
use crate::name::Service;
use crate::request::{Request, ResponseFormat};
use crate::response::{Delta, StopReason, Usage};

/// Converts events to deltas.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// True if a call of [`STRUCTURED_OUTPUT`] is the answer.
    shaped: bool,
    /// Text that is held back until it is known whether it is the answer or text around it.
    held: String,
    blocks: Vec<Block>,
    calls: usize,
    answered: bool,
    stop: Option<String>,
    done: bool,
}

#[derive(Clone, Debug)]
struct Block {
    index: usize,
    kind: Kind,
    /// Arguments that came with the start of the block; used only if no deltas follow.
    initial: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call,
    Answer,
}

impl Decoder {
    /// Creates a decoder for the answer to a request.
    pub fn new(request: &Request<'_>) -> Self {
        Decoder { shaped: request.format != ResponseFormat::Text, ..Decoder::default() }
    }

    /// Returns true once the server has ended the stream.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns true once the model has ended its answer, even if more events follow.
    pub fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    /// Decodes the data of one event. Ignores unknown kinds of events.
    ///
    /// # Errors
    ///
    /// Returns the server's error, or [`Error::Protocol`] if the data is not JSON.
    pub fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), Error> {
        let event: Value = fault::parse(Service::Anthropic, data)?;
        match event["type"].as_str() {
            Some("message_start") => usage(&event["message"]["usage"], out),
            Some("content_block_start") => {
                self.start(index_of(&event), &event["content_block"], out)?;
            }
            Some("content_block_delta") => self.delta(index_of(&event), &event["delta"], out),
            Some("content_block_stop") => self.stop_block(index_of(&event), out),
            Some("message_delta") => {
                usage(&event["usage"], out);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(reason.to_owned());
                }
            }
            Some("message_stop") => self.finish(out)?,
            Some("error") => return Err(fault::in_stream(Service::Anthropic, &event["error"])),
            _ if !event["error"].is_null() => {
                return Err(fault::in_stream(Service::Anthropic, &event["error"]));
            }
            _ => {}
        }
        Ok(())
    }

    /// Decodes a complete (not streamed) answer.
    ///
    /// # Errors
    ///
    /// The same as for [`event`](Self::event).
    pub fn answer(&mut self, answer: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
        if !answer["error"].is_null() {
            return Err(fault::in_stream(Service::Anthropic, &answer["error"]));
        }
        usage(&answer["usage"], out);
        for (index, block) in answer["content"].as_array().into_iter().flatten().enumerate() {
            self.start(index, block, out)?;
            self.stop_block(index, out);
        }
        self.stop = answer["stop_reason"].as_str().map(str::to_owned);
        self.finish(out)
    }

    /// Ends the answer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BrokenOff`] if the model had not ended the answer.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), Error> {
        if self.done {
            return Ok(());
        }
        let Some(reason) = self.stop.clone() else {
            return Err(Error::BrokenOff { service: Service::Anthropic });
        };
        self.release(out);
        self.done = true;
        out.push(Delta::Stop(self.reason(&reason)));
        Ok(())
    }

    fn reason(&self, reason: &str) -> StopReason {
        match reason {
            "end_turn" | "stop_sequence" => StopReason::EndTurn,
            "tool_use" if self.answered && self.calls == 0 => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn start(&mut self, index: usize, block: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
        match block["type"].as_str() {
            Some("text") => self.text(string_field(block, "text"), out),
            Some("thinking") => {
                // Push it even if the text is hidden: the signature that follows belongs to it.
                out.push(Delta::Thinking(string_field(block, "thinking")));
                push_text(out, string_field(block, "signature"), Delta::ThinkingSignature);
            }
            Some("redacted_thinking") => {
                out.push(Delta::RedactedThinking(string_field(block, "data")))
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
        out: &mut Vec<Delta>,
    ) -> Result<(), Error> {
        if self.blocks.len() >= TOOL_CALLS_MAX {
            let message = format!("an answer with more than {TOOL_CALLS_MAX} calls of tools");
            return Err(Error::Protocol { service: Service::Anthropic, message });
        }
        let name = block["name"].as_str().unwrap_or_default();
        let input = block["input"].as_object().filter(|input| !input.is_empty());
        let initial = input.map(|_| block["input"].to_string());
        let kind = if self.shaped && name == STRUCTURED_OUTPUT { Kind::Answer } else { Kind::Call };
        self.blocks.push(Block { index, kind, initial });
        match kind {
            Kind::Answer => {
                self.answered = true;
                push_text(out, std::mem::take(&mut self.held), Delta::Thinking);
            }
            Kind::Call => {
                self.calls += 1;
                self.release(out);
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                out.push(Delta::ToolCallStart { index, id, name: name.to_owned() });
            }
        }
        Ok(())
    }

    fn delta(&mut self, index: usize, delta: &Value, out: &mut Vec<Delta>) {
        match delta["type"].as_str() {
            Some("text_delta") => self.text(string_field(delta, "text"), out),
            Some("thinking_delta") => {
                push_text(out, string_field(delta, "thinking"), Delta::Thinking)
            }
            Some("signature_delta") => {
                push_text(out, string_field(delta, "signature"), Delta::ThinkingSignature)
            }
            Some("input_json_delta") => {
                self.arguments(index, string_field(delta, "partial_json"), out)
            }
            _ => {}
        }
    }

    fn arguments(&mut self, index: usize, json: String, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else {
            return;
        };
        if json.is_empty() {
            return;
        }
        block.initial = None;
        out.push(match block.kind {
            Kind::Call => Delta::ToolCallArguments { index, json },
            Kind::Answer => Delta::Text(json),
        });
    }

    fn stop_block(&mut self, index: usize, out: &mut Vec<Delta>) {
        let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
        if let Some(json) = block.and_then(|block| block.initial.take()) {
            self.arguments(index, json, out);
        }
    }

    fn text(&mut self, text: String, out: &mut Vec<Delta>) {
        match (self.shaped, self.answered) {
            (false, _) => push_text(out, text, Delta::Text),
            (true, false) => self.held.push_str(&text),
            (true, true) => push_text(out, text, Delta::Thinking),
        }
    }

    /// Emits held text that turned out to be regular text.
    fn release(&mut self, out: &mut Vec<Delta>) {
        push_text(out, std::mem::take(&mut self.held), Delta::Text);
    }
}

fn index_of(event: &Value) -> usize {
    event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or_default()
}

fn push_text(out: &mut Vec<Delta>, text: String, make: impl FnOnce(String) -> Delta) {
    if !text.is_empty() {
        out.push(make(text));
    }
}

fn usage(usage: &Value, out: &mut Vec<Delta>) {
    let usage = Usage {
        input_tokens: token_count(usage, "input_tokens"),
        output_tokens: token_count(usage, "output_tokens"),
        cache_read_tokens: token_count(usage, "cache_read_input_tokens"),
        cache_write_tokens: token_count(usage, "cache_creation_input_tokens"),
    };
    if usage != Usage::default() {
        out.push(Delta::Usage(usage));
    }
}

fn string_field(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn token_count(usage: &Value, field: &str) -> u64 {
    usage[field].as_u64().unwrap_or_default()
}
