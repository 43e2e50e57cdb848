//! Starting other commands, as `xargs`, `find -exec`, `env` and `timeout` do.

use std::io;

use crate::spawn;

/// The exit code that a shell reports for a command that it cannot find.
pub const NOT_FOUND: i32 = 127;

/// The exit code that a shell reports for a command that it cannot start.
pub const NOT_STARTED: i32 = 126;

/// Why a command was not started, and the code that says so.
#[derive(Debug)]
pub struct Refused {
    pub code: i32,
    pub message: String,
}

/// The standard input of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The standard input of this process.
    Inherited,
    Empty,
}

/// A running command.
pub struct Process(spawn::Process);

/// One end of a pipe to a command.
pub struct Pipe(spawn::Channel);

/// Starts a command in this process's directory, with this environment and this process's output.
pub fn start(argv: &[String], env: Vec<(String, String)>, input: Input) -> Result<Process, Refused> {
    let inherited = spawn::inherited();
    let channels = inherited.iter().filter(|(number, _)| *number > 0 || input == Input::Inherited);
    start_with(argv, env, channels.map(|(number, channel)| (*number, channel)).collect())
}

/// Starts a command whose output is read here.
pub fn start_reading(argv: &[String], env: Vec<(String, String)>) -> Result<(Process, Pipe), Refused> {
    let (reader, writer) = spawn::pipe();
    let process = start_at(argv, env, 1, &writer)?;
    Ok((process, Pipe(reader)))
}

/// Starts a command whose input is written here. It ends with the pipe.
pub fn start_writing(argv: &[String], env: Vec<(String, String)>) -> Result<(Process, Pipe), Refused> {
    let (reader, writer) = spawn::pipe();
    let process = start_at(argv, env, 0, &reader)?;
    Ok((process, Pipe(writer)))
}

/// Like [`start`], with one stream in the place of an inherited one.
fn start_at(
    argv: &[String],
    env: Vec<(String, String)>,
    number: u32,
    channel: &spawn::Channel,
) -> Result<Process, Refused> {
    let inherited = spawn::inherited();
    let others = inherited.iter().filter(|(other, _)| *other != number).map(|(other, channel)| (*other, channel));
    start_with(argv, env, others.chain([(number, channel)]).collect())
}

fn start_with(
    argv: &[String],
    env: Vec<(String, String)>,
    mut channels: Vec<(u32, &spawn::Channel)>,
) -> Result<Process, Refused> {
    #[cfg(target_os = "wasi")]
    crate::stdio::flush();
    channels.retain(|(number, _)| *number <= 2);
    let name = argv.first().cloned().unwrap_or_default();
    let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_else(|_| "/".into());
    spawn::start(&spawn::Command { argv: argv.to_vec(), program: None, env, cwd, channels }).map(Process).map_err(
        |refusal| match refusal {
            spawn::Refusal::Unknown(hint) => {
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                Refused { code: NOT_FOUND, message: format!("{name}: command not found{hint}") }
            }
            spawn::Refusal::Failed(reason) => Refused { code: NOT_STARTED, message: format!("{name}: {reason}") },
        },
    )
}

/// Whether there may be something on standard input: a pipe or a file, not the `/dev/null` of a line that was given nothing.
pub fn has_input() -> bool {
    spawn::inherited().iter().any(|(number, channel)| *number == 0 && !channel.is_null())
}

/// This process's environment.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os().map(|(n, v)| (n.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())).collect()
}

/// Bytes that a pipe gives at once.
const CHUNK: usize = 64 << 10;

fn failed(errno: spawn::Errno) -> io::Error {
    match errno {
        spawn::Errno::Closed => io::ErrorKind::BrokenPipe.into(),
        errno => io::Error::other(errno.name()),
    }
}

impl io::Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.read(into.len().min(CHUNK) as u32).map_err(failed)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

impl io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        self.0.write(bytes).map_err(failed)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
