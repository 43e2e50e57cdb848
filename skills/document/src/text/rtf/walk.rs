//! Blocks from the tokens of RTF.

use encoding_rs::Encoding;

use crate::charset::for_code_page;
use crate::inline::{Inline, Marks};
use crate::limits;
use crate::out::Out;

/// Groups within one another. Deeper ones share the state of this depth.
const GROUPS: usize = 1_000;

/// Fonts of a file.
const FONTS: usize = 5_000;

/// A token of RTF.
enum Token<'a> {
    Open,
    Close,
    Word(&'a str, Option<i32>),
    Byte(u8),
    Symbol(u8),
}

/// Splits a file into tokens.
struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            match first {
                b'{' => return Some(Token::Open),
                b'}' => return Some(Token::Close),
                b'\r' | b'\n' | 0 => {}
                b'\\' => return self.control(),
                byte => return Some(Token::Byte(*byte)),
            }
        }
    }
}

impl<'a> Tokens<'a> {
    fn control(&mut self) -> Option<Token<'a>> {
        let length = self.rest.iter().take(32).take_while(|byte| byte.is_ascii_alphabetic()).count();
        if length == 0 {
            let (symbol, rest) = self.rest.split_first()?;
            self.rest = rest;
            if *symbol != b'\'' {
                return Some(Token::Symbol(*symbol));
            }
            let pair = self.rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
            let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            self.rest = &self.rest[self.rest.len().min(2)..];
            return Some(Token::Byte(byte.unwrap_or(b'?')));
        }
        let (word, rest) = self.rest.split_at(length);
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest[sign..].iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..sign + digits]).ok().and_then(|digits| digits.parse().ok());
        self.rest = if digits > 0 { &rest[sign + digits..] } else { rest };
        self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        let word = std::str::from_utf8(word).unwrap_or_default();
        if word == "bin" {
            let length = usize::try_from(number.unwrap_or(0)).unwrap_or(0).min(self.rest.len());
            self.rest = &self.rest[length..];
        }
        Some(Token::Word(word, number))
    }
}

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Body,
    /// Nowhere.
    Skip,
    FontTable,
    /// The mark of an item, which programs that know lists do not read.
    Mark,
    /// A property of the document.
    Fact(&'static str),
}

#[derive(Debug, Clone)]
struct State {
    destination: Destination,
    marks: Marks,
    hidden: bool,
    font: i32,
    /// Characters that stand for one of `\u` in old programs.
    fallback: usize,
    outline: Option<usize>,
    footnote: bool,
}

pub struct Walk<'o> {
    out: &'o mut Out,
    state: State,
    stack: Vec<State>,
    /// Groups beyond the limit.
    deeper: usize,
    page: &'static Encoding,
    /// Encodings of fonts, and the font that is being described.
    fonts: std::collections::HashMap<i32, &'static Encoding>,
    described: i32,
    bytes: Vec<u8>,
    skip: usize,
    high: Option<u32>,
    inline: Inline,
    mark: String,
    fact: String,
    facts: Vec<(&'static str, String)>,
    table: Vec<Vec<String>>,
    row: Vec<String>,
    cell: String,
    in_table: bool,
    cells: usize,
}

impl<'o> Walk<'o> {
    pub fn new(out: &'o mut Out) -> Self {
        let state = State {
            destination: Destination::Body,
            marks: Marks::default(),
            hidden: false,
            font: 0,
            fallback: 1,
            outline: None,
            footnote: false,
        };
        Self {
            out,
            state,
            stack: Vec::new(),
            deeper: 0,
            page: encoding_rs::WINDOWS_1252,
            fonts: Default::default(),
            described: 0,
            bytes: Vec::new(),
            skip: 0,
            high: None,
            inline: Inline::default(),
            mark: String::new(),
            fact: String::new(),
            facts: Vec::new(),
            table: Vec::new(),
            row: Vec::new(),
            cell: String::new(),
            in_table: false,
            cells: 0,
        }
    }

