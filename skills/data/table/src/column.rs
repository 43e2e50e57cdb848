use crate::cell::Value;
use crate::date::{self, Precision};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    /// Integers of which some are above 2^53: identifiers, mostly.
    Integer,
    Date,
    Text,
}

impl Kind {
    /// The kind with its article, for messages: "a number".
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Date => "a date",
            Self::Text => "text",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Date => "date",
            Self::Text => "text",
        }
    }
}

/// A name and its values.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub values: Values,
}

/// The values of a column. A missing one is NaN, or an empty text.
#[derive(Debug, Clone)]
pub enum Values {
    Numbers(Vec<f64>),
    /// Integers that a float does not hold; [`NO_INTEGER`] is missing.
    Integers(Vec<i128>),
    /// Seconds since 1970, and the finest part that any of them tells.
    Dates(Vec<f64>, Precision),
    Text(Texts),
}

/// In the place of an integer that is missing.
pub const NO_INTEGER: i128 = i128::MIN;

/// Texts in one block of memory: a table has many, most of them short.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    bytes: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Room for `rows` texts of `bytes` together.
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self { bytes: String::with_capacity(bytes), ends: Vec::with_capacity(rows) }
    }

    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a table's budget is below 4 GiB"));
    }

    pub fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    /// Takes the last text away.
    pub fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|t| all.push(t));
        all
    }
}

impl Column {
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values: Values::Numbers(values) }
    }

    pub fn kind(&self) -> Kind {
        match self.values {
            Values::Numbers(_) => Kind::Number,
            Values::Integers(_) => Kind::Integer,
            Values::Dates(..) => Kind::Date,
            Values::Text(_) => Kind::Text,
        }
    }

    pub fn value(&self, row: usize) -> Value<'_> {
        match &self.values {
            Values::Numbers(v) if v[row].is_nan() => Value::Missing,
            Values::Dates(v, _) if v[row].is_nan() => Value::Missing,
            Values::Integers(v) if v[row] == NO_INTEGER => Value::Missing,
            Values::Numbers(v) => Value::Number(v[row]),
            Values::Integers(v) => Value::Integer(v[row]),
            Values::Dates(v, precision) => Value::Date(v[row], *precision),
            Values::Text(t) => match t.get(row) {
                "" => Value::Missing,
                text => Value::Text(text),
            },
        }
    }

    /// The number or the seconds of a date; NaN where it is missing or text. A long integer is rounded.
    pub fn number(&self, row: usize) -> f64 {
        match &self.values {
            Values::Numbers(v) | Values::Dates(v, _) => v[row],
            Values::Integers(v) if v[row] == NO_INTEGER => f64::NAN,
            Values::Integers(v) => v[row] as f64,
            Values::Text(_) => f64::NAN,
        }
    }

    /// The integer in a row, if it is one.
    pub fn integer(&self, row: usize) -> Option<i128> {
        match &self.values {
            Values::Integers(v) => Some(v[row]).filter(|n| *n != NO_INTEGER),
            Values::Numbers(v) => Some(v[row]).filter(|n| n.fract() == 0.0 && n.abs() <= EXACT).map(|n| n as i128),
            Values::Dates(..) | Values::Text(_) => None,
        }
    }

    /// The column with integers as text: where they are names, and nothing is measured with them.
    pub fn with_integers_as_text(self) -> Self {
        let Values::Integers(integers) = &self.values else { return self };
        let mut texts = Texts::default();
        for row in 0..integers.len() {
            texts.push(&self.value(row).plain());
        }
        Self { name: self.name, values: Values::Text(texts) }
    }

    /// The column with these rows, in this order.
    pub fn take(&self, rows: &[u32]) -> Self {
        let floats = |v: &[f64]| rows.iter().map(|&r| v[r as usize]).collect();
        let values = match &self.values {
            Values::Numbers(v) => Values::Numbers(floats(v)),
            Values::Integers(v) => Values::Integers(rows.iter().map(|&r| v[r as usize]).collect()),
            Values::Dates(v, precision) => Values::Dates(floats(v), *precision),
            Values::Text(t) => {
                let bytes = rows.iter().map(|&r| t.get(r as usize).len()).sum();
                let mut taken = Texts::with_capacity(rows.len(), bytes);
                rows.iter().for_each(|&r| taken.push(t.get(r as usize)));
                Values::Text(taken)
            }
        };
        Self { name: self.name.clone(), values }
    }
}

impl Value<'_> {
    /// The value as a file holds it: shortest exact number, ISO date, empty when missing.
    pub fn plain(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Number(n) => plain_number(*n),
            Self::Integer(n) => n.to_string(),
            Self::Date(seconds, precision) => date::format(*seconds, *precision, 'T'),
            Self::Text(text) => (*text).to_owned(),
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

/// Up to here a float holds every integer: 2^53.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// The shortest digits that read back as `n`; an exponent only where there would be many zeros.
pub fn plain_number(n: f64) -> String {
    let size = n.abs();
    if size >= 1e16 || (size > 0.0 && size < 1e-7) { format!("{n:e}") } else { format!("{n}") }
}
