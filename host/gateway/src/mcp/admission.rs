//! Limits concurrent calls in the sandbox, so that calls that never end do not block all others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places of clients in the sandbox. A quarter of the sandbox's places is reserved for runs, and one tool gets at most half of
/// the rest: ten calls of a tool that never ends leave room for every other tool.
#[derive(Debug)]
pub(super) struct SandboxQueue {
    all: Arc<Semaphore>,
    of_one: usize,
    by_tool: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place, which is returned when this is dropped.
#[derive(Debug)]
pub(super) struct SandboxPermit {
    _of_tool: (OwnedSemaphorePermit, Arc<Semaphore>),
    _of_all: OwnedSemaphorePermit,
}

impl SandboxQueue {
    /// `max_calls` is the number of concurrent calls in the sandbox.
    pub(super) fn new(max_calls: u64) -> SandboxQueue {
        let calls = usize::try_from(max_calls).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let all = Arc::new(Semaphore::new((calls - calls / 4).max(1)));
        SandboxQueue { all, of_one: (calls / 2).max(1), by_tool: Mutex::default() }
    }

    /// Waits for a place for a call of this tool. Calls of the same tool queue in order.
    pub(super) async fn enter(&self, tool: &str) -> SandboxPermit {
        let of_tool = self.of_tool(tool);
        let own = kiso_base::compute::permit(&of_tool).await;
        let all = kiso_base::compute::permit(&self.all).await;
        SandboxPermit { _of_tool: (own, of_tool), _of_all: all }
    }

    fn of_tool(&self, tool: &str) -> Arc<Semaphore> {
        let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_tool.get(tool).and_then(Weak::upgrade) {
            return known;
        }
        by_tool.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.of_one));
        by_tool.insert(tool.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_tool_that_never_ends_leaves_room_for_others() {
        let admission = SandboxQueue::new(8);
        let spinning: Vec<_> = (0..10).map_while(|_| admission.enter("spin").now_or_never()).collect();
        assert_eq!(spinning.len(), 4);
        let others: Vec<_> = (0..10).map_while(|_| admission.enter("echo").now_or_never()).collect();
        assert_eq!(others.len(), 2, "a quarter is left to runs");
        drop(spinning);
        assert!(admission.enter("spin").now_or_never().is_some());
        assert!(SandboxQueue::new(1).enter("any").now_or_never().is_some());
    }
}
