//! The text of a document with a head, and passages.

use serde_json::{Map, Value, json};

use super::extent;
use crate::document::{Document, Part};
use crate::kind::Kind;
use crate::request::{Format, Request};
use crate::search::Passage;

/// Attachments that the head names.
const NAMED: usize = 40;

/// Answers with the text.
pub fn text(document: &Document, saved: &[String], request: &Request) -> String {
    match request.format {
        Format::Json => json_text(document, saved, request),
        Format::Markdown | Format::Text => {
            let mut answer = head(document, saved, request);
            let (body, starts) = body(document);
            let total = body.chars().count();
            let kept: String = body.chars().skip(request.from).take(request.max).collect();
            let end = request.from + kept.chars().count();
            answer.push_str(&kept);
            if kept.trim().is_empty() && total == 0 {
                answer.push_str("(no text)");
            }
            if end < total {
                answer.push_str(&format!("\n\n[{}]", cut_note(document, request, &starts, end)));
            } else {
                notes(document, &mut answer);
            }
            answer.push('\n');
            answer
        }
    }
}

/// The sentence behind a text that was cut, with the ways to go on. `starts`: where each part begins.
fn cut_note(document: &Document, request: &Request, starts: &[(usize, usize)], end: usize) -> String {
    // The part that was cut, unless it is the one that the text began in.
    let cut = starts.iter().skip(1).rev().find(|(start, _)| *start < end);
    match cut.filter(|_| request.from == 0) {
        Some((_, number)) => {
            let (unit, total) = (document.kind.unit(), document.total);
            format!(
                "cut after {end} characters, in {unit} {number} of {total}: pages=\"{number}-\" goes on, outline=true lists the headings, and search finds passages"
            )
        }
        None => format!(
            "cut after {end} characters: the command `document FILE --from {end}` goes on, and search finds passages"
        ),
    }
}

fn notes(document: &Document, answer: &mut String) {
    for note in &document.notes {
        answer.push_str(&format!("\n\n[{note}]"));
    }
}

/// The facts as YAML, as Markdown files begin.
fn head(document: &Document, saved: &[String], request: &Request) -> String {
    if request.format == Format::Text || request.from > 0 {
        return String::new();
    }
    let mut lines = vec![format!("file: {}", request.file), format!("kind: {}", document.kind.name())];
    lines.extend(extent(document).map(|(unit, total)| format!("{unit}: {total}")));
    lines.extend(document.facts.iter().map(|(name, value)| format!("{name}: {value}")));
    let attachments = attachments(document, saved);
    if !attachments.is_empty() {
        lines.push(format!("attachments: {attachments}"));
    }
    format!("---\n{}\n---\n\n", lines.join("\n"))
}

/// Names and sizes, or where they were saved.
pub fn attachments(document: &Document, saved: &[String]) -> String {
    if !saved.is_empty() {
        return format!("saved as {}", saved.join(", "));
    }
    let named = document.attachments.iter().take(NAMED);
    let mut text = named.map(|file| format!("{} ({})", file.name, size(file.size))).collect::<Vec<_>>().join(", ");
    if document.attachments.len() > NAMED {
        text.push_str(&format!(" and {} more", document.attachments.len() - NAMED));
    }
    if !text.is_empty() {
        text.push_str("; the command `document FILE --attachments DIR` saves them");
    }
    text
}

pub fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// All parts, each below its label, and for each part its place in characters and its number.
pub fn body(document: &Document) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut starts = Vec::new();
    let mut length = 0;
    for part in &document.parts {
        let before = text.len();
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        starts.push((length, part.number));
        let label = document.label(part);
        if !label.is_empty() {
            text.push_str(&format!("## {label}\n\n"));
        }
        text.push_str(&part_text(document, part));
        length += text[before..].chars().count();
    }
    (text, starts)
}

/// The text of a part, or a sentence about why there is none.
fn part_text(document: &Document, part: &Part) -> String {
    let number = part.number;
    match (document.kind, part.picture, part.text.as_str()) {
        (Kind::Pdf, true, "") => {
            format!("(page {number} is a picture: look at it)")
        }
        (Kind::Pdf, true, text) => {
            format!("{text}\n\n(the rest of page {number} is a picture: look at it)")
        }
        (Kind::Pdf, false, "") => format!("(page {number} has no text)"),
        (_, _, text) => text.to_owned(),
    }
}

