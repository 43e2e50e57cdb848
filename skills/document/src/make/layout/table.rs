//! Tables.

use std::rc::Rc;

use super::{Cell, Frag, Layout, TableFrag, TableRow};
use crate::limits;
use crate::make::css::style::{Style, Vertical};
use crate::make::css::value::Length;
use crate::make::tree::{Table, TableCell};

/// A cell with the number of its first column.
type Seat<'t> = (usize, &'t TableCell);

impl Layout<'_> {
    /// Lays out a table with its caption.
    pub fn table(&mut self, table: &Table, style: &Rc<Style>, inner: f32) -> Vec<Frag> {
        let mut frags = Vec::new();
        if let Some(caption) = &table.caption {
            frags.push(Frag::Block(self.block(caption, inner, None)));
        }
        let gap = gap(style, table);
        let widths = self.column_widths(table, style, inner);
        let mut rows: Vec<TableRow> = Vec::new();
        for (row, seats) in table.rows.iter().zip(seats(table)) {
            if !self.takes_more() {
                break;
            }
            let mut cells = Vec::new();
            for (column, cell) in seats {
                let end = (column + cell.columns).min(widths.len());
                let Some(own) = widths.get(column..end).filter(|own| !own.is_empty()) else { continue };
                let x: f32 = widths[..column].iter().map(|width| width + gap.0).sum::<f32>() + gap.0.max(0.0);
                let width = own.iter().sum::<f32>() + gap.0 * (own.len() - 1) as f32;
                let mut block = self.block(&cell.node, width, Some(width));
                block.x = x;
                block.width = width;
                (block.margin_top, block.margin_bottom) = (0.0, 0.0);
                cells.push(Cell { block, rows: cell.rows });
            }
            rows.push(TableRow { style: row.style.clone(), width: inner, height: 0.0, cells });
        }
        set_heights(&mut rows, gap.1);
        let height = rows.iter().map(|row| row.height).sum::<f32>() + gap.1 * rows.len().saturating_sub(1) as f32;
        let head = if table.head < rows.len() { table.head } else { 0 };
        frags.push(Frag::Table(TableFrag { rows, head, gap: gap.1, height }));
        frags
    }

    /// The widths of the columns of a table in a room.
    pub fn column_widths(&mut self, table: &Table, style: &Style, inner: f32) -> Vec<f32> {
        let (sizes, wanted) = self.column_sizes(table);
        let room = inner - gaps_of(gap(style, table).0, sizes.len());
        distribute(&sizes, &wanted, room.max(1.0), inner)
    }

    /// For each column the narrowest and widest width, and the width that it should have.
    pub fn column_sizes(&mut self, table: &Table) -> (Vec<(f32, f32)>, Vec<Length>) {
        let mut sizes: Vec<(f32, f32)> = Vec::new();
        let mut wanted: Vec<Length> = Vec::new();
        let mut wide: Vec<(usize, usize, (f32, f32))> = Vec::new();
        let all = seats(table);
        for (column, cell) in all.iter().flatten() {
            let end = (column + cell.columns).min(limits::PAGE_COLUMNS);
            if sizes.len() < end {
                sizes.resize(end, (0.0, 0.0));
                wanted.resize(end, Length::Auto);
            }
            if *column >= end {
                continue;
            }
            let own = self.intrinsic(&cell.node);
            if cell.columns > 1 {
                wide.push((*column, end, own));
                continue;
            }
            sizes[*column] = (sizes[*column].0.max(own.0), sizes[*column].1.max(own.1));
            wanted[*column] = wider(wanted[*column], with_inset(&cell.node.style));
        }
        for (column, width) in table.columns.iter().enumerate().take(wanted.len()) {
            wanted[column] = wider(wanted[column], *width);
        }
        for (start, end, own) in wide {
            let count = (end - start) as f32;
            let (min, max) = sizes[start..end].iter().fold((0.0, 0.0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
            for size in &mut sizes[start..end] {
                size.0 += ((own.0 - min) / count).max(0.0);
                size.1 += ((own.1 - max) / count).max(0.0);
            }
        }
        sizes.iter_mut().for_each(|size| size.1 = size.1.max(size.0));
        (sizes, wanted)
    }
}

/// The width that a cell asks for, with its borders.
fn with_inset(style: &Style) -> Length {
    match style.width {
        Length::Points(width) if !style.is_border_box => {
            Length::Points(width + style.inset(1, 0.0) + style.inset(3, 0.0))
        }
        width => width,
    }
}

fn wider(known: Length, new: Length) -> Length {
    match (known, new) {
        (Length::Points(known), Length::Points(new)) => Length::Points(known.max(new)),
        (Length::Percent(known), Length::Percent(new)) => Length::Percent(known.max(new)),
        (Length::Auto, new) => new,
        (known, _) => known,
    }
}

/// The cells of each row with their columns, where cells of the rows above leave room.
pub fn seats(table: &Table) -> Vec<Vec<Seat<'_>>> {
    // For each column, how many more rows a cell from above takes.
    let mut taken: Vec<usize> = Vec::new();
    let mut all = Vec::new();
    for row in &table.rows {
        let mut seats = Vec::new();
        let mut column = 0;
        let mut next = taken.iter().map(|rows| rows.saturating_sub(1)).collect::<Vec<_>>();
        for cell in &row.cells {
            while taken.get(column).is_some_and(|rows| *rows > 0) {
                column += 1;
            }
            if column >= limits::PAGE_COLUMNS {
                break;
            }
            seats.push((column, cell));
            let end = (column + cell.columns).min(limits::PAGE_COLUMNS);
            if next.len() < end {
                next.resize(end, 0);
            }
            next[column..end].fill(cell.rows - 1);
            column = end;
        }
        taken = next;
        all.push(seats);
    }
    all
}

