//! Places for jobs and for calls of models: how many of them there are in a home at once, whichever processes drive them.
//!
//! A place is a lock on a file. The system gives it back when its process ends, however it ends, so that nothing has to
//! be counted and no crash leaves a place taken.

use super::lock::{self, HomeLock};
use super::{Home, HomeError, private_dir};

/// Its places are beside those of jobs.
const CALLS: &str = "calls";

impl Home {
    /// Takes one of `max` places for a run; `None` where all are taken.
    pub fn lock_job(&self, max: usize) -> Result<Option<HomeLock>, HomeError> {
        self.lock_place("jobs", max)
    }

    /// Takes one of `max` places for a call of a model; `None` where all are taken.
    pub fn lock_call(&self, max: usize) -> Result<Option<HomeLock>, HomeError> {
        self.lock_place(CALLS, max)
    }

    /// Takes the turn to wait for the next place for a call; `None` where somebody else has it.
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
        // Another process sees the same: a lock belongs to who opened the file.
        let other = Home::open(&dir.path().join("home")).unwrap();
        let first = home.lock_job(2).unwrap().unwrap();
        let second = other.lock_job(2).unwrap().unwrap();
        assert!(home.lock_job(2).unwrap().is_none() && other.lock_job(2).unwrap().is_none());
        // Where more are allowed meanwhile, more may begin; where fewer are, nobody is ended.
        let third = home.lock_job(3).unwrap().unwrap();
        assert!(home.lock_job(1).unwrap().is_none());
        drop(first);
        assert!(other.lock_job(1).unwrap().is_some());
        drop((second, third));
    }
}
