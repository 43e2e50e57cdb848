//! Conditions: "rain over 10", "more than 10 mm of rain", "in Oslo", "since March 2024".

use kiso_plan::prompt::ColumnKind;

use crate::column::{Reach, is_unit, only};
use crate::keyword::{compared, function, is_rank_word};
use crate::query::QueryReader;
use crate::word::{WordShape, count, key, listed, number};

/// Whether a word is the name of a month, in full or its first three letters.
pub(crate) fn is_month(norm: &str) -> bool {
    const MONTHS: &str = "january february march april may june july august september october november december";
    norm == "sept" || MONTHS.split(' ').any(|m| norm == m || (norm.len() == 3 && m.starts_with(norm)))
}

pub(crate) fn is_season(norm: &str) -> bool {
    let one = norm.strip_suffix('s').unwrap_or(norm);
    matches!(one, "winter" | "spring" | "summer" | "autumn" | "fall" | "season")
}

/// Comparisons, longest first.
const COMPARISONS: &[(&str, &str)] = &[
    ("is not", "!="),
    ("no more than", "<="),
    ("not more than", "<="),
    ("no less than", ">="),
    ("more than", ">"),
    ("greater than", ">"),
    ("higher than", ">"),
    ("larger than", ">"),
    ("bigger than", ">"),
    ("less than", "<"),
    ("fewer than", "<"),
    ("lower than", "<"),
    ("smaller than", "<"),
    ("at least", ">="),
    ("at most", "<="),
    ("up to", "<="),
    ("equal to", "="),
    ("over", ">"),
    ("above", ">"),
    ("exceeding", ">"),
    ("exceeds", ">"),
    ("exceeded", ">"),
    ("under", "<"),
    ("below", "<"),
    ("equals", "="),
    ("contains", "contains"),
    ("containing", "contains"),
    ("isn't", "!="),
    ("is", "="),
];

pub(crate) fn read(reader: &mut QueryReader) {
    let mut i = 0;
    while i < reader.words.len() {
        let end = column_first(reader, i)
            .or_else(|| value_first(reader, i))
            .or_else(|| dates(reader, i))
            .or_else(|| name(reader, i));
        match end {
            Some(end) => {
                reader.take(i, end);
                i = end;
            }
            None => i += 1,
        }
    }
    if let Some(problem) = contradiction(&reader.query.conditions) {
        reader.query.problems.push(problem);
    }
    let either = reader.words.iter().any(|w| w.norm == "or");
    if either && !reader.query.conditions.is_empty() {
        reader.query.problems.push("conditions that are joined with \"or\" are not understood".to_owned());
    }
}

/// Returns the comparison at `i` and the index after it.
fn comparison(reader: &QueryReader, i: usize) -> Option<(&'static str, usize)> {
    let word = reader.word(i)?;
    if word.shape == WordShape::Compare {
        let sign = match word.raw.as_str() {
            ">" => ">",
            "<" => "<",
            ">=" | "≥" | "=>" => ">=",
            "<=" | "≤" | "=<" => "<=",
            "=" | "==" => "=",
            "!=" | "≠" | "<>" => "!=",
            _ => return None,
        };
        return Some((sign, i + 1));
    }
    let at = |words: &str, i: usize| words.split(' ').enumerate().all(|(k, w)| reader.norm(i + k) == w);
    // "is over", "was at least": the verb adds nothing to the comparison after it.
    let verb = usize::from(matches!(word.norm.as_str(), "is" | "was" | "were" | "are" | "be" | "had" | "has"));
    for start in [i + verb, i] {
        let repeats = |words: &str| start > i && words.split(' ').next() == Some("is");
        let found = COMPARISONS.iter().find(|(words, _)| at(words, start) && !repeats(words));
        if let Some((words, sign)) = found {
            return Some((sign, start + words.split(' ').count()));
        }
    }
    None
}

