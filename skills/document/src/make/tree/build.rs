//! From elements to boxes.

use std::collections::HashMap;
use std::rc::Rc;

use super::mark::{mark, transform};
use super::{Content, Entry, Inline, Node, Role, Text, Tree, Words, floats, inline, table};
use crate::make::css::cascade::Cascade;
use crate::make::css::select::Pseudo;
use crate::make::css::style::{Align, Display, Side, Style, Vertical};
use crate::make::css::value::Length;
use crate::make::dom::{Dom, Element, Id, Node as Source};
use crate::make::picture::Pictures;

/// Boxes that are repeated on each page.
const FIXED: usize = 20;

/// A piece of the flow.
pub enum Piece {
    Inline(Inline),
    Block(Node),
}

/// The surroundings of an element.
#[derive(Clone)]
pub struct Around {
    pub style: Rc<Style>,
    pub link: Option<Text>,
    pub span: Option<Rc<Style>>,
}

pub struct Builder<'a> {
    pub dom: &'a Dom,
    pub cascade: &'a Cascade,
    pub pictures: &'a mut Pictures,
    headings: Vec<Entry>,
    /// Boxes that each page has.
    fixed: Vec<Node>,
    /// How many headings have a text.
    slugs: HashMap<String, usize>,
    /// Numbers of the next items of the lists that are open.
    lists: Vec<i64>,
}

/// Builds the boxes of a page.
pub fn build(dom: &Dom, cascade: &Cascade, pictures: &mut Pictures, root: Style) -> Tree {
    let mut builder = Builder {
        dom,
        cascade,
        pictures,
        headings: Vec::new(),
        fixed: Vec::new(),
        slugs: HashMap::new(),
        lists: Vec::new(),
    };
    let around = Around { style: Rc::new(root.clone()), link: None, span: None };
    let mut pieces = Vec::new();
    builder.children(0, &around, &mut pieces);
    let blocks = builder.group(pieces, &around.style);
    let mut style = root;
    style.display = Display::Block;
    let meta = |name: &str| {
        (0..dom.nodes.len()).filter_map(|id| dom.element(id)).find_map(|element| {
            let is_it =
                element.name == "meta" && element.get("name").is_some_and(|known| known.eq_ignore_ascii_case(name));
            element.get("content").filter(|_| is_it).map(str::to_owned)
        })
    };
    let language = dom.find("html").and_then(|id| dom.element(id)).and_then(|element| element.get("lang"));
    Tree {
        headings: builder.headings,
        fixed: builder.fixed,
        title: dom.find("title").map(|id| dom.text(id).trim().to_owned()).unwrap_or_default(),
        author: meta("author").unwrap_or_default(),
        language: language.unwrap_or_default().to_owned(),
        root: Node::new(style, Content::Blocks(blocks)),
    }
}

