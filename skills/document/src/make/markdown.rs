//! Markdown as HTML for pages, with what pandoc adds to it: a head in YAML, sizes of pictures, page breaks.

use std::collections::VecDeque;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html};

/// Events that are looked at together for one picture.
const PICTURE_EVENTS: usize = 200;

/// Name and value of the head.
pub type Facts = Vec<(String, String)>;

/// HTML of the blocks, and the head. With `is_smart`, quotes and dashes become those of print.
pub fn to_html(markdown: &str, is_smart: bool) -> (String, Facts) {
    let (facts, body) = front_matter(markdown);
    let body = page_breaks(body);
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_GFM;
    options.set(Options::ENABLE_SMART_PUNCTUATION, is_smart);
    let mut in_code = false;
    let events = TextMergeStream::new(Parser::new_ext(&body, options)).flat_map(move |event| {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            _ => {}
        }
        if is_smart && !in_code { raised(event) } else { vec![event] }
    });
    let events = WithPictures { events: events.peekable(), ready: VecDeque::new() };
    let mut text = String::new();
    html::push_html(&mut text, events);
    (text, facts)
}

/// Splits the head in YAML from the text. Of YAML, it takes names with strings, lists and blocks of text.
fn front_matter(text: &str) -> (Facts, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r'])) else {
        return (Vec::new(), text);
    };
    let mut facts: Facts = Vec::new();
    let mut at = text.len() - rest.len();
    for line in rest.split_inclusive('\n') {
        at += line.len();
        let plain = line.trim_end();
        if at > 4 && matches!(plain, "---" | "...") {
            return (facts, &text[at..]);
        }
        let is_inner = plain.starts_with([' ', '\t', '-']);
        match plain.split_once(':').filter(|(name, _)| !is_inner && !name.contains(' ')) {
            Some((name, value)) => {
                let value = value.trim();
                let is_block = matches!(value, "|" | ">" | "|-" | ">-");
                let list = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
                let value = match list {
                    Some(list) => list.split(',').map(unquote).collect::<Vec<_>>().join(", "),
                    None => unquote(value).to_owned(),
                };
                facts.push((name.trim().to_ascii_lowercase(), if is_block { String::new() } else { value }));
            }
            None if is_inner => {
                if let Some((_, known)) = facts.last_mut() {
                    let more = plain.trim().trim_start_matches("- ");
                    let separator = if plain.trim_start().starts_with("- ") { ", " } else { " " };
                    if !known.is_empty() && !more.is_empty() {
                        known.push_str(separator);
                    }
                    known.push_str(unquote(more));
                }
            }
            None => {}
        }
    }
    // It has no end: it is a line in the text.
    (Vec::new(), text)
}

fn unquote(value: &str) -> &str {
    crate::make::css::sheet::unquote(value)
}

/// Lines with the command of LaTeX for a new page.
fn page_breaks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let plain = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| plain.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_none() && matches!(plain, "\\newpage" | "\\pagebreak" | "\\clearpage") {
            out.push_str("\n<div style=\"page-break-after: always\"></div>\n\n");
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Text with `x^2^` raised and `H~2~O` lowered, as pandoc has them: without spaces between the marks.
fn raised(event: Event) -> Vec<Event> {
    let Event::Text(text) = &event else { return vec![event] };
    let mut parts = Vec::new();
    let mut rest = text.as_ref();
    let mut start = 0;
    while let Some(at) = rest[start..].find(['^', '~']).map(|at| start + at) {
        let mark = &rest[at..=at];
        let inner = &rest[at + 1..];
        let end =
            inner.find([' ', '\n', '^', '~']).filter(|end| inner[*end..].starts_with(mark) && (1..=30).contains(end));
        let follows_word = rest[..at].ends_with(char::is_alphanumeric) || rest[..at].ends_with(')');
        match end.filter(|_| follows_word) {
            Some(end) => {
                let name = if mark == "^" { "sup" } else { "sub" };
                parts.push(Event::Text(CowStr::from(rest[..at].to_owned())));
                parts.push(Event::InlineHtml(CowStr::from(format!("<{name}>{}</{name}>", escape(&inner[..end])))));
                rest = &inner[end + 1..];
                start = 0;
            }
            None => start = at + 1,
        }
    }
    if parts.is_empty() {
        return vec![event];
    }
    parts.push(Event::Text(CowStr::from(rest.to_owned())));
    parts
}

/// Events with what pandoc adds to pictures.
struct WithPictures<'m, I: Iterator<Item = Event<'m>>> {
    events: std::iter::Peekable<I>,
    ready: VecDeque<Event<'m>>,
}

impl<'m, I: Iterator<Item = Event<'m>>> Iterator for WithPictures<'m, I> {
    type Item = Event<'m>;

    fn next(&mut self) -> Option<Event<'m>> {
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        let event = self.events.next()?;
        let is_alone = matches!(event, Event::Start(Tag::Paragraph))
            && matches!(self.events.peek(), Some(Event::Start(Tag::Image { .. })));
        if !is_alone && !matches!(event, Event::Start(Tag::Image { .. })) {
            return Some(event);
        }
        let mut part = vec![event];
        while part.len() < PICTURE_EVENTS {
            let Some(event) = self.events.next() else { break };
            let ends = match event {
                Event::End(TagEnd::Paragraph) => true,
                Event::End(TagEnd::Image) => {
                    !is_alone && !matches!(self.events.peek(), Some(Event::Text(text)) if text.starts_with('{'))
                }
                _ => false,
            };
            part.push(event);
            if ends {
                break;
            }
        }
        self.ready = as_figure(with_sizes(part)).into();
        self.ready.pop_front()
    }
}

