//! What wakes the queue, from whoever takes messages in and whoever reads the configuration.

use tokio::sync::oneshot;

use kiso_base::config::{Config, Daemon};
use kiso_base::home::SessionName;
use kiso_store::store::JobPriority;

/// What wakes the queue.
#[derive(Debug)]
pub enum Wake {
    /// A message was admitted; `flush` if it waits for no other.
    Message { session: SessionName, priority: JobPriority, flush: bool },
    /// The session's run is to be stopped; answers with the run that is.
    Cancel { session: SessionName, stopped: oneshot::Sender<bool> },
    /// These sessions have work that was spawned; most of them are known.
    Found(Vec<(SessionName, i64, JobPriority)>),
    /// The configuration was read anew.
    Limits(QueueLimits),
    /// Somebody wants to know whether the queue still works.
    Alive(oneshot::Sender<()>),
    /// The daemon is ending.
    Pause,
}

/// What `config.toml` says about the queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Milliseconds that a message of a person waits for another.
    pub debounce_ms: u64,
    /// Runs at once.
    pub max_jobs: usize,
}

impl QueueLimits {
    pub fn of(config: &Config) -> QueueLimits {
        let Daemon { debounce_ms, max_jobs, .. } = config.daemon;
        QueueLimits { debounce_ms, max_jobs: usize::try_from(max_jobs).unwrap_or(usize::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::QueueLimits;
    use crate::session::turns::Turns;
    use kiso_base::config::Config;
    use kiso_base::home::SessionName;
    use kiso_store::store::JobPriority;

    /// Without a word in the configuration, a person's message waits 1.5 s for another, and ten sessions have a turn.
    #[test]
    fn the_default_limits_hold() {
        let limits = QueueLimits::of(&Config::default());
        let mut turns = Turns::new(limits.debounce_ms, limits.max_jobs);
        let sessions: Vec<_> = (0..11).map(|n| SessionName::parse(&format!("s{n}")).unwrap()).collect();
        for session in &sessions {
            turns.arrived(session, JobPriority::Interactive, 0);
        }
        turns.arrived(&sessions[10], JobPriority::Interactive, 1_000);
        assert_eq!(turns.begin(1_499), []);
        assert_eq!(turns.begin(1_500), sessions[..10]);
        assert_eq!(turns.begin(2_500), [], "ten are at work");
        turns.ended(&sessions[0], None);
        assert_eq!(turns.begin(2_500), sessions[10..]);
    }
}
