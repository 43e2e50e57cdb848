//! Boxes with places: blocks and lines with their heights, before pages are told apart.
//!
//! Widths do not depend on pages, so that everything is measured once; [`super::paginate`] then lets blocks begin where there is room.

mod block;
mod chunk;
mod flex;
mod inline;
mod size;
mod table;

use std::rc::Rc;

use super::css::style::Style;
use super::font::Fonts;
use super::picture::Pictures;
use super::tree::{Node, Text};
use crate::limits;

pub use block::is_seen;
pub use table::seats;

#[derive(Debug)]
pub enum Frag {
    Block(Block),
    Line(Line),
    Row(Row),
    Table(TableFrag),
}

/// A box with what is in it.
#[derive(Debug)]
pub struct Block {
    /// From the left edge of the surrounding box to its border.
    pub x: f32,
    /// With borders.
    pub width: f32,
    /// With borders, on a page without end.
    pub height: f32,
    pub min_height: f32,
    pub margin_top: f32,
    pub margin_bottom: f32,
    /// Border and padding: top, right, bottom, left.
    pub inset: [f32; 4],
    pub style: Rc<Style>,
    pub children: Vec<Frag>,
    /// The bullet or number at its left.
    pub marker: Option<Line>,
    pub id: Option<Text>,
    /// Level of a heading, which does not end a page.
    pub heading: Option<u8>,
    /// Whether its background and borders are drawn.
    pub is_seen: bool,
}

/// A line of text.
#[derive(Debug, Clone)]
pub struct Line {
    pub height: f32,
    /// From its top to the line on which letters stand.
    pub baseline: f32,
    pub items: Vec<Item>,
    pub width: f32,
}

#[derive(Debug, Clone)]
pub struct Item {
    pub x: f32,
    pub width: f32,
    /// How far it is above the line.
    pub rise: f32,
    pub kind: ItemKind,
    pub link: Option<Text>,
    pub span: Option<Rc<Style>>,
}

#[derive(Debug, Clone)]
pub enum ItemKind {
    Glyphs { style: Rc<Style>, glyphs: Vec<Placed> },
    Picture { number: usize, height: f32, alt: Text },
    Box(Rc<Block>),
    PageOf { id: Text, style: Rc<Style> },
    Anchor(Text),
    Gap,
}

/// A glyph in a line.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub glyph: super::font::Glyph,
    pub c: char,
    /// In points, with kerning and letter spacing.
    pub advance: f32,
}

/// Boxes beside one another.
#[derive(Debug)]
pub struct Row {
    pub cells: Vec<Block>,
    pub height: f32,
    pub gap_after: f32,
}

#[derive(Debug)]
pub struct TableFrag {
    pub rows: Vec<TableRow>,
    /// Rows that are repeated on each page.
    pub head: usize,
    /// Space between rows; less than none where borders lie on one another.
    pub gap: f32,
    pub height: f32,
}

#[derive(Debug)]
pub struct TableRow {
    pub style: Rc<Style>,
    pub width: f32,
    pub height: f32,
    pub cells: Vec<Cell>,
}

#[derive(Debug)]
pub struct Cell {
    pub block: Block,
    /// How many rows it takes.
    pub rows: usize,
}

impl Frag {
    pub fn height(&self) -> f32 {
        match self {
            Self::Block(block) => block.height,
            Self::Line(line) => line.height,
            Self::Row(row) => row.height,
            Self::Table(table) => table.height,
        }
    }

    /// Margins above and below.
    pub fn margins(&self) -> (f32, f32) {
        match self {
            Self::Block(block) => (block.margin_top, block.margin_bottom),
            Self::Row(row) => (0.0, row.gap_after),
            _ => (0.0, 0.0),
        }
    }
}

/// The margin between two blocks.
pub fn between(above: f32, below: f32) -> f32 {
    if above >= 0.0 && below >= 0.0 { above.max(below) } else { above + below }
}

/// The height of blocks on one another. Margins at both ends count.
pub fn stack(frags: &[Frag]) -> f32 {
    let mut height = 0.0;
    let mut above = 0.0;
    for (number, frag) in frags.iter().enumerate() {
        let (top, bottom) = frag.margins();
        height += if number == 0 { top } else { between(above, top) };
        height += frag.height();
        above = bottom;
    }
    height + above
}

pub struct Layout<'a> {
    pub fonts: &'a mut Fonts,
    pub pictures: &'a Pictures,
    /// The height of a page's text, above which no picture goes.
    pub page_height: f32,
    frags: usize,
}

impl<'a> Layout<'a> {
    pub fn new(fonts: &'a mut Fonts, pictures: &'a Pictures, page_height: f32) -> Self {
        Self { fonts, pictures, page_height, frags: 0 }
    }

    /// Lays out a whole document.
    pub fn root(&mut self, node: &Node, width: f32) -> Block {
        self.block(node, width, None)
    }

    /// Whether more boxes may be made.
    fn takes_more(&mut self) -> bool {
        self.frags += 1;
        self.frags < limits::FRAGMENTS
    }

    /// Lays out what each page has, with its place from the top of the text.
    pub fn fixed(&mut self, nodes: &[Node], width: f32) -> Vec<(Block, f32)> {
        let height = self.page_height;
        let mut blocks = Vec::new();
        for node in nodes {
            let block = self.block(node, width, None);
            let top = node.style.top.resolve(height);
            let bottom = node.style.bottom.resolve(height);
            let y = top.or(bottom.map(|bottom| height - bottom - block.height)).unwrap_or(0.0);
            // A box that lies in the margin is drawn at the end of the text.
            let y = y.clamp(0.0, (height - block.height).max(0.0));
            blocks.push((block, y));
        }
        blocks
    }

    /// Whether the document has more than was laid out.
    pub fn is_full(&self) -> bool {
        self.frags >= limits::FRAGMENTS
    }
}
