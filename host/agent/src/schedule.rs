//! Fires what the schedule says, when its time has come.
//!
//! ```text
//!  every second, and when this process changed something ──▶ look ──▶ fire what is due
//!                                                                       │ one transaction:
//!                                                                       ▼ receipt, message, job, next time
//!                                                              the queue takes it from there
//! ```
//!
//! Nothing is computed ahead and kept: each look asks the store what is due by the clock as it is now. So a clock that jumps, a
//! machine that slept, and `kiso schedule` in another process need nothing more.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::drive::RunExecutor;
use crate::tool::schedules::Schedules;
use kiso_base::clock::now_ms;

/// How often the store is asked, where nothing says that something changed. One row of an index is read.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after which it is seen to that the next times are right by the clock: a minute's.
const MEND: u32 = 60;

/// The schedule while it fires.
#[derive(Debug)]
pub struct Scheduler(JoinHandle<()>);

impl Scheduler {
    /// Begins, in the runtime of the caller. What was due while nobody looked comes at once, each schedule once.
    pub fn start(drive: &RunExecutor) -> Scheduler {
        let drive = drive.clone();
        let mut bell = drive.store.bell();
        Scheduler(tokio::spawn(async move {
            let mut tick = tokio::time::interval(LOOK);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut looks = 0;
            loop {
                let rung = tokio::select! {
                    _ = tick.tick() => false,
                    // The store lives as long as its handle in `drive`.
                    _ = bell.changed() => true,
                };
                let schedules = Schedules::new(&drive.newest_config(), &drive.store, &drive.vault);
                if !rung {
                    if looks % MEND == 0
                        && let Err(error) = schedules.mend(now_ms()).await
                    {
                        tracing::warn!("the schedule could not be checked: {error}");
                    }
                    looks = looks.wrapping_add(1);
                }
                if let Err(error) = schedules.fire_due(now_ms()).await {
                    tracing::warn!("the schedule could not be read; it is tried again: {error}");
                }
            }
        }))
    }

    /// Ends: fires nothing any more. A firing that is under way is committed, or it is as if it had not begun.
    pub async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}
