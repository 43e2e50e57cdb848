//! HTML to Markdown and to plain text.

use crate::Form;
use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, HrStyle, Options};
use kiso_sdk::http::join;
use markup5ever_rcdom::{Handle, NodeData};
use std::rc::Rc;

/// A page that was converted.
#[derive(Debug)]
pub struct Page {
    pub title: Option<String>,
    pub text: String,
}

/// Elements to skip: code, forms, pictures made of markup, the links around the page, and the title, which is returned separately.
#[rustfmt::skip]
const NOISE: [&str; 17] = [
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "form", "button", "select",
    "textarea", "dialog", "nav", "footer", "aside", "title",
];
/// Elements that begin a line of their own in plain text.
#[rustfmt::skip]
const BLOCKS: [&str; 30] = [
    "address", "article", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre",
    "section", "table", "tr", "ul",
];
/// Deepest nesting that is read; what lies deeper is dropped. Conversion recurses, and a page may nest without end.
/// (Parsing such a page takes time that grows with the square of its depth; that is for the deadline to end.)
const DEPTH: usize = 200;

/// Converts a page that was found at `base`; links become absolute.
pub fn convert(html: &str, base: &str, form: Form) -> Result<Page, String> {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        hr_style: HrStyle::Dashes,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).skip_tags(NOISE.into()).scripting_enabled(false).build();
    let tree = converter.html_to_tree(html).map_err(|e| format!("the page cannot be read: {e}"))?;
    let base = find(&tree, "base")
        .and_then(|b| attribute(&b, "href"))
        .map_or_else(|| base.to_owned(), |href| join(base, &href));
    let title = find(&tree, "title").map(|t| words_of(&t)).filter(|t| !t.is_empty());
    tidy(&tree, &base);
    // Where a page says what its content is, the rest is decoration.
    let content = find(&tree, "main").or_else(|| only_article(&tree)).unwrap_or_else(|| tree.clone());
    let mut text = match form {
        Form::Text | Form::Json => plain(&content),
        Form::Markdown => converter.tree_to_markdown(&content),
    };
    if text.trim().is_empty() {
        text = plain(&tree);
    }
    Ok(Page { title, text: few_blank_lines(&text) })
}

/// All elements in document order, without recursion.
fn elements(root: &Handle) -> impl Iterator<Item = (Handle, usize)> {
    let mut stack = vec![(root.clone(), 0)];
    std::iter::from_fn(move || {
        let (node, depth) = stack.pop()?;
        stack.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), depth + 1)));
        Some((node, depth))
    })
    .filter(|(node, _)| name(node).is_some())
}

fn name(node: &Handle) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn find(root: &Handle, wanted: &str) -> Option<Handle> {
    elements(root).map(|(node, _)| node).find(|node| name(node) == Some(wanted))
}

/// The article of a page that has just one.
fn only_article(root: &Handle) -> Option<Handle> {
    let mut articles = elements(root).map(|(node, _)| node).filter(|node| name(node) == Some("article"));
    let first = articles.next()?;
    articles.next().is_none().then_some(first)
}

fn attribute(node: &Handle, wanted: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|a| &*a.name.local == wanted).map(|a| a.value.to_string())
}

/// Makes links absolute, drops what cannot be followed, and cuts the tree at [`DEPTH`].
fn tidy(root: &Handle, base: &str) {
    let mut deep = Vec::new();
    for (node, depth) in elements(root) {
        if depth >= DEPTH {
            deep.push(node);
            continue;
        }
        let NodeData::Element { attrs, .. } = &node.data else { continue };
        attrs.borrow_mut().retain_mut(|attribute| {
            if !matches!(&*attribute.name.local, "href" | "src") {
                return true;
            }
            let target = attribute.value.trim().to_ascii_lowercase();
            // Pictures inside the page can be as long as the page; scripts go nowhere.
            if ["javascript:", "data:", "vbscript:"].iter().any(|s| target.starts_with(s)) {
                return false;
            }
            attribute.value = join(base, &attribute.value).into();
            true
        });
    }
    for node in deep {
        node.children.borrow_mut().clear();
    }
}

/// The words directly in an element, as a title has them.
fn words_of(node: &Handle) -> String {
    let texts = node.children.borrow();
    let texts = texts.iter().filter_map(|child| match &child.data {
        NodeData::Text { contents } => Some(contents.borrow().to_string()),
        _ => None,
    });
    squeezed(&texts.collect::<String>())
}

