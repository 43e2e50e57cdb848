//! PPT: slides of PowerPoint 97 to 2003 ([MS-PPT]): titles, lists and text boxes.

use std::collections::HashMap;
use std::io::Cursor;

use super::doc::stream;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::inline::escape;
use crate::kind::Kind;
use crate::out::{Out, Style};
use crate::read::Reading;

/// Containers within one another.
const DEPTH: usize = 32;

/// Texts of a presentation.
const TEXTS: usize = 100_000;

const DOCUMENT: u16 = 1_000;
const SLIDE: u16 = 1_006;
const SLIDE_PERSIST: u16 = 1_011;
const TEXT_HEADER: u16 = 3_999;
const TEXT_CHARS: u16 = 4_000;
const TEXT_BYTES: u16 = 4_008;
const SLIDE_LIST: u16 = 4_080;
const PERSIST_DIRECTORY: u16 = 6_002;

/// Kinds of text.
const TITLE: u32 = 0;
const NOTES: u32 = 2;
const OTHER: u32 = 4;
const CENTERED_TITLE: u32 = 6;

/// Reads a presentation.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let source = Cursor::new(bytes);
    let mut file =
        cfb::CompoundFile::open(source).map_err(|e| Error::damaged("the container of the presentation", e))?;
    let records = stream(&mut file, "PowerPoint Document")?;
    if file.exists("EncryptedSummary") {
        return Err("it is encrypted with a password; here only PDF files can be opened with one: remove the password in Office".into());
    }
    let slides = slides(&records);
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    out.shift_headings(2);
    for slide in slides {
        if out.part("") {
            write(&slide, &mut out);
        }
    }
    let mut document = Document::new(Kind::Ppt, out);
    super::summary::describe(&mut file, &mut document);
    Ok(document)
}

/// Texts of a slide with their kinds.
type Slide = Vec<(u32, String)>;

/// A record: its kind, instance, and content.
struct Record<'a> {
    kind: u16,
    instance: u16,
    is_container: bool,
    content: &'a [u8],
}

/// Splits bytes into records. The last may be cut.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let [v0, v1, k0, k1, l0, l1, l2, l3, rest @ ..] = bytes else { return None };
        let version = u16::from_le_bytes([*v0, *v1]);
        let length = usize::try_from(u32::from_le_bytes([*l0, *l1, *l2, *l3])).unwrap_or(usize::MAX);
        let (content, more) = rest.split_at(length.min(rest.len()));
        bytes = more;
        let kind = u16::from_le_bytes([*k0, *k1]);
        Some(Record { kind, instance: version >> 4, is_container: version & 15 == 15, content })
    })
}

/// The texts of all slides: those of the outline, then the boxes that each has beside it.
fn slides(records: &[u8]) -> Vec<Slide> {
    let mut listed: Vec<(u32, Slide)> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for record in split(records) {
        match record.kind {
            DOCUMENT => {
                let list = split(record.content).find(|inner| inner.kind == SLIDE_LIST && inner.instance == 0);
                if let Some(list) = list {
                    // A file that was saved several times has several; the last is valid.
                    listed = outline(list.content);
                }
            }
            PERSIST_DIRECTORY => read_places(record.content, &mut places),
            _ => {}
        }
    }
    let add_boxes = |(id, mut slide): (u32, Slide)| {
        let rest = places.get(&id).and_then(|place| records.get(*place..));
        if let Some(record) = rest.and_then(|rest| split(rest).next()).filter(|record| record.kind == SLIDE) {
            let mut kind = OTHER;
            collect(record.content, &mut slide, &mut kind, 0);
        }
        slide
    };
    listed.into_iter().map(add_boxes).collect()
}

/// Adds the places of numbered records. Later ones replace earlier ones.
fn read_places(content: &[u8], places: &mut HashMap<u32, usize>) {
    let mut words = content.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    while let Some(head) = words.next() {
        let (first, count) = (head & 0x000f_ffff, head >> 20);
        for (id, place) in (first..first + count).zip(words.by_ref()) {
            places.insert(id, usize::try_from(place).unwrap_or(usize::MAX));
        }
    }
}

