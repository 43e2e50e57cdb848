//! The engines: their addresses, and what each says when it gives no results.

use crate::clean;
use crate::parse::{self, Answer, encoded};
use kiso_sdk::Failure;
use kiso_sdk::http::{Get, Response};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    Brave,
    Searxng,
    Duckduckgo,
    Wikipedia,
}

/// Largest answer. Twenty results have some 100 kB.
const ANSWER_MAX: usize = 2 << 20;

/// A request for results.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub words: &'a str,
    pub count: usize,
    pub language: Option<&'a str>,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Brave => "Brave",
            Self::Searxng => "SearXNG",
            Self::Duckduckgo => "DuckDuckGo",
            Self::Wikipedia => "Wikipedia",
        }
    }

    /// The address of a search. `instance` is that of SearXNG.
    pub fn address(self, query: Query<'_>, instance: &str) -> Result<String, Failure> {
        let Query { words, count, language } = query;
        let words = encoded(words, b"-._~");
        Ok(match self {
            Self::Brave => {
                let language =
                    language.map(|language| format!("&search_lang={}", language.to_lowercase())).unwrap_or_default();
                format!("https://api.search.brave.com/res/v1/web/search?q={words}&count={count}{language}")
            }
            Self::Searxng => {
                let base = instance.trim().trim_end_matches('/');
                let base = base.strip_suffix("/search").unwrap_or(base);
                let is_address = clean::link(base).is_some() && !base.contains(['@', '?', '#']);
                if !is_address {
                    return Err(Failure::new(
                        "bad-args",
                        "the secret `searxng_url` must be an http or https address, such as https://searx.example.org",
                    ));
                }
                let language = language.map(|language| format!("&language={language}")).unwrap_or_default();
                format!("{base}/search?q={words}&format=json{language}")
            }
            Self::Duckduckgo => {
                format!("https://api.duckduckgo.com/?q={words}&format=json&no_html=1&no_redirect=1&t=kiso")
            }
            Self::Wikipedia => {
                format!("https://{}/w/rest.php/v1/search/page?q={words}&limit={count}", wiki(language))
            }
        })
    }

    /// Asks the engine.
    pub fn ask(self, query: Query<'_>, instance: &str) -> Result<Answer, Failure> {
        let url = self.address(query, instance)?;
        let request = Get::new(&url)
            .header("accept", "application/json")
            .header("accept-encoding", "identity")
            // Wikimedia refuses requests that do not say who sends them.
            .header(
                "user-agent",
                concat!("kiso-search/", env!("CARGO_PKG_VERSION"), " (https://github.com/kiso-agent/kiso)"),
            )
            // An instance may lie behind a server that adds a slash or encryption.
            .redirects(if self == Self::Searxng { 3 } else { 0 })
            .max_bytes(ANSWER_MAX);
        let response = request.send().map_err(|failure| match failure.code.as_str() {
            "too-large" => {
                let message = format!("{} sent more than {} MiB", self.name(), ANSWER_MAX >> 20);
                Failure { message, ..failure }
            }
            _ => failure,
        })?;
        self.read(&response, wiki(query.language).as_str())
    }

    /// The results in a response, or why there are none.
    fn read(self, response: &Response, wiki: &str) -> Result<Answer, Failure> {
        let name = self.name();
        let value: Option<Value> = serde_json::from_slice(&response.body).ok();
        if !(200..300).contains(&response.status) {
            return Err(self.refused(response, value.as_ref()));
        }
        let broken = || Failure::retryable("unavailable", format!("{name} answered with something other than results"));
        let value = value.as_ref().ok_or_else(broken)?;
        let answer = match self {
            Self::Brave => parse::brave(value),
            Self::Searxng => parse::searxng(value),
            Self::Duckduckgo => parse::duckduckgo(value),
            Self::Wikipedia => parse::wikipedia(value, wiki),
        };
        answer.ok_or_else(broken)
    }

    fn refused(self, response: &Response, body: Option<&Value>) -> Failure {
        let (name, status) = (self.name(), response.status);
        let error = body.map(|body| &body["error"]);
        let code = error.and_then(|error| error["code"].as_str()).unwrap_or_default();
        let detail = error.and_then(|error| error["detail"].as_str()).map(clean::title);
        let detail = detail.filter(|text| !text.is_empty()).map(|text| format!(" ({text})")).unwrap_or_default();
        let is_about_key = matches!(status, 401 | 403) || code.starts_with("SUBSCRIPTION_TOKEN");
        let message = match (status, self) {
            (429, _) => {
                let after = match response.header("retry-after").map(clean::title) {
                    Some(seconds) if seconds.chars().all(|c| c.is_ascii_digit()) && !seconds.is_empty() => {
                        format!("; try again in {seconds} s")
                    }
                    Some(date) if !date.is_empty() => format!("; try again after {date}"),
                    _ => String::new(),
                };
                return Failure::retryable(
                    "unavailable",
                    format!("{name} takes no more requests for now (429){after}{detail}"),
                );
            }
            (408 | 425 | 500..=599, _) => {
                return Failure::retryable("unavailable", format!("{name} failed ({status}){detail}"));
            }
            (_, Self::Brave) if is_about_key => {
                format!("Brave refused the key ({status}){detail}; check KISO_SKILL_SEARCH_API_KEY")
            }
            (403, Self::Searxng) => "this SearXNG instance does not answer in JSON (403); its settings.yml must name \
                `json` under search: formats"
                .to_owned(),
            (300..=399, _) => format!("{name} answered {status}, a redirect that is not followed"),
            _ => format!("{name} answered {status}{detail}"),
        };
        Failure::new("failed", message)
    }
}

