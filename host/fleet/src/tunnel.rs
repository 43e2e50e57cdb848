//! Forwards connections of clients from a standby to the owner of the home, over NATS: members need not reach each other
//! directly.
//!
//! ```text
//!  client ──TCP──▶ member that stands by                         owner ──duplex──▶ gateway
//!                   │ kiso.F.tunnel.OWNER            (asks)  ──▶ │
//!                   │ kiso.F.tunnel.OWNER.ID.down ◀── (nonce)    │
//!                   │ kiso.F.tunnel.OWNER.ID.up      (frames) ─▶ │
//!                   │ kiso.F.tunnel.OWNER.ID.down ◀── (frames)   │
//! ```
//!
//! These are ordinary NATS messages, which are delivered once or not at all; JetStream would store them without need. So frames
//! are numbered, and a missing one ends the connection instead of leaving a gap in its bytes. A repeated or foreign frame has no
//! effect: each frame is encrypted for its connection, direction and number. The owner's nonce, which is authenticated with every
//! later frame, prevents the replay of a whole connection; the gateway gets a connection only when the first of these frames has
//! arrived.
//!
//! A side sends at most [`carry::WINDOW`] bytes more than the other side has acknowledged as passed on. So no more than that
//! waits for a slow reader, on either side and in NATS.

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

/// The response to a client whose connection cannot be forwarded; the connection is expected to be HTTP.
const NO_OWNER: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How much, and for how long, to read from a refused client: closing at once could discard the response.
const FAREWELL: (u64, Duration) = (64 << 10, Duration::from_secs(1));

/// Maximum length in characters of a member's name, which is a part of subjects.
const MAX_NAME: usize = 32;

/// Limits of tunnelled connections.
///
/// - at most 256 forwarded connections, and 512 accepted ones
/// - a sign of life every 5 seconds; 15 seconds without one end a connection
/// - 5 seconds for the owner's answer
/// - 30 seconds for a reader that takes nothing
#[derive(Debug, Clone, Copy)]
pub struct TunnelLimits {
    /// Maximum number of connections that a member forwards. Each may hold a window of bytes for its client.
    pub forwarded: usize,
    /// Maximum number of connections that the owner accepts, independent of the gateway's limit.
    pub accepted: usize,
    /// Interval between two signs of life.
    pub beat: Duration,
    /// Time without a sign of life after which the other side counts as gone.
    pub silence: Duration,
    /// Time limit for the other side's answer while a connection is opened.
    pub opening: Duration,
    /// Time limit for a reader that does not take available bytes.
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

/// Why a tunnelled connection could not be opened, or broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The name cannot be a part of a subject.
    #[error("{name:?} is not a member's name: 1 to 32 of a-z, 0-9 and -")]
    BadName { name: String },
    /// Nobody accepts connections under this name.
    #[error("{owner} does not accept connections at the moment")]
    NoOwner { owner: String },
    /// The owner did not answer in time.
    #[error("no answer in time")]
    NoAnswer,
    /// The limit of this member or of the owner is reached.
    #[error("too many connections are forwarded at once")]
    Full,
    /// NATS lost a frame.
    #[error("a part of the connection was lost on the way")]
    Lost,
    /// The other side sent no sign of life.
    #[error("the other side is gone")]
    Silent,
    /// The reader on this side does not take available bytes.
    #[error("the reader takes nothing")]
    Stalled,
    /// The connection failed on the other side.
    #[error("the other side has given the connection up")]
    Reset,
    /// The other side uses another version, or violates the protocol.
    #[error("the other side does not keep to the protocol: {0}")]
    Protocol(&'static str),
    /// The connection to NATS failed.
    #[error("NATS: {0}")]
    Nats(String),
    /// The connection to the client failed.
    #[error("the client's connection: {0}")]
    Client(#[from] io::Error),
}

/// The tunnel's access to the fleet. Clones are cheap.
#[derive(Clone)]
pub struct TunnelBus {
    wire: Arc<dyn TunnelWire>,
    limits: TunnelLimits,
    /// Places for forwarded connections.
    places: Arc<Semaphore>,
}

impl fmt::Debug for TunnelBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelBus").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl TunnelBus {
    /// Creates a tunnel over a connection to NATS. With a separate connection, large responses do not delay the lease;
    /// `bus.client()` suffices in a fast network.
    pub fn new(bus: Bus, client: async_nats::Client, limits: TunnelLimits) -> TunnelBus {
        TunnelBus::over(Arc::new(NatsWire { bus, client }), limits)
    }

    fn over(wire: Arc<dyn TunnelWire>, limits: TunnelLimits) -> TunnelBus {
        TunnelBus { wire, limits, places: Arc::new(Semaphore::new(limits.forwarded)) }
    }
}

/// Forwards a client's connection to the owner, and returns when both directions have ended. `peer` is the client's address; the
/// owner treats the connection as if it came from there.
///
/// A client that cannot be forwarded gets a 503. If a connection breaks later, or this future is dropped, the client's connection
/// is reset, so that a part of a response does not look complete.
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

/// Accepts connections that other members forward to this one, the owner, until `ending` is true; then waits for the end of each
/// connection, which the gateway causes. Each connection is sent to `connections`, for
/// [`kiso_gateway::HttpListener::with_tunnel`]; if that is full, it is refused.
pub async fn accept(
    bus: &TunnelBus,
    member_name: &str,
    connections: mpsc::Sender<TunnelledConnection>,
    ending: watch::Receiver<bool>,
) -> Result<(), TunnelError> {
    opening::accept(&bus.wire, &bus.limits, self::member_name(member_name)?, connections, ending).await
}

/// Tells a client that there is no owner at the moment.
pub async fn refuse(mut stream: TcpStream) {
    let (bytes, patience) = FAREWELL;
    let told = async {
        stream.write_all(NO_OWNER).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(bytes), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(patience, told).await;
}

/// Checks that a name can be one token of a subject.
fn member_name(name: &str) -> Result<&str, TunnelError> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(name),
        false => Err(TunnelError::BadName { name: name.chars().take(MAX_NAME).collect() }),
    }
}
