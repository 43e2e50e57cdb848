//! Notifications for the queue, from the intake and from a reload of the configuration.

use tokio::sync::oneshot;

use kiso_base::config::{Config, Daemon};
use kiso_base::home::SessionName;
use kiso_store::store::JobPriority;

/// A notification for the queue.
#[derive(Debug)]
pub enum Wake {
    /// A message was accepted; `flush` if it need not wait for others.
    Message { session: SessionName, priority: JobPriority, flush: bool },
    /// Cancel the session's run; answers whether there was one.
    Cancel { session: SessionName, stopped: oneshot::Sender<bool> },
    /// These sessions have spawned work; most of them are already known.
    Found(Vec<(SessionName, i64, JobPriority)>),
    /// The configuration was reloaded.
    Limits(QueueLimits),
    /// Checks that the queue still works.
    Alive(oneshot::Sender<()>),
    /// The daemon is ending.
    Pause,
}

/// Settings of the queue in `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Milliseconds that a person's message waits for another.
    pub debounce_ms: u64,
    /// Maximum number of concurrent runs.
    pub max_jobs: usize,
}

impl QueueLimits {
    pub fn from_config(config: &Config) -> QueueLimits {
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

    /// By default, a person's message waits 1.5 s for another, and ten sessions have a turn.
    #[test]
    fn the_default_limits_hold() {
        let limits = QueueLimits::from_config(&Config::default());
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
