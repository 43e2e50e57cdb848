//! The HTTP listener: accepts connections, and applies limits to each. It also serves connections that were forwarded by another
//! machine.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::auth::Peer;
use super::connection_slots::{ConnectionSlot, ConnectionSlots, UnderWay};
use super::patient::Patient;
use super::request_body::RequestBody;
use super::{App, ConnectionTimeouts, api, count, is_local};
use kiso_agent::drive::RunExecutor;
use kiso_base::system::end_unacknowledged;
use kiso_store::store::TokenScope;

/// Maximum size in bytes of a request's head.
const MAX_HEAD: usize = 32 << 10;

/// Maximum number of headers in a request.
const MAX_HEADERS: usize = 64;

/// Delay after the system ran out of descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// Descriptors that are reserved for everything except connections: the store, skills and tasks, models.
const OTHER_FILES: u64 = 256;

/// Sent, as long as that needs no waiting, when every connection has an active request.
const NO_PLACE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A listening port.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    /// `None` without forwarded connections.
    tunnelled: Option<mpsc::Receiver<TunnelledConnection>>,
}

/// A connection that a client made to another machine, which forwards it.
#[derive(Debug)]
pub struct TunnelledConnection {
    /// The bytes of both directions.
    pub stream: DuplexStream,
    /// The client's address, as seen by the other machine.
    pub peer: IpAddr,
}

/// A connection of either kind.
enum ClientStream {
    Port(TcpStream),
    Tunnel(DuplexStream),
}

