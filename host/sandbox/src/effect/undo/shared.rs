//! Changes to the shared files, which are accepted when a task ends: undo takes such an acceptance back as a whole.

use super::line::ChangeLine;
use kiso_base::home::{Home, SessionName};
use std::fmt;
use std::io;
use std::sync::Arc;

/// Takes acceptances of changes to shared files back, and repeats them. Each has a number in its session.
pub trait SharedAcceptances: fmt::Debug + Send + Sync {
    /// Brings an acceptance to a state: accepted, or taken back. Does nothing if it has that state. With `force` also if files
    /// have changed since.
    fn bring(&self, of: (&Home, &SessionName), number: u64, accepted: bool, force: bool) -> io::Result<()>;

    /// Returns one line for each path that was changed since.
    fn conflicts(&self, of: (&Home, &SessionName), number: u64, accepted: bool) -> io::Result<Vec<String>>;
}

/// The acceptances of one session.
#[derive(Debug, Clone)]
pub struct SessionAcceptances {
    pub all: Arc<dyn SharedAcceptances>,
    pub home: Home,
    pub session: SessionName,
}

impl SessionAcceptances {
    pub(super) fn bring(&self, number: u64, accepted: bool, force: bool) -> io::Result<()> {
        self.all.bring((&self.home, &self.session), number, accepted, force)
    }

    pub(super) fn conflicts(&self, number: u64, accepted: bool) -> io::Result<Vec<String>> {
        self.all.conflicts((&self.home, &self.session), number, accepted)
    }
}

/// The lines of a change to shared files in a plan that takes it back, or repeats it.
pub(super) fn lines(paths: &[ChangeLine], accepted: bool) -> impl Iterator<Item = ChangeLine> + '_ {
    paths.iter().map(move |line| match accepted {
        true => ChangeLine { path: line.path.clone(), change: line.change.opposite() },
        false => line.clone(),
    })
}
