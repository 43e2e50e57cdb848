//! Requests through `wasi:http` to the one host that a channel reaches.

use crate::{Failure, failure, head};
use wasip2::http::outgoing_handler;
pub use wasip2::http::types::Method;
use wasip2::http::types::{ErrorCode, Fields, OutgoingBody, OutgoingRequest, RequestOptions, Scheme};
use wasip2::io::streams::StreamError;

/// Bytes that one write to a request's body takes at most, as WASI has it.
const WRITE: usize = 4096;

/// Nanoseconds to wait for a connection, for the first byte, and between two reads.
const PATIENCE: u64 = 15_000_000_000;

/// Nanoseconds more to wait for the first byte, for each byte that is sent before it: the least that a connection carries.
const PATIENCE_PER_BYTE: u64 = 5_000;

/// A request.
pub struct Request<'a> {
    pub method: Method,
    pub url: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
    /// Bytes of the answer's body that are read.
    pub max_bytes: usize,
}

/// The answer to a request, whatever its status.
pub struct Response {
    pub status: u16,
    pub retry_after_s: Option<u32>,
    pub body: Vec<u8>,
}

impl Response {
    /// The body of an answer that says yes. What else it says is a failure; `service` is what the owner calls it.
    pub fn ok(self, service: &str) -> Result<Vec<u8>, Failure> {
        let code = match self.status {
            200..=299 => return Ok(self.body),
            401 | 403 => "unauthorized",
            404 | 410 => "gone",
            413 => "too-large",
            429 => "rate-limited",
            500.. => "unavailable",
            _ => "failed",
        };
        let said = String::from_utf8_lossy(&self.body);
        let message = format!("{service} answered {}: {}", self.status, head(said.trim(), 200));
        Err(Failure { retry_after_s: self.retry_after_s, ..failure(code, message) })
    }
}

impl Request<'_> {
    pub fn send(&self) -> Result<Response, Failure> {
        let bad = || failure("bad-config", "the url of the channel is not an absolute http or https URL");
        let (scheme, rest) = match self.url.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            _ => return Err(bad()),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let headers = Fields::new();
        for (name, value) in self.headers {
            headers.append(name, value.as_bytes()).map_err(|_| failure("failed", "a header cannot be sent"))?;
        }
        if !self.body.is_empty() {
            let length = self.body.len().to_string();
            let _ = headers.append("content-length", length.as_bytes());
        }
        let request = OutgoingRequest::new(headers);
        request
            .set_method(&self.method)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(authority)))
            .and_then(|()| request.set_path_with_query(Some(if path.is_empty() { "/" } else { path })))
            .map_err(|()| bad())?;
        let options = RequestOptions::new();
        let _ = options.set_connect_timeout(Some(PATIENCE));
        let _ = options.set_first_byte_timeout(Some(PATIENCE + PATIENCE_PER_BYTE * self.body.len() as u64));
        let _ = options.set_between_bytes_timeout(Some(PATIENCE));
        let lost = |_| failure("unavailable", "the request could not be written");
        let body = request.body().map_err(|()| lost(()))?;
        let pending = outgoing_handler::handle(request, Some(options)).map_err(|error| unsent(authority, &error))?;
        {
            let stream = body.write().map_err(|()| lost(()))?;
            for piece in self.body.chunks(WRITE) {
                // A service may answer before it has read all of it; what it says is read below.
                if stream.blocking_write_and_flush(piece).is_err() {
                    break;
                }
            }
        }
        let _ = OutgoingBody::finish(body, None);
        pending.subscribe().block();
        let response = match pending.get() {
            Some(Ok(answer)) => answer.map_err(|error| unsent(authority, &error))?,
            _ => return Err(failure("unavailable", format!("no answer from {authority}"))),
        };
        let retry_after = response.headers().get("retry-after").into_iter().next();
        let retry_after_s = retry_after.and_then(|value| String::from_utf8(value).ok()?.trim().parse().ok());
        let status = response.status();
        let unread = |()| failure("unavailable", "the answer cannot be read");
        let incoming = response.consume().map_err(unread)?;
        let stream = incoming.stream().map_err(unread)?;
        let mut bytes = Vec::new();
        loop {
            match stream.blocking_read(64 << 10) {
                Ok(chunk) => bytes.extend(chunk),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(_)) => {
                    return Err(failure("unavailable", format!("the answer of {authority} broke off")));
                }
            }
            if bytes.len() > self.max_bytes {
                return Err(failure(
                    "too-large",
                    format!("{authority} answers with more than {} bytes", self.max_bytes),
                ));
            }
        }
        Ok(Response { status, retry_after_s, body: bytes })
    }
}

fn unsent(authority: &str, error: &ErrorCode) -> Failure {
    match error {
        ErrorCode::HttpRequestDenied => failure("bad-config", format!("the channel may not reach {authority}")),
        ErrorCode::DestinationIpProhibited => failure("bad-config", format!("{authority} has a private address")),
        ErrorCode::ConfigurationError => failure("unauthorized", "the token is not set"),
        other => failure("unavailable", format!("{authority} cannot be reached: {other}")),
    }
}

/// A text as a part of a path or a query.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
