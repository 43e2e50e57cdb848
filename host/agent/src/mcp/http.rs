//! One message to a server and its answer, over Streamable HTTP. The server chooses the length, form and end of the answer, so
//! all of these are limited here.

use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::oauth::Challenge;
use super::{McpFault, shown};
use kiso_base::net::pool::{self, SendError};
use kiso_base::net::sse::Parser;
use kiso_base::rpc::{self, RequestId, RpcMessage};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Maximum number of notifications and other messages before an answer. Progress arrives a few times per second.
pub(super) const MAX_MESSAGES: usize = 10_000;

/// Maximum size in bytes of the body of a refusal, which may contain a protocol error.
const MAX_REFUSAL: usize = 64 << 10;

const CONNECT: Duration = Duration::from_secs(10);

/// Limits of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub end: Instant,
    /// Seconds, from which `end` was computed.
    pub timeout_s: u64,
    pub max_kib: u64,
}

/// The answer to a request.
pub(super) struct RpcAnswer {
    pub result: Value,
    /// The session that the server starts.
    pub session: Option<HeaderValue>,
}

/// Sends a message. For a request, returns the answer with its id; a notification has none.
pub(super) async fn exchange(
    uri: &Uri,
    headers: HeaderMap,
    message: &Value,
    id: Option<&RequestId>,
    bounds: Bounds,
) -> Result<RpcAnswer, McpFault> {
    let body = Bytes::from(kiso_base::json::bytes(message));
    let (mut parts, ()) = Request::new(()).into_parts();
    (parts.method, parts.uri, parts.headers) = (Method::POST, uri.clone(), headers);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    parts.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION"))));
    let in_session = parts.headers.contains_key(SESSION);
    let total = Duration::from_secs(bounds.timeout_s);
    let sent = pool::send_once(&parts, &body, CONNECT.min(total), total, bounds.end).await;
    let (response, _) = sent.map_err(|error| match error {
        SendError::Connect => McpFault::Unreachable("no connection in time".to_owned()),
        SendError::FirstToken | SendError::Total => McpFault::Timeout(bounds.timeout_s),
        SendError::Http { message, .. } if message.starts_with("no connection") => McpFault::Unreachable(message),
        SendError::Http { message, .. } => McpFault::Broken(shown(&message)),
    })?;
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|value| value.parse::<Uri>().ok());
        let host = to.as_ref().and_then(Uri::host).unwrap_or("another address");
        return Err(McpFault::Redirect(shown(host)));
    }
    let challenge = Challenge::read(response.headers()).filter(|_| matches!(status.as_u16(), 401 | 403));
    if let Some(challenge) = challenge {
        return Err(McpFault::Challenged(status.as_u16(), challenge));
    }
    match status.as_u16() {
        401 | 403 | 407 => return Err(McpFault::Refused(status.as_u16())),
        404 if in_session => return Err(McpFault::SessionGone),
        _ if !status.is_success() => return Err(refusal(response, bounds).await),
        _ => {}
    }
    let session = response.headers().get(SESSION).filter(|value| value.len() <= 1_024).cloned();
    let Some(id) = id else { return Ok(RpcAnswer { result: Value::Null, session }) };
    let kind = media(response.headers());
    let result = match kind.as_str() {
        "application/json" => whole(response, id, bounds).await?,
        "text/event-stream" => streamed(response, id, bounds).await?,
        other => return Err(McpFault::ContentType(shown(other))),
    };
    Ok(RpcAnswer { result, session })
}

