//! Copies files of a session's workspace to folders of `[folders]` in `config.toml`, and to the files that all sessions share.

use super::author::author;
use super::files;
use kiso_base::config::Config;
use kiso_base::home::{FolderRefusal, Home, HomeError, SessionName};
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::overlay::{AcceptError, Overlay, ShareError};
use kiso_sandbox::effect::undo::Transaction;
use std::fs::File;
use std::io;

/// The name for the files that all sessions share. A folder of `[folders]` cannot have this name.
pub const SHARED_FOLDER: &str = "shared";

/// A request to copy a file to a folder.
#[derive(Debug, Clone)]
pub struct DeliveryRequest {
    pub caller: CallerScope,
    /// Path in the workspace, such as "pub/chart.png" or "/work/pub/chart.png".
    pub file: String,
    /// The name of the folder.
    pub folder: String,
    /// Name of the copy; by default, the name of the file.
    pub name: Option<String>,
}

/// A file that was copied to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredFile {
    pub name: String,
    pub bytes: u64,
}

/// Why a file was not copied.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error("{path:?} is not a file of /work: {why}")]
    File { path: String, why: String },
    #[error(
        "{0:?} cannot be the name of the file: it must have 1 to 200 bytes, without slashes, and not begin with a dot"
    )]
    Name(String),
    #[error(transparent)]
    Folder(#[from] FolderRefusal),
    #[error(transparent)]
    Accept(#[from] AcceptError),
    #[error(transparent)]
    Share(#[from] ShareError),
}

/// Maximum length of a name in bytes; a number may be appended.
const MAX_NAME: usize = 200;

/// Maximum number of characters of a name or path in an error.
const MAX_SHOWN: usize = 80;

impl DeliveryRequest {
    /// Returns the joined label of the file's content and name.
    pub fn label(&self, home: &Home, session: &SessionName) -> Label {
        let labels = FileLabels::of_session(home, session);
        home.open_work(session).map_or_else(|_| Label::session(), |work| files::label(&work, &self.file, &labels))
    }

    /// Returns whether the destination is the files that all sessions share.
    pub fn is_shared(&self) -> bool {
        self.folder == SHARED_FOLDER
    }

    /// Copies the file to the folder. The caller holds the session's lock.
    pub fn deliver(&self, home: &Home, config: &Config, session: &SessionName) -> Result<DeliveredFile, DeliveryError> {
        let (file, name) = self.open(home, session)?;
        let folder = config.delivery_folder(home, session, (self.caller, &self.folder))?;
        let overlay = Overlay::open(home, session, &folder).map_err(AcceptError::from)?;
        let bytes = file.metadata().map_err(AcceptError::from)?.len();
        let delivery = overlay.deliver(&file, name, &FileLabels::of_session(home, session))?;
        Ok(DeliveredFile { name: delivery.name, bytes })
    }

    /// Copies the file to the files that all sessions share. It keeps its label, joined with `decision`, the label of the
    /// decision to copy it. The caller holds the session's lock.
    pub fn share(
        &self,
        home: &Home,
        session: &SessionName,
        decision: &Label,
        work: Option<&Transaction>,
        limit_mib: u64,
    ) -> Result<DeliveredFile, DeliveryError> {
        let (file, name) = self.open(home, session)?;
        let bytes = file.metadata().map_err(AcceptError::from)?.len();
        let of_file = self.label(home, session).joined(decision);
        let label = author(self.caller, Label::default()).join(LabelId::from_label(&of_file));
        let name = Overlay::add_shared(home, session, (&file, name), (label, work), limit_mib)?;
        Ok(DeliveredFile { name, bytes })
    }

    /// Returns the file, and the name of the copy.
    fn open(&self, home: &Home, session: &SessionName) -> Result<(File, &str), DeliveryError> {
        let shown = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
        let wrong = |why: String| DeliveryError::File { path: shown(&self.file), why };
        if self.file.starts_with('/') && !self.file.starts_with("/work/") {
            return Err(wrong("copy it there first".to_owned()));
        }
        let work = home.open_work(session).map_err(|error| wrong(error.to_string()))?;
        let file = files::open_file(&work, &self.file).map_err(wrong)?;
        let own = self.file.rsplit('/').next().unwrap_or_default();
        let name = self.name.as_deref().unwrap_or(own);
        match is_plain(name) {
            true => Ok((file, name)),
            false => Err(DeliveryError::Name(shown(name))),
        }
    }
}

/// Returns whether a file manager shows the name, and a shell does not interpret it.
fn is_plain(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '/' | '\\');
    (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('.') && name.trim() == name && !name.contains(is_odd)
}

impl From<HomeError> for DeliveryError {
    fn from(error: HomeError) -> Self {
        Self::Folder(error.into())
    }
}

impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> Self {
        Self::Accept(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hide_or_lead_elsewhere_are_refused() {
        for name in ["chart.png", "Umsätze 2026 (2).csv", "a"] {
            assert!(is_plain(name), "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in ["", ".", "..", ".bashrc", "a/b", "a\\b", "a\nb", " a", "a ", &long] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
