//! Glyphs become words, and words become pieces of lines.

use super::glyphs::Placed;

/// Gap between glyphs, in sizes, from which on they are of two words.
const WORD_GAP: f32 = 0.13;

/// Gap between words, in sizes, from which on they are of two columns.
const PIECE_GAP: f32 = 1.0;

/// Lines that a word is compared with.
const RECENT_LINES: usize = 12;

/// Words of one line without a wide gap between them.
#[derive(Debug, Clone)]
pub struct Piece {
    pub left: f32,
    pub right: f32,
    pub top: f32,
    pub bottom: f32,
    pub baseline: f32,
    pub size: f32,
    /// Number of its line on the page, from the top.
    pub line: usize,
    pub words: usize,
    pub text: String,
}

#[derive(Debug)]
struct Word {
    start: f32,
    end: f32,
    baseline: f32,
    size: f32,
    text: String,
    /// Whether a space was drawn behind it.
    spaced: bool,
}

/// The pieces of one direction of text, line by line.
pub fn pieces(glyphs: &[Placed], turn: u8) -> Vec<Piece> {
    let words = words(glyphs.iter().filter(|glyph| glyph.turn == turn));
    let mut pieces = Vec::new();
    for (number, line) in lines(words).into_iter().enumerate() {
        split(line, number, &mut pieces);
    }
    pieces
}

fn words<'g>(glyphs: impl Iterator<Item = &'g Placed>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut last: Option<&Placed> = None;
    for glyph in glyphs {
        let near = last.is_some_and(|last| {
            let size = last.size.max(glyph.size);
            let gap = glyph.start - last.end;
            (glyph.baseline - last.baseline).abs() < 0.45 * size && gap < WORD_GAP * size && gap > -0.5 * size
        });
        // Bold that is made by drawing twice.
        let double = last.is_some_and(|last| {
            (glyph.start - last.start).abs() < 0.12 * glyph.size
                && (glyph.baseline - last.baseline).abs() < 0.12 * glyph.size
                && glyph.end - glyph.start > 0.2 * glyph.size
                && same(last, glyph)
        });
        if double {
            continue;
        }
        if glyph.text.is_space() {
            if let Some(word) = words.last_mut() {
                word.spaced |= near;
            }
            last = None;
            continue;
        }
        match words.last_mut() {
            Some(word) if near => {
                glyph.text.push_to(&mut word.text);
                word.end = word.end.max(glyph.end);
                word.size = word.size.max(glyph.size);
            }
            _ => {
                let mut text = String::new();
                glyph.text.push_to(&mut text);
                let Placed { start, end, baseline, size, .. } = *glyph;
                words.push(Word { start, end, baseline, size, text, spaced: false });
            }
        }
        last = Some(glyph);
    }
    words
}

fn same(a: &Placed, b: &Placed) -> bool {
    let (mut first, mut second) = (String::new(), String::new());
    a.text.push_to(&mut first);
    b.text.push_to(&mut second);
    first == second
}

/// Words that stand beside each other, from the top. Each line is in order from the left.
fn lines(mut words: Vec<Word>) -> Vec<Vec<Word>> {
    words.sort_by(|a, b| a.baseline.total_cmp(&b.baseline));
    // Top, bottom, words. The extent is that of the first word, so that a line does not grow down the page.
    let mut lines: Vec<(f32, f32, Vec<Word>)> = Vec::new();
    for word in words {
        let (top, bottom) = (word.baseline - 0.75 * word.size, word.baseline + 0.2 * word.size);
        let recent = lines.len().saturating_sub(RECENT_LINES);
        let overlap = |line: &(f32, f32, Vec<Word>)| {
            (line.1.min(bottom) - line.0.max(top)) / (bottom - top).min(line.1 - line.0).max(0.01)
        };
        let best = (recent..lines.len()).max_by(|a, b| overlap(&lines[*a]).total_cmp(&overlap(&lines[*b])));
        match best.filter(|best| overlap(&lines[*best]) > 0.5) {
            Some(best) => {
                // A large letter at the beginning must not stand for the lines beside it.
                if word.size * 1.5 < lines[best].1 - lines[best].0 {
                    lines[best].0 = top;
                    lines[best].1 = bottom;
                }
                lines[best].2.push(word);
            }
            None => lines.push((top, bottom, vec![word])),
        }
    }
    lines.sort_by(|a, b| a.1.total_cmp(&b.1));
    lines
        .into_iter()
        .map(|(_, _, mut words)| {
            words.sort_by(|a, b| a.start.total_cmp(&b.start));
            words
        })
        .collect()
}

