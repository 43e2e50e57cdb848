//! Holds the lock of a session while clients call tools in it. Concurrent calls, and calls in quick succession, share one lock,
//! so that no run works in the workspace at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use kiso_base::home::{Home, HomeError, HomeLock, SessionName};

/// How long a lock is kept after the last call: the next call usually comes at once or much later.
const LINGER: Duration = Duration::from_millis(100);

/// How long a call waits for a session that somebody else works in, and the polling interval.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// The sessions in use by clients. Clones are cheap and share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds(Arc<Mutex<HashMap<SessionName, Held>>>);

#[derive(Debug)]
struct Held {
    _lock: HomeLock,
    calls: usize,
    /// Number of calls so far; shows whether another call has come since.
    count: u64,
}

/// One call's share of a lock.
#[derive(Debug)]
pub(super) struct Hold {
    holds: Holds,
    session: SessionName,
}

impl Holds {
    /// Takes the session's lock, or joins the current holders.
    pub(super) async fn take(&self, home: &Home, session: &SessionName) -> Result<Hold, HomeError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_take(home, session) {
                Err(HomeError::Busy { .. }) if Instant::now() < until => sleep(LOOK).await,
                taken => return taken,
            }
        }
    }

    fn try_take(&self, home: &Home, session: &SessionName) -> Result<Hold, HomeError> {
        let mut all = self.lock();
        match all.get_mut(session) {
            Some(held) => (held.calls, held.count) = (held.calls + 1, held.count + 1),
            None => {
                let held = Held { _lock: home.lock_session(session)?, calls: 1, count: 1 };
                all.insert(session.clone(), held);
            }
        }
        Ok(Hold { holds: self.clone(), session: session.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionName, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let (holds, session) = (self.holds.clone(), self.session.clone());
        let mut all = holds.lock();
        let Some(held) = all.get_mut(&session) else { return };
        held.calls -= 1;
        if held.calls > 0 {
            return;
        }
        let last = held.count;
        drop(all);
        let release = move || {
            let mut all = holds.lock();
            if all.get(&session).is_some_and(|held| held.calls == 0 && held.count == last) {
                all.remove(&session);
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                sleep(LINGER).await;
                release();
            })),
            Err(_) => release(),
        }
    }
}
