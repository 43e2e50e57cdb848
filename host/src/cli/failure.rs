//! Failures of commands.

use super::exit::Exit;
use super::show::printable;
use kiso_agent::drive::{CardReplyError, DriveError, ModelError, OpenError};
use kiso_agent::node::RoleError;
use kiso_agent::session::local_file::LocalFileError;
use kiso_base::config::ConfigError;
use kiso_base::home::{HomeError, NameError};
use kiso_plan::code::{Blame, ErrorClass};
use kiso_sandbox::skill::SkillError;
use kiso_store::store;
use kiso_store::store::StoreError;
use serde_json::json;

/// A failed command, with the message for a person.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(super) fn print(&self, json: bool) {
        if json {
            outln!("{}", json!({ "type": "error", "code": self.exit.code(), "message": self.message }));
        } else {
            // The message may contain text of a guest or a model: only its first line starts at the margin.
            errln!("error: {}", printable(self.message.trim_end()).replace('\n', "\n  "));
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        let exit = match error {
            HomeError::Busy { .. } | HomeError::DiskFull { .. } => Exit::Failed,
            _ => Exit::Config,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Config, error.to_string())
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::new(Exit::Config, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Model(error) => error.into(),
            OpenError::Store(error) => error.into(),
        }
    }
}

impl From<RoleError> for Failure {
    fn from(error: RoleError) -> Self {
        Self::new(Exit::Config, error.to_string())
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(Exit::Usage, error.to_string())
    }
}

impl From<LocalFileError> for Failure {
    fn from(error: LocalFileError) -> Self {
        let exit = match error {
            LocalFileError::Io { .. } | LocalFileError::Workspace { .. } => Exit::Failed,
            LocalFileError::TooLarge { .. } | LocalFileError::Full { .. } => Exit::Limit,
            _ => Exit::Usage,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            store::StoreError::NoRun { .. } | store::StoreError::Ambiguous { .. } => Exit::Usage,
            store::StoreError::Newer { .. }
            | store::StoreError::Changed { .. }
            | store::StoreError::Foreign { .. }
            | store::StoreError::Corrupt { .. }
            | store::StoreError::Lost { .. } => Exit::Config,
            store::StoreError::Sessions { .. } => Exit::Limit,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Store(error) => error.into(),
            DriveError::Home(error) => error.into(),
            DriveError::Role(error) => error.into(),
            DriveError::HomeFull(_) => Self::new(Exit::Limit, error.to_string()),
            other => Self::new(Exit::Failed, other.to_string()),
        }
    }
}

impl From<CardReplyError> for Failure {
    fn from(error: CardReplyError) -> Self {
        match error {
            CardReplyError::Store(error) => error.into(),
            CardReplyError::Over { .. } => Self::new(Exit::Failed, error.to_string()),
            other => Self::new(Exit::Usage, other.to_string()),
        }
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        let exit = match error.class() {
            ErrorClass::Limit => Exit::Limit,
            ErrorClass::Config => Exit::Config,
            ErrorClass::Blamed(Blame::Policy) => Exit::Policy,
            ErrorClass::Unknown | ErrorClass::Taken | ErrorClass::Blamed(Blame::Caller) => Exit::Usage,
            ErrorClass::Busy | ErrorClass::Blamed(Blame::Skill | Blame::Host) => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}
