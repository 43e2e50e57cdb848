//! Draws what is on one page.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pdf_writer::types::{LineCapStyle, TextRenderingMode};
use pdf_writer::{Content, Name, Rect, Str};

use super::fonts::Used;
use super::{Job, Link, fill};
use crate::make::css::style::{Line as Stroke, Style};
use crate::make::css::value::Color;
use crate::make::font::Glyph;
use crate::make::layout::{Item, ItemKind, Line, Placed};
use crate::make::paginate::{Drawn, Pages, Shape};
use crate::make::picture::Pixels;
use crate::make::tree::Text;

/// How far from a corner the points lie that bend a curve into a quarter of a circle.
const BEND: f32 = 0.5523;

pub struct Drawer<'a, 'j> {
    job: &'a mut Job<'j>,
    pages: &'a Pages<'a>,
    used: &'a mut Used,
    number: usize,
    content: Content,
    links: Vec<Link>,
    pictures: BTreeSet<usize>,
}

impl<'a, 'j> Drawer<'a, 'j> {
    pub fn new(job: &'a mut Job<'j>, pages: &'a Pages<'a>, used: &'a mut Used, number: usize) -> Self {
        Self { job, pages, used, number, content: Content::new(), links: Vec::new(), pictures: BTreeSet::new() }
    }

    pub fn finish(self) -> (Vec<u8>, Vec<Link>, BTreeSet<usize>) {
        (self.content.finish().to_vec(), self.links, self.pictures)
    }

    pub fn page(&mut self, numbers: &[usize]) {
        let paper = self.job.paper;
        if let Some(color) = self.job.background {
            fill(&mut self.content, color);
            self.content.rect(0.0, 0.0, paper.width, paper.height).fill_nonzero();
        }
        let start = self.number as f64 * f64::from(paper.inner_height());
        for number in numbers {
            let Drawn { x, top, bottom, shape } = &self.pages.drawn[*number];
            let x = paper.margin[3] + x;
            match shape {
                Shape::Line(line) => self.line(line, x, (*top - start) as f32 + paper.margin[0]),
                Shape::Box { width, style } => {
                    let end = f64::from(paper.inner_height());
                    let (from, to) = ((*top - start).max(0.0), (*bottom - start).min(end));
                    // Where a box goes on, it has no border.
                    let is_first = *top >= start - 0.05;
                    let is_last = *bottom <= start + end + 0.05;
                    let y = from as f32 + paper.margin[0];
                    self.area((x, y, *width, (to - from) as f32), style, (is_first, is_last));
                }
            }
        }
        let margins = std::mem::take(&mut self.job.margins[self.number]);
        for (line, x, y) in &margins {
            self.line(line, *x, *y);
        }
    }

    /// From the top of the page to the coordinates of PDF.
    fn flip(&self, y: f32) -> f32 {
        self.job.paper.height - y
    }

    /// Background and borders of a box.
    fn area(&mut self, (x, y, width, height): (f32, f32, f32, f32), style: &Style, ends: (bool, bool)) {
        if width <= 0.0 || height <= 0.0 {
            return;
        }
        let bottom = self.flip(y + height);
        let radius = style.radius.min(width / 2.0).min(height / 2.0).max(0.0);
        if let Some(color) = style.background {
            fill(&mut self.content, color);
            self.path(x, bottom, width, height, radius);
            self.content.fill_nonzero();
        }
        let first = style.border[0];
        let is_even = (1..4).all(|side| style.border[side] == first) && ends == (true, true);
        if is_even && radius > 0.0 && first.line == Some(Stroke::Solid) && first.width > 0.0 {
            self.stroke(style.border_color(0), first.width, Stroke::Solid);
            let half = first.width / 2.0;
            self.path(x + half, bottom + half, width - first.width, height - first.width, (radius - half).max(0.0));
            self.content.stroke();
            return;
        }
        for side in 0..4 {
            let border = style.border[side];
            let Some(line) = border.line else { continue };
            if border.width <= 0.0 || (side == 0 && !ends.0) || (side == 2 && !ends.1) {
                continue;
            }
            let half = border.width / 2.0;
            let (from, to) = match side {
                0 => ((x, bottom + height - half), (x + width, bottom + height - half)),
                1 => ((x + width - half, bottom), (x + width - half, bottom + height)),
                2 => ((x, bottom + half), (x + width, bottom + half)),
                _ => ((x + half, bottom), (x + half, bottom + height)),
            };
            let color = style.border_color(side);
            if line == Stroke::Double && border.width >= 2.0 {
                let third = border.width / 3.0;
                let (dx, dy) = if side % 2 == 0 { (0.0, third) } else { (third, 0.0) };
                self.stroke(color, third, Stroke::Solid);
                for sign in [-1.0, 1.0] {
                    self.content.move_to(from.0 + sign * dx, from.1 + sign * dy);
                    self.content.line_to(to.0 + sign * dx, to.1 + sign * dy).stroke();
                }
                continue;
            }
            self.stroke(color, border.width, line);
            self.content.move_to(from.0, from.1).line_to(to.0, to.1).stroke();
        }
    }

