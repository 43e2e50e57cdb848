//! The limits of a call, their counters, and the messages for people when one is reached.

use kiso_base::config::{Engine as EngineConfig, Exec as ExecConfig};
use kiso_plan::report::Allowance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use strum::IntoStaticStr;

/// The limits that end a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Limit {
    /// Wall-clock time, host calls included.
    Time,
    /// All linear memories of the instance together.
    Memory,
    /// Elements in all tables together.
    Tables,
    /// The wasm stack: recursion without end.
    Stack,
    /// Bytes of standard output, standard error, or of the reply.
    Output,
    /// Lines or bytes written with `log`.
    Log,
    /// Calls from the guest into the host.
    HostCalls,
    /// Bytes that the guest hands to the host at once: in one call of a host function, or as its reply.
    Transfer,
    /// Header fields of HTTP requests.
    Headers,
    /// Handles open at once: files, directories, streams, requests.
    OpenFiles,
    /// Bytes written to the workspace by this call.
    CallWrites,
    /// Bytes that the session's workspace holds.
    Workspace,
    /// Files and directories that the session's workspace holds.
    Files,
    /// Levels of directories below the workspace.
    Depth,
    /// Directories that are listed at once.
    Listings,
    /// The size of the session's workspace cannot be measured.
    Unmeasured,
    /// Bytes that all sessions and the store hold together.
    Home,
    /// Bytes that are kept so that work can be undone.
    Undo,
    /// Processes of an exec task that run at once.
    Processes,
    /// A host that nobody has allowed yet.
    Network,
    /// Processor time of the compiler.
    CompileTime,
    /// Memory of the compiler.
    CompileMemory,
}

