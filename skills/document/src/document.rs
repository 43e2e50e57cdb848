//! A document as its reader leaves it.

use crate::kind::Kind;
use crate::out::Out;

/// A document: text by pages, slides, sheets or messages, and what is known about it.
#[derive(Debug)]
pub struct Document {
    pub kind: Kind,
    /// Name and value, in the order of the head: title, author, dates.
    pub facts: Vec<(&'static str, String)>,
    /// Parts of the file, whether or not they were read.
    pub total: usize,
    pub parts: Vec<Part>,
    pub headings: Vec<Heading>,
    pub attachments: Vec<Attachment>,
    /// Sentences about parts that were not read.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub number: usize,
    /// Without the number: the title of a slide, the name of a sheet.
    pub title: String,
    pub text: String,
    /// Whether the page has a picture and no text.
    pub picture: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// From 1.
    pub level: usize,
    pub text: String,
    /// Number of its part.
    pub part: usize,
}

/// A file inside the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    pub size: usize,
    /// `None` if attachments were not asked for.
    pub bytes: Option<Vec<u8>>,
}

impl Document {
    pub fn new(kind: Kind, out: Out) -> Self {
        let mut document = Self {
            kind,
            facts: Vec::new(),
            total: 0,
            parts: Vec::new(),
            headings: Vec::new(),
            attachments: Vec::new(),
            notes: Vec::new(),
        };
        document.take(out);
        document
    }

    fn take(&mut self, out: Out) {
        if out.is_full() {
            self.notes.push(format!("only the first {} bytes of text were read", out.limit()));
        }
        (self.total, self.parts, self.headings) = out.finish();
    }

    /// Adds a fact whose value is not blank.
    pub fn fact(&mut self, name: &'static str, value: impl AsRef<str>) {
        let value = value.as_ref().split_whitespace().collect::<Vec<_>>().join(" ");
        if !value.is_empty() && !self.facts.iter().any(|(known, _)| *known == name) {
            self.facts.push((name, value.chars().take(1_000).collect()));
        }
    }

    pub fn find_fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The heading of a part: `Page 3`, `Slide 2: Costs`. Empty for documents of one part.
    pub fn label(&self, part: &Part) -> String {
        let unit = self.kind.unit();
        if unit.is_empty() || (self.total < 2 && !self.kind.is_always_labelled()) {
            return String::new();
        }
        match (unit, part.title.as_str()) {
            ("sheet", title) => format!("Sheet {title}"),
            (_, "") => format!("{} {}", capitalize(unit), part.number),
            (_, title) => format!("{} {}: {title}", capitalize(unit), part.number),
        }
    }

    /// Where a passage is, in short: `p. 3`, `slide 2`, `sheet Costs`.
    pub fn place(&self, number: usize) -> String {
        match self.kind.unit() {
            "" => String::new(),
            "page" => format!("p. {number}"),
            "sheet" => {
                let title = self.parts.iter().find(|part| part.number == number).map(|part| part.title.as_str());
                format!("sheet {}", title.unwrap_or_default())
            }
            unit => format!("{unit} {number}"),
        }
    }
}

fn capitalize(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
