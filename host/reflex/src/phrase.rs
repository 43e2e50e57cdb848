//! Queries: reads a phrase such as "monthly mean temperature where rain is over 10" as values to compute, groups, conditions and
//! an order. Each step takes the words that it understands; a phrase with unused words was not understood.

use std::collections::BTreeSet;

use crate::column::Columns;
use crate::keyword::{is_time_noun, leads};
use crate::query::{QueryReader, TableQuery, is_asking};
use crate::word::{Word, WordShape, is_filler, is_joint, is_reference};
use crate::{aggregate, condition, group, rank};

/// Reads `words` as a query over a table with these columns; if they are `None`, any word may be a column. `rows` contains words
/// for the table's rows in addition to the usual ones.
pub(crate) fn read(words: &[Word], columns: Option<&Columns>, rows: &BTreeSet<String>) -> TableQuery {
    let mut reader = QueryReader::new(words, columns, rows);
    aggregate::calls(&mut reader);
    condition::read(&mut reader);
    rank::read(&mut reader);
    group::read(&mut reader);
    aggregate::read(&mut reader);
    rank::settle(&mut reader.query);
    reader.query.leftover = (0..words.len())
        .filter(|i| {
            reader.word(*i).is_some_and(|word| !reader.is_row(word) && !is_understood_anyway(word, &reader.query))
        })
        .collect();
    reader.query
}

/// Whether a word asks, names rows, or introduces something that was read.
fn is_understood_anyway(word: &Word, query: &TableQuery) -> bool {
    word.shape == WordShape::Plain
        && word.norm != "or"
        && ((is_asking(word) && word.norm != "only")
            || is_filler(&word.norm)
            || is_joint(&word.norm)
            || is_reference(&word.norm)
            || (!query.conditions.is_empty() && leads(&word.norm))
            || (!query.columns.is_empty() && word.norm == "only")
            || (query.limit.is_some() && is_time_noun(&word.norm))
            // "days with rain over 10" are rows.
            || (!query.conditions.is_empty()
                && query.compute.is_empty()
                && matches!(word.norm.as_str(), "day" | "days" | "dates")))
}
