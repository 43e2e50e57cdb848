//! Spelling: names that are a slip away from what was written.

use std::collections::BTreeSet;

/// How many insertions, deletions, replacements or swaps lead from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

/// Near in spelling: one slip in a word of four letters or more, two from eight on.
pub(super) fn is_near(a: &str, b: &str) -> bool {
    let short = a.chars().count().min(b.chars().count());
    let allowed = match short {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    a == b || (a.len().abs_diff(b.len()) <= 8 && distance(a, b) <= allowed)
}

/// The names that are near to `name` in spelling or begin alike, each once, in their order.
pub(super) fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let fold = |s: &str| s.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = fold(name);
    let mut seen = BTreeSet::new();
    names
        .filter(|candidate| {
            let have = fold(candidate);
            let begins =
                wanted.len() >= 3 && (have.starts_with(&wanted) || (have.len() >= 3 && wanted.starts_with(&have)));
            let slip = wanted.chars().count() == 3 && distance(&wanted, &have) == 1;
            (is_near(&wanted, &have) || slip || begins) && seen.insert(*candidate)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near() {
        assert!(is_near("temprature", "temperature"));
        assert!(!is_near("low", "row"));
        assert_eq!(near_names("wether.csv", ["weather.csv", "market.csv"].into_iter()), ["weather.csv"]);
    }
}