impl Builder<'_> {
    pub fn children(&mut self, id: Id, around: &Around, pieces: &mut Vec<Piece>) {
        let dom = self.dom;
        for child in dom.children(id) {
            match &dom.nodes[*child] {
                Source::Text(text) => {
                    if !around.style.is_hidden {
                        let text = transform(text, around.style.transform);
                        let words = Words {
                            text,
                            style: around.style.clone(),
                            link: around.link.clone(),
                            span: around.span.clone(),
                        };
                        pieces.push(Piece::Inline(Inline::Text(words)));
                    }
                }
                Source::Element(element) => self.element(*child, element, around, pieces),
            }
        }
    }

    fn element(&mut self, id: Id, element: &Element, around: &Around, pieces: &mut Vec<Piece>) {
        let mut style = self.cascade.style(self.dom, id, &around.style);
        if style.display == Display::None {
            return;
        }
        match element.name.as_str() {
            "br" => return pieces.push(Piece::Inline(Inline::Break)),
            "wbr" => return pieces.push(Piece::Inline(inline::words("\u{200b}", around))),
            "img" => return self.picture(element, style, around, pieces),
            "svg" => {
                self.pictures.note("a drawing in SVG is left out: make it PNG");
                return;
            }
            "input" => return pieces.extend(inline::input(element, around).map(Piece::Inline)),
            "kiso-page-of" => {
                let target = element.get("id").unwrap_or_default();
                let inline = Inline::PageOf { id: target.into(), style: Rc::new(style) };
                return pieces.push(Piece::Inline(inline));
            }
            _ => {}
        }
        if style.is_fixed && self.fixed.len() < FIXED {
            style.display = if style.display == Display::Inline { Display::Block } else { style.display };
            style.is_fixed = false;
            let node = self.block(id, element, style, around);
            self.fixed.push(node);
            return;
        }
        // A float is a block.
        if style.float != Side::None && matches!(style.display, Display::Inline | Display::InlineBlock) {
            style.display = Display::Block;
        }
        match style.display {
            Display::Inline => self.inline(id, element, style, around, pieces),
            Display::InlineBlock if !needs_box(&style) && !self.has_block(id, &style, 0) => {
                self.inline(id, element, style, around, pieces);
            }
            Display::InlineBlock => {
                let node = self.block(id, element, style, around);
                pieces.push(Piece::Inline(Inline::Box(Rc::new(node))));
            }
            Display::Column => {}
            _ => {
                let node = self.block(id, element, style, around);
                pieces.push(Piece::Block(node));
            }
        }
    }

    fn inline(&mut self, id: Id, element: &Element, mut style: Style, around: &Around, pieces: &mut Vec<Piece>) {
        // A link in a raised text is raised.
        if style.vertical == Vertical::Baseline && around.style.display == Display::Inline {
            style.vertical = around.style.vertical;
        }
        let name = element.get("id").or_else(|| element.get("name").filter(|_| element.name == "a"));
        if let Some(name) = name {
            pieces.push(Piece::Inline(Inline::Anchor(name.into())));
        }
        let link = element.get("href").filter(|_| element.name == "a").map(Text::from);
        let before = self.generated(id, &style, Pseudo::Before);
        let after = self.generated(id, &style, Pseudo::After);
        let style = Rc::new(style);
        let is_span = style.background.is_some() || (0..4).any(|side| style.border[side].size() > 0.0);
        let inner = Around {
            style: style.clone(),
            link: link.or_else(|| around.link.clone()),
            span: if is_span { Some(style.clone()) } else { around.span.clone() },
        };
        let gap = |side: usize, pieces: &mut Vec<Piece>| {
            let outer = style.margin[side].or_zero(0.0);
            let own = style.inset(side, 0.0);
            let mut gaps = [(outer, around.span.clone()), (own, inner.span.clone())];
            if side == 1 {
                gaps.reverse();
            }
            for (width, span) in gaps {
                if width != 0.0 {
                    pieces.push(Piece::Inline(Inline::Gap { width, span }));
                }
            }
        };
        gap(3, pieces);
        pieces.extend(before.map(|words| Piece::Inline(inline::with_around(words, &inner))));
        self.children(id, &inner, pieces);
        pieces.extend(after.map(|words| Piece::Inline(inline::with_around(words, &inner))));
        gap(1, pieces);
    }

    /// The text that a style sheet adds.
    fn generated(&mut self, id: Id, parent: &Style, pseudo: Pseudo) -> Option<(String, Rc<Style>)> {
        let style = self.cascade.pseudo(self.dom, id, parent, pseudo)?;
        let text = style.content.as_deref().unwrap_or_default().to_owned();
        (style.display != Display::None && !text.is_empty()).then(|| (text, Rc::new(style)))
    }

    /// Whether an element has a block in it, which an inline one cannot have around it.
    fn has_block(&self, id: Id, style: &Style, depth: usize) -> bool {
        depth > 4
            || self.dom.children(id).iter().any(|child| {
                self.dom.element(*child).is_some_and(|element| {
                    let own = self.cascade.style(self.dom, *child, style);
                    match own.display {
                        Display::None => false,
                        Display::Inline | Display::InlineBlock => {
                            element.name != "img" && self.has_block(*child, &own, depth + 1)
                        }
                        _ => true,
                    }
                })
            })
    }

    pub fn block(&mut self, id: Id, element: &Element, mut style: Style, around: &Around) -> Node {
        let name = element.name.as_str();
        if name == "ol" || name == "ul" || name == "menu" {
            let start = element.get("start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
            self.lists.push(start);
        }
        let role = self.role(name, element, &style);
        if matches!(style.display, Display::Row | Display::Rows | Display::Cell | Display::Caption) {
            style.display = Display::Block;
        }
        let link = element.get("href").filter(|_| name == "a").map(Text::from).or_else(|| around.link.clone());
        let content = if style.display == Display::Table {
            Content::Table(table::build(self, id, &style, around))
        } else {
            let before = self.generated(id, &style, Pseudo::Before);
            let after = self.generated(id, &style, Pseudo::After);
            let shared = Rc::new(style.clone());
            let inner = Around { style: shared.clone(), link, span: None };
            let mut pieces = Vec::new();
            pieces.extend(before.map(|words| Piece::Inline(inline::with_around(words, &inner))));
            if matches!(style.display, Display::Flex | Display::Grid) {
                let mut nodes = Vec::new();
                self.push_items(pieces, &shared, &mut nodes);
                self.flex_items(id, &inner, &mut nodes);
                let after = after.map(|words| Piece::Inline(inline::with_around(words, &inner)));
                self.push_items(after.into_iter().collect(), &shared, &mut nodes);
                Content::Blocks(nodes)
            } else {
                self.children(id, &inner, &mut pieces);
                pieces.extend(after.map(|words| Piece::Inline(inline::with_around(words, &inner))));
                self.content(pieces, &shared)
            }
        };
        if name == "ol" || name == "ul" || name == "menu" {
            self.lists.pop();
        }
        let mut node = Node::new(style, content);
        node.role = role;
        node.id = element.get("id").map(Text::from);
        if let Role::Heading(level) = node.role {
            self.heading(&mut node, level);
        }
        node
    }

    fn role(&mut self, name: &str, element: &Element, style: &Style) -> Role {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Role::Heading(name.as_bytes()[1] - b'0'),
            "ol" => Role::List { is_ordered: true },
            "ul" | "menu" => Role::List { is_ordered: false },
            "blockquote" => Role::Quote,
            "pre" => Role::Code,
            "hr" => Role::Rule,
            "p" if element.get("class") == Some("kiso-title") => Role::Title,
            "p" if element.get("class") == Some("kiso-subtitle") => Role::Subtitle,
            "p" if element.get("class") == Some("kiso-by") => Role::Author,
            _ if style.display == Display::ListItem => {
                let number = self.lists.last_mut();
                let number = number.map_or(1, |next| {
                    if let Some(value) = element.get("value").and_then(|value| value.trim().parse().ok()) {
                        *next = value;
                    }
                    *next = next.saturating_add(1);
                    *next - 1
                });
                let is_task = self.has_checkbox(element);
                Role::Item(if is_task { String::new() } else { mark(style.marker, number) })
            }
            _ => Role::Plain,
        }
    }

    /// Whether an item begins with a box to tick, which is its bullet then.
    fn has_checkbox(&self, element: &Element) -> bool {
        let first = element
            .children
            .iter()
            .find(|child| !matches!(&self.dom.nodes[**child], Source::Text(text) if text.trim().is_empty()));
        let Some(first) = first.and_then(|id| self.dom.element(*id)) else { return false };
        first.name == "input" && first.get("type") == Some("checkbox") || first.name == "p" && self.has_checkbox(first)
    }

    fn heading(&mut self, node: &mut Node, level: u8) {
        let text = node.text();
        let id = node.id.clone().unwrap_or_else(|| self.slug(&text).into());
        node.id = Some(id.clone());
        if !text.is_empty() && self.headings.len() < crate::limits::HEADINGS {
            self.headings.push(Entry { level, text: text.chars().take(400).collect(), id });
        }
    }

    /// The name of a heading that has none, as on GitHub: with a number if there is another one.
    fn slug(&mut self, text: &str) -> String {
        let lower = text.to_lowercase();
        let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).take(200);
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = self.slugs.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    }

    fn picture(&mut self, element: &Element, style: Style, around: &Around, pieces: &mut Vec<Piece>) {
        let alt = element.get("alt").unwrap_or_default();
        let source = element.get("src").unwrap_or_default();
        let Some(number) = self.pictures.load(source) else {
            if !alt.is_empty() {
                pieces.push(Piece::Inline(inline::words(&format!("[{alt}]"), around)));
            }
            return;
        };
        let (display, float) = (style.display, style.float);
        let picture =
            Inline::Picture { number, style: Rc::new(style.clone()), link: around.link.clone(), alt: alt.into() };
        if display == Display::Block || float != Side::None {
            // Its margins and its place are those of a block around it.
            let mut outer = around.style.child();
            outer.display = Display::Block;
            outer.float = float;
            outer.margin = style.margin;
            let is_auto = |side: usize| style.margin[side] == Length::Auto;
            outer.margin = outer.margin.map(|margin| if margin == Length::Auto { Length::Points(0.0) } else { margin });
            match (is_auto(3), is_auto(1)) {
                (true, true) => outer.align = Align::Center,
                (true, false) => outer.align = Align::Right,
                _ => {}
            }
            let node = Node::new(outer, Content::Inline(vec![picture]));
            pieces.push(Piece::Block(node));
        } else {
            pieces.push(Piece::Inline(picture));
        }
    }

    /// Blocks if there is one, else one flow of text.
    pub fn content(&mut self, pieces: Vec<Piece>, style: &Rc<Style>) -> Content {
        if pieces.iter().any(|piece| matches!(piece, Piece::Block(_))) {
            return Content::Blocks(self.group(pieces, style));
        }
        let inlines = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Inline(inline) => Some(inline),
            Piece::Block(_) => None,
        });
        Content::Inline(inline::normalize(inlines.collect()))
    }

    /// Puts texts between blocks into blocks of their own.
    fn group(&mut self, pieces: Vec<Piece>, style: &Style) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut texts = Vec::new();
        let flush = |texts: &mut Vec<Inline>, nodes: &mut Vec<Node>| {
            let inlines = inline::normalize(std::mem::take(texts));
            if inlines.iter().any(|inline| !matches!(inline, Inline::Break)) {
                let mut own = style.child();
                own.display = Display::Block;
                nodes.push(Node::new(own, Content::Inline(inlines)));
            }
        };
        for piece in pieces {
            match piece {
                Piece::Inline(inline) => texts.push(inline),
                Piece::Block(node) => {
                    flush(&mut texts, &mut nodes);
                    nodes.push(node);
                }
            }
        }
        flush(&mut texts, &mut nodes);
        floats::group(nodes, style)
    }

    /// Each child is an item, and each text between them.
    fn flex_items(&mut self, id: Id, inner: &Around, nodes: &mut Vec<Node>) {
        let dom = self.dom;
        for child in dom.children(id) {
            let mut pieces = Vec::new();
            match &dom.nodes[*child] {
                Source::Text(text) if text.trim().is_empty() => continue,
                Source::Text(text) => pieces.push(Piece::Inline(inline::words(text, inner))),
                Source::Element(element) => {
                    let mut style = self.cascade.style(dom, *child, &inner.style);
                    let is_inline = matches!(style.display, Display::Inline | Display::InlineBlock);
                    if is_inline && !matches!(element.name.as_str(), "img" | "br" | "input" | "svg" | "kiso-page-of") {
                        style.display = Display::Block;
                        style.float = Side::None;
                        nodes.push(self.block(*child, element, style, inner));
                        continue;
                    }
                    self.element(*child, element, inner, &mut pieces);
                }
            }
            self.push_items(pieces, &inner.style, nodes);
        }
    }

    fn push_items(&mut self, pieces: Vec<Piece>, style: &Style, nodes: &mut Vec<Node>) {
        let mut texts = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Inline(inline) => texts.push(inline),
                Piece::Block(mut node) => {
                    if node.style.float != Side::None {
                        Rc::make_mut(&mut node.style).float = Side::None;
                    }
                    nodes.push(node);
                }
            }
        }
        let inlines = inline::normalize(texts);
        if !inlines.is_empty() {
            let mut own = style.child();
            own.display = Display::Block;
            nodes.push(Node::new(own, Content::Inline(inlines)));
        }
    }
}

/// Whether an inline block has a size of its own, or an inside that makes its line higher.
fn needs_box(style: &Style) -> bool {
    style.inset(0, 0.0) + style.inset(2, 0.0) > 0.0
        || style.width != Length::Auto
        || style.height != Length::Auto
        || style.min_width != Length::Auto
        || style.min_height != Length::Auto
}
