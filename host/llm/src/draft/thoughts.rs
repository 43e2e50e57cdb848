//! `<think>…</think>` in an answer: local models write their thoughts into the text. They are removed.
//!
//! ```text
//! <think>a</think> <think>b</think> answer     before the answer, one block or several
//! a </think> answer                            the template has written the opening mark, and the server does not send it
//! answer with <think>text</think>              anywhere else a mark is text
//! ```

use crate::quotes::Quotes;

/// The names in the marks of models, in any case, in `<…>` or `[…]`.
const NAMES: [&str; 6] = ["think", "thinking", "thought", "thoughts", "reasoning", "seed:think"];

/// Maximum bytes of an opening mark with its attributes.
const MAX_MARK: usize = 200;

/// The parts of a piece of the answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ThoughtPiece {
    pub answer: String,
    pub thought: String,
    /// Whether all earlier text of the answer turned out to be thought.
    pub voids: bool,
}

/// Removes thoughts from a text that arrives in pieces.
#[derive(Debug)]
pub(super) struct Thoughts {
    state: ReadState,
    /// The quotes of the answer so far.
    quotes: Quotes,
    /// Whether a closing mark in the answer is text, because its opening mark was seen.
    opened: bool,
}

#[derive(Debug)]
enum ReadState {
    /// Held back, because it may become a mark. White space is kept apart from the mark's first letters, so that each piece of a
    /// model that writes only white space is read once. White space between thoughts and answer belongs to neither.
    Beginning { space: String, mark: String, after_thoughts: bool },
    /// Inside of thoughts that end with this mark; `tail` contains the last characters, which may be the mark's beginning.
    Inside { close: String, tail: String },
    /// `tail` contains the last characters, which may be the beginning of a mark.
    Answer { tail: String },
}

impl Default for Thoughts {
    fn default() -> Self {
        let state = ReadState::Beginning { space: String::new(), mark: String::new(), after_thoughts: false };
        Self { state, quotes: Quotes::default(), opened: false }
    }
}

/// The mark at the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    None,
    /// More text is needed.
    Maybe,
    /// An opening mark of this many bytes, and the text of its closing mark in lower case.
    Open(usize, String),
    Close(usize),
}

impl Thoughts {
    /// Reads `piece` and the text that was held back.
    pub(super) fn push(&mut self, piece: &str) -> ThoughtPiece {
        let mut heard = ThoughtPiece::default();
        let mut piece = piece.to_owned();
        loop {
            match &mut self.state {
                ReadState::Beginning { space, mark, after_thoughts } => {
                    let words = if mark.is_empty() { piece.trim_start() } else { &piece };
                    space.push_str(&piece[..piece.len() - words.len()]);
                    mark.push_str(words);
                    match read(mark) {
                        _ if mark.is_empty() => return heard,
                        Mark::Maybe => return heard,
                        Mark::Open(length, close) => {
                            piece = mark.split_off(length);
                            self.opened = true;
                            self.state = ReadState::Inside { close, tail: String::new() };
                        }
                        Mark::None | Mark::Close(_) => {
                            let space = if *after_thoughts { String::new() } else { std::mem::take(space) };
                            piece = space + mark.as_str();
                            self.state = ReadState::Answer { tail: String::new() };
                        }
                    }
                }
                ReadState::Inside { close, tail } => {
                    tail.push_str(&piece);
                    match tail.to_ascii_lowercase().find(close.as_str()) {
                        Some(at) => {
                            piece = tail.split_off(at + close.len());
                            heard.thought.push_str(&tail[..at]);
                            let (space, mark) = (String::new(), String::new());
                            self.state = ReadState::Beginning { space, mark, after_thoughts: true };
                        }
                        None => {
                            let keep = tail.floor_char_boundary(tail.len().saturating_sub(close.len()));
                            heard.thought.extend(tail.drain(..keep));
                            return heard;
                        }
                    }
                }
                ReadState::Answer { tail } => {
                    let text = std::mem::take(tail) + &piece;
                    match self.answer(&text, &mut heard) {
                        Some(rest) => piece = rest,
                        None => return heard,
                    }
                }
            }
        }
    }

    /// Reads a text of the answer. Returns the text after a closing mark without an opening one; everything before it was
    /// thought.
    fn answer(&mut self, text: &str, heard: &mut ThoughtPiece) -> Option<String> {
        for (at, c) in text.char_indices() {
            if matches!(c, '<' | '[') && !self.opened && !self.quotes.is_quoted() {
                match read(&text[at..]) {
                    Mark::Maybe => {
                        heard.answer.push_str(&text[..at]);
                        self.state = ReadState::Answer { tail: text[at..].to_owned() };
                        return None;
                    }
                    Mark::Close(length) => {
                        heard.voids = true;
                        heard.thought = std::mem::take(&mut heard.answer) + &text[..at];
                        self.opened = true;
                        self.quotes = Quotes::default();
                        let (space, mark) = (String::new(), String::new());
                        self.state = ReadState::Beginning { space, mark, after_thoughts: true };
                        return Some(text[at + length..].to_owned());
                    }
                    Mark::Open(..) => self.opened = true,
                    Mark::None => {}
                }
            }
            self.quotes.push(c);
        }
        heard.answer.push_str(text);
        None
    }