/// Space between columns and between rows; less than none where borders lie on one another.
fn gap(style: &Style, table: &Table) -> (f32, f32) {
    if !style.is_collapsed {
        return (style.spacing, style.spacing);
    }
    let cells = table.rows.iter().flat_map(|row| &row.cells);
    let mut widest = [0.0_f32; 4];
    for cell in cells {
        for (side, width) in widest.iter_mut().enumerate() {
            *width = width.max(cell.node.style.border[side].size());
        }
    }
    (-widest[1].min(widest[3]), -widest[0].min(widest[2]))
}

/// The sum of the gaps between and beside columns.
fn gaps_of(gap: f32, columns: usize) -> f32 {
    if gap > 0.0 { gap * (columns + 1) as f32 } else { gap * columns.saturating_sub(1) as f32 }
}

/// The gaps that a table surely has.
pub fn gaps(style: &Style, columns: usize) -> f32 {
    if style.is_collapsed { 0.0 } else { gaps_of(style.spacing, columns) }
}

/// Widths of columns that fill the room.
fn distribute(sizes: &[(f32, f32)], wanted: &[Length], room: f32, whole: f32) -> Vec<f32> {
    let mut widths: Vec<f32> = vec![0.0; sizes.len()];
    let mut free = room;
    let mut open = Vec::new();
    for (column, size) in sizes.iter().enumerate() {
        match wanted[column].resolve(whole) {
            Some(width) if width > 0.0 => {
                widths[column] = width.max(size.0);
                free -= widths[column];
            }
            _ => open.push(column),
        }
    }
    let least: f32 = open.iter().map(|column| sizes[*column].0).sum();
    let most: f32 = open.iter().map(|column| sizes[*column].1).sum();
    let scale = |widths: &mut Vec<f32>| {
        let sum: f32 = widths.iter().sum();
        if sum > 0.0 {
            widths.iter_mut().for_each(|width| *width *= room / sum);
        }
    };
    if free < least {
        // The given widths do not fit: columns keep their longest words if they can.
        open.iter().for_each(|column| widths[*column] = sizes[*column].0);
        let fixed: f32 = widths.iter().sum::<f32>() - least;
        let smallest: f32 = sizes.iter().map(|size| size.0).sum();
        if smallest < room && fixed > 0.0 {
            let spare: f32 = (0..sizes.len()).map(|column| (widths[column] - sizes[column].0).max(0.0)).sum();
            let part = ((widths.iter().sum::<f32>() - room) / spare.max(0.01)).clamp(0.0, 1.0);
            (0..sizes.len()).for_each(|column| widths[column] -= (widths[column] - sizes[column].0).max(0.0) * part);
        } else {
            squeeze(&mut widths, sizes, room);
        }
        return widths;
    }
    if open.is_empty() {
        scale(&mut widths);
        return widths;
    }
    if most <= free {
        let extra = free - most;
        for column in &open {
            let share = if most > 0.0 { sizes[*column].1 / most } else { 1.0 / open.len() as f32 };
            widths[*column] = sizes[*column].1 + extra * share;
        }
    } else {
        let part = (free - least) / (most - least).max(0.01);
        open.iter()
            .for_each(|column| widths[*column] = sizes[*column].0 + (sizes[*column].1 - sizes[*column].0) * part);
    }
    widths
}

/// Makes columns narrower than their longest words: the widest ones first, so that those with short words stay whole.
fn squeeze(widths: &mut [f32], sizes: &[(f32, f32)], room: f32) {
    let mut sorted: Vec<f32> = sizes.iter().map(|size| size.0).collect();
    sorted.sort_by(f32::total_cmp);
    let mut rest = room;
    let mut level = room / sorted.len().max(1) as f32;
    for (number, size) in sorted.iter().enumerate() {
        level = rest / (sorted.len() - number) as f32;
        if *size > level {
            break;
        }
        rest -= size;
    }
    widths.iter_mut().zip(sizes).for_each(|(width, size)| *width = size.0.min(level).max(1.0));
}

/// Sets the heights of rows from those of their cells, and moves what is in the cells.
fn set_heights(rows: &mut [TableRow], gap: f32) {
    for row in rows.iter_mut() {
        let own = row.cells.iter().filter(|cell| cell.rows == 1).map(|cell| cell.block.height);
        row.height = own.fold(0.0, f32::max);
    }
    for number in 0..rows.len() {
        for at in 0..rows[number].cells.len() {
            let (span, height) = (rows[number].cells[at].rows, rows[number].cells[at].block.height);
            if span < 2 {
                continue;
            }
            // The last row gets the height that the cell needs beyond the other rows.
            let last = (number + span - 1).min(rows.len() - 1);
            let others: f32 = rows[number..last].iter().map(|row| row.height + gap).sum();
            rows[last].height = rows[last].height.max(height - others);
        }
    }
    for number in 0..rows.len() {
        for at in 0..rows[number].cells.len() {
            let span = rows[number].cells[at].rows;
            let last = (number + span - 1).min(rows.len() - 1);
            let room: f32 = (number..=last).map(|row| rows[row].height).sum::<f32>() + gap * (last - number) as f32;
            let block = &mut rows[number].cells[at].block;
            let free = (room - block.height).max(0.0);
            let shift = match block.style.vertical {
                Vertical::Middle => free / 2.0,
                Vertical::Bottom => free,
                _ => 0.0,
            };
            block.inset[0] += shift;
            block.height += free;
            block.min_height = block.height;
        }
    }
}
