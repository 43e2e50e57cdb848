//! Everything around the data: title, legend, axes, grid. Margins follow from the text that stands in them.

use crate::axis::{Axis, AxisLabels, LEADING, TICK, TURN};
use crate::font::Font;
use crate::scale::{Labels, Scale, Ticks};
use crate::scene::{Anchor, Color, Mark, Scene, Style, Weight};
use crate::theme::Palette;

/// Title, axes and legend around the data.
#[derive(Debug)]
pub struct Frame {
    pub title: String,
    /// Above the vertical axis.
    pub y_label: Option<String>,
    /// Below the horizontal axis.
    pub x_label: Option<String>,
    /// At the foot: where the data is from.
    pub source: String,
    /// Names of the series when there are several, and where each line ends (y; NaN where it has no end).
    pub legend: Vec<(String, f64)>,
    pub shape: Shape,
    pub x: Axis,
    /// Least and greatest y to show.
    pub y: (f64, f64),
    /// Whether y counts things, so that there are no ticks between integers.
    pub whole: bool,
}

/// The symbol of a series in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line, whose name may stand at its end.
    Line,
    Square,
    Dot,
}

/// Where the data goes.
#[derive(Debug)]
pub struct Area {
    pub left: f64,
    pub right: f64,
    pub y: Scale,
    /// Whether every name on the horizontal axis is written.
    pub complete: bool,
}

const EDGE: f64 = 28.0;
const TITLE: f64 = 20.0;
const LABEL: f64 = 13.0;
const SOURCE: f64 = 11.0;

/// The scene with everything but the data, and the area for that.
pub fn lay_out(frame: &Frame, size: (f64, f64), palette: &Palette, font: &Font) -> (Scene, Area) {
    let ends = end_labels(frame, size.0, font);
    let mut page = Page::new(frame, size, palette, font);
    page.head(ends.is_none());
    let room = ends.unwrap_or(0.0);
    let (area, labels, ticks) = page.area(room);
    if ends.is_some() {
        match spread(&frame.legend, &area.y) {
            Some(places) => page.ends(&places, area.right),
            None => {
                page = Page::new(frame, size, palette, font);
                page.head(true);
                let (area, labels, ticks) = page.area(0.0);
                page.axes(&area, &labels, &ticks);
                return (page.scene, area);
            }
        }
    }
    page.axes(&area, &labels, &ticks);
    (page.scene, area)
}

/// The width that names at the ends of lines need; none where a legend is better.
fn end_labels(frame: &Frame, width: f64, font: &Font) -> Option<f64> {
    if frame.shape != Shape::Line || frame.legend.len() < 2 || frame.legend.iter().any(|l| l.1.is_nan()) {
        return None;
    }
    let widest = frame.legend.iter().map(|(name, _)| font.width(name, LABEL, Weight::Bold)).fold(0.0, f64::max);
    (widest <= width * 0.2).then_some(widest + 12.0)
}

/// The middles of the names at line ends, apart from each other; none where they would stand too far off.
fn spread(legend: &[(String, f64)], y: &Scale) -> Option<Vec<f64>> {
    const APART: f64 = 17.0;
    const TOO_FAR: f64 = 22.0;
    let wanted: Vec<f64> = legend.iter().map(|(_, end)| y.project(*end)).collect();
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.clone();
    for _ in 0..50 {
        for pair in order.windows(2) {
            let gap = places[pair[1]] - places[pair[0]];
            if gap < APART {
                places[pair[0]] -= (APART - gap) / 2.0;
                places[pair[1]] += (APART - gap) / 2.0;
            }
        }
    }
    places.iter().zip(&wanted).all(|(p, w)| (p - w).abs() <= TOO_FAR).then_some(places)
}

struct Page<'a> {
    frame: &'a Frame,
    palette: &'a Palette,
    font: &'a Font,
    scene: Scene,
    /// The lowest pixel that the head takes.
    top: f64,
}

impl<'a> Page<'a> {
    fn new(frame: &'a Frame, (width, height): (f64, f64), palette: &'a Palette, font: &'a Font) -> Self {
        let title = frame.title.clone();
        let scene = Scene { width, height, background: palette.background, title, layers: Vec::new() };
        Self { frame, palette, font, scene, top: 16.0 }
    }

