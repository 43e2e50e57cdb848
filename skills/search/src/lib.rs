//! Searches the web: with Brave if its key is set, with a SearXNG instance if its address is, and otherwise with what needs
//! neither, the answers of DuckDuckGo and Wikipedia's search.

mod clean;
mod engine;
mod parse;

use engine::{Engine, Query};
use kiso_sdk::{Call, Failure, Reply, Skill};
use parse::{Answer, SearchHit};
use serde_json::{Value, json};

struct Search;

#[derive(serde::Deserialize)]
struct Args {
    query: String,
    max_results: usize,
    engine: Option<Engine>,
    language: Option<String>,
}

/// The results, the engines they are from, and what went wrong beside them.
struct Results {
    engines: Vec<Engine>,
    answer: Answer,
    notes: Vec<String>,
}

impl Skill for Search {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        let words = args.query.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            return Err(Failure::new("bad-args", "query: there are no words to search for"));
        }
        let query = Query { words: &words, count: args.max_results, language: args.language.as_deref() };
        let results = match args.engine {
            Some(engine) => one(engine, query, &instance(engine)?)?,
            None => chosen(query)?,
        };
        Ok(show(&words, results, args.max_results))
    }

    fn self_test() -> Result<(), String> {
        let answer = json!({ "pages": [{ "key": "Oslo", "title": "Oslo", "excerpt": "<b>Capital</b> of Norway" }] });
        match parse::wikipedia(&answer, "en.wikipedia.org").as_ref().and_then(|answer| answer.results.first()) {
            Some(SearchHit { url, snippet, .. })
                if url == "https://en.wikipedia.org/wiki/Oslo" && snippet == "Capital of Norway" =>
            {
                Ok(())
            }
            other => Err(format!("a result became {other:?}")),
        }
    }
}

kiso_sdk::skill!(Search);

/// The engine that is set up, or those that need no set-up.
fn chosen(query: Query<'_>) -> Result<Results, Failure> {
    // The key itself goes into requests outside of the skill, which learns only that there is one.
    if !matches!(kiso_sdk::secret("api_key"), Err(failure) if failure.code == "not-found") {
        return one(Engine::Brave, query, "");
    }
    if let Ok(instance) = kiso_sdk::secret("searxng_url") {
        return one(Engine::Searxng, query, &instance);
    }
    keyless(query)
}

/// The address of SearXNG, if that is the engine.
fn instance(engine: Engine) -> Result<String, Failure> {
    if engine != Engine::Searxng {
        return Ok(String::new());
    }
    kiso_sdk::secret("searxng_url")
}

fn one(engine: Engine, query: Query<'_>, instance: &str) -> Result<Results, Failure> {
    let answer = engine.ask(query, instance)?;
    Ok(Results { engines: vec![engine], answer, notes: Vec::new() })
}

/// DuckDuckGo knows an answer to few queries, so Wikipedia's results follow. Either may fail without the other.
fn keyless(query: Query<'_>) -> Result<Results, Failure> {
    let mut results = Results { engines: Vec::new(), answer: Answer::default(), notes: Vec::new() };
    let mut failures = Vec::new();
    for engine in [Engine::Duckduckgo, Engine::Wikipedia] {
        if results.answer.results.len() >= query.count {
            break;
        }
        match engine.ask(query, "") {
            Ok(answer) => {
                if answer != Answer::default() {
                    results.engines.push(engine);
                }
                join(&mut results.answer, answer);
            }
            Err(failure) => failures.push(failure),
        }
    }
    match (failures.len(), failures.pop()) {
        (2, Some(failure)) => Err(failure),
        (_, failure) => {
            results.notes.extend(failure.map(|failure| failure.message));
            Ok(results)
        }
    }
}

/// Adds what is not there yet.
fn join(into: &mut Answer, more: Answer) {
    into.direct = into.direct.take().or(more.direct);
    for found in more.results {
        if !into.results.iter().any(|known| known.url == found.url) {
            into.results.push(found);
        }
    }
}

/// A list in Markdown, and the same as JSON.
fn show(words: &str, results: Results, most: usize) -> Reply {
    let Results { engines, mut answer, notes } = results;
    answer.results.truncate(most);
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    let by = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let shown = clean::markdown(words);
    let mut text = match answer.results.len() {
        0 if answer.direct.is_some() => format!("An answer to \"{shown}\"{by}:\n"),
        0 => format!("Nothing was found for \"{shown}\"{by}.\n"),
        1 => format!("1 result for \"{shown}\"{by}:\n"),
        count => format!("{count} results for \"{shown}\"{by}:\n"),
    };
    if let Some(direct) = &answer.direct {
        text.push_str(&format!("\n{}\n", clean::markdown(direct)));
    }
    for (number, found) in (1..).zip(&answer.results) {
        let date = found.date.as_ref().map(|date| format!(" ({})", clean::markdown(date))).unwrap_or_default();
        text.push_str(&format!("\n{number}. [{}]({}){date}\n", clean::markdown(&found.title), found.url));
        if !found.snippet.is_empty() {
            text.push_str(&format!("   {}\n", clean::markdown(&found.snippet)));
        }
    }
    for note in &notes {
        text.push_str(&format!("\nNote: {note}\n"));
    }
    let list: Vec<Value> = answer.results.iter().map(value).collect();
    let data = json!({ "query": words, "engines": names, "answer": answer.direct, "results": list, "notes": notes });
    Reply::text(text.trim_end()).data(&data)
}

fn value(found: &SearchHit) -> Value {
    json!({ "title": found.title, "url": found.url, "snippet": found.snippet, "date": found.date })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(title: &str, url: &str) -> SearchHit {
        SearchHit { title: title.into(), url: url.into(), snippet: "about it".into(), date: None }
    }

    #[test]
    fn results_are_a_list_with_links() {
        let mut answer = Answer { direct: None, results: vec![found("A [b](http://evil)", "https://a.example/")] };
        join(&mut answer, Answer { direct: Some("4".into()), results: vec![found("Again", "https://a.example/")] });
        join(&mut answer, Answer { direct: None, results: vec![found("C", "https://c.example/")] });
        let results =
            Results { engines: vec![Engine::Duckduckgo], answer, notes: vec!["Wikipedia failed (503)".into()] };
        let shown = format!("{:?}", show("two *words*", results, 5));
        let expected = "2 results for \\\"two \\\\*words\\\\*\\\" (DuckDuckGo):\\n\\n4\\n\\n1. [A \\\\[b\\\\](http://evil)](https://a.example/)\\n   about it\\n\\n2. [C](https://c.example/)";
        assert!(shown.contains(expected), "{shown}");
        assert!(shown.contains("Note: Wikipedia failed (503)"), "{shown}");
        let nothing = Results { engines: vec![], answer: Answer::default(), notes: vec![] };
        assert!(format!("{:?}", show("x", nothing, 5)).contains("Nothing was found for \\\"x\\\"."));
    }
}
