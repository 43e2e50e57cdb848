//! `kiso shell`: runs command lines in the sandbox.

mod prompt;

use super::folder::FolderArgs;
use super::history::InputHistory;
use super::show::{Output, Show, printable_line};
use super::{Exit, Failure, Opened, Shared, environment_secrets, session};
use kiso_base::config::Config;
use kiso_base::home::{Home, SHARED, SessionName};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::effect::overlay::Overlay;
use kiso_sandbox::exec::{Channel, CommandResult, Exec, ExecError, Line, PipeWriter, Scratch, pipe};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use serde_json::json;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct ShellArgs {
    /// Run this command line and exit with its code. Without it and without a FILE, read lines from the terminal or a script from standard input
    #[arg(short, value_name = "COMMAND")]
    command: Option<String>,
    /// Run this script. Arguments after it, or after the COMMAND of -c, are $1, $2 and so on
    #[arg(value_name = "FILE", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// The session whose /work to use; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Copy this file or folder into the session's /work first; repeat for several
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
    #[command(flatten)]
    folders: FolderArgs,
}

const AFTER: &str =
    "The exit code is that of the command line, or 137 if a limit ended it. docs/shell.md lists commands and features.";

/// Maximum bytes of a script.
const MAX_SCRIPT: u64 = 16 << 20;

impl ShellArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = session(self.session.as_deref())?;
        let show = Arc::new(Show::new(shared.json));
        let opened = Opened::new(shared, show.clone())?;
        let _lock = opened.home.lock_session(&session)?;
        opened.copy_in(&session, &self.file, &show)?;
        self.folders.open(&opened, &session)?;
        let shell = Hand::new(&opened, &session, shared.json)?;
        let runtime = runtime()?;
        let exit = match &self.command {
            Some(command) => shell.once(&runtime, command, self.args.clone(), true),
            None if !self.args.is_empty() => {
                let source = file(Path::new(&self.args[0]))?;
                shell.once(&runtime, &source, self.args[1..].to_vec(), true)
            }
            None if std::io::stdin().is_terminal() => {
                prompt::run(&shell, &runtime, InputHistory::of_shell(&opened.home, environment_secrets()), &opened.home)
            }
            None => shell.once(&runtime, &script()?, Vec::new(), false),
        };
        runtime.shutdown_background();
        exit
    }
}

/// Runs one command line in a session whose lock is held, as `-c` does, with `args` as `$1` and so on.
pub(super) fn run_once(
    opened: &Opened,
    session: &SessionName,
    source: &str,
    args: Vec<String>,
    json: bool,
) -> Result<Exit, Failure> {
    let shell = Hand::new(opened, session, json)?;
    let runtime = runtime()?;
    let exit = shell.once(&runtime, source, args, true);
    runtime.shutdown_background();
    exit
}

/// An interactive shell: the data shared by all its lines.
struct Hand {
    exec: Exec,
    session: SessionName,
    secrets: Secrets,
    scratch: Scratch,
    json: bool,
    home: Home,
    store: Store,
    config: Config,
}

impl Hand {
    fn new(opened: &Opened, session: &SessionName, json: bool) -> Result<Self, Failure> {
        Ok(Self {
            exec: opened.exec.clone(),
            scratch: opened.exec.scratch(session)?,
            session: session.clone(),
            secrets: environment_secrets(),
            json,
            home: opened.home.clone(),
            store: opened.store.clone(),
            config: opened.config.clone(),
        })
    }

    /// Runs one command line. It may read kiso's own standard input, unless that is a terminal.
    fn once(
        &self,
        runtime: &tokio::runtime::Runtime,
        source: &str,
        args: Vec<String>,
        reads: bool,
    ) -> Result<Exit, Failure> {
        let stdin = if reads && may_be_read() { pump(runtime) } else { Channel::Null };
        let done = runtime.block_on(async {
            tokio::select! {
                done = self.run(source, args, Vec::new(), stdin, false) => done.map(Some),
                _ = tokio::signal::ctrl_c() => Ok(None),
            }
        })?;
        let Some(done) = done else { return Ok(Exit::Command(130)) };
        self.tell(&done);
        Ok(Exit::Command(done.code))
    }

    async fn run(
        &self,
        source: &str,
        args: Vec<String>,
        state: Vec<u8>,
        stdin: Channel,
        partial: bool,
    ) -> Result<CommandResult, ExecError> {
        let drains = (!self.json).then(|| (Drain::to(std::io::stdout()), Drain::to(std::io::stderr())));
        let outputs = drains.as_ref().map(|(out, err)| (out.channel(), err.channel()));
        let network = Network::by_hand(&self.store, &self.config, &self.session, CallerScope::Admin).await;
        let line = Line {
            source,
            session: &self.session,
            role: CallerScope::Admin,
            shared: true,
            locale: "en",
            secrets: &self.secrets,
            stdin,
            args,
            state,
            partial,
            outputs,
            watch: None,
            scratch: &self.scratch,
            // In a shell, the user undoes changes by hand.
            transaction: None,
            accepted: None,
            permit: Default::default(),
            network: network.map_err(ExecError::new)?,
        };
        let done = self.exec.run(line).await;
        self.share(&done);
        if let (Some((out, err)), Ok(CommandResult { limit: None, .. })) = (drains, &done) {
            // A line that a limit ended must not wait for a slow reader.
            out.rest();
            err.rest();
        }
        done
    }

