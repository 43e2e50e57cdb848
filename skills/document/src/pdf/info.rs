//! Title and dates, bookmarks and attachments of a PDF file.

use std::collections::{HashMap, HashSet};

use hayro::hayro_syntax::object::{Array, DateTime, Dict, Name, Object, ObjectIdentifier, Stream, String as PdfString};
use hayro::hayro_syntax::{Pdf, PdfVersion};

use crate::document::{Attachment, Document, Heading};
use crate::limits;
use crate::read::Reading;

/// Nodes of a tree of names, and bookmarks, that are looked at.
const NODES: usize = 20_000;

/// Depth of bookmarks.
const BOOKMARK_DEPTH: usize = 8;

/// Adds metadata, bookmarks in place of headings, and attachments.
pub fn describe(pdf: &Pdf, document: &mut Document, reading: &Reading) {
    let details = details(pdf);
    for (name, value) in [
        ("title", &details.title),
        ("author", &details.author),
        ("subject", &details.subject),
        ("keywords", &details.keywords),
        ("created", &details.created),
        ("modified", &details.modified),
        ("made with", &details.creator),
    ] {
        document.fact(name, value);
    }
    let root = pdf.xref().get::<Dict>(pdf.xref().root_id());
    let Some(root) = root else { return };
    if let Some(language) = root.get::<PdfString>("Lang") {
        document.fact("language", text(language.as_bytes()));
    }
    let bookmarks = bookmarks(pdf, &root);
    if !bookmarks.is_empty() {
        document.headings = bookmarks;
    }
    document.attachments = attachments(&root, reading.attachments);
}

/// The lines of `pdfinfo`.
#[derive(Debug, Default)]
pub struct Details {
    pub title: String,
    pub author: String,
    pub subject: String,
    pub keywords: String,
    pub creator: String,
    pub producer: String,
    pub created: String,
    pub modified: String,
    pub version: &'static str,
    pub tagged: bool,
    pub form: bool,
    pub script: bool,
}

pub fn details(pdf: &Pdf) -> Details {
    let metadata = pdf.metadata();
    let field = |value: &Option<Box<[u8]>>| value.as_deref().map(text).unwrap_or_default();
    let date = |value: &Option<DateTime>| value.as_ref().map(date).unwrap_or_default();
    let root = pdf.xref().get::<Dict>(pdf.xref().root_id()).unwrap_or_default();
    let marked = root.get::<Dict>("MarkInfo").and_then(|info| info.get::<bool>("Marked"));
    Details {
        title: field(&metadata.title),
        author: field(&metadata.author),
        subject: field(&metadata.subject),
        keywords: field(&metadata.keywords),
        creator: field(&metadata.creator),
        producer: field(&metadata.producer),
        created: date(&metadata.creation_date),
        modified: date(&metadata.modification_date),
        version: match pdf.version() {
            PdfVersion::Pdf10 => "1.0",
            PdfVersion::Pdf11 => "1.1",
            PdfVersion::Pdf12 => "1.2",
            PdfVersion::Pdf13 => "1.3",
            PdfVersion::Pdf14 => "1.4",
            PdfVersion::Pdf15 => "1.5",
            PdfVersion::Pdf16 => "1.6",
            PdfVersion::Pdf17 => "1.7",
            PdfVersion::Pdf20 => "2.0",
        },
        tagged: marked.unwrap_or(false),
        form: root.get::<Dict>("AcroForm").is_some_and(|form| form.get::<Array>("Fields").is_some()),
        script: root.get::<Dict>("Names").is_some_and(|names| names.contains_key("JavaScript")),
    }
}

