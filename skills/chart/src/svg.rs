//! The scene as SVG that a person can read and edit: one group per layer, text as text.

use crate::scene::{Anchor, Color, Mark, Scene, Weight};
use std::fmt::Write;

const FONTS: &str = "Inter, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";

/// An element: its name, where it is, how it looks, and its text.
struct Element<'a> {
    tag: &'static str,
    place: String,
    look: Vec<(&'static str, String)>,
    text: Option<&'a str>,
}

/// The scene as a document.
pub fn svg(scene: &Scene) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{FONTS}\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        escaped(&scene.title),
        hex(scene.background)
    );
    for layer in &scene.layers {
        let elements: Vec<Element<'_>> = layer.marks.iter().map(element).collect();
        let shared = shared(&elements);
        let _ = writeln!(out, "<g class=\"{}\"{}>", layer.name, attributes(shared.iter()));
        for element in &elements {
            let own = element.look.iter().filter(|look| !shared.contains(look));
            let _ = write!(out, "  <{}{}{}", element.tag, element.place, attributes(own));
            match element.text {
                Some(text) => {
                    let _ = writeln!(out, ">{}</{}>", escaped(text), element.tag);
                }
                None => out.push_str("/>\n"),
            }
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Returns the attributes that all elements of a layer share; they are written once, on the group.
fn shared(elements: &[Element<'_>]) -> Vec<(&'static str, String)> {
    let Some(first) = elements.first() else { return Vec::new() };
    first.look.iter().filter(|look| elements.iter().all(|e| e.look.contains(look))).cloned().collect()
}

fn attributes<'a>(look: impl Iterator<Item = &'a (&'static str, String)>) -> String {
    look.fold(String::new(), |all, (name, value)| format!("{all} {name}=\"{value}\""))
}

fn element(mark: &Mark) -> Element<'_> {
    match mark {
        Mark::Rect { x, y, width, height, fill } => Element {
            tag: "rect",
            place: place(&[("x", *x), ("y", *y), ("width", *width), ("height", *height)]),
            look: paint("fill", *fill),
            text: None,
        },
        Mark::Line { points, stroke, width } => {
            let mut look = vec![("fill", "none".to_owned())];
            look.extend(paint("stroke", *stroke));
            look.push(("stroke-width", number(*width)));
            if let [(x1, y1), (x2, y2)] = points.as_slice() {
                let place = place(&[("x1", *x1), ("y1", *y1), ("x2", *x2), ("y2", *y2)]);
                return Element { tag: "line", place, look: look.split_off(1), text: None };
            }
            look.push(("stroke-linejoin", "round".to_owned()));
            look.push(("stroke-linecap", "round".to_owned()));
            let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
            Element { tag: "polyline", place: format!(" points=\"{}\"", points.join(" ")), look, text: None }
        }
        Mark::Circle { x, y, radius, fill, ring } => {
            let mut look = vec![("r", number(*radius))];
            look.extend(paint("fill", *fill));
            if let Some(ring) = ring {
                look.extend(paint("stroke", *ring));
                look.push(("stroke-width", "1.5".to_owned()));
            }
            Element { tag: "circle", place: place(&[("cx", *x), ("cy", *y)]), look, text: None }
        }
        Mark::Text { x, y, text, style, turn } => {
            let mut place = place(&[("x", *x), ("y", *y)]);
            if *turn != 0.0 {
                place = format!(" transform=\"translate({} {}) rotate({})\"", number(*x), number(*y), number(-turn));
            }
            let mut look = vec![("font-size", number(style.size))];
            look.extend(paint("fill", style.fill));
            if style.weight == Weight::Bold {
                look.push(("font-weight", "600".to_owned()));
            }
            match style.anchor {
                Anchor::Start => {}
                Anchor::Middle => look.push(("text-anchor", "middle".to_owned())),
                Anchor::End => look.push(("text-anchor", "end".to_owned())),
            }
            Element { tag: "text", place, look, text: Some(text) }
        }
    }
}

fn place(pairs: &[(&str, f64)]) -> String {
    pairs.iter().fold(String::new(), |all, (name, value)| format!("{all} {name}=\"{}\"", number(*value)))
}

fn paint(what: &'static str, color: Color) -> Vec<(&'static str, String)> {
    let mut look = vec![(what, hex(color))];
    if color.alpha < 1.0 {
        look.push((if what == "fill" { "fill-opacity" } else { "stroke-opacity" }, number(color.alpha)));
    }
    look
}

fn hex(color: Color) -> String {
    format!("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue)
}

/// At most two decimals, none where they are zero.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// For text and attributes; characters that XML 1.0 does not allow become the replacement character.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c < ' ' || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
