//! The headers of a request, and requests whose answers are not saved.

use super::AGENT;
use super::client::Client;
use crate::body::Body;
use crate::date;
use crate::transport::{self, Request};
use crate::url::Url;
use data_encoding::BASE64;

impl Client<'_> {
    #[allow(clippy::too_many_arguments, reason = "they are the parts of one request")]
    pub fn headers(
        &self,
        url: &Url,
        first: &Url,
        method: &str,
        body: &Body,
        referer: Option<&str>,
        kept: u64,
        since: Option<date::Seconds>,
    ) -> Vec<(String, String)> {
        let options = self.options;
        let named = |name: &str| {
            options
                .headers
                .iter()
                .any(|header| header.split(':').next().is_some_and(|known| known.trim().eq_ignore_ascii_case(name)))
        };
        let mut headers = Vec::new();
        let mut add = |name: &str, value: String| {
            if !named(name) && !value.is_empty() {
                headers.push((name.to_owned(), value));
            }
        };
        let is_trusted = url.is_same_origin(first);
        if let Some(referer) = options.referer.as_deref().or(referer) {
            add("Referer", referer.to_owned());
        }
        if let Some(since) = since {
            add("If-Modified-Since", date::format(since));
        }
        if kept > 0 {
            add("Range", format!("bytes={kept}-"));
        }
        add("User-Agent", options.agent.clone().unwrap_or_else(|| AGENT.to_owned()));
        add("Accept", "*/*".to_owned());
        add("Accept-Encoding", if options.compression { "gzip" } else { "identity" }.to_owned());
        let login = url.login().or_else(|| {
            let user = options.user.clone().filter(|_| is_trusted)?;
            Some((user, options.password.clone().unwrap_or_default()))
        });
        if let Some((user, password)) = login {
            add("Authorization", format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes())));
        }
        if let Some(cookies) = self.jar.header(url).filter(|_| !options.no_cookies) {
            add("Cookie", cookies);
        }
        if !body.is_none() && method != "GET" {
            add("Content-Type", "application/x-www-form-urlencoded".to_owned());
        }
        for header in &options.headers {
            let Some((name, value)) = header.split_once(':') else { continue };
            let (name, value) = (name.trim(), value.trim());
            let is_secret = ["authorization", "cookie"].iter().any(|secret| name.eq_ignore_ascii_case(secret));
            if !value.is_empty() && (is_trusted || !is_secret) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        headers
    }

    /// The text of a small file that is not saved, such as a robots.txt.
    pub fn text_of(&mut self, url: &Url) -> Option<String> {
        let headers = self.headers(url, url, "GET", &Body::default(), None, 0, None);
        let request = Request {
            method: "GET",
            url,
            headers: &headers,
            body: &Body::default(),
            connect_timeout: self.options.connect_timeout,
            read_timeout: Some(self.options.read_timeout).filter(|limit| !limit.is_zero()),
            deadline: None,
        };
        let mut response = transport::send(&request).ok().filter(|response| response.status == 200)?;
        let mut text = Vec::new();
        while let Some(piece) = response.body.read(None).ok()? {
            text.extend(piece);
            if text.len() > crate::limits::ROBOTS_BYTES {
                break;
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}
