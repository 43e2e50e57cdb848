//! Assembles an answer from its pieces, for all formats: text without thoughts, calls with unique ids, and its cost.

use std::collections::HashSet;

use serde_json::Value;

use super::estimate::request_tokens;
use super::{Completion, Request, Sink, Stop};
use kiso_plan::call::ToolCall;
use kiso_plan::estimate;
use kiso_plan::limits::Usage;

mod repetition;
mod thoughts;

use repetition::Repetition;
use thoughts::{ThoughtPiece, Thoughts};

/// Maximum calls of one answer. A model that repeats itself may request thousands.
pub(super) const MAX_CALLS: usize = 64;

/// The part of an answer that was received.
pub(super) struct Draft<'a> {
    sink: &'a mut dyn Sink,
    thoughts: Thoughts,
    repetition: Repetition,
    text: String,
    pub calls: Vec<PartialCall>,
    pub stop: Option<Stop>,
    /// As counted by the provider so far; zero if it did not count.
    pub usage: Usage,
    /// Estimated tokens of thoughts, which providers count as output.
    thought: u64,
    /// Estimated tokens of the request.
    asked: u64,
    /// Whether it became a completion. Otherwise its cost is reported separately.
    complete: bool,
}

/// A call whose pieces are still arriving.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PartialCall {
    /// Empty if the model gave no id.
    pub id: String,
    pub name: String,
    pub args: String,
}

impl<'a> Draft<'a> {
    /// Creates the draft of an answer to this request, once the provider has begun it.
    pub(crate) fn new(sink: &'a mut dyn Sink, request: &Request) -> Self {
        Self {
            sink,
            thoughts: Thoughts::default(),
            repetition: Repetition::default(),
            text: String::new(),
            calls: Vec::new(),
            stop: None,
            usage: Usage::default(),
            thought: 0,
            asked: request_tokens(request) as u64,
            complete: false,
        }
    }

    /// Adds a piece of text. Thoughts before the answer are removed.
    pub(crate) fn text(&mut self, piece: &str) {
        self.repetition.push(piece);
        let heard = self.thoughts.push(piece);
        self.thought += tokens(piece).saturating_sub(tokens(&heard.answer));
        self.hear(heard);
    }

    /// Adds a thought that the provider marks as such.
    pub(crate) fn thought(&mut self, piece: &str) {
        self.repetition.push(piece);
        self.thought += tokens(piece);
        self.sink.thought(piece);
    }

    fn hear(&mut self, ThoughtPiece { answer, thought, voids }: ThoughtPiece) {
        if voids {
            let void = std::mem::take(&mut self.text);
            self.thought += tokens(&void);
            self.sink.restart();
            self.sink.thought(&void);
        }
        if !thought.is_empty() {
            self.sink.thought(&thought);
        }
        self.say(&answer);
    }

    /// Begins a call whose pieces follow; `None` if there are too many.
    pub(crate) fn begin_call(&mut self, id: &str, name: &str) -> Option<&mut PartialCall> {
        if self.calls.len() == MAX_CALLS {
            return None;
        }
        self.calls.push(PartialCall { id: id.to_owned(), name: name.to_owned(), args: String::new() });
        self.calls.last_mut()
    }

    /// Adds a piece of the arguments of the call at this index: a string to append, or the whole object.
    pub(crate) fn args(&mut self, call: usize, piece: &Value) {
        self.repetition.push(piece.as_str().unwrap_or_default());
        self.calls[call].args(piece);
    }

    /// Whether the answer only repeats itself; then it is ended here.
    pub(crate) fn is_repetition(&mut self) -> bool {
        if self.stop.is_none() && self.repetition.is_found() {
            self.stop = Some(Stop::Repetition);
        }
        self.stop == Some(Stop::Repetition)
    }

