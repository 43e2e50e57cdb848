//! Rows and cells.

use std::rc::Rc;

use super::build::{Around, Builder, Piece};
use super::{Node, Row, Table, TableCell};
use crate::limits;
use crate::make::css::style::{Display, Style};
use crate::make::css::value::Length;
use crate::make::dom::{Id, Node as Source};

/// Builds the rows of a table.
pub fn build(builder: &mut Builder, id: Id, style: &Style, around: &Around) -> Table {
    let mut maker = Maker {
        table: Table { columns: Vec::new(), head: 0, rows: Vec::new(), caption: None },
        foot: Vec::new(),
        cells: 0,
        is_open: false,
    };
    let around = Around { style: Rc::new(style.clone()), link: around.link.clone(), span: None };
    maker.rows(builder, id, &around, RowGroup::Body);
    let mut table = maker.table;
    if table.head == 0 && maker.foot.is_empty() {
        table.head = usize::from(is_head(builder, id, &table));
    }
    table.rows.extend(maker.foot);
    table
}

/// Whether a table without a head begins with a row of nothing but `th`.
fn is_head(builder: &Builder, id: Id, table: &Table) -> bool {
    let dom = builder.dom;
    let mut first = dom.children(id).iter().copied().find(|child| matches!(dom.name(*child), "tr" | "tbody"));
    if let Some(body) = first.filter(|body| dom.name(*body) == "tbody") {
        first = dom.children(body).iter().copied().find(|child| dom.name(*child) == "tr");
    }
    let cells: Vec<&str> =
        first.map(|row| dom.children(row)).unwrap_or_default().iter().map(|cell| dom.name(*cell)).collect();
    table.rows.len() > 1 && cells.contains(&"th") && !cells.contains(&"td")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowGroup {
    Head,
    Body,
    Foot,
}

struct Maker {
    table: Table,
    foot: Vec<Row>,
    cells: usize,
    /// Whether the last row is one of cells without a row of their own.
    is_open: bool,
}

impl Maker {
    fn rows(&mut self, builder: &mut Builder, id: Id, around: &Around, place: RowGroup) {
        let dom = builder.dom;
        for child in dom.children(id) {
            let Source::Element(element) = &dom.nodes[*child] else { continue };
            let style = builder.cascade.style(dom, *child, &around.style);
            let is_cell = style.display == Display::Cell;
            self.is_open &= is_cell;
            match style.display {
                Display::None => {}
                Display::Column => self.columns(builder, *child, &style),
                Display::Caption => {
                    self.table.caption = Some(Box::new(builder.block(*child, element, style, around)));
                }
                Display::Rows => {
                    let place = match element.name.as_str() {
                        "thead" => RowGroup::Head,
                        "tfoot" => RowGroup::Foot,
                        _ => place,
                    };
                    let inner = Around { style: Rc::new(style), ..around.clone() };
                    self.rows(builder, *child, &inner, place);
                }
                Display::Row => {
                    let mut style = style;
                    if around.style.display == Display::Rows {
                        style.background = style.background.or(around.style.background);
                    }
                    let style = Rc::new(style);
                    let inner = Around { style: style.clone(), ..around.clone() };
                    let mut row = Row { style, cells: Vec::new() };
                    for cell in dom.children(*child) {
                        self.cell(builder, *cell, &inner, &mut row);
                    }
                    if !row.cells.is_empty() {
                        self.push(row, place);
                    }
                }
                Display::Cell => {
                    let mut row = Row { style: around.style.clone(), cells: Vec::new() };
                    if self.is_open {
                        row = self.table.rows.pop().unwrap_or(row);
                    }
                    self.cell(builder, *child, around, &mut row);
                    self.table.rows.push(row);
                    self.is_open = true;
                }
                _ => {
                    let mut row = Row { style: around.style.clone(), cells: Vec::new() };
                    self.cell(builder, *child, around, &mut row);
                    self.push(row, place);
                }
            }
        }
    }

    fn push(&mut self, row: Row, place: RowGroup) {
        match place {
            RowGroup::Foot => self.foot.push(row),
            RowGroup::Head if self.table.head == self.table.rows.len() => {
                self.table.head += 1;
                self.table.rows.push(row);
            }
            _ => self.table.rows.push(row),
        }
    }

    fn cell(&mut self, builder: &mut Builder, id: Id, around: &Around, row: &mut Row) {
        let dom = builder.dom;
        let Source::Element(element) = &dom.nodes[id] else { return };
        self.cells += 1;
        if self.cells > limits::TABLE_CELLS || row.cells.len() >= limits::PAGE_COLUMNS {
            return;
        }
        let style = builder.cascade.style(dom, id, &around.style);
        if style.display == Display::None {
            return;
        }
        let span = |name: &str| element.get(name).and_then(|value| value.trim().parse::<usize>().ok()).unwrap_or(1);
        let (columns, rows) = (span("colspan").clamp(1, limits::PAGE_COLUMNS), span("rowspan").clamp(1, 1_000));
        let node = match style.display {
            Display::Cell | Display::Block => builder.block(id, element, style, around),
            _ => {
                let mut own = around.style.child();
                own.display = Display::Block;
                let node = builder.block(id, element, style, around);
                let content = builder.content(vec![Piece::Block(node)], &Rc::new(own.clone()));
                Node::new(own, content)
            }
        };
        row.cells.push(TableCell { node, columns, rows });
    }

    fn columns(&mut self, builder: &mut Builder, id: Id, style: &Style) {
        let dom = builder.dom;
        let inner: Vec<Id> = dom.children(id).iter().copied().filter(|child| dom.name(*child) == "col").collect();
        for child in &inner {
            let own = builder.cascade.style(dom, *child, style);
            self.column(builder, *child, own.width);
        }
        if inner.is_empty() {
            self.column(builder, id, style.width);
        }
    }

    fn column(&mut self, builder: &Builder, id: Id, width: Length) {
        let span =
            builder.dom.element(id).and_then(|element| element.get("span")).and_then(|span| span.trim().parse().ok());
        for _ in 0..span.unwrap_or(1_usize).min(limits::PAGE_COLUMNS) {
            if self.table.columns.len() < limits::PAGE_COLUMNS {
                self.table.columns.push(width);
            }
        }
    }
}
