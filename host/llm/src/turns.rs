//! A conversation in the form that providers accept. Both formats require that roles alternate, that every call has a result, and
//! that every result has a call. An interrupted run, or an empty answer of a model, violates these rules; this module repairs
//! them.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::vision::Vision;
use super::{Image, Request, Turn};
use kiso_plan::call::ToolCall;

/// Replaces an empty text; both formats refuse messages without text.
const NOTHING: &str = "(nothing)";

/// Ends a conversation whose last message is the model's.
const GO_ON: &str = "Go on.";

/// The result of a call without one, because the run was interrupted.
const NO_RESULT: &str = "interrupted: there is no result of this call";

/// One message after the system prompt. The first one is the user's, and they alternate.
#[derive(Debug, PartialEq)]
pub(super) enum Message<'a> {
    User {
        /// The results of the previous message's calls, in their order.
        results: Vec<WireResult<'a>>,
        /// The user's texts and pictures in order; empty if there are only results.
        parts: Vec<MessagePart<'a>>,
    },
    Assistant {
        /// Never blank; `None` only beside calls.
        text: Option<Cow<'a, str>>,
        calls: Vec<WireCall<'a>>,
    },
}

/// A part of a user message.
#[derive(Debug, PartialEq)]
pub(super) enum MessagePart<'a> {
    /// Never blank; never next to another text.
    Text(Cow<'a, str>),
    /// Its content is loaded.
    Image(&'a Image),
}

impl<'a> Message<'a> {
    fn saying(words: Cow<'a, str>) -> Self {
        Self::User { results: Vec::new(), parts: vec![MessagePart::Text(words)] }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct WireCall<'a> {
    /// Unique in the conversation, and nine letters and digits, as the strictest provider (Mistral) requires. Ids of completions
    /// are only unique within their completion.
    pub id: String,
    pub name: &'a str,
    /// An object. Invalid arguments are wrapped in one, unchanged.
    pub input: Value,
}

#[derive(Debug, PartialEq)]
pub(super) struct WireResult<'a> {
    pub id: String,
    pub text: &'a str,
}

/// Returns the user part and the turns of a request, with its pictures if they are sent, otherwise with their descriptions.
pub(super) fn messages(request: &Request, vision: Vision) -> Vec<Message<'_>> {
    let mut draft = Conversation { messages: Vec::new(), open: Vec::new(), calls: 0 };
    draft.say(Cow::Borrowed(&request.user));
    for turn in &request.turns {
        match turn {
            Turn::Assistant { text, calls } => draft.answer(text, calls),
            Turn::Tool { id, name, text } => draft.result(id, name, text),
            Turn::User(text) | Turn::Note(text) => draft.say(Cow::Borrowed(text)),
            Turn::Pictures(images) => images.iter().for_each(|image| draft.show(image, vision)),
        }
    }
    draft.close();
    if let Some(Message::Assistant { .. }) = draft.messages.last() {
        draft.say(Cow::Borrowed(GO_ON));
    }
    // The first message must be the user's.
    if !matches!(draft.messages.first(), Some(Message::User { .. })) {
        draft.messages.insert(0, Message::saying(Cow::Borrowed(NOTHING)));
    }
    draft.messages
}

struct Conversation<'a> {
    messages: Vec<Message<'a>>,
    /// Calls of the last answer: the original id, the id on the wire, the result.
    open: Vec<Open<'a>>,
    calls: usize,
}

struct Open<'a> {
    id: &'a str,
    wire_id: String,
    result: Option<&'a str>,
}

impl<'a> Conversation<'a> {
    fn say(&mut self, words: Cow<'a, str>) {
        self.close();
        if words.trim().is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::User { parts, .. }) => match parts.last_mut() {
                Some(MessagePart::Text(text)) => *text = Cow::Owned(format!("{text}\n\n{words}")),
                _ => parts.push(MessagePart::Text(words)),
            },
            _ => self.messages.push(Message::saying(words)),
        }
    }

    fn show(&mut self, image: &'a Image, vision: Vision) {
        let is_taken = vision.shows() || image.picture.is_sound();
        if !is_taken || image.content.is_none() || image.repeats {
            return self.say(Cow::Owned(image.words(vision)));
        }
        self.close();
        match self.messages.last_mut() {
            Some(Message::User { parts, .. }) => parts.push(MessagePart::Image(image)),
            _ => self.messages.push(Message::User { results: Vec::new(), parts: vec![MessagePart::Image(image)] }),
        }
    }

    fn answer(&mut self, words: &'a str, wanted: &'a [ToolCall]) {
        self.close();
        if words.trim().is_empty() && wanted.is_empty() {
            return;
        }
        let mut made = Vec::new();
        for call in wanted {
            self.calls += 1;
            let id = format!("call{:05}", self.calls);
            self.open.push(Open { id: &call.id, wire_id: id.clone(), result: None });
            made.push(WireCall { id, name: &call.name, input: input(&call.args) });
        }
        if !matches!(self.messages.last(), Some(Message::Assistant { .. })) {
            self.messages.push(Message::Assistant { text: None, calls: Vec::new() });
        }
        if let Some(Message::Assistant { text, calls }) = self.messages.last_mut() {
            if !words.trim().is_empty() {
                join(text, Cow::Borrowed(words));
            }
            calls.extend(made);
        }
    }

    fn result(&mut self, id: &str, name: &str, text: &'a str) {
        match self.open.iter_mut().find(|open| open.id == id && open.result.is_none()) {
            Some(open) => open.result = Some(text),
            // This conversation does not contain its call; the model should still know the result.
            None => self.say(Cow::Owned(format!("Result of the tool {name}:\n{text}"))),
        }
    }

    /// Adds results to open calls.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let results = std::mem::take(&mut self.open)
            .into_iter()
            .map(|open| WireResult { id: open.wire_id, text: open.result.unwrap_or(NO_RESULT) });
        self.messages.push(Message::User { results: results.collect(), parts: Vec::new() });
    }
}

