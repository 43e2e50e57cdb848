//! The headers and the body of a request.

use super::data::text_of;
use super::failed::Failed;
use super::settings::{Data, Options, Resume};
use crate::body::{Body, Piece};
use crate::cookie::Jar;
use crate::date;
use crate::limits::{REQUEST_HEADER_BYTES, REQUEST_HEADERS};
use crate::multipart;
use crate::url::Url;
use data_encoding::BASE64;
use std::path::{Path, PathBuf};

/// A request that is made again, changed, when a redirect is followed.
pub struct Draft<'a> {
    pub options: &'a Options,
    /// `GET`, `HEAD`, `POST` or `PUT`: what the options ask for without `-X`.
    pub kind: &'static str,
    pub url: Url,
    pub first: Url,
    pub body: Body,
    boundary: String,
    /// The byte that a download or an upload goes on from.
    pub resume: u64,
    pub referer: Option<String>,
}

/// Headers that are the host's own: it sends what they must be.
const NOT_OURS: [&str; 7] =
    ["host", "connection", "content-length", "keep-alive", "transfer-encoding", "upgrade", "expect"];

/// Whether a header of the line can be sent.
fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !NOT_OURS.contains(&name.as_str()) && !name.starts_with("proxy-")
}

/// Headers of the line that the host does not send as they stand, with another value than it sends itself.
pub fn dropped(options: &Options) -> Vec<&str> {
    let names = options.headers.iter().filter_map(|header| header.split_once(':'));
    let names = names.filter(|(_, value)| !value.trim().is_empty()).map(|(name, _)| name.trim());
    names
        .filter(|name| {
            !is_ours(name) && !name.eq_ignore_ascii_case("content-length") && !name.eq_ignore_ascii_case("expect")
        })
        .collect()
}

impl<'a> Draft<'a> {
    pub fn new(options: &'a Options, mut url: Url, upload: Option<&str>, resume: u64) -> Result<Self, Failed> {
        let boundary = multipart::boundary();
        let has_data = options.data.is_some() || !options.form.is_empty();
        let (mut kind, mut body) = ("GET", Body::default());
        if let Some(path) = upload {
            kind = "PUT";
            body = Body {
                pieces: vec![match path {
                    "-" | "." => Piece::Input,
                    path => Piece::File { path: PathBuf::from(path), skip: resume },
                }],
            };
            if url.path.ends_with('/') && !matches!(path, "-" | ".") {
                let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
                url.path.push_str(&crate::url::encode(name.unwrap_or_default().as_bytes()));
            }
        } else if !options.form.is_empty() {
            kind = "POST";
            body = multipart::body(&options.form, &boundary, options.form_escape);
        } else if let Some(data) = &options.data {
            match (options.get || options.head, data) {
                (true, data) => {
                    let text = match data {
                        Data::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        Data::File(path) => text_of(path).map_err(|e| {
                            Failed::new(26, format!("Failed to open {path}: {}", crate::reason::reason(&e)))
                        })?,
                    };
                    add_query(&mut url, &text);
                }
                (false, Data::Bytes(bytes)) => (kind, body) = ("POST", Body::bytes(bytes.clone())),
                (false, Data::File(path)) => (kind, body) = ("POST", Body::file(Path::new(path))),
            }
        }
        if options.head {
            if has_data && !options.get || upload.is_some() {
                return Err(Failed::usage(
                    "You can only select one HTTP request method! -I and data exclude each other",
                ));
            }
            kind = "HEAD";
        }
        if !options.url_query.is_empty() {
            add_query(&mut url, &options.url_query.join("&"));
        }
        let first = url.clone();
        let referer = options.referer.clone();
        Ok(Self { options, kind, url, first, body, boundary, resume, referer })
    }

    /// The method that is sent.
    pub fn method(&self) -> String {
        self.options.method.clone().unwrap_or_else(|| self.kind.to_owned())
    }

    /// Whether login and cookies of the line may go to where this request goes.
    fn is_trusted(&self) -> bool {
        self.options.trusted || self.url.is_same_origin(&self.first)
    }

