//! Who holds a connection, and who gives his up when there are no more.
//!
//! A connection without a request under way costs nothing to close: its client connects again when it has something to ask.
//! So when all places are taken, one of those makes room for the next that comes. The address that holds the most gives one
//! up, and of its connections the one that has waited longest: who opens thousands takes them from himself. Only where a
//! request is under way on every connection is the next one refused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of a listener. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Counts up with everything that happens: the order is all that matters of time.
    last: u64,
    by: HashMap<u64, Holder>,
    networks: HashMap<IpAddr, Network>,
}

#[derive(Debug)]
struct Holder {
    network: IpAddr,
    /// Requests under way.
    busy: u32,
    /// What had happened when there was none any more.
    since: u64,
    closed: Arc<Notify>,
}

/// What one address has.
#[derive(Debug, Default)]
struct Network {
    places: usize,
    /// Connections without a request under way, by what had happened when there was none any more.
    idle: BTreeMap<u64, u64>,
}

/// A place that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    places: ConnectionSlots,
    number: u64,
    closed: Arc<Notify>,
}

/// A request that is under way on a connection, until its answer has been sent.
#[derive(Debug)]
pub(crate) struct UnderWay {
    places: ConnectionSlots,
    number: u64,
}

impl ConnectionSlots {
    pub(crate) fn new(max: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Inner { max, held: Mutex::default() }))
    }

    /// A place for a connection from this address, if need be that of another one; `None` where every connection has a
    /// request under way.
    pub(crate) fn take(&self, address: IpAddr) -> Option<ConnectionSlot> {
        let mut held = self.held();
        if held.by.len() >= self.0.max {
            let number = held.idlest()?;
            // Gone at once; its task ends as soon as it is told.
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
    /// The connection that gives its place up: see the top of this file.
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
    /// Returns when the place was given to somebody else.
    pub(crate) async fn taken(&self) {
        self.closed.notified().await;
    }

    /// A request has begun.
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

/// What counts as one address: of IPv6, the network that a single customer is given.
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
        // That the closed one goes does not free a second place.
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
