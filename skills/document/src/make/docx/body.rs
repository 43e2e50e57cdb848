//! Paragraphs from boxes.

use std::collections::{BTreeSet, HashMap};

use super::styles::{Kind, Styles, hex};
use super::{escape, twips};
use crate::limits;
use crate::make::css::style::{Align, Border, Display, Line, Marker, Style};
use crate::make::css::value::Color;
use crate::make::layout::Layout;
use crate::make::picture::Pictures;
use crate::make::tree::{Content, Inline, Node, Role, Tree};

/// A list, which counts its items.
#[derive(Debug)]
pub struct List {
    pub is_ordered: bool,
    pub level: usize,
    pub marker: Marker,
    pub start: i64,
}

/// The surroundings of a paragraph.
#[derive(Debug, Clone, Copy)]
pub struct Around {
    pub kind: Kind,
    /// Number of the list and level, and whether the next paragraph has the bullet.
    pub list: Option<(usize, usize)>,
    pub has_mark: bool,
    pub indent: f32,
    pub shade: Option<Color>,
    pub borders: Option<[Border; 4]>,
    pub width: f32,
}

/// The body with everything that it refers to.
#[derive(Debug, Default)]
pub struct Parts {
    pub xml: String,
    pub lists: Vec<List>,
    pub links: Vec<String>,
    pub pictures: BTreeSet<usize>,
}

pub struct Body<'a, 'l> {
    pub layout: &'a mut Layout<'l>,
    pub pictures: &'a Pictures,
    pub styles: &'a Styles,
    pub parts: Parts,
    pub bookmarks: HashMap<String, usize>,
    pub shapes: usize,
    breaks: bool,
    /// Where the text begins, below its title.
    after_title: usize,
    width: f32,
}

impl<'a, 'l> Body<'a, 'l> {
    pub fn new(layout: &'a mut Layout<'l>, pictures: &'a Pictures, styles: &'a Styles, width: f32) -> Self {
        Self {
            layout,
            pictures,
            styles,
            parts: Parts::default(),
            bookmarks: HashMap::new(),
            shapes: 0,
            breaks: false,
            after_title: 0,
            width,
        }
    }

    pub fn finish(self) -> Parts {
        self.parts
    }

    pub fn document(&mut self, tree: &Tree, contents: Option<&(u8, String)>, pages: &HashMap<String, usize>) {
        let around = Around {
            kind: Kind::Normal,
            list: None,
            has_mark: false,
            indent: 0.0,
            shade: None,
            borders: None,
            width: self.width,
        };
        self.node(&tree.root, around);
        self.nodes(&tree.fixed, around);
        if let Some((depth, title)) = contents {
            let made = self.contents(tree, *depth, title, pages);
            let at = self.after_title;
            self.parts.xml.insert_str(at, &made);
        }
    }

    /// The field for contents, with the entries that it shows until Word updates it.
    fn contents(&mut self, tree: &Tree, depth: u8, title: &str, pages: &HashMap<String, usize>) -> String {
        let first = tree.headings.iter().map(|entry| entry.level).min().unwrap_or(1);
        let entries: Vec<_> = tree.headings.iter().filter(|entry| entry.level < first + depth).collect();
        let mut xml = format!(
            "<w:p><w:pPr><w:keepNext/></w:pPr><w:r><w:rPr><w:b/><w:sz w:val=\"28\"/></w:rPr><w:t>{}</w:t></w:r></w:p>",
            escape(title)
        );
        let last = entries.len().saturating_sub(1);
        for (number, entry) in entries.into_iter().enumerate() {
            let begin = if number == 0 {
                format!(
                    "<w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText xml:space=\"preserve\"> TOC \\o \"{first}-{}\" \\h \\z \\u </w:instrText></w:r><w:r><w:fldChar w:fldCharType=\"separate\"/></w:r>",
                    first + depth - 1
                )
            } else {
                String::new()
            };
            let end = if number == last { "<w:r><w:fldChar w:fldCharType=\"end\"/></w:r>" } else { "" };
            let name = self.bookmark(&entry.id);
            let page = pages.get(&*entry.id).copied().unwrap_or(1);
            xml.push_str(&format!(
                "<w:p><w:pPr><w:pStyle w:val=\"TOC{}\"/><w:tabs><w:tab w:val=\"right\" w:leader=\"dot\" w:pos=\"{}\"/></w:tabs></w:pPr>{begin}\
                 <w:hyperlink w:anchor=\"{name}\"><w:r><w:t xml:space=\"preserve\">{}</w:t></w:r><w:r><w:tab/></w:r><w:r><w:t>{page}</w:t></w:r></w:hyperlink>{end}</w:p>",
                (entry.level - first + 1).min(6),
                twips(self.width),
                escape(&entry.text),
            ));
        }
        xml
    }

