//! Documents that are made and read back.

use super::{Setup, Source, to_docx, to_pdf};
use crate::kind::Kind;
use crate::read::{self, Reading};

fn pages(source: Source, setup: &Setup) -> Vec<String> {
    let made = to_pdf(source, setup).unwrap();
    let document = read::read_as(Kind::Pdf, made.bytes, &Reading::default()).unwrap();
    document.parts.into_iter().map(|part| part.text).collect()
}

fn html_pages(html: &str) -> Vec<String> {
    pages(Source::Html(html), &Setup::default())
}

fn docx_text(source: Source, setup: &Setup) -> String {
    let made = to_docx(source, setup).unwrap();
    let document = read::read_as(Kind::Docx, made.bytes, &Reading { paged: false, ..Reading::default() }).unwrap();
    document.parts.into_iter().map(|part| part.text).collect()
}

/// The places of words in a text, which must be in this order.
fn assert_order(text: &str, words: &[&str]) {
    let mut at = 0;
    for word in words {
        at += text[at..].find(word).unwrap_or_else(|| panic!("{word} is not where it should be in:\n{text}"))
            + word.len();
    }
}

const MARKDOWN: &str = "---\ntitle: The Report\nauthor: Ada\ndate: 2026-05-01\n---\n\n# First\n\nSome **bold**, *italic* and `code` with a [link](https://example.org).\n\n\
## Second Ελλάδα Привет\n\n- one\n- two\n  1. deep\n  2. deeper\n- [x] done\n\n> quoted\n\n```\nfn main() {\n    ok();\n}\n```\n\n| Name | Sum |\n|:--|--:|\n| Apples | 1.50 |\n| Pears | 2 |\n\n\
Text[^1].\n\n[^1]: The note.\n\n\\newpage\n\n# Third\n\nThe end.\n";

#[test]
fn markdown_becomes_pages() {
    let setup = Setup { has_contents: true, is_numbered: true, ..Setup::default() };
    let made = to_pdf(Source::Markdown(MARKDOWN), &setup).unwrap();
    assert_eq!(made.notes, Vec::<String>::new());
    let document = read::read_as(Kind::Pdf, made.bytes.clone(), &Reading::default()).unwrap();
    assert_eq!((document.find_fact("title"), document.find_fact("author")), (Some("The Report"), Some("Ada")));
    assert_eq!(document.parts.len(), 2);
    assert_order(
        &document.parts[0].text,
        &[
            "The Report",
            "Ada",
            "2026-05-01",
            "Contents",
            "Third",
            "2",
            "First",
            "Some",
            "bold",
            "code",
            "link",
            "Ελλάδα Привет",
            "one",
            "deeper",
            "done",
            "quoted",
        ],
    );
    assert_order(
        &document.parts[0].text,
        &["fn main() {", "ok();", "Name", "Sum", "Apples", "1.50", "Pears", "Text", "The note."],
    );
    assert_order(&document.parts[1].text, &["2", "Third", "The end.", "2"]);
    let headings: Vec<&str> = document.headings.iter().map(|heading| heading.text.trim()).collect();
    assert!(headings.len() >= 3 && headings[1].contains("Ελλάδα"), "{headings:?}");
    assert_eq!(made.bytes, to_pdf(Source::Markdown(MARKDOWN), &setup).unwrap().bytes);
}

#[test]
fn headings_do_not_end_a_page() {
    for count in 30..60 {
        let text = format!("{}\n## Heading\n\n{}", "line\n\n".repeat(count), "word ".repeat(120));
        let found = pages(Source::Markdown(&text), &Setup::default());
        let page = found.iter().find(|page| page.contains("Heading")).unwrap();
        assert!(page.split("Heading").nth(1).unwrap().matches("word").count() > 20, "{count}: {page}");
    }
}

#[test]
fn tables_go_on_with_their_head() {
    let rows: String = (0..150).map(|row| format!("<tr><td>row {row}.</td><td>x</td></tr>")).collect();
    let found =
        html_pages(&format!("<table><thead><tr><th>Name</th><th>Value</th></tr></thead><tbody>{rows}</tbody></table>"));
    assert!(found.len() > 2, "{}", found.len());
    assert!(found.iter().all(|page| page.matches("Name").count() == 1), "{found:?}");
    let all = found.join("\n");
    (0..150).for_each(|row| assert_eq!(all.matches(&format!("row {row}.")).count(), 1, "row {row}"));
    // A row that is higher than a page goes on, too.
    let long = format!("<table border=1><tr><td>{}</td><td>short</td></tr></table>", "word<br>".repeat(200));
    assert_eq!(html_pages(&long).join(" ").matches("word").count(), 200);
}

