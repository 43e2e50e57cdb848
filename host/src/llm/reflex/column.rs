//! Columns: which column of a table a few words mean.

use crate::llm::prompt::{Column, ColumnKind};

use super::word::{is_near, key, near_names, stem};

/// What a phrase found among the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    One(String),
    /// More than one fits equally well.
    Many(Vec<String>),
    Nothing,
}

/// How far from the name a phrase may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The name, also without its unit or in plural.
    Name,
    /// The same, shortened, or part of it.
    Words,
    /// The same, and near in spelling.
    Spelling,
}

/// Units that may end a column's name and that nobody says.
const UNITS: &[&str] = &[
    "c", "f", "k", "mm", "cm", "m", "km", "kmh", "mph", "ms", "s", "sec", "min", "h", "hr", "hrs", "hours", "hpa", "pa",
    "bar", "pct", "percent", "usd", "eur", "gbp", "kg", "g", "lb", "w", "kw", "kwh", "v", "a", "mb", "gb", "kb",
];

/// Words that may follow a column's name and add nothing.
const NOUNS: &[&str] = &["column", "value", "data", "price", "amount", "level", "reading", "figure"];

/// Whether a word is a unit, in a name or after a number.
pub(super) fn is_unit(norm: &str) -> bool {
    UNITS.contains(&norm)
        || matches!(norm, "degrees" | "degree" | "°c" | "°f" | "celsius" | "km/h" | "%" | "millimetres" | "hour" | "minutes")
}

/// The words of a column's name, lower case.
fn parts(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            lower = false;
            if out.last().is_none_or(|last| !last.is_empty()) {
                out.push(String::new());
            }
            continue;
        }
        if out.is_empty() || (lower && c.is_uppercase()) {
            out.push(String::new());
        }
        lower = c.is_lowercase();
        out.last_mut().expect("pushed above").extend(c.to_lowercase());
    }
    out.retain(|part| !part.is_empty());
    out
}

/// The words of a name without the unit at its end.
fn without_unit(parts: &[String]) -> &[String] {
    match parts {
        [head @ .., last] if !head.is_empty() && UNITS.contains(&last.as_str()) => head,
        _ => parts,
    }
}

/// The column that `phrase` means. Rules are tried from the strictest to the widest; the first that fits any column
/// decides, and it must fit exactly one.
pub(super) fn resolve(columns: &[Column], phrase: &str, reach: Reach) -> Found {
    let said = parts(phrase);
    if said.is_empty() {
        return Found::Nothing;
    }
    let joined = said.concat();
    let trimmed: Vec<String> = match said.iter().rposition(|w| !NOUNS.contains(&stem_of_noun(w).as_str())) {
        Some(last) => said[..=last].to_vec(),
        None => said.clone(),
    };
    let keys = |words: &[String]| words.iter().map(|w| key(&aggregate_word(w))).collect::<Vec<_>>();
    let wanted = keys(&trimmed);
    type Rule<'a> = Box<dyn Fn(&[String]) -> bool + 'a>;
    let mut rules: Vec<Rule> = vec![
        Box::new(|name| name.concat() == joined),
        Box::new(|name| without_unit(name).concat() == joined),
        Box::new(|name| keys(name) == wanted || keys(without_unit(name)) == wanted),
    ];
    if reach != Reach::Name {
        rules.push(Box::new(|name| wanted.iter().all(|w| keys(without_unit(name)).contains(w))));
    }
    if reach != Reach::Name
        && let [only] = trimmed.as_slice() {
        // `temp` for temperature_c, `temperature` for temp; three letters are the least that says something.
        rules.push(Box::new(move |name| {
            let first = without_unit(name).first().map_or("", String::as_str);
            (only.chars().count() >= 3 && first.starts_with(only.as_str()))
                || (first.chars().count() >= 3 && only.starts_with(first) && without_unit(name).len() == 1 && is_cut(first, only))
        }));
    }
    if reach == Reach::Spelling {
        let said = trimmed.concat();
        rules.push(Box::new(move |name| is_near(&said, &name.concat()) || is_near(&said, &without_unit(name).concat())));
    }
    for rule in rules {
        let fits: Vec<String> = columns
            .iter()
            .filter(|column| rule(&parts(&column.name)))
            .map(|column| column.name.clone())
            .collect();
        match fits.len() {
            0 => {}
            1 => return Found::One(fits.into_iter().next().unwrap_or_default()),
            _ => return Found::Many(fits),
        }
    }
    Found::Nothing
}

