//! Exit codes of commands.

use std::process::ExitCode;

/// Exit codes, from the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Done,
    /// The work failed.
    Failed,
    /// The command was used wrongly.
    Usage,
    /// The configuration or the home cannot be used.
    Config,
    /// Refused by a rule of the administrator.
    Policy,
    /// A limit was reached.
    Limit,
    /// A command line of `kiso shell` ended with this code.
    Command(u8),
}

impl Exit {
    /// Returns a stable word for JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Config => "config",
            Self::Policy => "policy",
            Self::Limit => "limit",
            Self::Command(_) => "command",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Config => 3,
            Exit::Policy => 4,
            Exit::Limit => 5,
            Exit::Command(code) => code,
        })
    }
}