/// A picture that is a paragraph has its text below it.
fn as_figure(events: Vec<Event>) -> Vec<Event> {
    let (caption, picture) = match events.as_slice() {
        [Event::Start(Tag::Paragraph), Event::InlineHtml(picture), rest @ .., Event::End(TagEnd::Paragraph)]
            if picture.starts_with("<img") && rest.iter().all(is_blank) =>
        {
            let alt =
                picture.split_once("alt=\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(alt, _)| alt);
            (alt.to_owned(), picture.to_string())
        }
        [
            Event::Start(Tag::Paragraph),
            Event::Start(Tag::Image { dest_url, .. }),
            inner @ ..,
            Event::End(TagEnd::Image),
            Event::End(TagEnd::Paragraph),
        ] if !inner.iter().any(|event| matches!(event, Event::End(TagEnd::Image))) => {
            let alt = escape(&words(inner));
            (alt.clone(), format!("<img src=\"{}\" alt=\"{alt}\">", escape(dest_url)))
        }
        _ => return events,
    };
    if caption.is_empty() {
        return events;
    }
    vec![Event::Html(CowStr::from(format!("<figure>{picture}<figcaption>{caption}</figcaption></figure>\n")))]
}

fn is_blank(event: &Event) -> bool {
    matches!(event, Event::Text(text) if text.trim().is_empty())
}

/// The text of events.
fn words(events: &[Event]) -> String {
    let words = events.iter().filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        Event::SoftBreak => Some(" "),
        _ => None,
    });
    words.collect()
}

/// Gives pictures the size in braces behind them: `![](a.png){width=50%}`.
fn with_sizes(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::with_capacity(events.len());
    let mut events = events.into_iter().peekable();
    while let Some(event) = events.next() {
        let Event::End(TagEnd::Image) = event else {
            out.push(event);
            continue;
        };
        let braces = match events.peek() {
            Some(Event::Text(text)) if text.starts_with('{') => text.find('}').map(|end| text[1..end].to_owned()),
            _ => None,
        };
        let start = out.iter().rposition(|event| matches!(event, Event::Start(Tag::Image { .. })));
        let (Some(braces), Some(start)) = (braces, start) else {
            out.push(event);
            continue;
        };
        let inner: Vec<Event> = out.drain(start..).collect();
        let Some(Event::Start(Tag::Image { dest_url, .. })) = inner.first() else { continue };
        let alt = words(&inner);
        let style: String = braces
            .split_whitespace()
            .filter_map(|part| part.split_once('='))
            .filter(|(name, _)| matches!(*name, "width" | "height"))
            .map(|(name, value)| {
                let value = unquote(value);
                let unit = if value.parse::<f32>().is_ok() { "px" } else { "" };
                format!("{name}:{}{unit};", escape(value))
            })
            .collect();
        let picture = format!("<img src=\"{}\" alt=\"{}\" style=\"{style}\">", escape(dest_url), escape(&alt));
        out.push(Event::InlineHtml(CowStr::from(picture)));
        if let Some(Event::Text(text)) = events.next() {
            let rest = text.split_once('}').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            out.push(Event::Text(CowStr::from(rest)));
        }
    }
    out
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let (html, facts) = to_html(
            "---\ntitle: \"A: b\"\nauthor:\n  - Ada\n  - Bob\ntags: [x, 'y']\n---\n\n# T {#t}\n\n\\newpage\n\n![a](b.png){width=50% height=20}x\n",
            true,
        );
        assert_eq!(
            facts,
            [("title", "A: b"), ("author", "Ada, Bob"), ("tags", "x, y")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(html.contains("<h1 id=\"t\">T</h1>") && html.contains("page-break-after"), "{html}");
        assert!(html.contains("<img src=\"b.png\" alt=\"a\" style=\"width:50%;height:20px;\">x"), "{html}");
        let (html, _) = to_html("![A *b*](c.png)\n\n![](d.png){height=1cm}\n\nx ![e](f.png) y", true);
        assert!(
            html.contains("<figure><img src=\"c.png\" alt=\"A b\"><figcaption>A b</figcaption></figure>"),
            "{html}"
        );
        assert!(html.contains("style=\"height:1cm;\"></p>") && html.contains("x <img src=\"f.png\""), "{html}");
        let (html, _) = to_html("H~2~O, x^2^ a~/b ~/c, 2^3 ^x^ `a^2^`\n\n    b^2^", true);
        assert!(html.contains("H<sub>2</sub>O, x<sup>2</sup> a~/b ~/c, 2^3 ^x^ <code>a^2^</code>"), "{html}");
        assert!(html.contains("b^2^"), "{html}");
        assert!(to_html("---\nnot: ended\n", true).1.is_empty());
        assert!(to_html("```\n\\newpage\n```", true).0.contains("\\newpage"));
    }
}
