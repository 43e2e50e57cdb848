//! Which of the last messages are recalled (design §7).

use super::tokens;
use crate::llm::Turn;
use crate::llm::estimate::turn_tokens;
use crate::llm::prompt::ChatMessage;

/// A message as the window sees it.
pub trait Recalled {
    /// What it takes of a prompt, in estimated tokens.
    fn size(&self) -> usize;

    /// Whether it is the result of a call that stands before it, which alone makes no sense.
    fn is_result(&self) -> bool;
}

impl Recalled for ChatMessage {
    fn size(&self) -> usize {
        tokens(&self.from) + tokens(&self.text) + 1
    }

    fn is_result(&self) -> bool {
        self.from == "tool"
    }
}

impl Recalled for Turn {
    fn size(&self) -> usize {
        turn_tokens(self)
    }

    fn is_result(&self) -> bool {
        matches!(self, Turn::Tool { .. })
    }
}

/// The newest of `messages` (oldest first, of one segment): at most `max` of them and at most `budget` tokens. A call
/// and its result count as two and are never separated, nor is a message left out before which an older one is kept.
pub fn window<T: Recalled>(messages: &[T], max: usize, budget: usize) -> &[T] {
    let (mut start, mut taken) = (messages.len(), 0usize);
    while start > 0 {
        let mut from = start - 1;
        while from > 0 && messages[from].is_result() {
            from -= 1;
        }
        let exchange = &messages[from..start];
        taken = taken.saturating_add(exchange.iter().map(Recalled::size).sum());
        // A result whose call is not here any more.
        let torn = exchange[0].is_result();
        if torn || messages.len() - from > max || taken > budget {
            break;
        }
        start = from;
    }
    &messages[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(from: &str, size: usize) -> ChatMessage {
        // "tool" and "user" are one token each, and one more separates them from the text.
        ChatMessage { from: from.to_owned(), text: "word".repeat(size.saturating_sub(2)) }
    }

    #[test]
    fn the_newest_are_taken_first() {
        let messages = [said("user", 10), said("user", 20), said("user", 30)];
        assert_eq!(window(&messages, 20, 50), &messages[1..]);
        assert_eq!(window(&messages, 20, 49), &messages[2..]);
        assert_eq!(window(&messages, 1, 1_000), &messages[2..]);
        assert_eq!(window(&messages, 20, 1_000), &messages);
        assert!(window(&messages, 0, 1_000).is_empty() && window(&messages, 20, 29).is_empty());
    }

    #[test]
    fn a_call_counts_with_its_results() {
        let messages = [said("user", 5), said("assistant", 5), said("tool", 5), said("tool", 5), said("user", 5)];
        assert_eq!(window(&messages, 3, 1_000), &messages[4..]);
        assert_eq!(window(&messages, 4, 1_000), &messages[1..]);
        // Results without their call: it was cut off when they were read.
        assert_eq!(window(&messages[2..], 20, 1_000), &messages[4..]);
    }

    #[test]
    fn turns_are_recalled_like_messages() {
        let call = Turn::Assistant { text: String::new(), calls: Vec::new() };
        let result = Turn::Tool { id: "1".to_owned(), name: "t".to_owned(), text: "x".repeat(40) };
        let turns = [call.clone(), result.clone(), call, result, Turn::Note("n".to_owned())];
        assert_eq!(window(&turns, 4, 1_000).len(), 3);
        assert_eq!(window(&turns, 20, 12).len(), 3);
    }

    proptest! {
        #[test]
        fn limits_hold_and_no_result_stands_alone(
            kinds in proptest::collection::vec((0..3usize, 2..40usize), 0..40), max in 0..30usize, budget in 0..500usize
        ) {
            let messages: Vec<_> = kinds.iter().map(|(kind, n)| said(["user", "assistant", "tool"][*kind], *n)).collect();
            let kept = window(&messages, max, budget);
            prop_assert!(kept.len() <= max && kept.iter().map(Recalled::size).sum::<usize>() <= budget);
            prop_assert!(messages.ends_with(kept));
            prop_assert!(!kept.first().is_some_and(Recalled::is_result));
        }
    }
}