/// The host of the Wikipedia in a language.
pub fn wiki(language: Option<&str>) -> String {
    let language = language.and_then(|language| language.split('-').next()).unwrap_or("en").to_lowercase();
    format!("{language}.wikipedia.org")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(words: &str) -> Query<'_> {
        Query { words, count: 3, language: None }
    }

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { url: "https://e.example/".into(), status, headers, body: body.into() }
    }

    #[test]
    fn words_are_escaped_in_addresses() {
        let address = |engine: Engine, query| engine.address(query, "http://searx.local:8888/x/").unwrap();
        let brave = "https://api.search.brave.com/res/v1/web/search?q=a%26b%20%C3%A9%23&count=3";
        assert_eq!(address(Engine::Brave, query("a&b é#")), brave);
        let german = Query { language: Some("de-AT"), ..query("x") };
        assert_eq!(address(Engine::Searxng, german), "http://searx.local:8888/x/search?q=x&format=json&language=de-AT");
        assert_eq!(
            address(Engine::Wikipedia, german),
            "https://de.wikipedia.org/w/rest.php/v1/search/page?q=x&limit=3"
        );
        assert!(address(Engine::Duckduckgo, query("x")).starts_with("https://api.duckduckgo.com/?q=x&format=json"));
        for wrong in ["", "searx.local", "ftp://x", "http://user:word@x", "http://x?y=", "http://x y"] {
            assert_eq!(Engine::Searxng.address(query("x"), wrong).unwrap_err().code, "bad-args", "{wrong}");
        }
    }

    #[test]
    fn each_error_is_told() {
        let token = r#"{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The <b>token</b> is invalid."}}"#;
        let limit = r#"{"error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded for plan."}}"#;
        let table = [
            (
                Engine::Brave,
                response(422, &[], token),
                false,
                "Brave refused the key (422) (The token is invalid.); check KISO_SKILL_SEARCH_API_KEY",
            ),
            (
                Engine::Brave,
                response(401, &[], ""),
                false,
                "Brave refused the key (401); check KISO_SKILL_SEARCH_API_KEY",
            ),
            (
                Engine::Brave,
                response(429, &[("retry-after", "7")], limit),
                true,
                "Brave takes no more requests for now (429); try again in 7 s (Request rate limit exceeded for plan.)",
            ),
            (
                Engine::Wikipedia,
                response(429, &[("retry-after", "Fri, 01 Mar 2030 10:00:00 GMT")], ""),
                true,
                "Wikipedia takes no more requests for now (429); try again after Fri, 01 Mar 2030 10:00:00 GMT",
            ),
            (
                Engine::Searxng,
                response(403, &[], "<html>"),
                false,
                "this SearXNG instance does not answer in JSON (403); its settings.yml must name `json` under search: formats",
            ),
            (Engine::Duckduckgo, response(503, &[], ""), true, "DuckDuckGo failed (503)"),
            (Engine::Duckduckgo, response(202, &[], ""), true, "DuckDuckGo answered with something other than results"),
            (
                Engine::Wikipedia,
                response(200, &[], "{\"pages\": [{"),
                true,
                "Wikipedia answered with something other than results",
            ),
            (Engine::Brave, response(302, &[], ""), false, "Brave answered 302, a redirect that is not followed"),
            (
                Engine::Brave,
                response(422, &[], r#"{"error":{"detail":"q is missing"}}"#),
                false,
                "Brave answered 422 (q is missing)",
            ),
        ];
        for (engine, response, retryable, message) in table {
            let failure = engine.read(&response, "en.wikipedia.org").unwrap_err();
            assert_eq!((failure.retryable, failure.message.as_str()), (retryable, message));
        }
    }
}
