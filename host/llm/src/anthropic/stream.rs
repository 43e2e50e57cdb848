//! Interprets the events of a message.

use std::collections::HashMap;

use serde_json::Value;

use super::ANSWER;
use crate::answering::{EventReader, PartialAnswer};
use crate::draft::{Draft, MAX_CALLS};
use crate::http::{CallError, Wire};
use crate::{LlmError, Stop};
use kiso_base::net::sse::SseEvent;

/// An answer that is being received.
pub(super) struct MessageStream<'a> {
    wire: &'a Wire,
    heard: PartialAnswer<'a>,
    /// Whether the answer comes as the arguments of [`ANSWER`].
    forced: bool,
    /// The begun blocks, by their index. Their pieces may be interleaved.
    blocks: HashMap<u64, Block>,
    /// The index of the block that was begun last; pieces without an index belong to it.
    last: u64,
}

/// The kind of block that pieces belong to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    /// Text or thoughts; each piece says which.
    Words,
    /// The call at this index of the draft.
    Call(usize),
    /// The forced tool.
    Answer,
    /// A tool that the provider ran itself, without a request.
    Other,
}

impl<'a> EventReader<'a> for MessageStream<'a> {
    fn take(&mut self, event: &SseEvent) -> Result<bool, CallError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(false);
        }
        let value: Value = match serde_json::from_str(data) {
            Ok(value) => value,
            Err(_) if event.name == "error" => return Err(self.wire.error_object(&Value::from(data))),
            Err(error) => return Err(self.wire.no_json(&error, data).into()),
        };
        // The name of the event is the same; gateways leave it out.
        match value["type"].as_str().unwrap_or(&event.name) {
            "message_start" => {
                self.usage(&value["message"]["usage"]);
                Ok(false)
            }
            "content_block_start" => Ok(self.begin(value["index"].as_u64(), &value["content_block"])?),
            "content_block_delta" => Ok(self.delta(value["index"].as_u64(), &value["delta"])),
            "message_delta" => {
                self.usage(&value["usage"]);
                self.end(&value["delta"]["stop_reason"]);
                Ok(true)
            }
            "message_stop" => {
                self.heard.done = true;
                Ok(true)
            }
            "message" => Ok(self.whole(&value)?),
            "error" => Err(self.wire.error_object(&value)),
            // Some gateways answer with an error without saying so in its type, or in their own form.
            _ if value["object"] == "error" || value.get("error").is_some_and(|error| !error.is_null()) => {
                Err(self.wire.error_object(&value))
            }
            // "content_block_stop", "ping", and types of later versions.
            _ => Ok(false),
        }
    }

    fn heard(&mut self) -> &mut PartialAnswer<'a> {
        &mut self.heard
    }

    fn into_heard(self) -> PartialAnswer<'a> {
        self.heard
    }
}

impl<'a> MessageStream<'a> {
    pub(super) fn new(wire: &'a Wire, draft: Draft<'a>, forced: bool) -> Self {
        Self { wire, heard: PartialAnswer::new(draft), forced, blocks: HashMap::new(), last: 0 }
    }

    /// Reads a message that was not streamed, although that was requested.
    fn whole(&mut self, message: &Value) -> Result<bool, LlmError> {
        self.usage(&message["usage"]);
        for block in message["content"].as_array().into_iter().flatten() {
            self.begin(None, block)?;
        }
        self.end(&message["stop_reason"]);
        Ok(true)
    }

    fn begin(&mut self, index: Option<u64>, block: &Value) -> Result<bool, LlmError> {
        let text = |name: &str| block[name].as_str().unwrap_or_default();
        let begun = match text("type") {
            "text" => {
                self.heard.draft.text(text("text"));
                Block::Words
            }
            "thinking" => {
                self.heard.draft.thought(text("thinking"));
                Block::Words
            }
            "tool_use" if self.forced && text("name") == ANSWER => Block::Answer,
            "tool_use" => {
                let too_many = || self.wire.unusable(format!("it called more than {MAX_CALLS} tools in one answer"));
                self.heard.draft.begin_call(text("id"), text("name")).ok_or_else(too_many)?;
                Block::Call(self.heard.draft.calls.len() - 1)
            }
            _ => Block::Other,
        };
        // A server that does not number blocks sends them one after the other.
        self.last = index.unwrap_or(self.last);
        self.blocks.insert(self.last, begun);
        // Empty at the beginning of a stream, complete in a message that is not streamed.
        let input = &block["input"];
        match begun {
            _ if input.as_object().is_none_or(|input| input.is_empty()) => {}
            Block::Call(call) => self.heard.draft.args(call, input),
            Block::Answer => self.heard.draft.text(&input.to_string()),
            _ => {}
        }
        Ok(true)
    }

    fn delta(&mut self, index: Option<u64>, delta: &Value) -> bool {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        let of = |index: u64| self.blocks.get(&index).copied().unwrap_or(Block::Words);
        // Arguments are never text, whatever their index says.
        let block = match of(index.unwrap_or(self.last)) {
            Block::Words => of(self.last),
            block => block,
        };
        match (text("type"), block) {
            ("text_delta", _) => self.heard.draft.text(text("text")),
            ("thinking_delta", _) => self.heard.draft.thought(text("thinking")),
            ("input_json_delta", Block::Answer) => self.heard.draft.text(text("partial_json")),
            ("input_json_delta", Block::Call(call)) => self.heard.draft.args(call, &delta["partial_json"]),
            // Signatures of thoughts, citations, and types of later versions.
            _ => return false,
        }
        true
    }

    fn end(&mut self, reason: &Value) {
        let Some(reason) = reason.as_str() else { return };
        self.heard.complete = true;
        self.heard.draft.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "tool_use" => Stop::Calls,
            "refusal" => Stop::Filter,
            _ => Stop::End,
        });
    }

    fn usage(&mut self, counted: &Value) {
        // Input tokens that are read from or written to the provider's cache are counted separately.
        let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let input = parts.iter().filter_map(|name| counted[*name].as_u64()).fold(0, u64::saturating_add);
        let usage = &mut self.heard.draft.usage;
        // Sent at the beginning, and by some servers again at the end, cumulated.
        usage.input_tokens = usage.input_tokens.max(input);
        usage.cached_tokens = usage.cached_tokens.max(counted["cache_read_input_tokens"].as_u64().unwrap_or(0));
        usage.output_tokens = counted["output_tokens"].as_u64().unwrap_or(usage.output_tokens);
    }
}
