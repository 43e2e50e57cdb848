//! Interprets chunks of a chat completion, and whole completions, which have nearly the same form.

use serde_json::{Deserializer, Value};

use crate::answering::{EventReader, PartialAnswer};
use crate::draft::{Draft, MAX_CALLS};
use crate::http::{CallError, Wire};
use crate::{LlmError, Stop};
use kiso_base::net::sse::SseEvent;

/// The last event of most streams.
const DONE: &str = "[DONE]";

/// The name of an error event, and the type of an error object.
const ERROR: &str = "error";

/// The fields in which providers put thoughts.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// An answer that is being received.
pub(super) struct CompletionStream<'a> {
    wire: &'a Wire,
    heard: PartialAnswer<'a>,
    /// One entry for each call of the draft.
    begun: Vec<Begun>,
}

/// Distinguishes the pieces of one call from those of the next.
struct Begun {
    /// As given by the provider.
    index: Option<u64>,
    args: Braces,
}

impl<'a> EventReader<'a> for CompletionStream<'a> {
    fn take(&mut self, event: &SseEvent) -> Result<bool, CallError> {
        let data = event.data.trim();
        let json = data.strip_suffix(DONE).inspect(|_| self.heard.done = true).unwrap_or(data);
        let mut content = false;
        // Several values, if a server omits the blank line between events.
        for chunk in Deserializer::from_str(json).into_iter::<Value>() {
            match chunk {
                Ok(chunk) if event.name == ERROR => return Err(self.wire.error_object(&chunk)),
                Ok(chunk) => content |= self.chunk(&chunk)?,
                Err(_) if event.name == ERROR => return Err(self.wire.error_object(&Value::from(json))),
                Err(error) => return Err(self.wire.no_json(&error, json).into()),
            }
        }
        Ok(content)
    }

    fn heard(&mut self) -> &mut PartialAnswer<'a> {
        &mut self.heard
    }

    fn into_heard(self) -> PartialAnswer<'a> {
        self.heard
    }
}

impl<'a> CompletionStream<'a> {
    pub(super) fn new(wire: &'a Wire, draft: Draft<'a>) -> Self {
        Self { wire, heard: PartialAnswer::new(draft), begun: Vec::new() }
    }

    fn chunk(&mut self, chunk: &Value) -> Result<bool, CallError> {
        // vLLM and Mistral name the type and have no object inside.
        let flat = chunk["object"] == ERROR || chunk["type"] == ERROR;
        if flat || chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(self.wire.error_object(chunk));
        }
        self.usage(chunk);
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        // Only one was requested; a server that sends more numbers them.
        let Some(choice) = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(false);
        };
        if choice.get("error").is_some_and(|error| !error.is_null()) {
            return Err(self.wire.error_object(choice));
        }
        let delta = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        let mut content = self.words(delta);
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call["index"].as_u64(), call["id"].as_str().unwrap_or_default(), &call["function"])?;
            content = true;
        }
        // The older form of tool calls, which some local servers still use.
        if delta["function_call"].is_object() {
            self.call(Some(0), "", &delta["function_call"])?;
            content = true;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            // A refusal as text has already ended the answer.
            let stop = self.stop(reason)?;
            self.heard.complete = true;
            self.heard.draft.stop = Some(if self.heard.draft.stop == Some(Stop::Filter) { Stop::Filter } else { stop });
        }
        Ok(content)
    }

    fn words(&mut self, delta: &Value) -> bool {
        let mut heard = false;
        for thought in
            THOUGHTS.iter().filter_map(|name| delta[*name].as_str()).filter(|piece| !piece.is_empty()).take(1)
        {
            self.heard.draft.thought(thought);
            heard = true;
        }
        let whole = delta["content"].as_str().into_iter();
        let parts = delta["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        for piece in whole.chain(parts).filter(|piece| !piece.is_empty()) {
            self.heard.draft.text(piece);
            heard = true;
        }
        if let Some(refusal) = delta["refusal"].as_str().filter(|piece| !piece.is_empty()) {
            self.heard.draft.text(refusal);
            self.heard.draft.stop = Some(Stop::Filter);
            heard = true;
        }
        heard
    }

    /// Reads a piece of a call, or a whole one.
    fn call(&mut self, index: Option<u64>, id: &str, function: &Value) -> Result<(), LlmError> {
        let name = function["name"].as_str().unwrap_or_default();
        let args = &function["arguments"];
        let place = match self.position(index, id, name, args) {
            Some(position) => {
                self.begun[position].args.follow(args);
                let call = &mut self.heard.draft.calls[position];
                if call.id.is_empty() {
                    id.clone_into(&mut call.id);
                }
                // Some servers repeat the whole name with every piece of the arguments.
                if call.name != name {
                    call.name.push_str(name);
                }
                position
            }
            None => {
                let mut begun = Begun { index, args: Braces::default() };
                begun.args.follow(args);
                self.begun.push(begun);
                let too_many = || self.wire.unusable(format!("it called more than {MAX_CALLS} tools in one answer"));
                self.heard.draft.begin_call(id, name).ok_or_else(too_many)?;
                self.begun.len() - 1
            }
        };
        self.heard.draft.args(place, args);
        Ok(())
    }

    /// Returns the call that a piece continues; `None` if it begins a new one. Pieces are distinguished by their index. Without
    /// an index, or if every call has the same one, a new id, or a name after arguments, begins the next call. If all have the
    /// same index and no ids, the next call begins after complete arguments.
    fn position(&self, index: Option<u64>, id: &str, name: &str, args: &Value) -> Option<usize> {
        let position = match index {
            Some(_) => self.begun.iter().rposition(|begun| begun.index == index)?,
            None => self.begun.len().checked_sub(1)?,
        };
        let call = &self.heard.draft.calls[position];
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let other_name = id.is_empty()
            && !name.is_empty()
            && match index {
                None => !call.args.is_empty(),
                // A repeated name without anything else still belongs to the same call.
                Some(_) => self.begun[position].args.whole && (name != call.name || !is_blank(args)),
            };
        (!(other_id && !name.is_empty() || other_name)).then_some(position)
    }

    fn stop(&self, reason: &str) -> Result<Stop, LlmError> {
        Ok(match reason {
            "length" | "max_tokens" | "model_length" => Stop::Length,
            "tool_calls" | "function_call" | "tool_use" => Stop::Calls,
            "content_filter" | "content-filter" | "safety" | "refusal" => Stop::Filter,
            "error" | "abort" | "insufficient_system_resource" => {
                return Err(self.wire.broken(format!("the provider broke the answer off ({reason})")));
            }
            _ => Stop::End,
        })
    }

    fn usage(&mut self, chunk: &Value) {
        // Groq has its own field for the counts.
        let Some(counted) =
            chunk.get("usage").or_else(|| chunk.pointer("/x_groq/usage")).filter(|usage| usage.is_object())
        else {
            return;
        };
        // Some servers send counts with every chunk; the last one is the total.
        let usage = &mut self.heard.draft.usage;
        usage.input_tokens = counted["prompt_tokens"].as_u64().unwrap_or(usage.input_tokens);
        usage.output_tokens = counted["completion_tokens"].as_u64().unwrap_or(usage.output_tokens);
        // The fields of OpenAI and DeepSeek.
        let cached = [counted.pointer("/prompt_tokens_details/cached_tokens"), counted.get("prompt_cache_hit_tokens")];
        let cached = cached.into_iter().flatten().find_map(Value::as_u64);
        usage.cached_tokens = cached.unwrap_or(usage.cached_tokens).min(usage.input_tokens);
        usage.cost_micros = counted["cost"].as_f64().map_or(usage.cost_micros, micros);
    }
}