    /// Returns the text that was held back, after the last piece. Thoughts without an end are not an answer.
    pub(super) fn rest(&mut self) -> ThoughtPiece {
        let state = std::mem::replace(&mut self.state, ReadState::Answer { tail: String::new() });
        match state {
            ReadState::Beginning { space, mark, after_thoughts: false } => {
                ThoughtPiece { answer: space + &mark, ..ThoughtPiece::default() }
            }
            ReadState::Beginning { mark: answer, .. } | ReadState::Answer { tail: answer } => {
                ThoughtPiece { answer, ..ThoughtPiece::default() }
            }
            ReadState::Inside { tail: thought, .. } => ThoughtPiece { thought, ..ThoughtPiece::default() },
        }
    }

    /// Whether no text of the answer is held back.
    pub(super) fn is_empty(&self) -> bool {
        match &self.state {
            ReadState::Beginning { space, mark, .. } => space.is_empty() && mark.is_empty(),
            ReadState::Inside { .. } => true,
            ReadState::Answer { tail } => tail.is_empty(),
        }
    }
}

/// Returns the mark at the beginning of a text.
fn read(text: &str) -> Mark {
    let head = text[..text.floor_char_boundary(MAX_MARK)].to_ascii_lowercase();
    let (from, to) = match head.as_bytes().first() {
        Some(b'<') => ('<', '>'),
        Some(b'[') => ('[', ']'),
        _ => return Mark::None,
    };
    let inner = &head[1..];
    let (closes, inner) = match inner.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, inner),
    };
    let length = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != ':');
    let Some(length) = length else {
        // Its name may be incomplete.
        let may_be = text.len() <= MAX_MARK && NAMES.iter().any(|name| name.starts_with(inner));
        return if may_be { Mark::Maybe } else { Mark::None };
    };
    let (name, rest) = inner.split_at(length);
    if !NAMES.contains(&name) {
        return Mark::None;
    }
    let before = head.len() - rest.len();
    match rest.find(to) {
        Some(0) if closes => Mark::Close(before + 1),
        Some(at) if !closes && (at == 0 || from == '<' && rest.starts_with(char::is_whitespace)) => {
            Mark::Open(before + at + 1, format!("{from}/{name}{to}"))
        }
        None if !closes && from == '<' && rest.starts_with(char::is_whitespace) && text.len() < MAX_MARK => Mark::Maybe,
        _ => Mark::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the answer and the thoughts do not depend on how the text is split.
    #[track_caller]
    fn check(text: &str, answer: &str, thought: &str) {
        for size in 1..=text.chars().count().max(1) {
            let characters: Vec<char> = text.chars().collect();
            let mut thoughts = Thoughts::default();
            let (mut said, mut thinking) = (String::new(), String::new());
            let pieces = characters.chunks(size).map(|piece| thoughts.push(&piece.iter().collect::<String>()));
            for heard in pieces.collect::<Vec<_>>().into_iter().chain([thoughts.rest()]) {
                if heard.voids {
                    thinking.push_str(&std::mem::take(&mut said));
                }
                thinking.push_str(&heard.thought);
                said.push_str(&heard.answer);
            }
            assert_eq!((said.as_str(), thinking.as_str()), (answer, thought), "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn thoughts_before_the_answer_go() {
        check("<think>hm </thin é</think>\n\nHello", "Hello", "hm </thin é");
        check(" \n<thinking>a</think></thinking>Hello", "Hello", "a</think>");
        check("<reasoning></reasoning>{}", "{}", "");
        check("<think>never ends", "", "never ends");
        check("<think></think>", "", "");
    }

    #[test]
    fn thoughts_have_many_forms() {
        check("<thought>a</thought>b", "b", "a");
        check("<THINK>a</Think>b", "b", "a");
        check("<think duration=\"3\">a</think>b", "b", "a");
        check("[THINK]a[/THINK]b", "b", "a");
        check("<think>a</think>\n<think>b</think>\n\nc", "c", "ab");
    }

    #[test]
    fn a_closing_mark_without_an_opening_one_ends_thoughts() {
        check("Okay, the user\nwants a.\n</think>\n\nb", "b", "Okay, the user\nwants a.\n");
        check("a[/THINK]b", "b", "a");
        check("a</think><think>b</think>c", "c", "ab");
        check("a</think>b</think>c", "b</think>c", "a");
    }

    /// One character at a time. If the time grew with the square of the length, this test would not end.
    #[test]
    fn white_space_without_end_is_read_once() {
        let mut thoughts = Thoughts::default();
        let held: usize = (0..1 << 20).map(|_| thoughts.push(" ").answer.len()).sum();
        assert_eq!((held, thoughts.push("a").answer.len()), (0, (1 << 20) + 1));
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "",
            "Hello",
            " Hello",
            "<thin",
            "<thing>",
            "<",
            "a <think>b</think>",
            "  ",
            "<b>bold</b>",
            "[1] a",
            "The mark `</think>` ends thoughts.",
            "```\n</think>\n```\n",
            "a </think",
            "<thinker>a",
            "<think",
            "<think about=",
            "</thinks>",
        ] {
            check(text, text, "");
        }
        check("<think>a</think>b <think>c</think>", "b <think>c</think>", "a");
        check("</think>a", "a", "");
    }
}
