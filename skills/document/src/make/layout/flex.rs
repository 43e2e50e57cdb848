//! Boxes beside one another.

use std::rc::Rc;

use super::{Frag, Layout, Row};
use crate::make::css::style::{Items, Justify, Style, Track};
use crate::make::css::value::Length;
use crate::make::tree::Node;

/// An item with its widths.
struct Flexed<'n> {
    node: &'n Node,
    base: f32,
    min: f32,
    width: f32,
    /// Margins that take what is left: left, right.
    auto: [bool; 2],
}

impl Layout<'_> {
    pub fn flex_rows(&mut self, nodes: &[Node], style: &Rc<Style>, inner: f32) -> Vec<Frag> {
        let mut items: Vec<Flexed> = nodes.iter().map(|node| self.flexed(node, inner)).collect();
        if style.flex.reversed {
            items.reverse();
        }
        let gap = style.flex.gap;
        let mut rows = Vec::new();
        while !items.is_empty() {
            let mut end = items.len();
            if style.flex.wraps {
                let mut used = 0.0;
                let fits = |item: &Flexed| {
                    used += item.base + gap;
                    used - gap <= inner + 0.1
                };
                end = items
                    .iter()
                    .take_while({
                        let mut fits = fits;
                        move |item| fits(item)
                    })
                    .count()
                    .max(1);
            }
            let rest = items.split_off(end);
            let row = self.flex_row(items, style, inner);
            rows.push(row);
            items = rest;
        }
        finish(rows, style.flex.row_gap)
    }

    fn flexed<'n>(&mut self, node: &'n Node, inner: f32) -> Flexed<'n> {
        let own = &node.style;
        let (min, max) = self.intrinsic(node);
        let margins = own.margin[1].or_zero(inner) + own.margin[3].or_zero(inner);
        let inset = own.inset(1, inner) + own.inset(3, inner);
        let outer = |width: f32| margins + if own.is_border_box { width.max(inset) } else { width + inset };
        let wanted = if own.flex.basis == Length::Auto { own.width } else { own.flex.basis };
        let base = wanted.resolve(inner).map_or(max, outer);
        let auto = [3, 1].map(|side| own.margin[side] == Length::Auto);
        Flexed { node, base: base.max(0.0), min: min.min(base.max(min)), width: base, auto }
    }

    fn flex_row(&mut self, mut items: Vec<Flexed>, style: &Rc<Style>, inner: f32) -> Row {
        let gaps = style.flex.gap * items.len().saturating_sub(1) as f32;
        let room = (inner - gaps).max(1.0);
        items.iter_mut().for_each(|item| item.width = item.base);
        let grow: f32 = items.iter().map(|item| item.node.style.flex.grow).sum();
        let used: f32 = items.iter().map(|item| item.base).sum();
        if used > room {
            shrink(&mut items, room);
        } else if grow > 0.0 {
            let free = room - used;
            for item in &mut items {
                item.width += free * item.node.style.flex.grow / grow.max(1.0);
            }
            // An item narrower than its longest word takes room from the others.
            items.iter_mut().for_each(|item| item.width = item.width.max(item.min));
            let used: f32 = items.iter().map(|item| item.width).sum();
            if used > room + 0.1 {
                items.iter_mut().for_each(|item| item.base = item.width);
                shrink(&mut items, room);
            }
        }
        let used: f32 = items.iter().map(|item| item.width).sum();
        let free = (room - used).max(0.0);
        let autos = items.iter().flat_map(|item| item.auto).filter(|auto| *auto).count();
        let count = items.len() as f32;
        let (mut x, between) = match style.flex.justify {
            _ if autos > 0 => (0.0, 0.0),
            Justify::Start => (0.0, 0.0),
            Justify::Center => (free / 2.0, 0.0),
            Justify::End => (free, 0.0),
            Justify::Between if items.len() > 1 => (0.0, free / (count - 1.0)),
            Justify::Between => (0.0, 0.0),
            Justify::Around => (free / count / 2.0, free / count),
        };
        let mut row = Row { cells: Vec::new(), height: 0.0, gap_after: 0.0 };
        for item in &items {
            let share = free / autos.max(1) as f32;
            x += if item.auto[0] { share } else { 0.0 };
            let mut block = self.block(item.node, inner, Some(item.width));
            block.x += x;
            x += item.width + between + style.flex.gap + if item.auto[1] { share } else { 0.0 };
            row.cells.push(block);
        }
        align(&mut row, style.flex.items);
        row
    }

    pub fn grid_rows(&mut self, nodes: &[Node], style: &Rc<Style>, inner: f32) -> Vec<Frag> {
        let tracks = &style.flex.tracks;
        let gap = style.flex.gap;
        let room = (inner - gap * tracks.len().saturating_sub(1) as f32).max(1.0);
        let mut widths: Vec<f32> = Vec::new();
        for (number, track) in tracks.iter().enumerate() {
            widths.push(match track {
                Track::Length(length) => length.or_zero(inner).min(room),
                Track::Fraction(_) => 0.0,
                Track::Auto => {
                    let own = nodes.iter().skip(number).step_by(tracks.len());
                    own.map(|node| self.intrinsic(node).1).fold(0.0, f32::max).min(room / 2.0)
                }
            });
        }
        let free = (room - widths.iter().sum::<f32>()).max(0.0);
        let fraction = |track: &Track| if let Track::Fraction(part) = track { *part } else { 0.0 };
        let fractions: f32 = tracks.iter().map(fraction).sum();
        for (width, track) in widths.iter_mut().zip(tracks.iter()) {
            if fractions > 0.0 {
                *width += free * fraction(track) / fractions;
            } else if matches!(track, Track::Auto) {
                let autos = tracks.iter().filter(|track| matches!(track, Track::Auto)).count();
                *width += free / autos as f32;
            }
        }
        let mut rows = Vec::new();
        let mut row = Row { cells: Vec::new(), height: 0.0, gap_after: 0.0 };
        let mut column = 0;
        for node in nodes {
            let span = node.style.flex.span.clamp(1, widths.len());
            if column + span > widths.len() {
                rows.push(std::mem::replace(&mut row, Row { cells: Vec::new(), height: 0.0, gap_after: 0.0 }));
                column = 0;
            }
            let x: f32 = widths[..column].iter().map(|width| width + gap).sum();
            let width = widths[column..column + span].iter().sum::<f32>() + gap * (span - 1) as f32;
            let mut block = self.block(node, inner, Some(width));
            block.x += x;
            row.cells.push(block);
            column += span;
        }
        rows.push(row);
        rows.iter_mut().for_each(|row| align(row, style.flex.items));
        rows.retain(|row| !row.cells.is_empty());
        finish(rows, style.flex.row_gap)
    }
}

