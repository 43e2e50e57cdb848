//! Spelling: names that are a slip away from what was written.

use std::collections::BTreeSet;
use strsim::osa_distance;

/// Near in spelling: one slip in a word of four letters or more, two from eight on.
pub(super) fn is_near(a: &str, b: &str) -> bool {
    let short = a.chars().count().min(b.chars().count());
    let allowed = match short {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    a == b || (a.len().abs_diff(b.len()) <= 8 && osa_distance(a, b) <= allowed)
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
            let slip = wanted.chars().count() == 3 && osa_distance(&wanted, &have) == 1;
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
