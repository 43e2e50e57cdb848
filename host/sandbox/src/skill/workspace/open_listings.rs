//! The number of directory listings that a guest may hold open at once.

use crate::engine::limits::MAX_LISTINGS;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of directory listings that a guest holds open. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Listings(Arc<AtomicUsize>);

/// A place among them.
#[derive(Debug)]
pub(super) struct ListingSlot(Listings);

impl Listings {
    /// A place for one more listing; `None` if the guest holds as many as it may.
    pub(super) fn open(&self) -> Option<ListingSlot> {
        let one_more = |open: usize| (open < MAX_LISTINGS).then_some(open + 1);
        self.0.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(ListingSlot(self.clone()))
    }
}

impl Drop for ListingSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