/// Cuts a line at its wide gaps, and puts words together that were drawn in pieces.
fn split(line: Vec<Word>, number: usize, pieces: &mut Vec<Piece>) {
    let mut run: Vec<Word> = Vec::new();
    for word in line {
        if let Some(last) = run.last_mut() {
            let size = last.size.max(word.size);
            let gap = word.start - last.end;
            // The same word at the same place again: a shadow.
            if last.text == word.text && (last.start - word.start).abs() < 0.3 * size {
                continue;
            }
            if gap > PIECE_GAP * size {
                finish(&mut run, number, pieces);
            } else if gap < WORD_GAP * size && !last.spaced && gap > -0.5 * size {
                last.text.push_str(&word.text);
                last.end = last.end.max(word.end);
                last.spaced = word.spaced;
                continue;
            }
        }
        run.push(word);
    }
    finish(&mut run, number, pieces);
}

fn finish(run: &mut Vec<Word>, line: usize, pieces: &mut Vec<Piece>) {
    let mut words = std::mem::take(run);
    let Some(first) = words.first() else { return };
    let (left, right) = (first.start, words.iter().map(|word| word.end).fold(f32::MIN, f32::max));
    // Superscripts say little about the height of a line.
    let longest = words.iter().max_by_key(|word| word.text.len()).unwrap_or(first);
    let (baseline, size) = (longest.baseline, longest.size);
    let count = words.len();
    let text = in_reading_order(&mut words);
    if text.is_empty() {
        return;
    }
    pieces.push(Piece {
        left,
        right,
        top: baseline - 0.75 * size,
        bottom: baseline + 0.25 * size,
        baseline,
        size,
        line,
        words: count,
        text,
    });
}

/// Joins words. Hebrew and Arabic are drawn from the right, so their letters and words are turned around.
fn in_reading_order(words: &mut [Word]) -> String {
    let mut right = 0;
    for word in words.iter_mut() {
        if word.text.chars().any(is_right_to_left) {
            right += 1;
            word.text = turn_around(&word.text);
        }
    }
    let mut texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    if right * 2 > texts.len() {
        texts.reverse();
        turn_runs(&mut texts, |text| !text.chars().any(is_right_to_left));
    } else if right > 1 {
        turn_runs(&mut texts, |text| text.chars().any(is_right_to_left));
    }
    texts.join(" ")
}

fn turn_runs(texts: &mut [&str], is_turned: fn(&str) -> bool) {
    let mut start = 0;
    while start < texts.len() {
        let length = texts[start..].iter().take_while(|text| is_turned(text)).count();
        texts[start..start + length].reverse();
        start += length.max(1);
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Letters in reverse; digits and Latin letters stay in their order.
fn turn_around(text: &str) -> String {
    let mut result: Vec<char> = text.chars().rev().collect();
    let mut start = 0;
    while start < result.len() {
        let length = result[start..].iter().take_while(|c| c.is_ascii_alphanumeric()).count();
        result[start..start + length].reverse();
        start += length.max(1);
    }
    let swap = |c: char| match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        c => c,
    };
    result.into_iter().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::super::glyphs::Text;
    use super::*;

    fn glyphs(text: &str, left: f32, baseline: f32) -> Vec<Placed> {
        let place = |(at, c): (usize, char)| {
            let start = left + at as f32 * 5.0;
            Placed { start, end: start + 5.0, baseline, size: 10.0, turn: 0, text: Text::One(c) }
        };
        text.chars().enumerate().map(place).collect()
    }

    fn texts(glyphs: &[Placed]) -> Vec<String> {
        pieces(glyphs, 0).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn lines_are_cut_at_wide_gaps() {
        let mut page = glyphs("right", 100.0, 20.0);
        page.extend(glyphs("a line", 0.0, 20.5));
        page.extend(glyphs("above", 0.0, 8.0));
        assert_eq!(texts(&page), ["above", "a line", "right"]);
    }

    #[test]
    fn doubles_are_dropped_and_pieces_joined() {
        let mut page = Vec::new();
        for glyph in glyphs("bold", 0.0, 20.0) {
            let shifted = Placed { start: glyph.start + 0.3, end: glyph.end + 0.3, ..glyph.clone() };
            page.extend([glyph, shifted]);
        }
        assert_eq!(texts(&page), ["bold"]);
        let mut page = glyphs("def", 15.0, 20.0);
        page.extend(glyphs("abc", 0.0, 20.0));
        assert_eq!(texts(&page), ["abcdef"]);
    }

    #[test]
    fn hebrew_is_turned() {
        assert_eq!(texts(&glyphs("םלוע 12 םולש", 0.0, 20.0)), ["שלום 12 עולם"]);
    }
}
