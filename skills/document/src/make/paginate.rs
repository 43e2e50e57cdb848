//! Puts boxes on pages.
//!
//! Places are counted from the top of the first page on, page below page, so that a box knows where it begins and ends whatever lies
//! between. Lines and rows do not lie across the end of a page.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::css::style::Style;
use super::layout::{Block, Frag, ItemKind, Line, Row, TableFrag, TableRow, between, is_seen};
use super::tree::Text;
use crate::limits;

/// The part of a page below which a table is not divided.
const SMALL: f64 = 0.25;

/// Something to draw, with its place from the top of the first page on.
#[derive(Debug)]
pub struct Drawn<'a> {
    pub x: f32,
    pub top: f64,
    pub bottom: f64,
    pub shape: Shape<'a>,
}

#[derive(Debug)]
pub enum Shape<'a> {
    Box { width: f32, style: &'a Rc<Style> },
    Line(&'a Line),
}

/// The pages of a document.
#[derive(Debug, Default)]
pub struct Pages<'a> {
    pub drawn: Vec<Drawn<'a>>,
    pub count: usize,
    /// Where links lead to.
    pub anchors: HashMap<Text, (usize, f32)>,
    pub is_cut: bool,
}

struct Paginator<'a> {
    pages: Pages<'a>,
    height: f64,
    /// Tables that go on, whose heads are repeated, with their left edges.
    repeated: Vec<(&'a TableFrag, f32)>,
    /// Tables and pages that have their heads.
    headed: HashSet<(*const TableFrag, usize)>,
    /// Bullets whose line comes.
    markers: Vec<(&'a Line, f32)>,
    /// Whether the next box begins a page.
    breaks: bool,
}

/// Lets boxes begin where there is room. `fixed` are those that each page has, with their places.
pub fn paginate<'a>(root: &'a Block, fixed: &'a [(Block, f32)], height: f32) -> Pages<'a> {
    let mut paginator = Paginator {
        pages: Pages::default(),
        height: f64::from(height),
        repeated: Vec::new(),
        headed: HashSet::new(),
        markers: Vec::new(),
        breaks: false,
    };
    let end = paginator.block(root, 0.0, 0.0);
    let last = paginator.pages.drawn.iter().map(|drawn| drawn.bottom).fold(0.0, f64::max);
    let last = if paginator.breaks { last } else { end.max(last).min(last + paginator.height) };
    paginator.pages.count = ((last - 0.05) / paginator.height).floor().max(0.0) as usize + 1;
    paginator.breaks = false;
    for page in 0..paginator.pages.count {
        for (block, y) in fixed {
            paginator.block(block, 0.0, page as f64 * paginator.height + f64::from(*y));
        }
    }
    paginator.pages
}

impl<'a> Paginator<'a> {
    fn page(&self, y: f64) -> usize {
        ((y + 0.02) / self.height).floor().max(0.0) as usize
    }

    fn offset(&self, y: f64) -> f64 {
        (y - self.page(y) as f64 * self.height).max(0.0)
    }

    fn is_at_top(&self, y: f64) -> bool {
        self.offset(y) <= self.reserved() + 0.05
    }

    /// The height of the heads that each page begins with.
    fn reserved(&self) -> f64 {
        self.repeated.iter().map(|(table, _)| f64::from(head_height(table))).sum()
    }

    fn fits(&self, y: f64, height: f32) -> bool {
        self.offset(y) + f64::from(height) <= self.height + 0.3
    }

    /// The beginning of the next page, below the heads of tables.
    fn advance(&mut self, y: f64) -> f64 {
        self.breaks = false;
        let page = self.page(y) + 1;
        if page >= limits::PAGES {
            self.pages.is_cut = true;
            return y;
        }
        self.begin(page)
    }

    fn begin(&mut self, page: usize) -> f64 {
        let mut y = page as f64 * self.height;
        let repeated = std::mem::take(&mut self.repeated);
        let markers = std::mem::take(&mut self.markers);
        for (table, x) in &repeated {
            let mut at = y;
            let is_new = self.headed.insert((std::ptr::from_ref(*table), page));
            for row in table.rows.iter().take(table.head).filter(|_| is_new) {
                self.table_row(row, *x, at, &[]);
                at += f64::from(row.height + table.gap);
            }
            y += f64::from(head_height(table));
        }
        self.repeated = repeated;
        self.markers = markers;
        y
    }

    /// Where something of a height can begin.
    fn settle(&mut self, y: f64, height: f32) -> f64 {
        if self.breaks {
            return if self.is_at_top(y) && y < 0.1 { y } else { self.advance(y) };
        }
        if self.offset(y) < 0.02 && !self.repeated.is_empty() && self.page(y) > 0 {
            return self.begin(self.page(y));
        }
        if self.fits(y, height) || self.is_at_top(y) { y } else { self.advance(y) }
    }

    fn block(&mut self, block: &'a Block, x: f32, y: f64) -> f64 {
        let style = &block.style;
        let mut y = y;
        if style.break_before && !self.is_at_top(y) {
            self.breaks = true;
        }
        if self.breaks {
            y = self.settle(y, 0.0);
        }
        if style.keeps_together && !self.fits(y, block.height) && f64::from(block.height) < self.height {
            y = self.settle(y, block.height);
        }
        let x = x + block.x;
        let mark = self.pages.drawn.len();
        if block.is_seen {
            let shape = Shape::Box { width: block.width, style };
            self.pages.drawn.push(Drawn { x, top: y, bottom: y, shape });
        }
        let depth = self.markers.len();
        if let Some(marker) = &block.marker {
            self.markers.push((marker, x + block.inset[3]));
        }
        let start = y;
        let mut y = self.children(&block.children, x + block.inset[3], y + f64::from(block.inset[0]));
        if self.markers.len() > depth {
            self.markers.truncate(depth);
            if let Some(marker) = &block.marker {
                self.draw_line(marker, x + block.inset[3], y);
            }
        }
        y += f64::from(block.inset[2]);
        // A box that is higher than its content does not go on to the next page for that.
        let least = start + f64::from(block.min_height);
        if y < least {
            let end = (self.page(y) + 1) as f64 * self.height;
            y = least.min(end.max(y));
        }
        // A box that began where no line of it had room begins with its first line.
        let first = self.pages.drawn.get(mark + usize::from(block.is_seen)).map(|drawn| drawn.top);
        let begin = first.filter(|first| self.page(*first) > self.page(start) && *first <= y);
        let begin = begin.map_or(start, |first| self.page(first) as f64 * self.height);
        if let Some(id) = &block.id {
            self.anchor(id, begin.max(start));
        }
        if block.is_seen {
            let drawn = &mut self.pages.drawn[mark];
            (drawn.top, drawn.bottom) = (begin.max(start), y);
        }
        self.breaks |= style.break_after;
        y
    }

    fn anchor(&mut self, id: &Text, y: f64) {
        let place = (self.page(y), self.offset(y) as f32);
        self.pages.anchors.entry(id.clone()).or_insert(place);
    }

    fn children(&mut self, frags: &'a [Frag], x: f32, y: f64) -> f64 {
        let mut y = y;
        let mut above = 0.0;
        for (number, frag) in frags.iter().enumerate() {
            if self.pages.is_cut {
                return y;
            }
            let (top, bottom) = frag.margins();
            let margin = if number == 0 { top } else { between(above, top) };
            above = bottom;
            if !(self.is_at_top(y) && y < 0.1) || margin < 0.0 {
                let below = y + f64::from(margin);
                // At the end of a page the space between two blocks is not carried over.
                y = if self.page(below) > self.page(y) { self.page(below) as f64 * self.height } else { below };
            }
            let need = self.need(&frags[number..]);
            if self.breaks || (need > 0.0 && !self.fits(y, need) && f64::from(need) < self.height - self.reserved()) {
                y = self.settle(y, need);
            }
            y = match frag {
                Frag::Block(block) => self.block(block, x, y),
                Frag::Line(line) => self.line(line, x, y),
                Frag::Row(row) => self.row(row, x, y),
                Frag::Table(table) => self.table(table, x, y),
            };
        }
        if frags.is_empty() { y } else { y + f64::from(above) }
    }

    /// The height that must be free so that the first of these begins here.
    fn need(&self, frags: &[Frag]) -> f32 {
        let mut need = 0.0;
        for (number, frag) in frags.iter().enumerate() {
            match frag {
                Frag::Block(block) if block.heading.is_some() && number < 8 => {
                    let (top, bottom) = frag.margins();
                    need += if number > 0 { top } else { 0.0 } + block.height + bottom;
                }
                Frag::Line(line) if number == 0 => {
                    // Neither the first nor the last line of a paragraph stands alone.
                    return match frags {
                        [_, Frag::Line(second), Frag::Line(third)] => line.height + second.height + third.height,
                        [_, Frag::Line(second)] => line.height + second.height,
                        _ => line.height,
                    };
                }
                _ if number == 0 => return 0.0,
                _ => return need + frag.margins().0.max(0.0) + head(std::slice::from_ref(frag), self.height as f32),
            }
        }
        need
    }

    fn line(&mut self, line: &'a Line, x: f32, y: f64) -> f64 {
        let y = self.settle(y, line.height);
        for (marker, left) in std::mem::take(&mut self.markers) {
            let shift = f64::from(line.baseline - marker.baseline);
            self.draw_line(marker, left, y + shift);
        }
        self.draw_line(line, x, y);
        y + f64::from(line.height)
    }

    fn draw_line(&mut self, line: &'a Line, x: f32, y: f64) {
        if self.pages.drawn.len() > limits::FRAGMENTS * 4 {
            self.pages.is_cut = true;
            return;
        }
        self.pages.drawn.push(Drawn { x, top: y, bottom: y + f64::from(line.height), shape: Shape::Line(line) });
        for item in &line.items {
            match &item.kind {
                ItemKind::Anchor(id) => self.anchor(id, y),
                ItemKind::Box(block) => {
                    let top = y + f64::from(line.baseline - item.rise + block.margin_top);
                    let (repeated, breaks) = (std::mem::take(&mut self.repeated), std::mem::take(&mut self.breaks));
                    self.block(block, x + item.x, top);
                    (self.repeated, self.breaks) = (repeated, breaks);
                }
                _ => {}
            }
        }
    }

    fn row(&mut self, row: &'a Row, x: f32, y: f64) -> f64 {
        let mut y = y;
        if self.breaks || (!self.fits(y, row.height) && f64::from(row.height) < self.height * 0.4) {
            y = self.settle(y, row.height);
        }
        let mut end = y;
        for block in &row.cells {
            let bottom = self.block(block, x, y + f64::from(block.margin_top));
            end = end.max(bottom + f64::from(block.margin_bottom));
        }
        end
    }

    fn table(&mut self, table: &'a TableFrag, x: f32, y: f64) -> f64 {
        // A small table is not divided.
        let is_small = f64::from(table.height) < self.height * SMALL;
        let mut y = self.settle(y, if is_small { table.height } else { 0.0 });
        let repeats = table.head > 0 && f64::from(head_height(table)) < self.height * 0.4;
        let mut number = 0;
        let page = self.page(y);
        while number < table.rows.len() && !self.pages.is_cut {
            if number == table.head && repeats {
                self.headed.insert((std::ptr::from_ref(table), page));
                self.repeated.push((table, x));
            }
            // Rows that a cell holds together.
            let mut end = number + 1;
            let mut at = number;
            while at < end {
                let reach = table.rows[at].cells.iter().map(|cell| at + cell.rows).max().unwrap_or(end);
                end = end.max(reach.min(table.rows.len()));
                at += 1;
            }
            let rows = &table.rows[number..end];
            let height = rows.iter().map(|row| row.height).sum::<f32>() + table.gap * (rows.len() - 1) as f32;
            let room = (self.height - self.reserved()) * if rows.len() > 1 { 0.9 } else { 0.6 };
            if f64::from(height) < room || self.offset(y) < 0.02 || self.breaks {
                y = self.settle(y, height);
            }
            for (at, row) in rows.iter().enumerate() {
                if rows.len() > 1 && f64::from(height) >= room {
                    y = self.settle(y, row.height);
                }
                y = self.table_row(row, x, y, &rows[at..]) + f64::from(table.gap);
            }
            number = end;
        }
        if repeats && self.repeated.last().is_some_and(|(last, _)| std::ptr::eq(*last, table)) {
            self.repeated.pop();
        }
        y - f64::from(table.gap)
    }

    fn table_row(&mut self, row: &'a TableRow, x: f32, y: f64, rows: &[TableRow]) -> f64 {
        let mark = self.pages.drawn.len();
        let has_background = row.style.background.is_some() && is_seen(&row.style);
        if has_background {
            let shape = Shape::Box { width: row.width, style: &row.style };
            self.pages.drawn.push(Drawn { x, top: y, bottom: y + f64::from(row.height), shape });
        }
        let mut end = y + f64::from(row.height);
        let mut boxes = Vec::new();
        for cell in &row.cells {
            let start = self.pages.drawn.len();
            let bottom = self.block(&cell.block, x, y);
            if cell.rows == 1 {
                end = end.max(bottom);
            }
            if cell.block.is_seen && (cell.rows == 1 || rows.is_empty()) {
                boxes.push(start);
            }
        }
        if has_background {
            self.pages.drawn[mark].bottom = end;
        }
        // Cells are as high as their row.
        boxes.into_iter().for_each(|at| self.pages.drawn[at].bottom = end);
        end
    }
}

/// The height of the head of a table with the gap below it.
fn head_height(table: &TableFrag) -> f32 {
    table.rows.iter().take(table.head).map(|row| row.height + table.gap).sum()
}

/// The height of what begins a box and is not divided.
fn head(frags: &[Frag], page: f32) -> f32 {
    match frags {
        [] => 0.0,
        [Frag::Line(first), Frag::Line(second), ..] => first.height + second.height,
        [Frag::Line(line), ..] => line.height,
        [Frag::Block(block), rest @ ..] => {
            if block.style.keeps_together && block.height < page {
                return block.height;
            }
            let own = block.inset[0] + head(&block.children, page);
            // A heading inside has something below it, too.
            if block.heading.is_some() { block.height + block.margin_bottom + head(rest, page) } else { own }
        }
        [Frag::Row(row), ..] if row.height < page * 0.4 => row.height,
        [Frag::Row(row), ..] => {
            row.cells.iter().map(|cell| cell.inset[0] + head(&cell.children, page)).fold(0.0, f32::max)
        }
        [Frag::Table(table), ..] => {
            let rows = table.rows.iter().take(table.head + 1).map(|row| row.height + table.gap).sum::<f32>();
            if f64::from(table.height) < f64::from(page) * SMALL { table.height } else { rows.min(page * 0.5) }
        }
    }
}
