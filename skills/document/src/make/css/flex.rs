//! Boxes beside one another: `flex` and `grid`.

use std::rc::Rc;

use super::sheet::split;
use super::style::{Flex, Items, Justify, Style, Track};
use super::value::{Length, length};

/// Applies a declaration, if it is one of these.
pub fn flex(style: &mut Style, name: &str, word: &str, em: f32) {
    let points = |text: &str| length(text, em).and_then(|length| length.resolve(0.0)).map(|points| points.max(0.0));
    let flex = Rc::make_mut(&mut style.flex);
    match name {
        "flex-direction" => {
            flex.is_column = word.starts_with("column");
            flex.reversed = word.ends_with("reverse");
        }
        "flex-wrap" => flex.wraps = word != "nowrap",
        "flex-flow" => {
            flex.is_column = word.contains("column");
            flex.wraps = word.split_whitespace().any(|part| part == "wrap");
        }
        "justify-content" => {
            flex.justify = match word {
                "center" => Justify::Center,
                "flex-end" | "end" | "right" => Justify::End,
                "space-between" => Justify::Between,
                "space-around" | "space-evenly" => Justify::Around,
                _ => Justify::Start,
            }
        }
        "align-items" => {
            flex.items = match word {
                "center" => Items::Center,
                "flex-end" | "end" => Items::End,
                "flex-start" | "start" | "baseline" => Items::Start,
                _ => Items::Stretch,
            }
        }
        "gap" | "grid-gap" => {
            let mut parts = word.split_whitespace().filter_map(points);
            flex.row_gap = parts.next().unwrap_or(0.0);
            flex.gap = parts.next().unwrap_or(flex.row_gap);
        }
        "column-gap" | "grid-column-gap" => flex.gap = points(word).unwrap_or(0.0),
        "row-gap" | "grid-row-gap" => flex.row_gap = points(word).unwrap_or(0.0),
        "flex-grow" => flex.grow = word.parse().unwrap_or(0.0_f32).clamp(0.0, 1_000.0),
        "flex-basis" => flex.basis = length(word, em).unwrap_or(flex.basis),
        "flex" => flex_shorthand(flex, word, em),
        "grid-template-columns" => flex.tracks = Rc::new(tracks(word, em)),
        "grid-column" => {
            let parts: Vec<&str> = word.split('/').map(str::trim).collect();
            flex.span = match parts.as_slice() {
                [only] | [_, only] if only.starts_with("span") => only[4..].trim().parse().unwrap_or(1),
                ["1", "-1"] => usize::MAX,
                [first, last] => match (first.parse::<usize>(), last.parse::<usize>()) {
                    (Ok(first), Ok(last)) => last.saturating_sub(first).max(1),
                    _ => 1,
                },
                _ => 1,
            };
        }
        _ => {}
    }
}

fn flex_shorthand(flex: &mut Flex, word: &str, em: f32) {
    let parts: Vec<&str> = word.split_whitespace().collect();
    match parts.as_slice() {
        ["none"] => flex.grow = 0.0,
        ["auto"] => flex.grow = 1.0,
        [first, rest @ ..] => {
            flex.grow = first.parse().unwrap_or(0.0_f32).clamp(0.0, 1_000.0);
            let basis = rest.iter().rev().find(|part| part.parse::<f32>().is_err() || **part == "0" && rest.len() > 1);
            flex.basis = basis.and_then(|part| length(part, em)).unwrap_or(Length::Points(0.0));
        }
        [] => {}
    }
}

fn tracks(word: &str, em: f32) -> Vec<Track> {
    let mut found = Vec::new();
    for part in split(word, ' ').into_iter().filter(|part| !part.is_empty()) {
        let repeat =
            part.strip_prefix("repeat(").and_then(|rest| rest.strip_suffix(')')).and_then(|rest| rest.split_once(','));
        match repeat {
            Some((count, inner)) if !inner.contains("repeat(") => {
                // As many as fit are three on paper.
                let count = count.trim().parse::<usize>().unwrap_or(3);
                let inner = tracks(inner, em);
                (0..count.min(50)).for_each(|_| found.extend(&inner));
            }
            _ => found.push(track(part, em)),
        }
        found.truncate(100);
    }
    found
}

fn track(part: &str, em: f32) -> Track {
    if let Some(inner) = part.strip_prefix("minmax(").and_then(|rest| rest.strip_suffix(')')) {
        return track(inner.rsplit(',').next().unwrap_or_default().trim(), em);
    }
    if let Some(fraction) = part.strip_suffix("fr").and_then(|number| number.parse::<f32>().ok()) {
        return Track::Fraction(fraction.clamp(0.0, 1_000.0));
    }
    match length(part, em) {
        Some(Length::Auto) | None => Track::Auto,
        Some(length) => Track::Length(length),
    }
}
