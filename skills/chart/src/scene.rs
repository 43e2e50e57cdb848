//! The marks of a picture, so that both back ends draw the same marks in the same places.
//!
//! Coordinates are pixels of the SVG, y grows downwards.

/// A colour with its opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Color {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
    /// From 0 to 1.
    pub alpha: f64,
}

impl Color {
    /// An opaque colour from 0xRRGGBB.
    pub const fn hex(rgb: u32) -> Self {
        Self { red: (rgb >> 16) as u8, green: (rgb >> 8) as u8, blue: rgb as u8, alpha: 1.0 }
    }

    pub const fn with_alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// A share of `other` mixed in.
    pub fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - share) + f64::from(b) * share).round() as u8;
        let (red, green, blue) = (mix(self.red, other.red), mix(self.green, other.green), mix(self.blue, other.blue));
        Self { red, green, blue, alpha: self.alpha }
    }
}

/// Which point of a text stands at its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    Regular,
    Bold,
}

/// How a text looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub size: f64,
    pub weight: Weight,
    pub fill: Color,
    pub anchor: Anchor,
}

#[derive(Debug, Clone)]
pub enum Mark {
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        fill: Color,
    },
    /// An open line with round joins.
    Line {
        points: Vec<(f64, f64)>,
        stroke: Color,
        width: f64,
    },
    /// A disc; `ring` is the colour of a line around it that sets it apart from what lies below.
    Circle {
        x: f64,
        y: f64,
        radius: f64,
        fill: Color,
        ring: Option<Color>,
    },
    /// `y` is the baseline; `turn` is in degrees, counter-clockwise around the anchor.
    Text {
        x: f64,
        y: f64,
        text: String,
        style: Style,
        turn: f64,
    },
}

/// Marks that belong together; later layers lie on top.
#[derive(Debug, Clone)]
pub struct Layer {
    pub name: &'static str,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    pub background: Color,
    pub title: String,
    pub layers: Vec<Layer>,
}

impl Scene {
    pub fn add(&mut self, name: &'static str, marks: Vec<Mark>) {
        if !marks.is_empty() {
            self.layers.push(Layer { name, marks });
        }
    }
}
