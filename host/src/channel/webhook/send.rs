//! One attempt: a request and the beginning of its answer.

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

/// Bytes of an answer's head. Nothing in it is needed but the status and how long to wait.
const MAX_HEAD: usize = 16 << 10;

/// Headers of an answer.
const MAX_HEADERS: usize = 64;

/// Bytes of an answer's body that are read: enough for a sentence that says what is wrong.
const MAX_BODY: usize = 4 << 10;

/// How long it is awaited. The status is known already, and must not be lost to the webhook's time-out.
const LINGER: Duration = Duration::from_millis(500);

/// Characters of a part of the address that are looked for in what a receiver says.
const REPEATED: usize = 6;

/// Characters of it that are shown.
const SHOWN: usize = 200;

/// By which a receiver knows what it has already.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const SIGNATURE: HeaderName = HeaderName::from_static("kiso-signature");

/// So that a receiver can sort without reading the body.
const EVENT: HeaderName = HeaderName::from_static("kiso-event");

/// Of a fleet: it grows with each owner of the home. A receiver that has seen a higher one can refuse a lower one.
const EPOCH: HeaderName = HeaderName::from_static("kiso-epoch");

/// The receiver has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverAnswer {
    pub status: u16,
}

/// Sends a body once. All of it, from the connection to the answer, happens within the webhook's time.
pub(super) async fn send(webhook: &Webhook, letter: &Letter, now_ms: i64) -> Result<ReceiverAnswer, NotDelivered> {
    let late = |_| NotDelivered::passing(format!("no answer within {} s", webhook.timeout.as_secs()));
    let sent = timeout(webhook.timeout, attempt(webhook, letter, now_ms)).await.map_err(late)?;
    sent.map_err(|mut failed| {
        // A receiver may repeat the address, which may be a secret; cut off, its beginning gives it away.
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
    // A name may have any address. Over the open internet nothing goes in clear.
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
        // With the last bytes of an answer the connection may end before they are looked at.
        _ = &mut connection => {}
    }
    answered.await
}

/// Success is known by the status alone, and nothing more is read. No redirect is followed: it would lead to an address
/// that nobody wrote into the configuration.
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

/// The beginning of a body, as a line of text.
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
