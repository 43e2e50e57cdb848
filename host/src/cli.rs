//! The command line: one file per command, and shared code.
//!
//! Results go to standard output, progress to standard error; with `--json` standard output has one JSON object per line
//! (docs/json.md). Exit codes are those of [`Exit`].

#[macro_use]
mod out;

mod acp;
mod approval;
mod backup;
mod bench;
mod browser;
mod cancel;
mod chat;
mod client;
mod completions;
mod config;
mod connect;
mod diff;
mod doctor;
mod exit;
mod failure;
mod files;
mod fleet;
mod folder;
mod help;
mod history;
mod installation;
mod listing;
mod log;
mod man;
mod mcp;
mod memory;
mod network;
mod open;
mod pill;
mod restore;
mod role;
mod run;
mod schedule;
mod secret;
mod serve;
mod session;
mod shell;
mod show;
mod skill;
mod token;
mod trace;
mod undo;
mod unit;
mod version;

pub use self::exit::Exit;
pub use self::failure::Failure;

use self::show::{Show, printable, printable_line};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kiso_agent::drive::RunExecutor;
use kiso_agent::mcp::{McpServers, confine};
use kiso_agent::session::local_file::{LocalFolder, copy_in};
use kiso_base::clock::now_ms;
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_fleet::member;
use kiso_plan::report::size;
use kiso_sandbox::engine::limits::{Budget, HitCell};
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::{Observer, Skills, compiler};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// An agent whose skills and commands all run as WASI components in a sandbox.
#[derive(Debug, Parser)]
#[command(name = "kiso", version, disable_version_flag = true, max_term_width = 100, after_help = EXIT_CODES)]
struct Kiso {
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    version: version::VersionArgs,
    #[command(flatten)]
    folders: folder::FolderArgs,
    /// Without one: the chat
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the work failed, 2 wrong use, 3 configuration, 4 refused by policy, 5 a limit was hit. KISO_LOG=debug shows what happens inside.";

/// Options of every command.
#[derive(Debug, clap::Args)]
struct Shared {
    /// Directory that holds everything kiso keeps; made on first use [default: ~/.kiso]
    // An empty variable counts as unset.
    #[arg(long, env = "KISO_HOME", global = true, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    home: Option<PathBuf>,
    /// Print one JSON object per line instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Chat in the terminal; `kiso` without a command chats in the session `default`
    Chat(chat::ChatArgs),
    /// Run one request in this terminal, without a daemon
    Run(run::RunArgs),
    /// Run the daemon: message queue, HTTP, events
    Serve(serve::ServeArgs),
    /// Serve tools, files and pills to a client of the Model Context Protocol, on standard input and output
    Mcp(mcp::McpArgs),
    /// Act as an editor's agent over the Agent Client Protocol, on standard input and output
    Acp(acp::AcpArgs),
    /// Open the daemon's page in a browser, logged in by a link that works once
    Open(open::OpenArgs),
    /// Schedule messages: add, list, run, pause and remove schedules
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Create, list, remove and share pills: workflows called by name
    #[command(subcommand)]
    Pill(pill::PillCommand),
    /// Share a home between machines: begin, list the members, hand it over
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// Run the daemon as a service of systemd
    #[command(subcommand)]
    Service(unit::ServiceCommand),
    /// Make, list and revoke the tokens of the HTTP interface
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Connect other programs: channels, hooks and webhooks
    #[command(subcommand)]
    Connect(connect::ConnectCommand),
    /// Show, search, move and forget memories and facts
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// List, show, export, import and delete sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Keep secrets of a session
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Run command lines in the sandbox: one with -c, a script, or interactively
    Shell(shell::ShellArgs),
    /// Install, inspect, call and write skills, and packages such as Python
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// Show and override the prompts of the roles
    #[command(subcommand)]
    Role(role::RoleCommand),
    /// Show what a run did, step by step
    Trace(trace::TraceArgs),
    /// Approve or refuse what runs ask for before they continue
    #[command(subcommand)]
    Approval(approval::ApprovalCommand),
    /// List and change which hosts command lines can reach
    Network(network::NetworkArgs),
    /// Stop a run that is under way, in this terminal or another
    Cancel(cancel::CancelArgs),
    /// Show what runs changed in folders, and accept or discard it
    Diff(diff::DiffArgs),
    /// List the files that all conversations share, copy them in and out, delete them
    Files(files::FilesArgs),
    /// Undo the changes of a run to files, or redo them
    Undo(undo::UndoArgs),
    /// Show and check the configuration; ready-made providers of models
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Copy the store into one file, also while the daemon works
    Backup(backup::BackupArgs),
    /// Replace the store with a backup; the old store is kept
    Restore(restore::RestoreArgs),
    /// Check the home, the configuration, the store, every skill, and ask every model what it can do
    Doctor(doctor::DoctorArgs),
    /// Measure what kiso costs on this machine: size, start, calls, commands, messages and memory
    Bench(bench::BenchArgs),
    /// Check, update or remove this installation of kiso
    #[command(name = "self", subcommand)]
    Installation(installation::InstallationCommand),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages, one for each command, into a directory
    Man(man::ManArgs),
    /// Compile a component in a separate process; for kiso's own use
    #[command(name = compiler::COMMAND, hide = true)]
    CompileComponent(compiler::child::CompileLimits),
    /// Become an MCP server that is a program of this machine, confined; for kiso's own use
    #[command(name = confine::COMMAND, hide = true)]
    ConfineServer(confine::Confinement),
}

/// Runs the program.
pub fn main() -> ExitCode {
    completions::answer(Kiso::command);
    let parsed = help::grouped(Kiso::command()).try_get_matches().and_then(|found| Kiso::from_arg_matches(&found));
    let kiso = match parsed {
        Ok(kiso) => kiso,
        Err(error) => {
            // Asking for help is not an error; errors are printed in the requested form.
            if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                let message = error.render().to_string();
                let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                Failure::new(Exit::Usage, message).print(true);
            } else {
                print_help(&error);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    log::begin();
    let shared = &kiso.shared;
    if shared.json {
        out::is_json();
    }
    if kiso.version.wanted() {
        kiso.version.print(shared);
        return Exit::Done.into();
    }
    if kiso.command.is_some() && !kiso.folders.dir.is_empty() {
        let message =
            "--dir comes after the command, as in `kiso run --dir PATH MESSAGE`; without a command, it is the chat's";
        Failure::new(Exit::Usage, message).print(shared.json);
        return Exit::Usage.into();
    }
    let result = match kiso.command.unwrap_or_else(|| Command::Chat(chat::ChatArgs::in_folders(kiso.folders))) {
        Command::Chat(command) => command.execute(shared),
        Command::Run(command) => command.execute(shared),
        Command::Serve(command) => command.execute(shared),
        Command::Mcp(command) => command.execute(shared),
        Command::Acp(command) => command.execute(shared),
        Command::Open(command) => command.execute(shared),
        Command::Schedule(command) => command.execute(shared),
        Command::Pill(command) => command.execute(shared),
        Command::Service(command) => command.execute(shared),
        Command::Fleet(command) => command.execute(shared),
        Command::Token(command) => command.execute(shared),
        Command::Connect(command) => command.execute(shared),
        Command::Memory(command) => command.execute(shared),
        Command::Session(command) => command.execute(shared),
        Command::Secret(command) => command.execute(shared),
        Command::Shell(command) => command.execute(shared),
        Command::Skill(command) => command.execute(shared),
        Command::Role(command) => command.execute(shared),
        Command::Trace(command) => command.execute(shared),
        Command::Approval(command) => command.execute(shared),
        Command::Network(command) => command.execute(shared),
        Command::Cancel(command) => command.execute(shared),
        Command::Diff(command) => command.execute(shared),
        Command::Files(command) => command.execute(shared),
        Command::Undo(command) => command.execute(shared),
        Command::Config(command) => command.execute(shared),
        Command::Backup(command) => command.execute(shared),
        Command::Restore(command) => command.execute(shared),
        Command::Doctor(command) => command.execute(shared),
        Command::Bench(command) => command.execute(shared),
        Command::Installation(command) => command.execute(shared),
        Command::Completions(command) => command.execute(&Kiso::command()),
        Command::Man(command) => command.execute(Kiso::command()),
        Command::CompileComponent(limits) => return compiler::child::serve(&limits),
        Command::ConfineServer(confinement) => {
            errln!("{}", printable(&confine::serve(&confinement)));
            return ExitCode::from(confine::NOT_STARTED);
        }
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print(shared.json);
            failure.exit.into()
        }
    }
}

/// Prints help, or the error in the command line.
fn print_help(error: &clap::Error) {
    let to_stderr = error.use_stderr();
    let show = if to_stderr { Show::new(false) } else { Show::stdout() };
    let rendered = error.render();
    let text = if show.paint().is_coloured() { rendered.ansi().to_string() } else { printable(&rendered.to_string()) };
    match to_stderr {
        true => err!("{text}"),
        false => out!("{text}"),
    }
}

/// An opened home with its contents.
struct Opened {
    home: Home,
    config: Config,
    store: Store,
    skills: Skills,
    exec: Exec,
}

impl Opened {
    fn new(shared: &Shared, observer: Arc<dyn Observer>) -> Result<Self, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let config = Config::load(&home)?;
        if config.fleet.url.is_some() && member::is_a_copy(&home) {
            return Err(Failure::new(
                Exit::Failed,
                "this home is a copy that stands by in a fleet: run the command on the machine that owns it (`kiso fleet status`), or start `kiso serve`",
            ));
        }
        let store = Store::open(&home.store_path())?;
        Self::with_store(home, config, store, observer)
    }

    fn with_store(home: Home, config: Config, store: Store, observer: Arc<dyn Observer>) -> Result<Self, Failure> {
        store.limit_sessions(config.limits.max_sessions);
        let config = config.with_connected(&store.read_blocking(|view| view.connected())?);
        let skills = Skills::new(home.clone(), config.clone(), store.clone(), observer);
        let exec = Exec::new(home.clone(), config.clone(), skills.clone());
        Ok(Self { home, config, store, skills, exec })
    }
}

/// Threads of an abandoned runtime may keep the store open for longer than the process lives, so it is closed here.
impl Drop for Opened {
    fn drop(&mut self) {
        self.skills.write_uses();
        self.store.close();
    }
}

impl Opened {
    /// Returns the executor of runs in this home.
    fn drive(&self) -> Result<RunExecutor, Failure> {
        let (skills, exec) = (self.skills.clone(), self.exec.clone());
        Ok(RunExecutor::open(skills, exec, self.store.clone(), environment)?)
    }

