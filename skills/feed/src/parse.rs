//! The four kinds of feeds as one.

use crate::date::Instant;
use crate::xml::{self, Element};
use kiso_sdk::http::join;
use serde_json::Value;

const ATOM: &str = "http://www.w3.org/2005/Atom";
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
/// RSS 0.9x and 2.0 have no namespace; RSS 1.0 and 0.90 have these.
const RSS: [&str; 4] =
    ["", "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/", "http://backend.userland.com/rss2"];

/// Characters of a title and of a summary that are kept.
const TITLE_MAX: usize = 200;
const SUMMARY_MAX: usize = 300;
/// Links longer than this are data, not links.
const LINK_MAX: usize = 2_000;
const CATEGORIES_MAX: usize = 10;

/// A feed. Texts are plain and on one line.
#[derive(Debug, Default)]
pub struct Feed {
    pub title: String,
    pub link: Option<String>,
    pub entries: Vec<Entry>,
}

/// An entry. Links are absolute where the feed's place is a URL.
#[derive(Debug, Default)]
pub struct Entry {
    pub title: String,
    pub link: Option<String>,
    pub id: Option<String>,
    pub date: Option<Instant>,
    pub author: Option<String>,
    pub summary: String,
    pub categories: Vec<String>,
}

/// Reads a feed of any kind that was found at `origin`. The error completes a sentence that begins with the feed's name.
pub fn feed(text: &str, origin: &str) -> Result<Feed, String> {
    let text = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    if text.starts_with('{') {
        return json_feed(text, origin);
    }
    if !text.starts_with('<') {
        return Err("it is neither XML nor JSON".to_owned());
    }
    if text.get(..14).is_some_and(|head| head.eq_ignore_ascii_case("<!doctype html")) {
        return Err("it is a web page; its source may name the feed (<link rel=\"alternate\">)".to_owned());
    }
    let root = xml::parse(text)?;
    match root.name.as_str() {
        "rss" => {
            let channel = root.elements().find(|e| e.name == "channel").ok_or("it is RSS without a <channel>")?;
            Ok(rss(channel, channel.elements(), origin))
        }
        "RDF" => {
            let channel = root.elements().find(|e| e.name == "channel").ok_or("it is RDF without a <channel>")?;
            Ok(rss(channel, root.elements(), origin))
        }
        "feed" => Ok(atom(&root, origin)),
        other => Err(format!("its root element <{other}> is not one of <rss>, <rdf:RDF>, <feed>")),
    }
}

/// RSS of all versions: 1.0 has its items beside the channel, the others inside.
fn rss<'a>(channel: &Element, holder: impl Iterator<Item = &'a Element>, origin: &str) -> Feed {
    let mut feed = Feed::default();
    for element in channel.elements().filter(|e| RSS.contains(&e.space.as_str())) {
        match element.name.as_str() {
            "title" => feed.title = line(&element.text(), TITLE_MAX),
            "link" => feed.link = link(origin, &element.text()),
            _ => {}
        }
    }
    let base = feed.link.clone().unwrap_or_else(|| origin.to_owned());
    feed.entries = holder.filter(|e| e.name == "item").map(|item| rss_item(item, &base)).collect();
    feed
}

fn rss_item(item: &Element, base: &str) -> Entry {
    let mut entry = Entry { id: item.attribute("about").map(str::to_owned), ..Entry::default() };
    let (mut content, mut enclosure) = (String::new(), None);
    for element in item.elements() {
        let text = || element.text();
        match (element.space.as_str(), element.name.as_str()) {
            (space, name) if RSS.contains(&space) => match name {
                "title" => entry.title = line(&text(), TITLE_MAX),
                "link" => entry.link = link(base, &text()),
                "description" => entry.summary = line(&text(), SUMMARY_MAX),
                "pubDate" => entry.date = Instant::parse(&text()),
                "author" => entry.author = some(line(&text(), TITLE_MAX)),
                "category" => categories(&mut entry, &text()),
                "enclosure" => enclosure = element.attribute("url").and_then(|url| link(base, url)),
                "guid" => {
                    let id = text().trim().to_owned();
                    let permalink = element.attribute("isPermaLink") != Some("false") && id.starts_with("http");
                    if permalink && entry.link.is_none() {
                        entry.link = link(base, &id);
                    }
                    entry.id = some(id);
                }
                _ => {}
            },
            (DUBLIN_CORE, "date") if entry.date.is_none() => entry.date = Instant::parse(&text()),
            (DUBLIN_CORE, "creator") if entry.author.is_none() => entry.author = some(line(&text(), TITLE_MAX)),
            (DUBLIN_CORE, "subject") => categories(&mut entry, &text()),
            (CONTENT, "encoded") => content = text(),
            _ => {}
        }
    }
    if entry.summary.is_empty() {
        entry.summary = line(&content, SUMMARY_MAX);
    }
    entry.link = entry.link.or(enclosure);
    named(entry)
}