    pub fn read(mut self, bytes: &[u8]) -> Vec<(&'static str, String)> {
        let mut star = false;
        for token in (Tokens { rest: bytes }) {
            if self.out.is_full() {
                break;
            }
            let was_star = std::mem::take(&mut star);
            match token {
                Token::Byte(byte) => {
                    if self.skip > 0 {
                        self.skip -= 1;
                    } else {
                        self.bytes.push(byte);
                    }
                    continue;
                }
                _ => self.decode(),
            }
            match token {
                Token::Open => {
                    self.skip = 0;
                    if self.stack.len() < GROUPS {
                        self.stack.push(self.state.clone());
                    } else {
                        self.deeper += 1;
                    }
                }
                Token::Close => self.close(),
                Token::Symbol(b'*') => star = true,
                Token::Symbol(symbol) => self.symbol(symbol),
                Token::Word(word, number) => self.word(word, number, was_star),
                Token::Byte(_) => {}
            }
        }
        self.decode();
        self.end_paragraph();
        self.end_table();
        self.facts
    }

    fn close(&mut self) {
        self.skip = 0;
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let (ended, was_footnote) = (self.state.destination, self.state.footnote);
        if let Some(state) = self.stack.pop() {
            self.state = state;
        }
        if was_footnote && !self.state.footnote {
            self.push("]");
        }
        if let Destination::Fact(name) = ended
            && self.state.destination != ended
        {
            self.facts.push((name, std::mem::take(&mut self.fact)));
        }
    }

    /// Decodes the bytes so far in the encoding of their font.
    fn decode(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let encoding = self.fonts.get(&self.state.font).copied().unwrap_or(self.page);
        let bytes = std::mem::take(&mut self.bytes);
        let text = encoding.decode_without_bom_handling(&bytes).0.into_owned();
        self.push(&text);
    }

    fn push(&mut self, text: &str) {
        match self.state.destination {
            Destination::Body if !self.state.hidden => self.inline.push(&self.state.marks, text),
            Destination::Mark if self.mark.len() < 40 => self.mark.push_str(text),
            Destination::Fact(_) if self.fact.len() < 4_000 => self.fact.push_str(text),
            _ => {}
        }
    }

    fn symbol(&mut self, symbol: u8) {
        match symbol {
            b'~' => self.push("\u{a0}"),
            b'_' => self.push("-"),
            b'\\' | b'{' | b'}' => self.push(&char::from(symbol).to_string()),
            b'\r' | b'\n' => self.end_paragraph(),
            _ => {}
        }
    }

    fn word(&mut self, word: &str, number: Option<i32>, star: bool) {
        if self.state.destination == Destination::FontTable {
            match word {
                "f" => self.described = number.unwrap_or(0),
                "fcharset" if self.fonts.len() < FONTS => {
                    if let Some(encoding) = for_font(number.unwrap_or(0)) {
                        self.fonts.insert(self.described, encoding);
                    }
                }
                _ => {}
            }
            return;
        }
        match word {
            "ansicpg" => self.page = for_code_page(number.and_then(|page| u32::try_from(page).ok()).unwrap_or(1_252)),
            "mac" => self.page = encoding_rs::MACINTOSH,
            "fonttbl" => self.state.destination = Destination::FontTable,
            "title" => self.fact("title"),
            "author" => self.fact("author"),
            "subject" => self.fact("subject"),
            "keywords" => self.fact("keywords"),
            "info" => self.state.destination = Destination::Skip,
            "colortbl" | "stylesheet" | "pict" | "object" | "themedata" | "datastore" | "latentstyles"
            | "listtable" | "listoverridetable" | "rsidtbl" | "generator" | "xmlnstbl" | "fldinst" | "nonshppict"
            | "bkmkstart" | "bkmkend" | "revtbl" | "header" | "footer" | "headerl" | "headerr" | "headerf"
            | "footerl" | "footerr" | "footerf" | "ftnsep" | "ftnsepc" | "aftnsep" | "operator" | "creatim"
            | "revtim" | "sp" => {
                self.state.destination = Destination::Skip;
            }
            "listtext" | "pntext" => {
                self.state.destination = Destination::Mark;
                self.mark.clear();
            }
            "shppict" | "shpinst" | "shptxt" | "htmltag" | "annotation" | "shp" => {}
            _ if star => self.state.destination = Destination::Skip,
            "footnote" => {
                self.push("[");
                self.state.footnote = true;
            }
            _ => self.body_word(word, number),
        }
    }

