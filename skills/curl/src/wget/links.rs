//! The links of an HTML page or of a style sheet.

use crate::limits::PAGE_LINKS;
use std::ops::Range;

/// A link, and where it stands in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub text: String,
    pub at: Range<usize>,
    /// Whether the page is not complete without it: a picture, a style, a script.
    pub is_requisite: bool,
}

/// The links of a page, and the address that `<base>` gives it.
#[derive(Debug, Default)]
pub struct Page {
    pub links: Vec<Link>,
    pub base: Option<String>,
    /// `<meta name="robots" content="nofollow">`.
    pub nofollow: bool,
}

const LINKING: [(&str, &str, bool); 18] = [
    ("a", "href", false),
    ("area", "href", false),
    ("audio", "src", true),
    ("body", "background", true),
    ("embed", "src", true),
    ("frame", "src", true),
    ("iframe", "src", true),
    ("img", "src", true),
    ("img", "srcset", true),
    ("input", "src", true),
    ("link", "href", true),
    ("object", "data", true),
    ("script", "src", true),
    ("source", "src", true),
    ("source", "srcset", true),
    ("td", "background", true),
    ("video", "poster", true),
    ("video", "src", true),
];

/// Relations of a `<link>` that a page is not complete without.
const REQUISITE_RELATIONS: [&str; 4] = ["stylesheet", "icon", "shortcut icon", "apple-touch-icon"];

struct Attribute<'a> {
    name: String,
    value: &'a str,
    at: Range<usize>,
}

/// Finds the links of an HTML page.
pub fn of_page(html: &str) -> Page {
    let mut page = Page::default();
    let mut at = 0;
    while let Some(open) = html[at..].find('<').map(|offset| at + offset) {
        if html[open..].starts_with("<!--") {
            at = html[open + 4..].find("-->").map_or(html.len(), |end| open + 4 + end + 3);
            continue;
        }
        let name_end =
            html[open + 1..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(html.len(), |end| open + 1 + end);
        let name = html[open + 1..name_end].to_ascii_lowercase();
        if name.is_empty() {
            at = open + 1;
            continue;
        }
        let (attributes, end) = attributes(html, name_end);
        at = end;
        take(&mut page, &name, &attributes);
        if name == "style" || name == "script" {
            let length = closing(&html[end..], &name);
            if name == "style" {
                page.links.extend(of_style(&html[end..end + length], end));
            }
            at = end + length;
        }
        if page.links.len() > PAGE_LINKS {
            page.links.truncate(PAGE_LINKS);
            break;
        }
    }
    page
}

fn take(page: &mut Page, name: &str, attributes: &[Attribute<'_>]) {
    let value = |wanted: &str| attributes.iter().find(|attribute| attribute.name == wanted).map(|found| found.value);
    match name {
        "base" => page.base = value("href").map(unescaped).or(page.base.take()),
        "meta" if value("name").is_some_and(|name| name.eq_ignore_ascii_case("robots")) => {
            page.nofollow |= value("content").is_some_and(|content| content.to_ascii_lowercase().contains("nofollow"));
        }
        _ => {}
    }
    for attribute in attributes {
        let Some((.., is_requisite)) =
            LINKING.iter().find(|(tag, key, _)| (*tag, *key) == (name, attribute.name.as_str()))
        else {
            if attribute.name == "style" {
                page.links.extend(of_style(attribute.value, attribute.at.start));
            }
            continue;
        };
        let relation = value("rel").unwrap_or_default().to_ascii_lowercase();
        let is_requisite =
            if name == "link" { REQUISITE_RELATIONS.contains(&relation.as_str()) } else { *is_requisite };
        if attribute.name == "srcset" {
            let mut start = attribute.at.start;
            for entry in attribute.value.split(',') {
                let lead = entry.len() - entry.trim_start().len();
                let url = entry.split_whitespace().next().unwrap_or_default();
                push(page, url, start + lead, true);
                start += entry.len() + 1;
            }
            continue;
        }
        let lead = attribute.value.len() - attribute.value.trim_start().len();
        push(page, attribute.value.trim(), attribute.at.start + lead, is_requisite);
    }
}

fn push(page: &mut Page, text: &str, start: usize, is_requisite: bool) {
    if !text.is_empty() {
        page.links.push(Link { text: unescaped(text), at: start..start + text.len(), is_requisite });
    }
}

/// The bytes before `</name`, in letters of either case.
fn closing(html: &str, name: &str) -> usize {
    let mut at = 0;
    while let Some(offset) = html[at..].find("</") {
        at += offset;
        if html[at + 2..].get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return at;
        }
        at += 2;
    }
    html.len()
}

/// The attributes of a tag, and where the tag ends.
fn attributes(html: &str, mut at: usize) -> (Vec<Attribute<'_>>, usize) {
    let bytes = html.as_bytes();
    let mut found = Vec::new();
    loop {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'/') {
            at += 1;
        }
        match bytes.get(at) {
            None => return (found, html.len()),
            Some(b'>') => return (found, at + 1),
            Some(_) => {}
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace() && !b"=>".contains(byte)) {
            at += 1;
        }
        let name = html[start..at].to_ascii_lowercase();
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if bytes.get(at) != Some(&b'=') {
            if at == start {
                at += 1;
            }
            continue;
        }
        at += 1;
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let range = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let start = at + 1;
                let end = html[start..].find(char::from(*quote)).map_or(html.len(), |end| start + end);
                at = (end + 1).min(html.len());
                start..end
            }
            _ => {
                let start = at;
                while bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'>') {
                    at += 1;
                }
                start..at
            }
        };
        found.push(Attribute { name, value: &html[range.clone()], at: range });
    }
}

