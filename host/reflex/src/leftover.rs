//! Unused words. If they may change the meaning, they are a problem with advice on how to write it, because a plan without them
//! would answer another question. Only words of manner are ignored, and the reply says so.

use kiso_plan::prompt::ColumnKind;

use crate::column::{ColumnMatch, Reach, date_column, only};
use crate::condition::{is_month, is_season};
use crate::fill::Fill;
use crate::keyword::{compared, function, is_comparison, is_rank_word, leads};
use crate::operator::{is_negation, is_operator};
use crate::query::is_asking;
use crate::schema::Use;
use crate::word::{Word, WordShape, count, listed, sentence};

/// Whether a word is about manner or looks: no skill has an argument for it and no answer depends on it.
fn is_harmless(word: &Word) -> bool {
    const LOOKS: &str = "again clean clear brief short picture image figure data dataset today thanks";
    let manner = word.norm.ends_with("ly") && !is_operator(word) && !is_scope(&word.norm);
    word.shape == WordShape::Plain && (manner || listed(LOOKS, &word.norm))
}

/// Whether a word in -ly excludes or includes rows.
fn is_scope(norm: &str) -> bool {
    matches!(norm, "only" | "solely" | "exclusively" | "merely" | "nearly" | "exactly" | "early" | "hardly" | "roughly")
        || norm.len() < 5
}

/// Returns the indexes of words with content that nothing used.
pub(crate) fn unused(fill: &Fill) -> Vec<usize> {
    let own = |word: &Word| {
        word.shape == WordShape::Plain
            && !is_operator(word)
            && (fill.lexicon.contains(&word.key) || is_asking(word) || crate::query::is_row(word))
    };
    // "only" is covered by the condition or the columns that were read.
    let settled = |word: &Word| {
        (leads(&word.norm) && (fill.narrowed || (word.norm == "only" && fill.named)))
            || (asked_for(word) && fill.queried)
    };
    let open = |i: &usize| {
        let word = &fill.words[*i];
        let says = word.is_content() || matches!(word.norm.as_str(), "or");
        !fill.used[*i] && says && !own(word) && !settled(word)
    };
    (0..fill.words.len()).filter(open).collect()
}

/// "how much" before a named column.
fn asked_for(word: &Word) -> bool {
    word.norm == "much"
}

/// Returns the problem of the words that prevent a plan: explains the first one and names the others.
pub(crate) fn problem(fill: &Fill, unused: &[usize]) -> Option<String> {
    let blocking: Vec<usize> = unused.iter().copied().filter(|i| !is_harmless(&fill.words[*i])).collect();
    let operators = || blocking.iter().copied().filter(|i| is_operator(&fill.words[*i]));
    // "but only for Oslo": the word after "but" is more informative.
    let chief =
        operators().find(|i| fill.words[*i].norm != "but").or(operators().next()).or(blocking.first().copied())?;
    let said: Vec<String> = blocking.iter().map(|i| format!("`{}`", fill.words[*i].raw)).collect();
    let them = if said.len() == 1 { "it" } else { "them" };
    let what = format!("\"{}\": I do not know what to do with {}", fill.scene.slice(fill.words), said.join(" and "));
    let filters = fill.args.iter().any(|a| matches!(a.used, Use::Condition | Use::Column | Use::Columns));
    Some(match filters && fill.source.is_some() {
        true => format!("{what}; leave {them} out, or {}", advice(fill, chief, &blocking)),
        false => format!("{what}; leave {them} out"),
    })
}

