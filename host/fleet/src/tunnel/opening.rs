//! Opens a connection: the standby sends a request, and the owner answers with a nonce.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::carry::carry;
use super::frame::{Frame, FrameEnds, FrameReceiver, FrameSender};
use super::wire::{Arrival, TunnelWire};
use super::{TunnelError, TunnelLimits};
use kiso_gateway::TunnelledConnection;

/// Maximum size in bytes of an encrypted request or answer; larger messages are ignored.
const MAX_LETTER: usize = 1024;

/// Length in bytes of a connection's name and of a nonce: both are unguessable and unique.
const RANDOM: usize = 16;

/// Size in bytes of the buffer between the tunnel and the gateway, in each direction.
pub(super) const TO_GATEWAY: usize = 32 << 10;

/// A standby's request to the owner.
#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    /// A new unique name for the connection.
    connection: String,
    peer: IpAddr,
}

/// The owner's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Taken { nonce: String },
    Full,
}

/// The subjects of a connection.
struct Subjects {
    up: String,
    down: String,
}

impl Subjects {
    fn new(wire: &dyn TunnelWire, owner: &str, connection: &str) -> Subjects {
        let subject = |way: &str| wire.subject(&format!("{owner}.{connection}.{way}"));
        Subjects { up: subject("up"), down: subject("down") }
    }

    /// Returns the context for which an answer is encrypted.
    fn answer(&self) -> String {
        format!("{} answer", self.down)
    }
}

/// Opens a connection to the owner, for a client at the address `peer`.
pub(super) async fn open(
    wire: &Arc<dyn TunnelWire>,
    limits: &TunnelLimits,
    owner: &str,
    peer: IpAddr,
) -> Result<FrameEnds, TunnelError> {
    let connection = random();
    let subjects = Subjects::new(wire.as_ref(), owner, &connection);
    let opened = async {
        let mut arrivals = wire.subscribe(subjects.down.clone()).await?;
        let door = wire.subject(owner);
        let ask = sealed(wire.as_ref(), &door, &Ask { connection, peer });
        wire.publish(door, Some(subjects.down.clone()), ask).await?;
        loop {
            let payload = match arrivals.next().await {
                Some(Arrival::Payload(payload)) => payload,
                Some(Arrival::NobodyThere) => return Err(TunnelError::NoOwner { owner: owner.to_owned() }),
                None => return Err(TunnelError::Nats("the connection to NATS was closed".to_owned())),
            };
            match letter(wire.as_ref(), &subjects.answer(), &payload) {
                Some(Answer::Taken { nonce }) => return Ok((nonce, arrivals)),
                Some(Answer::Full) => return Err(TunnelError::Full),
                None => {}
            }
        }
    };
    let opened = tokio::time::timeout(limits.opening, opened).await.map_err(|_| TunnelError::NoAnswer)?;
    let (nonce, arrivals) = opened?;
    let sender = FrameSender::new(wire.clone(), subjects.up, nonce.clone(), limits.silence);
    let receiver = FrameReceiver::new(wire.clone(), subjects.down, nonce, arrivals);
    Ok(FrameEnds { sender, receiver })
}

/// See [`super::accept`].
pub(super) async fn accept(
    wire: &Arc<dyn TunnelWire>,
    limits: &TunnelLimits,
    member: &str,
    connections: mpsc::Sender<TunnelledConnection>,
    mut ending: watch::Receiver<bool>,
) -> Result<(), TunnelError> {
    let door = wire.subject(member);
    let mut asks = wire.subscribe(door.clone()).await?;
    let mut tasks = JoinSet::new();
    let end = loop {
        let arrival = tokio::select! {
            _ = ending.wait_for(|ending| *ending) => break Ok(()),
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            arrival = asks.next() => arrival,
        };
        let payload = match arrival {
            Some(Arrival::Payload(payload)) => payload,
            Some(Arrival::NobodyThere) => continue,
            None => break Err(TunnelError::Nats("the connection to NATS was closed".to_owned())),
        };
        let Some(ask) = letter::<Ask>(wire.as_ref(), &door, &payload) else { continue };
        if !is_random(&ask.connection) {
            continue;
        }
        if tasks.len() >= limits.accepted {
            tracing::debug!("a connection is refused: {} are forwarded to this member", tasks.len());
            let subjects = Subjects::new(wire.as_ref(), member, &ask.connection);
            let answer = sealed(wire.as_ref(), &subjects.answer(), &Answer::Full);
            // Does not wait: a refused client must not delay the next one.
            let _ = wire.publish(subjects.down, None, answer).now_or_never();
            continue;
        }
        let (wire, limits, member) = (wire.clone(), *limits, member.to_owned());
        let connections = connections.clone();
        tasks.spawn(async move {
            if let Err(error) = take(&wire, &limits, &member, &ask, connections).await {
                tracing::debug!("a forwarded connection has ended: {error}");
            }
        });
    };
    drop((asks, connections));
    while tasks.join_next().await.is_some() {}
    end
}

/// Serves one connection, from the owner's answer to its end.
async fn take(
    wire: &Arc<dyn TunnelWire>,
    limits: &TunnelLimits,
    member: &str,
    ask: &Ask,
    connections: mpsc::Sender<TunnelledConnection>,
) -> Result<(), TunnelError> {
    let subjects = Subjects::new(wire.as_ref(), member, &ask.connection);
    let nonce = random();
    let opened = async {
        let arrivals = wire.subscribe(subjects.up.clone()).await?;
        let answer = sealed(wire.as_ref(), &subjects.answer(), &Answer::Taken { nonce: nonce.clone() });
        wire.publish(subjects.down.clone(), None, answer).await?;
        let mut receiver = FrameReceiver::new(wire.clone(), subjects.up.clone(), nonce.clone(), arrivals);
        // The requester knows the nonce, so this is not a replayed request.
        let first = receiver.next().await?;
        Ok::<_, TunnelError>((receiver, first))
    };
    let opened = tokio::time::timeout(limits.opening, opened).await.map_err(|_| TunnelError::NoAnswer)?;
    let (receiver, first) = opened?;
    let mut sender = FrameSender::new(wire.clone(), subjects.down, nonce, limits.silence);
    let (here, stream) = tokio::io::duplex(TO_GATEWAY);
    if connections.try_send(TunnelledConnection { stream, peer: ask.peer }).is_err() {
        sender.send(Frame::Reset).await?;
        return Err(TunnelError::Full);
    }
    // The gateway waits for connections as long as this sender lives.
    drop(connections);
    carry(here, FrameEnds { sender, receiver }, Some(first), limits).await
}

/// Returns a random unique text for use in a subject.
#[expect(clippy::expect_used, reason = "the system has random numbers")]
fn random() -> String {
    let mut bytes = [0; RANDOM];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    data_encoding::HEXLOWER.encode(&bytes)
}

fn is_random(text: &str) -> bool {
    text.len() == 2 * RANDOM && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn sealed(wire: &dyn TunnelWire, place: &str, letter: &impl Serialize) -> Bytes {
    Bytes::from(wire.seal().seal(place, &kiso_base::json::bytes(letter)))
}

/// Decrypts and parses a message; `None` if it was not encrypted for this place, or is not valid.
fn letter<T: for<'de> Deserialize<'de>>(wire: &dyn TunnelWire, place: &str, payload: &[u8]) -> Option<T> {
    let plain = Some(payload).filter(|payload| payload.len() <= MAX_LETTER)?;
    serde_json::from_slice(&wire.seal().open(place, plain)?).ok()
}
