//! The source of inputs: random numbers that depend only on the seed, the target and the number of the input.

/// A generator of 64 bits (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
    number: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64, target: &str, number: u64) -> Dice {
        let name = target.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
        let state = seed ^ name.rotate_left(32) ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut dice = Dice { state, number };
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The number of the input within its target.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A number below `most`. `most` must not be 0.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// Returns true once in `times` on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A text of pieces that programs often handle wrongly.
    pub(crate) fn text(&mut self) -> String {
        const PIECES: [&str; 24] = [
            "a",
            "Oslo",
            "weather.csv",
            " ",
            "\"",
            "\\",
            "\n",
            "\t",
            "\u{0}",
            "é",
            "日本",
            "🦀",
            "\u{202e}",
            "\u{feff}",
            "-1",
            "1e999",
            "{",
            "]",
            "<FINAL_PRD>",
            "</FINAL_PRD>",
            "ref:x",
            "\u{1b}[31m",
            "%00",
            "..",
        ];
        let mut text: String = (0..self.below(6)).map(|_| self.one_of(&PIECES)).collect();
        if self.once_in(200) {
            text = text.repeat(1 + self.below(2_000));
        }
        text
    }

    /// Damages the bytes: changes, removes or inserts a byte, repeats a piece, or cuts off the end.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.below(bytes.len());
        match self.below(6) {
            0 => bytes[at] = self.next() as u8,
            1 => bytes[at] ^= 1 << self.below(8),
            2 => {
                bytes.remove(at);
            }
            3 => bytes.insert(at, self.next() as u8),
            4 => bytes.truncate(at),
            _ => {
                let length = 1 + self.below(32.min(bytes.len() - at));
                let piece = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}