#[test]
fn style_sheets_count() {
    let html = "<style>@page { size: A5; @bottom-center { content: 'Page ' counter(page) ' of ' counter(pages) } }\
        .row { display: flex; justify-content: space-between } .gone { display: none } h2 { page-break-before: always; text-transform: uppercase }\
        li::before { content: '✓ ' } .row::after { content: '' }</style>\
        <div class=row><div>left</div><div>right</div></div><p class=gone>gone</p><ul><li>item</ul><h2>next</h2><div style='float:left'>near</div><p>beside</p>";
    let found = html_pages(html);
    assert_eq!(found.len(), 2);
    assert_order(&found[0], &["left", "right", "✓ item", "Page 1 of 2"]);
    assert!(!found[0].contains("gone"));
    assert_order(&found[1], &["NEXT", "near", "beside", "Page 2 of 2"]);
    let made = to_pdf(Source::Html(html), &Setup::default()).unwrap();
    let pdf = crate::pdf::open(made.bytes, &[]).unwrap();
    let size = pdf.pages()[0].render_dimensions();
    assert!((size.0 - 419.5).abs() < 1.0, "{size:?}");
}

#[test]
fn a_fixed_box_is_on_each_page() {
    let html = "<div style='position:fixed;bottom:0'>imprint</div><p style='page-break-after:always'>one<p>two <span style='display:inline-block;padding:9px'>boxed</span>";
    let found = html_pages(html);
    assert_eq!(found.len(), 2);
    assert_order(&found[0], &["one", "imprint"]);
    assert_order(&found[1], &["two boxed", "imprint"]);
    assert!(docx_text(Source::Html(html), &Setup::default()).contains("imprint"));
}