/// The text of a tree, one line for each block.
fn plain(root: &Handle) -> String {
    let mut text = String::new();
    write_plain(root, &mut text, false);
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn write_plain(node: &Rc<markup5ever_rcdom::Node>, out: &mut String, preformatted: bool) {
    let tag = match &node.data {
        NodeData::Text { contents } if preformatted => return out.push_str(&contents.borrow()),
        NodeData::Text { contents } => return write_words(&contents.borrow(), out),
        NodeData::Element { name, .. } => &*name.local,
        NodeData::Document => "",
        _ => return,
    };
    match tag {
        "br" => out.push('\n'),
        "head" => return,
        "td" | "th" if !out.ends_with('\n') && !out.is_empty() => out.push('\t'),
        _ if NOISE.contains(&tag) => return,
        _ => {}
    }
    let block = BLOCKS.contains(&tag);
    if block {
        line_break(
            out,
            matches!(tag, "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "ul" | "ol" | "table" | "blockquote"),
        );
        if tag == "li" {
            out.push_str("- ");
        }
    }
    for child in node.children.borrow().iter() {
        write_plain(child, out, preformatted || tag == "pre");
    }
    if block {
        line_break(out, false);
    }
}

/// Ends the line, and leaves one blank where `paragraph` asks for it. The line of a list item is not ended before it has words.
fn line_break(out: &mut String, paragraph: bool) {
    while out.ends_with(' ') && !out.ends_with("- ") {
        out.pop();
    }
    if out.is_empty() || out.ends_with("- ") {
        return;
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    if paragraph && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn write_words(text: &str, out: &mut String) {
    let open = out.is_empty() || out.ends_with([' ', '\n', '\t']);
    if text.starts_with(char::is_whitespace) && !open {
        out.push(' ');
    }
    let words = squeezed(text);
    out.push_str(&words);
    if !words.is_empty() && text.ends_with(char::is_whitespace) {
        out.push(' ');
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with at most one blank line in a row outside of code.
fn few_blank_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut blank, mut code) = (0, false);
    for line in text.trim().lines() {
        code ^= line.trim_start().starts_with("```");
        blank = if line.trim().is_empty() && !code { blank + 1 } else { 0 };
        if blank < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<!doctype html><html><head><title> The
        Page </title><style>p { color: red }</style></head><body>
        <nav><a href="/">Home</a></nav>
        <main><h1>Rain &amp; sun</h1>
        <p>It <b>rains</b> in <a href="../oslo?x=1#y">Oslo</a>,
           <code>42</code>&nbsp;mm.<br>Bring an umbrella.</p>
        <script>alert("x")</script>
        <ul><li>one</li><li><p>two</p></li></ul>
        <table><thead><tr><th>city</th><th>mm</th></tr></thead><tbody><tr><td>Oslo</td><td>3</td></tr></tbody></table>
        <pre><code>let x =  1;
let y = 2;</code></pre>
        <img src="sun.png" alt="Sun"><img src="data:image/png;base64,AAAA" alt="dot"></main>
        <footer>Imprint</footer></body></html>"#;

    #[test]
    fn a_page_becomes_markdown() {
        let page = convert(PAGE, "https://example.com/a/b/c.html", Form::Markdown).unwrap();
        assert_eq!(page.title.as_deref(), Some("The Page"));
        for part in [
            "# Rain & sun",
            "It **rains** in [Oslo](https://example.com/a/oslo?x=1#y), `42`",
            "- one\n",
            "| city | mm |",
            "```\nlet x =  1;\nlet y = 2;\n```",
            "![Sun](https://example.com/a/b/sun.png)",
        ] {
            assert!(page.text.contains(part), "{part:?} in:\n{}", page.text);
        }
        for noise in ["alert", "Home", "Imprint", "color", "base64"] {
            assert!(!page.text.contains(noise), "{noise:?} in:\n{}", page.text);
        }
    }

    #[test]
    fn a_page_becomes_text() {
        let page = convert(PAGE, "https://example.com/a/b/c.html", Form::Text).unwrap();
        let expected = "Rain & sun\n\nIt rains in Oslo, 42 mm.\nBring an umbrella.\n\n- one\n- two\n\ncity\tmm\nOslo\t3\n\nlet x =  1;\nlet y = 2;";
        assert_eq!(page.text, expected);
    }

    #[test]
    fn endless_nesting_is_cut() {
        let html = format!("<p>top</p>{}deep", "<div>".repeat(2_000));
        for form in [Form::Markdown, Form::Text] {
            assert_eq!(convert(&html, "https://example.com/", form).unwrap().text, "top");
        }
    }

    #[test]
    fn what_is_no_page_does_not_fail() {
        for html in ["", "<", "plain words", "<p>unclosed <b>bold", "<table><td>x", "\0\u{fffd}<\u{0}div"] {
            convert(html, "https://example.com/", Form::Markdown).unwrap();
        }
        assert_eq!(convert("plain words", "https://example.com/", Form::Text).unwrap().text, "plain words");
    }

    #[test]
    fn the_page_may_name_its_own_base() {
        let html = r#"<base href="https://cdn.example.com/x/"><a href="y">z</a>"#;
        assert_eq!(
            convert(html, "https://example.com/", Form::Markdown).unwrap().text,
            "[z](https://cdn.example.com/x/y)"
        );
    }
}
