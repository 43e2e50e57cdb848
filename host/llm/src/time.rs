//! Waiting and randomness, which tests replace.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};

/// The future that [`Time::sleep`] returns.
pub type SleepFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The environment of a retry.
pub trait Time: fmt::Debug + Send + Sync {
    fn now(&self) -> Instant;

    /// Ends after `wait`, or when it is dropped.
    fn sleep(&self, wait: Duration) -> SleepFuture<'_>;

    /// A random number from 0.0 to 1.0.
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
            // It needs no cryptographic quality.
            Err(_) => 0.5,
        }
    }
}
