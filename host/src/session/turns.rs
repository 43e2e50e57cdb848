//! Whose turn it is: which session's messages wait for more to come, which are ready, and which are being answered. Pure;
//! the time is given.

use std::collections::{BTreeSet, HashMap};

use crate::home::SessionName;
use crate::store::JobPriority;

/// A message that never stops being followed by another is answered after this many times the debounce.
const MAX_RESTARTS: i64 = 10;

/// The sessions that have something to do, and no others: a session at rest takes no memory here.
#[derive(Debug)]
pub struct Turns {
    debounce_ms: i64,
    max_runs: usize,
    running: usize,
    /// Grows with everything that is put in order.
    order: u64,
    sessions: HashMap<SessionName, State>,
    /// Sessions whose messages may be followed by more, by when that is over.
    pausing: BTreeSet<(i64, u64, SessionName)>,
    /// Sessions that may begin, in the order in which they do.
    ready: BTreeSet<(JobPriority, u64, SessionName)>,
}

#[derive(Debug)]
enum State {
    Pausing {
        due_ms: i64,
        order: u64,
        first_ms: i64,
        priority: JobPriority,
    },
    Ready,
    /// With what came meanwhile: when the first and the last did, and the first one's priority.
    Running {
        more: Option<(i64, i64, JobPriority)>,
    },
}

impl Turns {
    /// `debounce_ms` is how long a message of a person waits for another; at most `max_runs` sessions run at once.
    pub fn new(debounce_ms: u64, max_runs: usize) -> Turns {
        Turns {
            debounce_ms: debounce(debounce_ms),
            max_runs,
            running: 0,
            order: 0,
            sessions: HashMap::new(),
            pausing: BTreeSet::new(),
            ready: BTreeSet::new(),
        }
    }

    /// Goes by other limits. Who waits already does so as long as it was to; of runs that are too many none is ended.
    pub fn limit(&mut self, debounce_ms: u64, max_runs: usize) {
        self.debounce_ms = debounce(debounce_ms);
        self.max_runs = max_runs;
    }

    /// A message came. One of a person restarts the session's timer; any other is ready at once.
    pub fn arrived(&mut self, session: &SessionName, priority: JobPriority, now_ms: i64) {
        self.order += 1;
        let (order, mut first_ms, mut priority) = (self.order, now_ms, priority);
        match self.sessions.get_mut(session) {
            Some(State::Running { more }) => {
                let (first_ms, _, priority) = more.unwrap_or((now_ms, now_ms, priority));
                *more = Some((first_ms, now_ms, priority));
                return;
            }
            Some(State::Ready) => return,
            Some(State::Pausing { due_ms, order, first_ms: first, priority: had }) => {
                let place = (*due_ms, *order, session.clone());
                (first_ms, priority) = (*first, *had);
                self.pausing.remove(&place);
            }
            None => {}
        }
        self.wait(session, priority, first_ms, now_ms, order);
    }

    fn wait(&mut self, session: &SessionName, priority: JobPriority, first_ms: i64, last_ms: i64, order: u64) {
        let debounce = if priority == JobPriority::Interactive { self.debounce_ms } else { 0 };
        let due_ms = last_ms.saturating_add(debounce).min(first_ms.saturating_add(debounce * MAX_RESTARTS));
        self.pausing.insert((due_ms, order, session.clone()));
        self.sessions.insert(session.clone(), State::Pausing { due_ms, order, first_ms, priority });
    }

    /// The session has work that waits for nothing, such as a run that was cut off.
    pub fn ready(&mut self, session: &SessionName, priority: JobPriority) {
        if self.sessions.contains_key(session) {
            return;
        }
        self.order += 1;
        self.ready.insert((priority, self.order, session.clone()));
        self.sessions.insert(session.clone(), State::Ready);
    }

    /// Takes the sessions whose turn it is now, as many as may run.
    pub fn begin(&mut self, now_ms: i64) -> Vec<SessionName> {
        while self.pausing.first().is_some_and(|(due_ms, ..)| *due_ms <= now_ms) {
            let Some((_, order, session)) = self.pausing.pop_first() else { break };
            if let Some(State::Pausing { priority, .. }) = self.sessions.get(&session) {
                let priority = *priority;
                self.ready.insert((priority, order, session.clone()));
                self.sessions.insert(session, State::Ready);
            }
        }
        let mut begun = Vec::new();
        while self.running < self.max_runs
            && let Some((_, _, session)) = self.ready.pop_first()
        {
            self.running += 1;
            self.sessions.insert(session.clone(), State::Running { more: None });
            begun.push(session);
        }
        begun
    }

