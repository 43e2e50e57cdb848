//! Blocks below one another.

use std::rc::Rc;

use super::{Block, Frag, Layout, between, stack};
use crate::make::css::style::{Display, Items, Justify, Style};
use crate::make::css::value::Length;
use crate::make::tree::{Content, Node, Role};

impl Layout<'_> {
    /// Lays out a box in a width. A row that places its boxes says how wide one is with its margins.
    pub fn block(&mut self, node: &Node, whole: f32, forced: Option<f32>) -> Block {
        let style = &node.style;
        let (x, width) = self.place(node, whole, forced);
        let inset = [0, 1, 2, 3].map(|side| style.inset(side, whole));
        let inner = (width - inset[1] - inset[3]).max(1.0);
        let mut block = Block {
            x,
            width,
            height: 0.0,
            min_height: min_height(style, inset[0] + inset[2], self.page_height),
            margin_top: style.margin[0].or_zero(whole),
            margin_bottom: style.margin[2].or_zero(whole),
            inset,
            style: style.clone(),
            children: Vec::new(),
            marker: None,
            id: node.id.clone(),
            heading: if let Role::Heading(level) = node.role { Some(level) } else { None },
            is_seen: is_seen(style),
        };
        if !self.takes_more() {
            return block;
        }
        block.children = self.children(node, style, inner);
        self.finish(block, node)
    }

    fn finish(&mut self, mut block: Block, node: &Node) -> Block {
        let style = &node.style;
        if let Role::Item(mark) = &node.role
            && !mark.is_empty()
        {
            let mut line = self.plain_line(mark, style);
            let width = line.width;
            let gap = style.size * 0.45;
            line.items.iter_mut().for_each(|item| item.x -= width + gap);
            block.marker = Some(line);
            if block.children.is_empty() {
                block.min_height = block.min_height.max(style.leading());
            }
        }
        let is_row = matches!(style.display, Display::Flex | Display::Grid);
        if !is_row {
            merge_margins(&mut block, style);
        }
        let own = stack(&block.children) + block.inset[0] + block.inset[2];
        block.height = own.max(block.min_height);
        if is_row {
            spread(&mut block, style, own);
        }
        block
    }

    fn children(&mut self, node: &Node, style: &Rc<Style>, inner: f32) -> Vec<Frag> {
        match &node.content {
            Content::Inline(inlines) => self.lines(inlines, style, inner),
            Content::Table(table) => self.table(table, style, inner),
            Content::Blocks(nodes) => match style.display {
                Display::Flex if !style.flex.is_column => self.flex_rows(nodes, style, inner),
                Display::Grid if style.flex.tracks.len() > 1 => self.grid_rows(nodes, style, inner),
                _ => self.column(nodes, style, inner),
            },
        }
    }

    /// Boxes below one another.
    fn column(&mut self, nodes: &[Node], style: &Rc<Style>, inner: f32) -> Vec<Frag> {
        let is_flex = matches!(style.display, Display::Flex | Display::Grid);
        let mut frags: Vec<Frag> = Vec::new();
        for child in nodes {
            let is_narrow = is_flex && style.flex.items != Items::Stretch && child.style.width == Length::Auto;
            let forced = is_narrow.then(|| self.intrinsic(child).1.min(inner));
            let mut block = self.block(child, inner, forced);
            let free = forced.map_or(0.0, |width| inner - width);
            block.x += match style.flex.items {
                Items::Center => free / 2.0,
                Items::End => free,
                _ => 0.0,
            };
            if is_flex && !frags.is_empty() {
                block.margin_top += style.flex.row_gap;
            }
            frags.push(Frag::Block(block));
        }
        frags
    }

    /// The left edge and the width of a box with its borders.
    fn place(&mut self, node: &Node, whole: f32, forced: Option<f32>) -> (f32, f32) {
        let style = &node.style;
        let margin = |side: usize| style.margin[side].or_zero(whole);
        let inset = style.inset(1, whole) + style.inset(3, whole);
        let with_borders = |length: Length| {
            length.resolve(whole).map(|width| if style.is_border_box { width.max(inset) } else { width + inset })
        };
        if let Some(forced) = forced {
            return (margin(3), (forced - margin(1) - margin(3)).max(inset));
        }
        let free = whole - margin(1) - margin(3);
        let mut width = match with_borders(style.width) {
            Some(width) => width,
            // A table is as wide as it has to be.
            None if matches!(node.content, Content::Table(_)) => {
                let (min, max) = self.intrinsic(node);
                let outer = margin(1) + margin(3);
                (max - outer).min(free).max((min - outer).min(free))
            }
            None => free,
        };
        if let Some(limit) = with_borders(style.max_width) {
            width = width.min(limit);
        }
        if let Some(limit) = with_borders(style.min_width) {
            width = width.max(limit);
        }
        // Paper has nothing to scroll.
        width = width.min(whole.max(1.0)).max(inset);
        let rest = (whole - width - margin(1) - margin(3)).max(0.0);
        let x = match (style.margin[3], style.margin[1]) {
            (Length::Auto, Length::Auto) => rest / 2.0,
            (Length::Auto, _) => rest,
            _ => margin(3),
        };
        (x, width)
    }
}

/// Whether a box has something to draw.
pub fn is_seen(style: &Style) -> bool {
    !style.is_hidden && (style.background.is_some() || style.border.iter().any(|border| border.size() > 0.0))
}

/// The height that a box has at least, with its borders. Nothing is made higher than a page.
fn min_height(style: &Style, inset: f32, page: f32) -> f32 {
    let fixed = |length: Length| match length {
        Length::Points(height) => Some(if style.is_border_box { height } else { height + inset }),
        _ => None,
    };
    let height = fixed(style.height).into_iter().chain(fixed(style.min_height)).fold(0.0, f32::max);
    height.min(page).max(inset)
}

/// Places what is in a flexible box that is higher than that; `own` is the height that its content needs.
fn spread(block: &mut Block, style: &Style, own: f32) {
    let free = block.height - own;
    if style.flex.is_column {
        block.inset[0] += match style.flex.justify {
            Justify::Center | Justify::Around => free / 2.0,
            Justify::End => free,
            _ => 0.0,
        };
    } else if let [Frag::Row(row)] = block.children.as_mut_slice() {
        // The only row is as high as its box.
        match style.flex.items {
            Items::Center => block.inset[0] += free / 2.0,
            Items::End => block.inset[0] += free,
            Items::Start => {}
            Items::Stretch => {
                row.height += free;
                for cell in &mut row.cells {
                    cell.min_height = cell.min_height.max(row.height - cell.margin_top - cell.margin_bottom);
                }
            }
        }
    }
}

/// The margins of the first and last block in a box without borders are its own.
fn merge_margins(block: &mut Block, style: &Style) {
    if block.inset[0] == 0.0
        && block.marker.is_none()
        && let Some(Frag::Block(first)) = block.children.first_mut()
    {
        block.margin_top = between(block.margin_top, first.margin_top);
        first.margin_top = 0.0;
    }
    if block.inset[2] == 0.0
        && style.height == Length::Auto
        && let Some(Frag::Block(last)) = block.children.last_mut()
    {
        block.margin_bottom = between(block.margin_bottom, last.margin_bottom);
        last.margin_bottom = 0.0;
    }
    if block.marker.is_some()
        && let Some(Frag::Block(first)) = block.children.first_mut()
        && block.inset[0] == 0.0
    {
        // The bullet stands beside the first line.
        block.margin_top = between(block.margin_top, first.margin_top);
        first.margin_top = 0.0;
    }
}