/// Whether `short` is a usual cut of `long` (temp of temperature), not merely its beginning (low of lowest).
fn is_cut(short: &str, long: &str) -> bool {
    !matches!(long.strip_prefix(short), Some("est" | "er" | "ly" | "y" | "ed" | "ing"))
}

fn stem_of_noun(word: &str) -> String {
    word.strip_suffix('s').unwrap_or(word).to_owned()
}

/// `sum` for `total`, so that "total rain" finds a computed column sum_rain_mm.
fn aggregate_word(word: &str) -> String {
    match word {
        "maximum" | "highest" => "max",
        "minimum" | "lowest" => "min",
        other => other,
    }
    .to_owned()
}

/// The column that holds dates: the first that the host saw to hold them, or one that is named like it.
pub(super) fn date_column(columns: &[Column]) -> Option<&str> {
    columns
        .iter()
        .find(|c| c.kind == ColumnKind::Date)
        .or_else(|| columns.iter().find(|c| matches!(c.name.to_lowercase().as_str(), "date" | "time" | "timestamp" | "datetime")))
        .map(|c| c.name.as_str())
}

/// The only column of this kind.
pub(super) fn only(columns: &[Column], kind: ColumnKind) -> Option<&str> {
    let mut of_kind = columns.iter().filter(|c| c.kind == kind);
    match (of_kind.next(), of_kind.next()) {
        (Some(column), None) => Some(column.name.as_str()),
        _ => None,
    }
}

/// "no column `x` in FILE; near: `y`; its columns: a, b".
pub(super) fn missing(phrase: &str, file: &str, columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let near = match near_names(&stem(&phrase.to_lowercase()), names.iter().copied()).first() {
        Some(name) => format!("near: `{name}`; "),
        None => String::new(),
    };
    format!("no column `{phrase}` in {file}; {near}its columns: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &str) -> Vec<Column> {
        names
            .split(',')
            .map(|name| Column { name: name.to_owned(), kind: ColumnKind::Number })
            .collect()
    }

    #[test]
    fn finds() {
        let weather = columns("date,city,temperature_c,rain_mm,wind_kmh,sunshine_h");
        let computed = columns("month,mean_temperature_c,sum_rain_mm");
        let market = columns("Trade Date,open,high,low,close,Adj-Close,volume");
        for (table, phrase, name) in [
            (&weather, "Temperature", "temperature_c"), (&weather, "rain", "rain_mm"), (&weather, "temp", "temperature_c"),
            (&weather, "wind km/h", "wind_kmh"), (&weather, "temprature", "temperature_c"), (&weather, "sunshine", "sunshine_h"),
            (&weather, "dates", "date"), (&weather, "rain column", "rain_mm"), (&weather, "rain values", "rain_mm"),
            (&computed, "temperature", "mean_temperature_c"), (&computed, "total rain", "sum_rain_mm"),
            (&computed, "average temperature", "mean_temperature_c"), (&market, "trade_date", "Trade Date"),
            (&market, "close", "close"), (&market, "adj close", "Adj-Close"), (&market, "closing price", "close"),
        ] {
            assert_eq!(resolve(table, phrase, Reach::Spelling), Found::One(name.to_owned()), "{phrase}");
        }
        for phrase in ["humidity", "lowest", "mean temperature", "rainfall total", "show"] {
            assert_eq!(resolve(&weather, phrase, Reach::Spelling), Found::Nothing, "{phrase}");
        }
        let two = columns("rain_north,rain_south");
        assert!(matches!(resolve(&two, "rain", Reach::Words), Found::Many(names) if names.len() == 2));
    }

    #[test]
    fn names_what_is_missing() {
        assert_eq!(
            missing("tempp", "w.csv", &columns("date,temp")),
            "no column `tempp` in w.csv; near: `temp`; its columns: date, temp"
        );
    }
}
