//! The transport of messages between members.

use std::fmt;

use async_nats::{Client, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::TunnelError;
use crate::bus::Bus;
use crate::seal::Seal;

/// Publishes and subscribes. A message arrives once or not at all, and messages of one sender arrive in order.
pub(super) trait TunnelWire: Send + Sync {
    /// Returns the seal that encrypts and decrypts messages.
    fn seal(&self) -> &Seal;

    /// Returns the subject `kiso.<fleet>.tunnel.REST`.
    fn subject(&self, rest: &str) -> String;

    /// Sends a message; returns when it is in transit, which may wait for earlier messages. Without subscribers, `answer_to` is
    /// notified.
    fn publish(
        &self,
        subject: String,
        answer_to: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), TunnelError>>;

    /// Returns the messages published from now on, until the stream is dropped. Receivers of messages that are published after
    /// this call can answer at once.
    fn subscribe(&self, subject: String) -> BoxFuture<'_, Result<BoxStream<'static, Arrival>, TunnelError>>;
}

/// A message for a subscription.
#[derive(Debug, Clone)]
pub(super) enum Arrival {
    /// The payload of a message; anybody may have sent it.
    Payload(Bytes),
    /// A message that was published with this subject for answers has no subscribers.
    NobodyThere,
}

/// NATS, without JetStream.
pub(super) struct NatsWire {
    /// For its seal and its subjects.
    pub bus: Bus,
    /// The connection for all messages.
    pub client: Client,
}

impl fmt::Debug for NatsWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsWire").field("bus", &self.bus).finish_non_exhaustive()
    }
}

impl TunnelWire for NatsWire {
    fn seal(&self) -> &Seal {
        self.bus.seal()
    }

    fn subject(&self, rest: &str) -> String {
        self.bus.subject(&format!("tunnel.{rest}"))
    }

    fn publish(
        &self,
        subject: String,
        answer_to: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), TunnelError>> {
        Box::pin(async move {
            let published = match answer_to {
                Some(answer_to) => self.client.publish_with_reply(subject, answer_to, payload).await,
                None => self.client.publish(subject, payload).await,
            };
            published.map_err(|error| TunnelError::Nats(error.to_string()))
        })
    }

    fn subscribe(&self, subject: String) -> BoxFuture<'_, Result<BoxStream<'static, Arrival>, TunnelError>> {
        Box::pin(async move {
            let messages = self.client.subscribe(subject).await;
            let messages = messages.map_err(|error| TunnelError::Nats(error.to_string()))?;
            let arrival = |message: async_nats::Message| match message.status {
                Some(StatusCode::NO_RESPONDERS) => Arrival::NobodyThere,
                _ => Arrival::Payload(message.payload),
            };
            Ok(messages.map(arrival).boxed())
        })
    }
}