    fn style(&self, size: f64, fill: Color, anchor: Anchor) -> Style {
        Style { size, weight: Weight::Regular, fill, anchor }
    }

    fn head(&mut self, legend: bool) {
        let room = self.scene.width - 2.0 * EDGE;
        let size = if self.scene.width < 560.0 { TITLE - 3.0 } else { TITLE };
        let style = Style { weight: Weight::Bold, ..self.style(size, self.palette.text, Anchor::Start) };
        let mut marks = Vec::new();
        for text in self.font.wrapped(&self.frame.title, size, Weight::Bold, room, 2) {
            self.top += size * 1.3;
            marks.push(Mark::Text { x: EDGE, y: self.top, text, style, turn: 0.0 });
        }
        self.scene.add("title", marks);
        self.top += 4.0;
        if let Some(label) = &self.frame.y_label {
            self.top += 20.0;
            let text = self.font.fitted(label, LABEL, Weight::Regular, room);
            let style = self.style(LABEL, self.palette.muted, Anchor::Start);
            self.scene.add("y-label", vec![Mark::Text { x: EDGE, y: self.top, text, style, turn: 0.0 }]);
        }
        if legend && self.frame.legend.len() > 1 {
            self.legend(room);
        }
        self.top += 20.0;
    }

    fn legend(&mut self, room: f64) {
        let (mut swatches, mut names) = (Vec::new(), Vec::new());
        let swatch = if self.frame.shape == Shape::Line { 18.0 } else { 11.0 };
        let style = self.style(LABEL, self.palette.text, Anchor::Start);
        let mut x = EDGE;
        self.top += 24.0;
        for (i, (name, _)) in self.frame.legend.iter().enumerate() {
            let text = self.font.fitted(name, LABEL, Weight::Regular, 220.0);
            let width = swatch + 7.0 + self.font.width(&text, LABEL, Weight::Regular);
            if x > EDGE && x + width > EDGE + room {
                x = EDGE;
                self.top += 20.0;
            }
            let (fill, middle) = (self.palette.series[i], self.top - 4.5);
            swatches.push(match self.frame.shape {
                Shape::Line => Mark::Line { points: vec![(x, middle), (x + swatch, middle)], stroke: fill, width: 3.0 },
                Shape::Square => Mark::Rect { x, y: middle - 5.5, width: swatch, height: swatch, fill },
                Shape::Dot => Mark::Circle { x: x + 5.5, y: middle, radius: 5.0, fill, ring: None },
            });
            names.push(Mark::Text { x: x + swatch + 7.0, y: self.top, text, style, turn: 0.0 });
            x += width + 20.0;
        }
        self.scene.add("legend", swatches);
        self.scene.add("legend-names", names);
    }

    fn ends(&mut self, places: &[f64], right: f64) {
        let name = |(i, y): (usize, &f64)| {
            let style = Style { weight: Weight::Bold, ..self.style(LABEL, self.palette.label(i), Anchor::Start) };
            Mark::Text { x: right + 10.0, y: y + 4.5, text: self.frame.legend[i].0.clone(), style, turn: 0.0 }
        };
        let names = places.iter().enumerate().map(name).collect();
        self.scene.add("names", names);
    }

    /// Measures what stands around the data. `room` is what names need to the right.
    fn area(&self, room: f64) -> (Area, AxisLabels, (Ticks, Labels)) {
        let (width, height) = (self.scene.width, self.scene.height);
        let foot = self.foot();
        // The number of ticks may depend on a guess at the height; their places do not.
        let count = ((height - foot - 30.0 - self.top) / 68.0).clamp(2.0, 8.0) as usize;
        let (low, high) = self.frame.y;
        let mut ticks = Ticks::around(low, high, count);
        if self.frame.whole && ticks.step < 1.0 {
            ticks = Ticks::around(low, high.max(1.0), 1);
        }
        let labels = Labels::new(ticks.step, ticks.low().abs().max(ticks.high().abs()), true);
        let written = ticks.values.iter().map(|&v| self.font.width(&labels.label(v), TICK, Weight::Regular));
        let left = EDGE + written.fold(0.0, f64::max) + 10.0;
        let right = (width - EDGE - room).max(left + 20.0);
        let below = self.frame.x.labels(left, right, height * 0.28, self.font);
        // A turned label reaches to the left of its tick.
        let bottom = (height - foot - below.height).max(self.top + 20.0);
        let y = Scale { low: ticks.low(), high: ticks.high(), from: bottom, to: self.top };
        (Area { left, right, y, complete: below.complete }, below, (ticks, labels))
    }

