//! Live output of runs for observers. It is optional, because everything that matters is in the store's feed.
//!
//! Pieces are sent to subscribers as they arrive. The output of a run's current step is kept until the step ends, so that a late
//! or slow subscriber starts with the whole output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Notify, broadcast};

use crate::drive::{Listener, Thought};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_graph::step::{Step, ToolResult};
use kiso_store::store::RunId;

/// Capacity for a slow subscriber. One that falls further behind misses pieces, and restarts with the whole output.
const KEPT: usize = 1_024;

/// Maximum size in bytes of a role's output in its step; the end is kept. A model's answer rarely has a tenth of it.
const MAX_TEXT: usize = 256 << 10;

/// Number of sessions with waiting subscribers above which unused entries are removed.
const WAITED_FOR: usize = 256;

/// An output that is not stored, because it is useless later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    pub session: SessionName,
    pub run: RunId,
    /// Number of the step's future event: when that event is sent, the output of the step is complete.
    pub seq: u32,
    #[serde(flatten)]
    pub what: LiveEvent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveEvent {
    /// A piece of a text as its model writes it.
    Token { role: &'static str, text: String },
    /// The whole text of this role since its step began, which replaces the pieces.
    Text {
        role: &'static str,
        text: String,
        /// Whether its beginning is left out, because it is too long.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// A piece of the output of a running command line.
    Output {
        /// Index among the concurrent calls of the action loop, from 0; 0 for a task of a plan.
        call: usize,
        /// "stdout" or "stderr".
        stream: &'static str,
        text: String,
        /// Whether it is the whole output since the step began, which replaces the pieces.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
    },
    /// One of the concurrent calls of the action loop has ended.
    CallEnded {
        call: usize,
        /// "ok", "partial", "error" or "blocked".
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        millis: u64,
    },
    /// A piece of the thoughts of this role's model before its answer.
    Reasoning {
        role: &'static str,
        text: String,
        /// Whether it is the whole thought since the step began, which replaces the pieces.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
    },
    /// The pieces of this role since its step began are void.
    Restart { role: &'static str },
    /// The run's current activity.
    Thought(Busy),
}

/// A run's current activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Busy {
    /// "analyzing", "routing", "planning", "briefing", "thinking", "reasoning", "working", "interrogating", "compressing",
    /// "reviewing" or "synthesizing".
    pub kind: &'static str,
    /// For a person.
    pub text: String,
    /// Milliseconds since 1970 (UTC).
    pub since_ms: i64,
}

/// Sends the output of runs to all subscribers. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    said: broadcast::Sender<Live>,
    /// The active runs. Locked while output is sent, so that a new subscriber misses nothing and receives nothing twice.
    runs: Mutex<HashMap<RunId, Now>>,
    /// Notified when a run of the session has started or ended.
    bells: Mutex<HashMap<SessionName, Weak<Notify>>>,
}

/// The current step of a run.
#[derive(Debug)]
struct Now {
    session: SessionName,
    seq: u32,
    busy: Option<Busy>,
    texts: Vec<(&'static str, Text)>,
    /// The thoughts of models in this step, by role.
    reasoning: Vec<(&'static str, Text)>,
    /// The output of the command lines of this step, by call and stream.
    outputs: Vec<((usize, &'static str), Text)>,
    /// The calls of this step that have ended.
    ended: Vec<LiveEvent>,
}

/// The end of a text.
#[derive(Debug, Default)]
struct Text {
    kept: String,
    cut: bool,
}

impl Default for Hub {
    fn default() -> Hub {
        Hub(Arc::new(Inner { said: broadcast::channel(KEPT).0, runs: Mutex::default(), bells: Mutex::default() }))
    }
}

impl Hub {
    /// Subscribes to the output from now on; also returns the output of the current steps so far. For one session, or for all.
    pub fn subscribe(&self, session: Option<&SessionName>) -> (broadcast::Receiver<Live>, Vec<Live>) {
        let runs = self.runs();
        let wanted = runs.iter().filter(|(_, now)| session.is_none_or(|session| *session == now.session));
        let so_far = wanted.flat_map(|(run, now)| now.so_far(run)).collect();
        (self.0.said.subscribe(), so_far)
    }

    /// Returns a run's current activity; `None` if the run is not active.
    pub fn busy(&self, run: &RunId) -> Option<Busy> {
        self.runs().get(run)?.busy.clone()
    }

    /// Returns a notification for each start or end of a run of this session, as long as it is held.
    pub fn bell(&self, session: &SessionName) -> Arc<Notify> {
        let mut bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.get(session).and_then(Weak::upgrade) {
            return bell;
        }
        if bells.len() >= WAITED_FOR {
            bells.retain(|_, bell| bell.strong_count() > 0);
        }
        let bell = Arc::new(Notify::new());
        bells.insert(session.clone(), Arc::downgrade(&bell));
        bell
    }

    fn ring(&self, session: &SessionName) {
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.get(session).and_then(Weak::upgrade) {
            bell.notify_waiters();
        }
    }

    /// Returns a listener for a run of this session.
    pub fn listener(&self, session: &SessionName) -> Teller {
        Teller { hub: self.clone(), session: session.clone(), run: None }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Now>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    fn so_far(&self, run: &RunId) -> Vec<Live> {
        let live = |what| Live { session: self.session.clone(), run: run.clone(), seq: self.seq, what };
        let busy = self.busy.iter().map(|busy| LiveEvent::Thought(busy.clone()));
        let texts = self.texts.iter().map(|(role, text)| text.to_event(role));
        let reasoning = self.reasoning.iter().map(|(role, text)| LiveEvent::Reasoning {
            role,
            text: text.kept[text.beginning()..].to_owned(),
            whole: true,
        });
        let outputs = self.outputs.iter().map(|((call, stream), text)| LiveEvent::Output {
            call: *call,
            stream,
            text: text.kept[text.beginning()..].to_owned(),
            whole: true,
        });
        busy.chain(reasoning).chain(texts).chain(outputs).chain(self.ended.iter().cloned()).map(live).collect()
    }

    fn keep(&mut self, what: &LiveEvent) {
        match what {
            LiveEvent::Token { role, text } => push(&mut self.texts, role, text),
            LiveEvent::Output { call, stream, text, .. } => push(&mut self.outputs, (*call, stream), text),
            LiveEvent::CallEnded { .. } => self.ended.push(what.clone()),
            LiveEvent::Reasoning { role, text, .. } => push(&mut self.reasoning, role, text),
            LiveEvent::Restart { role } => {
                self.texts.retain(|(known, _)| known != role);
                self.reasoning.retain(|(known, _)| known != role);
            }
            LiveEvent::Thought(busy) => self.busy = Some(busy.clone()),
            LiveEvent::Text { .. } => {}
        }
    }
}

/// Adds a piece to the text with this name.
fn push<N: PartialEq>(texts: &mut Vec<(N, Text)>, name: N, piece: &str) {
    let at = texts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        texts.push((name, Text::default()));
        texts.len() - 1
    });
    texts[at].1.push(piece);
}

impl Text {
    fn push(&mut self, piece: &str) {
        self.kept.push_str(piece);
        // Done rarely, because each time moves the kept text.
        if self.kept.len() > 2 * MAX_TEXT {
            self.kept.drain(..self.beginning());
            self.cut = true;
        }
    }

    /// Returns the beginning of the shown part.
    fn beginning(&self) -> usize {
        self.kept.ceil_char_boundary(self.kept.len().saturating_sub(MAX_TEXT))
    }

    fn to_event(&self, role: &'static str) -> LiveEvent {
        let from = self.beginning();
        LiveEvent::Text { role, text: self.kept[from..].to_owned(), cut: self.cut || from > 0 }
    }
}

/// Sends the output of one run.
#[derive(Debug)]
pub struct Teller {
    hub: Hub,
    session: SessionName,
    run: Option<RunId>,
}

impl Teller {
    fn tell(&self, what: LiveEvent) {
        let Some(run) = &self.run else { return };
        let mut runs = self.hub.runs();
        let Some(now) = runs.get_mut(run) else { return };
        now.keep(&what);
        let _ = self.hub.0.said.send(Live { session: self.session.clone(), run: run.clone(), seq: now.seq, what });
    }
}

impl Listener for Teller {
    fn begun(&mut self, run: &RunId) {
        self.run = Some(run.clone());
        let now = Now {
            session: self.session.clone(),
            seq: 0,
            busy: None,
            texts: Vec::new(),
            reasoning: Vec::new(),
            outputs: Vec::new(),
            ended: Vec::new(),
        };
        self.hub.runs().insert(run.clone(), now);
        self.hub.ring(&self.session);
    }

    fn step(&mut self, seq: u32, _: &Step) {
        let mut runs = self.hub.runs();
        if let Some(now) = self.run.as_ref().and_then(|run| runs.get_mut(run)) {
            now.seq = seq;
            now.texts.clear();
            now.reasoning.clear();
            now.outputs.clear();
            now.ended.clear();
        }
    }

    fn thought(&mut self, thought: &Thought) {
        self.tell(LiveEvent::Thought(Busy { kind: thought.kind(), text: thought.text(), since_ms: now_ms() }));
    }

    fn token(&mut self, role: Role, text: &str) {
        self.tell(LiveEvent::Token { role: role.name(), text: text.to_owned() });
    }

    fn reasoning(&mut self, role: Role, text: &str) {
        self.tell(LiveEvent::Reasoning { role: role.name(), text: text.to_owned(), whole: false });
    }

    fn output(&mut self, call: usize, stream: &'static str, text: &str) {
        self.tell(LiveEvent::Output { call, stream, text: text.to_owned(), whole: false });
    }

    fn call_ended(&mut self, call: usize, result: &ToolResult) {
        let (status, exit_code, millis) = (result.status.name(), result.exit_code, result.millis);
        self.tell(LiveEvent::CallEnded { call, status, exit_code, millis });
    }

    fn restart(&mut self, role: Role) {
        self.tell(LiveEvent::Restart { role: role.name() });
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(run) = &self.run {
            self.hub.runs().remove(run);
            self.hub.ring(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teller(hub: &Hub, session: &str) -> (Teller, RunId) {
        let run: RunId = "00000000010000".parse().unwrap();
        let mut teller = hub.listener(&SessionName::parse(session).unwrap());
        teller.begun(&run);
        teller.step(1, &Step::Ended);
        (teller, run)
    }

    fn texts(said: &[Live]) -> Vec<(&str, bool)> {
        let texts = said.iter().filter_map(|live| match &live.what {
            LiveEvent::Text { text, cut, .. } => Some((text.as_str(), *cut)),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn who_comes_later_begins_with_all_of_the_step() {
        let hub = Hub::default();
        let (mut teller, run) = teller(&hub, "main");
        teller.thought(&Thought::Synthesizing);
        teller.token(Role::Worker, "Half of ");
        let (mut early, so_far) = hub.subscribe(None);
        assert_eq!(texts(&so_far), [("Half of ", false)]);
        teller.token(Role::Worker, "it");
        teller.token(Role::Planner, "and");
        let (_, so_far) = hub.subscribe(Some(&SessionName::parse("main").unwrap()));
        assert_eq!(texts(&so_far), [("Half of it", false), ("and", false)]);
        assert!(so_far.iter().all(|live| live.seq == 1 && live.run == run));
        assert_eq!(early.try_recv().unwrap().what, LiveEvent::Token { role: "worker", text: "it".to_owned() });
        assert!(hub.subscribe(Some(&SessionName::parse("other").unwrap())).1.is_empty());
        // Void output is not sent, nor that of a completed step.
        teller.restart(Role::Worker);
        assert_eq!(texts(&hub.subscribe(None).1), [("and", false)]);
        teller.step(2, &Step::Ended);
        let (_, so_far) = hub.subscribe(None);
        assert!(
            matches!(&so_far[..], [Live { seq: 2, what: LiveEvent::Thought(busy), .. }] if busy.kind == "synthesizing")
        );
        assert_eq!(hub.busy(&run).unwrap().kind, "synthesizing");
        drop(teller);
        assert!(hub.subscribe(None).1.is_empty() && hub.busy(&run).is_none(), "nothing is left of a run that ended");
    }

    #[test]
    fn a_text_without_end_takes_no_memory_without_end() {
        let hub = Hub::default();
        let (mut teller, _) = teller(&hub, "main");
        for n in 0..200_000 {
            teller.token(Role::Worker, if n % 2 == 0 { "zwölf " } else { "ü" });
        }
        teller.token(Role::Worker, "the end");
        let (_, so_far) = hub.subscribe(None);
        let [(text, true)] = texts(&so_far)[..] else { panic!("it is cut") };
        assert!(text.len() <= MAX_TEXT && text.len() > MAX_TEXT - 4 && text.ends_with("the end"));
        assert!(hub.runs().values().all(|now| now.texts[0].1.kept.len() <= 2 * MAX_TEXT));
    }
}
