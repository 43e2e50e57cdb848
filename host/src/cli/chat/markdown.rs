//! Streams Markdown to a terminal: each block is printed once, when it is complete.
//!
//! The text is processed line by line, so that the output does not depend on how it was split into pieces. Blocks are
//! printed separately; code and list items are printed before their block ends.

mod block;
mod code;
mod inline;
mod table;

use self::code::CodeColours;
use super::super::show::charts::Charts;
use super::super::show::{Paint, printable};
use kiso_plan::tags::{closes, fence_mark};
use pulldown_cmark::{Event, Options, Parser, Tag};

/// Maximum bytes of an incomplete block; a larger one is printed in parts. This also limits how often the same text is
/// parsed.
const MAX_BLOCK: usize = 16 << 10;

/// Columns if the terminal does not report them.
pub(super) const WIDTH: usize = 80;

/// The appearance of the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks {
    pub paint: Paint,
    /// Columns of the terminal.
    pub width: usize,
}

/// A text that is being printed.
#[derive(Debug)]
pub(super) struct Markdown {
    looks: Looks,
    charts: Charts,
    /// The unfinished last line.
    line: String,
    /// Complete lines of the unfinished block.
    block: String,
    /// The fence that opened code, its indentation, and the colours of the code.
    fence: Option<(String, usize, CodeColours)>,
    /// Set if items of the current list were printed already; contains the number of the next item.
    list: Option<Option<u64>>,
}

/// A top-level block.
struct Top {
    kind: Kind,
    /// The start of its first line.
    start: usize,
    /// The starts of its items' lines, if it is a list, and its first number.
    items: Vec<usize>,
    number: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    /// A block that may continue after an empty line.
    Open,
    Text,
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

impl Markdown {
    pub(super) fn new(looks: Looks) -> Markdown {
        Markdown {
            looks,
            charts: Charts::default(),
            line: String::new(),
            block: String::new(),
            fence: None,
            list: None,
        }
    }

    /// Changes the width of text printed from now on.
    pub(super) fn resize(&mut self, columns: usize) {
        self.looks.width = columns;
    }

    /// Adds a piece of text. Returns the finished output as complete lines.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let shown = self.charts.push(piece);
        self.push_shown(&shown)
    }

    fn push_shown(&mut self, piece: &str) -> String {
        let mut out = String::new();
        let mut rest = piece;
        while let Some((line, more)) = rest.split_once('\n') {
            self.line.push_str(line);
            let line = std::mem::take(&mut self.line);
            self.take(&line, &mut out);
            rest = more;
        }
        self.line.push_str(rest);
        out
    }

    /// Ends the text. Returns the rest of its output. Another text may follow.
    pub(super) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.charts).finish();
        let mut out = self.push_shown(&held);
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(&line, &mut out);
        }
        self.flush(&mut out);
        self.fence = None;
        out
    }

    /// Returns the last line that is not printed yet.
    pub(super) fn unfinished(&self) -> &str {
        match self.line.trim() {
            "" => self.block.trim_end().lines().next_back().unwrap_or_default(),
            line => line,
        }
    }

    fn take(&mut self, line: &str, out: &mut String) {
        let line = printable(line.strip_suffix('\r').unwrap_or(line));
        if let Some((mark, indent, colours)) = &mut self.fence {
            match fence_mark(&line) {
                Some(closing) if closes(&line, mark, closing) => self.fence = None,
                _ => {
                    out.push_str(&block::code_line(self.looks, unindented(&line, *indent), colours));
                    out.push('\n');
                }
            }
            return;
        }
        let mark = fence_mark(&line).filter(|_| self.block.trim().is_empty() || self.tops_are(Kind::Text));
        if let Some(mark) = mark {
            let info = line.trim_start().trim_start_matches(['`', '~']);
            let indent = line.len() - line.trim_start_matches(' ').len();
            let fence = (mark.to_owned(), indent, CodeColours::from_info(info));
            self.flush(out);
            out.push('\n');
            self.fence = Some(fence);
            return;
        }
        self.block.push_str(&line);
        self.block.push('\n');
        self.cut(line.trim().is_empty(), out);
    }

    fn tops_are(&self, kind: Kind) -> bool {
        tops(&self.block).iter().all(|top| top.kind == kind)
    }

    /// Prints the complete blocks.
    fn cut(&mut self, after_empty_line: bool, out: &mut String) {
        let tops = tops(&self.block);
        let last = tops.last();
        let finished = match last {
            _ if self.block.len() > MAX_BLOCK => self.block.len(),
            Some(last) if last.kind == Kind::Text && after_empty_line => self.block.len(),
            None if after_empty_line => self.block.len(),
            // All items before the last one.
            Some(Top { kind: Kind::List, items, .. }) if items.len() > 1 => items[items.len() - 1],
            Some(last) => last.start,
            None => 0,
        };
        if finished == 0 {
            return;
        }
        let rest = self.block.split_off(finished);
        let next = last.filter(|_| !rest.is_empty()).and_then(|last| self.continued(&tops, last));
        let block = std::mem::replace(&mut self.block, rest);
        block::render(self.looks, &block, self.list, out);
        self.list = next;
    }

    /// Returns the number with which a partly printed list continues; `None` if none of its items is printed.
    fn continued(&self, tops: &[Top], last: &Top) -> Option<Option<u64>> {
        let before = last.items.len().checked_sub(1).filter(|_| last.kind == Kind::List)?;
        if before == 0 {
            return None;
        }
        // Only the first remaining block can have begun earlier.
        let number = if tops.len() == 1 { self.list.unwrap_or(last.number) } else { last.number };
        Some(number.map(|number| number.saturating_add(before as u64)))
    }

    fn flush(&mut self, out: &mut String) {
        let block = std::mem::take(&mut self.block);
        block::render(self.looks, &block, self.list.take(), out);
    }
}

/// Returns the top-level blocks.
fn tops(text: &str) -> Vec<Top> {
    let mut tops: Vec<Top> = Vec::new();
    let mut depth = 0_usize;
    let line_of = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let (kind, number) = match &tag {
                        Tag::List(number) => (Kind::List, *number),
                        Tag::HtmlBlock | Tag::CodeBlock(_) => (Kind::Open, None),
                        _ => (Kind::Text, None),
                    };
                    tops.push(Top { kind, start: line_of(range.start), items: Vec::new(), number });
                } else if depth == 1
                    && tag == Tag::Item
                    && let Some(top) = tops.last_mut()
                {
                    top.items.push(line_of(range.start));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                tops.push(Top { kind: Kind::Text, start: line_of(range.start), items: Vec::new(), number: None });
            }
            _ => {}
        }
    }
    tops
}

fn unindented(line: &str, indent: usize) -> &str {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    &line[spaces.min(indent)..]
}

#[cfg(test)]
mod tests;
