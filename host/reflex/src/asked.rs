//! The arguments of a skill for a query, and the columns of its result.

use serde_json::{Map, Value, json};

use kiso_plan::prompt::{Column, ColumnKind};

use crate::query::TableQuery;
use crate::schema::{Arg, Use, first};

/// Writes a query into the arguments for its parts; a part without an argument is a problem.
pub(crate) fn put_query(query: &TableQuery, args: &[Arg], out: &mut Map<String, Value>, problems: &mut Vec<String>) {
    let list = |texts: Vec<String>| Value::from(texts);
    let order = query.order.iter().map(|(c, desc)| if *desc { format!("{c} desc") } else { c.clone() }).collect();
    let parts = [
        (Use::Condition, list(query.conditions.clone())),
        (Use::Group, list(query.group.iter().map(|g| g.text.clone()).collect())),
        (Use::Aggregate, list(query.compute.iter().map(|c| c.text.clone()).collect())),
        (Use::Order, list(order)),
        (Use::Limit, query.limit.map_or(json!([]), |n| json!(n))),
    ];
    for (used, value) in parts {
        if value.as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        match first(args, used) {
            Some(arg) => {
                out.insert(arg.name.to_owned(), value);
            }
            None => problems.push(format!("the skill cannot do this part: {value}")),
        }
    }
    if query.compute.is_empty()
        && query.group.is_empty()
        && !query.columns.is_empty()
        && let Some(arg) = first(args, Use::Columns)
    {
        out.insert(arg.name.to_owned(), list(query.columns.clone()));
    }
}

/// Returns the columns of a query's result, if they can be known.
pub(crate) fn result_columns(query: &TableQuery, columns: Option<&[Column]>) -> Option<Vec<Column>> {
    let mut out: Vec<Column> = query.group.iter().map(|g| Column { name: g.column.clone(), kind: g.kind }).collect();
    out.extend(query.compute.iter().map(|c| Column { name: c.column.clone(), kind: ColumnKind::Number }));
    if !query.group.is_empty() && query.compute.is_empty() {
        out.push(Column { name: "count".to_owned(), kind: ColumnKind::Number });
    }
    if !out.is_empty() {
        return Some(out);
    }
    let all = columns?;
    if query.columns.is_empty() {
        return Some(all.to_vec());
    }
    Some(query.columns.iter().filter_map(|name| all.iter().find(|c| c.name == *name).cloned()).collect())
}
