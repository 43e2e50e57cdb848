//! How narrow and how wide content can be.

use super::inline::{Unit, UnitKind};
use super::{Layout, chunk};
use crate::make::css::style::Display;
use crate::make::css::value::Length;
use crate::make::tree::{Content, Node, Role};

/// The width of content that may be as wide as it wants.
const ENDLESS: f32 = 100_000.0;

impl Layout<'_> {
    /// The narrowest and widest width of a box, with its margins.
    pub fn intrinsic(&mut self, node: &Node) -> (f32, f32) {
        if let Some(known) = node.intrinsic.get() {
            return known;
        }
        let style = &node.style;
        let outer: f32 = [1, 3].into_iter().map(|side| style.margin[side].or_zero(0.0)).sum();
        let inset = style.inset(1, 0.0) + style.inset(3, 0.0);
        let (mut min, mut max) = match style.width {
            Length::Points(width) => {
                let width = if style.is_border_box { width - inset } else { width };
                (width, width)
            }
            _ => self.content_size(node),
        };
        if let Some(limit) = fixed(style.max_width) {
            (min, max) = (min.min(limit), max.min(limit));
        }
        if let Some(limit) = fixed(style.min_width) {
            (min, max) = (min.max(limit), max.max(limit));
        }
        let found = (min + inset + outer, max + inset + outer);
        node.intrinsic.set(Some(found));
        found
    }

    fn content_size(&mut self, node: &Node) -> (f32, f32) {
        match &node.content {
            Content::Inline(inlines) => {
                let units = self.units(&chunk::first(inlines), ENDLESS, false);
                measure(&units)
            }
            Content::Table(table) => {
                let (columns, _) = self.column_sizes(table);
                let gaps = super::table::gaps(&node.style, columns.len());
                columns.iter().fold((gaps, gaps), |(min, max), column| (min + column.0, max + column.1))
            }
            Content::Blocks(nodes) => {
                let is_row = match node.style.display {
                    Display::Flex => !node.style.flex.is_column,
                    Display::Grid => node.style.flex.tracks.len() > 1,
                    _ => false,
                };
                let mut sizes = (0.0_f32, 0.0_f32);
                for child in nodes {
                    let (min, max) = self.intrinsic(child);
                    if is_row {
                        sizes.0 = if node.style.flex.wraps { sizes.0.max(min) } else { sizes.0 + min };
                        sizes.1 += max;
                    } else {
                        sizes = (sizes.0.max(min), sizes.1.max(max));
                    }
                }
                if is_row {
                    let gaps = node.style.flex.gap * nodes.len().saturating_sub(1) as f32;
                    sizes.1 += gaps;
                    sizes.0 += if node.style.flex.wraps { 0.0 } else { gaps };
                }
                if matches!(node.role, Role::Item(_)) { (sizes.0, sizes.1) } else { sizes }
            }
        }
    }
}

fn fixed(length: Length) -> Option<f32> {
    match length {
        Length::Points(points) => Some(points),
        _ => None,
    }
}

/// The widest part that cannot be broken, and the widest line.
fn measure(units: &[Unit]) -> (f32, f32) {
    let (mut min, mut max) = (0.0_f32, 0.0_f32);
    let (mut part, mut line) = (0.0, 0.0);
    for unit in units {
        match unit.kind {
            UnitKind::Break => {
                max = max.max(line);
                (part, line) = (0.0, 0.0);
                continue;
            }
            UnitKind::Space { ref style, .. } => {
                line += unit.width;
                if matches!(style.white, crate::make::css::style::White::NoWrap | crate::make::css::style::White::Pre) {
                    part += unit.width;
                } else {
                    part = 0.0;
                }
                continue;
            }
            _ => {}
        }
        if unit.may_begin {
            part = 0.0;
        }
        part += unit.width;
        line += unit.width;
        min = min.max(part);
    }
    // A little more, so that what was measured alone fits when it is placed.
    (min + 0.05, max.max(line) + 0.05)
}
