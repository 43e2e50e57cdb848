//! What a guest that writes to a workspace must have.

use super::quota::Quota;
use super::structure::Roots;
use crate::skill::limits::LimitHit;
use std::sync::Arc;
use wasmtime_wasi::WasiView;

/// A store's data whose file access is charged to a quota.
pub trait ChargedFiles: WasiView + 'static {
    /// What writes are charged to.
    fn quota(&self) -> &Arc<Quota>;

    /// Handles of directory listings that may still be open.
    fn listings(&mut self) -> &mut Vec<u32>;

    /// Records that the limit of directories that are listed at once was reached.
    fn listings_hit(&self) -> LimitHit;

    /// The directories that the guest sees.
    fn roots(&self) -> &Roots;
}