/// Returns the value at `i` in the form of a condition, and the index after it and its unit.
fn value(reader: &QueryReader, i: usize, sign: &str) -> Option<(String, usize)> {
    let word = reader.word(i)?;
    let spoken = || count(&word.norm).map(|n| n.to_string());
    let (text, mut end) = match word.shape {
        WordShape::Number => (number(&word.raw)?.to_string(), i + 1),
        WordShape::Date | WordShape::Quoted => (word.raw.clone(), i + 1),
        WordShape::Plain if !matches!(sign, "=" | "!=" | "contains") => (spoken()?, i + 1),
        WordShape::Plain => {
            let mut end = i + 1;
            while word.is_name() && reader.word(end).is_some_and(|w| w.is_name() && !is_month(&w.norm)) {
                end += 1;
            }
            let raw: Vec<&str> = reader.words[i..end].iter().map(|w| w.raw.as_str()).collect();
            (raw.join(" "), end)
        }
        _ => return None,
    };
    if word.shape == WordShape::Number && is_unit(reader.norm(end)) {
        end += 1;
    }
    Some((text, end))
}

/// Reads "rain over 10 mm", "city is Oslo", "rain between 5 and 10", "rain is empty".
fn column_first(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let (column, after) = reader.column_at(i, Reach::Words)?;
    if reader.norm(after) == "between"
        || (matches!(reader.norm(after), "is" | "was") && reader.norm(after + 1) == "between")
    {
        let start = after + 1 + usize::from(reader.norm(after) != "between");
        let (low, k) = value(reader, start, ">=")?;
        if reader.words[start].shape == WordShape::Date && reader.kind_of(&column) == Some(ColumnKind::Number) {
            return None;
        }
        let k = k + usize::from(key(reader.norm(k)) == "with");
        let (high, end) = value(reader, k, "<=")?;
        reader.query.conditions.extend([format!("{column} >= {low}"), format!("{column} <= {high}")]);
        return Some(end);
    }
    let empty = usize::from(matches!(reader.norm(after), "is" | "are" | "was"));
    if empty == 1 && matches!(reader.norm(after + 1), "empty" | "missing") {
        reader.query.conditions.push(format!("{column} is empty"));
        return Some(after + 2);
    }
    let (sign, k) = comparison(reader, after)?;
    if is_question(reader, i, after, k) {
        return None;
    }
    let (text, end) = value(reader, k, sign)?;
    if i > 0 && reader.word(i - 1).is_some_and(|w| function(w).is_some()) {
        reader.query.problems.push(format!(
            "a condition on a computed value (`{} {column} {sign} {text}`) is not understood; compute first and filter the saved result",
            reader.norm(i - 1)
        ));
    }
    reader.query.conditions.push(format!("{column} {sign} {text}"));
    Some(end)
}

/// Whether this is a question: "which city is warmer" asks about the city and selects no rows; the same if the value is a
/// comparison.
fn is_question(reader: &QueryReader, column: usize, verb: usize, at: usize) -> bool {
    if !reader.word(verb).is_some_and(|word| word.shape == WordShape::Plain) {
        return false;
    }
    let Some(value) = reader.word(at).filter(|word| word.shape == WordShape::Plain) else { return false };
    let asks = column > 0 && matches!(reader.norm(column - 1), "which" | "what" | "whose");
    (asks && !value.is_name()) || !value.is_content() || is_rank_word(&value.norm) || compared(&value.norm).is_some()
}

/// Reads "more than 10 mm of rain".
fn value_first(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let (sign, k) = comparison(reader, i)?;
    if !matches!(sign, ">" | "<" | ">=" | "<=") {
        return None;
    }
    let (text, k) = value(reader, k, sign)?;
    let k = reader.skip(k, &["of", "in"]);
    let (column, end) = reader.column_at(k, Reach::Words)?;
    reader.query.conditions.push(format!("{column} {sign} {text}"));
    Some(end)
}

