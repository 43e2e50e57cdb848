//! Blocks from the tokens of HTML.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::{Attribute, TokenizerResult};

use crate::inline::{Inline, Marks};
use crate::limits;
use crate::out::{Out, Style};

/// Lists and quotes within one another.
const NESTING: usize = 32;

/// Bytes of a page that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Facts from the head of a page.
#[derive(Debug, Default)]
pub struct Facts {
    pub title: String,
    pub author: String,
    pub description: String,
    pub language: String,
}

/// Writes the blocks of a page.
pub fn walk(text: &str, out: &mut Out) -> Facts {
    let sink = Sink(RefCell::new(Walk::new(out)));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts { discard_bom: true, ..TokenizerOpts::default() });
    let input = BufferQueue::default();
    let mut rest = text;
    while !rest.is_empty() && !tokenizer.sink.0.borrow().out.is_full() {
        let (chunk, more) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES.min(rest.len())));
        input.push_back(StrTendril::from(chunk));
        rest = more;
        // It stops for some tags, and goes on where it stopped.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    }
    tokenizer.end();
    let mut walk = tokenizer.sink.0.into_inner();
    walk.end();
    walk.facts
}

struct Sink<'o>(RefCell<Walk<'o>>);

impl TokenSink for Sink<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut walk = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return walk.open(&tag),
            Token::TagToken(tag) => walk.close(&tag.name),
            Token::CharacterTokens(text) => walk.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[derive(Debug)]
struct List {
    /// Number of the next item.
    next: Option<usize>,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<(String, usize)>,
    cells: usize,
}

struct Walk<'o> {
    out: &'o mut Out,
    facts: Facts,
    inline: Inline,
    /// Elements that are open and how often, of those that nest.
    bold: usize,
    italic: usize,
    strike: usize,
    code: usize,
    pre: usize,
    quote: usize,
    heading: Option<usize>,
    links: Vec<Option<String>>,
    lists: Vec<List>,
    /// Mark of the item whose text comes.
    item: Option<String>,
    tables: Vec<Table>,
    /// The element whose text is not shown.
    silent: Option<String>,
    in_title: bool,
}

impl<'o> Walk<'o> {
    fn new(out: &'o mut Out) -> Self {
        Self {
            out,
            facts: Facts::default(),
            inline: Inline::default(),
            bold: 0,
            italic: 0,
            strike: 0,
            code: 0,
            pre: 0,
            quote: 0,
            heading: None,
            links: Vec::new(),
            lists: Vec::new(),
            item: None,
            tables: Vec::new(),
            silent: None,
            in_title: false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            if self.facts.title.len() < 2_000 {
                self.facts.title.push_str(text);
            }
            return;
        }
        if self.silent.is_some() || self.out.is_full() {
            return;
        }
        if self.pre > 0 {
            self.inline.push(&Marks::default(), text);
            return;
        }
        let marks = Marks {
            bold: self.bold > 0 && self.heading.is_none(),
            italic: self.italic > 0,
            strike: self.strike > 0,
            code: self.code > 0,
            link: self.links.last().cloned().flatten(),
            change: None,
        };
        self.inline.push_collapsed(&marks, &text.replace('\u{a0}', " "));
    }

