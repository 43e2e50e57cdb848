//! Markdown as Telegram shows it: a plain text, and the positions of bold text, links and code in it.
//!
//! Places are given rather than Telegram's own markup, which is refused as a whole where one character is wrong.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};

/// UTF-16 units of a text, and marked places in it, that Telegram takes.
pub const MAX_UNITS: usize = 4_096;
const MAX_ENTITIES: usize = 100;

/// A text with its marked places.
#[derive(Clone)]
pub struct Formatted {
    pub text: String,
    pub entities: Vec<Value>,
}

impl Formatted {
    pub fn from_markdown(markdown: &str) -> Formatted {
        let mut writer = Writer::default();
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            writer.event(event);
        }
        let Writer { text, mut entities, .. } = writer;
        entities.truncate(MAX_ENTITIES);
        Formatted { text, entities }
    }

    /// Whether Telegram takes it. A table may be longer than its Markdown, and a comment has no text.
    pub fn fits(&self) -> bool {
        !self.text.trim().is_empty() && self.text.encode_utf16().count() <= MAX_UNITS
    }

    /// The arguments of `sendMessage`. Without previews: Telegram would fetch every address of an answer, with what stands in it,
    /// though nobody opened it.
    pub fn request(&self, chat: i64) -> Value {
        let mut request =
            json!({ "chat_id": chat, "text": self.text, "link_preview_options": { "is_disabled": true } });
        if !self.entities.is_empty() {
            request["entities"] = self.entities.clone().into();
        }
        request
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    /// UTF-16 units of the text.
    units: usize,
    /// Ends of lines before what comes next.
    pending: usize,
    entities: Vec<Value>,
    /// Places that are open: where each begins, and what it is; none where it is not marked.
    open: Vec<(usize, Option<Value>)>,
    /// The next number of each list that is open; none for one without numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// Cells of the row that were begun.
    cells: usize,
    /// Whether it is inside code or a table, in which nothing else is marked.
    verbatim: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => {
                self.begin(Some(json!({ "type": "code" })));
                self.write(&code);
                self.finish();
            }
            Event::SoftBreak | Event::HardBreak => self.write("\n"),
            Event::Rule => {
                self.gap(2);
                self.write("———");
                self.gap(2);
            }
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.write(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.write(&text),
            Event::TaskListMarker(done) => self.write(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let of = |kind: &str| Some(json!({ "type": kind }));
        match tag {
            Tag::Heading { .. } => {
                self.gap(2);
                self.begin(of("bold"));
            }
            Tag::BlockQuote(_) => {
                self.gap(2);
                self.quotes += 1;
                // One inside another is not taken.
                self.begin(of("blockquote").filter(|_| self.quotes == 1));
            }
            Tag::CodeBlock(kind) => {
                self.gap(if self.lists.is_empty() { 2 } else { 1 });
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                let mut entity = json!({ "type": "pre" });
                if !language.is_empty() {
                    entity["language"] = language.into();
                }
                self.begin(Some(entity));
                self.verbatim = true;
            }
            Tag::Table(_) => {
                self.gap(2);
                self.begin(of("pre"));
                self.verbatim = true;
            }
            Tag::TableHead | Tag::TableRow => self.cells = 0,
            Tag::TableCell => {
                self.cells += 1;
                if self.cells > 1 {
                    self.write(" | ");
                }
            }
            Tag::List(first) => {
                self.gap(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => {
                self.gap(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.write(&format!("{indent}{marker}"));
            }
            Tag::Emphasis => self.begin(of("italic")),
            Tag::Strong => self.begin(of("bold")),
            Tag::Strikethrough => self.begin(of("strikethrough")),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let is_web = dest_url.starts_with("https://") || dest_url.starts_with("http://");
                self.begin(is_web.then(|| json!({ "type": "text_link", "url": &*dest_url })));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let after_block = if self.lists.is_empty() { 2 } else { 1 };
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.gap(after_block),
            TagEnd::Heading(_) => {
                self.finish();
                self.gap(1);
            }
            TagEnd::BlockQuote(_) => {
                self.quotes -= 1;
                self.finish();
                self.gap(2);
            }
            TagEnd::CodeBlock | TagEnd::Table => {
                self.verbatim = false;
                self.finish();
                self.gap(after_block);
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item | TagEnd::TableHead | TagEnd::TableRow => self.gap(1),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image => self.finish(),
            _ => {}
        }
    }

    /// So many ends of lines stand before what comes next.
    fn gap(&mut self, lines: usize) {
        self.pending = self.pending.max(lines);
    }

    /// Ends of lines at the end of a text wait for what comes next.
    fn write(&mut self, text: &str) {
        let ended = text.trim_end_matches('\n');
        if !ended.is_empty() {
            self.flush();
            self.push(ended);
        }
        self.pending = self.pending.max(text.len() - ended.len());
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !self.text.is_empty() {
            self.push(&"\n".repeat(pending));
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += text.encode_utf16().count();
    }

    fn begin(&mut self, entity: Option<Value>) {
        self.flush();
        self.open.push((self.units, entity.filter(|_| !self.verbatim)));
    }

    fn finish(&mut self) {
        let Some((start, Some(mut entity))) = self.open.pop() else { return };
        let length = self.units.saturating_sub(start);
        if length > 0 {
            entity["offset"] = start.into();
            entity["length"] = length.into();
            self.entities.push(entity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, and each marked place as a client shows it.
    fn shown(markdown: &str) -> (String, Vec<(String, String)>) {
        let Formatted { text, entities } = Formatted::from_markdown(markdown);
        let units: Vec<u16> = text.encode_utf16().collect();
        let place = |entity: &Value| {
            let start = entity["offset"].as_u64().unwrap() as usize;
            let end = start + entity["length"].as_u64().unwrap() as usize;
            let kind = entity["type"].as_str().unwrap().to_owned();
            (kind, String::from_utf16(&units[start..end]).unwrap())
        };
        (text, entities.iter().map(place).collect())
    }

    fn mark(kind: &str, text: &str) -> (String, String) {
        (kind.to_owned(), text.to_owned())
    }

    #[test]
    fn markdown_is_a_text_with_marked_places() {
        let (text, places) =
            shown("# Title\nSome **bold 👍** and *italic*, `code` and [a link](https://a.example/x).\n\nEnd");
        assert_eq!(text, "Title\nSome bold 👍 and italic, code and a link.\n\nEnd");
        let expected = [
            mark("bold", "Title"),
            mark("bold", "bold 👍"),
            mark("italic", "italic"),
            mark("code", "code"),
            mark("text_link", "a link"),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn blocks_lists_and_tables_keep_their_lines() {
        let (text, places) = shown(
            "Do:\n\n1. one\n2. two\n   - sub\n\n```sh\necho 1\n\necho **2**\n```\n\n|a|b|\n|-|-|\n|*1*|2|\n\n> said",
        );
        assert_eq!(text, "Do:\n\n1. one\n2. two\n  • sub\n\necho 1\n\necho **2**\n\na | b\n1 | 2\n\nsaid");
        let expected = [mark("pre", "echo 1\n\necho **2**"), mark("pre", "a | b\n1 | 2"), mark("blockquote", "said")];
        assert_eq!(places, expected);
        assert_eq!(Formatted::from_markdown("```sh\nx\n```").entities[0]["language"], "sh");
    }

    #[test]
    fn a_text_stays_what_it_is() {
        assert_eq!(shown("|a|b|\n|-|-|\n").0, "a | b");
        for text in ["one\ntwo", "2 < 3 & 4", "<b>x</b>", "a_b_c", "http://a.example/?a=1&b=2", "word-1 word-2"] {
            assert_eq!(shown(text), (text.to_owned(), Vec::new()));
        }
        assert_eq!(shown("[x](file:///etc/passwd)"), ("x".to_owned(), Vec::new()));
    }

    #[test]
    fn what_telegram_would_not_take_is_known() {
        assert!(!Formatted::from_markdown("[a]: https://a.example").fits());
        assert!(!Formatted::from_markdown(&format!("|{}\n|{}\n", "a|".repeat(1_900), "-|".repeat(1_900))).fits());
        assert!(Formatted::from_markdown(&"ü".repeat(1_900)).fits());
        assert!(Formatted::from_markdown(&"*a* ".repeat(300)).entities.len() <= MAX_ENTITIES);
    }
}