impl Limit {
    /// As in JSON, such as "call-writes".
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A limit that was reached: which, its value with unit, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitHit {
    /// Which limit.
    pub limit: Limit,
    /// Its value for this call, such as "30 s" or "64 MiB".
    pub value: String,
    /// Where to raise it.
    pub setting: String,
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.limit {
            Limit::Time => "it ran longer than its deadline of",
            Limit::Memory => "it asked for more memory than its",
            Limit::Tables => "it asked for larger tables than its",
            Limit::Stack => "it recursed deeper than its stack of",
            Limit::Output => "it wrote more output than its",
            Limit::Log => "it logged more than its",
            Limit::HostCalls => "it called the host more often than its",
            Limit::Transfer => "it handed more to the host at once than its",
            Limit::Headers => "it filled the headers of a request with more than its",
            Limit::OpenFiles => "it held more open files and streams than its",
            Limit::CallWrites => "it wrote more to files than its",
            Limit::Workspace => "the session's workspace would hold more than its",
            Limit::Files => "the session's workspace would hold more than its",
            Limit::Depth => "the session's workspace would hold, or holds, directories nested deeper than its",
            Limit::Listings => "it listed more directories at once, one in another, than its",
            Limit::Unmeasured => "nothing can be written to the session's workspace, which cannot be measured:",
            Limit::Home => "all sessions and the store together would hold more than their",
            Limit::Undo => "it would change what could not be undone:",
            Limit::Processes => "it ran more processes at once than its",
            Limit::Network => "it was to reach a host that nobody has allowed:",
            Limit::CompileTime => "compiling it took more processor time than",
            Limit::CompileMemory => "compiling it took more memory than",
        };
        write!(f, "{what} {}; the setting is {}", self.value, self.setting)?;
        match self.limit {
            Limit::Home => {
                write!(f, ", and reserve_mib there says how much of it, and of the disk, is left for kiso itself")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for LimitHit {}

/// The first limit that a call reached. Everything that enforces a limit shares it, because a trap may lose its type on its way
/// through frames of guest and host.
#[derive(Debug, Clone, Default)]
pub struct HitCell(Arc<OnceLock<LimitHit>>);

impl HitCell {
    /// Records a hit unless there is one already; returns it for use as an error.
    pub fn set(&self, hit: LimitHit) -> LimitHit {
        self.0.get_or_init(|| hit).clone()
    }

    /// The hit, if a limit was reached.
    pub fn get(&self) -> Option<LimitHit> {
        self.0.get().cloned()
    }
}

/// The kind of work that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetKind {
    /// One call of a skill.
    Skill,
    /// An MCP server that is a component.
    Server,
    /// An exec task with all its processes.
    Exec { processes: u64, output_mib: u64 },
}

/// The limits of one call: `config.toml`, narrowed or widened by what the skill was granted.
#[derive(Debug, Clone)]
pub struct Budget {
    /// The kind of work. Messages for people depend on it.
    pub of: BudgetKind,
    pub timeout: Duration,
    /// MiB over all memories.
    pub memory_mib: u64,
    pub stack_kib: u64,
    pub output_kib: u64,
    pub log_lines: u64,
    pub log_kib: u64,
    pub host_calls: u64,
    pub open_files: u64,
    pub write_mib: u64,
    pub workspace_mib: u64,
    pub files: u64,
    /// Tables of an instance.
    pub tables: u64,
    /// Elements over all tables of an instance. Large interpreters need some 20,000.
    pub table_elements: u64,
}

/// Levels of directories that may be made below a workspace: listing and measuring a tree takes a handle for each.
pub const MAX_LEVELS: usize = 64;

/// Directory listings that a guest may hold open at once: one for each level of a tree that is being deleted.
pub const MAX_LISTINGS: usize = 100;

/// Handles that a process of an exec task may always hold: deleting a tree takes two for each level that may be made.
const MIN_HANDLES: u64 = 512;

/// Most entries of the engine's table of a component of WASI 0.3. Half of them may be calls that wait, each with a stack of its own.
pub const MAX_ENTRIES: usize = 2_048;

/// Linear memories in one instance: a component of several modules has one for each.
pub const MEMORIES: usize = 8;

/// Most bytes that the header fields of one request may hold, names, values and bookkeeping together.
pub const HEADER_BYTES: usize = 128 << 10;

impl Budget {
    /// The limits for a skill that was granted this much memory and time.
    pub fn new(config: &EngineConfig, memory_mib: u64, timeout_s: u64) -> Self {
        Self {
            of: BudgetKind::Skill,
            timeout: Duration::from_secs(timeout_s.min(config.max_timeout_s)),
            memory_mib: memory_mib.min(config.max_memory_mib),
            stack_kib: config.stack_kib,
            output_kib: config.output_kib,
            log_lines: config.log_lines,
            log_kib: config.log_kib,
            host_calls: config.host_calls,
            open_files: config.open_files,
            write_mib: config.write_mib,
            workspace_mib: config.workspace_mib,
            files: config.max_files,
            tables: config.tables,
            table_elements: config.table_elements,
        }
    }

    /// The limits of an MCP server that is a component.
    pub fn server(config: &EngineConfig, memory_mib: u64, timeout_s: u64) -> Self {
        Self { of: BudgetKind::Server, ..Self::new(config, memory_mib, timeout_s) }
    }

    /// The limits of an exec task.
    pub fn exec(exec: &ExecConfig, engine: &EngineConfig) -> Self {
        Self {
            of: BudgetKind::Exec { processes: exec.max_processes, output_mib: exec.max_output_mib },
            timeout: Duration::from_secs(exec.timeout_s),
            memory_mib: exec.memory_mib,
            write_mib: exec.write_mib,
            // Bounded by the pool, and the bundled components do not grow theirs.
            tables: u64::MAX,
            table_elements: u64::MAX,
            ..Self::new(engine, 0, 0)
        }
    }

    /// The limits of an uploaded file: those of the workspace. The gateway limits its size.
    pub fn upload(engine: &EngineConfig) -> Self {
        Self { write_mib: engine.workspace_mib, ..Self::new(engine, 0, 0) }
    }

    /// Handles that an instance may hold at once.
    pub fn handles(&self) -> u64 {
        match self.of {
            BudgetKind::Skill | BudgetKind::Server => self.open_files,
            BudgetKind::Exec { .. } => self.open_files.max(MIN_HANDLES),
        }
    }

    /// Handles of every kind that a component of WASI 0.3 may hold at once. A file that is read takes four: itself, its stream, the
    /// stream's end, and what waits for them.
    pub fn component_handles(&self) -> usize {
        usize::try_from(self.handles().saturating_mul(4)).unwrap_or(usize::MAX)
    }

    /// Entries of the engine's table of a component of WASI 0.3: each end of a stream or a future, each call that has not returned, and
    /// each call that waits.
    pub fn concurrent_entries(&self) -> usize {
        usize::try_from(self.handles().saturating_mul(8)).unwrap_or(usize::MAX).min(MAX_ENTRIES)
    }

    /// Most bytes that an instance may hand to the host at once. A list whose items all point at the same bytes would otherwise
    /// make the host allocate a thousand times what the guest holds.
    pub fn transfer_bytes(&self) -> usize {
        match self.of {
            BudgetKind::Skill | BudgetKind::Server => 16 << 20,
            BudgetKind::Exec { .. } => 32 << 20,
        }
    }

    /// Bytes that may be written to standard output, and as many to standard error.
    pub fn output_bytes(&self) -> u64 {
        match self.of {
            BudgetKind::Skill | BudgetKind::Server => self.output_kib << 10,
            BudgetKind::Exec { output_mib, .. } => output_mib << 20,
        }
    }

    /// The limits, as a trace shows them beside the use.
    pub fn allowance(&self) -> Allowance {
        let (processes_at_once, host_calls) = match self.of {
            BudgetKind::Skill | BudgetKind::Server => (0, self.host_calls),
            BudgetKind::Exec { processes, .. } => (processes, 0),
        };
        Allowance {
            millis: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: self.memory_mib << 20,
            written_bytes: self.write_mib << 20,
            host_calls,
            processes_at_once,
            output_bytes: self.output_bytes(),
        }
    }

    /// The hit of a limit of this budget, with its value and setting.
    pub fn hit(&self, limit: Limit) -> LimitHit {
        let seconds = self.timeout.as_secs_f64();
        let (value, setting) = match (limit, self.of) {
            (Limit::Time, BudgetKind::Server) => {
                (format!("{seconds} s"), "timeout_s of its [mcp.NAME] (at most [engine] max_timeout_s) in config.toml")
            }
            (Limit::Memory, BudgetKind::Server) => (
                format!("{} MiB", self.memory_mib),
                "memory_mib of its [mcp.NAME] (at most [engine] max_memory_mib) in config.toml",
            ),
            (Limit::Time, BudgetKind::Exec { .. }) => (format!("{seconds} s"), "[exec] timeout_s in config.toml"),
            (Limit::Memory, BudgetKind::Exec { .. }) => {
                (format!("{} MiB", self.memory_mib), "[exec] memory_mib in config.toml")
            }
            (Limit::CallWrites, BudgetKind::Exec { .. }) => {
                (format!("{} MiB", self.write_mib), "[exec] write_mib in config.toml")
            }
            (Limit::OpenFiles, BudgetKind::Exec { .. }) => {
                (format!("{}", self.handles()), "[engine] open_files in config.toml, where it is more than 512")
            }
            (Limit::Transfer, BudgetKind::Exec { .. }) => {
                (format!("{} MiB", self.transfer_bytes() >> 20), "fixed; pass large data in files and pipes")
            }
            (Limit::Processes, BudgetKind::Exec { processes, .. }) => {
                (format!("{processes}"), "[exec] max_processes in config.toml")
            }
            (Limit::Output, BudgetKind::Exec { output_mib, .. }) => {
                (format!("{output_mib} MiB"), "[exec] max_output_mib in config.toml")
            }
            (limit, _) => self.of_call(limit),
        };
        LimitHit { limit, value, setting: setting.to_owned() }
    }

    fn of_call(&self, limit: Limit) -> (String, &'static str) {
        let seconds = self.timeout.as_secs_f64();
        match limit {
            Limit::Time => (
                format!("{seconds} s"),
                "`timeout_s` in the skill's grant (at most [engine] max_timeout_s in config.toml)",
            ),
            Limit::Memory => (
                format!("{} MiB", self.memory_mib),
                "`memory_mib` in the skill's grant (at most [engine] max_memory_mib in config.toml)",
            ),
            Limit::Tables => (format!("{} elements", self.table_elements), "[engine] table_elements in config.toml"),
            Limit::Stack => (format!("{} KiB", self.stack_kib), "[engine] stack_kib in config.toml"),
            Limit::Output => (format!("{} KiB", self.output_kib), "[engine] output_kib in config.toml"),
            Limit::Log => (
                format!("{} lines or {} KiB", self.log_lines, self.log_kib),
                "[engine] log_lines and log_kib in config.toml",
            ),
            Limit::HostCalls => (format!("{}", self.host_calls), "[engine] host_calls in config.toml"),
            Limit::Transfer => (format!("{} MiB", self.transfer_bytes() >> 20), "fixed; pass large data in files"),
            Limit::Headers => (format!("{} KiB", HEADER_BYTES >> 10), "fixed"),
            Limit::OpenFiles => (format!("{}", self.open_files), "[engine] open_files in config.toml"),
            Limit::CallWrites => (format!("{} MiB", self.write_mib), "[engine] write_mib in config.toml"),
            Limit::Workspace => (format!("{} MiB", self.workspace_mib), "[engine] workspace_mib in config.toml"),
            Limit::Files => (format!("{} files and directories", self.files), "[engine] max_files in config.toml"),
            Limit::Depth => {
                (format!("{MAX_LEVELS} levels"), "fixed; move what lies deeper up, or delete it, where kiso runs")
            }
            Limit::Listings => (
                format!("{MAX_LISTINGS}"),
                "fixed; kiso did not create a tree that is nested deeper than this: flatten it on the machine that runs kiso",
            ),
            Limit::Unmeasured => ("an error of its disk".to_owned(), "none: the log says what is in the way"),
            Limit::Home => ("room".to_owned(), "[limits] home_mib in config.toml"),
            Limit::Undo => ("room".to_owned(), "[undo] max_mib and too_large in config.toml"),
            Limit::Processes => ("1".to_owned(), "fixed; a skill starts nothing"),
            Limit::CompileTime | Limit::CompileMemory | Limit::Network => unreachable!("no budget has it"),
        }
    }
}

/// The longest start of `text` that has at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