    /// The session's run has ended, or could not be begun; `again` says when it is to be tried again.
    pub fn ended(&mut self, session: &SessionName, again: Option<(i64, JobPriority)>) {
        let Some(State::Running { more }) = self.sessions.get(session) else { return };
        let more = *more;
        self.running -= 1;
        self.sessions.remove(session);
        self.order += 1;
        match (again, more) {
            (Some((due_ms, priority)), _) => {
                self.pausing.insert((due_ms, self.order, session.clone()));
                let state = State::Pausing { due_ms, order: self.order, first_ms: due_ms, priority };
                self.sessions.insert(session.clone(), state);
            }
            (None, Some((first_ms, last_ms, priority))) => self.wait(session, priority, first_ms, last_ms, self.order),
            (None, None) => {}
        }
    }

    /// When [`Turns::begin`] has something to do next, unless a run ends before.
    pub fn next_ms(&self) -> Option<i64> {
        self.pausing.first().map(|(due_ms, ..)| *due_ms)
    }

    /// Sessions that are being answered.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Sessions that are here at all.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

fn debounce(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX / MAX_RESTARTS / 2)
}

/// Named after the tests that seed 002 asks for.
#[cfg(test)]
mod debounce_test {
    use super::*;
    use JobPriority::{Interactive, Subagent};

    fn session(name: &str) -> SessionName {
        SessionName::parse(name).unwrap()
    }

    #[test]
    fn single_message_processed_after_debounce_ms() {
        let (mut turns, a) = (Turns::new(1_500, 10), session("a"));
        turns.arrived(&a, Interactive, 1_000);
        assert_eq!(turns.next_ms(), Some(2_500));
        assert_eq!(turns.begin(2_499), []);
        assert_eq!(turns.begin(2_500), vec![a.clone()]);
        turns.ended(&a, None);
        assert!(turns.is_empty(), "a session at rest is forgotten");
    }

    #[test]
    fn timer_restarts_on_new_message_before_timeout() {
        let (mut turns, a) = (Turns::new(1_500, 10), session("a"));
        turns.arrived(&a, Interactive, 0);
        turns.arrived(&a, Interactive, 1_499);
        assert_eq!(turns.begin(1_500), []);
        assert_eq!(turns.begin(2_999), [a]);
    }

    #[test]
    fn a_stream_of_messages_does_not_wait_for_ever() {
        let (mut turns, a) = (Turns::new(1_500, 10), session("a"));
        for n in 0..100 {
            turns.arrived(&a, Interactive, n * 1_000);
        }
        assert_eq!(turns.next_ms(), Some(15_000));
    }

    #[test]
    fn messages_from_different_chat_ids_processed_independently() {
        let (mut turns, a, b) = (Turns::new(1_500, 10), session("a"), session("b"));
        turns.arrived(&a, Interactive, 0);
        turns.arrived(&b, Interactive, 1_000);
        assert_eq!(turns.begin(1_500), [a]);
        assert_eq!(turns.begin(2_500), [b]);
    }

    #[test]
    fn one_run_at_a_time_and_what_comes_meanwhile_is_next() {
        let (mut turns, a) = (Turns::new(1_500, 10), session("a"));
        turns.arrived(&a, Interactive, 0);
        assert_eq!(turns.begin(1_500), vec![a.clone()]);
        turns.arrived(&a, Interactive, 2_000);
        assert_eq!((turns.begin(9_000), turns.next_ms()), (vec![], None));
        turns.ended(&a, None);
        assert_eq!(turns.begin(9_000), [a]);
    }

    #[test]
    fn at_most_so_many_run_and_persons_come_first() {
        let mut turns = Turns::new(0, 2);
        let names: Vec<_> = (0..5).map(|n| session(&format!("s{n}"))).collect();
        for name in &names[..4] {
            turns.arrived(name, Subagent, 0);
        }
        turns.arrived(&names[4], Interactive, 1);
        assert_eq!(turns.begin(1), [names[4].clone(), names[0].clone()]);
        assert_eq!(turns.begin(1), []);
        turns.ended(&names[4], None);
        assert_eq!(turns.begin(1), [names[1].clone()]);
        assert_eq!(turns.running(), 2);
    }

    #[test]
    fn other_limits_hold_for_what_comes() {
        let (mut turns, a, b) = (Turns::new(1_500, 1), session("a"), session("b"));
        turns.arrived(&a, Interactive, 0);
        turns.limit(100, 2);
        turns.arrived(&b, Interactive, 0);
        assert_eq!(turns.begin(100), vec![b.clone()]);
        assert_eq!(turns.begin(1_500), [a]);
        turns.limit(100, 1);
        turns.arrived(&session("c"), Interactive, 1_500);
        assert_eq!((turns.begin(9_000), turns.running()), (vec![], 2));
    }

    #[test]
    fn what_could_not_begin_is_tried_again() {
        let (mut turns, a) = (Turns::new(1_500, 10), session("a"));
        turns.ready(&a, Interactive);
        assert_eq!(turns.begin(0), vec![a.clone()]);
        turns.ended(&a, Some((5_000, Interactive)));
        assert_eq!((turns.begin(4_999), turns.begin(5_000)), (vec![], vec![a]));
    }
}
