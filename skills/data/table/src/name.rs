//! Names of columns, as people write them.

use std::collections::{HashMap, HashSet};

/// Folds a name: spellings that differ in case, spaces, underscores, dashes or a `#` in front become the same.
pub fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let name = name.trim();
    for c in name.strip_prefix('#').filter(|rest| !rest.is_empty()).map_or(name, str::trim_start).chars() {
        match c {
            ' ' | '_' | '-' if folded.ends_with('_') => {}
            ' ' | '_' | '-' => folded.push('_'),
            c => folded.extend(c.to_lowercase()),
        }
    }
    folded
}

/// `name` without the quotes around it, if there are any.
pub fn unquoted(name: &str) -> &str {
    for quote in ['"', '\'', '`'] {
        if let Some(inner) = name.strip_prefix(quote).and_then(|n| n.strip_suffix(quote)) {
            return inner;
        }
    }
    name
}

/// Distinct names for the headers of a file: an empty one becomes "column_3", the second "temp" becomes "temp_2".
pub fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken = HashSet::new();
    // Where the search for a free number starts, so that a thousand equal names do not take a million looks.
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut distinct = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let base = if name.trim().is_empty() { format!("column_{}", i + 1) } else { name.trim().to_owned() };
        let mut name = base.clone();
        let mut n = next.get(&base).copied().unwrap_or(2);
        while !taken.insert(name.clone()) {
            name = format!("{base}_{n}");
            n += 1;
        }
        next.insert(base, n);
        distinct.push(name);
    }
    distinct
}

/// One sentence for a column that is not there.
pub fn unknown(file: &str, name: &str, names: &[&str]) -> String {
    let near = near(name, names);
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    let mut listed = names.iter().take(40).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 40 {
        listed.push_str(&format!(", and {} more", names.len() - 40));
    }
    let colon = if hint.is_empty() { "; its columns: " } else { " Its columns: " };
    format!("{file} has no column {}{hint}{colon}{listed}", unquoted(name.trim()))
}

/// Up to three names within a third of the letters, or that contain each other; the nearest first.
pub fn near<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted = fold(unquoted(name));
    let mut found: Vec<(usize, &str)> = Vec::new();
    for &candidate in names.iter().take(500) {
        let folded = fold(candidate);
        let distance = distance(&wanted, &folded);
        let allowed = (wanted.chars().count().max(folded.chars().count()) / 3).clamp(1, 4);
        let within = wanted.len() > 1 && folded.len() > 1 && (folded.contains(&wanted) || wanted.contains(&folded));
        if distance <= allowed || within {
            found.push((distance, candidate));
        }
    }
    found.sort_by_key(|f| f.0);
    found.into_iter().take(3).map(|f| f.1).collect()
}

/// Edit distance in which swapping two neighbours counts once, as typing errors do.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_and_near_names() {
        assert_eq!(fold(" Max  Temp"), fold("max_temp"));
        assert_eq!((fold("#ID"), fold("#").as_str()), (fold("id"), "#"));
        assert_eq!(distance("tmep", "temp"), 1);
        assert_eq!(near("tmep", &["date", "temp", "rain"]), ["temp"]);
        assert_eq!(near("temperature", &["temp", "zzz"]), ["temp"]);
        assert!(near("x", &["date", "temp"]).is_empty());
    }

    #[test]
    fn headers_become_distinct() {
        let names = ["a", "", "a", "a_2", "a"].map(String::from);
        assert_eq!(distinct(names), ["a", "column_2", "a_2", "a_2_2", "a_3"]);
    }
}
