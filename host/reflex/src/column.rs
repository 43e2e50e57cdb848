//! Columns: finds the column of a table that some words mean.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

use kiso_plan::prompt::{Column, ColumnKind};

use crate::effort;
use crate::spelling::{is_near, near_names};
use crate::word::{key, stem};

/// The columns that a phrase means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnMatch {
    One(String),
    /// Several columns fit equally well.
    Many(Vec<String>),
    Nothing,
}

/// How much a phrase may differ from the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The name, also without its unit or in plural.
    Name,
    /// Also an abbreviation, or a part of it.
    Words,
    /// Also a similar spelling.
    Spelling,
}

/// Maximum bytes of a phrase for a column, and of a column's name. A longer name is never found, because its author could choose
/// how long the search takes.
const MAX_PHRASE: usize = 256;

/// Maximum names in an error; a table may have thousands of columns.
const SHOWN: usize = 60;

/// Units at the end of a column's name that people leave out.
const UNITS: &[&str] = &[
    "c", "f", "k", "mm", "cm", "m", "km", "kmh", "mph", "ms", "s", "sec", "min", "h", "hr", "hrs", "hours", "hpa",
    "pa", "bar", "pct", "percent", "usd", "eur", "gbp", "kg", "g", "lb", "w", "kw", "kwh", "v", "a", "mb", "gb", "kb",
];

/// Words after a column's name that add nothing.
const NOUNS: &[&str] = &["column", "value", "data", "price", "amount", "level", "reading", "figure"];

/// Whether a word is a unit, in a name or after a number.
pub(crate) fn is_unit(norm: &str) -> bool {
    UNITS.contains(&norm)
        || matches!(
            norm,
            "degrees" | "degree" | "°c" | "°f" | "celsius" | "km/h" | "%" | "millimetres" | "hour" | "minutes"
        )
}

/// Returns the words of a column's name in lower case.
#[expect(clippy::expect_used, reason = "pushed above")]
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

/// Returns the words of a name without the unit at its end.
fn without_unit(parts: &[String]) -> &[String] {
    match parts {
        [head @ .., last] if !head.is_empty() && UNITS.contains(&last.as_str()) => head,
        _ => parts,
    }
}

/// The columns of one table with their parsed names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    list: Vec<Column>,
    names: Vec<Name>,
    /// A cache: the same few phrases are tried repeatedly while a clause is matched with templates.
    found: RefCell<BTreeMap<(Reach, String), ColumnMatch>>,
}

/// A parsed column name.
#[derive(Debug, Clone)]
struct Name {
    whole: String,
    keys: Vec<String>,
    /// Without the unit at its end.
    bare: String,
    bare_keys: Vec<String>,
    first: String,
    /// Whether the name is one word, with or without a unit.
    single: bool,
}

impl Columns {
    pub(crate) fn new(list: Vec<Column>) -> Self {
        let short = |name: &str| name.len() <= MAX_PHRASE;
        let list: Vec<Column> = list.into_iter().filter(|column| short(&column.name)).collect();
        let names = list.iter().map(|column| Name::new(&parts(&column.name))).collect();
        Self { list, names, found: RefCell::default() }
    }

    /// Returns the column that `phrase` means. Rules are tried from the strictest to the loosest; the first one that fits any
    /// column decides, and it must fit exactly one.
    pub(crate) fn resolve(&self, phrase: &str, reach: Reach) -> ColumnMatch {
        if !effort::spend(4) {
            return ColumnMatch::Nothing;
        }
        let known = (reach, phrase.to_owned());
        if let Some(found) = self.found.borrow().get(&known) {
            return found.clone();
        }
        let found = self.look_up(phrase, reach);
        self.found.borrow_mut().insert(known, found.clone());
        found
    }

