//! Order and number of rows: "the 5 hottest days", "10 days with the most rain", "top 3 cities by total rain",
//! "sorted by rain descending", "first 10 rows".

use kiso_plan::prompt::ColumnKind;

use crate::column::Reach;
use crate::group::on_date;
use crate::keyword::{IMPLIED, NAMED, compared, function, time_noun};
use crate::query::{GroupKey, QueryReader, TableQuery};
use crate::word::{count, key, listed};

/// Words between a noun and its ranking: "the city that gets the most rain".
const HOLDS: &[&str] = &["with", "that", "having", "had", "has", "by", "gets", "get", "got", "saw", "sees"];

/// Number of rows if a plural asks for the best ones without a number.
const SOME: u64 = 10;

pub(crate) fn read(reader: &mut QueryReader) {
    let mut i = 0;
    while i < reader.words.len() {
        let end = sorted(reader, i)
            .or_else(|| first(reader, i))
            .or_else(|| top(reader, i))
            .or_else(|| implied(reader, i))
            .or_else(|| named(reader, i));
        i = end.unwrap_or(i + 1).max(i + 1);
    }
}

/// Reads "sorted by rain descending and date".
fn sorted(reader: &mut QueryReader, i: usize) -> Option<usize> {
    if !matches!(reader.norm(i), "sort" | "sorted" | "order" | "ordered") {
        return None;
    }
    let by = reader.skip(i + 1, &["it", "them", "rows"]);
    if reader.norm(by) != "by" {
        return None;
    }
    let mut at = reader.skip(by + 1, &[]);
    let mut end = None;
    while let Some((key, after)) = sort_key(reader, at) {
        let (desc, after) = direction(reader, after);
        reader.query.order.push((key, desc));
        end = Some(after);
        at = after + usize::from(reader.norm(after) == "and");
    }
    reader.take(i, end?);
    end
}

/// Returns a column, an aggregate (`mean_close`) or a time ("month"); [`settle`] checks whether the result has it.
fn sort_key(reader: &QueryReader, i: usize) -> Option<(String, usize)> {
    if let Some(((function, column), end)) = amount(reader, i) {
        return Some((function.map_or(column.clone(), |f| format!("{f}_{column}")), end));
    }
    if let Some(name) = time_noun(reader.norm(i)) {
        return Some((name.to_owned(), i + 1));
    }
    reader.word(i).filter(|w| function(w) == Some("count")).map(|_| ("count".to_owned(), i + 1))
}

/// Reads ", highest first": ordered by the computed value.
fn first(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let (desc, end) = direction(reader, i);
    if end <= i {
        return None;
    }
    reader.query.order.push((String::new(), desc));
    reader.take(i, end);
    Some(end)
}

/// Checks the order after everything was read: a computed result can only be sorted by one of its columns.
pub(crate) fn settle(query: &mut TableQuery) {
    let computed: Vec<&str> = query.compute.iter().map(|c| c.column.as_str()).collect();
    let grouped: Vec<&str> = query.group.iter().map(|g| g.column.as_str()).collect();
    for (key, _) in &mut query.order {
        let of_key: Vec<&str> =
            query.compute.iter().filter(|c| c.text.ends_with(&format!("({key})"))).map(|c| c.column.as_str()).collect();
        let stands = match (key.as_str(), computed.as_slice()) {
            ("", [one]) => Some(*one),
            ("", []) if query.columns.len() == 1 => Some(query.columns[0].as_str()),
            ("", _) => None,
            (key, []) => grouped.is_empty().then_some(key).or(grouped.contains(&key).then_some(key)),
            (key, all) if all.contains(&key) || grouped.contains(&key) => Some(key),
            _ => match of_key.as_slice() {
                [one] => Some(*one),
                _ => None,
            },
        };
        match stands {
            Some(column) => *key = column.to_owned(),
            None => {
                let has = grouped.iter().chain(&computed).copied().collect::<Vec<_>>().join(", ");
                let by = if key.is_empty() { "this".to_owned() } else { format!("`{key}`") };
                query.problems.push(format!(
                    "the result cannot be sorted by {by}; say \"sorted by\" and one of its columns{}{has}",
                    if has.is_empty() { "" } else { ": " }
                ));
            }
        }
    }
}

/// Returns the direction: "descending", "in descending order", "highest first"; the default is smallest first.
fn direction(reader: &QueryReader, i: usize) -> (bool, usize) {
    let start = i + usize::from(reader.norm(i) == "in");
    let (desc, end) = match (reader.norm(start), reader.norm(start + 1)) {
        ("descending" | "desc", "order") => (true, start + 2),
        ("ascending" | "asc", "order") => (false, start + 2),
        ("descending" | "desc", _) => (true, start + 1),
        ("ascending" | "asc", _) => (false, start + 1),
        ("highest" | "largest" | "latest" | "newest", "first") => (true, start + 2),
        ("lowest" | "smallest" | "earliest" | "oldest", "first") => (false, start + 2),
        _ => (false, i),
    };
    (desc, end)
}

