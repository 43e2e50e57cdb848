//! The horizontal axis: a line of moments or numbers, or slots that bars and names stand in.

use crate::calendar;
use crate::font::Font;
use crate::scale::{Labels, Scale, Ticks, format_value};
use crate::scene::Weight;
use crate::series::{Series, X, format_x};
use table::date::{self, Civil, DAY, Precision};

/// Size of the labels at ticks.
pub const TICK: f64 = 12.0;
/// How far labels are turned that do not fit side by side, in degrees.
pub const TURN: f64 = 40.0;
/// Two lines of a label are this far apart.
pub const LEADING: f64 = 15.0;
/// Lines of a name that is broken between its words.
const LINES: usize = 3;

#[derive(Debug)]
pub enum Axis {
    Time {
        low: f64,
        high: f64,
        precision: Precision,
    },
    /// `whole`: there are only integers, so ticks stand on integers.
    Number {
        low: f64,
        high: f64,
        whole: bool,
    },
    Slots {
        count: usize,
        names: Names,
    },
}

/// The names of the slots.
#[derive(Debug)]
pub enum Names {
    Text(Vec<String>),
    /// Moments at one distance; keys are seconds, or months since year 0.
    Moments {
        first: i64,
        step: i64,
        months: bool,
        precision: Precision,
    },
    /// Integers at one distance.
    Integers {
        first: i64,
        step: i64,
    },
}

/// A label below the axis, at a pixel.
#[derive(Debug)]
pub struct Label {
    pub x: f64,
    pub lines: Vec<String>,
}

#[derive(Debug)]
pub struct AxisLabels {
    pub labels: Vec<Label>,
    pub turned: bool,
    /// Pixels that they take below the axis.
    pub height: f64,
    /// Whether each name has its label.
    pub complete: bool,
}

impl Axis {
    /// The pixel of a value; of a slot its middle.
    pub fn project(&self, value: f64, left: f64, right: f64) -> f64 {
        match self {
            Self::Time { low, high, .. } | Self::Number { low, high, .. } => {
                Scale { low: *low, high: *high, from: left, to: right }.project(value)
            }
            Self::Slots { count, .. } => left + (value + 0.5) * (right - left) / *count as f64,
        }
    }

    /// The axis of names, or of bars; turns the x of all points into slots. Moments and integers keep their distance,
    /// so that what is missing in between leaves a gap.
    pub fn of_slots(x: &X, series: &mut [Series]) -> Self {
        if let X::Names(names) = x {
            return Self::Slots { count: names.len(), names: Names::Text(names.clone()) };
        }
        let mut at: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.0).collect();
        at.sort_by(f64::total_cmp);
        at.dedup();
        let months = matches!(x, X::Time(_)) && at.iter().all(|&a| Civil::from_seconds(a).start(Precision::Month) == a);
        if let Some((first, step, count)) = regular(&at, months) {
            let slot = |a: f64| ((key(a, months) - first) / step) as f64;
            series.iter_mut().flat_map(|s| &mut s.points).for_each(|p| p.0 = slot(p.0));
            let names = match x {
                X::Time(precision) => Names::Moments { first, step, months, precision: *precision },
                _ => Names::Integers { first, step },
            };
            return Self::Slots { count, names };
        }
        let slot = |a: f64| at.partition_point(|&b| b < a) as f64;
        series.iter_mut().flat_map(|s| &mut s.points).for_each(|p| p.0 = slot(p.0));
        Self::Slots { count: at.len(), names: Names::Text(at.iter().map(|&a| format_x(x, a)).collect()) }
    }

    /// The labels for an axis between two pixels, `height` being what turned labels may take.
    pub fn labels(&self, left: f64, right: f64, height: f64, font: &Font) -> AxisLabels {
        let room = right - left;
        let at = |value: f64| self.project(value, left, right);
        match self {
            Self::Time { low, high, precision } => dated(calendar::ticks(*low, *high, room, *precision), at),
            Self::Number { low, high, whole } => {
                let most = if *whole { (high - low).max(1.0) } else { f64::INFINITY };
                let ticks = Ticks::within(*low, *high, (room / 90.0).max(2.0).min(most) as usize);
                // Without thousands below 10,000, so that years look like years.
                let labels = Labels::new(ticks.step, low.abs().max(high.abs()), true);
                plain(ticks.values.iter().map(|&v| (at(v), labels.label(v))))
            }
            Self::Slots { count, names } => {
                let step = room / *count as f64;
                match names {
                    Names::Text(names) => named(names, step, height, font, at),
                    Names::Integers { first, step: distance } => {
                        let last = first + distance * (*count as i64 - 1);
                        let written = |v: i64| if v.abs() < 10_000 { v.to_string() } else { format_value(v as f64) };
                        let widest = [*first, last].map(|v| font.width(&written(v), TICK, Weight::Regular));
                        let every = (widest[0].max(widest[1]) + 12.0) / step;
                        let each = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500]
                            .into_iter()
                            .find(|e| *e as f64 >= every)
                            .unwrap_or(1_000);
                        let chosen = (0..*count as i64).map(|i| (i, first + i * distance));
                        let chosen = chosen.filter(|(_, v)| v.rem_euclid(distance * each) == 0 || each == 1);
                        plain(chosen.map(|(i, v)| (at(i as f64), written(v))))
                    }
                    Names::Moments { first, step: distance, months, precision } => {
                        let low = moment(*first, *months);
                        let high = moment(first + distance * (*count as i64 - 1), *months);
                        let slot = |a: f64| {
                            let key = if *months { key(a, true) as f64 } else { a };
                            at((key - *first as f64) / *distance as f64)
                        };
                        let precision = if *months { (*precision).min(Precision::Month) } else { *precision };
                        dated(calendar::ticks(low, high, room - step, precision), slot)
                    }
                }
            }
        }
    }
}