/// Returns advice on how to write what the word at `i` may mean.
fn advice(fill: &Fill, i: usize, blocking: &[usize]) -> String {
    let month = blocking.iter().map(|i| &fill.words[*i]).find(|w| is_month(&w.norm));
    let dated = fill.columns().is_some_and(|columns| date_column(columns).is_some());
    if (month.is_some() || blocking.iter().any(|i| is_season(&fill.words[*i].norm))) && !dated {
        let file = fill.source.map_or("the table", |source| source.path.as_str());
        return format!("name another column: {file} has none with dates");
    }
    if let Some(month) = month {
        return format!("write the month with its year, such as `{} 2024`", month.raw);
    }
    if blocking.iter().any(|i| is_season(&fill.words[*i].norm)) {
        return "write the season as dates, such as `between 2024-06-01 and 2024-08-31`".to_owned();
    }
    let word = &fill.words[i];
    let norm = word.norm.as_str();
    let after = |k: usize| fill.words[k + 1..].iter();
    if is_negation(norm) || norm == "only" {
        let sign = if norm == "only" { "=" } else { "!=" };
        let next = after(i).find(|w| w.is_content());
        let name = next.filter(|w| w.is_name() && column_of(fill, w).is_none());
        if let (Some(name), Some(column)) = (name, text_column(fill)) {
            return condition(&format!("{column} {sign} {}", name.raw));
        }
        let number = next.and_then(|w| column_of(fill, w).filter(|c| kind(fill, c) == Some(ColumnKind::Number)));
        return condition(&number.map_or_else(|| example(fill), |column| format!("{column} = 0")));
    }
    if let (Some(_), Some(text)) = (compared(norm), text_column(fill)) {
        let number = number_column(fill).unwrap_or_else(|| any_column(fill));
        return format!("say by which column, such as `which {text} has the highest mean {number}`");
    }
    if is_rank_word(norm) || matches!(function(word), Some("max" | "min")) {
        let column = number_column(fill).unwrap_or_else(|| any_column(fill));
        let end = if matches!(function(word), Some("min")) { "lowest" } else { "highest" };
        return format!("write the order as `sorted by {column} descending` or `the 5 {end} {column}`");
    }
    if is_comparison(norm) || word.shape == WordShape::Number || word.shape == WordShape::Compare {
        let sign = match norm {
            "below" | "under" | "less" | "fewer" => "<",
            _ => ">",
        };
        let number = blocking
            .iter()
            .find(|k| fill.words[**k].shape == WordShape::Number || count(&fill.words[**k].norm).is_some());
        let value = number.map_or("10", |k| fill.words[*k].raw.as_str());
        let column = number_column(fill).unwrap_or_else(|| any_column(fill));
        return condition(&format!("{column} {sign} {value}"));
    }
    let rainy = blocking.iter().find_map(|k| {
        let stem = fill.words[*k].norm.strip_suffix('y')?;
        let ColumnMatch::One(name) = fill.columns()?.resolve(stem, Reach::Words) else { return None };
        (kind(fill, &name) == Some(ColumnKind::Number)).then_some(name)
    });
    if let Some(column) = rainy {
        return condition(&format!("{column} > 0"));
    }
    let placed = |k: &&usize| {
        let before = k.checked_sub(1).map_or("", |j| fill.words[j].norm.as_str());
        let plain = fill.words[**k].shape == WordShape::Plain && !is_operator(&fill.words[**k]);
        fill.words[**k].is_name() || (plain && matches!(before, "in" | "for" | "at" | "only"))
    };
    if let (Some(column), Some(name)) = (text_column(fill), blocking.iter().find(placed)) {
        let name = sentence(&fill.words[*name].raw);
        return format!("ask for one name at a time, with the condition `{column} = {name}`");
    }
    // "city bad": the column is before its value.
    let before = fill.words[..i].iter().rev().find(|w| w.is_content()).and_then(|w| column_of(fill, w));
    match before.filter(|c| kind(fill, c) == Some(ColumnKind::Text)) {
        Some(column) => condition(&format!("{column} = {}", word.raw)),
        None => condition(&example(fill)),
    }
}

fn condition(text: &str) -> String {
    format!("write the condition as `{text}`")
}

/// Returns an example of a condition that the table allows.
fn example(fill: &Fill) -> String {
    match number_column(fill) {
        Some(column) => format!("{column} > 10"),
        None => format!("{} = VALUE", any_column(fill)),
    }
}

/// Returns the first column, of any kind.
fn any_column(fill: &Fill) -> String {
    fill.columns().and_then(|columns| columns.first()).map_or_else(|| "COLUMN".to_owned(), |column| column.name.clone())
}

fn column_of(fill: &Fill, word: &Word) -> Option<String> {
    match fill.columns()?.resolve(&word.raw, Reach::Words) {
        ColumnMatch::One(name) => Some(name),
        _ => None,
    }
}

fn kind(fill: &Fill, name: &str) -> Option<ColumnKind> {
    fill.columns()?.iter().find(|c| c.name == name).map(|c| c.kind)
}

fn text_column(fill: &Fill) -> Option<String> {
    only(fill.columns()?, ColumnKind::Text).map(str::to_owned)
}

/// Returns the column of numbers that the clause names, or the first one.
fn number_column(fill: &Fill) -> Option<String> {
    let is_number = |name: &String| kind(fill, name) == Some(ColumnKind::Number);
    let named = fill.words.iter().filter(|w| w.is_content()).find_map(|w| column_of(fill, w).filter(is_number));
    named.or_else(|| fill.columns()?.iter().find(|c| c.kind == ColumnKind::Number).map(|c| c.name.clone()))
}