/// Reads "since 2024-03-01", "before March 2024", "in 2024", "between 2024-03-01 and 2024-04-01".
fn dates(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let lead = reader.norm(i);
    if !listed("since after from before until till in during for of between on", lead) {
        return None;
    }
    let first = period(reader, i + 1)?;
    let date = reader.date()?;
    let from = format!("{date} >= {}", first.start);
    let to = |p: &Period| match &p.after {
        Some(after) => format!("{date} < {after}"),
        None => format!("{date} <= {}", p.start),
    };
    let mut end = first.end;
    let conditions = match lead {
        "since" => vec![from],
        "after" => vec![match &first.after {
            Some(after) => format!("{date} >= {after}"),
            None => format!("{date} > {}", first.start),
        }],
        "before" => vec![format!("{date} < {}", first.start)],
        "until" | "till" => vec![to(&first)],
        "from" | "between" if matches!(reader.norm(end), "to" | "until" | "till" | "and") => {
            let last = period(reader, end + 1)?;
            end = last.end;
            vec![from, to(&last)]
        }
        "from" => vec![from],
        "between" => return None,
        _ => vec![from, to(&first)],
    };
    reader.query.conditions.extend(conditions);
    Some(end)
}

/// A day, month or year.
struct Period {
    start: String,
    /// The first day after it; `None` for a day, which is compared with itself.
    after: Option<String>,
    /// The index after its words.
    end: usize,
}

fn period(reader: &QueryReader, i: usize) -> Option<Period> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let year = |i: usize| {
        let word = reader.word(i).filter(|w| w.shape == WordShape::Number && w.raw.len() == 4)?;
        word.raw.parse::<u32>().ok().filter(|y| (1900..=2199).contains(y))
    };
    let month = |year: u32, month: u32, end: usize| {
        let (y, m) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        Period { start: format!("{year}-{month:02}-01"), after: Some(format!("{y}-{m:02}-01")), end }
    };
    let word = reader.word(i)?;
    if word.shape == WordShape::Date {
        return match word.raw.len() {
            7 => {
                let (y, m) = word.raw.split_once('-')?;
                Some(month(y.parse().ok()?, m.parse().ok().filter(|m| (1..=12).contains(m))?, i + 1))
            }
            _ => Some(Period { start: word.raw.clone(), after: None, end: i + 1 }),
        };
    }
    if let Some(year) = year(i) {
        return Some(Period { start: format!("{year}-01-01"), after: Some(format!("{}-01-01", year + 1)), end: i + 1 });
    }
    let prefix = word.norm.get(..3)?;
    let number = MONTHS.iter().position(|m| *m == prefix)? as u32 + 1;
    Some(month(year(i + 1)?, number, i + 2))
}

/// Reads "in Oslo", "for New York": a name, if the table has one text column. The word must not be a month or a column.
fn name(reader: &mut QueryReader, i: usize) -> Option<usize> {
    if !matches!(reader.norm(i), "in" | "for" | "at" | "of" | "from" | "only") {
        return None;
    }
    let column = only(reader.columns?, ColumnKind::Text)?.to_owned();
    // "for city Oslo" also names the column.
    let start = match reader.column_at(i + 1, Reach::Words) {
        Some((named, end)) if named == column => end,
        Some(_) => return None,
        None => i + 1,
    };
    if !reader.word(start).is_some_and(|w| w.is_name() && function(w).is_none())
        || reader.column_at(start, Reach::Words).is_some()
    {
        return None;
    }
    // "in March" is a time and not a place, unless the column contains such names.
    let is_time = is_month(reader.norm(start)) || is_season(reader.norm(start));
    let column_has = ["month", "season"].iter().any(|part| column.to_lowercase().contains(part));
    if is_time && !column_has {
        return None;
    }
    let (text, end) = value(reader, start, "=")?;
    reader.query.conditions.push(format!("{column} = {text}"));
    Some(end)
}

/// Returns an error if a column must be equal to two values.
fn contradiction(conditions: &[String]) -> Option<String> {
    let equal = || conditions.iter().filter_map(|c| c.split_once(" = ").map(|(column, _)| (c, column)));
    equal().find_map(|(a, column)| {
        let (b, _) = equal().find(|(b, other)| *other == column && *b != a)?;
        Some(format!("no row fits both `{a}` and `{b}`; ask for one at a time, or say \"by {column}\""))
    })
}
