//! Spelling: finds names that are similar to a misspelt one.

use std::collections::BTreeSet;

use strsim::osa_distance;

use crate::effort;

/// Maximum characters of a word that is compared letter by letter. A longer word is not a typing error, and the time for
/// comparing two words grows with the product of their lengths: two of 60 kB froze the daemon.
const MAX_WORD: usize = 48;

/// Whether two words are similar: one error in a word of at least four letters, two from eight letters on.
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
    // The number of errors is at least the difference of the lengths.
    long_a.abs_diff(long_b) <= allowed && allowed > 0 && distance(a, b, long_a * long_b).is_some_and(|d| d <= allowed)
}

/// Returns the names that are similar to `name` or begin alike, each once, in order.
pub(crate) fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if length(name).is_none() {
        return Vec::new();
    }
    let fold = |s: &str| s.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = fold(name);
    let mut seen = BTreeSet::new();
    names
        .filter(|candidate| {
            // Such a long name cannot be meant by a word.
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

/// Returns the number of characters of a word; `None` if it is too long.
fn length(word: &str) -> Option<usize> {
    // A character has at most four bytes.
    (word.len() <= 4 * MAX_WORD).then(|| word.chars().count()).filter(|count| *count <= MAX_WORD)
}

/// Returns the number of errors between two words, for the cost of `cells`; `None` if no steps are left.
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
