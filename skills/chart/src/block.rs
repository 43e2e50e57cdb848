//! The same chart as data, in a fenced block `chart`: who shows the text of the call can draw it so that it answers to the
//! pointer. kiso's page does (docs/page.md).

use crate::histogram::Bins;
use crate::request::{Kind, Request};
use crate::series::{Prepared, Series, X, format_x};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Bytes of the data of a block. Models read the text that it is part of, and a long text is cut, so it does not have the whole table;
/// the files show every point.
pub const MOST_BYTES: usize = 3_500;

/// The chart of these series, and how many of how many points of the axis it has.
pub fn of_series(prepared: &Prepared, request: &Request, x_name: &str) -> (Json, usize, usize) {
    let mut values: BTreeMap<AxisPosition, Vec<Option<f64>>> = BTreeMap::new();
    let count = prepared.series.len();
    for (at, series) in prepared.series.iter().enumerate() {
        for (nth, point) in series.points.iter().enumerate() {
            // Points of a cloud may share an x; each stays a point of its own.
            let twin = if request.kind == Kind::Scatter { nth * count + at } else { 0 };
            values.entry(AxisPosition(point.0, twin)).or_insert_with(|| vec![None; count])[at] = finite(point.1);
        }
    }
    let places: Vec<(f64, Vec<Option<f64>>)> = values.into_iter().map(|(place, values)| (place.0, values)).collect();
    let total = places.len();
    let mut most = total;
    loop {
        let kept = thinned(&places, most);
        let chart = drawn(prepared, request, x_name, &kept);
        let bytes = chart.to_string().len();
        // A few long names may be too much; then fewer points would not help.
        if bytes <= MOST_BYTES || most <= FEWEST {
            return (chart, kept.len(), total);
        }
        most = (most * MOST_BYTES / bytes).min(most - 1).max(FEWEST);
    }
}

/// Points that a chart keeps, however long what names them is.
const FEWEST: usize = 8;

fn drawn(prepared: &Prepared, request: &Request, x_name: &str, kept: &[(f64, Vec<Option<f64>>)]) -> Json {
    let x: Vec<Json> = kept.iter().map(|(at, _)| x_to_json(&prepared.x, *at)).collect();
    let series = prepared.series.iter().enumerate().map(|(at, Series { name, .. })| {
        let values: Vec<Json> = kept.iter().map(|(_, values)| number(values[at])).collect();
        json!({ "name": name, "values": values })
    });
    let kind = match request.kind {
        Kind::Bar => "bar",
        Kind::Scatter => "scatter",
        Kind::Line | Kind::Histogram => "line",
    };
    chart(kind, request, x_name, x, series.collect())
}

/// The chart of these bins: each is named by where it begins.
pub fn of_bins(bins: &Bins, x: &X, request: &Request, column: &str) -> Json {
    let names = (0..bins.counts.len()).map(|at| json!(format_x(x, bins.first + bins.width * at as f64)));
    let series = json!({ "name": "rows", "values": bins.counts });
    chart("bar", request, column, names.collect(), vec![series])
}

/// The block as fenced text.
pub fn fenced(title: &str, mut chart: Json) -> String {
    chart["title"] = json!(title);
    format!("```chart\n{chart}\n```")
}

fn chart(kind: &str, request: &Request, x_name: &str, x: Vec<Json>, series: Vec<Json>) -> Json {
    let mut chart = json!({ "type": kind, "title": "", "x_label": request.x_label.as_deref().unwrap_or(x_name) });
    if let Some(label) = &request.y_label {
        chart["y_label"] = json!(label);
    }
    (chart["x"], chart["series"]) = (json!(x), json!(series));
    chart
}

/// A position on the axis, and which of the points that share it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AxisPosition(f64, usize);

impl Eq for AxisPosition {}

impl PartialOrd for AxisPosition {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AxisPosition {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// At most `most` places: of each stretch those with the lowest and the highest value of the first series, so that peaks stay.
fn thinned(places: &[(f64, Vec<Option<f64>>)], most: usize) -> Vec<(f64, Vec<Option<f64>>)> {
    if places.len() <= most {
        return places.to_vec();
    }
    let stretch = places.len().div_ceil((most / 2).max(1));
    let mut kept = Vec::new();
    for stretch in places.chunks(stretch) {
        let value = |at: &usize| stretch[*at].1.iter().flatten().next().copied().unwrap_or_default();
        let by_value = |a: &usize, b: &usize| value(a).total_cmp(&value(b));
        let low = (0..stretch.len()).min_by(by_value).unwrap_or(0);
        let high = (0..stretch.len()).max_by(by_value).unwrap_or(0);
        kept.push(stretch[low.min(high)].clone());
        if low != high {
            kept.push(stretch[low.max(high)].clone());
        }
    }
    kept
}

fn x_to_json(x: &X, at: f64) -> Json {
    match x {
        X::Number => number(Some(at)),
        x => json!(format_x(x, at)),
    }
}

/// Six digits tell more than a pixel can show. A whole number has no decimal point.
fn number(value: Option<f64>) -> Json {
    let Some(value) = value else { return Json::Null };
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}
