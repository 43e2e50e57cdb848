//! Templates: a skill's examples, with `{arg}` for a capture and `{arg=value}` for a fixed value, and matching a clause with one.

use std::ops::Range;

use crate::effort;
use crate::word::{Word, WordShape, clip, is_filler, is_joint, is_reference, words};

/// Maximum bytes of an example. A skill's author chooses it, and each message is matched with all of it.
const MAX_EXAMPLE: usize = 300;

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// A word, by its key; one without content may be missing in the clause.
    Literal {
        key: String,
        content: bool,
    },
    Slot(String),
    /// Sets an argument and captures nothing.
    Fixed(String, String),
}

/// Parses an example.
pub(crate) fn parse(example: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = clip(example, MAX_EXAMPLE);
    while !rest.is_empty() {
        let (text, slot, after) =
            match rest.split_once('{').and_then(|(a, b)| b.split_once('}').map(|(s, c)| (a, s, c))) {
                Some((text, slot, after)) => (text, Some(slot), after),
                None => (rest, None, ""),
            };
        items.extend(words(text).into_iter().map(|w| Item::Literal { content: w.is_content(), key: w.key }));
        items.extend(slot.map(|slot| match slot.split_once('=') {
            Some((arg, value)) => Item::Fixed(arg.trim().to_owned(), value.trim().to_owned()),
            None => Item::Slot(slot.trim().to_owned()),
        }));
        rest = after;
    }
    items
}

/// Returns the template without this slot and the preposition before it: "plot {y} from {file}" as "plot {y}".
pub(crate) fn without(items: &[Item], is_slot: impl Fn(&str) -> bool) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in items {
        match item {
            Item::Slot(arg) if is_slot(arg) => {
                if matches!(out.last(), Some(Item::Literal { content: false, .. })) {
                    out.pop();
                }
            }
            other => out.push(other.clone()),
        }
    }
    out
}

/// The match of a clause with a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Alignment {
    pub score: i32,
    /// Number of matched literals with content.
    pub literals: usize,
    pub captures: Vec<(String, Range<usize>)>,
    pub fixed: Vec<(String, String)>,
    /// Indexes of words matched by literals.
    pub met: Vec<usize>,
    /// Words after the template's end.
    pub rest: Range<usize>,
}

/// Maximum words of a capture; longer ones are sentences and not arguments.
const MAX_CAPTURE: usize = 40;

/// The best step at one place of a template and a clause.
#[derive(Clone, Copy)]
enum Move {
    End,
    /// Skips a filler of the clause.
    Pass,
    Fix,
    Meet,
    /// Skips a literal of the template that the clause does not contain.
    Omit,
    /// Captures the words up to here.
    Capture(usize),
}

/// Matches `clause` with `items`. `fits` scores how well words fill a slot; `None` if they cannot.
pub(crate) fn align(items: &[Item], clause: &[Word], fits: &dyn Fn(&str, &[Word]) -> Option<i32>) -> Option<Alignment> {
    let (t, w) = (items.len(), clause.len());
    if !effort::spend((t + 1) * (w + 1)) {
        return None;
    }
    // Filled from the ends: the best match from (item, word) on, so that each is computed once.
    let mut best: Vec<Vec<Option<(i32, Move)>>> = vec![vec![None; w + 1]; t + 1];
    for ti in (0..=t).rev() {
        for wi in (0..=w).rev() {
            let mut chosen: Option<(i32, Move)> = None;
            // Of equal scores, the first one is chosen: an answer must depend only on the input.
            let mut offer = |next: Option<(i32, Move)>, gain: i32, step: Move| {
                if let Some((score, _)) = next
                    && chosen.is_none_or(|(most, _)| score + gain > most)
                {
                    chosen = Some((score + gain, step));
                }
            };
            match items.get(ti) {
                None => {
                    let left = clause[wi..].iter().filter(|word| word.is_content()).count();
                    offer(Some((-2 * left as i32, Move::End)), 0, Move::End);
                }
                Some(Item::Fixed(..)) => offer(best[ti + 1][wi], 0, Move::Fix),
                Some(Item::Literal { key, content }) => {
                    if wi < w && clause[wi].shape == WordShape::Plain && clause[wi].key == *key {
                        offer(best[ti + 1][wi + 1], if *content { 3 } else { 1 }, Move::Meet);
                    }
                    // Between two slots, only a preposition shows where the first one ends.
                    let parts_slots =
                        ti > 0 && matches!((&items[ti - 1], items.get(ti + 1)), (Item::Slot(_), Some(Item::Slot(_))));
                    if !content && !parts_slots {
                        offer(best[ti + 1][wi], 0, Move::Omit);
                    }
                }
                Some(Item::Slot(arg)) => {
                    for end in wi + 1..=w.min(wi + MAX_CAPTURE) {
                        if !effort::spend(2) {
                            return None;
                        }
                        if let Some(score) = best[ti + 1][end].and_then(|_| fits(arg, &clause[wi..end])) {
                            offer(best[ti + 1][end], score, Move::Capture(end));
                        }
                    }
                }
            }
            if ti < t && wi < w && skippable(&clause[wi]) {
                offer(best[ti][wi + 1], 0, Move::Pass);
            }
            best[ti][wi] = chosen;
        }
    }
    let mut out = Alignment { score: best[0][0]?.0, ..Alignment::default() };
    let (mut ti, mut wi) = (0, 0);
    while let Some((_, step)) = best[ti][wi] {
        match (step, items.get(ti)) {
            (Move::End, _) | (_, None) => break,
            (Move::Pass, _) => wi += 1,
            (Move::Omit, _) => ti += 1,
            (Move::Fix, Some(item)) => {
                if let Item::Fixed(arg, value) = item {
                    out.fixed.push((arg.clone(), value.clone()));
                }
                ti += 1;
            }
            (Move::Meet, Some(item)) => {
                out.literals += usize::from(matches!(item, Item::Literal { content: true, .. }));
                out.met.push(wi);
                (ti, wi) = (ti + 1, wi + 1);
            }
            (Move::Capture(end), Some(item)) => {
                if let Item::Slot(arg) = item {
                    out.captures.push((arg.clone(), wi..end));
                }
                (ti, wi) = (ti + 1, end);
            }
        }
    }
    out.rest = wi..w;
    Some(out)
}

fn skippable(word: &Word) -> bool {
    word.shape == WordShape::Plain
        && (is_filler(&word.norm) || (is_joint(&word.norm) && word.norm != "and") || is_reference(&word.norm))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(template: &str, clause: &str) -> Option<Vec<(String, String)>> {
        let clause = words(clause);
        let alignment = align(&parse(template), &clause, &|_, words| Some(i32::from(!words.is_empty())))?;
        let text =
            |range: &Range<usize>| clause[range.clone()].iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
        let mut all: Vec<_> = alignment.captures.iter().map(|(arg, range)| (arg.clone(), text(range))).collect();
        all.sort();
        Some(all)
    }

    #[test]
    fn captures() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            laid("translate {text} to {language}", "please translate good morning to Norwegian"),
            Some(vec![pair("language", "Norwegian"), pair("text", "good morning")])
        );
        assert_eq!(
            laid("draw {y} per {x}", "plotting the close over day"),
            Some(vec![pair("x", "day"), pair("y", "the close")])
        );
        assert_eq!(laid("translate {text} to {language}", "fetch the page"), None);
        assert_eq!(
            parse("what columns? {describe=true}").last(),
            Some(&Item::Fixed("describe".to_owned(), "true".to_owned()))
        );
    }
}
