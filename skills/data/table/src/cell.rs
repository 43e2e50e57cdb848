//! One reader, two listeners: [`Survey`] learns what a file holds, [`Fill`] keeps it.

use crate::column::{Column, EXACT, Kind, NO_INTEGER, Texts, Values, plain_number};
use crate::date::{self, Precision};
use crate::guess::{Guess, Reading};
use crate::{name, number};
use std::collections::HashMap;

/// A value in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Missing,
    Number(f64),
    Integer(i128),
    /// Seconds since 1970 and how much of the date is known.
    Date(f64, Precision),
    Text(&'a str),
}

/// A value as a file writes it.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Missing,
    /// Text that may turn out to be a number or a date, in JSON too: many interfaces quote their numbers.
    Written(&'a str),
    /// A JSON number.
    Number(f64),
}

/// Receives the cells of a file, row after row.
pub trait Sink {
    /// The place of the column called `name`; a new one if need be.
    fn column(&mut self, name: &str) -> usize;
    fn cell(&mut self, column: usize, cell: Cell<'_>);
    fn end_row(&mut self);
}

/// The first reading: names, kinds, sizes.
#[derive(Debug, Default)]
pub struct Survey {
    names: Vec<String>,
    index: HashMap<String, usize>,
    guesses: Vec<Guess>,
    rows: usize,
}

impl Survey {
    pub fn columns(&self) -> usize {
        self.names.len()
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names and kinds; `decimal_comma` says whether `3,14` may be a number.
    pub fn finish(self, decimal_comma: bool) -> Vec<(String, Kind)> {
        let kinds = self.guesses.iter().map(|guess| guess.decide(decimal_comma).kind());
        name::distinct(self.names).into_iter().zip(kinds).collect()
    }
}

impl Sink for Survey {
    fn column(&mut self, name: &str) -> usize {
        if let Some(&i) = self.index.get(name) {
            return i;
        }
        // Beyond the limit the file is refused; until then its keys must not fill the memory.
        if self.names.len() > crate::MAX_COLUMNS {
            return crate::MAX_COLUMNS;
        }
        self.names.push(name.to_owned());
        self.guesses.push(Guess::default());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) {
        if let Some(guess) = self.guesses.get_mut(column) {
            guess.observe(cell);
        }
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }
}

/// The second reading: columns of the size and kind that the survey found.
#[derive(Debug)]
pub struct Fill {
    names: Vec<String>,
    index: HashMap<String, usize>,
    columns: Vec<(Reading, Values)>,
    sizes: Vec<usize>,
    /// For each column, whether its times are made those of UTC.
    in_utc: Vec<bool>,
    expected: usize,
    rows: usize,
}

impl Fill {
    /// Decides on the kinds; `decimal_comma` says whether `3,14` may be a number.
    pub fn new(survey: Survey, decimal_comma: bool, notes: &mut Vec<String>) -> Self {
        let Survey { names, index, guesses, rows } = survey;
        let mut columns = Vec::with_capacity(names.len());
        for (name, guess) in names.iter().zip(&guesses) {
            let reading = guess.decide(decimal_comma);
            if let Some(doubt) = guess.doubt(reading) {
                notes.push(format!("{name}: {doubt}"));
            }
            let values = match reading {
                Reading::Number(_) => Values::Numbers(Vec::new()),
                Reading::Integer => Values::Integers(Vec::new()),
                Reading::Date(_) => Values::Dates(Vec::new(), Precision::Year),
                Reading::Text => Values::Text(Texts::default()),
            };
            columns.push((reading, values));
        }
        let sizes = guesses.iter().map(|g| g.bytes).collect();
        let in_utc = guesses.iter().map(Guess::has_several_offsets).collect();
        Self { names, index, columns, sizes, in_utc, expected: rows, rows: 0 }
    }

    /// Bytes that the columns will need.
    pub fn bytes(&self) -> usize {
        let size = |(column, bytes): (&(Reading, Values), &usize)| match column.0 {
            Reading::Text => bytes + self.expected * 4,
            Reading::Integer => self.expected * 16,
            _ => self.expected * 8,
        };
        self.columns.iter().zip(&self.sizes).map(size).sum()
    }

    /// Makes room for all rows at once: growing by doubling would need up to three times as much.
    pub fn reserve(&mut self) {
        for ((_, values), &bytes) in self.columns.iter_mut().zip(&self.sizes) {
            match values {
                Values::Numbers(v) | Values::Dates(v, _) => v.reserve_exact(self.expected),
                Values::Integers(v) => v.reserve_exact(self.expected),
                Values::Text(t) => *t = Texts::with_capacity(self.expected, bytes),
            }
        }
    }

    pub fn finish(self) -> (Vec<Column>, usize) {
        let names = name::distinct(self.names);
        let columns = names.into_iter().zip(self.columns).map(|(name, (_, values))| Column { name, values });
        (columns.collect(), self.rows)
    }
}

impl Sink for Fill {
    fn column(&mut self, name: &str) -> usize {
        self.index.get(name).copied().unwrap_or(usize::MAX)
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) {
        let Some((reading, values)) = self.columns.get_mut(column) else { return };
        let in_utc = self.in_utc.get(column).is_some_and(|in_utc| *in_utc);
        if length(values) > self.rows {
            // A JSON object that names a key twice: the last one counts, as in jq, Python and JavaScript.
            match values {
                Values::Numbers(v) | Values::Dates(v, _) => drop(v.pop()),
                Values::Integers(v) => drop(v.pop()),
                Values::Text(t) => t.pop(),
            }
        }
        match values {
            Values::Text(t) => match cell {
                Cell::Written(text) => t.push(text),
                Cell::Number(n) => t.push(&plain_number(n)),
                Cell::Missing => t.push(""),
            },
            Values::Numbers(v) => v.push(match (cell, *reading) {
                (Cell::Number(n), _) => n,
                (Cell::Written(text), Reading::Number(style)) => number::parse(text, style).unwrap_or(f64::NAN),
                _ => f64::NAN,
            }),
            Values::Integers(v) => v.push(match cell {
                Cell::Number(n) if n.fract() == 0.0 && n.abs() <= EXACT => n as i128,
                Cell::Written(text) => number::integer(text).unwrap_or(NO_INTEGER),
                _ => NO_INTEGER,
            }),
            Values::Dates(v, precision) => v.push(match (cell, *reading) {
                (Cell::Written(text), Reading::Date(order)) => match date::parse(text, order) {
                    Some((seconds, fineness)) => {
                        *precision = fineness.max(*precision);
                        let ahead = if in_utc { date::offset(text).unwrap_or(0) } else { 0 };
                        seconds - f64::from(ahead)
                    }
                    None => f64::NAN,
                },
                _ => f64::NAN,
            }),
        }
    }

    fn end_row(&mut self) {
        self.rows += 1;
        for (_, values) in &mut self.columns {
            if length(values) < self.rows {
                match values {
                    Values::Numbers(v) | Values::Dates(v, _) => v.push(f64::NAN),
                    Values::Integers(v) => v.push(NO_INTEGER),
                    Values::Text(t) => t.push(""),
                }
            }
        }
    }
}

fn length(values: &Values) -> usize {
    match values {
        Values::Numbers(v) | Values::Dates(v, _) => v.len(),
        Values::Integers(v) => v.len(),
        Values::Text(t) => t.len(),
    }
}
