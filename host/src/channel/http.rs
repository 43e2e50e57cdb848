//! HTTP on a port, including the page: clients follow the feed themselves.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::Channel;
use kiso_agent::drive::RunExecutor;
use kiso_gateway::{App, HttpListener, ListenError, TunnelledConnection};

/// The port to use.
#[derive(Debug)]
pub enum Port {
    /// The port of `config.toml`.
    Configured,
    Instead(u16),
    /// A port that is listened on already, and connections that other machines pass on.
    Bound {
        listener: TcpListener,
        tunnelled: mpsc::Receiver<TunnelledConnection>,
    },
}

/// The port, before it is served.
#[derive(Debug)]
pub(super) struct Http {
    address: SocketAddr,
    bound: Mutex<Option<HttpListener>>,
}

impl Http {
    /// Listens on the port of `config.toml`, unless `port` says otherwise.
    pub(super) async fn open(drive: &RunExecutor, port: Port) -> Result<Http, ListenError> {
        let gateway = &drive.config.gateway;
        let bound = match port {
            Port::Configured => {
                HttpListener::bind(drive, &gateway.bind, u16::try_from(gateway.port).unwrap_or(0)).await?
            }
            Port::Instead(port) => HttpListener::bind(drive, &gateway.bind, port).await?,
            Port::Bound { listener, tunnelled } => {
                HttpListener::from_std(drive, listener).await?.with_tunnel(tunnelled)
            }
        };
        Ok(Http { address: bound.address(), bound: Mutex::new(Some(bound)) })
    }

    /// Returns the address, with the port that the system chose if 0 was requested.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Channel for Http {
    fn name(&self) -> &str {
        "http"
    }

    fn place(&self) -> String {
        format!("http://{}", self.address)
    }

    fn serve(self: Arc<Self>, app: App, ending: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(bound) = bound {
                bound.serve(app, ending).await;
            }
        })
    }
}
