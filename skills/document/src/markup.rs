//! Markdown as HTML and as plain text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

fn parser(markdown: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    Parser::new_ext(markdown, options)
}

/// HTML of the blocks, without a head.
pub fn to_html(markdown: &str) -> String {
    let mut text = String::new();
    html::push_html(&mut text, parser(markdown));
    text
}

/// A whole page.
pub fn to_page(markdown: &str, title: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n</head>\n<body>\n{}</body>\n</html>\n",
        to_html(markdown)
    )
}

/// Text without marks.
pub fn to_plain(markdown: &str) -> String {
    let mut text = String::new();
    // Numbers of the next items; none for bullets.
    let mut lists: Vec<Option<u64>> = Vec::new();
    let mut silent = false;
    let mut first_cell = true;
    for event in parser(markdown) {
        match event {
            Event::Text(words) | Event::Code(words) if !silent => text.push_str(&words),
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::Rule => text.push_str("\n----\n"),
            Event::FootnoteReference(name) => text.push_str(&format!("[{name}]")),
            Event::TaskListMarker(done) => text.push_str(if done { "[x] " } else { "[ ] " }),
            Event::Start(Tag::List(start)) => {
                begin_line(&mut text);
                lists.push(start);
            }
            Event::Start(Tag::Item) => {
                begin_line(&mut text);
                let indent = "  ".repeat(lists.len().saturating_sub(1).min(20));
                let mark = match lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "-".to_owned(),
                };
                text.push_str(&format!("{indent}{mark} "));
            }
            Event::Start(
                Tag::Heading { .. } | Tag::Paragraph | Tag::CodeBlock(_) | Tag::BlockQuote(_) | Tag::Table(_),
            ) if lists.is_empty() => {
                begin_block(&mut text);
            }
            Event::Start(Tag::FootnoteDefinition(name)) => {
                begin_block(&mut text);
                text.push_str(&format!("[{name}] "));
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => first_cell = true,
            Event::Start(Tag::TableCell) if !std::mem::take(&mut first_cell) => text.push('\t'),
            Event::Start(Tag::MetadataBlock(_)) => silent = true,
            Event::End(TagEnd::MetadataBlock(_)) => silent = false,
            Event::End(TagEnd::List(_)) => drop(lists.pop()),
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => begin_line(&mut text),
            _ => {}
        }
    }
    begin_line(&mut text);
    text
}

fn begin_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn begin_block(text: &mut String) {
    begin_line(text);
    if !text.is_empty() && !text.ends_with("\n\n") && !text.ends_with("] ") {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_converted() {
        let markdown =
            "# A *b*\n\ntext [link](https://x.y)\n\n- one\n- two\n  1. three\n\n| a | b |\n| - | - |\n| 1 | 2 |\n";
        assert_eq!(to_plain(markdown), "A b\n\ntext link\n- one\n- two\n  1. three\n\na\tb\n1\t2\n");
        assert!(to_html(markdown).contains("<td>1</td><td>2</td>"));
        assert!(to_page("x", "a < b").contains("<title>a &lt; b</title>"));
    }

    #[test]
    fn deep_nesting_ends() {
        to_plain(&">".repeat(20_000));
        to_html(&"- ".repeat(2_000));
    }
}
