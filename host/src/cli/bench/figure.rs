//! One measured figure, as a row of a table and as a line of JSON.

use kiso_base::json;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureUnit {
    Bytes,
    Nanoseconds,
}

impl FigureUnit {
    fn name(self) -> &'static str {
        match self {
            FigureUnit::Bytes => "bytes",
            FigureUnit::Nanoseconds => "ns",
        }
    }

    fn show(self, number: u64) -> String {
        let number = number as f64;
        match self {
            FigureUnit::Bytes => format!("{:.1} MB", number / 1e6),
            FigureUnit::Nanoseconds if number < 1e6 => format!("{:.0} µs", number / 1e3),
            FigureUnit::Nanoseconds if number < 1e9 => format!("{:.1} ms", number / 1e6),
            FigureUnit::Nanoseconds => format!("{:.2} s", number / 1e9),
        }
    }
}

#[derive(Debug)]
pub(super) struct Figure {
    /// Identifies the figure of another machine.
    name: &'static str,
    what: &'static str,
    unit: FigureUnit,
    minimum: u64,
    median: u64,
}

impl Figure {
    /// Returns a figure that is measured once.
    pub(super) fn bytes(name: &'static str, what: &'static str, bytes: u64) -> Self {
        Self { name, what, unit: FigureUnit::Bytes, minimum: bytes, median: bytes }
    }

    /// Returns a figure that is measured at least once.
    pub(super) fn times(name: &'static str, what: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (minimum, median) = (nanos(times[0]), nanos(times[times.len() / 2]));
        Self { name, what, unit: FigureUnit::Nanoseconds, minimum, median }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::json!({
            "type": "figure", "name": self.name, "what": self.what, "unit": self.unit.name(),
            "minimum": self.minimum, "median": self.median,
        })
    }

    /// Parses name and median from such a line of JSON.
    pub(super) fn parse_median(line: &str) -> Option<(String, u64)> {
        let value: Value = json::parse(line.as_bytes()).ok()?;
        let is_figure = value["type"] == "figure";
        is_figure.then(|| Some((value["name"].as_str()?.to_owned(), value["median"].as_u64()?))).flatten()
    }

    pub(super) fn print(&self, against: &HashMap<String, u64>) {
        let (minimum, median) = (self.unit.show(self.minimum), self.unit.show(self.median));
        let minimum = if self.unit == FigureUnit::Bytes { String::new() } else { minimum };
        if against.is_empty() {
            return outln!("| {} | {minimum} | {median} |", self.what);
        }
        let ratio = against.get(self.name).filter(|other| **other > 0);
        let ratio = ratio.map(|other| format!("{:.2} ×", self.median as f64 / *other as f64)).unwrap_or_default();
        outln!("| {} | {minimum} | {median} | {ratio} |", self.what);
    }
}

/// Prints the head of the table, in Markdown.
pub(super) fn print_heading(against: &HashMap<String, u64>) {
    match against.is_empty() {
        true => outln!("| what | minimum | median |\n|---|---|---|"),
        false => outln!("| what | minimum | median | against the other |\n|---|---|---|---|"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_another_machine_reads() {
        let times = [30, 10, 20].map(Duration::from_micros).to_vec();
        let figure = Figure::times("start", "start and end", times);
        assert_eq!(Figure::parse_median(&figure.json().to_string()), Some(("start".to_owned(), 20_000)));
        assert_eq!(Figure::parse_median(r#"{"type":"error","message":"no"}"#), None);
        assert_eq!(Figure::parse_median("not JSON"), None);
    }
}
