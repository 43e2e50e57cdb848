//! Sizes of pages, and the texts in their margins.

use super::css::sheet::{Sheet, split, unquote};
use super::css::value::{Length, length};
use super::layout::{Layout, Line};
use crate::make::css::style::Style;
use std::rc::Rc;

/// Points of A4.
const A4: (f32, f32) = (595.28, 841.89);

/// The smallest room for text on a page.
const LEAST: f32 = 72.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    pub width: f32,
    pub height: f32,
    /// Top, right, bottom, left.
    pub margin: [f32; 4],
}

impl Paper {
    pub fn inner_width(&self) -> f32 {
        self.width - self.margin[1] - self.margin[3]
    }

    pub fn inner_height(&self) -> f32 {
        self.height - self.margin[0] - self.margin[2]
    }

    /// The coordinate of PDF for a place in the text of a page.
    pub fn from_top(&self, y: f32) -> f32 {
        self.height - self.margin[0] - y
    }
}

/// Six places above and below the text: left, center, right.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Texts {
    pub head: [String; 3],
    pub foot: [String; 3],
}

/// Stands for the number of the page and of pages in texts.
pub const PAGE: char = '\u{e000}';
pub const TOTAL: char = '\u{e001}';

/// A size of paper by its name.
pub fn named(name: &str) -> Option<(f32, f32)> {
    let name = name.trim().to_ascii_lowercase();
    let millimetres = |width: f32, height: f32| Some((width * 72.0 / 25.4, height * 72.0 / 25.4));
    match name.trim_end_matches("paper") {
        "a2" => millimetres(420.0, 594.0),
        "a3" => millimetres(297.0, 420.0),
        "a4" => Some(A4),
        "a5" => millimetres(148.0, 210.0),
        "a6" => millimetres(105.0, 148.0),
        "b4" => millimetres(250.0, 353.0),
        "b5" => millimetres(176.0, 250.0),
        "letter" => Some((612.0, 792.0)),
        "legal" => Some((612.0, 1_008.0)),
        "executive" => Some((522.0, 756.0)),
        "tabloid" | "ledger" => Some((792.0, 1_224.0)),
        _ => None,
    }
}

/// A length of an option, such as `2cm` or `10` in a unit.
pub fn points(text: &str, unit: &str) -> Option<f32> {
    let text = text.trim();
    let is_plain = text.parse::<f32>().is_ok();
    let with_unit = if is_plain { format!("{text}{unit}") } else { text.to_owned() };
    match length(&with_unit, 10.0) {
        Some(Length::Points(points)) => Some(points),
        _ => None,
    }
}

/// The paper after defaults, `@page`, and options, each over what is before it.
pub fn paper(
    sheet: &Sheet,
    default_margin: f32,
    size: Option<(f32, f32)>,
    landscape: bool,
    margin: [Option<f32>; 4],
) -> Paper {
    let mut paper = Paper { width: A4.0, height: A4.1, margin: [default_margin; 4] };
    for (name, value, _) in &sheet.page {
        match name.as_str() {
            "size" => page_size(&mut paper, value),
            "margin" => super::css::apply::sides(&mut paper.margin, value, |text| points(text, "")),
            _ => {
                let side = name.strip_prefix("margin-").and_then(super::css::apply::side_number);
                if let (Some(side), Some(value)) = (side, points(value, "")) {
                    paper.margin[side] = value;
                }
            }
        }
    }
    if let Some((width, height)) = size {
        let is_wide = paper.width > paper.height;
        (paper.width, paper.height) = if is_wide { (height, width) } else { (width, height) };
    }
    if landscape && paper.height > paper.width {
        (paper.width, paper.height) = (paper.height, paper.width);
    }
    paper.width = paper.width.clamp(LEAST * 2.0, 14_400.0);
    paper.height = paper.height.clamp(LEAST * 2.0, 14_400.0);
    for (side, value) in margin.into_iter().enumerate() {
        paper.margin[side] = value.unwrap_or(paper.margin[side]).max(0.0);
    }
    for (first, second, whole) in [(0, 2, paper.height), (1, 3, paper.width)] {
        let sum = paper.margin[first] + paper.margin[second];
        if sum > whole - LEAST {
            let part = (whole - LEAST) / sum;
            paper.margin[first] *= part;
            paper.margin[second] *= part;
        }
    }
    paper
}

