//! Decides whose turn it is: which sessions wait for more messages, which are ready, and which are being answered. Pure; the
//! caller passes the time.
//!
//! Persons come first. Subagents may use all turns except a quarter, so that a person finds a free one even if many subagents are
//! working. A subagent that was passed by [`AGING`] persons goes before the next one, so that it does not wait forever on a busy
//! day. That is counted in turns and not in time, as for the slots of models.

use std::collections::{BTreeSet, HashMap};

use kiso_base::home::SessionName;
use kiso_store::store::JobPriority;

/// If more messages keep arriving, the session is answered after this many times the debounce.
const MAX_RESTARTS: i64 = 10;

/// Number of persons that go before a ready subagent: the same as for calls of a model.
pub const AGING: u32 = kiso_llm::slots::AGING;

/// Share of all turns that is reserved for persons, as a divisor.
const RESERVED: usize = 4;

/// The sessions with work, and no others: an idle session uses no memory here.
#[derive(Debug)]
pub struct Turns {
    debounce_ms: i64,
    max_runs: usize,
    running: usize,
    /// Of these, the sessions in which no person waits.
    running_spawned: usize,
    /// Number of persons that started while a subagent could have, since a subagent last started.
    passed: u32,
    /// Increases with every entry, to keep the order.
    order: u64,
    sessions: HashMap<SessionName, State>,
    /// Sessions that wait for more messages, by the end of their wait.
    pausing: BTreeSet<(i64, u64, SessionName)>,
    /// Ready sessions in which a person waits, in order.
    persons: BTreeSet<QueueKey>,
    /// The same for sessions in which nobody waits.
    spawned: BTreeSet<QueueKey>,
}

type QueueKey = (JobPriority, u64, SessionName);

#[derive(Debug)]
enum State {
    Pausing {
        due_ms: i64,
        order: u64,
        first_ms: i64,
        priority: JobPriority,
    },
    Ready,
    /// A run works; `more` are the messages that arrived since it began.
    Running {
        priority: JobPriority,
        more: Option<Arrivals>,
    },
}

/// Messages that arrived during a run.
#[derive(Debug, Clone, Copy)]
struct Arrivals {
    first_ms: i64,
    last_ms: i64,
    /// The priority of the first message.
    priority: JobPriority,
    /// Whether to process them without waiting for more.
    is_flushed: bool,
}

impl Turns {
    /// `debounce_ms` is how long a message of a person waits for another; at most `max_runs` sessions run at once.
    pub fn new(debounce_ms: u64, max_runs: usize) -> Turns {
        Turns {
            debounce_ms: debounce(debounce_ms),
            max_runs,
            running: 0,
            running_spawned: 0,
            passed: 0,
            order: 0,
            sessions: HashMap::new(),
            pausing: BTreeSet::new(),
            persons: BTreeSet::new(),
            spawned: BTreeSet::new(),
        }
    }

    /// Changes the limits. Current waits keep their end, and no excess run is ended.
    pub fn limit(&mut self, debounce_ms: u64, max_runs: usize) {
        self.debounce_ms = debounce(debounce_ms);
        self.max_runs = max_runs;
    }