    /// Publishes changes of shared files to all sessions, unless a limit ended the line.
    fn share(&self, done: &Result<CommandResult, ExecError>) {
        let is_cut_off = done.as_ref().map_or(true, |done| done.limit.is_some());
        let shared = match is_cut_off {
            true => Overlay::drop_unshared(&self.home, &self.session)
                .map(|()| Vec::new())
                .map_err(|error| error.to_string()),
            false => Overlay::share_changes(
                &self.home,
                &self.session,
                LabelId::default(),
                None,
                self.config.engine.shared_mib,
            )
            .map(|shared| shared.notes)
            .map_err(|error| error.to_string()),
        };
        match shared {
            Ok(notes) => notes.iter().for_each(|note| errln!("kiso: {note}")),
            Err(error) => errln!("kiso: changes to {SHARED} were dropped: {error}"),
        }
    }

    /// Reports what the line itself did not print.
    fn tell(&self, done: &CommandResult) {
        let limit = done.limit.as_ref();
        if self.json {
            outln!(
                "{}",
                json!({
                    "type": "exec",
                    "exit_code": done.code,
                    "stdout": self.secrets.redact(&done.stdout),
                    "stderr": self.secrets.redact(&done.stderr),
                    "failed": done.failed,
                    "limit": limit,
                    "used": done.used,
                })
            );
        } else if let Some(limit) = limit {
            let command =
                done.failed.as_ref().map(|f| format!("`{}` stopped: ", printable_line(&f.command))).unwrap_or_default();
            errln!("kiso: {command}{limit}");
        }
    }
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Failure::new(Exit::Failed, error.to_string())
    }
}

/// A pipe that a thread copies to a stream of kiso. A slow reader delays commands and nothing else; a closed stream ends
/// them.
struct Drain {
    channel: Channel,
    thread: JoinHandle<()>,
}

impl Drain {
    fn to(stream: impl Write + IsTerminal + Send + 'static) -> Self {
        let (reader, writer) = pipe();
        let handle = tokio::runtime::Handle::current();
        let thread = std::thread::spawn(move || pass_on(&handle, &Channel::Reader(reader), stream));
        Self { channel: Channel::Writer(writer), thread }
    }

    fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Waits until everything was copied.
    fn rest(self) {
        drop(self.channel);
        let _ = self.thread.join();
    }
}

/// Copies the output of guests: unchanged to a file or a program, and filtered to a terminal.
fn pass_on(handle: &tokio::runtime::Handle, from: &Channel, mut stream: impl Write + IsTerminal) {
    let mut terminal = stream.is_terminal().then(Output::default);
    let mut write = |bytes: &[u8]| stream.write_all(bytes).and_then(|()| stream.flush()).is_ok();
    while let Ok(bytes) = handle.block_on(from.read(32 << 10)) {
        if bytes.is_empty() {
            break;
        }
        let written = match &mut terminal {
            Some(output) => write(&output.push(&bytes)),
            None => write(&bytes),
        };
        if !written {
            return;
        }
    }
    if let Some(output) = terminal {
        write(&output.finish());
    }
}

/// Returns whether a line may read kiso's own standard input. `/dev/null` stays `/dev/null`: some commands behave
/// differently then.
fn may_be_read() -> bool {
    let device = |path: &str| rustix::fs::stat(path).map(|found| found.st_rdev);
    let (null, stdin) = (device("/dev/null"), rustix::fs::fstat(std::io::stdin()).map(|stdin| stdin.st_rdev));
    !std::io::stdin().is_terminal() && !matches!((null, stdin), (Ok(null), Ok(stdin)) if null == stdin)
}

/// Copies kiso's own standard input to a line.
fn pump(runtime: &tokio::runtime::Runtime) -> Channel {
    let (reader, writer) = pipe();
    let handle = runtime.handle().clone();
    // The thread may wait forever for a person's input: it ends with the program.
    std::thread::spawn(move || feed(&handle, writer));
    Channel::Reader(reader)
}

fn feed(handle: &tokio::runtime::Handle, writer: PipeWriter) {
    let channel = Channel::Writer(writer);
    let mut bytes = vec![0; 32 << 10];
    while let Ok(count @ 1..) = std::io::stdin().lock().read(&mut bytes) {
        if handle.block_on(channel.write(&bytes[..count])).is_err() {
            return;
        }
    }
}

/// Reads a script of this machine.
fn file(path: &Path) -> Result<String, Failure> {
    let shown = printable_line(&path.display().to_string());
    let unread = |why: String| {
        let message = format!(
            "cannot read the script {shown}: {why}; a command line is run with -c, a script in /work with -c 'sh FILE'"
        );
        Failure::new(Exit::Usage, message)
    };
    let found = std::fs::metadata(path).map_err(|error| unread(error.to_string()))?;
    // Opening anything else, such as a pipe, could block forever.
    if !found.is_file() {
        return Err(unread("it is not a file".to_owned()));
    }
    if found.len() > MAX_SCRIPT {
        return Err(unread(format!("it is larger than {} MiB", MAX_SCRIPT >> 20)));
    }
    let bytes = std::fs::read(path).map_err(|error| unread(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unread("it is not UTF-8 text".to_owned()))
}

/// Reads a script from standard input.
fn script() -> Result<String, Failure> {
    let mut source = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_SCRIPT)
        .read_to_string(&mut source)
        .map_err(|e| Failure::new(Exit::Usage, format!("the script on standard input cannot be read: {e}")))?;
    Ok(source)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Failed, format!("failed to start: {e}")))
}