    /// Pixels below the labels of the horizontal axis.
    fn foot(&self) -> f64 {
        let label = if self.frame.x_label.is_some() { 22.0 } else { 0.0 };
        18.0 + label + SOURCE + 14.0
    }

    fn axes(&mut self, area: &Area, below: &AxisLabels, (ticks, labels): &(Ticks, Labels)) {
        let Area { left, right, y, .. } = area;
        let zero = y.low < 0.0 && y.high > 0.0;
        let base = if zero {
            0.0
        } else if y.high <= 0.0 {
            y.high
        } else {
            y.low
        };
        let across = |value: f64, stroke: Color| {
            let y = (y.project(value) - 0.5).round() + 0.5;
            Mark::Line { points: vec![(*left, y), (*right, y)], stroke, width: 1.0 }
        };
        let grid = ticks.values.iter().filter(|&&v| v != base).map(|&v| across(v, self.palette.grid)).collect();
        self.scene.add("grid", grid);
        let style = self.style(TICK, self.palette.muted, Anchor::End);
        let value =
            |&v: &f64| Mark::Text { x: left - 10.0, y: y.project(v) + 4.0, text: labels.label(v), style, turn: 0.0 };
        self.scene.add("y-axis", ticks.values.iter().map(value).collect());
        self.scene.add("x-axis", self.below(area, below));
        let mut lines = vec![across(base, self.palette.axis)];
        if !matches!(self.frame.x, Axis::Slots { .. }) {
            let bottom = y.from.round();
            let tick = |l: &crate::axis::Label| Mark::Line {
                points: vec![(l.x, bottom), (l.x, bottom + 5.0)],
                stroke: self.palette.axis,
                width: 1.0,
            };
            lines.extend(below.labels.iter().map(tick));
        }
        self.scene.add("axis", lines);
        self.texts(area);
    }

    fn below(&self, area: &Area, below: &AxisLabels) -> Vec<Mark> {
        let mut marks = Vec::new();
        let top = area.y.from + 8.0 + TICK;
        for label in &below.labels {
            if below.turned {
                let style = self.style(TICK, self.palette.muted, Anchor::End);
                let (x, text) = (label.x + 4.0, label.lines[0].clone());
                // Names that would begin outside of the picture are cut there.
                let room = (x - 6.0) / TURN.to_radians().cos();
                let text = self.font.fitted(&text, TICK, Weight::Regular, room);
                marks.push(Mark::Text { x, y: top, text, style, turn: TURN });
                continue;
            }
            let style = self.style(TICK, self.palette.muted, Anchor::Middle);
            for (i, line) in label.lines.iter().enumerate() {
                let half = self.font.width(line, TICK, Weight::Regular) / 2.0;
                let x = label.x.min(self.scene.width - half - 4.0).max(half + 4.0);
                marks.push(Mark::Text { x, y: top + i as f64 * LEADING, text: line.clone(), style, turn: 0.0 });
            }
        }
        marks
    }

    /// The label of the horizontal axis and the source.
    fn texts(&mut self, area: &Area) {
        let bottom = self.scene.height - 18.0;
        if let Some(label) = &self.frame.x_label {
            let style = self.style(LABEL, self.palette.muted, Anchor::Middle);
            let text = self.font.fitted(label, LABEL, Weight::Regular, area.right - area.left);
            let x = (area.left + area.right) / 2.0;
            let mark = Mark::Text { x, y: bottom - SOURCE - 12.0, text, style, turn: 0.0 };
            self.scene.add("x-label", vec![mark]);
        }
        let style = self.style(SOURCE, self.palette.muted, Anchor::Start);
        let text = self.font.fitted(&self.frame.source, SOURCE, Weight::Regular, self.scene.width - 2.0 * EDGE);
        self.scene.add("source", vec![Mark::Text { x: EDGE, y: bottom, text, style, turn: 0.0 }]);
    }
}