/// First key, distance and number of slots, if the values are integers that leave not too many slots empty.
fn regular(at: &[f64], months: bool) -> Option<(i64, i64, usize)> {
    if at.iter().any(|a| a.fract() != 0.0 || a.abs() > 1e12) {
        return None;
    }
    let keys: Vec<i64> = at.iter().map(|&a| key(a, months)).collect();
    let step = keys.windows(2).fold(0, |g, w| gcd(g, w[1] - w[0])).max(1);
    let count = ((keys[keys.len() - 1] - keys[0]) / step) as usize + 1;
    (count <= at.len() * 3 + 12).then_some((keys[0], step, count))
}

fn key(at: f64, months: bool) -> i64 {
    if !months {
        return at as i64;
    }
    let civil = Civil::from_seconds(at);
    civil.year * 12 + i64::from(civil.month) - 1
}

fn moment(key: i64, months: bool) -> f64 {
    if months { date::days(key.div_euclid(12), key.rem_euclid(12) as u32 + 1, 1) as f64 * DAY } else { key as f64 }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

fn dated(ticks: Vec<calendar::Tick>, at: impl Fn(f64) -> f64) -> AxisLabels {
    let two = ticks.iter().any(|t| t.under.is_some());
    let label = |t: calendar::Tick| Label { x: at(t.at), lines: std::iter::once(t.label).chain(t.under).collect() };
    let height = if two { 8.0 + TICK + LEADING } else { 8.0 + TICK };
    AxisLabels { labels: ticks.into_iter().map(label).collect(), turned: false, height, complete: true }
}

fn plain(labels: impl Iterator<Item = (f64, String)>) -> AxisLabels {
    let labels = labels.map(|(x, text)| Label { x, lines: vec![text] }).collect();
    AxisLabels { labels, turned: false, height: 8.0 + TICK, complete: true }
}

/// Names side by side if they fit, else in up to three lines, else turned; turned ones are left out where there are too
/// many.
fn named(names: &[String], step: f64, height: f64, font: &Font, at: impl Fn(f64) -> f64) -> AxisLabels {
    let fits = |text: &str| font.width(text, TICK, Weight::Regular) <= step - 8.0;
    if names.iter().all(|n| fits(n)) {
        return plain(names.iter().enumerate().map(|(i, n)| (at(i as f64), n.clone())));
    }
    let wrapped: Vec<Vec<String>> =
        names.iter().map(|n| font.wrapped(n, TICK, Weight::Regular, step - 8.0, LINES)).collect();
    let whole = |lines: &[String], name: &str| lines.join(" ").split_whitespace().eq(name.split_whitespace());
    if wrapped.iter().zip(names).all(|(lines, name)| whole(lines, name)) {
        let lines = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        let labels = wrapped.into_iter().enumerate().map(|(i, lines)| Label { x: at(i as f64), lines }).collect();
        let height = 8.0 + TICK + LEADING * (lines - 1) as f64;
        return AxisLabels { labels, turned: false, height, complete: true };
    }
    let turn = TURN.to_radians();
    let every = ((TICK + 3.0) / turn.sin() / step).ceil().max(1.0) as usize;
    let room = (height / turn.sin()).min(220.0);
    let text = |n: &String| font.fitted(n, TICK, Weight::Regular, room);
    let shown = names.iter().enumerate().step_by(every);
    let labels: Vec<Label> = shown.map(|(i, n)| Label { x: at(i as f64), lines: vec![text(n)] }).collect();
    let longest = labels.iter().map(|l| font.width(&l.lines[0], TICK, Weight::Regular)).fold(0.0, f64::max);
    AxisLabels { labels, turned: true, height: longest * turn.sin() + TICK + 8.0, complete: every == 1 }
}