    /// Whether anything was received that is part of a completion.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.thoughts.is_empty()
    }

    /// Returns the completion, or why the answer is invalid.
    pub(crate) fn finish(mut self, model: &str) -> Result<Completion, String> {
        let rest = self.thoughts.rest();
        self.hear(rest);
        let cut = matches!(self.stop, Some(Stop::Length | Stop::Repetition)) && self.end_at_cut();
        if self.calls.iter().any(|call| call.name.trim().is_empty()) {
            return Err("it called a tool without a name".to_owned());
        }
        let mut usage = self.usage;
        // For an interrupted answer, the provider has counted at most its beginning.
        let broken_off = self.stop == Some(Stop::Repetition);
        let counted = usage.input_tokens > 0 && usage.output_tokens > 0 && !broken_off;
        if usage.input_tokens == 0 {
            // The provider does not count them.
            usage.input_tokens = self.asked;
        }
        if usage.output_tokens == 0 || broken_off {
            usage.output_tokens = usage.output_tokens.max(self.heard());
        }
        self.complete = true;
        let calls = unique(std::mem::take(&mut self.calls));
        let stop = match self.stop.unwrap_or_default() {
            // Many servers report this for any end.
            Stop::End if !calls.is_empty() => Stop::Calls,
            Stop::Calls if calls.is_empty() => Stop::End,
            stop => stop,
        };
        let (text, model) = (std::mem::take(&mut self.text), model.to_owned());
        Ok(Completion { text, calls, cut, stop, usage, counted, model, ..Completion::default() })
    }

    /// Removes everything after the call in which the answer was cut off. If this returns true, that call is the last
    /// one.
    fn end_at_cut(&mut self) -> bool {
        // A call without a name is useless.
        self.calls.pop_if(|call| call.name.trim().is_empty());
        let last = self.calls.len().saturating_sub(1);
        // After a call without arguments, the next one begins.
        let is_cut = |(place, call): (usize, &PartialCall)| !call.is_whole() && (place == last || !call.is_blank());
        let cut = self.calls.iter().enumerate().position(is_cut);
        self.calls.truncate(cut.map_or(self.calls.len(), |place| place + 1));
        cut.is_some()
    }

    /// Records a refusal before the beginning, which costs nothing.
    pub(crate) fn refused(&mut self) {
        self.complete = true;
    }

    /// Returns the estimated tokens of everything that was received.
    fn heard(&self) -> u64 {
        let called: u64 = self.calls.iter().map(|call| tokens(&call.name) + tokens(&call.args)).sum();
        tokens(&self.text) + called + self.thought
    }

    fn say(&mut self, said: &str) {
        if !said.is_empty() {
            self.text.push_str(said);
            self.sink.text(said);
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.complete {
            let Usage { input_tokens, output_tokens, .. } = self.usage;
            let input_tokens = if input_tokens == 0 { self.asked } else { input_tokens };
            // Some providers count the first token at the beginning, and the others at the end.
            let output_tokens = output_tokens.max(self.heard());
            self.sink.spent(Usage { input_tokens, output_tokens, ..self.usage });
        }
    }
}

impl PartialCall {
    /// Whether its arguments are complete.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.args).is_ok()
    }

    fn is_blank(&self) -> bool {
        self.args.trim().is_empty()
    }

    fn args(&mut self, piece: &Value) {
        match piece {
            Value::Null => {}
            Value::String(piece) => self.args.push_str(piece),
            whole => self.args = whole.to_string(),
        }
    }
}

/// Gives every call a unique id; keeps the model's id if there is one.
fn unique(calls: Vec<PartialCall>) -> Vec<ToolCall> {
    let mut taken: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut seen = HashSet::new();
    let mut number = 0;
    let named = calls.into_iter().map(|call| {
        let args = if call.is_blank() { "{}".to_owned() } else { call.args };
        let mut id = call.id;
        if id.is_empty() || !seen.insert(id.clone()) {
            id = loop {
                number += 1;
                let made = format!("call_{number}");
                if taken.insert(made.clone()) {
                    break made;
                }
            };
        }
        ToolCall::new(id, call.name.trim(), args)
    });
    named.collect()
}

