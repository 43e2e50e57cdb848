//! Spelling: names that are a slip away from what was written.

use std::collections::BTreeSet;

use strsim::osa_distance;

use crate::effort;

/// Characters of the longest word that is compared by its letters. Nobody means a longer one by a slip, and the distance
/// of two takes time by the product of their lengths: two of 60 kB froze the daemon.
const MAX_WORD: usize = 48;

/// Near in spelling: one slip in a word of four letters or more, two from eight on.
pub(crate) fn is_near(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let (Some(long_a), Some(long_b)) = (length(a), length(b)) else { return false };
    let allowed = match long_a.min(long_b) {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    // A word has no fewer slips than letters too many.
    long_a.abs_diff(long_b) <= allowed && allowed > 0 && distance(a, b, long_a * long_b).is_some_and(|d| d <= allowed)
}

/// The names that are near to `name` in spelling or begin alike, each once, in their order.
pub(crate) fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if length(name).is_none() {
        return Vec::new();
    }
    let fold = |s: &str| s.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = fold(name);
    let mut seen = BTreeSet::new();
    names
        .filter(|candidate| {
            // Whatever it is, it is not what was meant by a word.
            if length(candidate).is_none() {
                return false;
            }
            let have = fold(candidate);
            let begins =
                wanted.len() >= 3 && (have.starts_with(&wanted) || (have.len() >= 3 && wanted.starts_with(&have)));
            let slip = || wanted.chars().count() == 3 && distance(&wanted, &have, 3 * have.len()) == Some(1);
            (begins || is_near(&wanted, &have) || slip()) && seen.insert(*candidate)
        })
        .collect()
}

/// The characters of a word; `None` of one that is too long for a word.
fn length(word: &str) -> Option<usize> {
    // A character has four bytes at most.
    (word.len() <= 4 * MAX_WORD).then(|| word.chars().count()).filter(|count| *count <= MAX_WORD)
}

/// Slips between two words, which takes `cells` steps; `None` where too much was read already.
fn distance(a: &str, b: &str, cells: usize) -> Option<usize> {
    effort::spend(cells / 8 + 1).then(|| osa_distance(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near() {
        assert!(is_near("temprature", "temperature"));
        assert!(!is_near("low", "row"));
        assert_eq!(near_names("wether.csv", ["weather.csv", "market.csv"].into_iter()), ["weather.csv"]);
        assert_eq!(near_names("dat", ["day", "date", "rain"].into_iter()), ["day", "date"]);
    }

    #[test]
    fn a_word_without_end_is_near_to_nothing_but_itself() {
        let (a, b) = ("k".repeat(60_000), "k".repeat(60_001));
        assert!(is_near(&a, &a) && !is_near(&a, &b));
        assert!(near_names(&a, [a.as_str(), b.as_str()].into_iter()).is_empty());
        assert!(near_names("kkk", [a.as_str(), b.as_str()].into_iter()).is_empty());
    }
}
