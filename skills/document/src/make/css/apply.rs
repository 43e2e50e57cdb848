//! Declarations, applied to a style.

use std::rc::Rc;

use super::sheet::{Declaration, split, unquote};
use super::style::{Align, Display, Family, LineHeight, Marker, Side, Style, Transform, Vertical, White};
use super::value::{Length, color, length};

/// Custom properties of one element, and references from one to another.
const CUSTOM: usize = 200;
const REFERENCES: usize = 8;

/// Bytes of a value after its custom properties are filled in.
const VALUE_BYTES: usize = 4_096;

/// The largest font.
const LARGEST: f32 = 400.0;

/// Applies declarations in their order; those on which others depend come first.
pub fn apply(style: &mut Style, parent: &Style, declarations: &[&Declaration], fonts: &[String]) {
    for (name, value, _) in declarations.iter().filter(|(name, ..)| name.starts_with("--")) {
        let custom = Rc::make_mut(&mut style.custom);
        custom.retain(|(known, _)| known != name);
        if custom.len() < CUSTOM {
            custom.push((name.clone(), value.clone()));
        }
    }
    for is_first in [true, false] {
        for (name, value, _) in declarations {
            if matches!(name.as_str(), "font-size" | "font") == is_first && !name.starts_with("--") {
                let value = if value.contains("var(") { fill(value, style) } else { value.clone() };
                property(style, parent, (name, value.trim()), fonts);
            }
        }
    }
}

/// Replaces `var(--name, default)`.
fn fill(value: &str, style: &Style) -> String {
    let mut text = value.to_owned();
    for _ in 0..REFERENCES {
        let Some(start) = text.find("var(") else { break };
        let inner = &text[start + 4..];
        let mut depth = 0_usize;
        let end = inner.find(|c| {
            depth += usize::from(c == '(');
            let ends = c == ')' && depth == 0;
            depth -= usize::from(c == ')' && depth > 0);
            ends
        });
        let Some(end) = end else { break };
        let (name, default) = inner[..end].split_once(',').unwrap_or((&inner[..end], ""));
        let found = style.custom.iter().find(|(known, _)| known == name.trim());
        let new = found.map_or(default.trim(), |(_, value)| value.as_str()).to_owned();
        text.replace_range(start..=start + 4 + end, &new);
        if text.len() > VALUE_BYTES {
            return String::new();
        }
    }
    text
}