/// The requirements of HTTP on a connection. Boxed, so that the serving code is compiled only once.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// Why listening on a port failed.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("gateway.bind = {bind:?} is not an address of this machine, such as \"127.0.0.1\"")]
    BadAddress { bind: String },
    #[error("{address} can be reached from other machines, and there is no token: `kiso token add NAME` makes one")]
    NoToken { address: SocketAddr },
    #[error("cannot listen on {address}: {error}")]
    Io { address: SocketAddr, error: std::io::Error },
    #[error(transparent)]
    Store(#[from] kiso_store::store::StoreError),
    #[error(transparent)]
    Socket(#[from] super::socket::SocketError),
}

impl HttpListener {
    /// Listens on a port of an address of this machine.
    pub async fn bind(drive: &RunExecutor, bind: &str, port: u16) -> Result<HttpListener, ListenError> {
        let ip = bind.parse().map_err(|_| ListenError::BadAddress { bind: bind.to_owned() })?;
        let address = SocketAddr::new(ip, port);
        check_tokens(drive, address).await?;
        let failed = |error| ListenError::Io { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(HttpListener { listener, address, tunnelled: None })
    }

    /// Uses a port that is already listening; clients that have connected in the meantime are served. Must be called in the
    /// runtime that serves.
    pub async fn from_std(drive: &RunExecutor, listener: std::net::TcpListener) -> Result<HttpListener, ListenError> {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let address = listener.local_addr().map_err(|error| ListenError::Io { address: nowhere, error })?;
        check_tokens(drive, address).await?;
        let failed = |error| ListenError::Io { address, error };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        Ok(HttpListener { listener, address, tunnelled: None })
    }

    /// Also serves these forwarded connections. They count towards gateway.max_connections, and requests from addresses other
    /// than this machine's need a token.
    pub fn with_tunnel(self, tunnelled: mpsc::Receiver<TunnelledConnection>) -> HttpListener {
        HttpListener { tunnelled: Some(tunnelled), ..self }
    }

    /// Returns the address, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `ending` is true, and then completes active requests.
    pub async fn serve(self, app: App, mut ending: watch::Receiver<bool>) {
        let HttpListener { listener, mut tunnelled, .. } = self;
        let places = ConnectionSlots::new(room_for(app.0.drive.config.gateway.max_connections));
        let router = api::router(app.clone());
        let mut connections = JoinSet::new();
        let mut out_of_breath = false;
        loop {
            let accepted = tokio::select! {
                _ = ending.wait_for(|ending| *ending) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted.map(|(stream, peer)| (ClientStream::Port(stream), peer.ip())),
                came = next_of(&mut tunnelled) => Ok((ClientStream::Tunnel(came.stream), came.peer)),
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Logged once, not ten times a second.
                    if !std::mem::replace(&mut out_of_breath, true) {
                        tracing::warn!("a connection could not be accepted: {error}");
                    }
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            out_of_breath = false;
            let Some(place) = places.take(peer) else {
                app.0.counters.refused("too_many_connections");
                stream.refuse();
                continue;
            };
            let counted = count::counted(&app, |counters| &counters.connections);
            let (router, ending) = (router.clone(), ending.clone());
            let gateway = &app.0.drive.newest_config().gateway;
            let seconds = Duration::from_secs;
            let patience = ConnectionTimeouts {
                request: seconds(gateway.request_timeout_s),
                stalled: seconds(gateway.stalled_timeout_s),
            };
            let stream = stream.prepared(patience.stalled);
            connections.spawn(async move {
                serve_one(stream, peer, place, router, patience, ending).await;
                drop(counted);
            });
        }
        drop((listener, tunnelled));
        while connections.join_next().await.is_some() {}
    }
}

/// Checks that an address may be used: without a token, only addresses of this machine.
async fn check_tokens(drive: &RunExecutor, address: SocketAddr) -> Result<(), ListenError> {
    let tokens = drive.store.read(|view| view.tokens()).await?;
    if !is_local(&address) && tokens.is_empty() {
        return Err(ListenError::NoToken { address });
    }
    for name in &drive.config.gateway.admins {
        if !tokens.iter().any(|token| token.name == *name && token.scope == TokenScope::Admin) {
            tracing::warn!("gateway.admins names {name:?}, and there is no token of that name with the scope admin");
        }
    }
    Ok(())
}

/// Waits for the next forwarded connection; never returns if there can be no more.
async fn next_of(tunnelled: &mut Option<mpsc::Receiver<TunnelledConnection>>) -> TunnelledConnection {
    if let Some(connections) = tunnelled {
        if let Some(connection) = connections.recv().await {
            return connection;
        }
        *tunnelled = None;
    }
    std::future::pending().await
}

impl ClientStream {
    /// Reports that there is no place, and closes the connection.
    fn refuse(self) {
        match self {
            ClientStream::Port(stream) => drop(stream.try_write(NO_PLACE)),
            ClientStream::Tunnel(mut stream) => drop(stream.write_all(NO_PLACE).now_or_never()),
        }
    }

    fn prepared(self, stalled: Duration) -> Box<dyn ByteStream> {
        match self {
            ClientStream::Port(stream) => {
                let _ = stream.set_nodelay(true);
                notice_death(&stream, stalled);
                Box::new(stream)
            }
            ClientStream::Tunnel(stream) => Box::new(stream),
        }
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    place: ConnectionSlot,
    router: axum::Router,
    patience: ConnectionTimeouts,
    mut ending: watch::Receiver<bool>,
) {
    let io = TokioIo::new(Patient::new(stream, patience.stalled));
    let router = TowerToHyperService::new(router);
    let place = &place;
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let under_way = place.under_way();
        let span = tracing::debug_span!("gateway.request", method = %request.method(), path = request.uri().path());
        let answered =
            (head_bytes(&request) <= MAX_HEAD).then(|| router.call(RequestBody::wrap(request, patience.request)));
        let answered = async move {
            let response = match answered {
                Some(answered) => answered.await?,
                None => too_large(),
            };
            tracing::debug!(status = response.status().as_u16(), "answered");
            Ok::<_, Infallible>(response.map(|body| Body::new(Sent { body, _under_way: under_way })))
        };
        answered.instrument(span)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also applies to the next request of a kept-open connection.
        .header_read_timeout(patience.request)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error on a connection concerns only its client, which has received it if possible.
        _ = connection.as_mut() => return,
        // The connection has no active request.
        () = place.taken() => return,
        _ = ending.wait_for(|ending| *ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Returns the size in bytes of a request's head after parsing. The read buffer is limited to [`MAX_HEAD`] before each read, so a
/// head may exceed the limit by the size of one read.
fn head_bytes(request: &hyper::Request<Incoming>) -> usize {
    let line = request.method().as_str().len() + request.uri().to_string().len() + " HTTP/1.1\r\n ".len();
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

/// Returns the response for a head that is too large, the same as hyper sends.
fn too_large() -> axum::response::Response {
    let mut response = axum::response::Response::new(Body::empty());
    *response.status_mut() = hyper::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response.headers_mut().insert(hyper::header::CONNECTION, hyper::header::HeaderValue::from_static("close"));
    response
}

/// Body of a response. The request stays active until the body has been sent.
struct Sent {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Detects dead peers by unacknowledged data; otherwise the system takes a quarter of an hour.
pub fn notice_death(stream: &TcpStream, stalled: Duration) {
    end_unacknowledged(stream, stalled);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
}

/// Returns the maximum number of connections: the configured one, unless the system allows fewer descriptors. Raises the
/// process's limit of descriptors as far as possible.
fn room_for(configured: u64) -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
        limit = getrlimit(Resource::Nofile);
    }
    let files = limit.current.unwrap_or(u64::MAX);
    let room = configured.min(files.saturating_sub(OTHER_FILES).max(files / 4));
    if room < configured {
        tracing::warn!(
            "gateway.max_connections = {configured}, and a process may have {files} open files here: {room} connections \
             are served; a higher limit (LimitNOFILE of the unit, ulimit -n) raises this"
        );
    }
    usize::try_from(room).unwrap_or(usize::MAX)
}
