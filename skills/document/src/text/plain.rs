//! Plain text, Markdown and CSV.

use crate::charset;
use crate::document::Document;
use crate::error::Result;
use crate::kind::Kind;
use crate::out::Out;
use crate::read::Reading;
use crate::sheet::csv::{Records, find_delimiter};

/// Reads a text.
pub fn read(kind: Kind, bytes: &[u8], reading: &Reading) -> Result<Document> {
    let text = charset::decode(bytes, None);
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let mut rows = 0;
    match kind {
        Kind::Csv => {
            let mut kept = Vec::new();
            let mut bytes = 0;
            for record in Records::new(&text, find_delimiter(&text)) {
                rows += 1;
                bytes += record.iter().map(|field| field.len() + 3).sum::<usize>();
                if bytes <= reading.limit {
                    kept.push(record);
                }
            }
            out.table(&kept);
        }
        _ => {
            let text = text.replace("\r\n", "\n");
            out.raw(&text);
            if kind == Kind::Markdown {
                outline(&text, &mut out);
            }
        }
    }
    let mut document = Document::new(kind, out);
    if kind == Kind::Csv {
        document.fact("rows", rows.to_string());
    } else {
        document.fact("lines", text.lines().count().to_string());
    }
    Ok(document)
}

/// Finds the headings of Markdown outside code.
fn outline(text: &str, out: &mut Out) {
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if !in_code && (1..=6).contains(&level) && line[level..].starts_with(' ') {
            out.record_heading(level, line[level..].trim_matches(['#', ' ']));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        let document = read(Kind::Markdown, b"# A\r\n\r\ntext\n```\n# b\n```\n## C ##\n", &Reading::default()).unwrap();
        assert_eq!(document.headings.iter().map(|heading| heading.text.as_str()).collect::<Vec<_>>(), ["A", "C"]);
        let document = read(Kind::Csv, b"a;b\n1;2\n", &Reading::default()).unwrap();
        assert_eq!(document.parts[0].text, "| a | b |\n| --- | --- |\n| 1 | 2 |");
    }
}
