//! HTML: token by token, so that neither its nesting nor its mistakes matter.

mod walk;

use crate::charset;
use crate::document::Document;
use crate::error::Result;
use crate::kind::Kind;
use crate::out::Out;
use crate::read::Reading;

pub use walk::Facts;

/// Reads a page.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let label = charset::html_label(bytes);
    let text = charset::decode(bytes, label.as_deref());
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let facts = write(&text, &mut out);
    let mut document = Document::new(Kind::Html, out);
    document.fact("title", &facts.title);
    document.fact("author", &facts.author);
    document.fact("subject", &facts.description);
    document.fact("language", &facts.language);
    Ok(document)
}

/// Writes the blocks of a page. Returns what its head says.
pub fn write(text: &str, out: &mut Out) -> Facts {
    walk::walk(text, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Style;

    fn markdown(html: &str) -> String {
        let mut out = Out::new(Style::Markdown, None, 100_000);
        write(html, &mut out);
        out.finish().1.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn blocks_and_marks_are_written() {
        assert_eq!(
            markdown(
                "<head><title>T</title><style>p{}</style></head><h2>A <em>b</em></h2><p>one <b>two</b>\n three<br>four<p>five\
                 <a href='https://x.y/z'>link</a><ul><li>a<ol><li>b<li>c</ol><li><p>d</ul><pre>x\n  y</pre><blockquote>q</blockquote><hr>\
                 <script>var a = '<p>no</p>';</script>&euro;&nbsp;5"
            ),
            "## A *b*\n\none **two** three  \nfour\n\nfive[link](https://x.y/z)\n\n- a\n  1. b\n  2. c\n- d\n\n```\nx\n  y\n```\n\n> q\n\n---\n\n€ 5"
        );
    }

    #[test]
    fn tables_are_written() {
        assert_eq!(
            markdown("<table><tr><th>a<th colspan=2>b</tr><tr><td>1<td><p>2</p><p>x</p><td>3</table>after"),
            "| a | b |  |\n| --- | --- | --- |\n| 1 | 2<br>x | 3 |\n\nafter"
        );
        assert_eq!(markdown("<table><tr><td>only layout</td></tr></table>"), "only layout");
    }

    #[test]
    fn hostile_pages_end() {
        let deep = "<div><table><tr><td>".repeat(50_000);
        assert_eq!(markdown(&format!("{deep}x")), "x");
        markdown("<p <<<&#x; <![CDATA[ <!-- never closed");
    }

    #[test]
    fn the_head_is_told() {
        let page =
            b"<html lang=de><meta charset=iso-8859-1><title>Gr\xfc\xdfe</title><meta name=author content=Ada><p>\xe4";
        let document = read(page, &Reading::default()).unwrap();
        assert_eq!(document.parts[0].text, "ä");
        assert_eq!(document.find_fact("title"), Some("Grüße"));
        assert_eq!((document.find_fact("author"), document.find_fact("language")), (Some("Ada"), Some("de")));
    }
}
