//! Lists the entries of a feed: RSS 0.9 to 2.0, RSS 1.0 (RDF), Atom, JSON Feed; from a URL or a file.

mod date;
mod parse;
mod xml;

use date::Instant;
use kiso_sdk::http::Get;
use kiso_sdk::{Call, Failure, Reply, Skill};
use parse::{Entry, Feed};
use serde_json::{Value, json};

/// Most bytes of reply, text and data together; the host allows 256 KiB.
const REPLY_MAX: usize = 200_000;

struct FeedSkill;

#[derive(serde::Deserialize)]
struct Args {
    url: Option<String>,
    file: Option<String>,
    limit: usize,
    since: Option<String>,
}

impl Skill for FeedSkill {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        let since = args.since.as_deref().map(|s| {
            let bad = || Failure::new("bad-args", format!("since: {s:?} is not a date such as 2024-03-01"));
            Instant::parse(s).ok_or_else(bad)
        });
        let since = since.transpose()?;
        let (origin, text) = match (&args.url, &args.file) {
            (Some(url), None) => get(url)?,
            (None, Some(file)) => (file.clone(), xml::decode(&kiso_sdk::read_bytes(file)?, None)?),
            _ => return Err(Failure::new("bad-args", "give either url or file")),
        };
        let mut feed =
            parse::feed(&text, &origin).map_err(|why| Failure::new("not-a-feed", format!("{origin}: {why}")))?;
        Ok(list(&mut feed, &origin, args.limit, since))
    }

    fn self_test() -> Result<(), String> {
        let text = "<rss version='2.0'><channel><title>T</title><item><title>A &amp; B</title>\
            <pubDate>Fri, 01 Mar 2024 10:00:00 +0100</pubDate></item></channel></rss>";
        let feed = parse::feed(text, "https://example.com/")?;
        match feed.entries.first() {
            Some(Entry { title, date: Some(date), .. })
                if title == "A & B" && date.to_string() == "2024-03-01T09:00:00Z" =>
            {
                Ok(())
            }
            other => Err(format!("a feed became {other:?}")),
        }
    }
}

kiso_sdk::skill!(FeedSkill);

/// Where the feed was found after redirects, and its text.
fn get(url: &str) -> Result<(String, String), Failure> {
    let types = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5";
    let request = Get::new(url.trim())
        .header("accept", types)
        .header("accept-encoding", "identity")
        .header("user-agent", concat!("kiso-feed/", env!("CARGO_PKG_VERSION")))
        .redirects(5);
    let response = request.send()?;
    match response.status {
        200..=299 => {}
        404 | 410 => return Err(Failure::new("not-found", format!("{} answered {}", response.url, response.status))),
        408 | 425 | 429 | 500..=599 => {
            return Err(Failure::retryable("unavailable", format!("{} answered {}", response.url, response.status)));
        }
        _ => return Err(Failure::new("failed", format!("{} answered {}", response.url, response.status))),
    }
    let text = xml::decode(&response.body, response.header("content-type"))?;
    Ok((response.url, text))
}

/// The newest entries as a list and as JSON, as many as asked for and as fit.
fn list(feed: &mut Feed, origin: &str, limit: usize, since: Option<Instant>) -> Reply {
    let all = feed.entries.len();
    if let Some(since) = since {
        feed.entries.retain(|e| e.date.is_some_and(|date| date >= since));
    }
    let matching = feed.entries.len();
    // Stable, so that entries without a date stay in the feed's order, at the end.
    feed.entries.sort_by_key(|e| std::cmp::Reverse(e.date));

    let mut lines = String::new();
    let mut entries: Vec<Value> = Vec::new();
    let mut size = 0;
    for entry in feed.entries.iter().take(limit) {
        let (line, value) = (line(entry), value(entry));
        size += line.len() + value.to_string().len();
        if size > REPLY_MAX {
            break;
        }
        lines.push_str(&line);
        entries.push(value);
    }
    let title = if feed.title.is_empty() { origin } else { &feed.title };
    let since = since.map_or_else(String::new, |s| format!(" since {}", s.day()));
    let shown = entries.len();
    let count = match (shown == matching, matching == all) {
        (true, true) => format!("{all} {}", if all == 1 { "entry" } else { "entries" }),
        (true, false) => format!("{matching} of {all} entries{since}"),
        (false, _) => format!("the newest {shown} of {matching} entries{since}"),
    };
    let text = format!("{title}: {count}\n{lines}");
    let data = json!({
        "title": feed.title, "link": feed.link, "source": origin, "total": all, "matching": matching, "entries": entries,
    });
    Reply::text(text.trim_end()).data(&data)
}

fn line(entry: &Entry) -> String {
    let day = entry.date.map_or_else(String::new, |date| format!("{} ", date.day()));
    let title = if entry.title.is_empty() { "(no title)" } else { &entry.title };
    let link = entry.link.as_deref().map_or_else(String::new, |link| format!(" <{link}>"));
    let summary = match entry.summary.as_str() {
        "" => String::new(),
        summary => format!("  {summary}\n"),
    };
    format!("- {day}{title}{link}\n{summary}")
}

fn value(entry: &Entry) -> Value {
    json!({
        "title": entry.title, "link": entry.link, "id": entry.id, "date": entry.date.map(|d| d.to_string()),
        "author": entry.author, "summary": entry.summary, "categories": entry.categories,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(title: &str, date: Option<&str>) -> Entry {
        Entry { title: title.to_owned(), date: date.and_then(Instant::parse), ..Entry::default() }
    }

    #[test]
    fn the_newest_come_first_and_the_rest_is_counted() {
        let entries = [("a", None), ("b", Some("2024-01-01")), ("c", Some("2024-03-01")), ("d", Some("2024-02-01"))];
        let mut feed = Feed { title: "News".to_owned(), ..Feed::default() };
        feed.entries = entries.iter().map(|(t, d)| entry(t, *d)).collect();
        let shown = format!("{:?}", list(&mut feed, "f.xml", 2, None));
        assert!(shown.contains("News: the newest 2 of 4 entries\\n- 2024-03-01 c\\n- 2024-02-01 d\""), "{shown}");
        let shown = format!("{:?}", list(&mut feed, "f.xml", 9, Instant::parse("2024-02-01")));
        assert!(shown.contains("News: 2 of 4 entries since 2024-02-01"), "{shown}");
    }
}
