//! Fires schedules when their time has come.
//!
//! ```text
//!  every second, and when this process changed something ──▶ look ──▶ fire what is due
//!                                                                       │ one transaction:
//!                                                                       ▼ receipt, message, job, next time
//!                                                              the queue takes it from there
//! ```
//!
//! Nothing is computed in advance: each check asks the store for everything that is due at the current time. So clock changes,
//! sleep, and `kiso schedule` in another process need no special handling.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::drive::RunExecutor;
use crate::tool::schedules::Schedules;
use kiso_base::clock::now_ms;

/// How often to check the store without a notification. This reads one row of an index.
const LOOK: Duration = Duration::from_secs(1);

/// Number of checks after which the next times are verified: one minute.
const MEND: u32 = 60;

/// The running scheduler.
#[derive(Debug)]
pub struct Scheduler(JoinHandle<()>);

impl Scheduler {
    /// Starts the scheduler in the caller's runtime. Everything that became due in the meantime fires at once, each schedule
    /// once.
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

    /// Stops firing. An active firing is either committed, or has no effect.
    pub async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}
