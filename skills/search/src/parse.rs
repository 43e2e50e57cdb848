//! The answers of the engines, in the form of each.

use crate::clean;
use serde_json::Value;

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub title: String,
    pub url: String,
    pub snippet: String,
    /// As the engine writes it, such as "2024-03-01T10:00:00".
    pub date: Option<String>,
}

/// The results of an engine, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer itself, where an engine knows one, such as a sum.
    pub direct: Option<String>,
    pub results: Vec<SearchHit>,
}

/// Longest date, in characters.
const DATE_MAX: usize = 40;

/// Most entries of an answer that are looked at.
const ENTRIES_MAX: usize = 200;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter().take(ENTRIES_MAX)
}

/// A result, if it has a link.
fn found(title: &str, url: &str, snippet: &str, date: &str) -> Option<SearchHit> {
    let url = clean::link(url)?;
    let title = Some(clean::title(title)).filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
    let date = Some(clean::title(date)).filter(|date| !date.is_empty() && date.chars().count() <= DATE_MAX);
    Some(SearchHit { title, url, snippet: clean::snippet(snippet), date })
}

/// `GET /res/v1/web/search` of Brave.
pub fn brave(answer: &Value) -> Option<Answer> {
    if !answer.is_object() || answer.get("error").is_some() {
        return None;
    }
    // There is no `web` where nothing was found.
    let results = entries(&answer["web"]["results"]).filter_map(|entry| {
        let date = if entry["page_age"].is_string() { text(entry, "page_age") } else { text(entry, "age") };
        found(text(entry, "title"), text(entry, "url"), text(entry, "description"), date)
    });
    Some(Answer { direct: None, results: results.collect() })
}

/// `GET /search?format=json` of SearXNG.
pub fn searxng(answer: &Value) -> Option<Answer> {
    let results = answer["results"].is_array().then_some(&answer["results"])?;
    let results = entries(results).filter_map(|entry| {
        found(text(entry, "title"), text(entry, "url"), text(entry, "content"), text(entry, "publishedDate"))
    });
    // A text in older versions, an object in newer ones.
    let direct = entries(&answer["answers"]).find_map(|answer| answer.as_str().or_else(|| answer["answer"].as_str()));
    Some(Answer { direct: direct.map(clean::snippet).filter(|text| !text.is_empty()), results: results.collect() })
}

/// The Instant Answer API of DuckDuckGo: an article and topics near it, and nothing for most queries.
pub fn duckduckgo(answer: &Value) -> Option<Answer> {
    answer.get("RelatedTopics").filter(|topics| topics.is_array())?;
    let mut results: Vec<SearchHit> = Vec::new();
    let article = text(answer, "AbstractText");
    if !article.is_empty() {
        results.extend(found(text(answer, "Heading"), text(answer, "AbstractURL"), article, ""));
    }
    let definition = text(answer, "Definition");
    if !definition.is_empty() {
        results.extend(found(text(answer, "Heading"), text(answer, "DefinitionURL"), definition, ""));
    }
    let groups = entries(&answer["RelatedTopics"]).flat_map(|topic| {
        let in_group = entries(&topic["Topics"]);
        in_group.chain(topic.get("FirstURL").map(|_| topic))
    });
    for topic in entries(&answer["Results"]).chain(groups).take(ENTRIES_MAX) {
        let about = text(topic, "Text");
        let title = about.split(" - ").next().unwrap_or(about);
        results.extend(found(title, text(topic, "FirstURL"), about, ""));
    }
    // Some answers are objects for a widget of the page.
    let direct = answer["Answer"].as_str().map(clean::snippet).filter(|text| !text.is_empty());
    Some(Answer { direct, results })
}

/// `GET /w/rest.php/v1/search/page` of a Wikipedia.
pub fn wikipedia(answer: &Value, host: &str) -> Option<Answer> {
    let pages = answer["pages"].is_array().then_some(&answer["pages"])?;
    let results = entries(pages).filter_map(|page| {
        let key = text(page, "key");
        let about = [text(page, "description"), text(page, "excerpt")];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        let url = (!key.is_empty()).then(|| format!("https://{host}/wiki/{}", encoded(key, b"/:@!$*,;-._~")))?;
        found(text(page, "title"), &url, &about.join(": "), "")
    });
    Some(Answer { direct: None, results: results.collect() })
}

