//! Takes a session's directory away.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::{Home, HomeError, SessionName, lock};

/// How the names of directories begin that are on their way out; no session's name does.
const GONE: &str = ".gone-";

/// A session's directory that was moved out of the way. Until it is removed it can be put back.
#[derive(Debug)]
#[must_use = "what is put aside takes up space until it is removed"]
pub struct Aside {
    place: PathBuf,
    aside: PathBuf,
}

impl Home {
    /// Moves the session's directory, with its workspace, out of the way: whatever happens next, a new session of that name
    /// finds nothing of it. The caller holds the session's lock. `None` where there is no directory.
    pub fn put_aside(&self, session: &SessionName) -> Result<Option<Aside>, HomeError> {
        let place = self.session_dir(session);
        let aside = place.with_file_name(format!("{GONE}{session}"));
        let failed = |error| HomeError::from_io(&place, "remove", error);
        match fs::remove_dir_all(&aside) {
            // A crash left it.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        match fs::rename(&place, &aside) {
            Ok(()) => Ok(Some(Aside { place, aside })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// What deletions that were cut off left, each with the name of its session. A deletion that is under way holds the lock
    /// in what it has put aside, and is left alone.
    pub fn left_aside(&self) -> Vec<(SessionName, Aside)> {
        let entries = fs::read_dir(self.path().join("sessions")).into_iter().flatten().flatten();
        let left = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let session = SessionName::parse(name.strip_prefix(GONE)?).ok()?;
            drop(lock::take(&entry.path().join("lock"), "the session is being deleted".to_owned()).ok()?);
            let place = self.session_dir(&session);
            Some((session, Aside { place, aside: entry.path() }))
        });
        left.collect()
    }
}

impl Aside {
    /// Puts the directory back where it was.
    pub fn put_back(self) -> Result<(), HomeError> {
        fs::rename(&self.aside, &self.place).map_err(|error| HomeError::from_io(&self.place, "put back", error))
    }

    /// Removes it for good. Links in it are removed, not followed.
    pub fn remove(self) -> Result<(), HomeError> {
        fs::remove_dir_all(&self.aside).map_err(|error| HomeError::from_io(&self.aside, "remove", error))
    }
}