    /// Like [`Opened::drive`], for a daemon: works without the API keys of models.
    fn daemon_drive(&self) -> Result<RunExecutor, Failure> {
        let (skills, exec) = (self.skills.clone(), self.exec.clone());
        Ok(RunExecutor::open_anyway(skills, exec, self.store.clone(), environment)?)
    }

    /// Returns the MCP servers of `config.toml`.
    fn servers(&self) -> McpServers {
        McpServers::open(&self.config, self.store.clone(), self.skills.clone(), environment)
    }

    /// Copies files into a session's `/work`, within the limits of the session and the home. Returns their names there. The
    /// caller holds the session's lock.
    fn copy_in(&self, session: &SessionName, files: &[PathBuf], show: &Show) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        if files.is_empty() {
            return Ok(names);
        }
        self.store.read_blocking(|view| view.may_open(session, self.config.limits.max_sessions))?;
        let budget = Budget::upload(&self.config.engine);
        for file in files {
            let quota = self.skills.exec_quota(session, &budget, HitCell::default(), None);
            let imported = copy_in(&self.home, session, file, self.config.limits.file_mib << 20, quota.clone())?;
            // The size of the session is recorded in its row when the quota is dropped, so a new session gets its row first.
            let of = session.clone();
            self.store.write_blocking(move |tx| tx.open_session(&of, now_ms()))?;
            drop(quota);
            let name = printable_line(&imported.name) + if imported.folder.is_some() { "/" } else { "" };
            let how = match imported.replaced {
                true => format!("replaced {name} in /work"),
                false => format!("copied {name} to /work"),
            };
            let held = match imported.folder {
                None => String::new(),
                Some(LocalFolder { files, left_out: 0 }) => format!("files: {files}, "),
                Some(LocalFolder { files, left_out }) => {
                    format!("files: {files}, left out: {left_out} links, pipes or devices, ")
                }
            };
            show.line(&show.dim(&format!("{how} ({held}{})", size(imported.bytes))));
            names.push(imported.name + if imported.folder.is_some() { "/" } else { "" });
        }
        Ok(names)
    }
}

