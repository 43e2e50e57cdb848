//! Prints complete blocks as lines.

use super::code::CodeColours;
use super::inline::{Inline, Style};
use super::table::Table;
use super::{Looks, options};
use crate::cli::show::printable;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

/// How far code stands to the right.
const CODE_INDENT: &str = "    ";

/// Columns of a horizontal rule.
const RULE: usize = 24;

/// Minimum columns of a text, however deep it is nested.
const NARROWEST: usize = 16;

/// Returns a line of code.
pub(super) fn code_line(looks: Looks, line: &str, colours: &mut CodeColours) -> String {
    if line.is_empty() {
        return String::new();
    }
    format!("{CODE_INDENT}{}", colours.line(looks.paint, &line.replace('\t', "    ")))
}

/// Prints blocks, each after an empty line. `list` is set if the first one continues a partly printed list, and contains the
/// number of its next item.
pub(super) fn render(looks: Looks, text: &str, list: Option<Option<u64>>, out: &mut String) {
    if text.trim().is_empty() {
        return;
    }
    let mut page = Page {
        looks,
        out,
        stands: Vec::new(),
        lists: Vec::new(),
        continued: list,
        inline: Inline::default(),
        table: None,
        code: None,
        links: Vec::new(),
        apart: false,
        empty: true,
    };
    for event in Parser::new_ext(text, options()) {
        page.take(event);
    }
    page.flush();
    if page.empty {
        // The text consists of definitions of links. It is printed unchanged, because links in other blocks do not use them.
        out.push('\n');
        text.trim().lines().for_each(|line| out.extend([line, "\n"]));
    }
}

/// The prefixes of the first line and of the lines after it.
struct Stand {
    first: Option<String>,
    rest: String,
    columns: usize,
}

struct Page<'a> {
    looks: Looks,
    out: &'a mut String,
    stands: Vec<Stand>,
    /// The number of the next item of each open list.
    lists: Vec<Option<u64>>,
    continued: Option<Option<u64>>,
    inline: Inline,
    table: Option<Table>,
    code: Option<(String, CodeColours)>,
    /// The start of the text of a link or image, and its target.
    links: Vec<(usize, String)>,
    /// Whether the next block inside of an item needs an empty line before it.
    apart: bool,
    /// Whether nothing was printed yet.
    empty: bool,
}

impl Page<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((code, _)) => code.push_str(&text),
                None => self.inline.text(&printable(&text)),
            },
            Event::Code(text) => {
                let mark = if self.looks.paint.is_coloured() { "" } else { "`" };
                self.inline.styled(Style::CODE, &format!("{mark}{}{mark}", printable(&text)));
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.inline.text(printable(&text).trim_end_matches('\n'));
                if text.ends_with('\n') {
                    self.inline.end_line();
                }
            }
            // Line breaks of the source are kept, so that text that is not Markdown keeps its form.
            Event::SoftBreak | Event::HardBreak => self.inline.end_line(),
            Event::Rule => {
                self.block();
                let rule = "─".repeat(RULE.min(self.looks.width));
                self.line(&self.looks.paint.dim(&rule));
            }
            Event::TaskListMarker(done) => self.inline.text(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline.text(&printable(&text));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let coloured = self.looks.paint.is_coloured();
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                self.inline.begin(Style::BOLD);
                if !coloured {
                    self.inline.text(&format!("{} ", "#".repeat(depth(level))));
                }
            }
            Tag::BlockQuote(_) => {
                self.block();
                let rest = if coloured { self.looks.paint.dim("│ ") } else { "> ".to_owned() };
                self.stands.push(Stand { first: None, rest, columns: 2 });
                self.apart = false;
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let colours = match &kind {
                    CodeBlockKind::Fenced(info) => CodeColours::from_info(info),
                    CodeBlockKind::Indented => CodeColours::default(),
                };
                self.code = Some((String::new(), colours));
            }
            Tag::List(number) => self.list(number),
            Tag::Item => self.item(),
            Tag::Emphasis => self.begin(Style::ITALIC, "*"),
            Tag::Strong => self.begin(Style::BOLD, "**"),
            Tag::Strikethrough => self.begin(Style::STRUCK, "~~"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.inline.text("image: ");
                self.link(&dest_url);
            }
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table::new(alignments));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.inline.end();
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.stands.pop();
                self.apart = true;
            }
            TagEnd::CodeBlock => {
                let (code, mut colours) = self.code.take().unwrap_or_default();
                code.lines().for_each(|line| self.line(&code_line(self.looks, &printable(line), &mut colours)));
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.apart = true;
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still has its marker.
                if self.stands.last().is_some_and(|stand| stand.first.is_some()) {
                    self.line("");
                }
                self.stands.pop();
                self.apart = false;
            }
            TagEnd::Emphasis => self.close("*"),
            TagEnd::Strong => self.close("**"),
            TagEnd::Strikethrough => self.close("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.inline.end();
                let Some((start, url)) = self.links.pop() else { return };
                if !url.is_empty() && self.inline.from(start) != url.trim_start_matches("mailto:") {
                    self.inline.text(" ");
                    self.inline.styled(Style::DIM, &format!("({url})"));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                let Some(table) = self.table.take() else { return };
                let lines = table.lines(self.looks.paint, self.room());
                lines.iter().for_each(|line| self.line(line));
            }
            _ => {}
        }
    }

    fn list(&mut self, number: Option<u64>) {
        let goes_on = self.empty && self.continued.is_some();
        match goes_on {
            true => self.empty = false,
            false if self.lists.is_empty() => self.block(),
            false => self.flush(),
        }
        let continued = self.continued.take().filter(|_| goes_on);
        self.lists.push(continued.unwrap_or(number));
    }

    fn item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        };
        let columns = marker.len();
        self.stands.push(Stand { first: Some(marker), rest: " ".repeat(columns), columns });
        self.apart = false;
    }

    fn link(&mut self, url: &str) {
        self.links.push((self.inline.len(), printable(url)));
        self.inline.begin(Style::LINK);
    }

    fn begin(&mut self, style: Style, mark: &str) {
        self.mark(mark);
        self.inline.begin(style);
    }

    fn close(&mut self, mark: &str) {
        self.inline.end();
        self.mark(mark);
    }

    /// Without colour, the marks of the source are printed.
    fn mark(&mut self, mark: &str) {
        if !self.looks.paint.is_coloured() {
            self.inline.text(mark);
        }
    }

    /// Starts a block, after an empty line unless it is the first of an item or a quote.
    fn block(&mut self) {
        self.flush();
        if self.stands.is_empty() {
            self.out.push('\n');
        } else if self.apart {
            self.line("");
        }
        self.empty = false;
        self.apart = true;
    }

    /// Returns the columns left by the prefix of lines.
    fn room(&self) -> usize {
        let taken: usize = self.stands.iter().map(|stand| stand.columns).sum();
        self.looks.width.saturating_sub(taken).max(NARROWEST)
    }

    /// Prints the collected text.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        if inline.is_empty() {
            return;
        }
        self.empty = false;
        for line in inline.wrapped(self.looks.paint, self.room()) {
            self.line(&line);
        }
        self.apart = true;
    }

    fn line(&mut self, text: &str) {
        let mut line = String::new();
        for stand in &mut self.stands {
            line.push_str(stand.first.take().as_ref().unwrap_or(&stand.rest));
        }
        line.push_str(text);
        self.out.push_str(line.trim_end_matches(' '));
        self.out.push('\n');
    }
}

fn depth(level: HeadingLevel) -> usize {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
