//! Kind, properties and headings of a document, without its text.

use serde_json::{Value, json};

use super::extent;
use super::show::{attachments, body, facts};
use crate::document::Document;
use crate::language;
use crate::pages::join;
use crate::request::{Format, Request};

/// Characters of the text that the outline begins with.
const BEGINNING: usize = 300;

/// Entries of parts without headings.
const ENTRIES: usize = 200;

pub fn write(document: &Document, saved: &[String], request: &Request) -> String {
    let (body, _) = body(document);
    let language =
        document.find_fact("language").map(str::to_owned).or_else(|| language::guess(&body).map(str::to_owned));
    let words = body.split_whitespace().count();
    let pictures: Vec<usize> = document.parts.iter().filter(|part| part.picture).map(|part| part.number).collect();
    let beginning = beginning(document);
    if request.format == Format::Json {
        let mut answer = facts(document, saved, request);
        answer.insert("language".into(), json!(language));
        answer.insert("words".into(), json!(words));
        answer.insert("pictures".into(), json!(pictures));
        let parts = document.parts.iter().map(|part| {
            json!({"number": part.number, "label": document.label(part), "characters": part.text.chars().count()})
        });
        answer.insert("parts".into(), parts.take(ENTRIES).collect());
        answer.insert("beginning".into(), json!(beginning));
        return Value::Object(answer).to_string() + "\n";
    }
    let mut lines = vec![format!("file: {}", request.file), format!("kind: {}", document.kind.name())];
    lines.extend(extent(document).map(|(unit, total)| format!("{unit}: {total}")));
    lines.extend(
        document.facts.iter().filter(|(name, _)| *name != "language").map(|(name, value)| format!("{name}: {value}")),
    );
    lines.extend(language.map(|language| format!("language: {language}")));
    lines.push(format!("words: {words}"));
    if !pictures.is_empty() {
        lines.push(format!("pages that are pictures: {}", join(&pictures)));
    }
    let attachments = attachments(document, saved);
    if !attachments.is_empty() {
        lines.push(format!("attachments: {attachments}"));
    }
    lines.extend(document.notes.iter().map(|note| format!("note: {note}")));
    if document.headings.is_empty() {
        let labels: Vec<String> =
            document.parts.iter().filter(|part| !part.title.is_empty()).map(|part| document.label(part)).collect();
        if !labels.is_empty() {
            lines.push("parts:".to_owned());
            lines.extend(labels.iter().take(ENTRIES).map(|label| format!("- {label}")));
        }
    } else {
        lines.push("headings:".to_owned());
        let highest = document.headings.iter().map(|heading| heading.level).min().unwrap_or(1);
        for heading in &document.headings {
            let place = if heading.part == 0 { String::new() } else { document.place(heading.part) };
            let place = if place.is_empty() { place } else { format!(" ({place})") };
            lines.push(format!(
                "{}- {}{place}",
                "  ".repeat(heading.level.saturating_sub(highest).min(6)),
                heading.text
            ));
        }
    }
    if !beginning.is_empty() {
        lines.push(format!("begins: {beginning}"));
    }
    let text = lines.join("\n");
    let kept: String = text.chars().take(request.max).collect();
    let cut = if kept.len() < text.len() { "\n[cut: a larger max shows more]" } else { "" };
    format!("{kept}{cut}\n")
}

/// The first characters of the text on one line.
fn beginning(document: &Document) -> String {
    let text = document.parts.iter().map(|part| part.text.as_str()).find(|text| !text.is_empty()).unwrap_or_default();
    let marks = |word: &&str| word.chars().any(|c| !"#|->".contains(c));
    let words = text.split_whitespace().filter(marks).collect::<Vec<_>>().join(" ");
    let beginning: String = words.chars().take(BEGINNING).collect();
    if beginning.len() < words.len() { format!("{beginning}…") } else { beginning }
}