    fn open(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        match name {
            "title" if self.facts.title.is_empty() => {
                self.in_title = true;
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "script" | "style" | "noframes" | "iframe" | "xmp" | "title" if !tag.self_closing => {
                self.silent = Some(name.to_owned());
                return TokenSinkResult::RawData(RawKind::Rawtext);
            }
            "template" | "svg" if !tag.self_closing && self.silent.is_none() => self.silent = Some(name.to_owned()),
            "textarea" if !tag.self_closing => return TokenSinkResult::RawData(RawKind::Rcdata),
            "html" => self.facts.language = attribute(&tag.attrs, "lang").unwrap_or_default(),
            "meta" => {
                let content = || attribute(&tag.attrs, "content").unwrap_or_default();
                match attribute(&tag.attrs, "name").unwrap_or_default().to_ascii_lowercase().as_str() {
                    "author" => self.facts.author = content(),
                    "description" => self.facts.description = content(),
                    _ => {}
                }
            }
            _ if self.silent.is_none() => self.open_visible(name, tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn open_visible(&mut self, name: &str, tag: &Tag) {
        match name {
            "b" | "strong" => self.bold += 1,
            "i" | "em" | "cite" | "var" | "dfn" => self.italic += 1,
            "s" | "del" | "strike" => self.strike += 1,
            "code" | "kbd" | "samp" | "tt" => self.code += 1,
            "a" => self.links.push(attribute(&tag.attrs, "href").filter(|link| is_kept(link))),
            "br" => self.inline.push(&Marks::default(), "\n"),
            "img" => {
                let words = attribute(&tag.attrs, "alt").unwrap_or_default();
                if !words.trim().is_empty() {
                    self.inline.push_collapsed(&Marks::default(), &format!("[picture: {}]", words.trim()));
                }
            }
            "input" if attribute(&tag.attrs, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox")) => {
                let set = tag.attrs.iter().any(|attribute| &*attribute.name.local == "checked");
                self.inline.push(&Marks::default(), if set { "[x] " } else { "[ ] " });
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                self.heading = name[1..].parse().ok();
            }
            "pre" | "listing" => {
                self.flush();
                self.pre += 1;
            }
            "blockquote" => {
                self.flush();
                self.quote += 1;
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.flush();
                let start = attribute(&tag.attrs, "start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
                if self.lists.len() < NESTING {
                    self.lists.push(List { next: (name == "ol").then_some(start) });
                }
            }
            "li" => {
                self.flush();
                let mark = match self.lists.last_mut().and_then(|list| list.next.as_mut()) {
                    Some(next) => {
                        *next = next.saturating_add(1);
                        format!("{}.", *next - 1)
                    }
                    None => "-".to_owned(),
                };
                self.item = Some(mark);
            }
            "dt" | "dd" => {
                self.flush();
                self.bold = usize::from(name == "dt");
            }
            "hr" => {
                self.flush();
                if self.tables.is_empty() && self.out.style() == Style::Markdown {
                    self.out.raw("---");
                }
            }
            "table" => {
                self.flush();
                if self.tables.len() < NESTING {
                    self.tables.push(Table::default());
                }
            }
            "tr" => {
                self.end_cell();
                if let Some(table) = self.tables.last_mut() {
                    table.rows.push(Vec::new());
                }
            }
            "td" | "th" => {
                self.end_cell();
                let span = attribute(&tag.attrs, "colspan").and_then(|span| span.trim().parse().ok()).unwrap_or(1);
                if let Some(table) = self.tables.last_mut() {
                    table.cell = Some((String::new(), span));
                }
            }
            name if is_block(name) => self.flush(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if self.in_title && name == "title" {
            self.in_title = false;
            return;
        }
        if self.silent.as_deref() == Some(name) {
            self.silent = None;
            return;
        }
        if self.silent.is_some() {
            return;
        }
        match name {
            "b" | "strong" => self.bold = self.bold.saturating_sub(1),
            "i" | "em" | "cite" | "var" | "dfn" => self.italic = self.italic.saturating_sub(1),
            "s" | "del" | "strike" => self.strike = self.strike.saturating_sub(1),
            "code" | "kbd" | "samp" | "tt" => self.code = self.code.saturating_sub(1),
            "a" => drop(self.links.pop()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                self.heading = None;
            }
            "pre" | "listing" => {
                self.flush();
                self.pre = self.pre.saturating_sub(1);
            }
            "blockquote" => {
                self.flush();
                self.quote = self.quote.saturating_sub(1);
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.flush();
                self.lists.pop();
                self.item = None;
            }
            "dt" => {
                self.flush();
                self.bold = 0;
            }
            "td" | "th" => self.end_cell(),
            "table" => self.end_table(),
            "p" | "li" | "tr" => self.flush(),
            name if is_block(name) => self.flush(),
            _ => {}
        }
    }

    /// Writes the text so far as a block.
    fn flush(&mut self) {
        if self.inline.is_blank() {
            self.inline.finish_plain();
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            let text = self.inline.finish(self.out.style());
            match &mut table.cell {
                Some((cell, _)) => append(cell, text.trim()),
                // Text between cells is shown before the table.
                None => self.out.paragraph(text.trim()),
            }
            return;
        }
        if self.pre > 0 {
            let text = self.inline.finish_plain();
            self.out.code(&text);
            return;
        }
        let text = self.inline.finish(self.out.style());
        let text = text.trim();
        if let Some(level) = self.heading {
            self.out.heading(level, text);
        } else if let Some(mark) = self.item.take() {
            self.out.item(self.lists.len().saturating_sub(1), &mark, text);
        } else if !self.lists.is_empty() {
            // One more paragraph of an item.
            let depth = self.lists.len();
            let indent = "  ".repeat(depth.min(8));
            self.out.line(&format!("{indent}{}", text.replace('\n', &format!("\n{indent}"))));
        } else if self.quote > 0 {
            self.out.quote(text);
        } else {
            self.out.paragraph(text);
        }
    }

    fn end_cell(&mut self) {
        self.flush();
        let Some(table) = self.tables.last_mut() else { return };
        let Some((text, span)) = table.cell.take() else { return };
        let span: usize = span;
        let span = span.clamp(1, 200);
        table.cells += span;
        if table.cells > limits::TABLE_CELLS {
            return;
        }
        if table.rows.is_empty() {
            table.rows.push(Vec::new());
        }
        if let Some(row) = table.rows.last_mut() {
            row.push(text);
            row.extend(std::iter::repeat_n(String::new(), span - 1));
        }
    }

    fn end_table(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.pop() else { return };
        let filled = table.rows.iter().flatten().filter(|cell| !cell.trim().is_empty()).count();
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let row = |row: &Vec<String>| {
            row.iter().filter(|cell| !cell.trim().is_empty()).cloned().collect::<Vec<_>>().join(" ")
        };
        match self.tables.last_mut() {
            // A table inside a cell, or one that only places texts.
            Some(Table { cell: Some((text, _)), .. }) => {
                table.rows.iter().for_each(|cells| append(text, &row(cells)));
            }
            _ if filled < 2 || columns < 2 => {
                table.rows.iter().flatten().for_each(|cell| self.out.paragraph(&cell.replace('\n', "\n\n")));
            }
            _ => self.out.table(&table.rows),
        }
    }

    fn end(&mut self) {
        self.flush();
        while !self.tables.is_empty() {
            self.end_table();
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

fn attribute(attributes: &[Attribute], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| &*attribute.name.local == name);
    found.map(|attribute| attribute.value.to_string())
}

/// Whether a link says more than its text does here.
fn is_kept(link: &str) -> bool {
    let start = link.trim_start().get(..11).unwrap_or(link).to_ascii_lowercase();
    !start.starts_with("javascript:") && !start.starts_with("data:") && !start.starts_with('#')
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "header"
            | "footer"
            | "main"
            | "nav"
            | "aside"
            | "address"
            | "figure"
            | "figcaption"
            | "form"
            | "fieldset"
            | "legend"
            | "dl"
            | "center"
            | "body"
            | "head"
            | "caption"
            | "thead"
            | "tbody"
            | "tfoot"
            | "details"
            | "summary"
            | "option"
            | "frameset"
    )
}
