//! Aggregates: "mean temperature and total rain", "how many days", `mean(rain)`.

use kiso_plan::prompt::ColumnKind;

use crate::column::{ColumnMatch, Columns, Reach, is_unit};
use crate::keyword::{function, is_keyword};
use crate::query::{ComputedColumn, GroupKey, QueryReader, TableQuery, is_asking};
use crate::word::{Word, WordShape, is_filler, is_joint, is_reference};

/// Reads a written-out `mean(temperature)`: the column inside is looked up, the rest stays unchanged.
pub(crate) fn calls(reader: &mut QueryReader) {
    for i in 0..reader.words.len() {
        let word = &reader.words[i];
        if word.shape != WordShape::Call {
            continue;
        }
        let Some((function, rest)) = word.raw.split_once('(') else {
            continue;
        };
        let function = function.to_lowercase();
        let inner = rest.trim_end_matches(')');
        let column = match reader.columns {
            Some(columns) if !inner.is_empty() => match columns.resolve(inner, Reach::Words) {
                ColumnMatch::One(name) => name,
                _ => continue,
            },
            _ => inner.to_owned(),
        };
        if let Some(grouped) = GroupKey::by_time(&function, &column) {
            reader.group_by(grouped);
        } else {
            let function = if function == "avg" { "mean" } else { function.as_str() };
            reader.compute(function, &column);
        }
        reader.take(i, i + 1);
    }
}

/// Reads functions with the columns after them, then columns without a function.
pub(crate) fn read(reader: &mut QueryReader) {
    let mut functions: Vec<String> = Vec::new();
    let mut applied = false;
    let mut function_words: Vec<usize> = Vec::new();
    let mut i = 0;
    while i < reader.words.len() {
        if let Some(end) = counting(reader, i) {
            reader.take(i, end);
            i = end;
            continue;
        }
        let Some(word) = reader.word(i) else {
            i += 1;
            continue;
        };
        if let Some((percentile, end)) = percentile(reader, i).or_else(|| how_much(reader, i)) {
            if applied {
                functions.clear();
                applied = false;
            }
            functions.push(percentile);
            function_words.extend(i..end);
            i = end;
            continue;
        }
        let found = reader
            .column_at(i, Reach::Words)
            .or_else(|| (!is_plain_english(reader, word)).then(|| reader.column_at(i, Reach::Spelling)).flatten());
        // "total volume" is a sum, even if a column is named total.
        let is_function = function(word).filter(|_| {
            found.as_ref().is_none_or(|(_, end)| *end == i + 1 && reader.column_at(i + 1, Reach::Words).is_some())
        });
        if let Some(name) = is_function {
            if applied {
                functions.clear();
                applied = false;
            }
            if word.norm == "deviation" && i > 0 && reader.norm(i - 1) == "standard" {
                reader.take(i - 1, i);
            }
            functions.push(name.to_owned());
            function_words.push(i);
            i += 1;
        } else if let Some((column, end)) = found {
            if functions.is_empty() {
                if !reader.query.columns.contains(&column) {
                    reader.query.columns.push(column);
                }
            } else {
                let numeric = reader.kind_of(&column).is_none_or(|kind| kind == ColumnKind::Number);
                for function in &functions {
                    if numeric || matches!(function.as_str(), "min" | "max" | "count" | "distinct") {
                        reader.compute(function, &column);
                    } else {
                        reader
                            .query
                            .problems
                            .push(format!("the {function} of {column} cannot be taken: it holds no numbers"));
                    }
                }
                applied = true;
                for at in function_words.drain(..) {
                    reader.take(at, at + 1);
                }
            }
            reader.take(i, end);
            i = end;
            while is_unit(reader.norm(i)) {
                reader.take(i, i + 1);
                i += 1;
            }
        } else {
            i += 1;
        }
    }
    // "count by city" counts rows; every other function without a column is left over.
    for at in function_words {
        if function(&reader.words[at]) == Some("count") {
            reader.compute("count", "");
            reader.take(at, at + 1);
        }
    }
}

/// Reads "90th percentile".
fn percentile(reader: &QueryReader, i: usize) -> Option<(String, usize)> {
    let n: u8 = reader.norm(i).trim_end_matches(|c: char| c.is_alphabetic()).parse().ok()?;
    (reader.norm(i + 1) == "percentile" && n < 100).then(|| (format!("p{n}"), i + 2))
}

/// Reads "how much rain" as its sum.
fn how_much(reader: &QueryReader, i: usize) -> Option<(String, usize)> {
    let asks = reader.norm(i) == "how" && reader.norm(i + 1) == "much";
    let mut end = i + 2;
    while asks && matches!(reader.norm(end), "did" | "does" | "it" | "is" | "was" | "there") {
        end += 1;
    }
    (asks && reader.column_at(end, Reach::Words).is_some()).then(|| ("sum".to_owned(), end))
}

