//! The properties of an element after the cascade. Lengths that depend on the font are in points.

use std::rc::Rc;

use super::value::{BLACK, Color, Length};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    Sans,
    Serif,
    Mono,
    /// A font that was loaded from a file, by its number.
    File(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    None,
    Inline,
    InlineBlock,
    Block,
    ListItem,
    Flex,
    Grid,
    Table,
    Row,
    Rows,
    Cell,
    Caption,
    Column,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Center,
    Right,
    Justify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vertical {
    Baseline,
    Top,
    Middle,
    Bottom,
    Sub,
    Super,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LineHeight {
    Factor(f32),
    Points(f32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    None,
    Upper,
    Lower,
    Capitalize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum White {
    Normal,
    NoWrap,
    Pre,
    PreWrap,
    PreLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    None,
    Disc,
    Circle,
    Square,
    Decimal,
    LowerAlpha,
    UpperAlpha,
    LowerRoman,
    UpperRoman,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Solid,
    Dashed,
    Dotted,
    Double,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Border {
    pub width: f32,
    pub line: Option<Line>,
    /// `None` is the colour of the text.
    pub color: Option<Color>,
}

impl Border {
    pub const NONE: Self = Self { width: 2.25, line: None, color: None };

    /// The width that it takes.
    pub fn size(&self) -> f32 {
        if self.line.is_some() { self.width } else { 0.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    None,
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Justify {
    Start,
    Center,
    End,
    Between,
    Around,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    Stretch,
    Start,
    Center,
    End,
}

/// A column of a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Track {
    Length(Length),
    Fraction(f32),
    Auto,
}

/// Properties of boxes beside one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Flex {
    pub is_column: bool,
    pub wraps: bool,
    pub reversed: bool,
    pub justify: Justify,
    pub items: Items,
    pub gap: f32,
    pub row_gap: f32,
    pub grow: f32,
    pub basis: Length,
    pub tracks: Rc<Vec<Track>>,
    /// Columns of a grid that this one takes.
    pub span: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    // Inherited.
    pub color: Color,
    pub family: Family,
    pub size: f32,
    pub is_bold: bool,
    pub is_italic: bool,
    pub line_height: LineHeight,
    pub align: Align,
    pub indent: f32,
    pub transform: Transform,
    pub letter_spacing: f32,
    pub white: White,
    pub marker: Marker,
    pub is_collapsed: bool,
    pub spacing: f32,
    pub is_hidden: bool,
    /// Custom properties, such as `--accent`.
    pub custom: Rc<Vec<(String, String)>>,
    // Handed down to inline text.
    pub is_underlined: bool,
    pub is_struck: bool,
    // Of one element.
    pub display: Display,
    pub vertical: Vertical,
    pub margin: [Length; 4],
    pub padding: [Length; 4],
    pub border: [Border; 4],
    pub radius: f32,
    pub background: Option<Color>,
    pub width: Length,
    pub min_width: Length,
    pub max_width: Length,
    pub height: Length,
    pub min_height: Length,
    pub is_border_box: bool,
    pub float: Side,
    pub clears: bool,
    /// Whether it is out of the flow, on each page, and how far from the top and bottom of its text.
    pub is_fixed: bool,
    pub top: Length,
    pub bottom: Length,
    pub break_before: bool,
    pub break_after: bool,
    pub keeps_together: bool,
    pub flex: Rc<Flex>,
    pub content: Option<Rc<str>>,
}

impl Style {
    /// Of a page without a style sheet.
    pub fn root(family: Family, size: f32) -> Self {
        Self {
            color: BLACK,
            family,
            size,
            is_bold: false,
            is_italic: false,
            line_height: LineHeight::Factor(1.25),
            align: Align::Left,
            indent: 0.0,
            transform: Transform::None,
            letter_spacing: 0.0,
            white: White::Normal,
            marker: Marker::Disc,
            is_collapsed: false,
            spacing: 1.5,
            is_hidden: false,
            custom: Rc::default(),
            is_underlined: false,
            is_struck: false,
            display: Display::Inline,
            vertical: Vertical::Baseline,
            margin: [Length::Points(0.0); 4],
            padding: [Length::Points(0.0); 4],
            border: [Border::NONE; 4],
            radius: 0.0,
            background: None,
            width: Length::Auto,
            min_width: Length::Auto,
            max_width: Length::Auto,
            height: Length::Auto,
            min_height: Length::Auto,
            is_border_box: false,
            float: Side::None,
            clears: false,
            is_fixed: false,
            top: Length::Auto,
            bottom: Length::Auto,
            break_before: false,
            break_after: false,
            keeps_together: false,
            flex: Rc::new(Flex {
                is_column: false,
                wraps: false,
                reversed: false,
                justify: Justify::Start,
                items: Items::Stretch,
                gap: 0.0,
                row_gap: 0.0,
                grow: 0.0,
                basis: Length::Auto,
                tracks: Rc::default(),
                span: 1,
            }),
            content: None,
        }
    }

    /// The style of an element in this one, before its own rules.
    pub fn child(&self) -> Self {
        let fresh = Self::root(self.family, self.size);
        Self {
            color: self.color,
            is_bold: self.is_bold,
            is_italic: self.is_italic,
            line_height: self.line_height,
            align: self.align,
            indent: self.indent,
            transform: self.transform,
            letter_spacing: self.letter_spacing,
            white: self.white,
            marker: self.marker,
            is_collapsed: self.is_collapsed,
            spacing: self.spacing,
            is_hidden: self.is_hidden,
            custom: self.custom.clone(),
            is_underlined: self.is_underlined,
            is_struck: self.is_struck,
            ..fresh
        }
    }

    pub fn keeps_spaces(&self) -> bool {
        matches!(self.white, White::Pre | White::PreWrap)
    }

    /// The height of a line.
    pub fn leading(&self) -> f32 {
        match self.line_height {
            LineHeight::Factor(factor) => factor * self.size,
            LineHeight::Points(points) => points,
        }
    }

    pub fn border_color(&self, side: usize) -> Color {
        self.border[side].color.unwrap_or(self.color)
    }

    /// Border and padding of a side.
    pub fn inset(&self, side: usize, whole: f32) -> f32 {
        self.border[side].size() + self.padding[side].or_zero(whole).max(0.0)
    }
}