    /// The name in Word of a place that links lead to.
    pub fn bookmark(&mut self, id: &str) -> String {
        let next = self.bookmarks.len() + 1;
        let number = *self.bookmarks.entry(id.to_owned()).or_insert(next);
        format!("_b{number}")
    }

    pub fn bookmark_xml(&mut self, id: &str) -> String {
        let name = self.bookmark(id);
        let number = &name[2..];
        format!("<w:bookmarkStart w:id=\"{number}\" w:name=\"{name}\"/><w:bookmarkEnd w:id=\"{number}\"/>")
    }

    pub fn nodes(&mut self, nodes: &[Node], around: Around) {
        let mut around = around;
        for node in nodes {
            self.node(node, around);
            if !matches!(node.role, Role::List { .. }) {
                around.has_mark = false;
            }
        }
    }

    pub fn node(&mut self, node: &Node, around: Around) {
        let style = &node.style;
        if self.is_full() {
            return;
        }
        self.breaks |= style.break_before && !self.parts.xml.is_empty();
        let mut inner = around;
        if style.background.is_some() && style.display != Display::Table {
            inner.shade = style.background;
        }
        if style.border.iter().any(|border| border.size() > 0.0)
            && node.role != Role::Quote
            && style.display != Display::Table
        {
            inner.borders = Some(style.border);
        }
        match &node.role {
            Role::Heading(level) => inner.kind = Kind::Heading(*level),
            Role::Title => inner.kind = Kind::Title,
            Role::Subtitle => inner.kind = Kind::Subtitle,
            Role::Author => inner.kind = Kind::Author,
            Role::Quote => {
                inner.kind = Kind::Quote;
                inner.indent += if around.kind == Kind::Quote { 18.0 } else { 0.0 };
                inner.shade = style.background;
            }
            Role::Code => inner = Around { kind: Kind::Code, shade: None, borders: None, ..inner },
            Role::Rule => return self.rule(style, around),
            Role::List { is_ordered } => {
                let level = around.list.map_or(0, |(_, level)| (level + 1).min(8));
                inner.list = Some((self.list(node, *is_ordered, level), level));
                inner.kind = Kind::List;
            }
            Role::Item(mark) => {
                inner.has_mark = !mark.is_empty();
                inner.kind = Kind::List;
            }
            Role::Plain => {
                if around.list.is_none() && around.kind == Kind::Normal {
                    inner.indent += style.margin[3].or_zero(0.0).max(0.0).min(self.width / 2.0);
                }
            }
        }
        match &node.content {
            Content::Inline(inlines) => self.paragraph(node, inlines, inner),
            Content::Table(table) => self.table(table, style, around),
            Content::Blocks(nodes) => match style.display {
                Display::Flex if !style.flex.is_column => self.beside(nodes, style, inner),
                Display::Grid if style.flex.tracks.len() > 1 => self.beside(nodes, style, inner),
                _ => {
                    if let Some(id) = node.id.as_ref().filter(|_| matches!(node.role, Role::Plain)) {
                        let xml = self.bookmark_xml(id);
                        self.parts.xml.push_str(&xml);
                    }
                    self.nodes(nodes, inner);
                }
            },
        }
        self.breaks |= style.break_after;
        if matches!(node.role, Role::Title | Role::Subtitle | Role::Author) {
            self.after_title = self.parts.xml.len();
        }
    }

    /// Whether the document is longer than is written.
    pub fn is_full(&self) -> bool {
        self.parts.xml.len() > limits::DOCX_BYTES
    }

    fn list(&mut self, node: &Node, is_ordered: bool, level: usize) -> usize {
        let first = match &node.content {
            Content::Blocks(nodes) => nodes.iter().find(|node| matches!(node.role, Role::Item(_))),
            _ => None,
        };
        let start = first.and_then(|item| match &item.role {
            Role::Item(mark) => mark.trim_end_matches('.').parse().ok(),
            _ => None,
        });
        let marker = first.map_or(node.style.marker, |item| item.style.marker);
        let is_ordered = is_ordered && !matches!(marker, Marker::Disc | Marker::Circle | Marker::Square | Marker::None);
        self.parts.lists.push(List { is_ordered, level, marker, start: start.unwrap_or(1) });
        self.parts.lists.len()
    }

