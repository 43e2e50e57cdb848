//! `{a,b}` and `{1..9}`.

use super::Stop;
use super::scan;

/// A word may become this many words. They exist at the same time, and each costs some hundred bytes of the task's
/// memory; `seq` in a loop has no such limit.
const MAX_WORDS: usize = 200_000;
/// Deeper nesting is plain text: each level is a frame of the stack.
const MAX_DEPTH: usize = 32;

/// Part of a word: a brace or comma, or a piece that holds none.
#[derive(Clone, Debug)]
enum Part {
    Mark(char),
    Text(String),
}

/// The words that the source of a word stands for, in order; usually itself. This happens before all other expansions,
/// so that `$a{x,y}` is `$ax $ay`.
pub fn expand(source: &str) -> Result<Vec<String>, Stop> {
    if !source.contains('{') {
        return Ok(vec![source.to_owned()]);
    }
    let parts = parts_of(source);
    let partners = partners(&parts);
    let all = Parts { parts: &parts, partners: &partners }.expand(0, parts.len(), MAX_DEPTH)?;
    Ok(all.into_iter().map(text_of).collect())
}

fn parts_of(source: &str) -> Vec<Part> {
    let bytes = source.as_bytes();
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        if !matches!(byte, b'{' | b',' | b'}') {
            // An unterminated construct is text here, and an error when the words are read.
            at = scan::piece(bytes, at).unwrap_or(bytes.len()).min(bytes.len());
            continue;
        }
        parts.extend((from < at).then(|| Part::Text(source[from..at].to_owned())));
        parts.push(Part::Mark(char::from(byte)));
        at += 1;
        from = at;
    }
    parts.extend((from < at).then(|| Part::Text(source[from..].to_owned())));
    parts
}

fn text_of(parts: Vec<Part>) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Mark(mark) => text.push(mark),
            Part::Text(run) => text.push_str(&run),
        }
    }
    text
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

    /// The parts between a pair of braces, if they make the pair an expansion.
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
        let Part::Text(run) = part else { return Ok(None) };
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
    Part::Text(text)
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