#[test]
fn pictures_are_drawn() {
    let folder = std::env::temp_dir().join(format!("make-pictures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a b.png"), super::picture::sample(8, 4)).unwrap();
    std::fs::write(folder.join("c.jpg"), super::picture::sample_jpeg(40, 30, 6)).unwrap();
    let setup = Setup { folder: folder.clone(), ..Setup::default() };
    let text = "![one](a%20b.png){width=50%}\n\n<img src='c.jpg' alt=two height=30>\n\n![three](none.png) ![four](https://x.y/z.png)\n";
    let made = to_pdf(Source::Markdown(text), &setup).unwrap();
    assert_eq!(made.notes.len(), 2, "{:?}", made.notes);
    let count = made
        .bytes
        .windows(14)
        .filter(|window| *window == b"/Subtype/Image" || window.starts_with(b"/Subtype /Imag"))
        .count();
    assert_eq!(count, 3, "two pictures and a mask");
    let made = to_docx(Source::Markdown(text), &setup).unwrap();
    let document = read::read_as(Kind::Docx, made.bytes, &Reading::default()).unwrap();
    assert_eq!(document.attachments.len(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn docx_has_styles_lists_and_tables() {
    let text = docx_text(Source::Markdown(MARKDOWN), &Setup { has_contents: true, ..Setup::default() });
    assert_order(
        &text,
        &[
            "# The Report",
            "Contents",
            "Third",
            "# First",
            "**bold**",
            "*italic*",
            "[link](https://example.org)",
            "## Second Ελλάδα Привет",
            "- one",
            "1. deep",
            "> quoted",
            "fn main() {",
            "| **Name** | **Sum** |",
            "| Apples | 1.50 |",
            "# Third",
            "The end.",
        ],
    );
    let html = "<h1>T</h1><div style='display:flex'><div>a</div><div>b</div></div><table><tr><td rowspan=2>r</td><td>1</td></tr><tr><td>2</td></tr></table>";
    let text = docx_text(Source::Html(html), &Setup::default());
    assert_order(&text, &["# T", "| a | b |", "| r | 1 |"]);
    assert_eq!(
        to_docx(Source::Html(html), &Setup::default()).unwrap().bytes,
        to_docx(Source::Html(html), &Setup::default()).unwrap().bytes
    );
}

#[test]
fn fonts_are_missed_by_name() {
    let made =
        to_pdf(Source::Markdown("漢字 and ✅"), &Setup { folder: "/nonexistent".into(), ..Setup::default() }).unwrap();
    assert!(made.notes.len() == 1 && made.notes[0].contains('漢'), "{:?}", made.notes);
    let setup = Setup { main_font: Some("none.ttf".to_owned()), ..Setup::default() };
    assert!(to_pdf(Source::Markdown("a"), &setup).unwrap_err().to_string().contains("no such file"));
    let setup = Setup { main_font: Some("Georgia".to_owned()), ..Setup::default() };
    assert!(to_pdf(Source::Markdown("a"), &setup).unwrap().notes[0].contains("Georgia"));
}

#[test]
fn hostile_pages_end() {
    let deep = |part: &str, count: usize| part.repeat(count);
    let pages = [
        deep("<div><table><tr><td>", 3_000),
        deep("<div style='display:flex'><p>", 2_000),
        deep("<ul><li>x", 2_000),
        deep("<b><i><span style='border:1px solid;padding:9px'>", 2_000) + "x",
        "x".repeat(200_000),
        "<table><tr><td colspan=999999 rowspan=999999>x<td rowspan=5000>y<tr><td>z</table>".to_owned(),
        format!("<table>{}</table>", "<tr><td rowspan=900 colspan=90>x".repeat(300)),
        "<p style='font-size:1e30px;margin:-1e30px;line-height:1e-30;width:-5px;padding:1e9px;letter-spacing:9e9px'>x</p>".to_owned(),
        "<div style='display:grid;grid-template-columns:repeat(99999,1fr);gap:1e9px'><i>x</i></div>".to_owned(),
        "<style>@page{size:0 0;margin:-9cm} *{margin:-50px;width:0;height:0;display:table-cell}</style><p>a<p>b".to_owned(),
        "<style>@page{size:1e9px 1px;margin:50cm}</style><h1>a</h1><h2>b</h2><p>c".to_owned(),
        format!("<style>{}</style><p><b>x", "a b c d e f > g + h ~ i, *:nth-child(2n+1) * * * {color:red}".repeat(2_000)),
        format!("<style>:root{{--a:var(--b)var(--b);--b:var(--a)var(--a)}} p{{color:var(--a)}} {}", "p{color:var(--a)}".repeat(300)),
        "<h1>a</h1>".repeat(500) + &"<hr style='height:600px'>".repeat(20),
        "<ol start=99999999999999><li value=-9223372036854775808>x<li value=9223372036854775807>y<li>z</ol>".to_owned(),
        "<img src='data:image/png;base64,AAAA'><img src='data:image/gif;base64,R0lGODlh'><svg><path/></svg><iframe>x".to_owned(),
        "\u{0}\u{1}\u{feff}\u{202e}\u{fffe}\u{ffff}<p title='\u{0}'>\u{d7ff}\u{10ffff}".to_owned(),
    ];
    for (number, page) in pages.iter().enumerate() {
        let made = to_pdf(Source::Html(page), &Setup::default()).unwrap();
        assert!(made.bytes.starts_with(b"%PDF"), "{number}");
        to_docx(Source::Html(page), &Setup::default()).unwrap();
    }
    for text in [
        deep("> ", 5_000),
        deep("- ", 2_000),
        deep("[", 20_000),
        deep("![a](", 3_000),
        "|a".repeat(5_000) + "\n" + &"|-".repeat(5_000),
        deep("*a **b ", 5_000),
    ] {
        to_pdf(Source::Markdown(&text), &Setup::default()).unwrap();
    }
    let long = "x\n\n".repeat(2 << 20);
    assert!(to_pdf(Source::Markdown(&long), &Setup::default()).unwrap_err().to_string().contains("limit"));
}

#[test]
fn pages_without_end_are_cut() {
    let html = "<p style='page-break-after:always'>x</p>".repeat(6_000);
    let made = to_pdf(Source::Html(&html), &Setup::default()).unwrap();
    assert!(made.notes[0].contains("too long"), "{:?}", made.notes);
}

#[test]
fn cut_texts_are_made() {
    let html = "<style>@media print { a { color: #123 } } .a > b:nth-child(2n+1)::after { content: 'x\\2713' }</style><div class=a style='display:flex;gap:1em'>\
        <b>x</b><table border=1><tr><th>h<td rowspan=2>c</table><ul><li>y</ul></div><pre>z\n\tw</pre>";
    for end in (0..html.len()).filter(|end| html.is_char_boundary(*end)) {
        to_pdf(Source::Html(&html[..end]), &Setup::default()).unwrap();
    }
}
