//! Expectations: the sentences that reflex writes into plans and can verify. They are listed in docs/reflex.md.

use std::collections::HashSet;

use serde_json::{Map, Value};

use kiso_plan::prompt::{Column, SkillCard};
use kiso_plan::report::TaskReport;

use crate::schema::{Use, args, first};
use crate::table::{self, ReportTable};

/// One expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expect {
    /// `exit code 0`
    Exit(i32),
    /// `a table with a column X`, `a table with the columns X, Y and Z`
    Columns(Vec<String>),
    /// `at least 1 row`
    Rows(u64),
    /// `files ending in .svg and .png`, `a file ending in .csv`
    Files(Vec<String>),
    /// `the file monthly.csv`
    File(String),
    /// `contains "x"`
    Contains(String),
    /// `not empty`
    NotEmpty,
    /// Anything else; it is reported and not verified.
    Unknown(String),
}

/// Returns the expected result of a call.
pub(crate) fn of_call(card: &SkillCard, call: &Map<String, Value>, produces: Option<&[Column]>) -> String {
    let known = args(card);
    let mut parts = Vec::new();
    let as_json = call.get("format").is_some_and(|f| f == "json");
    if let Some(columns) = produces.filter(|c| !c.is_empty() && !as_json) {
        let names: Vec<String> = columns.iter().map(|c| quoted(&c.name)).collect();
        let filtered = known.iter().any(|a| a.used == Use::Condition && call.contains_key(a.name));
        let grouped = known.iter().any(|a| matches!(a.used, Use::Aggregate) && call.contains_key(a.name));
        let which = match names.as_slice() {
            [one] => format!("a table with a column {one}"),
            [head @ .., last] => format!("a table with the columns {} and {last}", head.join(", ")),
            [] => String::new(),
        };
        // A filter may legitimately leave no rows.
        parts.push(if filtered && !grouped { which } else { format!("{which} and at least 1 row") });
    }
    if let Some(path) = first(&known, Use::Save).and_then(|a| call.get(a.name)).and_then(Value::as_str) {
        parts.push(format!("the file {}", quoted(path)));
    }
    let kinds = written_kinds(card);
    if !kinds.is_empty() {
        parts.push(format!("files ending in {}", kinds.join(" and ")));
    }
    match parts.is_empty() {
        true => "not empty".to_owned(),
        false => parts.join(", "),
    }
}

/// Returns the kinds of files that a skill with an argument named `out` or `output` writes: the words in that argument's
/// description, or otherwise in the summary, that are an extension (`.svg`) or its acronym (`SVG`).
fn written_kinds(card: &SkillCard) -> Vec<String> {
    const KINDS: [&str; 9] = ["svg", "png", "pdf", "html", "jpg", "gif", "webp", "md", "zip"];
    let Some(out) = ["out", "output"].iter().find_map(|name| card.args["properties"].get(*name)) else {
        return Vec::new();
    };
    let of = |text: &str| {
        let mut found: Vec<String> = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let kind = word.to_lowercase();
            if KINDS.contains(&kind.as_str()) && !found.contains(&format!(".{kind}")) {
                found.push(format!(".{kind}"));
            }
        }
        found
    };
    let summary = of(&card.summary);
    match summary.is_empty() {
        true => of(out["description"].as_str().unwrap_or_default()),
        false => summary,
    }
}

/// Parses an expectation's text.
pub(crate) fn parse(text: &str) -> Vec<Expect> {
    let mut out = Vec::new();
    for part in parts(text) {
        let part = part.trim().trim_end_matches('.').trim_start_matches("and ");
        if part.is_empty() {
            continue;
        }
        match (one(part), out.last_mut()) {
            // A name after a list of columns or endings continues the list.
            (Expect::Unknown(name), Some(Expect::Columns(columns))) if is_name(&name) || is_backticked(&name) => {
                columns.push(unquoted(&name));
            }
            (Expect::Unknown(ending), Some(Expect::Files(endings))) if ending.starts_with('.') && is_name(&ending) => {
                endings.push(ending)
            }
            (found, _) => out.push(found),
        }
    }
    out
}

/// Splits the text at commas, semicolons, ends of lines and "and", but not inside of backticks.
fn parts(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (i, c) in text.char_indices() {
        inside ^= c == '`';
        let cut = match c {
            ',' | ';' | '\n' => Some(1),
            ' ' if text[i..].starts_with(" and ") => Some(" and ".len()),
            _ => None,
        };
        if let Some(len) = cut.filter(|_| !inside && i >= start) {
            out.push(&text[start..i]);
            start = i + len;
        }
    }
    out.push(&text[start.min(text.len())..]);
    out
}

/// Returns a name for an expectation: in backticks unless it is one word.
fn quoted(name: &str) -> String {
    if (is_name(name) || name.contains('`')) && name != "and" { name.to_owned() } else { format!("`{name}`") }
}

fn unquoted(name: &str) -> String {
    name.strip_prefix('`').and_then(|n| n.strip_suffix('`')).unwrap_or(name).to_owned()
}

fn is_backticked(text: &str) -> bool {
    text.len() > 2 && text.starts_with('`') && text.ends_with('`')
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.()".contains(c))
}