/// [`estimate::tokens`] as a `u64`.
fn tokens(text: &str) -> u64 {
    estimate::tokens(text) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::role::Role;

    fn call(id: &str, name: &str, args: &str) -> PartialCall {
        PartialCall { id: id.to_owned(), name: name.to_owned(), args: args.to_owned() }
    }

    #[test]
    fn ids_are_made_where_they_are_missing_or_repeated() {
        let calls = unique(vec![
            call("", "a", "{}"),
            call("call_1", "b", " "),
            call("x", " c ", "{"),
            call("x", "d", "{}"),
            call("", "e", "{}"),
        ]);
        let shown: Vec<_> = calls.iter().map(|c| format!("{} {} {}", c.id, c.name, c.args)).collect();
        assert_eq!(shown, ["call_2 a {}", "call_1 b {}", "x c {", "call_3 d {}", "call_4 e {}"]);
    }

    #[test]
    fn what_is_not_counted_is_estimated() {
        let request = Request::new(Role::Worker, "abcdefgh".to_owned(), "é".to_owned());
        let mut heard = String::new();
        let mut sink = |piece: &str| heard.push_str(piece);
        let mut draft = Draft::new(&mut sink, &request);
        draft.text("<think>abcd</think>four");
        draft.thought("abcdefghi");
        assert_eq!(draft.heard(), 1 + 5 + 3);
        let completion = draft.finish("p:m").unwrap();
        assert_eq!((completion.usage.input_tokens, completion.text.as_str()), (3, "four"));
        assert_eq!(completion.usage.output_tokens, 1 + 5 + 3);
        assert_eq!(heard, "four");
    }

    #[test]
    fn what_becomes_no_completion_is_told_with_its_cost() {
        #[derive(Default)]
        struct Paid(Vec<Usage>);
        impl Sink for Paid {
            fn text(&mut self, _: &str) {}

            fn spent(&mut self, usage: Usage) {
                self.0.push(usage);
            }
        }
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let request = Request::new(Role::Worker, "abcdefgh".to_owned(), String::new());
        let mut paid = Paid::default();
        let mut draft = Draft::new(&mut paid, &request);
        draft.text("abcdefgh");
        draft.begin_call("", "exec").unwrap().args.push_str("{\"a\"}");
        drop(draft);
        let mut draft = Draft::new(&mut paid, &request);
        draft.usage = usage(7, 1);
        draft.text("abcdefgh");
        drop(draft);
        let mut nameless = Draft::new(&mut paid, &request);
        nameless.begin_call("", "").unwrap();
        nameless.finish("p:m").unwrap_err();
        Draft::new(&mut paid, &request).finish("p:m").unwrap();
        assert_eq!(paid.0, [usage(2, 2 + 1 + 2), usage(7, 2), usage(2, 0)]);
    }

    #[test]
    fn an_answer_ends_with_the_call_that_was_cut_off() {
        let request = Request::new(Role::Actor, String::new(), String::new());
        let finish = |stop, calls: &[(&str, &str)]| {
            let mut sink = |_: &str| {};
            let mut draft = Draft::new(&mut sink, &request);
            draft.stop = Some(stop);
            draft.calls = calls.iter().map(|(name, args)| call("", name, args)).collect();
            let Completion { calls, cut, .. } = draft.finish("p:m").unwrap();
            (calls.iter().map(|call| format!("{} {}", call.name, call.args)).collect::<Vec<_>>().join(", "), cut)
        };
        let (whole, part) = (("a", r#"{"x": 1}"#), ("b", r#"{"x": "#));
        for (stop, calls, shown, cut) in [
            (Stop::Length, &[whole, part][..], r#"a {"x": 1}, b {"x": "#, true),
            (Stop::Length, &[part, whole], r#"b {"x": "#, true),
            (Stop::Repetition, &[whole, part], r#"a {"x": 1}, b {"x": "#, true),
            // Cut off after the last call, or before its arguments.
            (Stop::Length, &[whole], r#"a {"x": 1}"#, false),
            (Stop::Length, &[("c", ""), whole], r#"c {}, a {"x": 1}"#, false),
            (Stop::Length, &[whole, ("c", "")], r#"a {"x": 1}, c {}"#, true),
            (Stop::Length, &[whole, ("", "")], r#"a {"x": 1}"#, false),
            (Stop::Length, &[("a", "[1]")], "a [1]", true),
            // The provider did not report a cut, so the error is the model's.
            (Stop::Calls, &[part, whole], r#"b {"x": , a {"x": 1}"#, false),
        ] {
            assert_eq!(finish(stop, calls), (shown.to_owned(), cut), "{stop:?} {calls:?}");
        }
    }

    #[test]
    fn the_stop_fits_the_calls() {
        let request = Request::new(Role::Actor, String::new(), String::new());
        for (stop, called, expected) in [
            (Some(Stop::End), true, Stop::Calls),
            (Some(Stop::Calls), false, Stop::End),
            (None, false, Stop::End),
            (Some(Stop::Length), true, Stop::Length),
            (Some(Stop::Filter), false, Stop::Filter),
        ] {
            let mut sink = |_: &str| {};
            let mut draft = Draft::new(&mut sink, &request);
            draft.stop = stop;
            if called {
                draft.begin_call("", "exec").unwrap();
            }
            assert_eq!(draft.finish("p:m").unwrap().stop, expected);
        }
    }

    #[test]
    fn calls_have_a_name_and_are_not_endless() {
        let request = Request::new(Role::Actor, String::new(), String::new());
        let mut sink = |_: &str| {};
        let mut draft = Draft::new(&mut sink, &request);
        for _ in 0..MAX_CALLS {
            draft.begin_call("", "").unwrap();
        }
        assert_eq!(draft.begin_call("", ""), None);
        assert!(draft.finish("p:m").unwrap_err().contains("without a name"));
    }
}
