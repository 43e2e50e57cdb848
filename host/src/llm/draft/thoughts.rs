//! `<think>…</think>` before an answer: local models write their thoughts into the text, where nobody wants them.

/// The marks that models use.
const MARKS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Takes thoughts out of a text that comes in pieces. Only at the very beginning: later on, such a mark is text.
#[derive(Debug)]
pub(super) enum Thoughts {
    /// May still become a mark; held back. What comes before the mark is apart from its first letters, so that a model
    /// that writes nothing but white space is not read from its beginning with every piece.
    Beginning {
        space: String,
        mark: String,
    },
    /// Inside, until this mark; with the last characters, which may be its first part.
    Inside {
        close: &'static str,
        tail: String,
    },
    /// After the mark: white space between thoughts and answer belongs to neither.
    Between,
    Answer,
}

impl Default for Thoughts {
    fn default() -> Self {
        Self::Beginning { space: String::new(), mark: String::new() }
    }
}

impl Thoughts {
    /// What of `piece`, and of what was held back, is the answer.
    pub fn without(&mut self, piece: &str) -> String {
        let mut piece = piece.to_owned();
        loop {
            match self {
                Self::Beginning { space, mark } => {
                    let words = if mark.is_empty() { piece.trim_start() } else { &piece };
                    space.push_str(&piece[..piece.len() - words.len()]);
                    mark.push_str(words);
                    if let Some((open, close)) = MARKS.into_iter().find(|(open, _)| mark.starts_with(open)) {
                        piece = mark[open.len()..].to_owned();
                        *self = Self::Inside { close, tail: String::new() };
                    } else if MARKS.iter().any(|(open, _)| open.starts_with(mark.as_str())) {
                        return String::new();
                    } else {
                        let held = std::mem::take(space) + mark;
                        *self = Self::Answer;
                        return held;
                    }
                }
                Self::Inside { close, tail } => {
                    tail.push_str(&piece);
                    if let Some((_, after)) = tail.split_once(*close) {
                        piece = after.to_owned();
                        *self = Self::Between;
                    } else {
                        let keep = tail.len().saturating_sub(close.len());
                        tail.drain(..tail.ceil_char_boundary(keep));
                        return String::new();
                    }
                }
                Self::Between => {
                    let answer = piece.trim_start();
                    if !answer.is_empty() {
                        let answer = answer.to_owned();
                        *self = Self::Answer;
                        return answer;
                    }
                    return String::new();
                }
                Self::Answer => return piece,
            }
        }
    }

    /// What was held back, after the last piece. Thoughts without an end are no answer.
    pub fn rest(&mut self) -> String {
        match std::mem::replace(self, Self::Answer) {
            Self::Beginning { space, mark } => space + &mark,
            Self::Inside { .. } | Self::Between | Self::Answer => String::new(),
        }
    }

    /// Nothing is held back.
    pub fn is_empty(&self) -> bool {
        !matches!(self, Self::Beginning { space, mark } if !(space.is_empty() && mark.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, answer: &str) {
        for size in 1..=text.chars().count().max(1) {
            let characters: Vec<char> = text.chars().collect();
            let mut thoughts = Thoughts::default();
            let mut heard: String =
                characters.chunks(size).map(|piece| thoughts.without(&piece.iter().collect::<String>())).collect();
            heard.push_str(&thoughts.rest());
            assert_eq!(heard, answer, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn thoughts_before_the_answer_go() {
        check("<think>hm </thin é</think>\n\nHello", "Hello");
        check(" \n<thinking>a</think></thinking>Hello", "Hello");
        check("<reasoning></reasoning>{}", "{}");
        check("<think>never ends", "");
        check("<think></think>", "");
    }

    /// A character at a time. With time that grew with the square of it, this
    /// test would not end.
    #[test]
    fn white_space_without_end_is_read_once() {
        let mut thoughts = Thoughts::default();
        let held: usize = (0..1 << 20).map(|_| thoughts.without(" ").len()).sum();
        assert_eq!((held, thoughts.without("a").len()), (0, (1 << 20) + 1));
    }

    #[test]
    fn everything_else_stays() {
        for text in ["", "Hello", " Hello", "<thin", "<thing>", "<", "a <think>b</think>", "  ", "<b>bold</b>"] {
            check(text, text);
        }
        check("<think>a</think>b <think>c</think>", "b <think>c</think>");
    }
}