    fn look_up(&self, phrase: &str, reach: Reach) -> ColumnMatch {
        // Column names are shorter than this; and each lookup reads all columns.
        if phrase.len() > MAX_PHRASE || !effort::spend(4 * self.list.len() + 4) {
            return ColumnMatch::Nothing;
        }
        if let Some(exact) = self.list.iter().find(|c| c.name == phrase) {
            return ColumnMatch::One(exact.name.clone());
        }
        let said = parts(phrase);
        if said.is_empty() {
            return ColumnMatch::Nothing;
        }
        let joined = said.concat();
        let trimmed = match said.iter().rposition(|w| !NOUNS.contains(&w.strip_suffix('s').unwrap_or(w))) {
            Some(last) => &said[..=last],
            None => &said[..],
        };
        let wanted = keys(trimmed);
        let close = trimmed.concat();
        type Rule<'a> = &'a dyn Fn(&Name) -> bool;
        let names: [Rule; 3] = [&|name| name.whole == joined, &|name| name.bare == joined, &|name| {
            name.keys == wanted || name.bare_keys == wanted
        }];
        // `temp` for temperature_c, `temperature` for temp; fewer than three letters are ambiguous.
        let cut = |name: &Name| {
            trimmed.len() == 1
                && ((close.chars().count() >= 3 && name.first.starts_with(&close))
                    || (name.single && name.first.chars().count() >= 3 && is_cut(&name.first, &close)))
        };
        // `qty` for quantity, and vice versa.
        let abbreviated = |name: &Name| trimmed.len() == 1 && name.single && is_abbreviation(&name.first, &close);
        let words: [Rule; 3] = [&|name| wanted.iter().all(|w| name.bare_keys.contains(w)), &cut, &abbreviated];
        // "rainy" is not a misspelt "rain".
        let adjective = |name: &str| close.strip_suffix('y').is_some_and(|stem| stem == name);
        let spelling: [Rule; 1] =
            [&|name| (is_near(&close, &name.whole) || is_near(&close, &name.bare)) && !adjective(&name.bare)];
        let rules = names
            .iter()
            .chain(words.iter().filter(|_| reach >= Reach::Words))
            .chain(spelling.iter().filter(|_| reach >= Reach::Spelling));
        for rule in rules {
            let mut fits: Vec<String> =
                self.names.iter().zip(&self.list).filter(|(name, _)| rule(name)).map(|(_, c)| c.name.clone()).collect();
            match fits.len() {
                0 => {}
                1 => return ColumnMatch::One(fits.remove(0)),
                _ => return ColumnMatch::Many(fits),
            }
        }
        ColumnMatch::Nothing
    }
}

impl Name {
    fn new(parts: &[String]) -> Self {
        let bare = without_unit(parts);
        Self {
            whole: parts.concat(),
            keys: keys(parts),
            bare: bare.concat(),
            bare_keys: keys(bare),
            first: bare.first().cloned().unwrap_or_default(),
            single: bare.len() == 1,
        }
    }
}

impl Deref for Columns {
    type Target = [Column];

    fn deref(&self) -> &[Column] {
        &self.list
    }
}

fn keys(words: &[String]) -> Vec<String> {
    words.iter().map(|w| key(aggregate_word(w))).collect()
}

/// Whether `short` is a usual abbreviation of `long` (temp of temperature), and not only its beginning (low of lowest).
fn is_cut(short: &str, long: &str) -> bool {
    long.strip_prefix(short).is_some_and(|rest| !matches!(rest, "est" | "er" | "ly" | "y" | "ed" | "ing"))
}

/// Names that tables usually abbreviate to something other than their beginning.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("acct", "account"),
    ("addr", "address"),
    ("amt", "amount"),
    ("avg", "average"),
    ("cnt", "count"),
    ("dept", "department"),
    ("dt", "date"),
    ("hr", "hour"),
    ("hrs", "hours"),
    ("lng", "longitude"),
    ("mgr", "manager"),
    ("msg", "message"),
    ("nbr", "number"),
    ("no", "number"),
    ("num", "number"),
    ("pct", "percent"),
    ("pct", "percentage"),
    ("pmt", "payment"),
    ("qtr", "quarter"),
    ("qty", "quantity"),
    ("usr", "user"),
    ("wk", "week"),
    ("yr", "year"),
];

/// Whether one is the usual abbreviation of the other.
fn is_abbreviation(a: &str, b: &str) -> bool {
    let (a, b) = (key(a), key(b));
    ABBREVIATIONS.iter().any(|(short, long)| {
        let (short, long) = (key(short), key(long));
        (a == short && b == long) || (a == long && b == short)
    })
}

