//! Waiting and chance, so that tests have their own.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};

/// The future that [`Time::sleep`] returns.
pub type SleepFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What a retry needs to know of the world.
pub trait Time: fmt::Debug + Send + Sync {
    fn now(&self) -> Instant;

    /// Ends after `wait`; dropping it ends it at once.
    fn sleep(&self, wait: Duration) -> SleepFuture<'_>;

    /// 0.0 to 1.0, different each time.
    fn chance(&self) -> f64;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealTime;

impl Time for RealTime {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, wait: Duration) -> SleepFuture<'_> {
        Box::pin(tokio::time::sleep(wait))
    }

    fn chance(&self) -> f64 {
        let mut bytes = [0; 4];
        match SystemRandom::new().fill(&mut bytes) {
            Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
            // Nothing secret hangs on it.
            Err(_) => 0.5,
        }
    }
}
