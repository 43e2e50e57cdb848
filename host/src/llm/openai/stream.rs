//! What chunks of a chat completion say, and whole completions, which look nearly the same.

use serde_json::{Deserializer, Value};

use crate::llm::draft::{Draft, MAX_CALLS};
use crate::llm::http::Wire;
use crate::llm::sse::Event;
use crate::llm::{Completion, LlmError, Request, Stop};

/// The last event of most streams.
const DONE: &str = "[DONE]";

/// Where providers put thoughts.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// An answer that comes in.
pub(super) struct Stream<'a> {
    wire: &'a Wire,
    draft: Draft<'a>,
    /// The index that the provider gave to each call of the draft.
    indexes: Vec<Option<u64>>,
    /// The end of the answer came; at most counts follow.
    pub complete: bool,
    /// The end mark came: nothing follows.
    pub done: bool,
}

impl<'a> Stream<'a> {
    pub fn new(wire: &'a Wire, draft: Draft<'a>) -> Self {
        Self { wire, draft, indexes: Vec::new(), complete: false, done: false }
    }

    /// Reads an event; true if it had content.
    pub fn take(&mut self, event: &Event) -> Result<bool, LlmError> {
        let data = event.data.trim();
        let json = data.strip_suffix(DONE).inspect(|_| self.done = true).unwrap_or(data);
        let mut content = false;
        // More than one value, where a server forgets the blank line between events.
        for chunk in Deserializer::from_str(json).into_iter::<Value>() {
            let chunk = chunk.map_err(|error| self.wire.no_json(&error, json))?;
            content |= self.chunk(&chunk)?;
        }
        Ok(content)
    }

    /// The completion, after the end of the body or the end mark.
    pub fn finish(self, request: &Request) -> Result<Completion, LlmError> {
        let ended = self.draft.stop.is_some() || self.done && !self.draft.is_empty();
        if !ended {
            return Err(self.wire.broken("its answer ended before it was complete"));
        }
        self.draft.finish(request, &self.wire.name).map_err(|reason| self.wire.broken(reason))
    }

    fn chunk(&mut self, chunk: &Value) -> Result<bool, LlmError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(self.wire.error_object(chunk));
        }
        self.usage(chunk);
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        // Only one was asked for; whoever sends more numbers them.
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
        // What calls were called before they were tools; some local servers still say so.
        if delta["function_call"].is_object() {
            self.call(Some(0), "", &delta["function_call"])?;
            content = true;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            // A refusal in words has ended the answer already.
            let stop = self.stop(reason)?;
            self.complete = true;
            self.draft.stop = Some(if self.draft.stop == Some(Stop::Filter) { Stop::Filter } else { stop });
        }
        Ok(content)
    }

    fn words(&mut self, delta: &Value) -> bool {
        let mut heard = false;
        for thought in
            THOUGHTS.iter().filter_map(|name| delta[*name].as_str()).filter(|piece| !piece.is_empty()).take(1)
        {
            self.draft.thought(thought);
            heard = true;
        }
        let whole = delta["content"].as_str().into_iter();
        let parts = delta["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        for piece in whole.chain(parts).filter(|piece| !piece.is_empty()) {
            self.draft.text(piece);
            heard = true;
        }
        if let Some(refusal) = delta["refusal"].as_str().filter(|piece| !piece.is_empty()) {
            self.draft.text(refusal);
            self.draft.stop = Some(Stop::Filter);
            heard = true;
        }
        heard
    }

    /// A piece of a call, or a whole one.
    fn call(&mut self, index: Option<u64>, id: &str, function: &Value) -> Result<(), LlmError> {
        let name = function["name"].as_str().unwrap_or_default();
        let call = match self.position(index, id, name) {
            Some(position) => {
                let call = &mut self.draft.calls[position];
                if call.id.is_empty() {
                    id.clone_into(&mut call.id);
                }
                // Some repeat the whole name with every piece of the arguments.
                if call.name != name {
                    call.name.push_str(name);
                }
                call
            }
            None => {
                self.indexes.push(index);
                let too_many = || self.wire.unusable(format!("it called more than {MAX_CALLS} tools in one answer"));
                self.draft.begin_call(id, name).ok_or_else(too_many)?
            }
        };
        call.args(&function["arguments"]);
        Ok(())
    }

    /// The call that a piece continues; `None` if it begins one. Pieces are told apart by their index. Without one, or
    /// where every call has the same, a new id or a name after arguments begins the next call.
    fn position(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let position = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index)?,
            None => self.indexes.len().checked_sub(1)?,
        };
        let call = &self.draft.calls[position];
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let other_name = index.is_none() && id.is_empty() && !name.is_empty() && !call.args.is_empty();
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
        // Groq counts in a place of its own.
        let Some(counted) =
            chunk.get("usage").or_else(|| chunk.pointer("/x_groq/usage")).filter(|usage| usage.is_object())
        else {
            return;
        };
        // Some count along with every chunk; the last is the whole.
        let usage = &mut self.draft.usage;
        usage.input_tokens = counted["prompt_tokens"].as_u64().unwrap_or(usage.input_tokens);
        usage.output_tokens = counted["completion_tokens"].as_u64().unwrap_or(usage.output_tokens);
        usage.cost_micros = counted["cost"].as_f64().map_or(usage.cost_micros, micros);
    }
}

/// Dollars as millionths, rounded up: a cap on cost must not be passed by small amounts.
fn micros(dollars: f64) -> u64 {
    // A product such as 0.0023 × 10⁶ is a hair above the number that is meant. What is no amount becomes 0.
    (dollars * 1e6 - 1e-6).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