    fn rule(&mut self, style: &Style, around: Around) {
        let color = hex(style.border_color(0));
        self.parts.xml.push_str(&format!(
            "<w:p><w:pPr>{}<w:pBdr><w:bottom w:val=\"single\" w:sz=\"6\" w:space=\"1\" w:color=\"{color}\"/></w:pBdr></w:pPr></w:p>",
            self.page_break()
        ));
        self.breaks = style.break_after;
        let _ = around;
    }

    fn page_break(&self) -> &'static str {
        if self.breaks { "<w:pageBreakBefore/>" } else { "" }
    }

    fn paragraph(&mut self, node: &Node, inlines: &[Inline], around: Around) {
        let style = &node.style;
        if inlines.is_empty() && !around.has_mark {
            return;
        }
        let base = self.styles.base(around.kind);
        let mut properties = String::new();
        if around.kind != Kind::Normal {
            properties.push_str(&format!("<w:pStyle w:val=\"{}\"/>", around.kind.id()));
        }
        if style.keeps_together {
            properties.push_str("<w:keepLines/>");
        }
        properties.push_str(self.page_break());
        self.breaks = false;
        if let Some((list, level)) = around.list.filter(|_| around.has_mark) {
            properties.push_str(&format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr>"));
        }
        if let Some(borders) = around.borders.filter(|_| around.kind != Kind::Code) {
            properties.push_str(&borders_xml("pBdr", &borders, style, 4));
        }
        if let Some(color) = around.shade.filter(|_| around.kind != Kind::Code) {
            properties.push_str(&format!("<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"{}\"/>", hex(color)));
        }
        if around.kind == Kind::Normal {
            properties.push_str(&self.spacing(style));
        }
        if let Some((_, level)) = around.list.filter(|_| !around.has_mark) {
            properties.push_str(&format!("<w:ind w:left=\"{}\"/>", 720 + level * 360));
        } else if around.indent > 0.5 {
            properties.push_str(&format!("<w:ind w:left=\"{}\"/>", twips(around.indent)));
        }
        // The styles of titles are centered.
        let usual = match around.kind {
            Kind::Title | Kind::Subtitle | Kind::Author => Align::Center,
            _ => Align::Left,
        };
        if style.align != usual {
            let align = match style.align {
                Align::Left => "left",
                Align::Center => "center",
                Align::Right => "right",
                Align::Justify => "both",
            };
            properties.push_str(&format!("<w:jc w:val=\"{align}\"/>"));
        }
        let mut runs = String::new();
        if let Some(id) = &node.id {
            runs.push_str(&self.bookmark_xml(id));
        }
        runs.push_str(&self.runs(inlines, &base, around.width));
        self.parts.xml.push_str(&format!("<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>"));
    }

    /// Space around a paragraph, if it is not that of the style.
    fn spacing(&self, style: &Style) -> String {
        let (before, after) = (style.margin[0].or_zero(0.0).max(0.0), style.margin[2].or_zero(0.0).max(0.0));
        let usual = self.styles.body.size * 0.7;
        if (after - usual).abs() < 1.0 && (before - usual).abs() < 1.0 {
            return String::new();
        }
        // Word adds up what browsers merge.
        format!("<w:spacing w:before=\"0\" w:after=\"{}\"/>", twips(after.max(before).min(100.0)))
    }
}

/// Borders of a paragraph or a cell.
pub fn borders_xml(element: &str, borders: &[Border; 4], style: &Style, space: u8) -> String {
    let mut xml = String::new();
    for (side, name) in [(0, "top"), (3, "left"), (2, "bottom"), (1, "right")] {
        let border = borders[side];
        let Some(line) = border.line.filter(|_| border.width > 0.0) else { continue };
        let kind = match line {
            Line::Solid => "single",
            Line::Dashed => "dashed",
            Line::Dotted => "dotted",
            Line::Double => "double",
        };
        let size = ((border.width * 8.0).round() as i32).clamp(2, 96);
        let color = hex(border.color.unwrap_or(style.color));
        let space = if element == "pBdr" { format!(" w:space=\"{space}\"") } else { " w:space=\"0\"".to_owned() };
        xml.push_str(&format!("<w:{name} w:val=\"{kind}\" w:sz=\"{size}\"{space} w:color=\"{color}\"/>"));
    }
    if xml.is_empty() { xml } else { format!("<w:{element}>{xml}</w:{element}>") }
}
