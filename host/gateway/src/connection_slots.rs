//! Limits the number of connections, and chooses the connection to close when a new one needs a place.
//!
//! Closing a connection without an active request costs nothing: its client reconnects when it needs to. So when all places are
//! taken, one of these connections is closed for the next client. It is the longest idle connection of the address with the most
//! connections, so a client that opens thousands closes its own. A new connection is refused only if every connection has an
//! active request.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of a listener. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Event counter; only the order of events matters, not the time.
    last: u64,
    by: HashMap<u64, Holder>,
    networks: HashMap<IpAddr, Network>,
}

#[derive(Debug)]
struct Holder {
    network: IpAddr,
    /// Number of active requests.
    busy: u32,
    /// Value of the counter when the last active request ended.
    since: u64,
    closed: Arc<Notify>,
}

/// Connections of one address.
#[derive(Debug, Default)]
struct Network {
    places: usize,
    /// Connections without active requests, by the counter's value when they became idle.
    idle: BTreeMap<u64, u64>,
}

/// A place for a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    places: ConnectionSlots,
    number: u64,
    closed: Arc<Notify>,
}

/// An active request of a connection, until its response has been sent.
#[derive(Debug)]
pub(crate) struct UnderWay {
    places: ConnectionSlots,
    number: u64,
}

impl ConnectionSlots {
    pub(crate) fn new(max: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Inner { max, held: Mutex::default() }))
    }

    /// Takes a place for a connection from this address; closes another connection if necessary. Returns `None` if every
    /// connection has an active request.
    pub(crate) fn take(&self, address: IpAddr) -> Option<ConnectionSlot> {
        let mut held = self.held();
        if held.by.len() >= self.0.max {
            let number = held.idlest()?;
            // The place is free at once; the task of the closed connection ends when it gets the notification.
            held.leave(number)?.closed.notify_one();
        }
        held.last += 1;
        let (number, closed, network) = (held.last, Arc::new(Notify::new()), network(address));
        held.by.insert(number, Holder { network, busy: 0, since: number, closed: closed.clone() });
        let of = held.networks.entry(network).or_default();
        of.places += 1;
        of.idle.insert(number, number);
        Some(ConnectionSlot { places: self.clone(), number, closed })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Returns the connection to close, as described at the top of this file.
    fn idlest(&self) -> Option<u64> {
        let able = self.networks.values().filter_map(|network| Some((network, network.idle.first_key_value()?)));
        let greediest = able.max_by_key(|(network, (since, _))| (network.places, Reverse(**since)));
        greediest.map(|(_, (_, number))| *number)
    }

    fn leave(&mut self, number: u64) -> Option<Holder> {
        let holder = self.by.remove(&number)?;
        let network = self.networks.get_mut(&holder.network)?;
        network.places -= 1;
        network.idle.remove(&holder.since);
        if network.places == 0 {
            self.networks.remove(&holder.network);
        }
        Some(holder)
    }

    fn begin(&mut self, number: u64) {
        let Some(holder) = self.by.get_mut(&number) else { return };
        holder.busy += 1;
        if let Some(network) = self.networks.get_mut(&holder.network) {
            network.idle.remove(&holder.since);
        }
    }

    fn end(&mut self, number: u64) {
        self.last += 1;
        let Some(holder) = self.by.get_mut(&number) else { return };
        holder.busy -= 1;
        if holder.busy == 0 {
            holder.since = self.last;
            if let Some(network) = self.networks.get_mut(&holder.network) {
                network.idle.insert(holder.since, number);
            }
        }
    }
}

impl ConnectionSlot {
    /// Completes when this connection must be closed for another one.
    pub(crate) async fn taken(&self) {
        self.closed.notified().await;
    }

    /// Marks the start of a request.
    pub(crate) fn under_way(&self) -> UnderWay {
        self.places.held().begin(self.number);
        UnderWay { places: self.places.clone(), number: self.number }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.held().leave(self.number);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.places.held().end(self.number);
    }
}

/// Returns the network that counts as one address. For IPv6, this is the network that a provider assigns to one customer.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_closed(place: &ConnectionSlot) -> bool {
        let mut taken = std::pin::pin!(place.taken());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        taken.as_mut().poll(&mut cx).is_ready()
    }

    #[test]
    fn who_waited_longest_makes_room_and_who_works_does_not() {
        let places = ConnectionSlots::new(3);
        let [one, two, three] = [1, 2, 3].map(|_| places.take(address("10.0.0.1")).unwrap());
        let work = one.under_way();
        let four = places.take(address("10.0.0.1")).unwrap();
        assert_eq!([&one, &two, &three, &four].map(is_closed), [false, true, false, false]);
        // The end of the closed connection does not free a second place.
        drop(two);
        let (busy, also) = (three.under_way(), four.under_way());
        assert!(places.take(address("10.0.0.2")).is_none(), "a request is under way everywhere");
        drop((busy, also, work));
        drop(one);
        assert!(places.take(address("10.0.0.2")).is_some());
    }

    #[test]
    fn the_greediest_address_makes_room_first() {
        let places = ConnectionSlots::new(4);
        let polite = places.take(address("10.0.0.9")).unwrap();
        let greedy: Vec<_> = (0..3).map(|_| places.take(address("10.0.0.1")).unwrap()).collect();
        let more: Vec<_> = (0..10).map(|_| places.take(address("10.0.0.1")).unwrap()).collect();
        assert!(!is_closed(&polite));
        assert!(greedy.iter().chain(&more[..7]).all(is_closed));
        assert!(!more[7..].iter().any(is_closed));
    }

    #[test]
    fn waiting_begins_anew_behind_each_request() {
        let places = ConnectionSlots::new(2);
        let (one, two) = (places.take(address("10.0.0.1")).unwrap(), places.take(address("10.0.0.1")).unwrap());
        let work = one.under_way();
        drop(work);
        let _three = places.take(address("10.0.0.1")).unwrap();
        assert!(is_closed(&two) && !is_closed(&one));
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let same = |a: &str, b: &str| network(address(a)) == network(address(b));
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
    }
}
