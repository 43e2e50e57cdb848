//! The lines after a run about changes that wait in the session's folders.

use super::ChatSession;
use crate::cli::show::printable_line;
use kiso_base::home::{Home, HomeError, SessionName};
use kiso_plan::report::counted;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::overlay::{FolderSelection, Overlay};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The daemon may hold the session for a moment after its run has ended.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// A folder, and the number of changes that wait there.
type WaitingChanges = (PathBuf, usize);

/// The last reported changes.
#[derive(Debug, Default)]
pub(super) struct WaitingReport {
    last: Vec<WaitingChanges>,
}

impl WaitingReport {
    /// Returns a line for each folder whose number of waiting changes has changed.
    pub(super) async fn lines(&mut self, place: &ChatSession<'_>) -> Vec<String> {
        let (home, session) = (place.opened.home.clone(), place.session.clone());
        let looked = tokio::task::spawn_blocking(move || look(&home, &session)).await;
        // While the next run works in the session, the check is done at its end.
        let Ok(Ok(Some(now))) = looked else { return Vec::new() };
        let lines = now.iter().filter(|found| found.1 > 0 && !self.last.contains(found)).map(line).collect();
        self.last = now;
        lines
    }
}

/// Returns the folders with their changes. `None` while a run works in the session.
fn look(home: &Home, session: &SessionName) -> io::Result<Option<Vec<WaitingChanges>>> {
    let folders = home.folders(session).map_err(io::Error::other)?;
    if folders.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut tries = 0;
    let _lock = loop {
        tries += 1;
        match home.lock_session(session) {
            Err(HomeError::Busy { .. }) if tries < TRIES => std::thread::sleep(PAUSE),
            Err(HomeError::Busy { .. }) => return Ok(None),
            taken => break taken.map_err(io::Error::other)?,
        }
    };
    let labels = FileLabels::of_session(home, session);
    let count = |folder: kiso_base::home::SessionFolder| {
        let difference = Overlay::open(home, session, &folder)?.difference(&labels)?;
        Ok((folder.path, difference.count(&FolderSelection::All)))
    };
    folders.into_iter().map(count).collect::<io::Result<_>>().map(Some)
}

fn line((path, count): &WaitingChanges) -> String {
    let changes = counted(*count as u64, "change", "changes");
    let (wait, them) = if *count == 1 { ("waits", "it") } else { ("wait", "them") };
    let path = printable_line(&short(path, std::env::home_dir().as_deref()));
    format!("{changes} to {path} {wait}: /diff shows {them}, /diff accept applies {them}")
}

/// Returns a short form of a path, such as `~/src`.
fn short(path: &Path, own: Option<&Path>) -> String {
    let below = own.filter(|own| own.parent().is_some()).and_then(|own| path.strip_prefix(own).ok());
    match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_users_directory_begins_with_a_tilde() {
        let own = Some(Path::new("/home/me"));
        assert_eq!(short(Path::new("/home/me/site"), own), "~/site");
        assert_eq!(short(Path::new("/home/meadow"), own), "/home/meadow");
        assert_eq!(short(Path::new("/srv/site"), Some(Path::new("/"))), "/srv/site");
        assert_eq!(short(Path::new("/srv/site"), None), "/srv/site");
    }
}
