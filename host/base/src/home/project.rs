//! The project of an editor that a session works in: a directory of the machine that the session's command lines see as
//! [`PROJECT`].

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Home, HomeError, SessionName};

/// Where command lines see it.
pub const PROJECT: &str = "/project";

/// The directory, and what may be done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub path: PathBuf,
    /// Whether files in it may be changed. Only a person says so.
    pub write: bool,
}

impl Home {
    /// The project of a session, if it has one.
    pub fn project(&self, session: &SessionName) -> Result<Option<Project>, HomeError> {
        let path = self.project_path(session);
        let read = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
        };
        read.map(Some).map_err(|error| HomeError::from_io(&path, "read", error))
    }

    /// Gives a session a project, or takes it away. It holds from the next command line on.
    pub fn set_project(&self, session: &SessionName, project: Option<&Project>) -> Result<(), HomeError> {
        let path = self.project_path(session);
        let Some(project) = project else {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(HomeError::from_io(&path, "remove", error))
                }
                _ => Ok(()),
            };
        };
        self.create_session(session)?;
        let text = serde_json::to_vec(project).map_err(|error| HomeError::from_io(&path, "write", error.into()))?;
        self.write_atomic(&path, &text)
    }

    /// Beside the workspace, where no task can write.
    fn project_path(&self, session: &SessionName) -> PathBuf {
        self.session_dir(session).join("project.json")
    }
}
