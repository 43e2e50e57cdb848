//! Holds back text that may be a call while an answer streams, so that nobody sees the protocol as text.

use super::{MarkAt, mark_at};
use crate::quotes::Quotes;

/// Passes on text, and keeps everything from the first mark on.
#[derive(Debug, Default)]
pub(crate) struct HeldText {
    quotes: Quotes,
    /// Whether anything other than white space was passed on.
    begun: bool,
    held: String,
    /// Whether a mark was found: nothing more is passed on.
    closed: bool,
}

impl HeldText {
    /// Returns the part of the text so far that can be shown.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.closed {
            return String::new();
        }
        let mut shown = self.held.len();
        for (at, c) in self.held.char_indices() {
            let found = match c {
                _ if !self.begun && !c.is_whitespace() => self.beginning(&self.held[at..]),
                '<' | '[' if !self.quotes.is_quoted() => mark_at(&self.held[at..], self.quotes.is_line_start()),
                _ => MarkAt::Nowhere,
            };
            if found != MarkAt::Nowhere {
                self.closed = found != MarkAt::Perhaps;
                shown = at;
                break;
            }
            self.begun |= !c.is_whitespace();
            self.quotes.push(c);
        }
        self.held.drain(..shown).collect()
    }

    /// Whether an answer with this beginning may be a JSON call as a whole, or begins with a mark.
    fn beginning(&self, text: &str) -> MarkAt {
        const INFO: usize = 16;
        let whole = MarkAt::Here(super::Misuse::Call);
        if text.starts_with('{') {
            return whole;
        }
        if let Some(rest) = text.strip_prefix('[') {
            match rest.trim_start().chars().next() {
                Some('{') => return whole,
                None if rest.len() < INFO => return MarkAt::Perhaps,
                _ => {}
            }
        }
        if text.starts_with('`') && text.len() < 3 && "```".starts_with(text) {
            return MarkAt::Perhaps;
        }
        if let Some(rest) = text.strip_prefix("```") {
            return match rest.split_once('\n') {
                None if rest.len() < INFO => MarkAt::Perhaps,
                Some((info, inner)) if ["", "json", "tool_call", "tool_code"].contains(&info.trim()) => {
                    match inner.trim_start().chars().next() {
                        Some('{' | '[') => whole,
                        None if inner.len() < INFO => MarkAt::Perhaps,
                        _ => MarkAt::Nowhere,
                    }
                }
                _ => MarkAt::Nowhere,
            };
        }
        if text.starts_with(['<', '[']) { mark_at(text, true) } else { MarkAt::Nowhere }
    }

    /// Returns the text that was held back.
    pub(crate) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}
