//! A query, and its reader: values to compute, groups, conditions and order.

use std::collections::BTreeSet;

use kiso_plan::prompt::ColumnKind;

use crate::column::{ColumnMatch, Columns, Reach, date_column};
use crate::keyword::{TIMES, is_keyword};
use crate::word::{Punctuation, Word, WordShape, is_filler, is_joint, listed};

/// A value per group: `mean(rain_mm)` becomes the column `mean_rain_mm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComputedColumn {
    pub text: String,
    pub column: String,
}

/// A group of rows: `month(date)` becomes the column `month`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupKey {
    pub text: String,
    pub column: String,
    pub kind: ColumnKind,
}

impl GroupKey {
    /// Returns `month(date)`, if `function` is a time function.
    pub(crate) fn by_time(function: &str, column: &str) -> Option<GroupKey> {
        TIMES.iter().find(|(name, _)| *name == function).map(|(name, _)| GroupKey {
            text: format!("{name}({column})"),
            column: (*name).to_owned(),
            // A weekday is text; the other times are dates for a chart's axis.
            kind: if *name == "weekday" { ColumnKind::Text } else { ColumnKind::Date },
        })
    }
}

/// A parsed phrase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableQuery {
    pub compute: Vec<ComputedColumn>,
    pub group: Vec<GroupKey>,
    pub conditions: Vec<String>,
    /// Columns, each with whether the largest value comes first.
    pub order: Vec<(String, bool)>,
    pub limit: Option<u64>,
    /// Columns that are named without an aggregate.
    pub columns: Vec<String>,
    /// Assumptions, for the user.
    pub notes: Vec<String>,
    /// Problems, for the user.
    pub problems: Vec<String>,
    /// Indexes of words with content that nothing used.
    pub leftover: Vec<usize>,
    /// Whether a group was named by an adjective such as "monthly", which cannot be a column of a plain list.
    pub adjective: bool,
}

impl TableQuery {
    /// Whether only a query can answer this: naming columns is not enough.
    pub(crate) fn is_derived(&self) -> bool {
        !self.compute.is_empty()
            || !self.conditions.is_empty()
            || !self.order.is_empty()
            || self.limit.is_some()
            || self.adjective
    }

    /// A measure of how much was understood.
    pub(crate) fn weight(&self) -> usize {
        self.compute.len()
            + self.group.len()
            + self.conditions.len()
            + self.order.len()
            + usize::from(self.limit.is_some())
            + self.columns.len()
    }
}

/// The words of one phrase, and which of them are used.
pub(crate) struct QueryReader<'a> {
    pub words: &'a [Word],
    pub columns: Option<&'a Columns>,
    pub query: TableQuery,
    /// The keys of words for this table's rows.
    rows: &'a BTreeSet<String>,
    taken: Vec<bool>,
}

/// Whether a word asks for something without naming it.
pub(crate) fn is_asking(word: &Word) -> bool {
    const KEYS: &str = "\
        show find tell comput compute what which how select return se know fetch report look group grouped who pick \
        tak keep only filter much";
    listed(KEYS, &word.key)
}

/// Whether a word means the rows of any table.
pub(crate) fn is_row(word: &Word) -> bool {
    listed("row record entry item observation measurement cas tabl value valu", &word.key)
}

impl<'a> QueryReader<'a> {
    /// Creates a reader for `words`, all unused.
    pub(crate) fn new(words: &'a [Word], columns: Option<&'a Columns>, rows: &'a BTreeSet<String>) -> Self {
        Self { words, columns, query: TableQuery::default(), rows, taken: vec![false; words.len()] }
    }

    pub(crate) fn word(&self, i: usize) -> Option<&'a Word> {
        (i < self.words.len() && !self.taken[i]).then(|| &self.words[i])
    }

    pub(crate) fn is_row(&self, word: &Word) -> bool {
        is_row(word) || self.rows.contains(&word.key)
    }

    pub(crate) fn norm(&self, i: usize) -> &'a str {
        self.word(i).map_or("", |w| w.norm.as_str())
    }

    pub(crate) fn take(&mut self, from: usize, to: usize) {
        self.taken[from..to].fill(true);
    }

    /// Returns the next index from `i` on whose word is neither in `skipped` nor a filler.
    pub(crate) fn skip(&self, mut i: usize, skipped: &[&str]) -> usize {
        while let Some(word) = self.word(i)
            && word.shape == WordShape::Plain
            && (is_filler(&word.norm) || skipped.contains(&word.norm.as_str()))
        {
            i += 1;
        }
        i
    }

    /// The same to the left: returns the last index before `i`, if any.
    pub(crate) fn skip_back(&self, i: usize, skipped: &[&str]) -> Option<usize> {
        (0..i).rev().map_while(|j| self.word(j).map(|w| (j, w))).find_map(|(j, w)| {
            let skip = w.shape == WordShape::Plain && (is_filler(&w.norm) || skipped.contains(&w.norm.as_str()));
            (!skip).then_some(j)
        })
    }

    /// Returns the column that the longest run of words from `i` on means, and the index after it.
    pub(crate) fn column_at(&self, i: usize, reach: Reach) -> Option<(String, usize)> {
        let first = self.word(i)?;
        if !matches!(first.shape, WordShape::Plain | WordShape::Quoted) || !first.is_content() {
            return None;
        }
        let Some(columns) = self.columns else {
            let is_name = !is_keyword(first) && !is_asking(first) && !self.is_row(first);
            return is_name.then(|| (first.raw.clone(), i + 1));
        };
        let mut end = i + 1;
        while end < i + 4
            && self.words[end - 1].mark == Punctuation::None
            && self.word(end).is_some_and(|w| w.shape == WordShape::Plain)
        {
            end += 1;
        }
        for end in (i + 1..=end).rev() {
            let span = &self.words[i..end];
            if !span[span.len() - 1].is_content() || span.iter().any(|w| is_joint(&w.norm)) {
                continue;
            }
            let phrase = span.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
            // A word with its own meaning is only a column if that is exactly the column's name.
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

    pub(crate) fn kind_of(&self, name: &str) -> Option<ColumnKind> {
        self.columns?.iter().find(|c| c.name == name).map(|c| c.kind)
    }

    /// Returns the date column.
    pub(crate) fn date(&self) -> Option<String> {
        match self.columns {
            Some(columns) => date_column(columns).map(str::to_owned),
            None => Some("date".to_owned()),
        }
    }

    pub(crate) fn compute(&mut self, function: &str, column: &str) -> String {
        let computed = ComputedColumn {
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

    pub(crate) fn group_by(&mut self, grouped: GroupKey) {
        if !self.query.group.contains(&grouped) {
            self.query.group.push(grouped);
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        if !self.query.notes.contains(&note) {
            self.query.notes.push(note);
        }
    }
}
