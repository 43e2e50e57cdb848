//! Cancelling a run from outside.

use kiso_store::store::{RunId, Store};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often a run checks whether another process wants to cancel it. This reads one row.
const POLL: Duration = Duration::from_millis(250);

/// Cancels the runs of this process that use it. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct Cancel(watch::Sender<bool>);

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the run, now or as soon as it starts, and each later run.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Resets the request after the run has ended, so that later runs are not affected.
    pub fn forget(&self) {
        self.0.send_replace(false);
    }

    /// Returns whether [`Self::cancel`] was called. A cancellation by another process does not count.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when the run is to be cancelled: by [`Self::cancel`], or by `kiso cancel` in another process. With
    /// `asked_before` ([`asked`]), completes at once.
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

/// Returns whether the run was asked to stop. A store that cannot be read does not cancel the run; the run ends at its next
/// event.
pub(super) async fn asked(store: &Store, run: &RunId) -> bool {
    let run = run.clone();
    store.peek(move |view| view.cancel_requested(&run)).await.unwrap_or(false)
}
