//! Tool calls and results that a model writes as text.
//!
//! ```text
//! an answer in text ─▶ HeldText: holds the protocol back while it streams ─▶ read
//!                          calls of tools that were offered ─▶ they are made
//!                          anything else in that form       ─▶ the model is asked once more, then it has not answered
//! ```
//!
//! Only whole answers have this form: some text, then only calls. A mark in a code block, between backticks or in a quotation is
//! text. A call that is also in the model's input is text, too: the model quotes a page.

mod dialects;
mod held;

pub(super) use self::held::HeldText;

use serde_json::{Map, Value};

use self::dialects::WrittenCall;
use super::draft::MAX_CALLS;
use super::quotes::Quotes;
use super::{Answer, Completion, Request, Stop, ToolChoice, ToolSpec, Turn};
use kiso_plan::call::ToolCall;

/// Marks that begin calls, in lower case. Those in [`RESULTS`] begin results.
const CALLS: [&str; 11] = [
    "<tool_call>",
    "<tool_calls>",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "[tool_calls]",
    "<|python_tag|>",
    "<|tool_call",
    "<|channel|>",
    "<｜tool▁call",
];

const RESULTS: [&str; 8] = [
    "<tool_response",
    "<tool_result",
    "<tool_output",
    "<function_result",
    "<function_response",
    "[tool_results]",
    "<|tool_response",
    "<｜tool▁output",
];

/// Maximum bytes of an invalid answer that the model sees again.
const MAX_SHOWN: usize = 2_000;

/// The interpretation of an answer.
#[derive(Debug)]
pub(super) enum TextReading {
    /// Text, or calls that the model made.
    Plain(Completion),
    /// Calls that were in the text.
    Calls(Completion),
    /// It is invalid.
    Misused(Completion, Misuse),
}

/// How an answer misuses the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misuse {
    /// A call that was not made, and cannot be made.
    Call,
    /// The result of a call that was not made.
    Result,
}

impl Misuse {
    /// For a person, after "the model … did not answer: ".
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Call => "it wrote a tool call as text, also when it was asked again",
            Self::Result => "it wrote tool results that do not exist, also when it was asked again",
        }
    }
}

/// Whether answers to this request are checked.
pub(super) fn is_text(request: &Request) -> bool {
    request.answer == Answer::Text
}

/// Checks an answer.
pub(super) fn read(completion: Completion, request: &Request) -> TextReading {
    // An answer that was cut off or withheld is reported as that.
    let ended = matches!(completion.stop, Stop::End | Stop::Calls);
    if !is_text(request) || !completion.calls.is_empty() || !ended {
        return TextReading::Plain(completion);
    }
    let offered = if request.tool_choice == ToolChoice::Auto { request.tools.as_slice() } else { &[] };
    match form(&completion.text, offered, request) {
        TextForm::Nothing => TextReading::Plain(completion),
        TextForm::Misuse(misuse) => TextReading::Misused(completion, misuse),
        TextForm::Calls { before, calls } => {
            let calls: Vec<_> = calls
                .into_iter()
                .zip(1..)
                .map(|(call, n)| ToolCall::new(format!("call_{n}"), call.name, call.args.to_string()))
                .collect();
            TextReading::Calls(Completion { text: before, calls, stop: Stop::Calls, ..completion })
        }
    }
}

/// Returns the same request with the invalid answer and its error.
pub(super) fn asked_again(request: &Request, completion: &Completion, misuse: Misuse) -> Request {
    let mut request = request.clone();
    let text = completion.text[..completion.text.floor_char_boundary(MAX_SHOWN)].to_owned();
    let what = match misuse {
        Misuse::Call => "Your answer holds a tool call as text, so nothing was called.",
        Misuse::Result => "Your answer holds tool results that no tool gave: nothing was called and nothing was done.",
    };
    let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    let how = match (names.is_empty(), request.tool_choice) {
        (false, ToolChoice::Auto) => format!("To call a tool, call it; the tools are {}.", names.join(", ")),
        _ => "No tool can be called here: answer in words, and say only what was done.".to_owned(),
    };
    request.turns.push(Turn::Assistant { text, calls: Vec::new() });
    request.turns.push(Turn::Note(format!("{what} {how} What only quotes such a text stands in a code block.")));
    request
}

enum TextForm {
    Nothing,
    Calls { before: String, calls: Vec<WrittenCall> },
    Misuse(Misuse),
}

fn form(text: &str, offered: &[ToolSpec], request: &Request) -> TextForm {
    let marks = marks(text);
    if marks.iter().any(|(_, misuse)| *misuse == Misuse::Result) {
        return TextForm::Misuse(Misuse::Result);
    }
    let (before, calls) = match marks.first() {
        Some((at, _)) => (text[..*at].trim(), dialects::calls(&text[*at..])),
        None => match bare(text) {
            Some(Bare { calls, fenced }) => {
                let known = |call: &WrittenCall| offered.iter().any(|tool| tool.name == call.name);
                // An object in a code block may be the requested answer.
                if fenced && !calls.iter().all(known) {
                    return TextForm::Nothing;
                }
                ("", Some(calls))
            }
            None => return TextForm::Nothing,
        },
    };
    let Some(mut calls) = calls.filter(|calls| (1..=MAX_CALLS).contains(&calls.len())) else {
        return TextForm::Misuse(Misuse::Call);
    };
    for call in &mut calls {
        let Some(tool) = offered.iter().find(|tool| tool.name == call.name) else {
            return TextForm::Misuse(Misuse::Call);
        };
        if is_quoted(call, request) {
            return TextForm::Misuse(Misuse::Call);
        }
        call.fit(&tool.parameters);
    }
    TextForm::Calls { before: before.to_owned(), calls }
}

