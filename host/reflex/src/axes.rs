//! Skills that take columns: which words mean which column, and when a query must run first ("plot the monthly mean temperature"
//! needs the means first).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use kiso_plan::prompt::{Column, ColumnKind};

use crate::aggregate::mean_of_columns;
use crate::asked::{put_query, result_columns};
use crate::column::date_column;
use crate::fill::{Fill, Prior};
use crate::keyword::leads;
use crate::operator::is_negation;
use crate::query::TableQuery;
use crate::schema::{Arg, Use, first};
use crate::template::Item;
use crate::word::{Word, WordShape, key};

/// Fills the column arguments of `fill` from its unused words. `query_skill` is the skill that can run a query and save its
/// result.
pub(crate) fn fill<'a>(fill: &mut Fill<'a>, query_skill: Option<(usize, &'a [Arg<'a>])>) {
    let untouched = !fill.args.iter().any(|a| is_column(a) && fill.out.contains_key(a.name));
    if untouched && let Some((skill, args)) = query_skill {
        let (query, free) = fill.read_query();
        if query.is_derived() && query.leftover.is_empty() {
            derive(fill, query, skill, args);
            for i in free {
                fill.used[i] = true;
            }
            return;
        }
    }
    by_cue(fill);
    by_shape(fill);
}

fn is_column(arg: &Arg) -> bool {
    matches!(arg.used, Use::Column | Use::Columns)
}

/// Returns the argument for the rows and the one for the values.
fn axes<'a>(args: &[Arg<'a>]) -> (Option<Arg<'a>>, Option<Arg<'a>>) {
    let mut single = args.iter().filter(|a| a.used == Use::Column).copied();
    let along = single.next();
    (along, first(args, Use::Columns).copied().or(single.next()))
}

fn values_of(arg: &Arg, columns: &[String]) -> Option<Value> {
    match arg.used {
        Use::Columns => (!columns.is_empty()).then(|| json!(columns)),
        _ => columns.first().map(|c| json!(c)),
    }
}

/// Splits a request into a query that saves its result, and a call that reads it.
fn derive<'a>(fill: &mut Fill<'a>, mut query: TableQuery, skill: usize, args: &'a [Arg<'a>]) {
    let columns = fill.columns();
    if query.adjective
        && let Some(source) = fill.source
    {
        mean_of_columns(&mut query, |name| source.is_number(name));
    }
    let date = columns.and_then(|all| date_column(all)).map(str::to_owned);
    let mut along: Vec<String> = query.group.iter().map(|g| g.column.clone()).collect();
    let mut values: Vec<String> = query.compute.iter().map(|c| c.column.clone()).collect();
    if query.compute.is_empty() {
        // Rows are used unchanged: a group only selects the column along the rows.
        along = match query.group.first() {
            Some(group) if group.text != group.column => date.into_iter().collect(),
            Some(group) => vec![group.column.clone()],
            None => date.into_iter().collect(),
        };
        values = query.columns.clone();
        if values.is_empty() {
            values = query.order.iter().map(|(column, _)| column.clone()).collect();
        }
        query.group.clear();
        query.columns = along.iter().chain(&values).cloned().collect();
        query.columns.dedup();
        if values.is_empty() {
            query.columns.clear();
        }
    } else if query.group.is_empty() {
        fill.problems.push(format!(
            "{} is one value, which leaves nothing to draw; say by what, such as \"by {}\"",
            query.compute.iter().map(|c| c.text.as_str()).collect::<Vec<_>>().join(", "),
            example_group(columns.map(|all| &**all).unwrap_or_default())
        ));
    }
    let mut prior = Map::new();
    put_query(&query, args, &mut prior, &mut fill.problems);
    fill.problems.append(&mut query.problems);
    fill.notes.append(&mut query.notes);
    fill.score += 2 * query.weight() as i32 - 3;
    fill.prior = Some(Prior { skill, args: prior, produces: result_columns(&query, columns.map(|all| &**all)) });
    let (x, y) = axes(fill.args);
    if let (Some(x), Some(column)) = (x, along.first()) {
        fill.out.insert(x.name.to_owned(), json!(column));
    }
    if let Some((y, value)) = y.and_then(|y| values_of(&y, &values).map(|v| (y, v))) {
        fill.out.insert(y.name.to_owned(), value);
    }
}

/// Returns an example of a group for these columns, as a user writes it.
fn example_group(columns: &[Column]) -> &str {
    let text = || columns.iter().find(|column| column.kind == ColumnKind::Text).map(|column| column.name.as_str());
    match date_column(columns) {
        Some(_) => "month",
        None => text().or(columns.first().map(|column| column.name.as_str())).unwrap_or("month"),
    }
}

/// Returns the words before a column's slot in the skill's examples, which announce an argument: "over {x}", "of {y}".
fn cues<'a>(fill: &Fill<'a>) -> BTreeMap<String, Arg<'a>> {
    let mut cues = BTreeMap::new();
    for template in &fill.skill.templates {
        for pair in template.windows(2) {
            if let [Item::Literal { key, content: false }, Item::Slot(name)] = pair
                && let Some(arg) = fill.args.iter().find(|a| a.name == *name && is_column(a))
            {
                cues.entry(key.clone()).or_insert(*arg);
            }
        }
    }
    cues
}

#[expect(clippy::expect_used, reason = "starts with one")]
fn by_cue(fill: &mut Fill<'_>) {
    let cues = cues(fill);
    let (x, y) = axes(fill.args);
    let Some(mut current) = y.or(x) else { return };
    let mut parts: Vec<(Arg, Vec<Word>)> = vec![(current, Vec::new())];
    for i in 0..fill.words.len() {
        let word = &fill.words[i];
        if fill.used[i] || !matches!(word.shape, WordShape::Plain | WordShape::Quoted) {
            continue;
        }
        // The words after it select rows and name no column.
        if is_negation(&word.norm) || (leads(&word.norm) && word.norm != "only") {
            break;
        }
        match cues.get(&key(&word.norm)).filter(|_| word.norm != "and" && !word.is_content()) {
            Some(arg) => {
                current = *arg;
                parts.push((current, Vec::new()));
            }
            None => parts.last_mut().expect("starts with one").1.push(word.clone()),
        }
        fill.used[i] = true;
    }
    for (arg, words) in parts {
        if words.is_empty() || fill.out.contains_key(arg.name) {
            for word in words.iter().filter(|w| w.is_content()) {
                release(fill, word);
            }
            continue;
        }
        fill.capture(&arg, &words);
    }
}

/// Releases a word that no argument could take.
fn release(fill: &mut Fill<'_>, word: &Word) {
    if let Some(i) = fill.words.iter().position(|w| w.at == word.at) {
        fill.used[i] = false;
    }
}

/// Assigns the columns of a computed table: its groups are along the rows, and the others are values.
fn by_shape(fill: &mut Fill<'_>) {
    let Some(source) = fill.source.filter(|s| s.groups > 0) else {
        return;
    };
    let (x, y) = axes(fill.args);
    let Some(y) = y.filter(|y| !fill.out.contains_key(y.name)) else {
        return;
    };
    let columns = source.columns.as_deref().unwrap_or_default();
    let values: Vec<String> =
        columns.iter().skip(source.groups).filter(|c| c.kind == ColumnKind::Number).map(|c| c.name.clone()).collect();
    if let (Some(x), Some(group)) = (x, columns.first())
        && !fill.out.contains_key(x.name)
    {
        fill.out.insert(x.name.to_owned(), json!(group.name));
    }
    if let Some(value) = values_of(&y, &values) {
        fill.out.insert(y.name.to_owned(), value);
    }
}
