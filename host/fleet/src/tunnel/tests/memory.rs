//! Members that are connected through the memory of the test.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::seal::Seal;
use crate::tunnel::wire::{Arrival, TunnelWire};
use crate::tunnel::{TunnelBus, TunnelError, TunnelLimits};
use kiso_base::home::Home;

/// The fate of a message.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
}

/// Maximum number of messages in a test; with the automatic clock, a task that waits in vain would otherwise run forever.
const MAX_PUBLISHED: usize = 100_000;

type Judge = Box<dyn FnMut(&str, usize) -> Fate + Send>;

/// The simulated network. Clones are cheap.
#[derive(Clone)]
pub(super) struct Net(Arc<Mutex<State>>);

struct State {
    subscribers: HashMap<String, Vec<UnboundedSender<(Instant, Arrival)>>>,
    latency: Duration,
    judge: Judge,
    counts: HashMap<String, usize>,
    /// All published messages, in order.
    published: Vec<(String, Bytes)>,
    /// Number of bytes in transit, now and at most.
    under_way: usize,
    most: usize,
}

/// A member's connection to the network.
struct MemoryWire {
    net: Net,
    seal: Seal,
}

/// Returns two seals with the same new key.
pub(super) fn seal() -> (Seal, Seal) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("home")).unwrap();
    (Seal::derive(home.key(), "f"), Seal::derive(home.key(), "f"))
}

impl Net {
    pub(super) fn new() -> Net {
        Net(Arc::new(Mutex::new(State {
            subscribers: HashMap::new(),
            latency: Duration::ZERO,
            judge: Box::new(|_, _| Fate::Arrives),
            counts: HashMap::new(),
            published: Vec::new(),
            under_way: 0,
            most: 0,
        })))
    }

    pub(super) fn bus(&self, seal: Seal, limits: TunnelLimits) -> TunnelBus {
        TunnelBus::over(Arc::new(MemoryWire { net: self.clone(), seal }), limits)
    }

    /// Sets the latency of messages from now on.
    pub(super) fn delay(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Sets the function that determines the fate of messages from now on, by subject and by the number of earlier messages with
    /// this subject.
    pub(super) fn judge(&self, judge: impl FnMut(&str, usize) -> Fate + Send + 'static) {
        self.state().judge = Box::new(judge);
    }

    pub(super) fn published(&self) -> Vec<(String, Bytes)> {
        self.state().published.clone()
    }

    /// Returns the maximum number of bytes that were in transit.
    pub(super) fn most(&self) -> usize {
        self.state().most
    }

    /// Publishes a message, as anybody with access to NATS can; returns whether there is a subscriber.
    pub(super) fn inject(&self, subject: &str, payload: Bytes) -> bool {
        self.state().send(subject, Arrival::Payload(payload))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn send(&mut self, subject: &str, arrival: Arrival) -> bool {
        let due = Instant::now() + self.latency;
        let Some(subscribers) = self.subscribers.get_mut(subject) else { return false };
        let length = length(&arrival);
        subscribers.retain(|subscriber| subscriber.send((due, arrival.clone())).is_ok());
        self.under_way += length * subscribers.len();
        self.most = self.most.max(self.under_way);
        !subscribers.is_empty()
    }
}

fn length(arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Payload(payload) => payload.len(),
        Arrival::NobodyThere => 0,
    }
}

impl TunnelWire for MemoryWire {
    fn seal(&self) -> &Seal {
        &self.seal
    }

    fn subject(&self, rest: &str) -> String {
        format!("kiso.f.tunnel.{rest}")
    }

    fn publish(
        &self,
        subject: String,
        answer_to: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), TunnelError>> {
        let mut state = self.net.state();
        if state.published.len() >= MAX_PUBLISHED {
            return Box::pin(async { Err(TunnelError::Nats("the test goes on for ever".to_owned())) });
        }
        let counted = state.counts.entry(subject.clone()).or_default();
        let before = std::mem::replace(counted, *counted + 1);
        state.published.push((subject.clone(), payload.clone()));
        let times = match (state.judge)(&subject, before) {
            Fate::Arrives => 1,
            Fate::IsLost => 0,
            Fate::ArrivesTwice => 2,
        };
        for _ in 0..times {
            let heard = state.send(&subject, Arrival::Payload(payload.clone()));
            if let (false, Some(answer_to)) = (heard, &answer_to) {
                state.send(answer_to, Arrival::NobodyThere);
            }
        }
        drop(state);
        // Lets other tasks run after publishing.
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    fn subscribe(&self, subject: String) -> BoxFuture<'_, Result<BoxStream<'static, Arrival>, TunnelError>> {
        let (sender, receiver) = unbounded_channel();
        self.net.state().subscribers.entry(subject).or_default().push(sender);
        let net = self.net.clone();
        let arrivals = futures_util::stream::unfold((receiver, net), |(mut receiver, net)| async move {
            let (due, arrival) = receiver.recv().await?;
            tokio::time::sleep_until(due).await;
            net.state().under_way -= length(&arrival);
            Some((arrival, (receiver, net)))
        });
        Box::pin(async { Ok(arrivals.boxed()) })
    }
}
