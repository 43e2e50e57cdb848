//! What runs say while they work, for those who watch. Nobody has to: what matters is in the store's feed.

use serde::Serialize;
use tokio::sync::broadcast;

use crate::drive::{Listener, Thought};
use crate::home::SessionName;
use crate::llm::Role;
use crate::store::RunId;

/// What is kept for a watcher that is slow. One that falls behind further misses pieces, and is told so.
const KEPT: usize = 1_024;

/// Something that is not kept: it is worth nothing later.
#[derive(Debug, Clone, Serialize)]
pub struct Live {
    pub session: SessionName,
    pub run: RunId,
    #[serde(flatten)]
    pub what: Said,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Said {
    /// A piece of a text as its model writes it.
    Token { role: &'static str, text: String },
    /// The pieces of this role since its step began are void.
    Restart { role: &'static str },
    /// What the run is busy with.
    Thought { kind: &'static str, text: String },
}

/// Gives what runs say to everybody who listens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(broadcast::Sender<Live>);

impl Default for Hub {
    fn default() -> Hub {
        Hub(broadcast::channel(KEPT).0)
    }
}

impl Hub {
    pub fn subscribe(&self) -> broadcast::Receiver<Live> {
        self.0.subscribe()
    }

    /// Listens to a run of this session.
    pub fn listener(&self, session: &SessionName) -> Teller {
        Teller { hub: self.clone(), session: session.clone(), run: None }
    }
}

/// Passes on what one run says.
#[derive(Debug)]
pub struct Teller {
    hub: Hub,
    session: SessionName,
    run: Option<RunId>,
}

impl Teller {
    fn tell(&self, what: impl FnOnce() -> Said) {
        // Most of the time nobody watches.
        if let Some(run) = &self.run
            && self.hub.0.receiver_count() > 0
        {
            let _ = self.hub.0.send(Live { session: self.session.clone(), run: run.clone(), what: what() });
        }
    }
}

impl Listener for Teller {
    fn begun(&mut self, run: &RunId) {
        self.run = Some(run.clone());
    }

    fn thought(&mut self, thought: &Thought) {
        self.tell(|| Said::Thought { kind: thought.kind(), text: thought.text() });
    }

    fn token(&mut self, role: Role, text: &str) {
        self.tell(|| Said::Token { role: role.name(), text: text.to_owned() });
    }

    fn restart(&mut self, role: Role) {
        self.tell(|| Said::Restart { role: role.name() });
    }
}
