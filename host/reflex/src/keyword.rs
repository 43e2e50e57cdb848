//! The words of the query language: functions, times, order, conditions.

use crate::word::{Word, WordShape, listed};

/// Returns the function that a word names.
pub(crate) fn function(word: &Word) -> Option<&'static str> {
    if word.shape != WordShape::Plain {
        return None;
    }
    Some(match word.key.as_str() {
        "mean" => "mean",
        "total" => "sum",
        "median" => "median",
        "min" | "minimum" => "min",
        "max" | "maximum" => "max",
        "std" | "stddev" | "stdev" | "deviation" => "std",
        "count" => "count",
        "distinct" | "uniqu" | "different" => "distinct",
        _ => match word.norm.as_str() {
            "highest" | "largest" | "greatest" | "biggest" => "max",
            "lowest" | "smallest" => "min",
            "p50" => "p50",
            "p75" => "p75",
            "p90" => "p90",
            "p95" => "p95",
            "p99" => "p99",
            _ => return None,
        },
    })
}

/// The time functions, each with the adjective of the same meaning.
pub(crate) const TIMES: &[(&str, &[&str])] = &[
    ("hour", &["hourly"]),
    ("day", &["daily"]),
    ("week", &["weekly"]),
    ("month", &["monthly"]),
    ("year", &["yearly", "annual", "annually"]),
    ("weekday", &[]),
];

/// Returns the function of `month`, `months`, `weekdays`.
pub(crate) fn time_noun(norm: &str) -> Option<&'static str> {
    TIMES.iter().map(|(name, _)| *name).find(|name| norm == *name || norm.strip_suffix('s') == Some(name))
}

pub(crate) fn is_time_noun(norm: &str) -> bool {
    time_noun(norm).is_some()
}

pub(crate) fn is_time_adjective(norm: &str) -> bool {
    TIMES.iter().any(|(_, adjectives)| adjectives.contains(&norm))
}

/// Whether a word introduces a condition, and means nothing after that was read.
pub(crate) fn leads(norm: &str) -> bool {
    matches!(norm, "where" | "when" | "whose" | "if" | "only" | "having" | "had" | "while")
}

/// Whether a word mainly compares.
pub(crate) fn is_comparison(norm: &str) -> bool {
    const WORDS: &str = "\
        more less fewer greater than above below under least exceeding exceeds exceeded between since before after \
        until contains containing equals";
    listed(WORDS, norm)
}

/// Superlatives that need a column: which end comes first, and the default aggregate for ranking groups.
pub(crate) const NAMED: &[(&str, bool, &str)] = &[
    ("most", true, "sum"),
    ("highest", true, "max"),
    ("largest", true, "max"),
    ("greatest", true, "max"),
    ("biggest", true, "max"),
    ("least", false, "sum"),
    ("fewest", false, "sum"),
    ("lowest", false, "min"),
    ("smallest", false, "min"),
];

/// Superlatives that imply a column: which end comes first, and names of such columns. Any other word in -est implies the column
/// that begins like it ("windiest").
pub(crate) const IMPLIED: &[(&str, bool, &[&str])] = &[
    ("hottest", true, &["temperature", "temp"]),
    ("warmest", true, &["temperature", "temp"]),
    ("coldest", false, &["temperature", "temp"]),
    ("coolest", false, &["temperature", "temp"]),
    ("wettest", true, &["rain", "precipitation"]),
    ("driest", false, &["rain", "precipitation"]),
    ("cheapest", false, &["price", "cost"]),
    ("dearest", true, &["price", "cost"]),
    ("fastest", true, &["speed"]),
    ("slowest", false, &["speed"]),
    ("longest", true, &["duration", "length"]),
    ("shortest", false, &["duration", "length"]),
    ("heaviest", true, &["weight"]),
    ("lightest", false, &["weight"]),
];

/// Returns the superlative of a known comparative: "warmest" for "warmer".
pub(crate) fn compared(norm: &str) -> Option<String> {
    let superlative = match norm {
        "more" => "most".to_owned(),
        "less" => "least".to_owned(),
        _ => format!("{}est", norm.strip_suffix("er").filter(|stem| stem.len() >= 3)?),
    };
    let known = NAMED.iter().map(|(word, ..)| *word).chain(IMPLIED.iter().map(|(word, ..)| *word));
    // "nicer" and "windier" are comparatives for any column.
    (norm.ends_with("ier")
        || listed("better nicer worse later safer richer", norm)
        || known.into_iter().any(|word| word == superlative))
    .then_some(superlative)
}

/// Words for an order or a number of rows.
const ORDERING: &str =
    "top bottom first last sort sorted order ordered ascending descending asc desc latest newest oldest earliest";

pub(crate) fn is_rank_word(norm: &str) -> bool {
    NAMED.iter().any(|(word, ..)| *word == norm)
        || IMPLIED.iter().any(|(word, ..)| *word == norm)
        || listed(ORDERING, norm)
}

/// Whether a word belongs to the query language.
pub(crate) fn is_keyword(word: &Word) -> bool {
    function(word).is_some()
        || is_time_noun(&word.norm)
        || is_time_adjective(&word.norm)
        || is_rank_word(&word.norm)
        || leads(&word.norm)
        || is_comparison(&word.norm)
}