fn one(part: &str) -> Expect {
    let words: Vec<&str> = part.split_whitespace().collect();
    let quoted = || part.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map(|(inner, _)| inner.to_owned());
    match words.as_slice() {
        ["exit", "code", n] => n.parse().map_or_else(|_| Expect::Unknown(part.to_owned()), Expect::Exit),
        ["a", "table", "with", "a", "column", name @ ..] | ["a", "column", name @ ..] if !name.is_empty() => {
            Expect::Columns(vec![unquoted(&name.join(" "))])
        }
        ["a", "table", "with", "the", "columns", name @ ..] | ["the", "columns", name @ ..] if !name.is_empty() => {
            Expect::Columns(vec![unquoted(&name.join(" "))])
        }
        ["at", "least", n, "row" | "rows"] => n.parse().map_or_else(|_| Expect::Unknown(part.to_owned()), Expect::Rows),
        ["files" | "file", "ending", "in", ending] | ["a", "file", "ending", "in", ending]
            if ending.starts_with('.') =>
        {
            Expect::Files(vec![(*ending).to_owned()])
        }
        ["the", "file", path @ ..] if path.len() == 1 && path[0].contains('.') || is_backticked(&path.join(" ")) => {
            Expect::File(unquoted(&path.join(" ")))
        }
        ["contains" | "containing", ..] => quoted().map_or_else(|| Expect::Unknown(part.to_owned()), Expect::Contains),
        ["not", "empty"] | ["non-empty"] => Expect::NotEmpty,
        _ => Expect::Unknown(part.to_owned()),
    }
}

/// Returns why the expectation is not met; `None` if it is met.
pub(crate) fn failing(expect: &Expect, report: &TaskReport) -> Option<String> {
    let table = || table::read(report);
    let ends = |ending: &str| report.files.iter().any(|f| f.path.to_lowercase().ends_with(&ending.to_lowercase()));
    match expect {
        Expect::Exit(wanted) => match report.exit_code {
            Some(code) if code == *wanted => None,
            Some(code) => Some(format!("it ended with exit code {code}, not {wanted}")),
            // A skill has no exit code; success counts as 0.
            None if *wanted == 0 => None,
            None => Some(format!("it has no exit code, and {wanted} was expected")),
        },
        Expect::Columns(wanted) => {
            let mut have = table().map(|t: ReportTable| t.columns).unwrap_or_default();
            // A header with single spaces reads as one cell.
            if have.len() == 1 {
                let words: Vec<String> = have[0].split_whitespace().map(str::to_owned).collect();
                if words.len() > 1 {
                    have.extend(words);
                }
            }
            let fold = |s: &str| s.to_lowercase().replace([' ', '-'], "_");
            let folded: HashSet<String> = have.iter().map(|name| fold(name)).collect();
            let missing: Vec<&str> =
                wanted.iter().map(String::as_str).filter(|name| !folded.contains(&fold(name))).collect();
            match (missing.is_empty(), have.is_empty()) {
                (true, _) => None,
                (_, true) => Some(format!("there is no table with the column {}", missing.join(", "))),
                _ => Some(format!("the table has no column {}; it has {}", missing.join(", "), have.join(", "))),
            }
        }
        Expect::Rows(least) => match table() {
            Some(t) if t.rows >= *least => None,
            Some(t) => Some(format!("the table has {} rows, fewer than {least}", t.rows)),
            None => Some("there is no table".to_owned()),
        },
        Expect::Files(endings) => {
            let missing: Vec<&str> = endings.iter().map(String::as_str).filter(|e| !ends(e)).collect();
            (!missing.is_empty()).then(|| format!("there is no file ending in {}", missing.join(", ")))
        }
        Expect::File(path) => {
            let found = report.files.iter().any(|f| f.path == *path);
            (!found).then(|| format!("the file {path} was not made"))
        }
        Expect::Contains(text) => {
            let found = report.text.contains(text.as_str())
                || report.data.as_ref().is_some_and(|d| d.to_string().contains(text.as_str()));
            (!found).then(|| format!("the output does not contain \"{text}\""))
        }
        Expect::NotEmpty => {
            let empty = report.text.trim().is_empty()
                && report.data.as_ref().is_none_or(Value::is_null)
                && report.files.is_empty();
            empty.then(|| "the output is empty".to_owned())
        }
        Expect::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_it_writes() {
        let names = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            parse("a table with the columns month, mean_t and sum_r and at least 1 row, the file m.csv"),
            [Expect::Columns(names(&["month", "mean_t", "sum_r"])), Expect::Rows(1), Expect::File("m.csv".to_owned())]
        );
        assert_eq!(
            parse(
                "a table with the columns `Order Date`, `mean_Unit Price` and `A and B` and at least 1 row, the file `my m.csv`"
            ),
            [
                Expect::Columns(names(&["Order Date", "mean_Unit Price", "A and B"])),
                Expect::Rows(1),
                Expect::File("my m.csv".to_owned())
            ]
        );
        assert_eq!(parse("a table with a column `Customer Name`"), [Expect::Columns(names(&["Customer Name"]))]);
        assert_eq!(parse("files ending in .svg and .png"), [Expect::Files(names(&[".svg", ".png"]))]);
        assert_eq!(
            parse("all tests pass, exit code 0"),
            [Expect::Unknown("all tests pass".to_owned()), Expect::Exit(0)]
        );
        assert_eq!(parse("contains \"a b\"; not empty"), [Expect::Contains("a b".to_owned()), Expect::NotEmpty]);
    }
}
