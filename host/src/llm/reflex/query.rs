//! Queries: a phrase such as "monthly mean temperature where rain is over 10" becomes what to compute, by what to
//! group, which rows to take and in which order. Each reading takes the words that it understood; what nobody took is
//! left over, and a phrase with words left over was not understood.

use std::collections::BTreeSet;

use crate::llm::prompt::ColumnKind;

use super::column::{ColumnMatch, Columns, Reach, date_column};
use super::word::{Mark, Shape, Word, is_filler, is_joint, is_reference};
use super::{aggregate, condition, group, rank};

/// A value per group: `mean(rain_mm)`, which becomes the column `mean_rain_mm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Computed {
    pub text: String,
    pub column: String,
}

/// What rows are grouped by: `month(date)`, which becomes the column `month`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grouped {
    pub text: String,
    pub column: String,
    pub kind: ColumnKind,
}

/// A phrase as a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub compute: Vec<Computed>,
    pub group: Vec<Grouped>,
    pub conditions: Vec<String>,
    /// Column, and whether the greatest comes first.
    pub order: Vec<(String, bool)>,
    pub limit: Option<u64>,
    /// Columns that are named and not computed with.
    pub columns: Vec<String>,
    /// What was assumed, for the user.
    pub notes: Vec<String>,
    /// What cannot be done, for the user.
    pub problems: Vec<String>,
    /// Words that say something and that no reading took, as indices.
    pub leftover: Vec<usize>,
    /// A group was named by "monthly" and the like, which no plain list of columns can mean.
    pub adjective: bool,
}

impl Query {
    /// Whether only a query can answer this: naming columns is not enough.
    pub fn is_derived(&self) -> bool {
        !self.compute.is_empty()
            || !self.conditions.is_empty()
            || !self.order.is_empty()
            || self.limit.is_some()
            || self.adjective
    }

    /// How much was understood.
    pub fn weight(&self) -> usize {
        self.compute.len()
            + self.group.len()
            + self.conditions.len()
            + self.order.len()
            + usize::from(self.limit.is_some())
            + self.columns.len()
    }
}

/// The words of one phrase and who took them.
pub(super) struct Reader<'a> {
    pub words: &'a [Word],
    pub columns: Option<&'a Columns>,
    pub query: Query,
    /// Words for the rows of this table, as keys.
    rows: &'a BTreeSet<String>,
    taken: Vec<bool>,
}

/// Reads `words` as a query over a table with these columns; `None` if they are not known, and then any word may be one.
/// `rows` are words for its rows beside the usual ones.
pub(super) fn read(words: &[Word], columns: Option<&Columns>, rows: &BTreeSet<String>) -> Query {
    let mut reader = Reader { words, columns, query: Query::default(), rows, taken: vec![false; words.len()] };
    aggregate::calls(&mut reader);
    condition::read(&mut reader);
    rank::read(&mut reader);
    group::read(&mut reader);
    aggregate::read(&mut reader);
    rank::settle(&mut reader.query);
    reader.query.leftover = (0..words.len())
        .filter(|i| !reader.taken[*i] && !reader.is_row(&words[*i]) && !is_understood_anyway(&words[*i], &reader.query))
        .collect();
    reader.query
}

/// Words that ask, that name rows, or that lead to something that another reading took.
fn is_understood_anyway(word: &Word, query: &Query) -> bool {
    word.shape == Shape::Plain
        && word.norm != "or"
        && ((is_asking(word) && word.norm != "only")
            || is_filler(&word.norm)
            || is_joint(&word.norm)
            || is_reference(&word.norm)
            || (!query.conditions.is_empty() && condition::leads(&word.norm))
            || (!query.columns.is_empty() && word.norm == "only")
            || (query.limit.is_some() && group::is_time_noun(&word.norm))
            // "days with rain over 10" are rows.
            || (!query.conditions.is_empty()
                && query.compute.is_empty()
                && matches!(word.norm.as_str(), "day" | "days" | "dates")))
}

/// A word of asking for something; it does not say what.
pub(super) fn is_asking(word: &Word) -> bool {
    matches!(
        word.key.as_str(),
        "show"
            | "find"
            | "tell"
            | "comput"
            | "compute"
            | "what"
            | "which"
            | "how"
            | "select"
            | "return"
            | "se"
            | "know"
            | "fetch"
            | "report"
            | "look"
            | "group"
            | "grouped"
            | "who"
            | "pick"
            | "tak"
            | "keep"
            | "only"
            | "filter"
            | "much"
    )
}