/// Detects whether arguments that arrive in pieces are complete: a value in braces that has ended. Each piece is read once;
/// parsing everything with each piece would take time that grows with the square of the length.
#[derive(Debug, Default)]
struct Braces {
    depth: usize,
    quoted: bool,
    escaped: bool,
    whole: bool,
}

impl Braces {
    fn follow(&mut self, piece: &Value) {
        let Value::String(piece) = piece else {
            self.whole |= piece.is_object();
            return;
        };
        for byte in piece.bytes() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = self.quoted,
                b'"' => self.quoted = !self.quoted,
                b'{' | b'[' if !self.quoted => self.depth += 1,
                b'}' | b']' if !self.quoted => {
                    self.depth = self.depth.saturating_sub(1);
                    self.whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

fn is_blank(args: &Value) -> bool {
    args.as_str().map_or(args.is_null(), |args| args.trim().is_empty())
}

/// Converts dollars to millionths, rounded up: small amounts must not exceed a cap on cost.
fn micros(dollars: f64) -> u64 {
    // A product such as 0.0023 × 10⁶ is slightly above the exact value. Invalid amounts become 0.
    (dollars * 1e6 - 1e-6).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_whole_when_their_braces_are_closed() {
        for (args, whole) in [
            (r#"{"a": "}"}"#, true),
            (r#"{"a": {"b": [1]}"#, false),
            (r#"{"a": "\"}"#, false),
            (r#"{"a": "\\"}"#, true),
            ("{}", true),
            ("", false),
        ] {
            for size in 1..=args.len().max(1) {
                let mut braces = Braces::default();
                args.as_bytes().chunks(size).for_each(|piece| braces.follow(&String::from_utf8_lossy(piece).into()));
                assert_eq!(braces.whole, whole, "{args} in pieces of {size}");
            }
        }
    }

    #[test]
    fn costs_are_rounded_up() {
        for (dollars, expected) in [
            (0.0, 0),
            (0.0023, 2_300),
            (0.000_000_1, 1),
            (0.001_000_4, 1_001),
            (1.5, 1_500_000),
            (-1.0, 0),
            (f64::NAN, 0),
        ] {
            assert_eq!(micros(dollars), expected, "{dollars}");
        }
    }
}