/// Finds `url(…)` and `@import "…"` in a style sheet that begins at `start` of the page.
pub fn of_style(css: &str, start: usize) -> Vec<Link> {
    let mut links = Vec::new();
    let mut at = 0;
    while let Some(offset) = css[at..].find(['u', '@']) {
        at += offset;
        let mark = ["url(", "@import"].into_iter().find(|mark| css[at..].starts_with(mark));
        let Some(mark) = mark else {
            at += 1;
            continue;
        };
        at += mark.len();
        let rest = &css[at..];
        let lead = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let (open, value) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => (1, rest[1..].split(quote).next().unwrap_or_default()),
            _ if mark == "url(" => (0, rest.split(')').next().unwrap_or_default().trim_end()),
            _ => continue,
        };
        let begin = start + at + lead + open;
        if !value.is_empty() && !value.starts_with("data:") {
            links.push(Link { text: value.to_owned(), at: begin..begin + value.len(), is_requisite: true });
        }
        at += lead + open + value.len();
        if links.len() > PAGE_LINKS {
            break;
        }
    }
    links
}

/// Takes the references out of an address: only those that addresses have.
fn unescaped(text: &str) -> String {
    let text = text.replace(['\n', '\r', '\t'], "");
    text.replace("&#38;", "&")
        .replace("&#x26;", "&")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: &str) -> Vec<(String, bool)> {
        of_page(html).links.into_iter().map(|link| (link.text, link.is_requisite)).collect()
    }

    #[test]
    fn links_are_found_where_they_stand() {
        let html = "<!-- <a href=no> --><A HREF='a?x=1&amp;y'>a</a><img alt=\"<b>\" src = b.png srcset=\"c.png 1x, d.png 2x\">\
                    <link rel=stylesheet href=s.css><link rel=next href=n><script>if (a < b) '<a href=no>'</script>\
                    <style>p { background: url( 'u.png' ) } @import \"i.css\";</style><p style=\"background:url(w.png)\">";
        let page = of_page(html);
        let found: Vec<_> = page.links.iter().map(|link| (link.text.as_str(), link.is_requisite)).collect();
        let expected = [
            ("a?x=1&y", false),
            ("b.png", true),
            ("c.png", true),
            ("d.png", true),
            ("s.css", true),
            ("n", false),
            ("u.png", true),
            ("i.css", true),
            ("w.png", true),
        ];
        assert_eq!(found, expected);
        assert!(page.links.iter().all(|link| html[link.at.clone()].replace("&amp;", "&") == link.text));
    }

    #[test]
    fn broken_pages_end() {
        for html in [
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"x",
            "<a =x>",
            "< a>",
            "<!--",
            "<style>url(",
            "<a href='\u{e9}'>",
            "<\u{e9}<a/=>",
        ] {
            texts(html);
        }
        assert_eq!(texts("<base href=\"http://o/\"><a href=x>"), [("x".to_owned(), false)]);
        assert_eq!(of_page("<base href='http://o/'>").base.as_deref(), Some("http://o/"));
        assert!(of_page("<META NAME=robots CONTENT='noindex,NoFollow'>").nofollow);
        assert_eq!(of_page(&"<a href=x>".repeat(PAGE_LINKS + 9)).links.len(), PAGE_LINKS);
    }
}
