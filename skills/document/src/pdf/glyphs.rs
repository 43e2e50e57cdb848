//! Collects the glyphs of a page with their places.

use hayro::hayro_interpret::font::{Glyph, GlyphRun};
use hayro::hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, TransformExt, interpret_page,
};
use hayro::hayro_syntax::page::Page;
use hayro::kurbo::{Affine, BezPath, Point, Rect, Shape};

use crate::limits;

/// A glyph whose place is turned so that its text runs to the right; y grows downwards.
#[derive(Debug, Clone)]
pub struct Placed {
    pub start: f32,
    pub end: f32,
    pub baseline: f32,
    pub size: f32,
    /// Quarter turns by which the page was turned.
    pub turn: u8,
    pub text: Text,
}

/// Most glyphs stand for one character.
#[derive(Debug, Clone)]
pub enum Text {
    One(char),
    Many(Box<str>),
}

impl Text {
    pub fn push_to(&self, text: &mut String) {
        match self {
            Self::One(c) => text.push(*c),
            Self::Many(more) => text.push_str(more),
        }
    }

    pub fn is_space(&self) -> bool {
        match self {
            Self::One(c) => c.is_whitespace(),
            Self::Many(more) => more.chars().all(char::is_whitespace),
        }
    }
}

/// Glyphs of a page, and how much else is on it.
#[derive(Debug, Default)]
pub struct Glyphs {
    pub glyphs: Vec<Placed>,
    /// Share of the page that pictures cover, overlaps counted twice.
    pub pictures: f64,
    /// Paths that are painted. A page of curves without text is a picture, too.
    pub paths: usize,
    /// Whether glyphs were left out because there are too many.
    pub cut: bool,
    area: f64,
}

/// Reads the glyphs of a page.
pub fn collect<'a>(page: &'a Page<'a>, cache: &InterpreterCache<'a>, settings: &InterpreterSettings) -> Glyphs {
    let (width, height) = page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let transform = page.initial_transform(true).to_kurbo();
    let mut context = Context::new(transform, bounds, cache, page.xref(), settings.clone());
    let mut found = Glyphs { area: bounds.area().max(1.0), ..Glyphs::default() };
    interpret_page(page, &mut context, &mut found);
    found
}

impl Glyphs {
    fn push(&mut self, text: Text, transform: Affine, advance: f32, vertical: bool) {
        if self.glyphs.len() >= limits::GLYPHS {
            self.cut = true;
            return;
        }
        let origin = transform * Point::ZERO;
        let end = transform * Point::new(f64::from(advance), 0.0);
        let along = transform * Point::new(1_000.0, 0.0) - origin;
        let across = transform * Point::new(0.0, 1_000.0) - origin;
        let size = across.hypot();
        if !(size.is_finite() && origin.x.is_finite() && origin.y.is_finite()) || size < 0.01 {
            return;
        }
        let mut turn = if along.x.abs() >= along.y.abs() {
            if along.x >= 0.0 { 0 } else { 2 }
        } else if along.y >= 0.0 {
            1
        } else {
            3
        };
        let mut length = end - origin;
        if vertical && turn == 0 {
            turn = 1;
            length = hayro::kurbo::Vec2::new(0.0, size);
        }
        let turned = |x: f64, y: f64| match turn {
            0 => (x, y),
            1 => (y, -x),
            2 => (-x, -y),
            _ => (-y, x),
        };
        let (start, baseline) = turned(origin.x, origin.y);
        let (mut length, _) = turned(length.x, length.y);
        if length < 0.05 * size {
            length = 0.4 * size;
        }
        self.glyphs.push(Placed {
            start: start as f32,
            end: (start + length) as f32,
            baseline: baseline as f32,
            size: size as f32,
            turn,
            text,
        });
    }
}

impl<'a> Device<'a> for Glyphs {
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.paths += 1;
    }

    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {}

    fn push_clip_path(&mut self, _: &ClipPath) {}

    fn push_clip_rect(&mut self, _: &Rect) {}

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        // Text that is filled and stroked comes twice; what is only stroked comes once, and both look the same here. Doubles are dropped
        // when words are made.
        let _ = mode;
        let vertical = matches!(run.writing_mode(), WritingMode::Vertical);
        for glyph in run.glyphs() {
            let text = match glyph.as_unicode() {
                Some(BfString::Char(c)) => clean(c),
                Some(BfString::String(more)) => Some(Text::Many(more.into_boxed_str())),
                None => char::from_u32(glyph.char_code()).filter(|c| ('!'..='~').contains(c)).map(Text::One),
            };
            let Some(text) = text else { continue };
            let advance = match &**glyph {
                // Fonts of drawing programs have no widths, and each glyph is placed on its own.
                Glyph::Outline(outline) => outline
                    .advance_width()
                    .filter(|advance| *advance > 0.0)
                    .or_else(|| Some(outline.outline().bounding_box().x1 as f32)),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            self.push(text, props.transform * glyph.transform(), advance.unwrap_or(500.0), vertical);
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        // Its space is counted in its own pixels.
        let size = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        let covered = props.transform.transform_rect_bbox(size).area();
        if covered.is_finite() {
            self.pictures += covered / self.area;
        }
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}

/// Spells out ligatures and drops characters that stand for nothing.
fn clean(c: char) -> Option<Text> {
    let many = |text: &str| Some(Text::Many(text.into()));
    match c {
        'ﬀ' => many("ff"),
        'ﬁ' => many("fi"),
        'ﬂ' => many("fl"),
        'ﬃ' => many("ffi"),
        'ﬄ' => many("ffl"),
        'ﬅ' | 'ﬆ' => many("st"),
        '\u{ad}' => Some(Text::One('-')),
        '\u{a0}' => Some(Text::One(' ')),
        // The bullets of Symbol and Wingdings.
        '\u{f0b7}' | '\u{f0a7}' | '\u{f076}' | '\u{f0d8}' | '\u{f06c}' => Some(Text::One('•')),
        '\u{feff}' | '\u{200b}' | '\u{fffd}' => None,
        c if c.is_control() && !c.is_whitespace() => None,
        c => Some(Text::One(c)),
    }
}