fn property(style: &mut Style, parent: &Style, (name, value): (&str, &str), fonts: &[String]) {
    let em = style.size;
    let word = value.to_ascii_lowercase();
    let word = word.as_str();
    if word == "inherit" {
        return inherit(style, parent, name);
    }
    let points = |text: &str| length(text, em).and_then(|length| length.resolve(0.0));
    match name {
        "color" => set(&mut style.color, color(value).flatten()),
        "background" | "background-color" => background(style, value),
        "font-size" => set(&mut style.size, font_size(word, parent.size).map(|size| size.clamp(0.5, LARGEST))),
        "font-weight" => style.is_bold = bold(word, style.is_bold),
        "font-style" => style.is_italic = matches!(word, "italic" | "oblique"),
        "font-family" => set(&mut style.family, family(value, fonts)),
        "font" => font(style, parent, value, fonts),
        "line-height" => set(&mut style.line_height, line_height(word, em)),
        "text-align" => set(&mut style.align, align(word)),
        "text-indent" => set(&mut style.indent, points(word)),
        "text-transform" => {
            style.transform = match word {
                "uppercase" => Transform::Upper,
                "lowercase" => Transform::Lower,
                "capitalize" => Transform::Capitalize,
                _ => Transform::None,
            }
        }
        "text-decoration" | "text-decoration-line" => {
            style.is_underlined = word.contains("underline") || (parent.is_underlined && word != "none");
            style.is_struck = word.contains("line-through") || (parent.is_struck && word != "none");
        }
        "letter-spacing" => style.letter_spacing = points(word).unwrap_or(0.0).clamp(-20.0, 100.0),
        "white-space" => {
            style.white = match word {
                "nowrap" => White::NoWrap,
                "pre" => White::Pre,
                "pre-wrap" | "break-spaces" => White::PreWrap,
                "pre-line" => White::PreLine,
                _ => White::Normal,
            }
        }
        "list-style" | "list-style-type" => set(&mut style.marker, word.split_whitespace().find_map(marker)),
        "border-collapse" => style.is_collapsed = word == "collapse",
        "border-spacing" => set(&mut style.spacing, word.split_whitespace().next().and_then(points)),
        "visibility" => style.is_hidden = matches!(word, "hidden" | "collapse"),
        "display" => set(&mut style.display, display(word)),
        "vertical-align" => {
            style.vertical = match word {
                "top" | "text-top" => Vertical::Top,
                "middle" => Vertical::Middle,
                "bottom" | "text-bottom" => Vertical::Bottom,
                "sub" => Vertical::Sub,
                "super" => Vertical::Super,
                _ => Vertical::Baseline,
            }
        }
        "border-radius" => set(&mut style.radius, word.split_whitespace().next().and_then(points)),
        "width" => set(&mut style.width, length(word, em)),
        "min-width" => set(&mut style.min_width, length(word, em)),
        "max-width" => style.max_width = length(word, em).unwrap_or(Length::Auto),
        "height" => set(&mut style.height, length(word, em)),
        "min-height" => set(&mut style.min_height, length(word, em)),
        "box-sizing" => style.is_border_box = word == "border-box",
        "float" => {
            style.float = match word {
                "left" => Side::Left,
                "right" => Side::Right,
                _ => Side::None,
            }
        }
        "clear" => style.clears = word != "none",
        "top" => set(&mut style.top, length(word, em)),
        "bottom" => set(&mut style.bottom, length(word, em)),
        "position" => style.is_fixed = word == "fixed",
        "page-break-before" | "break-before" => style.break_before = is_break(word),
        "page-break-after" | "break-after" => style.break_after = is_break(word),
        "page-break-inside" | "break-inside" => style.keeps_together = word.starts_with("avoid"),
        "content" => style.content = content(value).map(Rc::from),
        "margin" => sides(&mut style.margin, word, |text| length(text, em)),
        "padding" => sides(&mut style.padding, word, |text| length(text, em)),
        _ if name.starts_with("margin-") => side(&mut style.margin, &name[7..], length(word, em)),
        _ if name.starts_with("padding-") => side(&mut style.padding, &name[8..], length(word, em)),
        _ if name.starts_with("border") => super::border::border(style, &name[6..], value, em),
        _ => super::flex::flex(style, name, word, em),
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn inherit(style: &mut Style, parent: &Style, name: &str) {
    match name {
        "color" => style.color = parent.color,
        "background" | "background-color" => style.background = parent.background,
        "font-size" => style.size = parent.size,
        "font-weight" => style.is_bold = parent.is_bold,
        "font-family" => style.family = parent.family,
        "text-align" => style.align = parent.align,
        "border" => style.border = parent.border,
        "width" => style.width = parent.width,
        _ => {}
    }
}

fn background(style: &mut Style, value: &str) {
    if value.eq_ignore_ascii_case("none") {
        style.background = None;
        return;
    }
    // Of a gradient, the first colour.
    let inner = value.find("gradient(").map_or(value, |at| &value[at + 9..]);
    let parts = split(inner, ',').into_iter().flat_map(|part| split(part, ' '));
    if let Some(found) =
        parts.filter(|part| !part.is_empty()).find_map(|part| color(part.trim_end_matches(')')).or_else(|| color(part)))
    {
        style.background = found;
    }
}

fn font_size(word: &str, parent: f32) -> Option<f32> {
    Some(match word {
        "xx-small" => 6.75,
        "x-small" => 7.5,
        "small" => 9.75,
        "medium" => 12.0,
        "large" => 13.5,
        "x-large" => 18.0,
        "xx-large" => 24.0,
        "smaller" => parent / 1.2,
        "larger" => parent * 1.2,
        _ => length(word, parent)?.resolve(parent)?,
    })
}

fn bold(word: &str, current: bool) -> bool {
    match word {
        "bold" | "bolder" => true,
        "normal" | "lighter" => false,
        _ => word.parse::<f32>().map_or(current, |weight| weight >= 550.0),
    }
}

/// The first family of a list that is known; `fonts` are the names of those from files.
pub fn family(value: &str, fonts: &[String]) -> Option<Family> {
    value.split(',').find_map(|name| {
        let name = unquote(name).to_ascii_lowercase();
        if let Some(number) = fonts.iter().position(|known| *known == name) {
            return u8::try_from(number).ok().map(Family::File);
        }
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["mono", "courier", "consolas", "menlo", "fira code", "source code"]) {
            return Some(Family::Mono);
        }
        if has(&["sans", "arial", "helvetica", "verdana", "tahoma", "calibri", "roboto", "system-ui", "segoe", "inter"])
        {
            return Some(Family::Sans);
        }
        let serifs = [
            "serif",
            "times",
            "georgia",
            "garamond",
            "cambria",
            "palatino",
            "roman",
            "baskerville",
            "playfair",
            "book",
        ];
        has(&serifs).then_some(Family::Serif)
    })
}

/// `italic bold 12pt/1.4 Arial`.
fn font(style: &mut Style, parent: &Style, value: &str, fonts: &[String]) {
    style.is_bold = false;
    style.is_italic = false;
    let mut rest = value;
    while let Some((word, more)) = rest.split_once(char::is_whitespace) {
        let word = word.to_ascii_lowercase();
        rest = more.trim_start();
        let (size, height) = word.split_once('/').map_or((word.as_str(), None), |(size, height)| (size, Some(height)));
        match font_size(size, parent.size) {
            Some(size) if word.parse::<f32>().is_err() => {
                style.size = size.clamp(0.5, LARGEST);
                set(&mut style.line_height, height.and_then(|height| line_height(height, size)));
                set(&mut style.family, family(rest, fonts));
                return;
            }
            _ if matches!(word.as_str(), "italic" | "oblique") => style.is_italic = true,
            _ => style.is_bold = bold(&word, style.is_bold),
        }
    }
}

fn line_height(word: &str, em: f32) -> Option<LineHeight> {
    if word == "normal" {
        return Some(LineHeight::Factor(1.2));
    }
    if let Ok(factor) = word.parse::<f32>() {
        return factor.is_finite().then(|| LineHeight::Factor(factor.clamp(0.1, 20.0)));
    }
    let points = length(word, em)?.resolve(em)?;
    Some(LineHeight::Points(points.clamp(0.5, 2_000.0)))
}

fn align(word: &str) -> Option<Align> {
    match word {
        "left" | "start" => Some(Align::Left),
        "center" | "middle" | "-webkit-center" => Some(Align::Center),
        "right" | "end" => Some(Align::Right),
        "justify" => Some(Align::Justify),
        _ => None,
    }
}

fn marker(word: &str) -> Option<Marker> {
    Some(match word {
        "none" => Marker::None,
        "disc" => Marker::Disc,
        "circle" => Marker::Circle,
        "square" => Marker::Square,
        "decimal" | "decimal-leading-zero" => Marker::Decimal,
        "lower-alpha" | "lower-latin" => Marker::LowerAlpha,
        "upper-alpha" | "upper-latin" => Marker::UpperAlpha,
        "lower-roman" => Marker::LowerRoman,
        "upper-roman" => Marker::UpperRoman,
        _ => return None,
    })
}

fn display(word: &str) -> Option<Display> {
    Some(match word {
        "none" => Display::None,
        "inline" | "contents" => Display::Inline,
        "inline-block" | "inline-flex" | "inline-grid" | "inline-table" => Display::InlineBlock,
        "block" | "flow-root" => Display::Block,
        "list-item" => Display::ListItem,
        "flex" => Display::Flex,
        "grid" => Display::Grid,
        "table" => Display::Table,
        "table-row" => Display::Row,
        "table-row-group" | "table-header-group" | "table-footer-group" => Display::Rows,
        "table-cell" => Display::Cell,
        "table-caption" => Display::Caption,
        "table-column" | "table-column-group" => Display::Column,
        _ => return None,
    })
}

fn is_break(word: &str) -> bool {
    matches!(word, "always" | "page" | "left" | "right" | "recto" | "verso")
}

/// The text of `content`; `None` if there is none.
fn content(value: &str) -> Option<String> {
    if matches!(value, "none" | "normal") {
        return None;
    }
    let mut text = String::new();
    for part in split(value, ' ') {
        let inner = unquote(part);
        if inner.len() < part.len() {
            text.push_str(&unescape(inner));
        }
    }
    Some(text)
}

/// Replaces escapes such as `\2713`.
pub fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let mut code = String::new();
        while let Some(digit) = chars.next_if(|c| c.is_ascii_hexdigit() && code.len() < 6) {
            code.push(digit);
        }
        if code.is_empty() {
            out.extend(chars.next());
            continue;
        }
        chars.next_if(|c| *c == ' ');
        out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
    }
    out
}

pub fn sides<T: Copy>(fields: &mut [T; 4], value: &str, parse: impl Fn(&str) -> Option<T>) {
    let found: Option<Vec<T>> = split(value, ' ').into_iter().filter(|part| !part.is_empty()).map(parse).collect();
    match found.as_deref() {
        Some([all]) => *fields = [*all; 4],
        Some([vertical, horizontal]) => *fields = [*vertical, *horizontal, *vertical, *horizontal],
        Some([top, horizontal, bottom]) => *fields = [*top, *horizontal, *bottom, *horizontal],
        Some([top, right, bottom, left]) => *fields = [*top, *right, *bottom, *left],
        _ => {}
    }
}

pub fn side_number(name: &str) -> Option<usize> {
    ["top", "right", "bottom", "left"].iter().position(|side| *side == name).or(match name {
        "block-start" => Some(0),
        "inline-end" => Some(1),
        "block-end" => Some(2),
        "inline-start" => Some(3),
        _ => None,
    })
}

fn side(fields: &mut [Length; 4], name: &str, value: Option<Length>) {
    if let (Some(number), Some(value)) = (side_number(name), value) {
        fields[number] = value;
    }
}
