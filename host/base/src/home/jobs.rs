//! Slots for jobs and for model calls: they limit how many run at once in a home, across all processes.
//!
//! A slot is a lock on a file. The system releases it when its process ends for any reason, so nothing needs to be counted and a
//! crash leaves no slot taken.

use super::lock::{self, HomeLock};
use super::{Home, HomeError, private_dir};

/// The directory of the slots for model calls, beside that of jobs.
const CALLS: &str = "calls";

impl Home {
    /// Takes one of `max` slots for a run; `None` if all are taken.
    pub fn lock_job(&self, max: usize) -> Result<Option<HomeLock>, HomeError> {
        self.lock_place("jobs", max)
    }

    /// Takes one of `max` slots for a model call; `None` if all are taken.
    pub fn lock_call(&self, max: usize) -> Result<Option<HomeLock>, HomeError> {
        self.lock_place(CALLS, max)
    }

    /// Takes the right to wait for the next slot of a model call; `None` if another waiter has it.
    pub fn lock_call_turn(&self) -> Result<Option<HomeLock>, HomeError> {
        let dir = self.path().join(CALLS);
        private_dir(&dir)?;
        lock::try_take(&dir.join("turn"))
    }

    fn lock_place(&self, of: &str, max: usize) -> Result<Option<HomeLock>, HomeError> {
        let dir = self.path().join(of);
        private_dir(&dir)?;
        for place in 0..max {
            if let Some(lock) = lock::try_take(&dir.join(place.to_string()))? {
                return Ok(Some(lock));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_are_allowed_and_each_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        // Another handle sees the same: a lock belongs to the open file.
        let other = Home::open(&dir.path().join("home")).unwrap();
        let first = home.lock_job(2).unwrap().unwrap();
        let second = other.lock_job(2).unwrap().unwrap();
        assert!(home.lock_job(2).unwrap().is_none() && other.lock_job(2).unwrap().is_none());
        // If the maximum grows, more can start; if it shrinks, none is ended.
        let third = home.lock_job(3).unwrap().unwrap();
        assert!(home.lock_job(1).unwrap().is_none());
        drop(first);
        assert!(other.lock_job(1).unwrap().is_some());
        drop((second, third));
    }
}
