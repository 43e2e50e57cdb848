//! One attempt: a request and the beginning of its response.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Webhook, sign};
use crate::channel::{Letter, NotDelivered, Trouble};
use kiso_base::net::{self, retry_after};

/// Maximum bytes of a response's head. Only the status and the retry delay are used.
const MAX_HEAD: usize = 16 << 10;

/// Maximum headers of a response.
const MAX_HEADERS: usize = 64;

/// Bytes of a response's body that are read: enough for a sentence about the error.
const MAX_BODY: usize = 4 << 10;

/// How long to wait for the body. The status is known already, and must not be lost to the webhook's timeout.
const LINGER: Duration = Duration::from_millis(500);

/// Number of characters of a part of the address to search for in the receiver's response.
const REPEATED: usize = 6;

/// Characters of the response that are shown.
const SHOWN: usize = 200;

/// Lets a receiver recognize a repeated delivery.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const SIGNATURE: HeaderName = HeaderName::from_static("kiso-signature");

/// Lets a receiver sort events without reading the body.
const EVENT: HeaderName = HeaderName::from_static("kiso-event");

/// Only with a fleet: grows with each owner of the home. A receiver that has seen a higher value can refuse a lower one.
const EPOCH: HeaderName = HeaderName::from_static("kiso-epoch");

/// The receiver has accepted the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverAnswer {
    pub status: u16,
}

/// Sends a body once. Everything, from the connection to the response, happens within the webhook's timeout.
pub(super) async fn send(webhook: &Webhook, letter: &Letter, now_ms: i64) -> Result<ReceiverAnswer, NotDelivered> {
    let late = |_| NotDelivered::passing(format!("no answer within {} s", webhook.timeout.as_secs()));
    let sent = timeout(webhook.timeout, attempt(webhook, letter, now_ms)).await.map_err(late)?;
    sent.map_err(|mut failed| {
        // A receiver may repeat the address, which may be a secret; even a truncated address would reveal its beginning.
        let target = webhook.uri.path_and_query().map_or("", |path| path.as_str());
        let parts = target.split(['/', '?', '&', '=']).filter_map(|part| part.get(..REPEATED));
        if parts.into_iter().any(|start| failed.said.contains(start)) {
            failed.said.clear();
        }
        failed
    })
}

async fn attempt(webhook: &Webhook, letter: &Letter, now_ms: i64) -> Result<ReceiverAnswer, NotDelivered> {
    let request = request(webhook, letter, now_ms)?;
    let uri = &webhook.uri;
    let encrypted = uri.scheme_str() != Some("http");
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let stream = net::connect(host, port, webhook.allow_private).await?;
    if encrypted {
        return exchange(net::secure(stream, host).await?, request).await;
    }
    // A name may have any address. Nothing is sent over the internet unencrypted.
    if stream.peer_addr().map_or(true, |peer| net::is_public(peer.ip())) {
        return Err(NotDelivered::passing("http:// reaches private addresses only; use https://"));
    }
    exchange(stream, request).await
}

fn request(webhook: &Webhook, letter: &Letter, now_ms: i64) -> Result<Request<Full<Bytes>>, NotDelivered> {
    let body = letter.bytes();
    let signature = sign::signature(&webhook.key, now_ms.div_euclid(1_000), &body);
    let path = webhook.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    let text =
        |text: &str| HeaderValue::from_str(text).map_err(|_| NotDelivered::passing("a header cannot be written"));
    *request.uri_mut() =
        Uri::builder().path_and_query(path).build().map_err(|_| NotDelivered::passing("the address has no path"))?;
    let headers = request.headers_mut();
    headers.insert(HOST, text(&webhook.host)?);
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION"))));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(IDEMPOTENCY_KEY, text(&letter.id)?);
    headers.insert(SIGNATURE, text(&signature)?);
    headers.insert(EVENT, HeaderValue::from_static(letter.event));
    if let Some(epoch) = letter.epoch {
        headers.insert(EPOCH, HeaderValue::from(epoch));
    }
    Ok(request)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    request: Request<Full<Bytes>>,
) -> Result<ReceiverAnswer, NotDelivered> {
    let broken = |error: hyper::Error| NotDelivered::passing(format!("the connection broke off: {error}"));
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        read(head.status, &head.headers, body).await
    };
    let (mut connection, mut answered) = (std::pin::pin!(connection), std::pin::pin!(answered));
    tokio::select! {
        answer = &mut answered => return answer,
        // The connection may end with the last bytes of a response, before they are read.
        _ = &mut connection => {}
    }
    answered.await
}

/// Success is decided by the status alone; the body is not read. Redirects are not followed: they would lead to an address
/// that nobody configured.
async fn read(status: StatusCode, headers: &HeaderMap, body: Incoming) -> Result<ReceiverAnswer, NotDelivered> {
    if status.is_success() {
        return Ok(ReceiverAnswer { status: status.as_u16() });
    }
    let redirected = if status.is_redirection() { ", a redirect, which is not followed" } else { "" };
    let trouble = if status == StatusCode::GONE { Trouble::Gone } else { Trouble::Passing };
    Err(NotDelivered {
        why: format!("it answered {}{redirected}", status.as_u16()),
        said: beginning(body).await,
        wait: retry_after::read(headers, SystemTime::now()),
        trouble,
    })
}

/// Returns the beginning of a body as one line of text.
async fn beginning(mut body: Incoming) -> String {
    let mut bytes = Vec::new();
    let until = Instant::now() + LINGER;
    while bytes.len() < MAX_BODY
        && let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await
    {
        let piece = frame.into_data().unwrap_or_default();
        bytes.extend_from_slice(&piece[..piece.len().min(MAX_BODY - bytes.len())]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(SHOWN).collect()
}
