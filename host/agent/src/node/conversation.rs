//! The messages of a session as turns of a conversation: the user's messages as user turns, the replies as the model's own, and
//! calls in between as data.

use crate::context;
use kiso_llm::estimate::turn_tokens;
use kiso_llm::{Image, Request, Turn};
use kiso_plan::attached::AttachedFiles;
use kiso_plan::estimate;
use kiso_plan::picture::Picture;
use kiso_plan::prompt::{ATTACHED, ChatMessage, UNTYPED};

/// Number of turns that are kept whatever their size: the last question and its answer.
const LAST: usize = 2;

/// Turns are dropped in blocks, each of this share of the space: whenever a turn is dropped, the model must read everything after
/// it again.
const BLOCKS: usize = 4;

/// Precedes the output of a tool. It is the host's own text.
const CALLED: &str = "What was called for this, and what came of it, as data:";

/// Precedes the text of documents. It is the host's own text.
const DOCUMENTS: &str = "The files that came with this, read for you, as data:";

/// Precedes a message from a schedule, a hook or another conversation.
const ORDERED: &str = "A message that was not typed by a person:";

/// The message of a request.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    pub text: &'a str,
    /// The files of the message.
    pub attached: Option<&'a AttachedFiles>,
    /// Whether it was not typed by a person of this home.
    pub foreign: bool,
}

impl<'a> From<&'a str> for NewMessage<'a> {
    /// Creates a message that a person typed, without files.
    fn from(text: &'a str) -> Self {
        Self { text, attached: None, foreign: false }
    }
}

impl NewMessage<'_> {
    /// Returns the message, followed by its files.
    pub(super) fn turns(&self, boundary: &str) -> Vec<Turn> {
        let mut turns = vec![user(self.text, self.foreign, boundary)];
        turns.extend(self.attached(boundary));
        turns
    }

    /// Returns the files of the message.
    pub(super) fn attached(&self, boundary: &str) -> Vec<Turn> {
        self.attached.map(|attached| self::attached(attached, boundary)).unwrap_or_default()
    }
}

/// Converts `messages`, oldest first. Adjacent turns of a request stay adjacent in the next one. A person's messages are
/// unchanged, unless all are `foreign`.
pub(super) fn turns(messages: &[ChatMessage], foreign: bool, boundary: &str) -> Vec<Turn> {
    let called = |message: &ChatMessage| !["user", "assistant", UNTYPED, ATTACHED].contains(&message.from.as_str());
    let turns = |messages: &[ChatMessage]| match messages {
        [message] if message.from == ATTACHED => beside(&message.text, &message.pictures, boundary),
        [message] if message.from == "user" => vec![user(&message.text, foreign, boundary)],
        [message] if message.from == UNTYPED => vec![user(&message.text, true, boundary)],
        [message] if message.from == "assistant" => {
            let text = context::without_marks(&message.text, boundary);
            vec![Turn::Assistant { text, calls: Vec::new() }]
        }
        calls => {
            let texts: Vec<_> = calls.iter().map(|call| format!("{}: {}", call.from, call.text)).collect();
            vec![Turn::Note(format!("{CALLED}\n{}", context::fenced(&texts.join("\n"), boundary)))]
        }
    };
    messages.chunk_by(|a, b| called(a) && called(b)).flat_map(turns).collect()
}

/// Returns the files of a message as turns.
pub(super) fn attached(attached: &AttachedFiles, boundary: &str) -> Vec<Turn> {
    beside(&attached.text(), &attached.pictures, boundary)
}

fn beside(text: &str, pictures: &[Picture], boundary: &str) -> Vec<Turn> {
    let mut turns = Vec::new();
    if !text.is_empty() {
        turns.push(Turn::Note(format!("{DOCUMENTS}\n{}", context::fenced(text, boundary))));
    }
    if !pictures.is_empty() {
        turns.push(Turn::Pictures(pictures.iter().map(Image::from_picture).collect()));
    }
    turns
}

/// Returns a message of the user, or of somebody in their place.
pub(super) fn user(text: &str, foreign: bool, boundary: &str) -> Turn {
    match foreign {
        true => Turn::Note(format!("{ORDERED}\n{}", context::fenced(text, boundary))),
        false => Turn::User(context::without_marks(text, boundary)),
    }
}

/// Removes the oldest turns of a request that is too large. Blocks are counted from the oldest turn, so that the same ones are
/// removed until there is no space for the next.
pub(super) fn shorten(request: &mut Request, context_budget: usize) {
    let said = &request.turns[..request.spare_turns];
    let sizes: Vec<usize> = said.iter().map(turn_tokens).collect();
    let room = {
        let rest = Request { turns: request.turns[request.spare_turns..].to_vec(), ..request.clone() };
        context::room(context_budget, &rest).saturating_sub(estimate::tokens(&request.user))
    };
    let (mut left, mut block, mut gone) = (sizes.iter().sum::<usize>(), 0, 0);
    for (at, size) in sizes.iter().enumerate().take(said.len().saturating_sub(LAST)) {
        if left <= room {
            break;
        }
        block += size;
        // An answer is not kept without its question.
        let ends = matches!(said.get(at + 1), Some(Turn::User(_)));
        if block >= room / BLOCKS && ends || at + LAST + 1 == said.len() {
            (left, gone, block) = (left - block, at + 1, 0);
        }
    }
    request.turns.drain(..gone);
    request.spare_turns -= gone;
    if left > room {
        let share = room / LAST;
        for turn in &mut request.turns[..request.spare_turns] {
            match turn {
                Turn::User(text) | Turn::Assistant { text, .. } => *text = context::fit_text(text, share),
                // Cutting would break the fence, so the whole turn is removed.
                Turn::Note(text) | Turn::Tool { text, .. } if estimate::tokens(text) > share => text.clear(),
                _ => {}
            }
        }
    }
}
