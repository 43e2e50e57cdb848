//! Boxes with styles from the elements of a page: what layouts and the writer of DOCX read.

mod build;
mod floats;
mod inline;
mod mark;
mod table;

use std::cell::Cell;
use std::rc::Rc;

use super::css::style::Style;
use super::css::value::Length;

pub use build::build;
pub use inline::count_spaces;

/// A link, a name, a text that many boxes share.
pub type Text = Rc<str>;

/// Why a box is there, for those who care.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    Plain,
    Heading(u8),
    /// Above the text: title, subtitle, author.
    Title,
    Subtitle,
    Author,
    List {
        is_ordered: bool,
    },
    /// With its bullet or number.
    Item(String),
    Quote,
    Code,
    Rule,
}

#[derive(Debug)]
pub struct Node {
    pub style: Rc<Style>,
    pub role: Role,
    pub id: Option<Text>,
    pub content: Content,
    /// The narrowest and the widest that its content makes it, once that is known.
    pub intrinsic: Cell<Option<(f32, f32)>>,
}

#[derive(Debug)]
pub enum Content {
    Blocks(Vec<Node>),
    Inline(Vec<Inline>),
    Table(Table),
}

#[derive(Debug, Clone)]
pub enum Inline {
    Text(Words),
    Break,
    /// Space before or after the text of an element with a background.
    Gap {
        width: f32,
        span: Option<Rc<Style>>,
    },
    Picture {
        number: usize,
        style: Rc<Style>,
        link: Option<Text>,
        alt: Text,
    },
    Box(Rc<Node>),
    /// The number of the page with this id.
    PageOf {
        id: Text,
        style: Rc<Style>,
    },
    /// A place that links lead to.
    Anchor(Text),
}

#[derive(Debug, Clone)]
pub struct Words {
    pub text: String,
    pub style: Rc<Style>,
    pub link: Option<Text>,
    /// The innermost element around it with a background or a border.
    pub span: Option<Rc<Style>>,
}

#[derive(Debug)]
pub struct Table {
    pub columns: Vec<Length>,
    /// Rows that are repeated on each page.
    pub head: usize,
    pub rows: Vec<Row>,
    pub caption: Option<Box<Node>>,
}

#[derive(Debug)]
pub struct Row {
    pub style: Rc<Style>,
    pub cells: Vec<TableCell>,
}

#[derive(Debug)]
pub struct TableCell {
    pub node: Node,
    pub columns: usize,
    pub rows: usize,
}

impl Node {
    pub fn new(style: Style, content: Content) -> Self {
        Self { style: Rc::new(style), role: Role::Plain, id: None, content, intrinsic: Cell::new(None) }
    }

    /// The text of all that is in it, on one line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn push_text(&self, text: &mut String) {
        match &self.content {
            Content::Blocks(nodes) => nodes.iter().for_each(|node| node.push_text(text)),
            Content::Inline(inlines) => {
                for inline in inlines {
                    match inline {
                        Inline::Text(words) => text.push_str(&words.text),
                        Inline::Box(node) => node.push_text(text),
                        Inline::Break => text.push(' '),
                        _ => {}
                    }
                }
                text.push(' ');
            }
            Content::Table(table) => {
                table.rows.iter().flat_map(|row| &row.cells).for_each(|cell| cell.node.push_text(text));
            }
        }
    }
}

/// A heading with its place in the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub level: u8,
    pub text: String,
    pub id: Text,
}

/// A page as boxes, with what its head says.
#[derive(Debug)]
pub struct Tree {
    pub root: Node,
    pub headings: Vec<Entry>,
    /// Boxes that each page has at its top or bottom.
    pub fixed: Vec<Node>,
    pub title: String,
    pub author: String,
    pub language: String,
}