/// Reads "top 3 cities by total rain", "bottom 5 by close", "first 10 rows", "last 5 days".
fn top(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let lead = reader.norm(i);
    if !matches!(lead, "top" | "bottom" | "first" | "last") {
        return None;
    }
    let n = count(reader.norm(i + 1))?;
    let mut end = i + 2;
    let desc = lead == "top";
    if matches!(lead, "first" | "last") {
        if reader.word(end).is_some_and(|w| reader.is_row(w) || time_noun(&w.norm) == Some("day")) {
            end += 1;
        }
        reader.query.limit = Some(n);
        if lead == "last" {
            let Some(date) = reader.date() else {
                reader.query.problems.push("the last rows can only be shown where a column has dates".to_owned());
                return None;
            };
            reader.query.order.push((date, true));
        }
        reader.take(i, end);
        return Some(end);
    }
    let subject = subject(reader, end);
    if subject.is_some() {
        end += 1;
    }
    let by = reader.skip(end, &[]);
    if reader.norm(by) == "by" {
        let (rank, after) = amount(reader, by + 1)?;
        reader.take(i, after);
        apply(reader, subject, rank, desc, "sum", n);
        return Some(after);
    }
    if let Some(Subject::Groups(grouped)) = &subject {
        let number = reader.columns.and_then(|all| all.iter().find(|c| c.kind == ColumnKind::Number));
        let number = number.map_or("COLUMN", |column| column.name.as_str());
        let column = &grouped.column;
        reader.query.problems.push(format!(
            "nothing says what ranks each {column}; say it, such as \"{lead} {n} {column} by total {number}\""
        ));
        reader.query.limit = Some(n);
        reader.take(i, end);
        return Some(end);
    }
    // "top 5 temperatures" ranks rows by the column itself.
    if let Some((column, after)) = reader.column_at(i + 2, Reach::Words)
        && reader.kind_of(&column) == Some(ColumnKind::Number)
    {
        reader.take(i, after);
        apply(reader, None, (None, column), desc, "sum", n);
        return Some(after);
    }
    reader.query.limit = Some(n);
    reader.take(i, end);
    Some(end)
}

/// Reads "the 5 hottest days", "hottest day", "windiest days".
fn implied(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let columns = reader.columns?;
    let asked = asked(reader, i);
    // "warmer" ranks only after a noun of a question; "warmer than" compares.
    let comparative = compared(reader.norm(i)).filter(|_| asked.is_some());
    if comparative.is_some() && reader.norm(i + 1) == "than" {
        return None;
    }
    let norm = comparative.as_deref().unwrap_or(reader.norm(i));
    let begins = |part: &str| {
        let fits: Vec<&String> =
            columns.iter().map(|c| &c.name).filter(|name| name.to_lowercase().starts_with(part)).collect();
        match fits.as_slice() {
            [one] => Some((*one).clone()),
            _ => None,
        }
    };
    let (column, desc) = match norm {
        "latest" | "newest" => (reader.date()?, true),
        "oldest" | "earliest" => (reader.date()?, false),
        _ => match IMPLIED.iter().find(|(word, ..)| *word == norm) {
            Some((_, desc, names)) => (names.iter().find_map(|name| begins(name))?, *desc),
            None if NAMED.iter().any(|(word, ..)| *word == norm) => return None,
            None => {
                let part = norm.strip_suffix("iest").or(norm.strip_suffix("est")).filter(|part| part.len() >= 3)?;
                // "sunniest": the last letter is doubled.
                let single = part
                    .get(..part.len() - 1)
                    .filter(|one| one.len() >= 3 && part[one.len()..] == one[one.len() - 1..]);
                (begins(part).or_else(|| begins(single?))?, true)
            }
        },
    };
    if let Some((noun, end)) = asked {
        return ranked(reader, noun, end, (None, column), desc, comparative.is_some(), "mean");
    }
    let n = i.checked_sub(1).and_then(|j| count(reader.norm(j)));
    let start = i - usize::from(n.is_some());
    let after = count(reader.norm(i + 1)).filter(|_| n.is_none());
    let mut end = i + 1 + usize::from(after.is_some());
    let n = n.or(after);
    let mut plural = false;
    let subject = subject(reader, end);
    if subject.is_some() {
        plural = reader.norm(end).ends_with('s');
        end += 1;
    }
    let n = n.unwrap_or(if plural { SOME } else { 1 });
    reader.take(start, end);
    apply(reader, subject, (None, column), desc, "mean", n);
    Some(end)
}

/// Returns the noun before the word at `i` if the word is about it ("which city is the warmest on average"), and the index after
/// all of it.
fn asked(reader: &QueryReader, i: usize) -> Option<(usize, usize)> {
    const VERBS: &str = "is are was were";
    const MANNER: &str = "average generally overall usually";
    let noun = reader.skip_back(i, &MANNER.split(' ').collect::<Vec<_>>())?;
    if !(noun + 1..i).any(|at| listed(VERBS, reader.norm(at))) || !(0..noun).any(|at| is_which(reader.norm(at))) {
        return None;
    }
    let mut end = i + 1;
    while listed(MANNER, reader.norm(end)) || (reader.norm(end) == "on" && reader.norm(end + 1) == "average") {
        end += 1;
    }
    Some((noun, end))
}

