//! The HTTP connections of the process: one client, so that all users of a server share its connections.

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector, HttpInfo, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::{self, ClientConfig};

use super::roots;

/// How long an idle connection is kept. Many servers and routers drop theirs after about a minute.
const IDLE: Duration = Duration::from_secs(45);

/// Idle connections that are kept for each host; model slots need no more.
const MAX_IDLE: usize = 8;

/// Connections that are known to have served a request. If one is forgotten, [`send`] does not repeat its request.
const MAX_KNOWN: usize = 64;

type Connections = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

struct Pool {
    kept: Connections,
    /// Opens a connection for each request.
    fresh: Connections,
    /// Local addresses of connections that have served a request, newest last.
    known: Mutex<VecDeque<SocketAddr>>,
}

static POOL: LazyLock<Pool> =
    LazyLock::new(|| Pool { kept: client(MAX_IDLE), fresh: client(0), known: Mutex::new(VecDeque::new()) });

fn client(max_idle: usize) -> Connections {
    let trusted = ClientConfig::clone(&roots::client_config());
    let connector = HttpsConnectorBuilder::new().with_tls_config(trusted).https_or_http().enable_http1().build();
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(max_idle)
        .build(connector)
}

/// Why a response head was not received.
#[derive(Debug)]
pub enum SendError {
    /// No connection before the timeout.
    Connect,
    /// No head before the timeout.
    FirstToken,
    /// The timeout of the whole call has passed.
    Total,
    Http {
        message: String,
        retryable: bool,
    },
}

/// Sends a request and waits for the response head. Also returns when the response's content must have begun: `first_token` after
/// the connection was established.
///
/// A server may just have closed a connection that was kept. If a connection ends without a byte of response, the request is sent
/// once more on a new connection, as HTTP provides (RFC 9112, section 9.3.1).
pub async fn send(
    parts: &Parts,
    body: &Bytes,
    connect: Duration,
    first_token: Duration,
    end: Instant,
) -> Result<(Response<Incoming>, Instant), SendError> {
    let failed = match attempt(&POOL.kept, parts, body, (connect, first_token, end)).await? {
        Ok(answer) => return Ok(answer),
        Err((true, _)) => attempt(&POOL.fresh, parts, body, (connect, first_token, end)).await?,
        Err((false, error)) => Err((false, error)),
    };
    failed.map_err(|(_, error)| unsent(&error))
}

/// Like [`send`], for requests that must not be repeated: on a new connection, and only once.
pub async fn send_once(
    parts: &Parts,
    body: &Bytes,
    connect: Duration,
    first_token: Duration,
    end: Instant,
) -> Result<(Response<Incoming>, Instant), SendError> {
    let sent = attempt(&POOL.fresh, parts, body, (connect, first_token, end)).await?;
    sent.map_err(|(_, error)| unsent(&error))
}

/// The result of one attempt: the response head, or an error and whether a kept connection had just ended.
type Attempt = Result<(Response<Incoming>, Instant), (bool, hyper_util::client::legacy::Error)>;

async fn attempt(
    client: &Connections,
    parts: &Parts,
    body: &Bytes,
    (connect, first_token, end): (Duration, Duration, Instant),
) -> Result<Attempt, SendError> {
    let mut request = Request::from_parts(parts.clone(), Full::new(body.clone()));
    let mut connection = capture_connection(&mut request);
    let mut answer = std::pin::pin!(client.request(request));
    let connecting = timeout_at(end.min(Instant::now() + connect), connection.wait_for_connection_metadata());
    let early = tokio::select! {
        biased;
        answer = &mut answer => Some(answer),
        connected = connecting => match connected {
            Ok(_) => None,
            Err(_) if end <= Instant::now() => return Err(SendError::Total),
            Err(_) => return Err(SendError::Connect),
        },
    };
    let due = Instant::now() + first_token;
    let answer = match early {
        Some(answer) => answer,
        None => timeout_at(due.min(end), answer)
            .await
            .map_err(|_| if end <= due { SendError::Total } else { SendError::FirstToken })?,
    };
    let used = address(&connection);
    match answer {
        Ok(response) => {
            POOL.remember(used);
            Ok(Ok((response, due)))
        }
        Err(error) => Ok(Err((POOL.forget(used) && broke_off(&error), error))),
    }
}

fn unsent(error: &hyper_util::client::legacy::Error) -> SendError {
    SendError::Http { message: reason(error), retryable: !bad_certificate(error) }
}

impl Pool {
    fn remember(&self, used: Option<SocketAddr>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(used) = used.filter(|used| !known.contains(used)) else { return };
        if known.len() == MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(used);
    }

    /// Removes a connection from the known ones; returns whether it was one.
    fn forget(&self, used: Option<SocketAddr>) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let position = known.iter().position(|known| Some(*known) == used);
        position.is_some_and(|position| known.remove(position).is_some())
    }
}

/// The local address of the connection, which distinguishes it from others to the same host.
fn address(connection: &CaptureConnection) -> Option<SocketAddr> {
    let mut extensions = Extensions::new();
    connection.connection_metadata().as_ref()?.get_extras(&mut extensions);
    Some(extensions.get::<HttpInfo>()?.local_addr())
}

/// Whether the connection ended before a byte of the response.
fn broke_off(error: &hyper_util::client::legacy::Error) -> bool {
    causes(error).any(|cause| {
        let closed = cause.downcast_ref::<hyper::Error>().is_some_and(|error| error.is_incomplete_message());
        closed
            || cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
                use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
                matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
            })
    })
}

/// Whether the certificate is not trusted; a retry would not change that.
fn bad_certificate(error: &hyper_util::client::legacy::Error) -> bool {
    causes(error).any(|mut cause| {
        // An I/O error does not list the error inside as its source, and here one I/O error contains another.
        while let Some(inner) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            cause = inner;
        }
        matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
    })
}

/// The error message, without the client's generic prefix.
fn reason(error: &hyper_util::client::legacy::Error) -> String {
    let what = if error.is_connect() { "no connection" } else { "the connection broke before the answer" };
    match error.source() {
        Some(source) => format!("{what}: {}", chain(source)),
        None => what.to_owned(),
    }
}

/// Formats an error and its causes, without repetitions.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = String::new();
    for cause in causes(error) {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            let colon = if said.is_empty() { "" } else { ": " };
            said = format!("{said}{colon}{cause}");
        }
    }
    said
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