fn atom(root: &Element, origin: &str) -> Feed {
    let mut feed = Feed::default();
    for element in root.elements().filter(|e| e.space == ATOM || e.space.is_empty()) {
        match element.name.as_str() {
            "title" => feed.title = line(&element.text(), TITLE_MAX),
            "link" if is_alternate(element) => feed.link = element.attribute("href").and_then(|l| link(origin, l)),
            _ => {}
        }
    }
    let entries = root.elements().filter(|e| e.name == "entry");
    feed.entries = entries.map(|entry| atom_entry(entry, root.attribute("base").unwrap_or(origin))).collect();
    feed
}

fn atom_entry(element: &Element, base: &str) -> Entry {
    let mut entry = Entry::default();
    let (mut published, mut content) = (None, String::new());
    for part in element.elements() {
        match part.name.as_str() {
            "title" => entry.title = line(&part.text(), TITLE_MAX),
            "id" => entry.id = some(part.text().trim().to_owned()),
            "link" if is_alternate(part) && entry.link.is_none() => {
                entry.link = part.attribute("href").and_then(|l| link(base, l));
            }
            "published" | "issued" => published = Instant::parse(&part.text()),
            "updated" | "modified" => entry.date = Instant::parse(&part.text()),
            "author" if entry.author.is_none() => {
                let name = part.elements().find(|e| e.name == "name");
                entry.author = name.and_then(|name| some(line(&name.text(), TITLE_MAX)));
            }
            "summary" => entry.summary = line(&part.text(), SUMMARY_MAX),
            "content" => content = part.text(),
            "category" => {
                categories(&mut entry, part.attribute("label").or(part.attribute("term")).unwrap_or_default())
            }
            _ => {}
        }
    }
    if entry.summary.is_empty() {
        entry.summary = line(&content, SUMMARY_MAX);
    }
    entry.date = published.or(entry.date);
    named(entry)
}

fn is_alternate(link: &Element) -> bool {
    matches!(link.attribute("rel"), None | Some("alternate"))
}

/// JSON Feed 1.0 and 1.1 (jsonfeed.org).
fn json_feed(text: &str, origin: &str) -> Result<Feed, String> {
    let root: Value = serde_json::from_str(text).map_err(|e| format!("it is broken JSON: {e}"))?;
    let items = root["items"].as_array().ok_or("it is JSON, but no JSON Feed: it has no list \"items\"")?;
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let link_of = |value: &Value| value.as_str().and_then(|l| link(origin, l));
    let entries = items.iter().map(|item| {
        let mut entry = Entry {
            title: line(&string(&item["title"]), TITLE_MAX),
            link: link_of(&item["url"]).or_else(|| link_of(&item["external_url"])),
            id: some(item["id"].as_str().map_or_else(|| item["id"].to_string(), str::to_owned))
                .filter(|id| id != "null"),
            date: ["date_published", "date_modified"].iter().find_map(|key| Instant::parse(item[key].as_str()?)),
            ..Entry::default()
        };
        let author = [&item["authors"][0]["name"], &item["author"]["name"]].into_iter().find_map(Value::as_str);
        entry.author = author.and_then(|name| some(line(name, TITLE_MAX)));
        let summary = ["summary", "content_text", "content_html"].iter().find_map(|key| item[key].as_str());
        entry.summary = line(summary.unwrap_or_default(), SUMMARY_MAX);
        for tag in item["tags"].as_array().into_iter().flatten() {
            categories(&mut entry, tag.as_str().unwrap_or_default());
        }
        named(entry)
    });
    let entries = entries.collect();
    Ok(Feed { title: line(&string(&root["title"]), TITLE_MAX), link: link_of(&root["home_page_url"]), entries })
}

/// Gives an entry without a title (microblogs) the beginning of its text.
fn named(mut entry: Entry) -> Entry {
    if entry.title.is_empty() {
        entry.title = cut(&entry.summary, 80);
    }
    entry
}

fn categories(entry: &mut Entry, text: &str) {
    let category = line(text, 60);
    if !category.is_empty() && entry.categories.len() < CATEGORIES_MAX {
        entry.categories.push(category);
    }
}

fn link(base: &str, reference: &str) -> Option<String> {
    let reference = reference.trim();
    (!reference.is_empty()).then(|| join(base, reference)).filter(|url| url.len() <= LINK_MAX)
}

fn some(text: String) -> Option<String> {
    (!text.is_empty() && text.len() <= LINK_MAX).then_some(text)
}

