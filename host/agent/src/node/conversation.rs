//! What was said in a session as turns of a conversation: the user's words as the user's, the replies as the model's own, and
//! what was called between them as data.

use crate::context;
use kiso_llm::estimate::turn_tokens;
use kiso_llm::{Request, Turn};
use kiso_plan::estimate;
use kiso_plan::prompt::{ChatMessage, UNTYPED};

/// The turns that are kept whatever their size: what was asked last, and what was answered.
const LAST: usize = 2;

/// Turns go by the block, and a block has this part of the room: each time one goes, the model reads all that follows anew.
const BLOCKS: usize = 4;

/// Stands before what a tool wrote. It is the host's own word.
const CALLED: &str = "What was called for this, and what came of it, as data:";

/// Stands before a message that a schedule, a hook or another conversation sent.
const ORDERED: &str = "A message that was not typed by a person:";

/// `messages`, oldest first. What stands next to each other in a request does so in the next one. A person's words stand as
/// they are, unless all are `foreign`.
pub(super) fn turns(messages: &[ChatMessage], foreign: bool, boundary: &str) -> Vec<Turn> {
    let called = |message: &ChatMessage| !["user", "assistant", UNTYPED].contains(&message.from.as_str());
    let turn = |messages: &[ChatMessage]| match messages {
        [message] if message.from == "user" => user(&message.text, foreign, boundary),
        [message] if message.from == UNTYPED => user(&message.text, true, boundary),
        [message] if message.from == "assistant" => {
            let text = context::without_marks(&message.text, boundary);
            Turn::Assistant { text, calls: Vec::new() }
        }
        calls => {
            let texts: Vec<_> = calls.iter().map(|call| format!("{}: {}", call.from, call.text)).collect();
            Turn::Note(format!("{CALLED}\n{}", context::fenced(&texts.join("\n"), boundary)))
        }
    };
    messages.chunk_by(|a, b| called(a) && called(b)).map(turn).collect()
}

/// What the user wrote, or somebody in their place.
pub(super) fn user(text: &str, foreign: bool, boundary: &str) -> Turn {
    match foreign {
        true => Turn::Note(format!("{ORDERED}\n{}", context::fenced(text, boundary))),
        false => Turn::User(context::without_marks(text, boundary)),
    }
}

/// Takes the oldest of what was said out of a request that has no room for all of it. Blocks are counted from the oldest, so
/// that the same ones go until there is no room for the next.
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
        // An answer is not left without its question.
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
                // What is fenced stays so: the turn goes as a whole.
                Turn::Note(text) | Turn::Tool { text, .. } if estimate::tokens(text) > share => text.clear(),
                _ => {}
            }
        }
    }
}