fn join<'a>(text: &mut Option<Cow<'a, str>>, more: Cow<'a, str>) {
    *text = Some(match text.take() {
        Some(text) => Cow::Owned(format!("{text}\n\n{more}")),
        None => more,
    });
}

/// Returns the arguments as an object: templates of local models and both formats fail on anything else.
fn input(args: &str) -> Value {
    match serde_json::from_str(args) {
        Ok(object @ Value::Object(_)) => object,
        _ if args.trim().is_empty() => json!({}),
        _ => json!({ "arguments_that_were_no_object": args }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use kiso_base::role::Role;
    use kiso_plan::picture::Picture;

    fn request(user: &str, turns: &[Turn]) -> Request {
        Request { turns: turns.to_vec(), ..Request::new(Role::Actor, String::new(), user.to_owned()) }
    }

    fn assistant(text: &str, calls: &[(&str, &str)]) -> Turn {
        let calls = calls.iter().map(|(id, args)| ToolCall::new(*id, "exec", *args));
        Turn::Assistant { text: text.to_owned(), calls: calls.collect() }
    }

    fn tool(id: &str, text: &str) -> Turn {
        Turn::Tool { id: id.to_owned(), name: "exec".to_owned(), text: text.to_owned() }
    }

    fn note(text: &str) -> Turn {
        Turn::Note(text.to_owned())
    }

    fn pictures(all: &[(&str, bool)]) -> Turn {
        let image = |(name, kept): &(&str, bool)| {
            let (name, media_type) = ((*name).to_owned(), "image/png".to_owned());
            let picture = Picture { name, digest: String::new(), media_type, width: 30, height: 20 };
            Image { content: kept.then(|| "AAAA".into()), ..Image::from_picture(&picture) }
        };
        Turn::Pictures(all.iter().map(image).collect())
    }

    #[test]
    fn pictures_stand_behind_the_results_and_where_none_are_shown_words_do() {
        let turns = [
            pictures(&[("a", true)]),
            assistant("", &[("x", "{}")]),
            tool("x", "one"),
            pictures(&[("b", true), ("c", false)]),
        ];
        let gone = "[picture: c (30x20 pixels), not kept any more; look at the file again if it matters]";
        assert_eq!(
            shown(&request("go", &turns)),
            [
                "user go[picture: a (30x20 pixels)]",
                "assistant [call00001={}]",
                &format!("user [call00001=one][picture: b (30x20 pixels)]{gone}"),
            ]
        );
        let Turn::Pictures(mut images) = pictures(&[("a", true), ("b", true)]) else { unreachable!() };
        images[1].described = Some("a cat".to_owned());
        let blind = request("go", &[Turn::Pictures(images)]);
        let messages = messages(&blind, Vision::Blind);
        let [Message::User { parts, .. }] = &messages[..] else { panic!("{messages:?}") };
        let [MessagePart::Text(text)] = &parts[..] else { panic!("{parts:?}") };
        assert!(text.contains("a (30x20 pixels). You cannot see"), "{text}");
        assert!(text.contains("describes it:]\na cat"), "{text}");
    }

    /// Returns a line for each message.
    fn shown(request: &Request) -> Vec<String> {
        let line = |message: &Message| match message {
            Message::User { results, parts } => {
                let results: String = results.iter().map(|r| format!("[{}={}]", r.id, r.text)).collect();
                let part = |part: &MessagePart| match part {
                    MessagePart::Text(text) => text.to_string(),
                    MessagePart::Image(image) => image.caption(),
                };
                format!("user {results}{}", parts.iter().map(part).collect::<String>())
            }
            Message::Assistant { text, calls } => {
                let calls: String = calls.iter().map(|c| format!("[{}={}]", c.id, c.input)).collect();
                format!("assistant {}{calls}", text.as_deref().unwrap_or_default())
            }
        };
        messages(request, Vision::Sees).iter().map(line).collect()
    }

    #[test]
    fn results_and_notes_become_one_message() {
        let turns = [
            note("first"),
            assistant("I look", &[("a", "{\"x\":1}"), ("b", "")]),
            tool("b", "two"),
            tool("a", "one"),
            note("reflect"),
            note("again"),
            assistant("done", &[]),
            note("more"),
        ];
        assert_eq!(
            shown(&request("go", &turns)),
            [
                "user go\n\nfirst",
                "assistant I look[call00001={\"x\":1}][call00002={}]",
                "user [call00001=one][call00002=two]reflect\n\nagain",
                "assistant done",
                "user more",
            ]
        );
    }

    #[test]
    fn ids_that_repeat_are_told_apart() {
        let turns = [
            assistant("", &[("call_1", "{}"), ("call_1", "{}")]),
            tool("call_1", "one"),
            tool("call_1", "two"),
            assistant("", &[("call_1", "{}")]),
            tool("call_1", "three"),
        ];
        assert_eq!(
            shown(&request("go", &turns)),
            [
                "user go",
                "assistant [call00001={}][call00002={}]",
                "user [call00001=one][call00002=two]",
                "assistant [call00003={}]",
                "user [call00003=three]",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_supplied_and_what_is_empty_left_out() {
        assert_eq!(shown(&request(" ", &[])), ["user (nothing)"]);
        assert_eq!(shown(&request("", &[assistant("hm", &[])])), ["user (nothing)", "assistant hm", "user Go on."]);
        let turns = [assistant(" \n", &[]), note(""), assistant("a", &[]), assistant("b", &[("x", "{}")])];
        assert_eq!(
            shown(&request("go", &turns)),
            [
                "user go",
                "assistant a\n\nb[call00001={}]",
                "user [call00001=interrupted: there is no result of this call]"
            ]
        );
        assert_eq!(shown(&request("go", &[tool("a", "one")])), ["user go\n\nResult of the tool exec:\none"]);
    }

    #[test]
    fn arguments_that_are_no_object_become_one() {
        assert_eq!(input("{\"a\": [1]}"), json!({ "a": [1] }));
        assert_eq!(input("  "), json!({}));
        for broken in ["{\"a\": ", "[1]", "null", "ls"] {
            assert_eq!(input(broken), json!({ "arguments_that_were_no_object": broken }));
        }
    }

    fn turn() -> impl Strategy<Value = Turn> {
        let text = prop_oneof![Just(String::new()), "[a-z ]{0,3}"];
        let call = prop_oneof![Just(("a", "{}")), Just(("b", "{")), Just(("", ""))];
        prop_oneof![
            (text.clone(), proptest::collection::vec(call, 0..3)).prop_map(|(text, calls)| assistant(&text, &calls)),
            (prop_oneof![Just("a"), Just("b"), Just("")], text.clone()).prop_map(|(id, text)| tool(id, &text)),
            text.prop_map(Turn::Note),
            any::<bool>().prop_map(|kept| pictures(&[("a", kept)])),
        ]
    }

    proptest! {
        /// The next call is never refused because of its form.
        #[test]
        fn every_conversation_is_legal(user in "[a-z ]{0,3}", turns in proptest::collection::vec(turn(), 0..12)) {
            let request = request(&user, &turns);
            let messages = messages(&request, Vision::Sees);
            let mut awaited: Vec<&str> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            for (n, message) in messages.iter().enumerate() {
                match message {
                    Message::User { results, parts } => {
                        prop_assert_eq!(n % 2, 0);
                        prop_assert_eq!(results.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), awaited);
                        prop_assert!(!results.is_empty() || !parts.is_empty());
                        let is_text = |part: &MessagePart| matches!(part, MessagePart::Text(_));
                        let blank = |part: &MessagePart| matches!(part, MessagePart::Text(text) if text.trim().is_empty());
                        prop_assert!(!parts.iter().any(blank));
                        prop_assert!(!parts.windows(2).any(|pair| pair.iter().all(is_text)));
                        awaited = Vec::new();
                    }
                    Message::Assistant { text, calls } => {
                        prop_assert_eq!(n % 2, 1);
                        prop_assert!(text.is_some() || !calls.is_empty());
                        prop_assert!(calls.iter().all(|call| call.input.is_object() && seen.insert(call.id.clone())));
                        awaited = calls.iter().map(|call| call.id.as_str()).collect();
                    }
                }
            }
            prop_assert_eq!(messages.len() % 2, 1, "the last word is the user's");
        }
    }
}
