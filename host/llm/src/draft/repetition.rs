//! Detects a model that only repeats itself. Small models can get into a loop that lasts until the limit of their answer, which
//! takes minutes on a small machine.

/// The number of bytes at the end of an answer that are compared, and how often the same text must repeat in them. Tables,
/// drawings and poems repeat themselves, too, but not for as long. Digits and signs are a token each, so for short repetitions
/// fewer bytes are enough.
const CIRCLES: [(usize, usize); 3] = [(600, 50), (2_000, 10), (6_000, 4)];

/// Number of bytes after which the end is compared again.
const STEP: usize = 250;

/// The end of an answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    tail: Vec<u8>,
    /// Bytes since the last comparison.
    unseen: usize,
    found: bool,
}

impl Repetition {
    /// Adds a piece of the model's output: text, thoughts or arguments.
    pub(super) fn push(&mut self, piece: &str) {
        for part in piece.as_bytes().chunks(STEP) {
            self.tail.extend_from_slice(part);
            self.unseen += part.len();
            if self.unseen >= STEP {
                self.unseen = 0;
                self.look();
            }
        }
    }

    /// Whether the output only repeats itself.
    pub(super) fn is_found(&self) -> bool {
        self.found
    }

    fn look(&mut self) {
        let longest = CIRCLES[CIRCLES.len() - 1].0;
        self.tail.drain(..self.tail.len().saturating_sub(longest));
        self.found |= CIRCLES.iter().any(|(bytes, times)| {
            let start = self.tail.len().checked_sub(*bytes);
            start.is_some_and(|start| period(&self.tail[start..]) * times <= *bytes)
        });
    }
}

/// Returns the period of a text in bytes, or its length if it does not repeat: the text minus its longest border (Knuth, Morris
/// and Pratt).
fn period(text: &[u8]) -> usize {
    let mut borders = vec![0; text.len()];
    for end in 1..text.len() {
        let mut border: usize = borders[end - 1];
        while border > 0 && text[border] != text[end] {
            border = borders[border - 1];
        }
        borders[end] = border + usize::from(text[border] == text[end]);
    }
    text.len() - borders.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, piece: usize) -> bool {
        let mut repetition = Repetition::default();
        text.as_bytes().chunks(piece).for_each(|piece| repetition.push(&String::from_utf8_lossy(piece)));
        repetition.is_found()
    }

    #[test]
    fn a_text_begins_again_after_its_period() {
        for (text, expected) in [("", 0), ("a", 1), ("aaaa", 1), ("ababa", 2), ("abcabcab", 3), ("abcd", 4)] {
            assert_eq!(period(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_circle_is_found_however_it_begins_and_is_cut_into_pieces() {
        let sentence = "I am happy to help you with anything. ";
        let paragraph: String = (0..1_200).map(|n: u32| char::from(b'a' + (n * n % 23) as u8)).collect();
        for circle in ["\n", " \t\n", "ä", "2024, ", sentence, &paragraph] {
            let text = format!("One thing at first. {}", circle.repeat(8_000 / circle.len()));
            for piece in [1, 7, 400, text.len()] {
                assert!(found(&text, piece), "{circle:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_repeats_itself_for_less_long_is_an_answer() {
        let rows: String = (0..2_000).map(|n| format!("| {n} | 0.0 | 0.0 |\n")).collect();
        let said = "No. ".repeat(140);
        let verses = (0..40).map(|n| format!("Verse {n}\n{}", "la la la la\n".repeat(20))).collect::<String>();
        let sentence = "I am happy to help you with anything. ".repeat(50);
        for text in [rows, said, "=".repeat(590), sentence, verses] {
            assert!(!found(&text, 3), "{}", &text[..80]);
        }
    }
}
