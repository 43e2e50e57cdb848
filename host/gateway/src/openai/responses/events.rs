//! A response as events: each item is added, grows, and is completed.

use axum::response::sse::Event;
use serde_json::{Value, json};

use super::shape::{Output, Response, Summary, item_id, message, output_text, reasoning};
use crate::error::openai::ErrorBody;
use crate::openai::stream::Form;
use crate::openai::turn::Piece;
use crate::reply::TurnAnswer;
use kiso_store::store::{ChatRequest, JobState};

/// The item that is currently open.
#[derive(Debug)]
enum Open {
    Nothing,
    /// Activity of the run so far.
    Reasoning(String),
    /// Text of the answer so far.
    Message(String),
}

#[derive(Debug)]
pub(super) struct ResponseEvents {
    request: ChatRequest,
    /// Completed items.
    done: Vec<Output>,
    open: Open,
    sequence: u64,
}

impl ResponseEvents {
    pub(super) fn new(request: ChatRequest) -> ResponseEvents {
        ResponseEvents { request, done: Vec::new(), open: Open::Nothing, sequence: 0 }
    }

    fn event(&mut self, kind: &str, mut data: Value) -> Event {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        Event::default().event(kind).data(data.to_string())
    }

    /// Returns an event about the open item.
    fn of_item(&mut self, kind: &str, more: Value) -> Event {
        let (prefix, place) = match self.open {
            Open::Message(_) => ("msg", "content_index"),
            _ => ("rs", "summary_index"),
        };
        let mut data =
            json!({ "item_id": item_id(prefix, &self.request.id), "output_index": self.done.len(), place: 0 });
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        self.event(kind, data)
    }

    fn item(&mut self, kind: &str, item: &Output) -> Event {
        let data = json!({ "output_index": self.done.len(), "item": item });
        self.event(kind, data)
    }

    fn think(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        match self.open {
            // The answer has begun, so later activity is not reported.
            Open::Message(_) => return events,
            Open::Reasoning(_) => {}
            Open::Nothing => {
                self.open = Open::Reasoning(String::new());
                let item = json!({ "id": item_id("rs", &self.request.id), "type": "reasoning", "summary": [] });
                let data = json!({ "output_index": self.done.len(), "item": item });
                events.push(self.event("response.output_item.added", data));
                let part = Summary { kind: "summary_text", text: String::new() };
                events.push(self.of_item("response.reasoning_summary_part.added", json!({ "part": part })));
            }
        }
        events.push(self.of_item("response.reasoning_summary_text.delta", json!({ "delta": text })));
        if let Open::Reasoning(all) = &mut self.open {
            all.push_str(text);
        }
        events
    }

    fn write(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        if !matches!(self.open, Open::Message(_)) {
            events = self.close();
            self.open = Open::Message(String::new());
            let item = message(&self.request.id, None);
            events.push(self.item("response.output_item.added", &item));
            let part = output_text(String::new());
            events.push(self.of_item("response.content_part.added", json!({ "part": part })));
        }
        events.push(self.of_item("response.output_text.delta", json!({ "delta": text, "logprobs": [] })));
        if let Open::Message(all) = &mut self.open {
            all.push_str(text);
        }
        events
    }

    /// Completes the open item.
    fn close(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let item = match &self.open {
            Open::Nothing => return events,
            Open::Reasoning(text) => {
                let text = text.clone();
                let part = Summary { kind: "summary_text", text: text.clone() };
                events.push(self.of_item("response.reasoning_summary_text.done", json!({ "text": text })));
                events.push(self.of_item("response.reasoning_summary_part.done", json!({ "part": part })));
                reasoning(&self.request.id, text)
            }
            Open::Message(text) => {
                let text = text.clone();
                let part = output_text(text.clone());
                let done = json!({ "text": text, "logprobs": [] });
                events.push(self.of_item("response.output_text.done", done));
                events.push(self.of_item("response.content_part.done", json!({ "part": part })));
                message(&self.request.id, Some(text))
            }
        };
        events.push(self.item("response.output_item.done", &item));
        self.done.push(item);
        self.open = Open::Nothing;
        events
    }

    fn end(&mut self, answer: TurnAnswer) -> Vec<Event> {
        let mut events = match self.open {
            Open::Message(_) => Vec::new(),
            _ => self.write(""),
        };
        events.extend(self.close());
        let kind = match answer.state {
            JobState::Failed | JobState::Cancelled => "response.failed",
            _ => "response.completed",
        };
        let mut response = Response::new(&self.request, Ok(answer), None);
        // The same items as were sent in the events.
        response.output.clone_from(&self.done);
        events.push(self.event(kind, json!({ "response": response })));
        events
    }
}

impl Form for ResponseEvents {
    fn begin(&mut self) -> Vec<Event> {
        let response = |state| json!({ "response": Response::new(&self.request, Err(state), None) });
        let (created, begun) = (response(JobState::Queued), response(JobState::Running));
        vec![self.event("response.created", created), self.event("response.in_progress", begun)]
    }

    fn say(&mut self, piece: Piece) -> Vec<Event> {
        match piece {
            Piece::Thought(text) => self.think(&text),
            Piece::Text(text) => self.write(&text),
            Piece::End(answer) => self.end(answer),
            Piece::Failed(error) => {
                let Value::Object(mut body) = json!(ErrorBody::from_error(&error)) else { return Vec::new() };
                let error = body.shift_remove("error").unwrap_or_default();
                let data = json!({ "code": error["code"], "message": error["message"], "param": error["param"] });
                vec![self.event("error", data)]
            }
        }
    }
}
