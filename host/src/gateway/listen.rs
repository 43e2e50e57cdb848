//! The port: accepts connections, and gives each its limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::auth::Local;
use super::patient::Patient;
use super::{App, Patience, api, is_local};

/// Bytes of a request's head.
const MAX_HEAD: usize = 32 << 10;

/// Headers of a request.
const MAX_HEADERS: usize = 64;

/// Milliseconds to wait when the system has no more descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// A port that is listened on.
#[derive(Debug)]
pub struct Bound {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
}

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("gateway.bind = {bind:?} is no address of this machine, such as \"127.0.0.1\"")]
    BadAddress { bind: String },
    #[error("{address} can be reached from other machines, and there is no token: `kiso token add NAME` makes one")]
    NoToken { address: SocketAddr },
    #[error("nothing can listen on {address}: {error}")]
    Io { address: SocketAddr, error: std::io::Error },
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    #[error(transparent)]
    Socket(#[from] super::socket::SocketError),
}

impl Bound {
    pub(super) async fn bind(app: App, bind: &str, port: u16) -> Result<Bound, ListenError> {
        let ip = bind.parse().map_err(|_| ListenError::BadAddress { bind: bind.to_owned() })?;
        let address = SocketAddr::new(ip, port);
        if !is_local(&address) && app.0.drive.store.read(|view| Ok(view.tokens()?.is_empty())).await? {
            return Err(ListenError::NoToken { address });
        }
        let failed = |error| ListenError::Io { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Bound { app, listener, address })
    }

    /// Where it is, with the port that the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `ending` is true; then lets each request that is under way come to its end.
    pub async fn serve(self, mut ending: watch::Receiver<bool>) {
        let Bound { app, listener, address } = self;
        let gateway = &app.0.drive.config.gateway;
        let seconds = Duration::from_secs;
        let patience =
            Patience { request: seconds(gateway.request_timeout_s), stalled: seconds(gateway.stalled_timeout_s) };
        let places = Arc::new(Semaphore::new(usize::try_from(gateway.max_connections).unwrap_or(usize::MAX >> 4)));
        let router = api::router(app.clone()).layer(axum::Extension(Local(is_local(&address))));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = ending.wait_for(|ending| *ending) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            // One too many is closed at once: whoever holds the others must not make this one wait as well.
            let Ok(place) = places.clone().try_acquire_owned() else {
                app.0.counters.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            app.0.counters.connections.fetch_add(1, Ordering::Relaxed);
            let (router, ending, app) = (router.clone(), ending.clone(), app.clone());
            connections.spawn(async move {
                serve_one(stream, router, patience, ending).await;
                app.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
                drop(place);
            });
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }
}

async fn serve_one(stream: TcpStream, router: axum::Router, patience: Patience, mut ending: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Patient::new(stream, patience.stalled));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also for the next request of a connection that is kept open.
        .header_read_timeout(patience.request)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // What goes wrong on a connection is the client's, and it has been told where that was possible.
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|ending| *ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
