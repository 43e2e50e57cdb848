//! Connections of clients from a member that stands by to the owner of the home, over NATS: no member needs to reach another.
//!
//! ```text
//!  client ──TCP──▶ member that stands by                         owner ──duplex──▶ gateway
//!                   │ kiso.F.tunnel.OWNER            (asks)  ──▶ │
//!                   │ kiso.F.tunnel.OWNER.ID.down ◀── (nonce)    │
//!                   │ kiso.F.tunnel.OWNER.ID.up      (frames) ─▶ │
//!                   │ kiso.F.tunnel.OWNER.ID.down ◀── (frames)   │
//! ```
//!
//! These are ordinary messages, which NATS delivers once or not at all: JetStream would keep what nobody needs any more. So frames
//! have numbers, and one that is missing ends the connection rather than to leave a gap in its bytes. One that comes twice, or
//! is no frame of this connection, does nothing: each is sealed for its connection, direction and number. That nobody can play a
//! whole connection again is what the owner's nonce is for, a part of what every later frame is sealed with; the gateway hears of
//! a connection when the first of those has come.
//!
//! A side sends at most [`carry::WINDOW`] bytes more than the other says it has passed on, so whatever a slow reader does, no more
//! than that waits for it on either side and in NATS.

mod carry;
mod frame;
mod opening;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};

use self::wire::{NatsWire, TunnelWire};
use super::bus::Bus;
use kiso_gateway::{TunnelledConnection, notice_death};

/// The answer to a client whose connection leads nowhere: what is asked over it is HTTP.
const NO_OWNER: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What is read, and for how long, of a client that was refused: closing at once would take the answer from it.
const FAREWELL: (u64, Duration) = (64 << 10, Duration::from_secs(1));

/// Characters of a member's name; it is a part of subjects.
const MAX_NAME: usize = 32;

/// What tunnelled connections may take.
///
/// - 256 connections at once that this member forwards, and 512 that it accepts as the owner
/// - a sign of life every 5 seconds; 15 seconds without one end a connection
/// - 5 seconds until the owner has answered
/// - 30 seconds for a reader that takes nothing
#[derive(Debug, Clone, Copy)]
pub struct TunnelLimits {
    /// Connections at once that a member forwards. Each may hold a window of bytes for its client.
    pub forwarded: usize,
    /// Connections at once that the owner accepts, besides what the gateway allows.
    pub accepted: usize,
    /// Between two signs of life.
    pub beat: Duration,
    /// Without a sign of life for so long, the other side is gone.
    pub silence: Duration,
    /// For the other side's answer while a connection is made.
    pub opening: Duration,
    /// For a reader that takes nothing of what is there for it.
    pub stalled: Duration,
}

impl Default for TunnelLimits {
    fn default() -> TunnelLimits {
        let seconds = Duration::from_secs;
        TunnelLimits {
            forwarded: 256,
            accepted: 512,
            beat: seconds(5),
            silence: seconds(15),
            opening: seconds(5),
            stalled: seconds(30),
        }
    }
}

/// Why a tunnelled connection was not made, or did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The name cannot be a part of a subject.
    #[error("{name:?} is not a member's name: 1 to 32 of a-z, 0-9 and -")]
    BadName { name: String },
    /// Nobody accepts connections under that name.
    #[error("{owner} does not accept connections at the moment")]
    NoOwner { owner: String },
    /// The owner has not answered in time.
    #[error("no answer in time")]
    NoAnswer,
    /// Here or at the owner.
    #[error("too many connections are forwarded at once")]
    Full,
    /// NATS has lost a frame.
    #[error("a part of the connection was lost on the way")]
    Lost,
    /// The other side gave no sign of life.
    #[error("the other side is gone")]
    Silent,
    /// Whoever reads on this side takes nothing any more.
    #[error("the reader takes nothing")]
    Stalled,
    /// It failed on the other side.
    #[error("the other side has given the connection up")]
    Reset,
    /// Another version, or a mistake of it.
    #[error("the other side does not keep to the protocol: {0}")]
    Protocol(&'static str),
    /// The connection to NATS.
    #[error("NATS: {0}")]
    Nats(String),
    /// The connection to the client.
    #[error("the client's connection: {0}")]
    Client(#[from] io::Error),
}

/// What the tunnel needs of the fleet. Cheap to clone.
#[derive(Clone)]
pub struct TunnelBus {
    wire: Arc<dyn TunnelWire>,
    limits: TunnelLimits,
    /// Of connections that are forwarded.
    places: Arc<Semaphore>,
}

impl fmt::Debug for TunnelBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelBus").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl TunnelBus {
    /// Over a connection to NATS. With one of its own, large answers do not hold up what the lease depends on; `bus.client()` is
    /// good enough where the network is fast.
    pub fn new(bus: Bus, client: async_nats::Client, limits: TunnelLimits) -> TunnelBus {
        TunnelBus::over(Arc::new(NatsWire { bus, client }), limits)
    }

    fn over(wire: Arc<dyn TunnelWire>, limits: TunnelLimits) -> TunnelBus {
        TunnelBus { wire, limits, places: Arc::new(Semaphore::new(limits.forwarded)) }
    }
}

/// Forwards a client's connection to the owner, and returns when both directions have come to their end. `peer` is where the client
/// is; the owner treats it as if it had connected there.
///
/// A client that cannot be forwarded is told 503. Where a connection breaks later, or this future is dropped, the client's is reset:
/// a part of an answer must not look like the whole of it.
pub async fn forward(mut stream: TcpStream, peer: IpAddr, bus: &TunnelBus, owner: &str) -> Result<(), TunnelError> {
    let _ = stream.set_nodelay(true);
    notice_death(&stream, bus.limits.stalled);
    let opened = async {
        let place = bus.places.try_acquire().map_err(|_| TunnelError::Full)?;
        Ok::<_, TunnelError>((opening::open(&bus.wire, &bus.limits, member_name(owner)?, peer).await?, place))
    };
    let (ends, _place) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            refuse(stream).await;
            return Err(error);
        }
    };
    let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    carry::carry(&mut stream, ends, None, &bus.limits).await?;
    let _ = rustix::net::sockopt::set_socket_linger(&stream, None);
    Ok(())
}

/// Accepts what other members forward to this one, the owner, until `ending` is true; then lets each connection come to its end, which
/// the gateway sees to. Each goes to `connections`, for [`kiso_gateway::HttpListener::with_tunnel`]; where that is full, it is
/// refused.
pub async fn accept(
    bus: &TunnelBus,
    member_name: &str,
    connections: mpsc::Sender<TunnelledConnection>,
    ending: watch::Receiver<bool>,
) -> Result<(), TunnelError> {
    opening::accept(&bus.wire, &bus.limits, self::member_name(member_name)?, connections, ending).await
}

/// Tells a client that nobody serves it at the moment.
pub async fn refuse(mut stream: TcpStream) {
    let (bytes, patience) = FAREWELL;
    let told = async {
        stream.write_all(NO_OWNER).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(bytes), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(patience, told).await;
}

/// A name that can be a part of a subject, and of no other than its own.
fn member_name(name: &str) -> Result<&str, TunnelError> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(name),
        false => Err(TunnelError::BadName { name: name.chars().take(MAX_NAME).collect() }),
    }
}