/// Makes items narrower until they fit, the wide ones more.
fn shrink(items: &mut [Flexed], room: f32) {
    let used: f32 = items.iter().map(|item| item.base).sum();
    let least: f32 = items.iter().map(|item| item.min.min(item.base)).sum();
    if least >= room {
        // Not even the longest words fit.
        items.iter_mut().for_each(|item| item.width = item.min.min(item.base) * room / least.max(1.0));
        return;
    }
    let part = (used - room) / (used - least).max(0.01);
    items.iter_mut().for_each(|item| item.width = item.base - (item.base - item.min.min(item.base)) * part);
}

/// Sets the height of a row and moves its boxes within it.
fn align(row: &mut Row, items: Items) {
    let outer = |block: &super::Block| block.height + block.margin_top + block.margin_bottom;
    row.height = row.cells.iter().map(outer).fold(0.0, f32::max);
    for block in &mut row.cells {
        let free = row.height - outer(block);
        match items {
            Items::Start => {}
            Items::Stretch => block.min_height = block.min_height.max(block.height + free),
            Items::Center => block.margin_top += free / 2.0,
            Items::End => block.margin_top += free,
        }
    }
}

fn finish(mut rows: Vec<Row>, gap: f32) -> Vec<Frag> {
    let last = rows.len().saturating_sub(1);
    rows.iter_mut().take(last).for_each(|row| row.gap_after = gap);
    rows.into_iter().map(Frag::Row).collect()
}