fn json_text(document: &Document, saved: &[String], request: &Request) -> String {
    let mut room = request.max;
    let mut skip = request.from;
    let mut cut = false;
    let mut parts = Vec::new();
    for part in &document.parts {
        let length = part.text.chars().count();
        let text: String = part.text.chars().skip(skip).take(room).collect();
        let kept = text.chars().count();
        cut |= length.saturating_sub(skip) > kept;
        skip = skip.saturating_sub(length);
        room -= kept;
        let mut entry = Map::new();
        entry.insert("number".into(), json!(part.number));
        let label = document.label(part);
        if !label.is_empty() {
            entry.insert("label".into(), json!(label));
        }
        if part.picture {
            entry.insert("picture".into(), json!(true));
        }
        entry.insert("text".into(), json!(text));
        parts.push(Value::Object(entry));
    }
    let mut answer = facts(document, saved, request);
    answer.insert("parts".into(), Value::Array(parts));
    if cut {
        answer.insert("cut".into(), json!(true));
    }
    Value::Object(answer).to_string() + "\n"
}

/// The fields of a JSON answer beside the text.
pub fn facts(document: &Document, saved: &[String], request: &Request) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("file".into(), json!(request.file));
    answer.insert("kind".into(), json!(document.kind.name()));
    if let Some((unit, total)) = extent(document) {
        answer.insert(unit.into(), json!(total));
    }
    let metadata: Map<String, Value> =
        document.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    answer.insert("metadata".into(), Value::Object(metadata));
    let headings = document
        .headings
        .iter()
        .map(|heading| json!({"level": heading.level, "text": heading.text, "part": heading.part}));
    answer.insert("headings".into(), headings.collect());
    let attachments = document.attachments.iter().enumerate().map(|(number, file)| match saved.get(number) {
        Some(path) => json!({"name": file.name, "bytes": file.size, "saved": path}),
        None => json!({"name": file.name, "bytes": file.size}),
    });
    answer.insert("attachments".into(), attachments.collect());
    if !document.notes.is_empty() {
        answer.insert("notes".into(), json!(document.notes));
    }
    answer
}

/// Answers with passages.
pub fn passages(document: &Document, words: &str, passages: &[Passage], request: &Request) -> String {
    if request.format == Format::Json {
        let found = passages
            .iter()
            .map(|passage| json!({"part": passage.part, "place": document.place(passage.part), "text": passage.text}));
        let answer = json!({"file": request.file, "search": words, "passages": found.collect::<Vec<_>>()});
        return answer.to_string() + "\n";
    }
    let mut answer = String::new();
    for passage in passages {
        let place = document.place(passage.part);
        let told = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let line = format!("- {told}{}\n", passage.text);
        if answer.chars().count() + line.chars().count() > request.max {
            answer.push_str("- [more passages were found: use more words, or a larger max]\n");
            break;
        }
        answer.push_str(&line);
    }
    if answer.is_empty() {
        let empty: Vec<usize> = document.parts.iter().filter(|part| part.picture).map(|part| part.number).collect();
        answer = format!("No passage has these words: {words}\n");
        if !empty.is_empty() {
            answer.push_str(&format!("Pages that are pictures were not searched: {}\n", crate::pages::join(&empty)));
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::{Out, Style};

    #[test]
    fn a_cut_text_says_how_to_go_on() {
        let mut out = Out::new(Style::Markdown, None, 1_000);
        for page in ["one", "two", "three"] {
            out.part("");
            out.paragraph(page);
        }
        let document = Document::new(Kind::Pdf, out);
        let cut = |max| text(&document, &[], &Request { max, ..Request::new("a.pdf") });
        assert!(cut(24).contains("cut after 24 characters, in page 2 of 3: pages=\"2-\" goes on"), "{}", cut(24));
        assert!(cut(5).contains("`document FILE --from 5` goes on"), "{}", cut(5));
        assert!(!cut(1_000).contains("cut after"));
    }
}
