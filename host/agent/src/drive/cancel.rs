//! Stopping a run from outside.

use kiso_store::store::{RunId, Store};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often a run looks whether another process wants it stopped. One row is read.
const POLL: Duration = Duration::from_millis(250);

/// Stops the runs that it is given to, which are of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cancel(watch::Sender<bool>);

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run, now or as soon as it begins, and each that begins after it.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// The run that was to be stopped has ended; what begins after it was not meant.
    pub fn forget(&self) {
        self.0.send_replace(false);
    }

    /// Whether [`Self::cancel`] was called. A run that another process had stopped does not count.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the run is to be stopped: by [`Self::cancel`], or by `kiso cancel` in another process. `asked_before`
    /// says whether somebody did so before ([`asked`]); then this returns at once.
    pub(super) async fn wanted(&self, asked_before: bool, store: &Store, run: &RunId) {
        if asked_before {
            return;
        }
        let asked = async {
            loop {
                sleep(POLL).await;
                if asked(store, run).await {
                    return;
                }
            }
        };
        let mut here = self.0.subscribe();
        tokio::select! {
            _ = here.wait_for(|cancelled| *cancelled) => {}
            () = asked => {}
        }
    }
}

/// Whether somebody wants the run stopped. A store that cannot be read ends the run at its next event; it does not cancel
/// it.
pub(super) async fn asked(store: &Store, run: &RunId) -> bool {
    let run = run.clone();
    store.peek(move |view| view.cancel_requested(&run)).await.unwrap_or(false)
}
