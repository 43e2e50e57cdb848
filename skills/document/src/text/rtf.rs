//! RTF: text, marks, tables and properties.

mod walk;

use crate::document::Document;
use crate::error::Result;
use crate::kind::Kind;
use crate::out::Out;
use crate::read::Reading;

/// Reads a text.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let facts = write(bytes, &mut out);
    let mut document = Document::new(Kind::Rtf, out);
    for (name, value) in facts {
        document.fact(name, value);
    }
    Ok(document)
}

/// Writes the blocks of a text. Returns what its properties say.
pub fn write(bytes: &[u8], out: &mut Out) -> Vec<(&'static str, String)> {
    walk::Walk::new(out).read(bytes)
}

/// The HTML that Outlook wrapped into RTF (`\fromhtml1`).
pub fn wrapped_html(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(400)];
    crate::kind::contains(head, b"\\fromhtml1").then(|| walk::unwrap_html(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Style;

    fn markdown(rtf: &[u8]) -> String {
        let mut out = Out::new(Style::Markdown, None, 100_000);
        write(rtf, &mut out);
        out.finish().1.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn texts_and_marks_are_read() {
        assert_eq!(
            markdown(
                b"{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}{\\f1\\fcharset204 X;}}{\\info{\\title T}}{\\*\\generator x;}\\f0 Gr\\'fc\\'dfe \\b bold\\b0 .\\par\
                  \\u8364? 5\\line next\\par{\\f1 \\'cf\\'f0}\\par a\\emdash b{\\footnote note}\\tab c}"
            ),
            "Grüße **bold**.\n\n€ 5  \nnext\n\nПр\n\na—b[note]\tc"
        );
    }

    #[test]
    fn tables_are_read() {
        assert_eq!(
            markdown(b"{\\rtf1 before\\par\\trowd\\intbl a\\cell b\\cell\\row\\trowd\\intbl 1\\cell 2\\cell\\row\\pard after}"),
            "before\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nafter"
        );
    }

    #[test]
    fn hostile_texts_end() {
        markdown(&[b"{\\rtf1".as_slice(), &b"{".repeat(100_000)].concat());
        for text in [
            &b"{\\rtf1 \\u-1 \\u99999999999 \\'"[..],
            b"{\\rtf1\\bin99999999 x",
            b"{\\rtf1}}}}}} x",
            b"{\\rtf1 \\uc99 \\u65 x",
        ] {
            markdown(text);
        }
    }

    #[test]
    fn html_is_unwrapped() {
        let rtf = b"{\\rtf1\\ansi\\fromhtml1 {\\*\\htmltag64 <p>}hel{\\*\\htmltag <b>}lo\\htmlrtf {\\b hidden\\htmlrtf0 {\\*\\htmltag </b>}}";
        assert_eq!(wrapped_html(rtf).unwrap(), "<p>hel<b>lo</b>");
    }
}
