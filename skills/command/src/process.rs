//! Starting other commands, as `xargs`, `find -exec`, `env` and `timeout` do.

use crate::spawn;

/// What a shell reports for a command that it cannot find.
pub const NOT_FOUND: i32 = 127;

/// What a shell reports for a command that it cannot start.
pub const NOT_STARTED: i32 = 126;

/// Why a command was not started, and the code that says so.
#[derive(Debug)]
pub struct Refused {
    pub code: i32,
    pub message: String,
}

/// What the command reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// What this process reads.
    Inherited,
    Empty,
}

/// A running command.
pub struct Process(spawn::Process);

/// Starts a command in this process's directory, with this environment and this process's output.
pub fn start(argv: &[String], env: Vec<(String, String)>, input: Input) -> Result<Process, Refused> {
    #[cfg(target_os = "wasi")]
    crate::stdio::flush();
    let name = argv.first().cloned().unwrap_or_default();
    let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_else(|_| "/".into());
    let inherited = spawn::inherited();
    let channels = inherited
        .iter()
        .filter(|(number, _)| *number <= 2 && (*number > 0 || input == Input::Inherited))
        .map(|(number, channel)| (*number, channel))
        .collect();
    spawn::start(&spawn::Command { argv: argv.to_vec(), env, cwd, channels }).map(Process).map_err(|refusal| {
        match refusal {
            spawn::Refusal::Unknown(near) if near.is_empty() => {
                Refused { code: NOT_FOUND, message: format!("{name}: command not found") }
            }
            spawn::Refusal::Unknown(near) => Refused {
                code: NOT_FOUND,
                message: format!("{name}: command not found; did you mean {}?", near.join(" or ")),
            },
            spawn::Refusal::Failed(reason) => Refused { code: NOT_STARTED, message: format!("{name}: {reason}") },
        }
    })
}

/// This process's environment.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os().map(|(n, v)| (n.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())).collect()
}

impl Process {
    /// Waits for its end and returns its exit code.
    pub fn wait(&self) -> i32 {
        i32::from(self.0.wait())
    }

    /// Like [`Process::wait`], for this long at most.
    pub fn wait_for(&self, milliseconds: u64) -> Option<i32> {
        self.0.wait_for(milliseconds).map(i32::from)
    }

    /// Ends it and all that it started.
    pub fn kill(&self) {
        self.0.kill();
    }
}