    fn stroke(&mut self, Color(red, green, blue): Color, width: f32, line: Stroke) {
        let [red, green, blue] = [red, green, blue].map(|part| f32::from(part) / 255.0);
        self.content.set_stroke_rgb(red, green, blue).set_line_width(width);
        let (pattern, cap) = match line {
            Stroke::Dashed => (vec![width * 3.0, width * 2.0], LineCapStyle::ButtCap),
            Stroke::Dotted => (vec![0.01, width * 2.0], LineCapStyle::RoundCap),
            _ => (Vec::new(), LineCapStyle::ButtCap),
        };
        self.content.set_dash_pattern(pattern, 0.0).set_line_cap(cap);
    }

    /// A rectangle with round corners.
    fn path(&mut self, x: f32, y: f32, width: f32, height: f32, radius: f32) {
        let content = &mut self.content;
        if radius < 0.1 {
            content.rect(x, y, width, height);
            return;
        }
        let (right, top) = (x + width, y + height);
        let near = radius * (1.0 - BEND);
        content.move_to(x + radius, y).line_to(right - radius, y);
        content.cubic_to(right - near, y, right, y + near, right, y + radius).line_to(right, top - radius);
        content.cubic_to(right, top - near, right - near, top, right - radius, top).line_to(x + radius, top);
        content.cubic_to(x + near, top, x, top - near, x, top - radius).line_to(x, y + radius);
        content.cubic_to(x, y + near, x + near, y, x + radius, y).close_path();
    }

    fn line(&mut self, line: &Line, x: f32, y: f32) {
        self.spans(line, x, y);
        for item in &line.items {
            let left = x + item.x;
            let base = self.flip(y + line.baseline - item.rise);
            match &item.kind {
                ItemKind::Glyphs { style, glyphs } => {
                    self.glyphs(glyphs, style, left, base);
                    self.decorate(style, left, base, item.width);
                    if let Some(link) = &item.link {
                        self.link(
                            link,
                            Rect::new(left, base - style.size * 0.25, left + item.width, base + style.size * 0.85),
                        );
                    }
                }
                ItemKind::Picture { number, height, alt } => {
                    self.picture(*number, left, base, (item.width, *height), alt);
                    if let Some(link) = &item.link {
                        self.link(link, Rect::new(left, base, left + item.width, base + height));
                    }
                }
                ItemKind::PageOf { id, style } => self.page_of(id, style, item, left, base),
                ItemKind::Box(_) | ItemKind::Anchor(_) | ItemKind::Gap => {}
            }
        }
    }

    /// The backgrounds of words, each as long as the words are the same element's.
    fn spans(&mut self, line: &Line, x: f32, y: f32) {
        let mut at = 0;
        while at < line.items.len() {
            let Some(span) = &line.items[at].span else {
                at += 1;
                continue;
            };
            let is_same = |item: &Item| item.span.as_ref().is_some_and(|other| Rc::ptr_eq(other, span));
            let end = at + line.items[at..].iter().take_while(|item| is_same(item)).count();
            let (first, last) = (&line.items[at], &line.items[end - 1]);
            let size = span.size;
            let top = y + line.baseline - first.rise - size * 0.93 - span.inset(0, 0.0);
            let height = size * 1.18 + span.inset(0, 0.0) + span.inset(2, 0.0);
            let area = (x + first.x, top, last.x + last.width - first.x, height);
            self.area(area, span, (true, true));
            at = end;
        }
    }

    fn link(&mut self, target: &Text, rect: Rect) {
        let is_known = match target.strip_prefix('#') {
            Some(name) => self.pages.anchors.contains_key(name),
            None => !target.is_empty() && target.is_ascii() && target.len() < 2_000,
        };
        if is_known && self.links.len() < 2_000 {
            self.links.push(Link { rect, target: target.clone() });
        }
    }

    fn glyphs(&mut self, glyphs: &[Placed], style: &Style, x: f32, base: f32) {
        let mut left = x;
        let mut rest = glyphs;
        while let Some(first) = rest.first() {
            let looks = |glyph: &Glyph| (glyph.font, glyph.is_slanted, glyph.is_thickened);
            let count = rest.iter().take_while(|placed| looks(&placed.glyph) == looks(&first.glyph)).count();
            let (run, more) = rest.split_at(count);
            self.run(run, style, left, base);
            left += run.iter().map(|placed| placed.advance).sum::<f32>();
            rest = more;
        }
    }