/// A word for the rows of any table.
pub(super) fn is_row(word: &Word) -> bool {
    matches!(
        word.key.as_str(),
        "row" | "record" | "entry" | "item" | "observation" | "measurement" | "cas" | "tabl" | "value" | "valu"
    )
}

impl<'a> Reader<'a> {
    pub fn word(&self, i: usize) -> Option<&'a Word> {
        (i < self.words.len() && !self.taken[i]).then(|| &self.words[i])
    }

    pub fn is_row(&self, word: &Word) -> bool {
        is_row(word) || self.rows.contains(&word.key)
    }

    pub fn norm(&self, i: usize) -> &'a str {
        self.word(i).map_or("", |w| w.norm.as_str())
    }

    pub fn take(&mut self, from: usize, to: usize) {
        self.taken[from..to].fill(true);
    }

    /// The next index from `i` on whose word is none of `skipped` and no filler.
    pub fn skip(&self, mut i: usize, skipped: &[&str]) -> usize {
        while let Some(word) = self.word(i)
            && word.shape == Shape::Plain
            && (is_filler(&word.norm) || skipped.contains(&word.norm.as_str()))
        {
            i += 1;
        }
        i
    }

    /// The same to the left: the last index before `i`, or none.
    pub fn skip_back(&self, i: usize, skipped: &[&str]) -> Option<usize> {
        (0..i).rev().map_while(|j| self.word(j).map(|w| (j, w))).find_map(|(j, w)| {
            let skip = w.shape == Shape::Plain && (is_filler(&w.norm) || skipped.contains(&w.norm.as_str()));
            (!skip).then_some(j)
        })
    }

    /// The column that the longest run of words from `i` on means, and the index after it.
    pub fn column_at(&self, i: usize, reach: Reach) -> Option<(String, usize)> {
        let first = self.word(i)?;
        if !matches!(first.shape, Shape::Plain | Shape::Quoted) || !first.is_content() {
            return None;
        }
        let Some(columns) = self.columns else {
            let is_name = !is_keyword(first) && !is_asking(first) && !self.is_row(first);
            return is_name.then(|| (first.raw.clone(), i + 1));
        };
        let mut end = i + 1;
        while end < i + 4
            && self.words[end - 1].mark == Mark::None
            && self.word(end).is_some_and(|w| w.shape == Shape::Plain)
        {
            end += 1;
        }
        for end in (i + 1..=end).rev() {
            let span = &self.words[i..end];
            if !span[span.len() - 1].is_content() || span.iter().any(|w| is_joint(&w.norm)) {
                continue;
            }
            let phrase = span.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
            // A word with a meaning of its own is a column only when that is exactly its name.
            if span.len() == 1 && (is_keyword(first) || is_asking(first) || self.is_row(first)) {
                match columns.iter().find(|c| c.name.eq_ignore_ascii_case(&phrase)) {
                    Some(column) => return Some((column.name.clone(), end)),
                    None => continue,
                }
            }
            if let ColumnMatch::One(name) = columns.resolve(&phrase, reach) {
                return Some((name, end));
            }
        }
        None
    }

    pub fn kind_of(&self, name: &str) -> Option<ColumnKind> {
        self.columns?.iter().find(|c| c.name == name).map(|c| c.kind)
    }

    /// The column of dates.
    pub fn date(&self) -> Option<String> {
        match self.columns {
            Some(columns) => date_column(columns).map(str::to_owned),
            None => Some("date".to_owned()),
        }
    }

    pub fn compute(&mut self, function: &str, column: &str) -> String {
        let computed = Computed {
            text: format!("{function}({column})"),
            column: match column {
                "" => function.to_owned(),
                column => format!("{function}_{column}"),
            },
        };
        let name = computed.column.clone();
        if !self.query.compute.contains(&computed) {
            self.query.compute.push(computed);
        }
        name
    }

    pub fn group_by(&mut self, grouped: Grouped) {
        if !self.query.group.contains(&grouped) {
            self.query.group.push(grouped);
        }
    }

    pub fn note(&mut self, note: String) {
        if !self.query.notes.contains(&note) {
            self.query.notes.push(note);
        }
    }
}

/// A word of the query language itself.
pub(super) fn is_keyword(word: &Word) -> bool {
    aggregate::function(word).is_some()
        || group::is_time_noun(&word.norm)
        || group::is_time_adjective(&word.norm)
        || rank::is_rank_word(&word.norm)
        || condition::leads(&word.norm)
        || condition::is_comparison(&word.norm)
}
