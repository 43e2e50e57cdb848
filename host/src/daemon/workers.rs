//! The threads that runs are worked on, apart from those that serve.
//!
//! A run reads what others wrote, and some of that takes a processor for a while. Whoever asks how the daemon is, watches
//! a run or wants it to end must not wait for that.

use super::StartError;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that guests compute on at most, as many as a command has. There is one more beside them for whoever asks next: guests that
/// compute for long take turns on all but one (`skill/fair.rs`).
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
        // Without waiting: what a thread is at may take long, and the process ends anyway.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
