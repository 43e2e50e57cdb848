//! The skill `search`: results of a SearXNG instance, and its errors.

use crate::harness::{Home, Ran};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A server that gives each request the next answer. Returns its address and the first lines of the requests.
fn serve(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut chunk = [0; 1024];
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(n) if n > 0 => request.extend_from_slice(&chunk[..n]),
                    _ => break,
                }
            }
            let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
            let _ = sender.send(line);
            // A client that has read enough closes the connection.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, receiver)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}\r\n{body}")
}

const RESULTS: &str = r#"{"query": "ferry", "answers": [], "results": [
    {"title": "Ferries <b>to</b> Moss](http://evil.example/)", "url": "https://a.example/x(1)", "content": "Every hour &amp; at 6\u202e", "publishedDate": "2024-03-01T00:00:00"},
    {"title": "Script", "url": "javascript:alert(1)", "content": "no"},
    {"title": "Two", "url": "https://b.example/", "content": "second"},
    {"title": "Three", "url": "https://c.example/", "content": "third"}]}"#;

#[test]
fn an_instance_of_searxng_is_asked_and_its_errors_are_told() {
    let home = Home::new();
    let huge = format!("{{\"results\": [{{\"title\": \"{}\"}}]}}", "x".repeat(3 << 20));
    let (address, asked) = serve(vec![
        answer("200 OK", "", RESULTS),
        answer("200 OK", "", r#"{"results": []}"#),
        answer("200 OK", "", "{\"results\": [{\"title"),
        answer("403 Forbidden", "", "<html>"),
        answer("429 Too Many Requests", "retry-after: 30\r\n", ""),
        answer("503 Service Unavailable", "", ""),
        answer("200 OK", "", &huge),
    ]);
    let search = |words: &[&str]| -> Ran {
        let mut args = vec!["--json", "skill", "run", "search"];
        args.extend(words);
        home.kiso_with(&args, |command| {
            command.env("KISO_SKILL_SEARCH_SEARXNG_URL", format!("http://{address}/searx/"));
        })
    };
    home.kiso(&["skill", "grant", "search", "--secret", "searxng_url", "--host", &address, "--private"]).ok();

    let found = search(&["query=  ferry  to Moss & back", "max_results=2", "language=nb"]).ok().json();
    assert_eq!(
        asked.recv().unwrap(),
        "GET /searx/search?q=ferry%20to%20Moss%20%26%20back&format=json&language=nb HTTP/1.1"
    );
    let expected = "2 results for \"ferry to Moss & back\" (SearXNG):\n\n\
        1. [Ferries to Moss\\](http://evil.example/)](https://a.example/x%281%29) (2024-03-01T00:00:00)\n   Every hour & at 6\n\n\
        2. [Two](https://b.example/)\n   second";
    assert_eq!(found["text"], expected, "{found}");
    let results = found["data"]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(
        results[1],
        serde_json::json!({ "title": "Two", "url": "https://b.example/", "snippet": "second", "date": null })
    );
    assert_eq!(found["data"]["engines"][0], "SearXNG");

    let nothing = search(&["query=zzz"]).ok().json();
    assert_eq!(nothing["text"], "Nothing was found for \"zzz\" (SearXNG).");
    for words in [
        "SearXNG answered with something other than results",
        "its settings.yml must name `json` under search: formats",
        "SearXNG takes no more requests for now (429); try again in 30 s",
        "SearXNG failed (503)",
        "SearXNG sent more than 2 MiB",
    ] {
        let ran = search(&["query=ferry", "engine=searxng"]);
        assert!(ran.code != 0 && ran.stdout.contains(words), "{words}\n{}\n{}", ran.stdout, ran.stderr);
    }
    // The instance's address is a secret.
    assert_eq!(asked.try_iter().count(), 6);
    search(&["query=  "]).exit(1).prints(&["there are no words to search for"]);
    search(&["query=x", "engine=bing"]).exit(2);
}

/// An engine without configuration is not used, and the error names the setting.
#[test]
fn an_engine_without_its_key_is_not_asked() {
    let home = Home::new();
    home.kiso(&["skill", "grant", "search", "--host", "api.search.brave.com"]).ok();
    let ran = home.kiso(&["skill", "run", "search", "query=x", "engine=brave"]);
    ran.exit(2).says(&["the secret `api_key`, which is not set", "set KISO_SKILL_SEARCH_API_KEY"]);
    home.kiso(&["skill", "grant", "search", "--secret", "searxng_url"]).ok();
    let ran = home.kiso(&["skill", "run", "search", "query=x", "engine=searxng"]);
    ran.exit(1).says(&["the secret `searxng_url` is not set", "set KISO_SKILL_SEARCH_SEARXNG_URL"]);
    // Without a key and an instance, the engines that need neither are next, and they are not granted.
    let ran = home.kiso(&["skill", "run", "search", "query=x"]);
    ran.exit(4).says(&["en.wikipedia.org"]);
    // With a key, only its engine is used.
    home.kiso(&["skill", "grant", "search", "--none"]).ok();
    let ran = home.kiso_with(&["skill", "run", "search", "query=x"], |command| {
        command.env("KISO_SKILL_SEARCH_API_KEY", "k-123-secret");
    });
    ran.exit(4).says(&["api.search.brave.com"]);
    assert!(!ran.stderr.contains("wikipedia") && !ran.stderr.contains("k-123-secret"), "{}", ran.stderr);
}