/// Returns the places of marks that are not quoted, and what each begins.
fn marks(text: &str) -> Vec<(usize, Misuse)> {
    let (mut quotes, mut found) = (Quotes::default(), Vec::new());
    for (at, c) in text.char_indices() {
        if matches!(c, '<' | '[')
            && !quotes.is_quoted()
            && let MarkAt::Here(misuse) = mark_at(&text[at..], quotes.is_line_start())
        {
            found.push((at, misuse));
        }
        quotes.push(c);
    }
    found
}

/// Whether a text begins with a mark.
#[derive(Debug, PartialEq, Eq)]
enum MarkAt {
    Nowhere,
    /// More text is needed.
    Perhaps,
    Here(Misuse),
}

/// Maximum bytes between a mark inside a line and a call.
const MAX_GAP: usize = 16;

/// Inside a line, a mark only counts if a call follows at once: prose may mention a mark.
fn mark_at(text: &str, line_start: bool) -> MarkAt {
    const LONGEST: usize = 32;
    let head = text[..text.floor_char_boundary(LONGEST)].to_lowercase();
    let all = CALLS.iter().map(|mark| (*mark, Misuse::Call)).chain(RESULTS.iter().map(|mark| (*mark, Misuse::Result)));
    let (mut perhaps, is_all) = (false, text.len() <= LONGEST);
    for (mark, misuse) in all {
        perhaps |= is_all && head.len() < mark.len() && mark.starts_with(&head);
        let Some(rest) = head.strip_prefix(mark) else { continue };
        let inline = match mark {
            "<tool_call>" | "<function_call>" | "[tool_calls]" => match rest.trim_start().chars().next() {
                Some(next) => matches!(next, '{' | '[' | '<'),
                None if rest.len() < MAX_GAP && is_all => {
                    perhaps |= !line_start;
                    false
                }
                None => false,
            },
            "<function=" | "<invoke name=" | "<function_calls>" | "<|python_tag|>" | "<|tool_call" | "<｜tool▁call" => {
                true
            }
            _ => false,
        };
        if line_start || inline {
            return MarkAt::Here(misuse);
        }
    }
    if perhaps { MarkAt::Perhaps } else { MarkAt::Nowhere }
}

/// An answer that consists of JSON calls only.
struct Bare {
    calls: Vec<WrittenCall>,
    fenced: bool,
}

fn bare(text: &str) -> Option<Bare> {
    let whole = text.trim();
    let (inner, fenced) = match unfenced(whole) {
        Some(inner) => (inner, true),
        None => (whole, false),
    };
    if !inner.starts_with(['{', '[']) {
        return None;
    }
    let value: Value = kiso_base::json::parse(inner.as_bytes()).ok()?;
    let one = |value: &Value| exact(value.as_object()?);
    let calls: Option<Vec<_>> = match &value {
        Value::Array(items) if !items.is_empty() => items.iter().map(one).collect(),
        other => one(other).map(|call| vec![call]),
    };
    let calls = calls?.into_iter().map(|call| WrittenCall { written: inner.to_owned(), ..call }).collect();
    Some(Bare { calls, fenced })
}

/// Returns the inside of a text that is a single code block of JSON.
pub(super) fn unfenced(text: &str) -> Option<&str> {
    let (info, rest) = text.trim().strip_prefix("```")?.split_once('\n')?;
    let inner = rest.trim_end().strip_suffix("```")?.trim();
    let known = ["", "json", "tool_call", "tool_code"].contains(&info.trim().to_ascii_lowercase().as_str());
    (known && !inner.contains("```")).then_some(inner)
}

/// Returns the call in an object that contains nothing else.
fn exact(map: &Map<String, Value>) -> Option<WrittenCall> {
    const FIELDS: [&str; 7] = ["name", "tool", "arguments", "parameters", "args", "id", "type"];
    let has_args = ["arguments", "parameters", "args"].iter().any(|key| map.contains_key(*key));
    let only = map.keys().all(|key| FIELDS.contains(&key.as_str()));
    if only && has_args { WrittenCall::from_object(map) } else { wrapped(map) }
}

/// Returns the call in `{"tool_calls": [..]}` with one entry, or in `{"type": "function", "function": {…}}`.
fn wrapped(map: &Map<String, Value>) -> Option<WrittenCall> {
    let known = map.keys().all(|key| ["function", "type", "id"].contains(&key.as_str()));
    let function = map.get("function").filter(|_| known)?.as_object()?;
    exact(function)
}

/// Whether the call is in the model's input.
fn is_quoted(call: &WrittenCall, request: &Request) -> bool {
    let given = request.turns.iter().filter_map(|turn| match turn {
        Turn::User(text) | Turn::Note(text) | Turn::Tool { text, .. } => Some(text.as_str()),
        Turn::Assistant { .. } | Turn::Pictures(_) => None,
    });
    given.chain([request.user.as_str()]).any(|text| text.contains(&call.written))
}

#[cfg(test)]
mod tests;
