//! What the cells of a column could all be, by the rules of `skills/data/table`.

use super::date::{self, Order};
use super::number::{self, Style};
use crate::llm::prompt::{Column, ColumnKind};
use std::collections::{HashMap, HashSet};

/// Columns beyond this number are a file of another shape, such as an object whose keys are the data.
const MAX_COLUMNS: usize = 2_000;

/// Characters of a name that are shown. Nobody can ask for a column that is called more than that, and whoever looks for
/// one reads all names.
const MAX_NAME: usize = 200;

/// A value as a file writes it.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Missing,
    /// Text that may turn out to be a number or a date, in JSON too.
    Written(&'a str),
    /// A JSON number.
    Number,
}

/// Names and kinds of columns, and how many rows told them.
#[derive(Debug, Default)]
pub struct Survey {
    names: Vec<String>,
    index: HashMap<String, usize>,
    guesses: Vec<Guess>,
    pub rows: usize,
}

impl Survey {
    /// The place of the column called `name`; a new one if need be.
    pub fn column(&mut self, name: &str) -> usize {
        if let Some(&i) = self.index.get(name) {
            return i;
        }
        if self.names.len() > MAX_COLUMNS {
            return MAX_COLUMNS;
        }
        self.names.push(name.to_owned());
        self.guesses.push(Guess::default());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub fn cell(&mut self, column: usize, cell: Cell<'_>) {
        if let Some(guess) = self.guesses.get_mut(column) {
            guess.observe(cell);
        }
    }

    pub fn end_row(&mut self) {
        self.rows += 1;
    }

    /// The columns, with long names cut; none if there are no or too many of them. `decimal_comma` says whether `3,14` may be a number.
    pub fn finish(self, decimal_comma: bool) -> Option<Vec<Column>> {
        if self.names.is_empty() || self.names.len() > MAX_COLUMNS {
            return None;
        }
        let kinds = self.guesses.iter().map(|guess| guess.decide(decimal_comma));
        let names = distinct(self.names).into_iter().map(|name| match name.char_indices().nth(MAX_NAME) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name,
        });
        Some(names.zip(kinds).map(|(name, kind)| Column { name, kind }).collect())
    }
}

/// Distinct names: an empty one becomes "column_3", the second "temp" becomes "temp_2".
pub fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken = HashSet::new();
    // Where the search for a free number starts, so that a thousand equal names do not take a million looks.
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut distinct = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let base = if name.trim().is_empty() { format!("column_{}", i + 1) } else { name.trim().to_owned() };
        let mut name = base.clone();
        let mut n = next.get(&base).copied().unwrap_or(2);
        while !taken.insert(name.clone()) {
            name = format!("{base}_{n}");
            n += 1;
        }
        next.insert(base, n);
        distinct.push(name);
    }
    distinct
}

#[derive(Debug)]
struct Guess {
    /// Whether any cell was not empty, be it a word for "missing".
    written: bool,
    seen: bool,
    point: bool,
    comma: bool,
    comma_used: bool,
    month_first: bool,
    day_first: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            written: false,
            seen: false,
            point: true,
            comma: true,
            comma_used: false,
            month_first: true,
            day_first: true,
        }
    }
}

impl Guess {
    fn observe(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Missing => {}
            Cell::Number => {
                (self.written, self.seen) = (true, true);
                (self.comma, self.month_first, self.day_first) = (false, false, false);
            }
            Cell::Written(text) => {
                self.written |= !text.is_empty();
                if number::is_missing(text) {
                    return;
                }
                self.seen = true;
                self.point = self.point && number::is_number(text, Style::Point);
                if self.comma {
                    self.comma = number::is_number(text, Style::Comma);
                    self.comma_used |= text.contains(',');
                }
                self.month_first = self.month_first && date::is_date(text, Order::MonthFirst);
                self.day_first = self.day_first && date::is_date(text, Order::DayFirst);
            }
        }
    }

    /// The narrowest kind that all cells have; text for a column of empty cells, numbers where all say NaN.
    fn decide(&self, decimal_comma: bool) -> ColumnKind {
        match self {
            _ if !self.seen && !self.written => ColumnKind::Text,
            _ if self.comma && self.comma_used && decimal_comma => ColumnKind::Number,
            _ if self.point => ColumnKind::Number,
            _ if self.month_first || self.day_first => ColumnKind::Date,
            _ => ColumnKind::Text,
        }
    }
}
