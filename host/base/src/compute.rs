//! Processor-heavy work, on threads of its own so that it never delays threads that answer others, and with a deadline.
//!
//! A computation cannot be stopped from outside. Its caller limits its input; the deadline is for cases that the limit did not
//! foresee. A computation that exceeds its deadline keeps its slot, so that several of them cannot take all processors.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// How long a computation may take, including the wait for a processor. On the slowest board that kiso runs on, input within all
/// limits takes a tenth of it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Texts of at most this many bytes are always processed quickly.
const SHORT: usize = 4 << 10;

/// A computation that did not finish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Overdue {
    #[error("{what} took longer than {} s, and was stopped", .limit.as_secs_f32())]
    Deadline { what: &'static str, limit: Duration },
    #[error("{what} was interrupted because kiso is shutting down")]
    Ending { what: &'static str },
}

/// Runs `work` outside of the runtime's threads. `what` names it in the error: "reading the workspace".
pub async fn run<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Overdue> {
    run_within(DEADLINE, what, work).await
}

/// [`run`] for work on a text of `bytes` bytes. A short text is processed on the calling thread, because a handover takes longer.
pub async fn run_on<T: Send + 'static>(
    bytes: usize,
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Overdue> {
    match bytes <= SHORT {
        true => Ok(work()),
        false => run(what, work).await,
    }
}

/// [`run`] with another deadline.
pub async fn run_within<T: Send + 'static>(
    limit: Duration,
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Overdue> {
    let computed = async {
        let slot = permit(&slots()).await;
        blocking(move || {
            let _slot = slot;
            work()
        })
        .await
    };
    match timeout(limit, computed).await {
        Ok(done) => done.map_err(|error| ended(what, error)),
        Err(_) => Err(Overdue::Deadline { what, limit }),
    }
}

/// Returns a permit of a semaphore that is never closed; kiso never closes one.
#[expect(clippy::expect_used, reason = "no semaphore of kiso's is closed")]
pub async fn permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    semaphore.clone().acquire_owned().await.expect("the semaphore is never closed")
}

/// `spawn_blocking` for functions that are called with many types of closures: the runtime's code is compiled once instead of
/// once per type.
#[expect(clippy::expect_used, reason = "work that ended has answered")]
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let (answer, mut answered) = oneshot::channel();
    // The caller may have gone.
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(answer.send(work())));
    spawn_blocking(work).await?;
    Ok(answered.try_recv().expect("work that ended has answered"))
}

/// A panic continues in the calling thread, as if there had been no other.
fn ended(what: &'static str, error: JoinError) -> Overdue {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Overdue::Ending { what },
    }
}

/// One slot per processor, and at least two: a slow computation must not block all others.
fn slots() -> Arc<Semaphore> {
    static SLOTS: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
    SLOTS.get_or_init(|| Arc::new(Semaphore::new(count()))).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn what_does_not_end_is_given_up_and_holds_nobody_up() {
        let (stop, stopped) = mpsc::channel::<()>();
        let endless = run_within(Duration::from_millis(20), "counting", move || {
            let _ = stopped.recv();
        });
        // One thread serves both: it is free while the other computes.
        let (overdue, done) = tokio::join!(endless, run("adding", || 1 + 1));
        assert_eq!(done, Ok(2));
        assert_eq!(overdue.unwrap_err().to_string(), "counting took longer than 0.02 s, and was stopped");
        drop(stop);
    }

    #[tokio::test]
    #[should_panic(expected = "as it would have been")]
    async fn a_panic_is_passed_on() {
        let _ = run("failing", || panic!("as it would have been")).await;
    }
}
