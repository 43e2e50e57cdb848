//! The threads that execute runs, separate from those that serve requests.
//!
//! A run reads foreign content, and some of that uses a processor for a while. Requests for status, for a run's events or to
//! stop a run must not wait for that.

use super::StartError;
use tokio::runtime::{Builder, Handle, Runtime};

/// Maximum number of threads that guests compute on, as many as one command has. One more thread is reserved for the next
/// request: guests that compute for long share all but one (`skill/fair.rs`).
const MAX_THREADS: usize = 4;

#[derive(Debug)]
pub(super) struct Workers(Option<Runtime>);

impl Workers {
    pub(super) fn start() -> Result<Workers, StartError> {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(MAX_THREADS);
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(threads + 1).thread_name("kiso-run").enable_all().build();
        Ok(Workers(Some(runtime.map_err(StartError::Threads)?)))
    }

    #[expect(clippy::expect_used, reason = "it is there until it is dropped")]
    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Does not wait: work on a thread may take long, and the process ends anyway.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