fn media(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Converts a refusal: a protocol error if it contains one, otherwise its status.
async fn refusal(response: Response<Incoming>, bounds: Bounds) -> McpFault {
    let status = McpFault::Status(response.status().as_u16());
    if media(response.headers()) != "application/json" {
        return status;
    }
    let mut reading = Reading { body: response.into_body(), left: MAX_REFUSAL, bounds };
    let mut bytes = Vec::new();
    while let Ok(Some(data)) = reading.next().await {
        bytes.extend_from_slice(&data);
    }
    match rpc::read(&bytes) {
        Ok(RpcMessage::Response { result: Err(error), .. }) => {
            McpFault::Rpc { code: error.code, message: shown(&error.message) }
        }
        _ => status,
    }
}

/// A body that is read within its limits.
struct Reading {
    body: Incoming,
    /// Remaining bytes.
    left: usize,
    bounds: Bounds,
}

impl Reading {
    fn new(body: Incoming, bounds: Bounds) -> Reading {
        Reading { body, left: usize::try_from(bounds.max_kib << 10).unwrap_or(usize::MAX), bounds }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, McpFault> {
        loop {
            // Checked even if data is ready, because a flood always has data ready.
            if self.bounds.end <= Instant::now() {
                return Err(McpFault::Timeout(self.bounds.timeout_s));
            }
            let frame = timeout_at(self.bounds.end, self.body.frame()).await;
            match frame.map_err(|_| McpFault::Timeout(self.bounds.timeout_s))? {
                None => return Ok(None),
                Some(Err(error)) => return Err(McpFault::Broken(shown(&pool::chain(&error)))),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.left = match self.left.checked_sub(data.len()) {
                        Some(left) => left,
                        None => return Err(McpFault::TooLarge(self.bounds.max_kib)),
                    };
                    return Ok(Some(data));
                }
            }
        }
    }
}

async fn whole(response: Response<Incoming>, id: &RequestId, bounds: Bounds) -> Result<Value, McpFault> {
    let (mut reading, mut bytes) = (Reading::new(response.into_body(), bounds), Vec::new());
    while let Some(data) = reading.next().await? {
        bytes.extend_from_slice(&data);
    }
    match answer_in(&bytes, id)? {
        Some(result) => Ok(result),
        None => Err(McpFault::BadAnswer("it answers another request".to_owned())),
    }
}

/// Returns the first answer; anything after it is not read.
async fn streamed(response: Response<Incoming>, id: &RequestId, bounds: Bounds) -> Result<Value, McpFault> {
    let (mut reading, mut parser) = (Reading::new(response.into_body(), bounds), Parser::default());
    let (mut events, mut others) = (Vec::new(), 0);
    loop {
        let data = reading.next().await?;
        let ended = data.is_none();
        // An event that was cut off by the end of the stream is ignored.
        if let Some(data) = data {
            parser.feed(&data, &mut events).map_err(|error| McpFault::BadAnswer(error.to_string()))?;
        }
        for event in events.drain(..) {
            // An event without data only keeps the connection alive.
            if event.data.is_empty() {
                continue;
            }
            match rpc::read(event.data.as_bytes()) {
                Err((None, error)) => tracing::warn!("an event of an MCP server is no message: {}", error.message),
                _ => {
                    if let Some(result) = answer_in(event.data.as_bytes(), id)? {
                        return Ok(result);
                    }
                }
            }
            others += 1;
            if others > MAX_MESSAGES {
                return Err(McpFault::TooManyMessages(MAX_MESSAGES));
            }
        }
        if ended {
            return Err(McpFault::Broken("its stream has no answer".to_owned()));
        }
    }
}

/// Returns the result in a message, if it answers the request. kiso offers servers no requests, so theirs are not answered.
fn answer_in(bytes: &[u8], id: &RequestId) -> Result<Option<Value>, McpFault> {
    match rpc::read(bytes).map_err(|(_, error)| McpFault::BadAnswer(shown(&error.message)))? {
        RpcMessage::Response { id: Some(of), result: Ok(result) } if of == *id => Ok(Some(result)),
        RpcMessage::Response { id: of, result: Err(error) } if of.is_none() || of.as_ref() == Some(id) => {
            Err(McpFault::Rpc { code: error.code, message: shown(&error.message) })
        }
        _ => Ok(None),
    }
}
