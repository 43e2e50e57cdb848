use crate::cell::Cell;
use crate::column::{EXACT, Kind, plain_number};
use crate::date::{self, Order};
use crate::number::{self, Style};

/// How the cells of a column are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Number(Style),
    Integer,
    Date(Order),
    Text,
}

impl Reading {
    pub fn kind(self) -> Kind {
        match self {
            Self::Number(_) => Kind::Number,
            Self::Integer => Kind::Integer,
            Self::Date(_) => Kind::Date,
            Self::Text => Kind::Text,
        }
    }
}

/// The types that fit all cells so far.
#[derive(Debug)]
pub struct Guess {
    /// Bytes of all cells as text.
    pub bytes: usize,
    seen: bool,
    point: bool,
    comma: bool,
    comma_used: bool,
    integer: bool,
    month_first: bool,
    day_first: bool,
    slashes: bool,
    too_long: bool,
    /// The offset of the first time, and whether there are others.
    offset: Option<Option<i32>>,
    offsets: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            bytes: 0,
            seen: false,
            point: true,
            comma: true,
            comma_used: false,
            integer: true,
            month_first: true,
            day_first: true,
            slashes: false,
            too_long: false,
            offset: None,
            offsets: false,
        }
    }
}

impl Guess {
    pub fn observe(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Missing => {}
            Cell::Number(n) => {
                self.bytes += plain_number(n).len();
                self.seen = true;
                self.comma = false;
                self.integer &= n.fract() == 0.0 && n.abs() <= EXACT;
                (self.month_first, self.day_first) = (false, false);
            }
            Cell::Written(text) => {
                self.bytes += text.len();
                if number::is_missing(text) {
                    return;
                }
                self.seen = true;
                self.number(text);
                self.integer = self.integer && number::integer(text).is_some();
                self.date(text);
            }
        }
    }

    fn number(&mut self, text: &str) {
        if self.point && number::parse(text, Style::Point).is_none() {
            self.point = false;
            let digits = text.trim_start_matches(['-', '+']);
            self.too_long |=
                digits.len() > 15 && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        }
        if self.comma {
            self.comma = number::parse(text, Style::Comma).is_some();
            self.comma_used |= text.contains(',');
        }
    }

    fn date(&mut self, text: &str) {
        if !self.month_first && !self.day_first {
            return;
        }
        let offset = date::offset(text);
        self.offsets |= *self.offset.get_or_insert(offset) != offset;
        self.month_first = self.month_first && date::parse(text, Order::MonthFirst).is_some();
        self.day_first = self.day_first && date::parse(text, Order::DayFirst).is_some();
        self.slashes |=
            self.month_first != self.day_first || text.as_bytes().get(1..3).is_some_and(|b| b.contains(&b'/'));
    }

    /// Whether times of a column cannot be compared by their clocks.
    pub fn has_several_offsets(&self) -> bool {
        self.offsets
    }

    /// The narrowest kind that all cells have; text for a column of empty cells, numbers where all say NaN.
    pub fn decide(&self, decimal_comma: bool) -> Reading {
        match self {
            _ if !self.seen && self.bytes == 0 => Reading::Text,
            _ if self.comma && self.comma_used && decimal_comma => Reading::Number(Style::Comma),
            _ if self.point => Reading::Number(Style::Point),
            _ if self.integer => Reading::Integer,
            _ if self.month_first => Reading::Date(Order::MonthFirst),
            _ if self.day_first => Reading::Date(Order::DayFirst),
            _ => Reading::Text,
        }
    }

    /// A note for the user about an ambiguous reading.
    pub fn doubt(&self, reading: Reading) -> Option<&'static str> {
        match reading {
            Reading::Date(_) if self.slashes && self.month_first && self.day_first => {
                Some("dates such as 3/4/2024 were read as month/day/year")
            }
            Reading::Date(_) if self.offsets => {
                Some("has times with several offsets from UTC, and shows them all in UTC")
            }
            Reading::Text if self.too_long => {
                Some("holds integers above 2^53 beside other values and is kept as text, so that no digit is lost")
            }
            _ => None,
        }
    }
}
