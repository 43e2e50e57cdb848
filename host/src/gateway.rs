//! How programs and people reach the daemon: HTTP on a port, and JSON lines on a socket.
//!
//! A request is authenticated, checked against its limits, and then handed on; nothing here knows of runs or skills more
//! than what the store says about them.

mod api;
mod auth;
mod error;
mod events;
mod follow;
mod listen;
mod patient;
mod socket;
pub mod webhook;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::drive::Drive;
use crate::session::intake::Intake;
use crate::session::live::Hub;
use tokio::sync::watch;

pub use self::listen::{Bound, ListenError};
pub use self::socket::{Socket, SocketError};

/// What every request needs.
#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    drive: Drive,
    intake: Intake,
    hub: Hub,
    began_ms: i64,
    /// Whether the daemon is ending; streams end with it.
    ending: watch::Receiver<bool>,
    counters: Counters,
}

/// What is counted for `/metrics`.
#[derive(Debug, Default)]
struct Counters {
    requests: std::sync::atomic::AtomicU64,
    refused: std::sync::atomic::AtomicU64,
    connections: std::sync::atomic::AtomicU64,
    sockets: std::sync::atomic::AtomicU64,
    streams: std::sync::atomic::AtomicU64,
}

impl App {
    pub fn new(drive: Drive, intake: Intake, hub: Hub, began_ms: i64, ending: watch::Receiver<bool>) -> App {
        App(Arc::new(Inner { drive, intake, hub, began_ms, ending, counters: Counters::default() }))
    }

    /// Listens as `config.toml` says, on `port` instead where one is given.
    pub async fn listen(&self, port: Option<u16>) -> Result<Bound, ListenError> {
        let gateway = &self.0.drive.config.gateway;
        let port = port.unwrap_or(u16::try_from(gateway.port).unwrap_or(0));
        Bound::bind(self.clone(), &gateway.bind, port).await
    }

    /// Makes the unix socket of the home; the caller holds the lock of its daemon.
    pub fn socket(&self) -> Result<Socket, ListenError> {
        Ok(Socket::bind(self.clone(), &self.0.drive.home.socket_path())?)
    }
}

/// What one connection may take.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// For a request's head, and again for its body.
    request: Duration,
    /// For a client that does not read what it asked for.
    stalled: Duration,
}

/// Whether only programs of this machine can reach an address.
fn is_local(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}