    /// Glyphs of one font.
    fn run(&mut self, run: &[Placed], style: &Style, x: f32, base: f32) {
        let Some(first) = run.first().map(|placed| placed.glyph) else { return };
        let size = style.size;
        let ids: Vec<u16> =
            run.iter().map(|placed| self.used.add(usize::from(placed.glyph.font), placed.glyph.id, placed.c)).collect();
        let content = &mut self.content;
        fill(content, style.color);
        content.begin_text();
        content.set_font(Name(format!("F{}", first.font).as_bytes()), size);
        let slant = if first.is_slanted { 0.21 } else { 0.0 };
        content.set_text_matrix([1.0, 0.0, slant, 1.0, x, base]);
        if first.is_thickened {
            let Color(red, green, blue) = style.color;
            let [red, green, blue] = [red, green, blue].map(|part| f32::from(part) / 255.0);
            content.set_stroke_rgb(red, green, blue).set_line_width(size * 0.03);
            content.set_dash_pattern([], 0.0).set_text_rendering_mode(TextRenderingMode::FillStroke);
        }
        let mut shown = content.show_positioned();
        let mut items = shown.items();
        let mut bytes = Vec::new();
        for (placed, id) in run.iter().zip(ids) {
            bytes.extend(id.to_be_bytes());
            let more = placed.advance - placed.glyph.advance * size;
            if more.abs() > 0.002 {
                items.show(Str(&bytes));
                items.adjust(-more / size * 1_000.0);
                bytes.clear();
            }
        }
        if !bytes.is_empty() {
            items.show(Str(&bytes));
        }
        drop(items);
        drop(shown);
        if first.is_thickened {
            self.content.set_text_rendering_mode(TextRenderingMode::Fill);
        }
        self.content.end_text();
    }

    fn decorate(&mut self, style: &Style, x: f32, base: f32, width: f32) {
        let lines = [(style.is_underlined, -0.11), (style.is_struck, 0.27)];
        for (_, place) in lines.into_iter().filter(|(is_there, _)| *is_there) {
            fill(&mut self.content, style.color);
            let thick = style.size * 0.055;
            self.content.rect(x, base + style.size * place - thick / 2.0, width, thick).fill_nonzero();
        }
    }

    /// The number of a page, at the right of its room.
    fn page_of(&mut self, id: &Text, style: &Rc<Style>, item: &Item, x: f32, base: f32) {
        let Some((page, _)) = self.pages.anchors.get(id) else { return };
        let mut glyphs = Vec::new();
        for c in (page + 1).to_string().chars() {
            let glyph = self.job.fonts.glyph(style.family, style.is_bold, style.is_italic, c);
            glyphs.push(Placed { glyph, c, advance: glyph.advance * style.size });
        }
        let width: f32 = glyphs.iter().map(|placed| placed.advance).sum();
        self.glyphs(&glyphs, style, x + item.width - width, base);
        if let Some(link) = &item.link {
            self.link(link, Rect::new(x, base - style.size * 0.25, x + item.width, base + style.size * 0.85));
        }
    }

    fn picture(&mut self, number: usize, x: f32, base: f32, (width, height): (f32, f32), _: &Text) {
        let Some(picture) = self.job.pictures.all.get(number) else { return };
        let orientation = match picture.pixels {
            Pixels::Jpeg { orientation, .. } => orientation,
            Pixels::Samples { .. } => 1,
        };
        // From the square in which PDF draws pictures to the room, turned as EXIF says.
        let matrices: BTreeMap<u8, [f32; 6]> = BTreeMap::from([
            (2, [-width, 0.0, 0.0, height, x + width, base]),
            (3, [-width, 0.0, 0.0, -height, x + width, base + height]),
            (4, [width, 0.0, 0.0, -height, x, base + height]),
            (5, [0.0, -height, -width, 0.0, x + width, base + height]),
            (6, [0.0, -height, width, 0.0, x, base + height]),
            (7, [0.0, height, width, 0.0, x, base]),
            (8, [0.0, height, -width, 0.0, x + width, base]),
        ]);
        let matrix = matrices.get(&orientation).copied().unwrap_or([width, 0.0, 0.0, height, x, base]);
        self.content.save_state().transform(matrix);
        self.content.x_object(Name(format!("P{number}").as_bytes())).restore_state();
        self.pictures.insert(number);
    }
}