/// Returns the session that a command names.
fn session(name: Option<&str>) -> Result<SessionName, Failure> {
    Ok(name.map(SessionName::parse).transpose()?.unwrap_or_default())
}

/// Returns a variable of the environment, if it is text; else the systemd credential of that name.
fn environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().or_else(|| {
        let dir = std::env::var_os(CREDENTIALS)?;
        let is_name = variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        is_name.then(|| std::fs::read_to_string(PathBuf::from(dir).join(variable)).ok())?
    })
}

/// Names the directory of the credentials that `LoadCredential=` of a unit loaded.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Returns whether the variable has a value.
fn is_set(variable: &str) -> bool {
    environment(variable).is_some_and(|value| !value.trim().is_empty())
}

fn environment_secrets() -> Secrets {
    let dir = std::env::var_os(CREDENTIALS).map(PathBuf::from);
    let files = dir.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name());
    let credentials = names.filter_map(|name| {
        let value = environment(name.to_str()?)?;
        // Files often end with a line break after the value.
        Some((name, value.trim_end_matches(['\r', '\n']).to_owned().into()))
    });
    Secrets::from_environment(credentials.chain(std::env::vars_os()))
}

/// Runs one command in a runtime. Guests run on its workers, one of which stays free for other work; file access uses its
/// blocking threads.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(4) + 1;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Failed, format!("failed to start threads: {e}")))?;
    let done = runtime.block_on(work);
    // A thread that waits for a slow disk or name server must not delay the exit.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(done)
}

/// Parses `key=value` words.
fn pairs(words: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let split = |word: &String| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => {
            Err(Failure::new(Exit::Usage, format!("`{word}` is not an argument; write KEY=VALUE, or --args with JSON")))
        }
    };
    words.iter().map(split).collect()
}
