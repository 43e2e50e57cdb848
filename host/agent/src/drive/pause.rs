//! Leaving runs where they are, so that another process takes them up.

use tokio::sync::watch;

/// Lets the runs that it is given to end after the step that is under way. They are not cancelled: they go on when they
/// are resumed. Cheap to clone.
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

    /// Returns when they are to end.
    pub(crate) async fn paused(&self) {
        // The sender is this one, and outlives the wait.
        let _ = self.0.subscribe().wait_for(|paused| *paused).await;
    }
}
