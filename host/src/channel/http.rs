//! HTTP on a port, and with it the page: its clients follow the feed as they like.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::Channel;
use crate::drive::RunExecutor;
use crate::gateway::{App, HttpListener, ListenError};

/// The port, until it is served.
#[derive(Debug)]
pub struct Http {
    address: SocketAddr,
    bound: Mutex<Option<HttpListener>>,
}

impl Http {
    /// Listens on the port of `config.toml`, or on `port` instead.
    pub async fn open(drive: &RunExecutor, port: Option<u16>) -> Result<Http, ListenError> {
        let gateway = &drive.config.gateway;
        let port = port.unwrap_or(u16::try_from(gateway.port).unwrap_or(0));
        let bound = HttpListener::bind(drive, &gateway.bind, port).await?;
        Ok(Http { address: bound.address(), bound: Mutex::new(Some(bound)) })
    }

    /// Where it is, with the port that the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
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