    /// The headers in curl's order.
    pub fn headers(&self, jar: &Jar) -> Result<Vec<(String, String)>, Failed> {
        let options = self.options;
        let custom = |name: &str| options.headers.iter().any(|header| header_name(header).eq_ignore_ascii_case(name));
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| {
            if !custom(name) {
                headers.push((name.to_owned(), value));
            }
        };
        let login = match (&options.bearer, &options.user, self.url.login()) {
            (Some(token), ..) if self.is_trusted() => Some(format!("Bearer {token}")),
            (None, Some(user), _) if self.is_trusted() => {
                let user = if user.contains(':') { user.clone() } else { format!("{user}:") };
                Some(format!("Basic {}", BASE64.encode(user.as_bytes())))
            }
            (None, _, Some((user, password))) => {
                Some(format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes())))
            }
            _ => None,
        };
        if let Some(login) = login {
            add("Authorization", login);
        }
        match (&options.range, options.resume) {
            (_, Some(Resume::At(_) | Resume::Here)) if self.kind == "PUT" && self.resume > 0 => {
                let whole = self.body.length().ok().flatten().unwrap_or(0) + self.resume;
                add("Content-Range", format!("bytes {}-{}/{whole}", self.resume, whole.saturating_sub(1)));
            }
            (_, Some(_)) if self.resume > 0 => add("Range", format!("bytes={}-", self.resume)),
            (Some(range), None) => add("Range", format!("bytes={range}")),
            _ => {}
        }
        match options.agent.as_deref() {
            Some("") => {}
            Some(agent) => add("User-Agent", agent.to_owned()),
            None => add("User-Agent", super::AGENT.to_owned()),
        }
        if !options.json {
            add("Accept", "*/*".to_owned());
        }
        if options.compressed {
            add("Accept-Encoding", crate::decode::ACCEPTED.to_owned());
        }
        if let Some(referer) = &self.referer {
            add("Referer", referer.clone());
        }
        let own = Some(options.cookies.join("; ")).filter(|text| !text.is_empty() && self.is_trusted());
        let cookies: Vec<String> = jar.header(&self.url).into_iter().chain(own).collect();
        if !cookies.is_empty() {
            add("Cookie", cookies.join("; "));
        }
        if let Some((newer, at)) = options.since {
            add(if newer { "If-Modified-Since" } else { "If-Unmodified-Since" }, date::format(at));
        }
        if let Some(file) = &options.etag_compare {
            let etag = text_of(file).unwrap_or_default();
            let etag = etag.trim();
            add("If-None-Match", if etag.is_empty() { "\"\"".to_owned() } else { etag.to_owned() });
        }
        let kind = match (self.body.is_none(), self.kind) {
            (true, _) | (_, "PUT") => None,
            _ if !options.form.is_empty() => Some(format!("multipart/form-data; boundary={}", self.boundary)),
            _ => Some("application/x-www-form-urlencoded".to_owned()),
        };
        for header in &options.headers {
            let name = header_name(header);
            let is_secret = ["authorization", "cookie"].iter().any(|secret| name.eq_ignore_ascii_case(secret));
            if !is_ours(name) || is_secret && !self.is_trusted() {
                continue;
            }
            let value = match header.split_once(':') {
                // Without a value, the line takes a header away.
                Some((_, value)) if value.trim().is_empty() => continue,
                Some((_, value)) => value.trim(),
                None if header.ends_with(';') => "",
                None => continue,
            };
            headers.push((name.to_owned(), value.to_owned()));
        }
        for name in ["Content-Type", "Accept"].into_iter().filter(|name| options.json && !custom(name)) {
            headers.push((name.to_owned(), "application/json".to_owned()));
        }
        if let Some(kind) = kind.filter(|_| !custom("Content-Type") && !options.json) {
            headers.push(("Content-Type".to_owned(), kind));
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if headers.len() > REQUEST_HEADERS || bytes > REQUEST_HEADER_BYTES {
            return Err(Failed::new(43, "the headers of the request are too many or too long"));
        }
        Ok(headers)
    }

    /// Goes on where a redirect leads.
    pub fn redirect(&mut self, status: u16, target: Url) {
        if self.options.auto_referer {
            let plain = Url { fragment: None, ..self.url.without_login() };
            self.referer = Some(plain.to_string());
        }
        let is_post = self.kind == "POST";
        let changes = match status {
            301 => is_post && !self.options.keep_post[0],
            302 => is_post && !self.options.keep_post[1],
            303 => self.kind != "GET" && self.kind != "HEAD" && !(is_post && self.options.keep_post[2]),
            _ => false,
        };
        if changes {
            (self.kind, self.body) = ("GET", Body::default());
        }
        self.url = target;
    }
}

/// The name in a header line.
fn header_name(header: &str) -> &str {
    header.split([':', ';']).next().unwrap_or_default().trim()
}

fn add_query(url: &mut Url, text: &str) {
    if text.is_empty() {
        return;
    }
    let text = text.replace(' ', "%20");
    url.query = Some(match url.query.take() {
        Some(query) if !query.is_empty() => format!("{query}&{text}"),
        _ => text,
    });
}

#[cfg(test)]
mod tests {
    use super::super::option::Line;
    use super::*;

    fn sent(words: &[&str], to: &str) -> Vec<(String, String)> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let line = Line::parse(&words).unwrap();
        let mut draft = Draft::new(&line.groups[0], Url::parse("http://h/a").unwrap(), None, 0).unwrap();
        draft.url = Url::parse(to).unwrap();
        draft.headers(&Jar::default()).unwrap()
    }

    fn names(headers: &[(String, String)]) -> Vec<&str> {
        headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn headers_are_replaced_and_removed() {
        let headers =
            sent(&["-H", "accept: x", "-H", "User-Agent:", "-H", "X-Empty;", "-H", "Host: other", "h"], "http://h/");
        assert_eq!(names(&headers), ["accept", "X-Empty"]);
        let headers = sent(&["--json", "{}", "h"], "http://h/");
        assert_eq!(names(&headers), ["User-Agent", "Content-Type", "Accept"]);
    }

    #[test]
    fn secrets_do_not_follow_a_redirect_to_another_host() {
        let words = ["-u", "u:p", "-b", "s=1", "-H", "Authorization: Bearer T", "-H", "X: 1", "h"];
        assert!(names(&sent(&words, "http://h/b")).contains(&"Cookie"));
        for other in ["http://other/", "https://h/", "http://h:81/"] {
            assert_eq!(names(&sent(&words, other)), ["User-Agent", "Accept", "X"], "{other}");
        }
        let trusted = [&["--location-trusted"], &words[..]].concat();
        assert!(names(&sent(&trusted, "http://other/")).contains(&"Authorization"));
        assert!(!names(&sent(&["--oauth2-bearer", "T", "h"], "http://other/")).contains(&"Authorization"));
    }

    #[test]
    fn redirects_turn_posts_into_gets() {
        let options = Line::parse(&["-d".into(), "a".into(), "h".into()]).unwrap().groups.remove(0);
        for (status, kind) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            let url = Url::parse("h").unwrap();
            let mut draft = Draft::new(&options, url.clone(), None, 0).unwrap();
            draft.redirect(status, url);
            assert_eq!((draft.kind, draft.body.is_none()), (kind, kind == "GET"), "{status}");
        }
    }
}