/// Returns `sum` for `total`, so that "total rain" finds a computed column sum_rain_mm.
fn aggregate_word(word: &str) -> &str {
    match word {
        "maximum" | "highest" => "max",
        "minimum" | "lowest" => "min",
        other => other,
    }
}

/// Returns the column with dates: the first one with date values according to the host, or one with a name for dates.
pub(crate) fn date_column(columns: &[Column]) -> Option<&str> {
    columns
        .iter()
        .find(|c| c.kind == ColumnKind::Date)
        .or_else(|| {
            columns
                .iter()
                .find(|c| matches!(c.name.to_lowercase().as_str(), "date" | "time" | "timestamp" | "datetime"))
        })
        .map(|c| c.name.as_str())
}

/// Returns the column of this kind if there is only one.
pub(crate) fn only(columns: &[Column], kind: ColumnKind) -> Option<&str> {
    let mut of_kind = columns.iter().filter(|c| c.kind == kind);
    match (of_kind.next(), of_kind.next()) {
        (Some(column), None) => Some(column.name.as_str()),
        _ => None,
    }
}

/// Returns "no column `x` in FILE; near: `y`; its columns: a, b".
pub(crate) fn missing(phrase: &str, file: &str, columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let near = match near_names(&stem(&phrase.to_lowercase()), names.iter().copied()).first() {
        Some(name) => format!("near: `{name}`; "),
        None => String::new(),
    };
    let more = match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!(" and {more} more"),
        None => String::new(),
    };
    format!("no column `{phrase}` in {file}; {near}its columns: {}{more}", names[..names.len().min(SHOWN)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &str) -> Columns {
        let column = |name: &str| Column { name: name.to_owned(), kind: ColumnKind::Number };
        Columns::new(names.split(',').map(column).collect())
    }

    #[test]
    fn finds() {
        let weather = columns("date,city,temperature_c,rain_mm,wind_kmh,sunshine_h");
        let computed = columns("month,mean_temperature_c,sum_rain_mm");
        let orders = columns("qty,amt,dept,price,date");
        let market = columns("Trade Date,open,high,low,close,Adj-Close,volume");
        for (table, phrase, name) in [
            (&weather, "Temperature", "temperature_c"),
            (&weather, "rain", "rain_mm"),
            (&weather, "temp", "temperature_c"),
            (&weather, "wind km/h", "wind_kmh"),
            (&weather, "temprature", "temperature_c"),
            (&weather, "sunshine", "sunshine_h"),
            (&weather, "dates", "date"),
            (&weather, "rain column", "rain_mm"),
            (&weather, "rain values", "rain_mm"),
            (&computed, "temperature", "mean_temperature_c"),
            (&computed, "total rain", "sum_rain_mm"),
            (&computed, "average temperature", "mean_temperature_c"),
            (&orders, "quantity", "qty"),
            (&orders, "amount", "amt"),
            (&orders, "departments", "dept"),
            (&market, "trade_date", "Trade Date"),
            (&market, "close", "close"),
            (&market, "adj close", "Adj-Close"),
            (&market, "closing price", "close"),
        ] {
            assert_eq!(table.resolve(phrase, Reach::Spelling), ColumnMatch::One(name.to_owned()), "{phrase}");
        }
        for phrase in ["humidity", "lowest", "mean temperature", "rainfall total", "show"] {
            assert_eq!(weather.resolve(phrase, Reach::Spelling), ColumnMatch::Nothing, "{phrase}");
        }
        for phrase in ["database", "quality"] {
            assert_eq!(orders.resolve(phrase, Reach::Words), ColumnMatch::Nothing, "{phrase}");
        }
        let two = columns("rain_north,rain_south");
        assert!(matches!(two.resolve("rain", Reach::Words), ColumnMatch::Many(names) if names.len() == 2));
    }

    #[test]
    fn names_what_is_missing() {
        assert_eq!(
            missing("tempp", "w.csv", &columns("date,temp")),
            "no column `tempp` in w.csv; near: `temp`; its columns: date, temp"
        );
    }
}
