//! The threads that runs are worked on, apart from those that serve.
//!
//! A run reads what others wrote, and some of that takes a processor for a while. Whoever asks how the daemon is, watches
//! a run or wants it to end must not wait for that.

use super::StartError;
use tokio::runtime::{Builder, Handle, Runtime};

/// As many as a command has: more would only take turns.
const MAX_THREADS: usize = 4;

#[derive(Debug)]
pub(super) struct Workers(Option<Runtime>);

impl Workers {
    pub fn start() -> Result<Workers, StartError> {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(MAX_THREADS);
        // One more, because guests that compute for long leave one to others.
        let threads = threads + 1;
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(threads).thread_name("kiso-run").enable_all().build();
        Ok(Workers(Some(runtime.map_err(StartError::Threads)?)))
    }

    pub fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Without waiting: what a thread is at may take long, and the process ends anyway.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