/// Markup or text as one line of text of at most `max` characters.
fn line(markup: &str, max: usize) -> String {
    let mut text = String::with_capacity(markup.len().min(4 * max));
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let tag = &rest[start..];
        // "a < b" is not a tag; a tag begins with a letter, "/" or "!".
        let is_tag = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        if !is_tag {
            text.push('<');
            rest = &tag[1..];
            continue;
        }
        let Some(end) = tag.find('>') else {
            rest = tag;
            break;
        };
        text.push(' ');
        rest = &tag[end + 1..];
    }
    text.push_str(rest);
    let text = xml::unescape(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&text, max)
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let end = text[..end].rfind(' ').filter(|space| *space > end / 2).unwrap_or(end);
            format!("{}…", text[..end].trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSS2: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
        <rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom"
             xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/">
        <channel><title>News &amp; more</title><atom:link href="https://example.com/feed" rel="self"/><link>https://example.com/</link>
        <item><title><![CDATA[First <b>one</b>]]></title><link>/a?x=1&amp;y=2</link><guid isPermaLink="false">id-1</guid>
          <media:title>wrong</media:title><dc:creator>Ann</dc:creator><category>tech</category><category>rust</category>
          <pubDate>Fri, 01 Mar 2024 10:00:00 +0100</pubDate><description>&lt;p&gt;Some &amp;amp; &lt;i&gt;text&lt;/i&gt;&lt;/p&gt;</description></item>
        <item><guid>https://example.com/b</guid><content:encoded><![CDATA[<p>No title, 1 < 2</p>]]></content:encoded></item>
        </channel></rss>"#;

    const RDF: &str = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://example.com/"><title>Old</title><link>https://example.com/</link></channel>
        <item rdf:about="https://example.com/1"><title>One</title><link>https://example.com/1</link><dc:date>2024-03-01T09:00:00Z</dc:date></item></rdf:RDF>"#;

    const ATOM_FEED: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">A &amp;lt; B</title>
        <link rel="self" href="/feed.atom"/><link href="https://example.com/"/>
        <entry><title>One</title><link rel="replies" href="/r"/><link rel="alternate" href="one.html"/><id>tag:1</id>
          <updated>2024-03-02T00:00:00Z</updated><published>2024-03-01T10:00:00+01:00</published><author><name>Ann</name></author>
          <category term="t" label="Tech"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Hello <b>you</b></p></div></content></entry></feed>"#;

    const JSON: &str = r#"{"version":"https://jsonfeed.org/version/1.1","title":"J","home_page_url":"https://example.com/",
        "items":[{"id":1,"url":"/a","title":"One","content_html":"<p>Hi</p>","date_published":"2024-03-01T10:00:00+01:00","authors":[{"name":"Ann"}],"tags":["t"]}]}"#;

    #[test]
    fn rss_2() {
        let feed = feed(RSS2, "https://example.com/feed").unwrap();
        assert_eq!((feed.title.as_str(), feed.link.as_deref()), ("News & more", Some("https://example.com/")));
        let [one, two] = &feed.entries[..] else { panic!("{feed:?}") };
        assert_eq!(one.title, "First one");
        assert_eq!(one.link.as_deref(), Some("https://example.com/a?x=1&y=2"));
        assert_eq!((one.id.as_deref(), one.author.as_deref()), (Some("id-1"), Some("Ann")));
        assert_eq!(one.date.unwrap().to_string(), "2024-03-01T09:00:00Z");
        assert_eq!(
            (one.summary.as_str(), &one.categories[..]),
            ("Some & text", &["tech".to_owned(), "rust".to_owned()][..])
        );
        assert_eq!((two.title.as_str(), two.link.as_deref()), ("No title, 1 < 2", Some("https://example.com/b")));
    }

    #[test]
    fn rss_1_atom_and_json_feed() {
        for (text, title) in [(RDF, "Old"), (ATOM_FEED, "A < B"), (JSON, "J")] {
            let feed = feed(text, "https://example.com/feeds/x").unwrap();
            assert_eq!((feed.title.as_str(), feed.link.as_deref()), (title, Some("https://example.com/")));
            let [entry] = &feed.entries[..] else { panic!("{feed:?}") };
            assert_eq!(
                (entry.title.as_str(), entry.date.unwrap().to_string().as_str()),
                ("One", "2024-03-01T09:00:00Z")
            );
            assert!(entry.link.as_deref().unwrap().starts_with("https://example.com/"), "{entry:?}");
        }
        let entry = &feed(ATOM_FEED, "https://example.com/feeds/x").unwrap().entries[0];
        assert_eq!(entry.link.as_deref(), Some("https://example.com/feeds/one.html"));
        assert_eq!((entry.summary.as_str(), entry.author.as_deref()), ("Hello you", Some("Ann")));
        assert_eq!(entry.categories, ["Tech"]);
    }

    #[test]
    fn what_is_no_feed_is_said() {
        let cases = [
            ("", "neither XML nor JSON"),
            ("hello", "neither XML nor JSON"),
            ("<!DOCTYPE html><html></html>", "web page"),
            ("<html></html>", "<html>"),
            ("<rss></rss>", "<channel>"),
            ("{\"a\": 1}", "items"),
            ("{", "broken JSON"),
            ("<rss><channel>", "<channel>"),
        ];
        for (text, part) in cases {
            let error = feed(text, "x").unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