fn is_which(norm: &str) -> bool {
    matches!(norm, "which" | "what")
}

/// Ranks what the noun at `noun` names: its groups, or its rows if a superlative asks for the first ones. A comparative shows all
/// groups.
fn ranked(
    reader: &mut QueryReader,
    noun: usize,
    end: usize,
    rank: Rank,
    desc: bool,
    comparative: bool,
    by_default: &'static str,
) -> Option<usize> {
    let plural = reader.norm(noun).ends_with('s');
    let subject = subject(reader, noun)?;
    if comparative && matches!(subject, Subject::Rows) {
        return None;
    }
    let n = if plural { SOME } else { 1 };
    reader.take(noun, end);
    apply(reader, Some(subject), rank, desc, by_default, n);
    if comparative {
        reader.query.limit = None;
    }
    Some(end)
}

/// Reads "10 days with the most rain", "which city has the highest mean temperature", "the 5 largest volumes". A superlative
/// without a number and without rows to rank is an aggregate ("highest temperature per city") and not read here.
fn named(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let comparative = compared(reader.norm(i)).filter(|_| (0..i).any(|at| is_which(reader.norm(at))));
    let superlative = comparative.as_deref().unwrap_or(reader.norm(i));
    let (_, desc, by_default) = *NAMED.iter().find(|(word, ..)| *word == superlative)?;
    let (rank, end) = amount(reader, i + 1)?;
    if comparative.is_some() {
        if reader.norm(end) == "than" {
            return None;
        }
        let noun = reader.skip_back(i, HOLDS)?;
        let by_default = if by_default == "sum" { "sum" } else { "mean" };
        return ranked(reader, noun, end, rank, desc, true, by_default);
    }
    if let Some(n) = i.checked_sub(1).and_then(|j| count(reader.norm(j))) {
        reader.take(i - 1, end);
        apply(reader, None, rank, desc, by_default, n);
        return Some(end);
    }
    let noun = reader.skip_back(i, HOLDS)?;
    let word = reader.word(noun)?;
    let subject = Some(subject(reader, noun)?);
    let said = noun.checked_sub(1).and_then(|before| count(reader.norm(before)));
    let n = said.unwrap_or(if word.norm.ends_with('s') { SOME } else { 1 });
    reader.take(noun - usize::from(said.is_some()), end);
    apply(reader, subject, rank, desc, by_default, n);
    Some(end)
}

/// The subject of a ranking.
enum Subject {
    /// Days and rows.
    Rows,
    /// The values of a column of text, or longer times.
    Groups(GroupKey),
}

fn subject(reader: &mut QueryReader, i: usize) -> Option<Subject> {
    // A computed table already has one row per month.
    let computed = |name: &str| reader.kind_of(name) == Some(ColumnKind::Date);
    if time_noun(reader.norm(i)).is_some_and(computed) {
        return Some(Subject::Rows);
    }
    match time_noun(reader.norm(i)) {
        Some("day" | "hour") => return Some(Subject::Rows),
        Some(name) => return on_date(reader, name).map(Subject::Groups),
        None => {}
    }
    if reader.word(i).is_some_and(|w| reader.is_row(w)) {
        return Some(Subject::Rows);
    }
    let (column, end) = reader.column_at(i, Reach::Words)?;
    let kind = reader.kind_of(&column)?;
    (kind == ColumnKind::Text && end == i + 1).then(|| Subject::Groups(GroupKey { text: column.clone(), column, kind }))
}

/// The function and the column of a ranking.
type Rank = (Option<&'static str>, String);

fn amount(reader: &QueryReader, i: usize) -> Option<(Rank, usize)> {
    let mut at = reader.skip(i, &["of"]);
    if let Some((column, end)) = reader.column_at(at, Reach::Words) {
        return Some(((None, column), end));
    }
    let function = function(reader.word(at)?)?;
    at = reader.skip(at + 1, &["of"]);
    let (column, end) = reader.column_at(at, Reach::Words)?;
    Some(((Some(function), column), end))
}

/// Ranks rows by a column, or groups by an aggregate of it.
fn apply(reader: &mut QueryReader, subject: Option<Subject>, rank: Rank, desc: bool, by_default: &'static str, n: u64) {
    let (function, column) = rank;
    let grouped = match (subject, function) {
        (Some(Subject::Groups(grouped)), _) => Some(grouped),
        (Some(Subject::Rows) | None, Some(_)) => on_date(reader, "day"),
        (Some(Subject::Rows) | None, None) => None,
    };
    let key = match grouped {
        Some(grouped) => {
            let used = function.unwrap_or(by_default);
            if function.is_none() {
                reader.note(format!("each {} was ranked by the {} of {column}", grouped.column, name_of(used)));
            }
            reader.group_by(grouped);
            reader.compute(used, &column)
        }
        None => column,
    };
    reader.query.order.push((key, desc));
    reader.query.limit = Some(n);
}

fn name_of(function: &str) -> String {
    match function {
        "sum" => key("total"),
        "max" => "maximum".to_owned(),
        "min" => "minimum".to_owned(),
        other => other.to_owned(),
    }
}