/// Reads "how many days", "number of rows", "count of cities", "count rows".
fn counting(reader: &mut QueryReader, i: usize) -> Option<usize> {
    let start = match (reader.norm(i), reader.norm(i + 1)) {
        ("how", "many") | ("number", "of") | ("count", "of") => i + 2,
        ("count", _) => i + 1,
        _ => return None,
    };
    let mut k = reader.skip(start, &[]);
    let distinct = reader.word(k).is_some_and(|w| function(w) == Some("distinct"));
    if distinct {
        k += 1;
    }
    let word = reader.word(k)?;
    if reader.is_row(word) {
        reader.compute("count", "");
    } else if let (true, Some(date)) = (matches!(word.norm.as_str(), "days" | "day" | "dates"), reader.date()) {
        // Counts days and not rows: a day may have one row per city.
        let computed = ComputedColumn { text: format!("distinct({date}) as days"), column: "days".to_owned() };
        reader.query.compute.push(computed);
    } else {
        let (column, end) = reader.column_at(k, Reach::Words)?;
        let function = if distinct || reader.kind_of(&column) == Some(ColumnKind::Text) { "distinct" } else { "count" };
        reader.compute(function, &column);
        return Some(end);
    }
    Some(k + 1)
}

/// Whether a word is too common to be a misspelt column.
fn is_plain_english(reader: &QueryReader, word: &Word) -> bool {
    word.norm.chars().count() < 4
        || matches!(word.norm.as_str(), "data" | "dataset" | "first" | "more" | "compare")
        || is_filler(&word.norm)
        || is_joint(&word.norm)
        || is_reference(&word.norm)
        || is_asking(word)
        || reader.is_row(word)
        || is_keyword(word)
        || word.is_name()
}

/// Reads "list the cities" as each value of a column once, and "compare the temperature of the cities" as one value for each.
pub(crate) fn values_of_columns(query: &mut TableQuery, words: &[Word], columns: &Columns) {
    let bare = query.compute.is_empty() && query.group.is_empty() && query.order.is_empty() && query.limit.is_none();
    if !bare || query.columns.is_empty() {
        return;
    }
    let is_text = |name: &String| columns.iter().any(|c| c.name == *name && c.kind == ColumnKind::Text);
    let (texts, numbers): (Vec<String>, Vec<String>) = query.columns.iter().cloned().partition(is_text);
    let group = |column: &String| GroupKey { text: column.clone(), column: column.clone(), kind: ColumnKind::Text };
    if words.iter().any(|word| matches!(word.norm.as_str(), "compare" | "comparison" | "compared")) {
        match (texts.first(), numbers.is_empty()) {
            (Some(text), true) => {
                let number =
                    columns.iter().find(|c| c.kind == ColumnKind::Number).map_or("COLUMN", |c| c.name.as_str());
                query
                    .problems
                    .push(format!("nothing says what to compare; say it, such as \"mean {number} by {text}\""));
            }
            (Some(_), false) => {
                query.group = texts.iter().map(group).collect();
                query.columns = numbers;
            }
            (None, _) => {}
        }
        return;
    }
    let plural = |name: &str| {
        let names =
            |word: &Word| matches!(columns.resolve(&word.raw, Reach::Words), ColumnMatch::One(found) if found == name);
        !name.ends_with('s') && words.iter().any(|word| word.norm.ends_with('s') && names(word))
    };
    if let ([one], true) = (texts.as_slice(), numbers.is_empty())
        && plural(one)
    {
        query.group = vec![group(one)];
        query.compute = vec![ComputedColumn { text: "count()".to_owned(), column: "count".to_owned() }];
        query.columns.clear();
    }
}

/// Reads columns beside a group as means, because the values of a group need an aggregate; a note says so.
pub(crate) fn mean_of_columns(query: &mut TableQuery, is_number: impl Fn(&str) -> bool) {
    if query.group.is_empty() || !query.compute.is_empty() || !query.order.is_empty() {
        return;
    }
    let numbers: Vec<String> = query.columns.iter().filter(|name| is_number(name)).cloned().collect();
    if numbers.is_empty() {
        return;
    }
    for column in &numbers {
        query.compute.push(ComputedColumn { text: format!("mean({column})"), column: format!("mean_{column}") });
    }
    query.columns.retain(|name| !numbers.contains(name));
    query.notes.push(format!("nothing was said about how to combine {}, so the mean was taken", numbers.join(" and ")));
}