fn page_size(paper: &mut Paper, value: &str) {
    let words: Vec<&str> = value.split_whitespace().collect();
    let lengths: Vec<f32> = words.iter().filter_map(|word| points(word, "")).collect();
    match lengths.as_slice() {
        [width, height] => (paper.width, paper.height) = (*width, *height),
        [side] => (paper.width, paper.height) = (*side, *side),
        _ => {}
    }
    for word in words {
        if let Some(size) = named(word) {
            (paper.width, paper.height) = size;
        }
    }
    let is_wide = paper.width > paper.height;
    if (value.contains("landscape") && !is_wide) || (value.contains("portrait") && is_wide) {
        (paper.width, paper.height) = (paper.height, paper.width);
    }
}

/// The texts that a style sheet puts into margins.
pub fn texts(sheet: &Sheet, texts: &mut Texts) {
    for (place, declarations) in &sheet.margins {
        let (row, column) = match place.as_str() {
            "top-left" | "top-left-corner" => (0, 0),
            "top-center" => (0, 1),
            "top-right" | "top-right-corner" => (0, 2),
            "bottom-left" | "bottom-left-corner" => (1, 0),
            "bottom-center" => (1, 1),
            "bottom-right" | "bottom-right-corner" => (1, 2),
            _ => continue,
        };
        let content = declarations.iter().find(|(name, ..)| name == "content");
        if let Some((_, value, _)) = content {
            let rows = if row == 0 { &mut texts.head } else { &mut texts.foot };
            rows[column] = margin_text(value);
        }
    }
}

/// Strings and counters.
fn margin_text(value: &str) -> String {
    let mut text = String::new();
    for part in split(value, ' ') {
        let compact: String = part.chars().filter(|c| !c.is_whitespace()).collect();
        if compact.starts_with("counter(pages") {
            text.push(TOTAL);
        } else if compact.starts_with("counter(page") {
            text.push(PAGE);
        } else if unquote(part).len() < part.len() {
            text.push_str(&super::css::apply::unescape(unquote(part)));
        }
    }
    text
}

/// For each page the lines in its margins.
pub fn margin_lines(
    layout: &mut Layout,
    texts: &Texts,
    paper: &Paper,
    count: usize,
    style: &Style,
) -> Vec<Vec<(Line, f32, f32)>> {
    let mut own = style.clone();
    own.size = 9.0_f32.min(style.size * 0.9);
    own.color = crate::make::css::value::Color(0x5a, 0x64, 0x6e);
    let own = Rc::new(own);
    let mut pages = Vec::new();
    for page in 1..=count {
        let mut lines = Vec::new();
        for (row, all) in [&texts.head, &texts.foot].into_iter().enumerate() {
            for (column, text) in all.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
                let text = text.replace(PAGE, &page.to_string()).replace(TOTAL, &count.to_string());
                let line = layout.plain_line(&text, &own);
                let x = match column {
                    0 => paper.margin[3],
                    1 => paper.margin[3] + (paper.inner_width() - line.width) / 2.0,
                    _ => paper.width - paper.margin[1] - line.width,
                };
                let y = match row {
                    0 => (paper.margin[0] * 0.5 - line.height / 2.0).max(4.0),
                    _ => paper.height - (paper.margin[2] * 0.5 + line.height / 2.0).max(line.height + 4.0),
                };
                lines.push((line, x, y));
            }
        }
        pages.push(lines);
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_is_set_up() {
        let mut sheet = Sheet::default();
        sheet.parse("@page { size: A5 landscape; margin: 1cm 20mm; @bottom-right { content: 'Page ' counter(page) ' of ' counter(pages) } }");
        let found = paper(&sheet, 50.0, None, false, [Some(10.0), None, None, None]);
        assert!(found.width > found.height && (found.width - 595.28).abs() < 0.1, "{found:?}");
        assert_eq!(found.margin[0], 10.0);
        assert!((found.margin[1] - 56.69).abs() < 0.1);
        let mut six = Texts::default();
        texts(&sheet, &mut six);
        assert_eq!(six.foot[2], "Page \u{e000} of \u{e001}");
        let narrow = paper(&Sheet::default(), 50.0, Some((10.0, 10.0)), false, [Some(1e9); 4]);
        assert!(narrow.inner_width() >= 71.0 && narrow.inner_height() >= 71.0);
        assert_eq!(points("10", "mm").map(f32::round), Some(28.0));
        assert_eq!(points("x", "mm"), None);
    }
}
