//! A request to a model's endpoint and its response as it arrives: the connection, the timeouts, the limits, and the meaning of a
//! status. The two formats define the contents of requests and responses.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, SERVER, USER_AGENT,
};
use http::{Method, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::LlmError;
use super::endpoint::{Endpoint, Timeouts};
use kiso_base::net::sse::{Parser, SseEvent};
use kiso_base::net::{pool, retry_after};

mod refusal;

pub(super) use refusal::Refusal;

/// Maximum bytes that are read of an error's body. Gateways may send whole web pages as errors.
const MAX_ERROR_BODY: usize = 64 << 10;

/// Maximum characters of a response that an error shows.
const SHOWN_PIECE: usize = 80;

/// How long to wait for the end of a body after the response's own end mark, so that its connection can be reused.
const LINGER: Duration = Duration::from_secs(1);

/// How long to wait for the token count and the end mark after the end of the answer itself. Some servers send neither, and keep
/// the connection open.
const TAIL: Duration = Duration::from_secs(5);

/// Maximum bytes of a server's properties, such as the template of its model.
const MAX_PROPERTIES: usize = 1 << 20;

/// Timeout of requests besides model calls; the answer waits for them.
const ASIDE: Duration = Duration::from_secs(5);

/// Tells a test server or a proxy which role makes the call. The prompt contains the same information.
const ROLE: HeaderName = HeaderName::from_static("x-kiso-role");

/// An endpoint, ready for requests.
#[derive(Debug)]
pub(super) struct Wire {
    /// `provider:model`, for errors.
    pub name: String,
    pub endpoint: Endpoint,
    uri: Uri,
    headers: HeaderMap,
}

/// How to send the key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyHeader {
    Bearer,
    Named(&'static str),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The provider refused the request, perhaps only because of one field.
    Refused(Refusal),
    Failed(LlmError),
}

impl From<LlmError> for CallError {
    fn from(error: LlmError) -> Self {
        Self::Failed(error)
    }
}

impl Wire {
    /// `path` is appended to the path of the endpoint's `base_url`; a query there is kept.
    pub(crate) fn new(endpoint: Endpoint, path: &str, key_header: KeyHeader) -> Result<Self, LlmError> {
        let name = endpoint.name();
        let refused = |message: String| LlmError::Refused { model: name.clone(), message };
        let (base, query) = match endpoint.base_url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (endpoint.base_url.as_str(), String::new()),
        };
        let uri: Uri = format!("{}{path}{query}", base.trim_end_matches('/'))
            .parse()
            .map_err(|error| refused(format!("its base_url is not an address: {error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("its base_url begins with neither https:// nor http://".to_owned()));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refused("its base_url has a user or a password in it; use key_env".to_owned()));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION"))));
        // Keys from files and variables often end with a line feed, or are empty if none is needed.
        if let Some(key) = endpoint.key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty()) {
            let (header, value) = match key_header {
                KeyHeader::Bearer => (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}"))),
                KeyHeader::Named(name) => (HeaderName::from_static(name), HeaderValue::try_from(key)),
            };
            let mut value = value.map_err(|_| refused("its key has characters that no header can carry".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(Self { name, endpoint, uri, headers })
    }

    /// Adds a header to every request.
    pub(crate) fn header(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(name, HeaderValue::from_static(value));
    }

    /// The deadline of a call that begins now.
    pub(crate) fn end(&self) -> Instant {
        Instant::now() + self.endpoint.patience.total
    }

    /// Sends `body` for this role and waits for the response head. `end` is the deadline of the whole call.
    pub(crate) async fn post(
        &self,
        role: &'static str,
        body: &Value,
        end: Instant,
    ) -> Result<ResponseStream<'_>, CallError> {
        self.post_bytes(role, "application/json", Bytes::from(kiso_base::json::bytes(body)), end).await
    }

    /// The same for a body of this media type.
    #[expect(clippy::expect_used, reason = "the method and the address were checked before")]
    pub(crate) async fn post_bytes(
        &self,
        role: &'static str,
        media_type: &str,
        body: Bytes,
        end: Instant,
    ) -> Result<ResponseStream<'_>, CallError> {
        let kind = HeaderValue::try_from(media_type).map_err(|error| self.unusable(error.to_string()))?;
        let mut parts = http::Request::builder().method(Method::POST).uri(self.uri.clone());
        let headers = parts.headers_mut().expect("a method and an address are no errors");
        headers.clone_from(&self.headers);
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(ROLE, HeaderValue::from_static(role));
        let (parts, ()) = parts.body(()).expect("the parts were checked").into_parts();

        let Timeouts { connect, first_token, .. } = self.endpoint.patience;
        let sent = pool::send(&parts, &body, connect, first_token, end).await;
        let (response, first) = sent.map_err(|error| CallError::Failed(self.unsent(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(CallError::Refused(self.refusal(status, response, first.min(end)).await));
        }
        let html = header(response.headers(), &CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
        if html {
            let message = "it answers with a web page; its base_url may lack a part such as /v1".to_owned();
            return Err(CallError::Failed(LlmError::Refused { model: self.name.clone(), message }));
        }
        Ok(ResponseStream {
            wire: self,
            server: header(response.headers(), &SERVER).map(str::to_owned),
            body: Some(response.into_body()),
            form: Form::Unknown,
            events: Vec::new().into_iter(),
            received: 0,
            due: first,
            heard: false,
            end,
        })
    }

    /// Sends a body of this media type and returns the response, which is one JSON value.
    pub(crate) async fn ask_once(&self, role: &'static str, media_type: &str, body: Bytes) -> Result<Value, LlmError> {
        let failed = |none| match none {
            CallError::Refused(refusal) => refusal.into_error(&self.name),
            CallError::Failed(error) => error,
        };
        let mut reply = self.post_bytes(role, media_type, body, self.end()).await.map_err(failed)?;
        let Some(event) = reply.next().await? else { return Err(self.broken("its answer is empty")) };
        reply.finish();
        let answer: Value = serde_json::from_str(&event.data).map_err(|error| self.no_json(&error, &event.data))?;
        match answer.get("error") {
            Some(error) if !error.is_null() => Err(failed(self.error_object(&answer))),
            _ => Ok(answer),
        }
    }

    /// Requests the JSON at this address, at most `most` bytes.
    #[expect(clippy::expect_used, reason = "the method and the address were checked before")]
    pub(crate) async fn get(&self, most: usize, end: Instant) -> Result<Value, LlmError> {
        let mut parts = http::Request::builder().method(Method::GET).uri(self.uri.clone());
        parts.headers_mut().expect("a method and an address are no errors").clone_from(&self.headers);
        let (parts, ()) = parts.body(()).expect("the parts were checked").into_parts();
        let Timeouts { connect, first_token, .. } = self.endpoint.patience;
        let sent = pool::send(&parts, &Bytes::new(), connect, first_token, end).await;
        let (response, _) = sent.map_err(|error| self.unsent(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(status, response, end).await.into_error(&self.name));
        }
        let (mut body, mut text) = (response.into_body(), Vec::new());
        loop {
            let frame = match timeout_at(end, body.frame()).await {
                Err(_) => return Err(self.broken("its answer did not end in time")),
                Ok(None) => break,
                Ok(Some(frame)) => frame.map_err(|error| self.broken(self.clean(&pool::chain(&error))))?,
            };
            let Some(data) = frame.data_ref() else { continue };
            if text.len() + data.len() > most {
                return Err(self.unusable(format!("its answer is longer than {most} bytes")));
            }
            text.extend_from_slice(data);
        }
        if text.trim_ascii_start().starts_with(b"<") {
            return Err(self.unusable("it answers with a web page; its base_url may lack a part such as /v1"));
        }
        let no_json = |error: serde_json::Error| self.no_json(&error, &String::from_utf8_lossy(&text));
        serde_json::from_slice(&text).map_err(no_json)
    }

    /// Returns the JSON at `path` beside the version in the base address; `None` if there is none or it takes too long.
    pub(crate) async fn look_up(&self, path: &str, end: Instant) -> Option<Value> {
        let base = self.endpoint.base_url.split('?').next()?.trim_end_matches('/');
        let uri = format!("{}{path}", base.strip_suffix("/v1").unwrap_or(base));
        let mut parts = http::Request::builder().method(Method::GET).uri(uri);
        parts.headers_mut()?.clone_from(&self.headers);
        let (parts, ()) = parts.body(()).ok()?.into_parts();
        let Timeouts { connect, .. } = self.endpoint.patience;
        let (response, due) = pool::send(&parts, &Bytes::new(), connect, ASIDE, end).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let (mut body, mut text) = (response.into_body(), Vec::new());
        while text.len() < MAX_PROPERTIES
            && let Some(frame) = timeout_at(due.min(end), body.frame()).await.ok()?
        {
            text.extend_from_slice(frame.ok()?.data_ref()?);
        }
        serde_json::from_slice(&text).ok()
    }

    /// The error of an invalid answer that may be better next time.
    pub(crate) fn broken(&self, message: impl Into<String>) -> LlmError {
        self.unavailable(message.into(), true)
    }

    /// The error of an answer that would be the same next time.
    pub(crate) fn unusable(&self, message: impl Into<String>) -> LlmError {
        self.unavailable(message.into(), false)
    }

    fn unavailable(&self, message: String, retryable: bool) -> LlmError {
        LlmError::Unavailable { model: self.name.clone(), message, retryable, retry_after: None }
    }

    /// The error of a piece of an answer that is not JSON.
    pub(crate) fn no_json(&self, error: &serde_json::Error, piece: &str) -> LlmError {
        // Shortened last: a part of the key would not be recognized.
        let start: String = self.clean(piece).chars().take(SHOWN_PIECE).collect();
        self.broken(format!("a piece of its answer is not JSON ({error}): {start}"))
    }

    /// Returns text of the provider in a form that errors may show.
    pub(crate) fn clean(&self, text: &str) -> String {
        refusal::clean(text, self.endpoint.key.as_ref())
    }

    /// The error of an error object, or of an error's text, in place of an answer.
    pub(crate) fn error_object(&self, error: &Value) -> CallError {
        CallError::Refused(Refusal::object(error, self.endpoint.key.as_ref()))
    }

    fn unsent(&self, error: &pool::SendError) -> LlmError {
        let Timeouts { connect, first_token, total, .. } = self.endpoint.patience;
        match error {
            pool::SendError::Connect => self.late("connection", connect, "connect"),
            pool::SendError::FirstToken => self.late("answer", first_token, "first_token"),
            pool::SendError::Total => self.late("end of the answer", total, "total"),
            pool::SendError::Http { message, retryable } => self.unavailable(self.clean(message), *retryable),
        }
    }

    fn late(&self, what: &str, limit: Duration, name: &str) -> LlmError {
        self.unavailable(format!("no {what} within {limit:?} (the {name} time-out)"), true)
    }

    async fn refusal(&self, status: StatusCode, response: Response<Incoming>, until: Instant) -> Refusal {
        let (parts, mut body) = response.into_parts();
        let location = header(&parts.headers, &LOCATION);
        let mut text = Vec::new();
        // The rest of a slow body is left out; the status is enough.
        while text.len() < MAX_ERROR_BODY
            && let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await
        {
            if let Some(data) = frame.data_ref() {
                text.extend_from_slice(&data[..data.len().min(MAX_ERROR_BODY - text.len())]);
            }
        }
        let wait = retry_after::read(&parts.headers, SystemTime::now());
        Refusal::read(status, location, &String::from_utf8_lossy(&text), wait, self.endpoint.key.as_ref())
    }
}

/// A response that is being received.
pub(super) struct ResponseStream<'a> {
    wire: &'a Wire,
    /// The server's name in its header.
    server: Option<String>,
    /// `None` after the end.
    body: Option<Incoming>,
    form: Form,
    /// Events that were parsed and not yet returned.
    events: std::vec::IntoIter<SseEvent>,
    /// Received bytes.
    received: usize,
    /// The deadline of the next piece.
    due: Instant,
    /// Whether content was received.
    heard: bool,
    /// The deadline of the whole response.
    end: Instant,
}

/// A stream, or one JSON value: some servers never stream. They are distinguished by the first character, because content types
/// are not reliable and no line of a stream begins with a brace.
enum Form {
    /// Only white space so far.
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

impl ResponseStream<'_> {
    /// Whether this is the server's name.
    pub(crate) fn is_of(&self, server: &str) -> bool {
        self.server.as_deref() == Some(server)
    }

    /// Returns the next event; a response that is not a stream is one event. `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, LlmError> {
        loop {
            // Checked even if there is data: there may be a lot to read, and the reader may be slow.
            if self.end <= Instant::now() {
                return Err(self.wire.late("end of the answer", self.wire.endpoint.patience.total, "total"));
            }
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match timeout_at(self.due.min(self.end), body.frame()).await {
                Err(_) => return Err(self.late()),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.take(&data)?;
                    }
                }
                Ok(Some(Err(error))) => {
                    let message = format!("the connection broke in the middle of the answer: {}", pool::chain(&error));
                    return Err(self.wire.broken(self.wire.clean(&message)));
                }
                Ok(None) => {
                    self.body = None;
                    self.events = self.last()?.into_iter().collect::<Vec<_>>().into_iter();
                }
            }
        }
    }

    /// Records that content was received, and restarts the timeout. Comments, pings and empty deltas are not content, so a
    /// provider that only keeps the connection alive cannot block a call forever.
    pub(crate) fn heard(&mut self) {
        self.heard = true;
        self.due = Instant::now() + self.wire.endpoint.patience.next_token;
    }

    /// Records that the answer is complete; only a short wait for the rest follows.
    pub(crate) fn completed(&mut self) {
        self.heard = true;
        self.due = Instant::now() + self.wire.endpoint.patience.next_token.min(TAIL);
    }

    /// Records the end of the answer; only the end of the body may be missing. A background task waits for it for a short time,
    /// because a connection can only be reused after its body was read.
    pub(crate) fn finish(mut self) {
        if let Some(mut body) = self.body.take() {
            tokio::spawn(tokio::time::timeout(LINGER, async move { while let Some(Ok(_)) = body.frame().await {} }));
        }
    }

    fn take(&mut self, data: &Bytes) -> Result<(), LlmError> {
        self.received = self.received.saturating_add(data.len());
        let limit = self.wire.endpoint.max_response;
        if self.received > limit {
            let provider = &self.wire.endpoint.provider;
            return Err(self.wire.unusable(format!(
                "its answer is longer than {limit} bytes and was cut off; the setting \
                 providers.{provider}.max_response_mib raises the limit"
            )));
        }
        let mut data = &data[..];
        if let Form::Unknown = self.form {
            data = data.trim_ascii_start();
            match data.first() {
                None => return Ok(()),
                Some(b'{' | b'[') => self.form = Form::Whole(Vec::new()),
                Some(_) => self.form = Form::Events(Parser::default()),
            }
        }
        match &mut self.form {
            Form::Unknown => {}
            Form::Events(parser) => {
                let mut events = Vec::new();
                parser.feed(data, &mut events).map_err(|error| self.wire.unusable(error.to_string()))?;
                self.events = events.into_iter();
            }
            Form::Whole(whole) => {
                whole.extend_from_slice(data);
                self.heard();
            }
        }
        Ok(())
    }

    fn last(&mut self) -> Result<Option<SseEvent>, LlmError> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => Ok(None),
            Form::Events(parser) => parser.finish().map_err(|error| self.wire.unusable(error.to_string())),
            Form::Whole(whole) => {
                Ok(Some(SseEvent { name: String::new(), data: String::from_utf8_lossy(&whole).into_owned() }))
            }
        }
    }

    fn late(&self) -> LlmError {
        let Timeouts { first_token, next_token, total, .. } = self.wire.endpoint.patience;
        if self.end <= self.due {
            self.wire.late("end of the answer", total, "total")
        } else if self.heard {
            self.wire.late("further piece of the answer", next_token, "next_token")
        } else {
            self.wire.late("answer", first_token, "first_token")
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Support;

    #[tokio::test]
    async fn what_has_come_is_not_read_any_more_after_the_end() {
        let patience = Duration::from_secs(60);
        let endpoint = Endpoint {
            provider: "test".to_owned(),
            model: "m".to_owned(),
            base_url: "http://localhost".to_owned(),
            key: None,
            patience: Timeouts { connect: patience, first_token: patience, next_token: patience, total: patience },
            schema: Support::Probe,
            tools: Support::Probe,
            vision: Support::Probe,
            audio: false,
            max_response: 1 << 20,
        };
        let wire = Wire::new(endpoint, "/x", KeyHeader::Bearer).unwrap();
        let event = |data: &str| SseEvent { name: String::new(), data: data.to_owned() };
        let events = vec![event("1"), event("2")].into_iter();
        let (due, end) = (wire.end(), wire.end());
        let mut reply = ResponseStream {
            wire: &wire,
            server: None,
            body: None,
            form: Form::Unknown,
            events,
            received: 0,
            due,
            heard: true,
            end,
        };
        assert_eq!(reply.next().await.unwrap().map(|event| event.data).as_deref(), Some("1"));
        reply.end = Instant::now();
        let error = reply.next().await.unwrap_err().to_string();
        assert!(error.ends_with("no end of the answer within 60s (the total time-out)"), "{error}");
    }
}
