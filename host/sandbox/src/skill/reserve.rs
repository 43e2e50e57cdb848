//! Space that guests leave for kiso itself, so that messages, replies and undo work when a guest has written all that it may.
//!
//! Guests may fill `limits.home_mib` and the disk, except for `limits.reserve_mib` or a sixteenth of each, whichever is less. The
//! free space of the disk is read when a call or a command line begins; later writes are counted.

use super::Skills;
use crate::engine::limits::LimitHit;
use kiso_base::config::Limits;
use kiso_base::home::Disk;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The settings for the space that guests may fill.
#[derive(Debug)]
pub(super) struct SpaceLimits {
    home_mib: AtomicU64,
    reserve_mib: AtomicU64,
}

impl SpaceLimits {
    pub(super) fn new(limits: &Limits) -> SpaceLimits {
        SpaceLimits { home_mib: AtomicU64::new(limits.home_mib), reserve_mib: AtomicU64::new(limits.reserve_mib) }
    }

    /// MiB that all sessions and the store may hold before guests must stop. `held` returns the bytes that they hold now.
    fn of_guests(&self, disk: Option<Disk>, held: impl FnOnce() -> u64) -> u64 {
        let (home, reserve) = (self.home_mib.load(Relaxed), self.reserve_mib.load(Relaxed));
        let limit = home - reserve.min(home / 16);
        let Some(room) = disk.map(|disk| disk.free.saturating_sub(disk.reserve(reserve))) else { return limit };
        // If the disk has more room than the limit, `held` is not needed.
        if room >> 20 >= limit { limit } else { limit.min(held().saturating_add(room) >> 20) }
    }
}

impl Skills {
    /// The limit of all sessions and the store, if it is reached, including the reserve. Reads the store.
    pub fn home_is_full(&self) -> Option<LimitHit> {
        let hit = self.0.space.full()?;
        let max_mib = self.0.limits.home_mib.load(Relaxed);
        (self.held() >= max_mib << 20).then(|| LimitHit { value: format!("{max_mib} MiB"), ..hit })
    }

    /// Sets the limit and the reserve.
    pub fn limit_home(&self, limits: &Limits) {
        self.0.limits.home_mib.store(limits.home_mib, Relaxed);
        self.0.limits.reserve_mib.store(limits.reserve_mib, Relaxed);
        self.leave_reserve();
    }

    /// Applies the reserve. Called when a call or a command line begins.
    pub(super) fn leave_reserve(&self) {
        let disk = self.home().disk().ok();
        self.0.space.limit(self.0.limits.of_guests(disk, || self.held()));
    }

    /// Bytes that all sessions and the store hold, as recorded.
    fn held(&self) -> u64 {
        self.0.store.read_blocking(|view| view.home_bytes()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_leave_a_part_of_the_limit_and_of_the_disk() {
        let mib = |mib: u64| mib << 20;
        for (what, home, reserve, free, held, expected) in [
            ("a large disk", 16_384, 64, Some(100_000), 0, 16_320),
            ("a small limit", 64, 64, Some(100_000), 0, 60),
            ("no reserve", 64, 0, Some(100_000), 0, 64),
            ("a disk with less room than the limit", 16_384, 64, Some(1_000), 500, 1_436),
            ("a disk with the reserve and no more", 16_384, 64, Some(64), 500, 500),
            ("a disk that others have filled", 16_384, 64, Some(3), 500, 500),
            ("a disk that does not tell", 16_384, 64, None, 0, 16_320),
            ("a small disk", 16_384, 64, Some(20), 1, 19),
        ] {
            let limits = SpaceLimits { home_mib: AtomicU64::new(home), reserve_mib: AtomicU64::new(reserve) };
            let total = if what == "a small disk" { mib(24) } else { mib(200_000) };
            let disk = free.map(|free| Disk { free: mib(free), total });
            assert_eq!(limits.of_guests(disk, || mib(held)), expected, "{what}");
        }
    }
}
