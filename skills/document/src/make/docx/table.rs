//! Tables, and boxes beside one another as tables without lines.

use super::body::{Around, Body, borders_xml};
use super::styles::{Kind, hex};
use super::twips;
use crate::make::css::style::{Style, Vertical};
use crate::make::css::value::Length;
use crate::make::layout::{Block, Frag, seats};
use crate::make::tree::{Content, Node, Table};

/// Points of the narrowest cell, and of the room that text may need in another font.
const LEAST: f32 = 1.0;
const SLACK: f32 = 8.0;

impl Body<'_, '_> {
    pub fn table(&mut self, table: &Table, style: &std::rc::Rc<Style>, around: Around) {
        if let Some(caption) = &table.caption {
            self.node(caption, around);
        }
        let all = seats(table);
        let mut width = around.width;
        if let Some(own) = style.width.resolve(around.width) {
            width = own.min(width);
        } else {
            let (sizes, _) = self.layout.column_sizes(table);
            width = sizes.iter().map(|size| size.1).sum::<f32>().min(width);
        }
        let widths = self.layout.column_widths(table, style, width);
        if widths.is_empty() {
            return;
        }
        let align = match (style.margin[3], style.margin[1]) {
            (Length::Auto, Length::Auto) => "<w:jc w:val=\"center\"/>",
            (Length::Auto, _) => "<w:jc w:val=\"right\"/>",
            _ => "",
        };
        self.begin(&widths, align, true);
        // For each column the rows that a cell from above still takes, and how many columns it has.
        let mut taken: Vec<(usize, usize, String)> = vec![(0, 0, String::new()); widths.len()];
        for (number, (row, seats)) in table.rows.iter().zip(all).enumerate() {
            if self.is_full() {
                break;
            }
            let head = if number < table.head { "<w:tblHeader/>" } else { "" };
            self.parts.xml.push_str(&format!("<w:tr><w:trPr><w:cantSplit/>{head}</w:trPr>"));
            let mut column = 0;
            let mut seats = seats.into_iter().peekable();
            while column < widths.len() {
                if let Some((_, cell)) = seats.next_if(|(at, _)| *at == column) {
                    let span = cell.columns.min(widths.len() - column);
                    let own: f32 = widths[column..column + span].iter().sum();
                    let merge = if cell.rows > 1 { "<w:vMerge w:val=\"restart\"/>" } else { "" };
                    let shade = cell.node.style.background.or(row.style.background);
                    self.cell(&cell.node, (own, span), merge, shade, around);
                    let style = &cell.node.style;
                    let borders =
                        if cell.rows > 1 { borders_xml("tcBorders", &style.border, style, 0) } else { String::new() };
                    taken[column] = (cell.rows, span, borders);
                    column += span;
                } else if taken[column].0 > 0 && taken[column].1 > 0 {
                    let span = taken[column].1;
                    let own: f32 = widths[column..column + span].iter().sum();
                    let merge = format!("<w:vMerge/>{}", taken[column].2);
                    self.empty_cell(own, span, &merge);
                    column += span;
                } else {
                    self.empty_cell(widths[column], 1, "");
                    column += 1;
                }
            }
            taken.iter_mut().for_each(|(rows, ..)| *rows = rows.saturating_sub(1));
            self.parts.xml.push_str("</w:tr>");
        }
        self.end();
    }

    fn begin(&mut self, widths: &[f32], align: &str, has_style: bool) {
        let style = if has_style { "<w:tblStyle w:val=\"TableGrid\"/>" } else { "" };
        let all: i32 = widths.iter().map(|width| twips(*width)).sum();
        self.parts.xml.push_str(&format!("<w:tbl><w:tblPr>{style}<w:tblW w:w=\"{all}\" w:type=\"dxa\"/>{align}<w:tblLayout w:type=\"fixed\"/></w:tblPr><w:tblGrid>"));
        for width in widths {
            self.parts.xml.push_str(&format!("<w:gridCol w:w=\"{}\"/>", twips(*width)));
        }
        self.parts.xml.push_str("</w:tblGrid>");
    }

    /// Ends a table, with the paragraph that must be between two.
    fn end(&mut self) {
        self.parts.xml.push_str("</w:tbl><w:p><w:pPr><w:spacing w:before=\"0\" w:after=\"0\" w:line=\"160\" w:lineRule=\"exact\"/></w:pPr></w:p>");
    }

    fn empty_cell(&mut self, width: f32, span: usize, merge: &str) {
        self.parts.xml.push_str(&format!(
            "<w:tc><w:tcPr><w:tcW w:w=\"{}\" w:type=\"dxa\"/>{}{merge}</w:tcPr><w:p><w:pPr><w:spacing w:before=\"0\" w:after=\"0\"/></w:pPr></w:p></w:tc>",
            twips(width),
            span_xml(span)
        ));
    }

