//! Suspends runs, so that another process resumes them.

use tokio::sync::watch;

/// Ends runs after the active step. They are not cancelled: they continue when they are resumed. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pause(watch::Sender<bool>);

impl Pause {
    pub(crate) fn new() -> Pause {
        Pause::default()
    }

    pub(crate) fn pause(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when runs must end.
    pub(crate) async fn paused(&self) {
        // This value is the sender, so it outlives the wait.
        let _ = self.0.subscribe().wait_for(|paused| *paused).await;
    }
}