/// The slides of the outline, each with the number of its record.
fn outline(list: &[u8]) -> Vec<(u32, Slide)> {
    let mut slides: Vec<(u32, Slide)> = Vec::new();
    let mut kind = OTHER;
    for record in split(list) {
        if record.kind == SLIDE_PERSIST {
            let id = record.content.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
            slides.push((id, Slide::new()));
        } else if let Some((_, slide)) = slides.last_mut() {
            take(&record, slide, &mut kind);
        }
    }
    slides
}

fn collect(bytes: &[u8], slide: &mut Slide, kind: &mut u32, depth: usize) {
    for record in split(bytes) {
        if record.is_container && depth < DEPTH {
            collect(record.content, slide, kind, depth + 1);
        } else {
            take(&record, slide, kind);
        }
    }
}

/// Adds the text of a record.
fn take(record: &Record, slide: &mut Slide, kind: &mut u32) {
    let text = match record.kind {
        TEXT_HEADER => {
            *kind = record.content.first().map_or(OTHER, |kind| u32::from(*kind));
            return;
        }
        TEXT_CHARS => {
            let units: Vec<u16> =
                record.content.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        // The low bytes of characters.
        TEXT_BYTES => record.content.iter().copied().map(char::from).collect(),
        _ => return,
    };
    if slide.len() < TEXTS {
        slide.push((*kind, text));
    }
}

fn write(slide: &Slide, out: &mut Out) {
    for (kind, text) in slide {
        let lines = text.split('\r').map(|line| line.replace('\u{b}', " "));
        let lines: Vec<String> =
            lines.map(|line| line.chars().filter(|c| !c.is_control() || *c == '\t').collect()).collect();
        if matches!(*kind, TITLE | CENTERED_TITLE) {
            let title = lines.join(" ");
            out.title(&title);
            out.record_heading(1, title.trim());
            continue;
        }
        for line in lines {
            // A field for the number of the slide, or the date.
            if matches!(line.trim(), "" | "*") || *kind == NOTES {
                continue;
            }
            let mut written = String::new();
            match out.style() {
                Style::Markdown => escape(&mut written, line.trim()),
                Style::Text => written.push_str(line.trim()),
            }
            match *kind {
                OTHER => out.paragraph(&written),
                _ => out.item(0, "-", &written),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn record(version: u16, kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32).to_le_bytes();
        [&version.to_le_bytes()[..], &kind.to_le_bytes()[..], &length[..], content].concat()
    }

    fn ppt() -> Vec<u8> {
        let wide: Vec<u8> = "Costs".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let list = [
            record(0, SLIDE_PERSIST, &[3, 0, 0, 0, 0, 0, 0, 0]),
            record(0, TEXT_HEADER, &[0, 0, 0, 0]),
            record(0, TEXT_CHARS, &wide),
            record(0, TEXT_HEADER, &[1, 0, 0, 0]),
            record(0, TEXT_BYTES, b"Bread\rMilk"),
        ];
        let boxes = record(15, 0xf00d, &record(0, TEXT_BYTES, b"In a box"));
        let document = record(15, DOCUMENT, &record(15, SLIDE_LIST, &list.concat()));
        let place = (document.len() as u32).to_le_bytes();
        let directory = [&[3, 0, 0x10, 0][..], &place].concat();
        let records = [document, record(15, SLIDE, &boxes), record(0, PERSIST_DIRECTORY, &directory)].concat();
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        file.create_stream("PowerPoint Document").unwrap().write_all(&records).unwrap();
        file.into_inner().into_inner()
    }

    #[test]
    fn slides_are_read() {
        let bytes = ppt();
        assert_eq!(crate::kind::find(&bytes, "").unwrap(), Kind::Ppt);
        let document = read(&bytes, &Reading::default()).unwrap();
        assert_eq!(document.label(&document.parts[0]), "Slide 1: Costs");
        assert_eq!(document.parts[0].text, "- Bread\n- Milk\n\nIn a box");
    }

    #[test]
    fn containers_within_containers_end() {
        let deep = (0..2_000).fold(record(0, TEXT_BYTES, b"x"), |inner, _| record(15, SLIDE, &inner));
        let (mut slide, mut kind) = (Slide::new(), OTHER);
        collect(&deep, &mut slide, &mut kind, 0);
        assert!(slide.is_empty());
        read_places(&[0xff; 64], &mut HashMap::new());
    }
}
