//! `{a,b}` and `{1..9}`.

use super::Stop;
use super::lex::Piece;

/// A word may become this many words. They exist at the same time, and each costs some hundred bytes of the task's
/// memory; `seq` in a loop has no such limit.
const MAX_WORDS: usize = 200_000;
/// Deeper nesting is plain text: each level is a frame of the stack.
const MAX_DEPTH: usize = 32;

const MARKS: [char; 3] = ['{', ',', '}'];

/// Part of a word: a brace or comma, or a piece that is none.
#[derive(Clone, Debug)]
enum Part {
    Mark(char),
    Piece(Piece),
}

/// The words that a word stands for, in order; usually itself.
pub fn expand(pieces: Vec<Piece>) -> Result<Vec<Vec<Piece>>, Stop> {
    let may = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('{'));
    if !pieces.iter().any(may) {
        return Ok(vec![pieces]);
    }
    let parts = parts_of(pieces);
    let partners = partners(&parts);
    let all = Parts { parts: &parts, partners: &partners }.expand(0, parts.len(), MAX_DEPTH)?;
    Ok(all.into_iter().map(pieces_of).collect())
}

fn parts_of(pieces: Vec<Piece>) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in pieces {
        let Piece::Text(text) = piece else {
            parts.push(Part::Piece(piece));
            continue;
        };
        for run in text.split_inclusive(MARKS) {
            let plain = run.trim_end_matches(MARKS);
            parts.extend((!plain.is_empty()).then(|| Part::Piece(Piece::Text(plain.to_owned()))));
            parts.extend(run[plain.len()..].chars().map(Part::Mark));
        }
    }
    parts
}

fn pieces_of(parts: Vec<Part>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for part in parts {
        let part = match part {
            Part::Mark(mark) => Piece::Text(mark.into()),
            Part::Piece(piece) => piece,
        };
        match (part, pieces.last_mut()) {
            (Piece::Text(more), Some(Piece::Text(text))) => text.push_str(&more),
            (other, _) => pieces.push(other),
        }
    }
    pieces
}

/// For each opening brace the index of its closing one.
fn partners(parts: &[Part]) -> Vec<Option<usize>> {
    let mut partners = vec![None; parts.len()];
    let mut open = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Mark('{') => open.push(at),
            Part::Mark('}') => {
                if let Some(start) = open.pop() {
                    partners[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    partners
}

struct Parts<'a> {
    parts: &'a [Part],
    partners: &'a [Option<usize>],
}

impl Parts<'_> {
    fn expand(&self, mut at: usize, end: usize, depth: usize) -> Result<Vec<Vec<Part>>, Stop> {
        let mut all = vec![Vec::new()];
        while at < end {
            let close = self.partners[at].filter(|&close| close < end && depth > 0);
            let choices = match close {
                Some(close) => self.choices(at + 1, close, depth - 1)?,
                None => None,
            };
            let (Some(close), Some(choices)) = (close, choices) else {
                all.iter_mut().for_each(|word| word.push(self.parts[at].clone()));
                at += 1;
                continue;
            };
            check(all.len().saturating_mul(choices.len()))?;
            let join =
                |word: &Vec<Part>| choices.iter().map(|choice| [word.as_slice(), choice].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(join).collect();
            at = close + 1;
        }
        Ok(all)
    }

    /// What stands between a pair of braces, if it makes the pair an expansion.
    fn choices(&self, start: usize, end: usize, depth: usize) -> Result<Option<Vec<Vec<Part>>>, Stop> {
        let mut commas = Vec::new();
        let mut at = start;
        while at < end {
            match self.parts[at] {
                Part::Mark(',') => commas.push(at),
                Part::Mark('{') => at = self.partners[at].filter(|&close| close < end).unwrap_or(at),
                _ => {}
            }
            at += 1;
        }
        if commas.is_empty() {
            return sequence(&self.parts[start..end]);
        }
        let mut choices = Vec::new();
        let mut from = start;
        for to in commas.into_iter().chain([end]) {
            choices.append(&mut self.expand(from, to, depth)?);
            check(choices.len())?;
            from = to + 1;
        }
        Ok(Some(choices))
    }
}

fn check(count: usize) -> Result<(), Stop> {
    if count > MAX_WORDS {
        return Err(Stop::failed(format!(
            "brace expansion: more than {MAX_WORDS} words (a loop over a number, or seq, has no such limit)"
        )));
    }
    Ok(())
}

/// `1..9`, `a..e`, with a third number as the step.
fn sequence(parts: &[Part]) -> Result<Option<Vec<Vec<Part>>>, Stop> {
    let mut text = String::new();
    for part in parts {
        let Part::Piece(Piece::Text(run)) = part else { return Ok(None) };
        text.push_str(run);
    }
    let bounds: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match bounds[..] {
        [first, last] => (first, last, Some(1)),
        [first, last, step] => (first, last, step.parse::<i64>().ok()),
        _ => return Ok(None),
    };
    let Some(step) = step.map(|step| step.unsigned_abs().max(1)) else { return Ok(None) };
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let letters = steps(i64::from(first), i64::from(last), step);
        return Ok(Some(letters.map(|code| vec![plain(char::from(code as u8).into())]).collect()));
    }
    let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) else { return Ok(None) };
    check(usize::try_from(from.abs_diff(to) / step).unwrap_or(usize::MAX).saturating_add(1))?;
    let width = if [first, last].iter().any(|text| padded(text)) { first.len().max(last.len()) } else { 0 };
    let word = |number: i64| vec![plain(format!("{number:0width$}"))];
    Ok(Some(steps(from, to, step).map(word).collect()))
}

fn plain(text: String) -> Part {
    Part::Piece(Piece::Text(text))
}

fn letter(text: &str) -> Option<u8> {
    text.bytes().next().filter(|byte| text.len() == 1 && byte.is_ascii_alphabetic())
}

/// Whether a bound starts with a zero that asks for numbers of one width.
fn padded(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.len() > 1 && digits.starts_with('0')
}

fn steps(from: i64, to: i64, step: u64) -> impl Iterator<Item = i64> {
    let count = from.abs_diff(to) / step;
    (0..=count).map(move |index| {
        let distance = (index * step) as i64;
        if from <= to { from.wrapping_add(distance) } else { from.wrapping_sub(distance) }
    })
}
