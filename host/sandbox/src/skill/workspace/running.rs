//! The operations on files that a guest of WASI 0.3 has begun.

use crate::engine::stream::{StreamStep, StreamSteps};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, RwLock, Semaphore};

/// Operations of a guest that run at once, at most; more wait. Each may take a thread of those that run all calls.
const AT_ONCE: usize = 2;

/// The operations of a guest that are under way. Clones share them.
#[derive(Debug, Clone)]
pub struct RunningOperations {
    changes: Arc<RwLock<()>>,
    places: Arc<Semaphore>,
}

impl Default for RunningOperations {
    fn default() -> Self {
        Self { changes: Arc::default(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// A place among the operations that run.
pub(super) type OperationPlace = OwnedSemaphorePermit;

/// A change that is under way. It runs to its end, also if the guest cancels it or ends.
pub(super) type RunningChange = OwnedRwLockReadGuard<()>;

impl RunningOperations {
    /// Waits for a place.
    pub(super) async fn place(self) -> wasmtime::Result<OperationPlace> {
        Ok(self.places.acquire_owned().await?)
    }

    /// Begins a change; `None` at the end of the call.
    pub(super) fn begin(&self) -> Option<RunningChange> {
        let running = self.changes.clone().try_read_owned().ok()?;
        (!self.places.is_closed()).then_some(running)
    }

    /// Ends the call: no operation begins any more, and the changes that are under way are waited for.
    pub async fn ended(&self) {
        self.places.close();
        drop(self.changes.write().await);
    }
}

/// Each read and write of a file's stream is an operation, too.
impl StreamSteps for RunningOperations {
    // The guest's store holds the read until it is dropped, so the end of the call cannot wait for it.
    fn begin_read(&self) -> BoxFuture<'static, wasmtime::Result<StreamStep>> {
        let operations = self.clone();
        Box::pin(async move { Ok(Box::new(operations.place().await?) as StreamStep) })
    }

    fn begin_write(&self) -> BoxFuture<'static, wasmtime::Result<StreamStep>> {
        let operations = self.clone();
        Box::pin(async move {
            let place = operations.clone().place().await?;
            let running = RunningOperations::begin(&operations);
            let running = running.ok_or_else(|| wasmtime::format_err!("the call has ended"))?;
            Ok(Box::new((place, running)) as StreamStep)
        })
    }
}
