//! Interrupts guests that compute for long.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wasmtime::{Engine, EngineWeak};

/// The interval at which a spinning guest yields its thread. Ten a second would do for deadlines; a hundred lets ten spinning
/// guests run beside each other.
const TICK: Duration = Duration::from_millis(10);

/// Advances the engine's epoch while calls are running, and sleeps without waking otherwise.
#[derive(Debug, Default)]
pub(crate) struct Ticker {
    running: Mutex<Running>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Running {
    calls: usize,
    /// Whether the thread waits for a call. Waking it needlessly would cost as much.
    waits: bool,
    ended: bool,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> anyhow::Result<Arc<Self>> {
        let ticker = Arc::new(Self::default());
        let (engine, of_thread): (EngineWeak, _) = (engine.weak(), ticker.clone());
        std::thread::Builder::new().name("kiso-ticker".into()).spawn(move || of_thread.run(&engine))?;
        Ok(ticker)
    }

    fn run(&self, engine: &EngineWeak) {
        let mut running = self.lock();
        while !running.ended {
            if running.calls == 0 {
                running.waits = true;
                running = self.changed.wait(running).unwrap_or_else(PoisonError::into_inner);
                running.waits = false;
                continue;
            }
            drop(running);
            std::thread::sleep(TICK);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
            running = self.lock();
        }
    }

    /// Records that a call begins.
    pub(crate) fn enter(&self) {
        let mut running = self.lock();
        running.calls += 1;
        let waits = running.waits;
        drop(running);
        if waits {
            self.changed.notify_one();
        }
    }

    /// Records that a call has ended.
    pub(crate) fn leave(&self) {
        self.lock().calls -= 1;
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