    fn fact(&mut self, name: &'static str) {
        // Elsewhere these are words of styles.
        if self.state.destination == Destination::Skip {
            self.state.destination = Destination::Fact(name);
            self.fact.clear();
        }
    }

    fn body_word(&mut self, word: &str, number: Option<i32>) {
        let on = number != Some(0);
        match word {
            "par" | "sect" | "page" => self.end_paragraph(),
            "line" => self.push("\n"),
            "tab" => self.push("\t"),
            "emdash" => self.push("—"),
            "endash" => self.push("–"),
            "emspace" | "enspace" | "qmspace" => self.push(" "),
            "bullet" => self.push("•"),
            "lquote" => self.push("‘"),
            "rquote" => self.push("’"),
            "ldblquote" => self.push("“"),
            "rdblquote" => self.push("”"),
            "u" => self.unicode(number.unwrap_or(0)),
            "uc" => self.state.fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(0).min(20),
            "f" => self.state.font = number.unwrap_or(0),
            "b" => self.state.marks.bold = on,
            "i" => self.state.marks.italic = on,
            "strike" => self.state.marks.strike = on,
            "v" => self.state.hidden = on,
            "plain" => {
                self.state.marks = Marks::default();
                self.state.hidden = false;
            }
            "pard" => {
                self.state.outline = None;
                self.in_table = false;
            }
            "outlinelevel" => {
                self.state.outline = number.and_then(|level| usize::try_from(level).ok()).filter(|level| *level < 9);
            }
            "intbl" | "trowd" => self.in_table = true,
            "cell" | "nestcell" => self.end_cell(),
            "row" | "nestrow" if !self.row.is_empty() => self.table.push(std::mem::take(&mut self.row)),
            _ => {}
        }
    }