    fn cell(
        &mut self,
        node: &Node,
        (width, span): (f32, usize),
        merge: &str,
        shade: Option<crate::make::css::value::Color>,
        around: Around,
    ) {
        let style = &node.style;
        let mut properties = format!("<w:tcW w:w=\"{}\" w:type=\"dxa\"/>{}{merge}", twips(width), span_xml(span));
        properties.push_str(&borders_xml("tcBorders", &style.border, style, 0));
        if let Some(color) = shade {
            properties.push_str(&format!("<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"{}\"/>", hex(color)));
        }
        let padding = [0, 3, 2, 1].map(|side| twips(style.padding[side].or_zero(0.0).clamp(0.0, 100.0)));
        let [top, left, bottom, right] = padding;
        properties.push_str(&format!(
            "<w:tcMar><w:top w:w=\"{top}\" w:type=\"dxa\"/><w:left w:w=\"{left}\" w:type=\"dxa\"/><w:bottom w:w=\"{bottom}\" w:type=\"dxa\"/><w:right w:w=\"{right}\" w:type=\"dxa\"/></w:tcMar>"
        ));
        match style.vertical {
            Vertical::Middle => properties.push_str("<w:vAlign w:val=\"center\"/>"),
            Vertical::Bottom => properties.push_str("<w:vAlign w:val=\"bottom\"/>"),
            _ => {}
        }
        self.parts.xml.push_str(&format!("<w:tc><w:tcPr>{properties}</w:tcPr>"));
        let start = self.parts.xml.len();
        let inner = Around {
            kind: Kind::Normal,
            list: None,
            has_mark: false,
            indent: 0.0,
            shade: None,
            borders: None,
            width: (width - style.inset(1, width) - style.inset(3, width)).max(10.0),
        };
        let _ = around;
        self.content(node, inner);
        // A cell ends with a paragraph.
        let xml = &self.parts.xml[start..];
        if !xml.ends_with("</w:p>") {
            self.parts.xml.push_str("<w:p><w:pPr><w:spacing w:after=\"0\"/></w:pPr></w:p>");
        }
        self.parts.xml.push_str("</w:tc>");
    }

    /// Writes the content of a box whose borders are drawn already.
    fn content(&mut self, node: &Node, inner: Around) {
        let mut own = (*node.style).clone();
        own.background = None;
        own.border = [crate::make::css::style::Border::NONE; 4];
        own.margin = [Length::Points(0.0); 4];
        match &node.content {
            Content::Blocks(nodes)
                if !matches!(
                    own.display,
                    crate::make::css::style::Display::Flex | crate::make::css::style::Display::Grid
                ) =>
            {
                self.nodes(nodes, inner);
            }
            Content::Inline(inlines) => {
                let copy = Node::new(own, Content::Inline(inlines.clone()));
                self.node(&copy, inner);
            }
            _ => self.node(node, inner),
        }
    }

    /// Boxes beside one another.
    pub fn beside(&mut self, nodes: &[Node], style: &std::rc::Rc<Style>, around: Around) {
        let inset = style.inset(1, around.width) + style.inset(3, around.width);
        let room = (around.width - inset).max(20.0);
        let rows = match style.display {
            crate::make::css::style::Display::Grid => self.layout.grid_rows(nodes, style, room),
            _ => self.layout.flex_rows(nodes, style, room),
        };
        let mut nodes: Vec<&Node> = nodes.iter().collect();
        if style.flex.reversed {
            nodes.reverse();
        }
        let mut rest = nodes.into_iter();
        for row in rows {
            let Frag::Row(row) = row else { continue };
            let spots = spots(&row.cells, room);
            let widths: Vec<f32> = spots.iter().map(|(width, _)| *width).collect();
            let shade = around.shade.map_or(String::new(), |color| {
                format!("<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"{}\"/>", hex(color))
            });
            self.begin(&widths, "", false);
            self.parts.xml.push_str("<w:tr>");
            for (width, is_box) in spots {
                match if is_box { rest.next() } else { None } {
                    Some(node) => self.cell(node, (width, 1), "", node.style.background.or(around.shade), around),
                    None => self.empty_cell(width, 1, &shade),
                }
            }
            self.parts.xml.push_str("</w:tr>");
            self.end();
        }
    }
}

/// The widths of boxes beside one another and of the gaps between them.
fn spots(cells: &[Block], room: f32) -> Vec<(f32, bool)> {
    let mut spots: Vec<(f32, bool)> = Vec::new();
    let mut end = 0.0;
    // In another font, text may be a little wider: boxes that are not seen take some of the gaps beside them.
    let slack = |cell: Option<&Block>, gap: f32| match cell {
        Some(cell) if !cell.is_seen => ((gap - LEAST) / 2.0).clamp(0.0, SLACK),
        _ => 0.0,
    };
    for (number, cell) in cells.iter().enumerate() {
        let gap = cell.x - end;
        let (before, own) =
            (slack(number.checked_sub(1).and_then(|before| cells.get(before)), gap), slack(Some(cell), gap));
        if let Some((last, true)) = spots.last_mut() {
            *last += before;
        }
        if gap - before - own >= LEAST {
            spots.push((gap - before - own, false));
        }
        spots.push((cell.width.max(LEAST) + own, true));
        end = cell.x + cell.width;
    }
    if room - end > LEAST {
        spots.push((room - end, false));
    }
    spots
}

fn span_xml(span: usize) -> String {
    if span > 1 { format!("<w:gridSpan w:val=\"{span}\"/>") } else { String::new() }
}
