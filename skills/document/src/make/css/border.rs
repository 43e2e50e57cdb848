//! Borders.

use super::apply::{side_number, sides};
use super::sheet::split;
use super::style::{Border, Line, Style};
use super::value::{Color, PX, color, length};

/// Applies `border`, `border-top`, `border-left-width` and the others; `rest` is the name without `border`.
pub fn border(style: &mut Style, rest: &str, value: &str, em: f32) {
    let rest = rest.trim_start_matches('-');
    let (place, part) = match rest {
        "" | "width" | "style" | "color" => ("", rest),
        _ => rest.split_once('-').unwrap_or((rest, "")),
    };
    let numbers: Vec<usize> =
        if place.is_empty() { (0..4).collect() } else { side_number(place).into_iter().collect() };
    if part.is_empty() {
        let new = parse_border(value, em);
        numbers.into_iter().for_each(|number| style.border[number] = new);
        return;
    }
    let mut parts = style.border;
    match part {
        "width" => sides(&mut parts, value, |text| Some(Border { width: border_width(text, em)?, ..Border::NONE })),
        "style" => sides(&mut parts, value, |text| Some(Border { line: line(text)?, ..Border::NONE })),
        "color" => sides(&mut parts, value, |text| Some(Border { color: color(text)?, ..Border::NONE })),
        _ => return,
    }
    for number in numbers {
        let field = &mut style.border[number];
        match part {
            "width" => field.width = parts[number].width,
            "style" => field.line = parts[number].line,
            _ => field.color = parts[number].color,
        }
    }
}

fn parse_border(value: &str, em: f32) -> Border {
    let mut border = Border::NONE;
    for part in split(value, ' ').into_iter().filter(|part| !part.is_empty()) {
        if let Some(width) = border_width(part, em) {
            border.width = width;
        } else if let Some(found) = line(part) {
            border.line = found;
        } else if let Some(found) = color(part) {
            border.color = found;
            if found.is_none() {
                border.color = Some(Color(255, 255, 255));
            }
        }
    }
    border
}

fn border_width(text: &str, em: f32) -> Option<f32> {
    match text {
        "thin" => Some(PX),
        "medium" => Some(3.0 * PX),
        "thick" => Some(5.0 * PX),
        _ => length(text, em)?.resolve(0.0).map(|width| width.clamp(0.0, 100.0)),
    }
}

fn line(text: &str) -> Option<Option<Line>> {
    Some(match text.to_ascii_lowercase().as_str() {
        "none" | "hidden" => None,
        "solid" | "inset" | "outset" | "groove" | "ridge" => Some(Line::Solid),
        "dashed" => Some(Line::Dashed),
        "dotted" => Some(Line::Dotted),
        "double" => Some(Line::Double),
        _ => return None,
    })
}