    /// Handles a new message. A person's message restarts the session's timer; any other is ready at once.
    pub fn arrived(&mut self, session: &SessionName, priority: JobPriority, now_ms: i64) {
        self.order += 1;
        let (order, mut first_ms, mut priority) = (self.order, now_ms, priority);
        match self.sessions.get_mut(session) {
            Some(State::Running { more, .. }) => {
                let first = Arrivals { first_ms: now_ms, last_ms: now_ms, priority, is_flushed: false };
                *more = Some(Arrivals { last_ms: now_ms, ..more.unwrap_or(first) });
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

    /// The person has finished: the messages so far are processed without waiting for more.
    pub fn flush(&mut self, session: &SessionName) {
        let (due_ms, order, priority) = match self.sessions.get_mut(session) {
            Some(State::Pausing { due_ms, order, priority, .. }) => (*due_ms, *order, *priority),
            Some(State::Running { more: Some(more), .. }) => return more.is_flushed = true,
            _ => return,
        };
        self.pausing.remove(&(due_ms, order, session.clone()));
        self.line_up((priority, order, session.clone()));
    }

    /// Handles waiting messages of which this process was not notified when they were stored.
    pub fn found(&mut self, session: &SessionName, priority: JobPriority, now_ms: i64) {
        match self.sessions.get(session) {
            Some(State::Running { more: None, .. }) => self.arrived(session, priority, now_ms),
            Some(_) => {}
            None => self.ready(session, priority),
        }
    }

    fn wait(&mut self, session: &SessionName, priority: JobPriority, first_ms: i64, last_ms: i64, order: u64) {
        let debounce = if priority == JobPriority::Interactive { self.debounce_ms } else { 0 };
        let due_ms = last_ms.saturating_add(debounce).min(first_ms.saturating_add(debounce * MAX_RESTARTS));
        self.pausing.insert((due_ms, order, session.clone()));
        self.sessions.insert(session.clone(), State::Pausing { due_ms, order, first_ms, priority });
    }

    /// Handles work that need not wait, such as an interrupted run.
    pub fn ready(&mut self, session: &SessionName, priority: JobPriority) {
        if self.sessions.contains_key(session) {
            return;
        }
        self.order += 1;
        self.line_up((priority, self.order, session.clone()));
    }

    fn line_up(&mut self, place: QueueKey) {
        self.sessions.insert(place.2.clone(), State::Ready);
        match place.0 {
            JobPriority::Interactive => self.persons.insert(place),
            JobPriority::Subagent | JobPriority::Background => self.spawned.insert(place),
        };
    }

    /// Returns the sessions whose turn it is now, as many as may run.
    pub fn begin(&mut self, now_ms: i64) -> Vec<SessionName> {
        while self.pausing.first().is_some_and(|(due_ms, ..)| *due_ms <= now_ms) {
            let Some((_, order, session)) = self.pausing.pop_first() else { break };
            if let Some(State::Pausing { priority, .. }) = self.sessions.get(&session) {
                self.line_up((*priority, order, session));
            }
        }
        let mut begun = Vec::new();
        while self.running < self.max_runs
            && let Some((priority, _, session)) = self.next()
        {
            self.running += 1;
            self.running_spawned += usize::from(priority != JobPriority::Interactive);
            self.sessions.insert(session.clone(), State::Running { priority, more: None });
            begun.push(session);
        }
        begun
    }

    /// Removes and returns the next session.
    fn next(&mut self) -> Option<QueueKey> {
        // If there is only one turn, a subagent may have it.
        let allowed = (self.max_runs - self.max_runs.div_ceil(RESERVED)).max(1);
        let may_spawned = self.running_spawned < allowed && !self.spawned.is_empty();
        if self.persons.is_empty() || may_spawned && self.passed >= AGING {
            if !may_spawned {
                return None;
            }
            self.passed = 0;
            return self.spawned.pop_first();
        }
        self.passed += u32::from(may_spawned);
        self.persons.pop_first()
    }

    /// Handles the end of a session's run, or a run that could not start; `again_ms` is the time for a retry.
    pub fn ended(&mut self, session: &SessionName, again_ms: Option<i64>) {
        let Some(State::Running { priority, more }) = self.sessions.get(session) else { return };
        let (priority, more) = (*priority, *more);
        self.running -= 1;
        self.running_spawned -= usize::from(priority != JobPriority::Interactive);
        self.sessions.remove(session);
        self.order += 1;
        match (again_ms, more) {
            (Some(due_ms), _) => {
                self.pausing.insert((due_ms, self.order, session.clone()));
                let state = State::Pausing { due_ms, order: self.order, first_ms: due_ms, priority };
                self.sessions.insert(session.clone(), state);
            }
            (None, Some(Arrivals { priority, is_flushed: true, .. })) => self.ready(session, priority),
            (None, Some(Arrivals { first_ms, last_ms, priority, .. })) => {
                self.wait(session, priority, first_ms, last_ms, self.order)
            }
            (None, None) => {}
        }
    }

    /// Returns the time at which [`Turns::begin`] has work next, unless a run ends before.
    pub fn next_ms(&self) -> Option<i64> {
        self.pausing.first().map(|(due_ms, ..)| *due_ms)
    }

    /// Returns the number of sessions that are being answered.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Returns the number of all sessions with work.
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
    fn who_has_finished_does_not_wait_and_nobody_else_is_hurried() {
        let (mut turns, a, b) = (Turns::new(1_500, 10), session("a"), session("b"));
        turns.flush(&a);
        // A message of another client, which may still send more.
        turns.arrived(&a, Interactive, 0);
        turns.arrived(&b, Interactive, 100);
        turns.arrived(&a, Interactive, 200);
        turns.flush(&a);
        assert_eq!((turns.begin(200), turns.next_ms()), (vec![a.clone()], Some(1_600)));
        // During the run: a finished message is processed together with the previous one, and the next run starts at once.
        turns.arrived(&a, Interactive, 300);
        turns.arrived(&a, Interactive, 400);
        turns.flush(&a);
        turns.arrived(&a, Interactive, 500);
        turns.ended(&a, None);
        assert_eq!(turns.begin(500), vec![a.clone()]);
        turns.arrived(&a, Interactive, 600);
        turns.ended(&a, None);
        assert_eq!((turns.begin(1_599), turns.begin(1_600)), (vec![], vec![b]));
        assert_eq!(turns.begin(2_100), [a]);
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
        turns.ended(&names[0], None);
        assert_eq!(turns.begin(1), [names[1].clone()]);
        assert_eq!(turns.running(), 2);
    }

    fn crowd(turns: &mut Turns, kind: &str, priority: JobPriority, count: usize) {
        (0..count).for_each(|n| turns.arrived(&session(&format!("{kind}{n}")), priority, 0));
    }

    #[test]
    fn subagents_leave_a_quarter_of_all_turns_to_persons() {
        let mut turns = Turns::new(0, 8);
        crowd(&mut turns, "sub", Subagent, 50);
        assert_eq!(turns.begin(0).len(), 6);
        turns.arrived(&session("person"), Interactive, 1);
        assert_eq!(turns.begin(1), [session("person")], "it finds a free turn");
        turns.ended(&session("person"), None);
        assert_eq!(turns.begin(2), [], "which no subagent gets");
        turns.ended(&session("sub0"), None);
        assert_eq!(turns.begin(2), [session("sub6")]);
        let mut single = Turns::new(0, 1);
        crowd(&mut single, "sub", Subagent, 2);
        assert_eq!(single.begin(0), [session("sub0")], "where there is one turn, a subagent may have it");
    }

    #[test]
    fn a_subagent_that_waits_is_not_passed_for_ever() {
        let mut turns = Turns::new(0, 1);
        turns.arrived(&session("first"), Interactive, 0);
        assert_eq!(turns.begin(0), [session("first")]);
        turns.arrived(&session("sub"), Subagent, 0);
        crowd(&mut turns, "person", Interactive, 20);
        let mut at = session("first");
        let mut order = Vec::new();
        while order.last().is_none_or(|last| *last != session("sub")) {
            turns.ended(&at, None);
            at = turns.begin(0).pop().expect("somebody is next");
            order.push(at.clone());
        }
        assert_eq!(order.len(), AGING as usize + 1, "{order:?}");
    }

    #[test]
    fn what_was_found_begins_and_is_not_begun_twice() {
        let (mut turns, a) = (Turns::new(1_500, 4), session("a"));
        turns.found(&a, Subagent, 0);
        turns.found(&a, Subagent, 0);
        assert_eq!(turns.begin(0), vec![a.clone()]);
        turns.found(&a, Subagent, 1);
        assert_eq!(turns.begin(1), []);
        turns.ended(&a, None);
        assert_eq!(turns.begin(1), vec![a.clone()], "what came meanwhile");
        turns.ended(&a, None);
        assert!(turns.is_empty());
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
        turns.ended(&a, Some(5_000));
        assert_eq!((turns.begin(4_999), turns.begin(5_000)), (vec![], vec![a]));
    }
}
