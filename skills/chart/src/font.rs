//! The font of the PNG and of all measures: Inter, cut down to Latin, Greek and Cyrillic (see `font/`).

use crate::scene::Weight;
use ttf_parser::{Face, GlyphId};

static REGULAR: &[u8] = include_bytes!("../font/Inter-Regular.otf");
static BOLD: &[u8] = include_bytes!("../font/Inter-SemiBold.otf");

/// Both weights, parsed.
#[derive(Debug)]
pub struct Font {
    regular: Parsed,
    bold: Parsed,
}

struct Parsed(Face<'static>);

impl std::fmt::Debug for Parsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inter")
    }
}

impl Font {
    pub fn new() -> Self {
        let parsed = |bytes| Parsed(Face::parse(bytes, 0).expect("the embedded font is sound"));
        Self { regular: parsed(REGULAR), bold: parsed(BOLD) }
    }

    pub fn face(&self, weight: Weight) -> &Face<'static> {
        match weight {
            Weight::Regular => &self.regular.0,
            Weight::Bold => &self.bold.0,
        }
    }

    /// The glyphs of a text and where each starts, in pixels from the text's start.
    pub fn glyphs(&self, text: &str, size: f64, weight: Weight) -> Vec<(GlyphId, f64)> {
        let face = self.face(weight);
        let mut x = 0.0;
        let mut glyphs = Vec::new();
        for c in text.chars() {
            let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
            glyphs.push((glyph, x));
            x += advance(face, glyph) * size;
        }
        glyphs
    }

    /// How wide a text is in pixels. A letter that the font lacks counts as wide as it is high.
    pub fn width(&self, text: &str, size: f64, weight: Weight) -> f64 {
        let face = self.face(weight);
        text.chars().map(|c| face.glyph_index(c).map_or(1.0, |g| advance(face, g))).sum::<f64>() * size
    }

    /// The text, or as much of it as fits with an ellipsis.
    pub fn fitted(&self, text: &str, size: f64, weight: Weight, room: f64) -> String {
        if self.width(text, size, weight) <= room {
            return text.to_owned();
        }
        let mut kept = String::new();
        for c in text.chars() {
            kept.push(c);
            if self.width(&kept, size, weight) + size * 0.8 > room {
                kept.pop();
                break;
            }
        }
        kept.truncate(kept.trim_end_matches([' ', ',', '-']).len());
        kept + "…"
    }

    /// The text in at most `lines` lines, broken between words.
    pub fn wrapped(&self, text: &str, size: f64, weight: Weight, room: f64, lines: usize) -> Vec<String> {
        let mut wrapped: Vec<String> = Vec::new();
        let mut words = text.split_whitespace().peekable();
        let mut line = String::new();
        while let Some(word) = words.next() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if !line.is_empty() && self.width(&longer, size, weight) > room {
                if wrapped.len() + 1 == lines {
                    let rest = words.fold(longer, |all, word| all + " " + word);
                    wrapped.push(self.fitted(&rest, size, weight, room));
                    return wrapped;
                }
                wrapped.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        wrapped.push(self.fitted(&line, size, weight, room));
        wrapped
    }

    /// Whether every letter of a text can be drawn.
    pub fn covers(&self, text: &str) -> bool {
        text.chars().all(|c| self.regular.0.glyph_index(c).is_some())
    }
}

fn advance(face: &Face<'_>, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}
