//! GET requests through `wasi:http`, to the hosts that an administrator granted.

use crate::Failure;
use crate::url::is_https;
use std::time::Duration;

use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, Method, OutgoingRequest, RequestOptions, Scheme};
use wasip2::io::streams::StreamError;

pub use crate::url::join;

const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// A GET request.
#[derive(Debug, Clone)]
pub struct Get<'a> {
    url: &'a str,
    redirects: usize,
    headers: Vec<(String, String)>,
    max_bytes: usize,
    timeout: Duration,
}

/// The answer to a request, whatever its status.
#[derive(Debug, Clone)]
pub struct Response {
    /// The URL that answered: the one asked for, or where redirects led.
    pub url: String,
    /// The status code, such as 200.
    pub status: u16,
    /// Header names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body, at most as long as the request allowed.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Where the answer sends the caller instead, as an absolute URL.
    pub fn redirect(&self) -> Option<String> {
        match self.status {
            301 | 302 | 303 | 307 | 308 => Some(join(&self.url, self.header("location")?)),
            _ => None,
        }
    }
}

impl<'a> Get<'a> {
    /// A request for an absolute `http` or `https` URL: at most 8 MiB and 20 seconds, and no redirects.
    pub fn new(url: &'a str) -> Self {
        Self { url, redirects: 0, headers: Vec::new(), max_bytes: 8 << 20, timeout: Duration::from_secs(20) }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how many bytes of body are read; more is a failure with code "too-large".
    pub fn max_bytes(mut self, max: usize) -> Self {
        self.max_bytes = max;
        self
    }

    /// Sets how long to wait for a connection, for the first byte, and between two reads.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many redirects are followed; none unless said otherwise. The host checks each like a first request, so
    /// one to a host that is not granted fails with "denied". So does one that gives up encryption.
    pub fn redirects(mut self, max: usize) -> Self {
        self.redirects = max;
        self
    }

    /// Sends the request, and follows redirects as far as the request allows. A redirect that is not followed because
    /// none may be is an answer like any other.
    ///
    /// Codes: "bad-args" (not an absolute URL), "denied" (not granted, or a private address), "too-large",
    /// "unavailable" (retryable: no connection, time-out, broken answer), "failed" (more redirects than allowed).
    pub fn send(self) -> Result<Response, Failure> {
        let mut response = self.send_to(self.url)?;
        for _ in 0..self.redirects {
            let Some(target) = response.redirect() else { return Ok(response) };
            if is_https(&response.url) && !is_https(&target) {
                let from = response.url;
                return Err(Failure::new("denied", format!("{from} redirects to {target}, which is not encrypted")));
            }
            response = self
                .send_to(&target)
                .map_err(|f| Failure { message: format!("{} redirects to {target}: {}", self.url, f.message), ..f })?;
        }
        if self.redirects > 0 && response.redirect().is_some() {
            let (url, max, last) = (self.url, self.redirects, response.url);
            return Err(Failure::new("failed", format!("{url} redirects more than {max} times, last from {last}")));
        }
        Ok(response)
    }

    fn send_to(&self, url: &str) -> Result<Response, Failure> {
        let (scheme, authority, path) = split(url)?;
        let headers = Fields::new();
        let elsewhere = split(self.url)?.1 != authority;
        for (name, value) in &self.headers {
            // Credentials for one server must not reach the server that it redirects to.
            if elsewhere && SECRET_HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
                continue;
            }
            let bad = |e| Failure::new("bad-args", format!("header {name} cannot be sent: {e}"));
            headers.append(name, value.as_bytes()).map_err(bad)?;
        }
        let request = OutgoingRequest::new(headers);
        let set = request
            .set_method(&Method::Get)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(authority)))
            .and_then(|()| request.set_path_with_query(Some(&path)));
        set.map_err(|()| Failure::new("bad-args", format!("{url} is not a URL that can be fetched")))?;
        let options = RequestOptions::new();
        let nanos = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        // An option that the host does not know keeps the host's own time-out, which is never longer than the call's.
        let _ = options.set_connect_timeout(Some(nanos));
        let _ = options.set_first_byte_timeout(Some(nanos));
        let _ = options.set_between_bytes_timeout(Some(nanos));

        let pending = outgoing_handler::handle(request, Some(options)).map_err(|e| failed(url, &e))?;
        pending.subscribe().block();
        let response = match pending.get() {
            Some(Ok(answer)) => answer.map_err(|e| failed(url, &e))?,
            Some(Err(())) | None => {
                return Err(Failure::retryable("unavailable", format!("no answer from {authority}")));
            }
        };
        let status = response.status();
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(n, v)| (n.to_lowercase(), String::from_utf8_lossy(&v).into_owned()));
        let headers = headers.collect();
        let body = response.consume().map_err(|()| Failure::new("failed", "the answer has no body to read"))?;
        let stream = body.stream().map_err(|()| Failure::new("failed", "the answer has no body to read"))?;
        let mut bytes = Vec::new();
        loop {
            match stream.blocking_read(64 << 10) {
                Ok(chunk) => bytes.extend(chunk),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(e)) => {
                    let why = e.to_debug_string();
                    return Err(Failure::retryable("unavailable", format!("{url} broke off: {why}")));
                }
            }
            if bytes.len() > self.max_bytes {
                let max = self.max_bytes;
                return Err(Failure::new("too-large", format!("{url} is larger than {max} bytes")));
            }
        }
        Ok(Response { url: url.to_owned(), status, headers, body: bytes })
    }
}

fn failed(url: &str, code: &ErrorCode) -> Failure {
    match code {
        ErrorCode::HttpRequestDenied => Failure::new("denied", format!("{url} is not allowed")),
        ErrorCode::DestinationIpProhibited => Failure::new("denied", format!("{url} leads to a private address")),
        ErrorCode::ConfigurationError => Failure::new("denied", format!("{url} was not asked")),
        ErrorCode::DnsError(_) => Failure::retryable("unavailable", format!("the host of {url} was not found")),
        ErrorCode::HttpRequestUriInvalid => Failure::new("bad-args", format!("{url} is not a URL")),
        ErrorCode::HttpResponseBodySize(_) => {
            Failure::new("too-large", format!("{url} is larger than the host allows"))
        }
        other => Failure::retryable("unavailable", format!("cannot fetch {url}: {other}")),
    }
}

/// Scheme, authority, and path with query of an absolute URL; a fragment is dropped.
fn split(url: &str) -> Result<(Scheme, &str, String), Failure> {
    let bad = || Failure::new("bad-args", format!("{url} is not an absolute http or https URL"));
    let (scheme, rest) = match url.split_once("://") {
        Some((s, rest)) if s.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
        Some((s, rest)) if s.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
        _ => return Err(bad()),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || authority.contains('@') {
        return Err(bad());
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((scheme, authority, path))
}