/// ISO 8601.
fn date(date: &DateTime) -> String {
    let DateTime { year, month, day, hour, minute, second, utc_offset_hour, utc_offset_minute } = *date;
    let zone = match (utc_offset_hour, utc_offset_minute) {
        (0, 0) => "Z".to_owned(),
        (hours, minutes) => format!("{hours:+03}:{minutes:02}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
}

/// Text of a string outside pages: UTF-16 or UTF-8 with a mark, else nearly Latin-1.
pub fn text(bytes: &[u8]) -> String {
    let decoded = match bytes {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..] => crate::charset::decode(bytes, None),
        // Some writers leave the mark away.
        _ if bytes.iter().any(|byte| *byte > 0xc0) && std::str::from_utf8(bytes).is_ok() => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        _ => bytes.iter().map(|byte| from_document_encoding(*byte)).collect(),
    };
    decoded.chars().filter(|c| !c.is_control() || c.is_whitespace()).collect()
}

/// `PDFDocEncoding`, ISO 32000-1 annex D.2.
fn from_document_encoding(byte: u8) -> char {
    const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const HIGH: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ', 'Ł',
        'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
    ];
    match byte {
        0x18..=0x1f => LOW[usize::from(byte - 0x18)],
        0x80..=0xa0 => HIGH[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

/// Bookmarks as headings with their pages.
fn bookmarks(pdf: &Pdf, root: &Dict) -> Vec<Heading> {
    let Some(outlines) = root.get::<Dict>("Outlines") else { return Vec::new() };
    let pages: HashMap<ObjectIdentifier, usize> =
        pdf.pages().iter().enumerate().filter_map(|(index, page)| Some((page.raw().obj_id()?, index + 1))).collect();
    let names = root.get::<Dict>("Names").and_then(|names| names.get::<Dict>("Dests"));
    let old_names = root.get::<Dict>("Dests");
    let mut named: Option<HashMap<Vec<u8>, usize>> = None;
    let mut seen = HashSet::new();
    let mut headings = Vec::new();
    let mut stack: Vec<(Dict, usize)> = outlines.get::<Dict>("First").map(|first| (first, 1)).into_iter().collect();
    while let Some((item, level)) = stack.pop() {
        if item.obj_id().is_some_and(|id| !seen.insert(id)) || headings.len() >= limits::HEADINGS {
            continue;
        }
        let target = |dict: &Dict| page_of(&dict.get::<Array>("Dest")?, &pages);
        let action = || item.get::<Dict>("A").filter(|action| action.contains_key("D"));
        let by_action = || page_of(&action()?.get::<Array>("D")?, &pages);
        let mut by_name = || {
            let dict = if item.contains_key("Dest") { item.clone() } else { action()? };
            let key = if item.contains_key("Dest") { "Dest" } else { "D" };
            if let Some(name) = dict.get::<Name>(key) {
                let old = old_names.as_ref()?;
                let array = old.get::<Array>(name.as_ref() as &[u8]);
                return page_of(&array.or_else(|| old.get::<Dict>(name.as_ref() as &[u8])?.get("D"))?, &pages);
            }
            let name = dict.get::<PdfString>(key)?;
            let named =
                named.get_or_insert_with(|| names.as_ref().map(|tree| named_pages(tree, &pages)).unwrap_or_default());
            named.get(name.as_bytes()).copied()
        };
        let page = target(&item).or_else(by_action).or_else(&mut by_name);
        let title = item.get::<PdfString>("Title").map(|title| text(title.as_bytes())).unwrap_or_default();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if !title.is_empty() {
            headings.push(Heading { level, text: title.chars().take(300).collect(), part: page.unwrap_or(0) });
        }
        if let Some(next) = item.get::<Dict>("Next") {
            stack.push((next, level));
        }
        if level < BOOKMARK_DEPTH
            && let Some(first) = item.get::<Dict>("First")
        {
            stack.push((first, level + 1));
        }
    }
    headings
}

/// The page of a destination, whose first element is a page or, wrongly, its number.
fn page_of(destination: &Array, pages: &HashMap<ObjectIdentifier, usize>) -> Option<usize> {
    let first = destination.raw_iter().next()?;
    match first.as_obj_ref() {
        Some(reference) => pages.get(&reference.into()).copied(),
        None => destination.iter::<usize>().next().map(|index| index + 1),
    }
}

fn named_pages(tree: &Dict, pages: &HashMap<ObjectIdentifier, usize>) -> HashMap<Vec<u8>, usize> {
    let mut found = HashMap::new();
    walk(tree, |names| {
        let mut items = names.flex_iter();
        while let Some(name) = items.next::<PdfString>() {
            let array = match items.next::<Object>() {
                Some(Object::Array(array)) => Some(array),
                Some(Object::Dict(dict)) => dict.get::<Array>("D"),
                _ => None,
            };
            let Some(array) = array else { break };
            if let Some(page) = page_of(&array, pages) {
                found.insert(name.as_bytes().to_vec(), page);
            }
        }
    });
    found
}

/// Calls `visit` with the names of each leaf of a tree.
fn walk<'a>(tree: &Dict<'a>, mut visit: impl FnMut(Array<'a>)) {
    let mut stack = vec![tree.clone()];
    let mut seen = HashSet::new();
    let mut nodes = 0;
    while let Some(node) = stack.pop() {
        nodes += 1;
        if nodes > NODES || node.obj_id().is_some_and(|id| !seen.insert(id)) {
            continue;
        }
        if let Some(kids) = node.get::<Array>("Kids") {
            let mut kids: Vec<Dict> = kids.iter::<Dict>().take(NODES).collect();
            kids.reverse();
            stack.extend(kids);
        }
        if let Some(names) = node.get::<Array>("Names") {
            visit(names);
        }
    }
}

fn attachments(root: &Dict, keep: bool) -> Vec<Attachment> {
    let mut found = Vec::new();
    let mut room = limits::ATTACHMENT_BYTES;
    let tree = root.get::<Dict>("Names").and_then(|names| names.get::<Dict>("EmbeddedFiles"));
    let Some(tree) = tree else { return found };
    walk(&tree, |names| {
        let mut items = names.flex_iter();
        while let Some(key) = items.next::<PdfString>() {
            let Some(file) = items.next::<Dict>() else { break };
            let name = file.get::<PdfString>("UF").or_else(|| file.get::<PdfString>("F"));
            let name = text(name.as_ref().unwrap_or(&key).as_bytes());
            let embedded = file.get::<Dict>("EF");
            let stream = embedded.and_then(|files| files.get::<Stream>("F").or_else(|| files.get::<Stream>("UF")));
            let Some(stream) = stream else { continue };
            let said = stream.dict().get::<Dict>("Params").and_then(|params| params.get::<usize>("Size"));
            let bytes = if keep { stream.decoded().ok().map(|bytes| bytes.into_owned()) } else { None };
            let size = bytes.as_ref().map(Vec::len).or(said).unwrap_or_else(|| stream.raw_data().len());
            if found.len() < limits::ATTACHMENTS {
                let bytes = bytes.filter(|bytes| bytes.len() <= room);
                room -= bytes.as_ref().map_or(0, Vec::len);
                found.push(Attachment { name, size, bytes });
            }
        }
    });
    found
}