/// Text for an address: every byte is escaped but letters, digits and those of `plain`.
pub fn encoded(text: &str, plain: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            true => shown.push(byte.into()),
            false => shown.push_str(&format!("%{byte:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn titles(answer: &Answer) -> Vec<&str> {
        answer.results.iter().map(|found| found.title.as_str()).collect()
    }

    #[test]
    fn brave_answers_with_pages() {
        let answer = json!({ "type": "search", "query": { "original": "rust" }, "web": { "results": [
            { "title": "<strong>Rust</strong> Language", "url": "https://rust.example/", "description": "A <strong>fast</strong> one &amp; safe", "page_age": "2024-03-01T00:00:00" },
            { "title": "", "url": "https://b.example/x", "description": "", "age": "2 days ago" },
            { "title": "Evil", "url": "javascript:alert(1)" },
        ] } });
        let answer = brave(&answer).unwrap();
        assert_eq!(titles(&answer), ["Rust Language", "https://b.example/x"]);
        assert_eq!(answer.results[0].snippet, "A fast one & safe");
        assert_eq!(answer.results[0].date.as_deref(), Some("2024-03-01T00:00:00"));
        assert_eq!(answer.results[1].date.as_deref(), Some("2 days ago"));
        assert_eq!(brave(&json!({ "type": "search" })), Some(Answer::default()));
        assert_eq!(brave(&json!({ "type": "ErrorResponse", "error": {} })), None);
        assert_eq!(brave(&json!([])), None);
    }

    #[test]
    fn searxng_answers_with_pages_and_with_answers() {
        let answer = json!({ "query": "2+2", "answers": [{ "answer": "4", "url": null }], "results": [
            { "title": "Sums", "url": "https://a.example/", "content": "of 2 and 2", "publishedDate": null },
        ] });
        let answer = searxng(&answer).unwrap();
        assert_eq!((answer.direct.as_deref(), titles(&answer)), (Some("4"), vec!["Sums"]));
        let old = searxng(&json!({ "answers": ["four"], "results": [] })).unwrap();
        assert_eq!(old.direct.as_deref(), Some("four"));
        assert_eq!(searxng(&json!({ "answers": [] })), None);
    }

    #[test]
    fn duckduckgo_answers_with_an_article_and_topics() {
        let answer = json!({
            "Heading": "Oslo", "AbstractText": "Capital of Norway.", "AbstractURL": "https://en.wikipedia.org/wiki/Oslo",
            "Answer": { "from": "a widget" }, "Results": [{ "FirstURL": "https://oslo.example/", "Text": "Official site" }],
            "RelatedTopics": [
                { "FirstURL": "https://duckduckgo.com/Fjord", "Text": "Oslofjord - An inlet" },
                { "Name": "Places", "Topics": [{ "FirstURL": "https://duckduckgo.com/Oslo_MN", "Text": "Oslo, Minnesota - A city" }] },
            ],
        });
        let answer = duckduckgo(&answer).unwrap();
        assert_eq!(titles(&answer), ["Oslo", "Official site", "Oslofjord", "Oslo, Minnesota"]);
        assert_eq!(answer.direct, None);
        let sum = json!({ "Answer": "2 + 2 = 4", "AbstractText": "", "RelatedTopics": [], "Results": [] });
        assert_eq!(duckduckgo(&sum).unwrap(), Answer { direct: Some("2 + 2 = 4".into()), results: vec![] });
        assert_eq!(duckduckgo(&json!({})), None);
    }

    #[test]
    fn wikipedia_answers_with_its_pages() {
        let answer = json!({ "pages": [
            { "key": "C++_(language)", "title": "C++", "excerpt": "a <span class=\"searchmatch\">language</span>", "description": "programming" },
            { "key": "", "title": "nothing" },
        ] });
        let answer = wikipedia(&answer, "de.wikipedia.org").unwrap();
        assert_eq!(answer.results.len(), 1);
        assert_eq!(answer.results[0].url, "https://de.wikipedia.org/wiki/C%2B%2B_%28language%29");
        assert_eq!(answer.results[0].snippet, "programming: a language");
        assert_eq!(wikipedia(&json!({ "httpCode": 400 }), "en.wikipedia.org"), None);
    }
}