    fn unicode(&mut self, number: i32) {
        self.skip = self.state.fallback;
        // Written as a signed number of 16 bits.
        let code = u32::try_from(if number < 0 { number.saturating_add(0x1_0000) } else { number }).unwrap_or(0xfffd);
        match (self.high.take(), code) {
            (_, 0xd800..0xdc00) => self.high = Some(code),
            (Some(high), 0xdc00..0xe000) => {
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00);
                self.push(&char::from_u32(code).unwrap_or('\u{fffd}').to_string());
            }
            // Symbol fonts.
            (_, 0xf020..=0xf0ff) => self.push("•"),
            _ => {
                if let Some(c) = char::from_u32(code).filter(|c| *c != '\0') {
                    self.push(&c.to_string());
                }
            }
        }
    }

    fn end_cell(&mut self) {
        let text = self.inline.finish(self.out.style());
        append(&mut self.cell, text.trim());
        let cell = std::mem::take(&mut self.cell);
        self.cells += 1;
        if self.cells < limits::TABLE_CELLS {
            self.row.push(cell);
        }
        self.in_table = true;
    }

    fn end_paragraph(&mut self) {
        if self.state.destination != Destination::Body {
            return;
        }
        if self.state.footnote {
            self.push(" ");
            return;
        }
        let mark = std::mem::take(&mut self.mark);
        let mark = mark.trim();
        if self.in_table {
            let text = self.inline.finish(self.out.style());
            append(&mut self.cell, format!("{mark} {text}").trim());
            return;
        }
        self.end_table();
        if self.inline.is_blank() {
            self.inline.finish_plain();
            return;
        }
        let text = self.inline.finish(self.out.style());
        match self.state.outline {
            Some(level) => self.out.heading(level + 1, &text),
            None if mark.is_empty() => self.out.paragraph(&text),
            None if mark.ends_with(['.', ')']) => self.out.item(0, mark, &text),
            None => self.out.item(0, "-", &text),
        }
    }

    fn end_table(&mut self) {
        if !self.cell.is_empty() {
            let cell = std::mem::take(&mut self.cell);
            self.row.push(cell);
        }
        if !self.row.is_empty() {
            self.table.push(std::mem::take(&mut self.row));
        }
        let table = std::mem::take(&mut self.table);
        match &table[..] {
            [] => {}
            [row] if row.len() == 1 => self.out.paragraph(&row[0]),
            _ => self.out.table(&table),
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The encoding of a font's character set.
fn for_font(charset: i32) -> Option<&'static Encoding> {
    Some(for_code_page(match charset {
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1_253,
        162 => 1_254,
        163 => 1_258,
        177 => 1_255,
        178 => 1_256,
        186 => 1_257,
        204 => 1_251,
        222 => 874,
        238 => 1_250,
        _ => return None,
    }))
}

/// The HTML inside RTF: tags stand in groups of their own, and what is only for RTF between `\htmlrtf` and `\htmlrtf0`.
pub fn unwrap_html(bytes: &[u8]) -> String {
    let mut page = encoding_rs::WINDOWS_1252;
    let (mut raw, mut text) = (Vec::new(), String::new());
    // For each group: whether its text is dropped.
    let mut stack: Vec<bool> = Vec::new();
    let (mut dropped, mut for_rtf, mut star, mut skip, mut fallback) = (false, false, false, 0_usize, 1_usize);
    for token in (Tokens { rest: bytes }) {
        if !matches!(token, Token::Byte(_)) && !raw.is_empty() {
            text.push_str(&page.decode_without_bom_handling(&raw).0);
            raw.clear();
        }
        let was_star = std::mem::take(&mut star);
        let shown = !dropped && !for_rtf;
        match token {
            Token::Open if stack.len() < GROUPS => stack.push(dropped),
            Token::Open => {}
            Token::Close => dropped = stack.pop().unwrap_or(dropped),
            Token::Byte(byte) if skip > 0 => {
                let _ = byte;
                skip -= 1;
            }
            Token::Byte(byte) if shown => raw.push(byte),
            Token::Byte(_) => {}
            Token::Symbol(b'*') => star = true,
            Token::Symbol(symbol @ (b'\\' | b'{' | b'}')) if shown => text.push(char::from(symbol)),
            Token::Symbol(b'~') if shown => text.push_str("&nbsp;"),
            Token::Symbol(_) => {}
            Token::Word("htmltag", _) => dropped = false,
            Token::Word("htmlrtf", number) => for_rtf = number != Some(0),
            Token::Word("ansicpg", number) => {
                page = for_code_page(number.and_then(|page| u32::try_from(page).ok()).unwrap_or(1_252));
            }
            Token::Word("fonttbl" | "colortbl" | "stylesheet" | "info" | "pict", _) => dropped = true,
            Token::Word(_, _) if was_star => dropped = true,
            Token::Word("uc", number) => fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(1).min(20),
            Token::Word("u", number) if shown => {
                let number = number.unwrap_or(0);
                let code = u32::try_from(if number < 0 { number.saturating_add(0x1_0000) } else { number });
                text.extend(code.ok().and_then(char::from_u32));
                skip = fallback;
            }
            Token::Word("par" | "line", _) if shown => text.push('\n'),
            Token::Word("tab", _) if shown => text.push('\t'),
            Token::Word(..) => {}
        }
    }
    text.push_str(&page.decode_without_bom_handling(&raw).0);
    text
}
