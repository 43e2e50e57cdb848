//! `config.toml`: the administrator's settings, validated before anything starts.
//!
//! Each key is declared once, below, with its default, its range, its description and when a change takes effect (`from`). The
//! commented file of a fresh home, the documentation and the validation are all generated from that list ([`KEYS`]). Unknown
//! keys, wrong types and values out of range are errors with line and column, and all of them are reported at once.
//!
//! ```toml
//! model = "reflex"
//!
//! [limits]
//! max_parse_retries = 3
//! ```

mod change;
mod channel;
mod command;
mod connected;
mod edit;
mod fields;
mod folder;
mod hook;
mod key;
mod mcp;
mod model;
mod mount;
mod network;
mod own;
mod page;
mod parse;
mod pill;
mod preset;
mod provider;
mod scale;
mod show;
mod user;
mod webhook;

pub use change::ConfigChange;
pub use channel::{ChannelSettings, TokenPlace};
pub use command::{COMMAND_NAMES, Command};
pub use connected::{ConnectedModel, ConnectedModels, connected_provider};
pub use edit::NotSet;
pub use fields::{NAME_RULE, is_name};
pub use folder::FolderSettings;
pub use hook::{EventField, EventPart, HookAuth, HookCondition, HookSettings, HookTemplate, TemplatePiece};
pub use key::{Effect, KEYS, Key, Kind, NamedTable, SECTIONS, Section};
pub use mcp::{CommandPlace, ComponentPlace, McpPlace, McpSettings, RemotePlace, name_and_value, name_and_variable};
pub use model::{ModelName, ModelSettings};
pub use mount::Mount;
pub use parse::{ConfigError, Problem};
pub use pill::{PillEffort, PillSettings};
pub use preset::{NotMerged, PRESETS, Preset};
pub use provider::{AbilityUse, Provider, ProviderKind};
pub use scale::{DEFAULT_MAX_OUTPUT, LARGE_CONTEXT, Scale};
pub use webhook::{WEBHOOK_EVENTS, WebhookSettings, WebhookUrl, check_webhook_url};

use crate::home::Home;
use crate::role::Role;
use key::settings;
use kiso_plan::network::NetworkRule;
use std::io::Read;

settings! {
    top from NextRun {
        /// Model for every role without its own: "PROVIDER:MODEL", "reflex" (built-in rules) or "scripted:FILE" (replays a file). Without a prefix, a model of the first provider.
        model: Text("reflex"),
    }

    /// The model of a single role, if it differs from the one above.
    models: Models from NextRun {
        each role: Choice(), Role::DOES
    }

    /// Models to ask, in this order, if the first choice does not answer or refuses.
    fallbacks: Fallbacks from NextRun {
        /// For every role without its own list.
        all: List(8),
        each role: List(8), Role::FOR_EACH
    }

    /// How model endpoints are called.
    llm: Llm from NextRun {
        /// Model calls at once, in all sessions and processes of the home; more wait, and calls for people go first.
        max_concurrent_llm: Int(2, 1, 64),
        /// Seconds to establish a connection.
        connect_timeout_s: Int(10, 1, 300),
        /// Seconds from a request to the first piece of its answer. A local model reads a long prompt slowly.
        first_token_timeout_s: Int(120, 1, 3_600),
        /// Seconds from one piece of an answer to the next.
        next_token_timeout_s: Int(60, 1, 3_600),
        /// Seconds for a whole answer, whatever the other timeouts allow.
        total_timeout_s: Int(600, 1, 86_400),
        /// Attempts with one model before its fallback is asked.
        max_attempts: Int(3, 1, 10),
        /// Maximum seconds to wait before the next attempt. If a provider asks for more, its fallback is asked at once.
        max_retry_wait_s: Int(30, 0, 3_600),
        /// Failures in a row after which calls to a model pause.
        breaker_failures: Int(5, 1, 100),
        /// Seconds of that pause; then one call tries the model.
        breaker_pause_s: Int(30, 1, 3_600),
    }

    /// Limits of one run. A run that reaches a limit ends with a message that says so.
    limits: Limits from NextRun {
        /// How often a model can correct an answer that cannot be parsed.
        max_parse_retries: Int(3, 0, 20),
        /// How often in a row a reviewer can request a fix of the same task.
        max_review_depth: Int(3, 0, 20),
        /// How often a message can be replanned.
        max_replan_depth: Int(3, 0, 20),
        /// Tasks of a plan, including those that a reviewer adds.
        max_tasks: Int(50, 1, 500),
        /// Total tokens of all model calls of a run, in and out.
        max_tokens_per_run: Int(500_000, 1_000, 1_000_000_000),
        /// Rounds of tool calls in one task.
        max_tool_call_rounds: Scaled(scale::ROUNDS, 1, 100),
        /// How often a finished run can continue with messages that arrived meanwhile.
        max_cycles: Int(5, 1, 100),
        /// Cost in US cents of all model calls of a run; 0 means unlimited. Needs prices, see `[model_settings]`.
        max_cost_cents_per_run: Int(0, 0, 10_000_000),
        /// Tokens of all model calls of a session; 0 means unlimited.
        max_tokens_per_session: Int(0, 0, 1_000_000_000_000),
        /// Cost in US cents of all model calls of a session; 0 means unlimited.
        max_cost_cents_per_session: Int(0, 0, 10_000_000),
        /// Tokens of all model calls of a day (UTC); 0 means unlimited.
        max_tokens_per_day: Int(0, 0, 1_000_000_000_000),
        /// Cost in US cents of all model calls of a day (UTC); 0 means unlimited.
        max_cost_cents_per_day: Int(0, 0, 10_000_000),
        /// Tokens above which a message moves to the scratchpad and a preview replaces it.
        input_limit_tokens: Int(6_000, 100, 1_000_000),
        /// Tokens above which the output of a tool, a command line or a skill moves to the scratchpad and a preview replaces it.
        tool_output_limit_tokens: Scaled(scale::RESULT_TOKENS, 100, 1_000_000),
        /// Size in MiB of a file copied into a workspace with --file.
        file_mib: Int(256, 1, 65_536),
        /// Number of sessions, including those of subagents and schedules; more are refused until you delete some.
        max_sessions: Int(10_000, 1, 1_000_000) from AtOnce,
        /// Total size in MiB of all workspaces and the store; more is refused until you delete something.
        home_mib: Int(16_384, 64, 1_073_741_824) from AtOnce,
        /// Space in MiB, of the disk and of home_mib, at most a sixteenth of each, that skills and command lines leave for messages, replies and undo.
        reserve_mib: Int(64, 0, 1_048_576) from AtOnce,
    }

    /// The parts of a conversation that models see.
    context: Context from NextRun {
        /// Context size in tokens of a model without context_budget in `[model_settings]`.
        budget_tokens: Int(16_000, 1_000, 10_000_000),
        /// Messages of the current segment.
        sliding_window: Scaled(scale::WINDOW, 1, 1_000),
        /// Messages of the current segment that a subagent sees.
        subagent_window: Int(5, 1, 1_000),
        /// Messages after which a session is summarized.
        summarize_threshold: Int(40, 2, 10_000),
        /// Facts above which they are consolidated.
        knowledge_max_facts: Int(100, 1, 10_000),
    }

    /// How memories are found.
    memory: Memory from NextRun {
        /// Model that finds passages by meaning, even if they share no word with the query: "PROVIDER:MODEL" of a provider of kind "openai". Without it, passages are found by words alone.
        embedding_model: Choice(),
        /// Dimensions of its vectors; 0 leaves the choice to the model. Not every model supports others.
        embedding_dimensions: Int(0, 0, 4_096),
        /// Passages per request to it.
        embedding_batch: Int(32, 1, 256),
        /// Seconds for its response to such a request.
        embedding_timeout_s: Int(60, 1, 600),
        /// Milliseconds for its response to a query. After that, the search uses words alone.
        query_timeout_ms: Int(1_500, 1, 60_000),
        /// Minimum similarity in percent for a passage to count as near in meaning. Models differ in their scale.
        min_likeness_percent: Int(30, 0, 99),
    }

    /// Sound.
    audio: Audio from NextRun {
        /// Model that writes down voice notes and attached recordings: "PROVIDER:MODEL" of a provider of kind "openai" with `/audio/transcriptions`. Without it, models are only told that there is a recording.
        transcription_model: Choice(),
    }

    /// How much is done for a message.
    routing: Routing from NextRun {
        /// Need for tools, estimated by the router, below which a message is answered without any.
        tool_need_threshold_percent: Int(30, 0, 100),
        /// Whether plain questions and greetings are recognized without a model.
        fast_path: Bool(true),
    }

    /// Limits of skills. They apply to each call, unless they say otherwise.
    engine: Engine from NextRun {
        /// Calls that run at once; further ones wait.
        max_calls: Int(8, 1, 256),
        /// Maximum memory in MiB that a manifest can request.
        max_memory_mib: Int(512, 1, 4_096),
        /// Memory in MiB of a skill whose manifest requests none.
        default_memory_mib: Int(64, 1, 4_096),
        /// Deadline in seconds of a skill whose manifest requests none. Time spent waiting counts.
        default_timeout_s: Int(30, 1, 86_400),
        /// Maximum deadline in seconds that a manifest can request.
        max_timeout_s: Int(600, 1, 86_400),
        /// Stack in KiB.
        stack_kib: Int(512, 64, 8_192),
        /// Output in KiB: reply, standard output and standard error, each.
        output_kib: Int(256, 1, 65_536),
        /// Log lines.
        log_lines: Int(1_000, 1, 1_000_000),
        /// Log in KiB.
        log_kib: Int(256, 1, 65_536),
        /// Calls into the host: files, clocks, requests, everything.
        host_calls: Int(1_000_000, 100, 1_000_000_000),
        /// Files, directories and streams open at once.
        open_files: Int(128, 8, 4_096),
        /// Data in MiB written to the workspace.
        write_mib: Int(64, 1, 65_536),
        /// Total size in MiB of a session's workspace.
        workspace_mib: Int(1_024, 1, 1_048_576),
        /// Total size in MiB of the files that all sessions share.
        shared_mib: Int(1_024, 1, 1_048_576),
        /// Total number of files and directories in a session's workspace.
        max_files: Int(10_000, 16, 10_000_000),
        /// Core instances in a component.
        instances: Int(64, 1, 1_000),
        /// Tables in a component.
        tables: Int(64, 1, 1_000),
        /// Elements of a table.
        table_elements: Int(200_000, 1_000, 10_000_000),
        /// Seconds of processor time, on all cores together, for compiling a skill.
        compile_timeout_s: Int(120, 1, 86_400),
        /// Memory in MiB for compiling a skill.
        compile_memory_mib: Int(1_024, 64, 65_536),
        /// Whether components of WASI 0.3 are loaded. Components of WASI 0.2 always are.
        wasi_0_3: Bool(true),
    }

    /// Which skills can be installed.
    skills: SkillRules from NextRun {
        /// Whether a skill must be signed by a key that `kiso skill trust add` knows. Bundled skills, and those already installed, need no signature.
        require_signature: Bool(false),
        /// Indexes of skills for `kiso skill search` and `add NAME`, each with the key that signs it, such as `https://example.org/index.json#RWQ…`; see docs/registry.md.
        index: List(16),
    }

    /// Limits of an exec task: one command line, with every process that it starts.
    exec: Exec from NextRun {
        /// Deadline in seconds.
        timeout_s: Int(60, 1, 86_400),
        /// Total memory in MiB of all processes.
        memory_mib: Int(512, 16, 1_024),
        /// Data in MiB written to files, including /tmp.
        write_mib: Int(256, 1, 65_536),
        /// Processes at once.
        max_processes: Int(64, 2, 512),
        /// Exec tasks at once; more wait.
        max_tasks: Int(4, 1, 64),
        /// Output in KiB kept of standard output and of standard error, each. If there is more, the middle is left out.
        output_kib: Int(256, 1, 65_536),
        /// Total output in MiB; more ends the task.
        max_output_mib: Int(256, 1, 65_536),
    }

    /// Data kept of the files that runs change, so that changes can be undone.
    undo: Undo from NextRun {
        /// Size in MiB of the data kept for a session; the oldest run is dropped first. 0 keeps nothing, and nothing can be undone.
        max_mib: Int(256, 0, 1_048_576),
        /// Days to keep it.
        keep_days: Int(7, 1, 36_500) from AtOnce,
        /// How a change of a file that does not fit into max_mib is handled: it is made and cannot be undone, or it is refused.
        too_large: Word("change", &["change", "refuse"]),
    }

    /// How long a run waits for an approval.
    approvals: ApprovalSettings from NextRun {
        /// Seconds until an unanswered card expires; what it asked for is then not carried out.
        expires_s: Int(86_400, 1, 31_536_000),
    }

    /// How data and actions that leave the sandbox are controlled.
    policy: PolicySettings from NextRun {
        /// Effects that were not decided from the user's own words: they wait for your approval (enforce), are done and logged (warn) or only done (off). With ask_always, every effect that a card can name waits for your approval, and others are refused. See docs/policy.md.
        effects: Word("enforce", &["enforce", "warn", "off", "ask_always"]),
        /// Agent Skills whose text counts as your own words, by name; that of all others counts as their publisher's. See docs/agent-skills.md.
        trusted_skills: List(64),
    }

    /// The same home on several machines: one serves it, the others stand by and take over. See docs/fleet.md.
    fleet: Fleet from Restart {
        /// Addresses of NATS servers with JetStream, with commas between them, such as "nats://10.0.0.2:4222". Empty: the home is on one machine.
        url: Choice(),
        /// This machine's name among the members: 1 to 32 of a-z, 0-9 and -. Empty: its host name.
        member: Choice(),
        /// Properties of this machine that others may not have, such as "gpu" or "at-home", each 1 to 32 of a-z, 0-9 and -: a skill can ask for one. Also without a fleet.
        labels: List(32),
        /// Name of the fleet, so that several can use the same servers.
        name: Text("kiso"),
        /// File with a token, or with USER:PASSWORD. Empty: none is needed.
        credentials: Choice(),
        /// File with certificates (PEM) that the server's certificate can be signed with; the connection must then be encrypted.
        ca: Choice(),
        /// Seconds without a sign of life after which another member takes over.
        lease_s: Int(6, 3, 600),
        /// Servers of a NATS cluster that keep a copy of everything.
        replicas: Int(1, 1, 5),
    }

    /// How `kiso serve` accepts messages and works on them.
    daemon: Daemon from AtOnce {
        /// Milliseconds to wait for another message of the session; messages that arrive in that time are answered together.
        debounce_ms: Int(1_500, 0, 60_000),
        /// Maximum number of concurrent runs; more wait. Subagents take at most three quarters of them.
        max_jobs: Int(10, 1, 100),
        /// Queued messages from people, across all sessions; more are refused.
        max_queued: Int(1_000, 1, 1_000_000),
        /// Seconds that shutdown waits for current runs; after that, they resume at the next start.
        shutdown_timeout_s: Int(60, 0, 3_600),
        /// How often a run is interrupted at the same step before it is held, because it may be the cause of crashes.
        hold_after: Int(2, 1, 1_000),
    }

    /// Runs that a run or the schedule starts, each in its own session.
    subagents: Subagents from NextRun {
        /// Model of a subagent if none is named; without it, the default model.
        model: Choice(),
        /// Levels of subagents below a conversation; 0 allows none.
        max_depth: Int(2, 0, 16),
        /// Unfinished subagents of one conversation, including those of its subagents.
        max_unfinished: Int(16, 0, 1_000),
        /// Unfinished subagents of all conversations.
        max_unfinished_total: Int(100, 0, 10_000),
    }

    /// Who kiso works for.
    user: User from NextRun {
        /// Time zone of the user, such as "Europe/Berlin"; without it, the system's. Models are given the time in it, and commands have it as TZ.
        time_zone: Choice(),
        /// Language and country of the user as a BCP 47 tag, such as "de-DE"; without it, that of LC_ALL, LC_TIME or LANG. Models and skills are given it.
        locale: Choice(),
    }

    /// Messages that are sent at set times.
    schedule: Schedule from AtOnce {
        /// Time zone of a schedule that names none, such as "Europe/Berlin"; without it, user.time_zone.
        time_zone: Choice(),
        /// Minimum seconds between two times of a schedule.
        min_interval_s: Int(60, 1, 86_400),
        /// Number of schedules.
        max_schedules: Int(100, 0, 10_000),
        /// Receipts kept for each schedule.
        keep_receipts: Int(100, 1, 100_000),
    }

    /// The log of `kiso serve`, on standard error.
    log: Log from AtOnce {
        /// The least severe level to log. `KISO_LOG` in the environment takes precedence.
        level: Word("info", &["error", "warn", "info", "debug", "trace"]),
        /// Format of a line: for people, or one JSON object.
        format: Word("text", &["text", "json"]),
    }

    /// Where programs and browsers reach `kiso serve`.
    gateway: Gateway from AtOnce {
        /// Address to listen on. An address that other machines can reach requires a token.
        bind: Text("127.0.0.1") from Restart,
        /// Port to listen on; 0 lets the system choose.
        port: Int(8_333, 0, 65_535) from Restart,
        /// Size in KiB of a request's body.
        max_body_kib: Int(2_048, 1, 1_048_576),
        /// Size in MiB of a file uploaded into a workspace.
        max_upload_mib: Int(64, 1, 65_536),
        /// Connections at once. A new one replaces an idle one.
        max_connections: Int(512, 1, 65_536) from Restart,
        /// Event streams at once; more are refused, so that connections remain for requests.
        max_streams: Int(128, 1, 65_536),
        /// Names of tokens that can act as administrator. Without any, all tokens of scope admin can.
        admins: List(64),
        /// Seconds for a request's head, and again for its body. An idle connection is closed after this time.
        request_timeout_s: Int(30, 1, 3_600),
        /// Seconds after which a client that does not read its response is disconnected.
        stalled_timeout_s: Int(30, 1, 3_600),
    }

    /// How long data is kept. The daemon deletes older data when it is idle; 0 keeps it forever.
    retention: Retention from AtOnce {
        /// Days to keep a run's prompts.
        prompts_days: Int(30, 0, 36_500),
        /// Days to keep a run's steps and the outputs of its tasks.
        traces_days: Int(180, 0, 36_500),
        /// Days to keep a session after its last message, unless it is pinned. Its workspace, facts and memory stay.
        sessions_days: Int(0, 0, 36_500),
        /// Events kept for clients that were offline; one that missed more gets a `gap`.
        feed_entries: Int(100_000, 1_000, 10_000_000),
    }

    /// Requests of skills to the hosts that you granted.
    http: Http from NextRun {
        /// Size in MiB of a response.
        max_response_mib: Int(16, 1, 4_096),
        /// Seconds to establish a connection.
        connect_timeout_s: Int(10, 1, 300),
    }

    /// Requests of command lines to other hosts. See docs/network.md.
    network: Network from NextRun {
        /// Access to a host that no rule matches: its request is made (allow), you are asked (ask), or it is refused (deny).
        default: Word("ask", &["ask", "allow", "deny"]),
        /// File with certificates (PEM) that are trusted in addition to the system's; a relative path begins in the home.
        ca_file: Choice() from Restart,
        /// Size in MiB of a response.
        max_response_mib: Int(1_024, 1, 1_048_576),
        /// Seconds to establish a connection.
        connect_timeout_s: Int(10, 1, 300),
    }

    tables {
        /// Where models are reached, in the order of the file: the first serves model strings without a prefix.
        providers: Provider from provider::TABLE,
        /// Properties of single models.
        model_settings: ModelSettings from model::TABLE,
        /// Workflows, in the order of the file.
        pills: PillSettings from pill::TABLE,
        /// Directories of this machine that exec tasks see.
        mounts: Mount from mount::TABLE,
        /// Which hosts command lines may reach, in the order of the file; the first matching rule counts.
        network_rules: NetworkRule from network::TABLE,
        /// Folders that may be opened by name, in the order of the file.
        folders: FolderSettings from folder::TABLE,
        /// URLs that are notified of replies, in the order of the file.
        webhooks: WebhookSettings from webhook::TABLE,
        /// Programs whose events become messages, in the order of the file.
        hooks: HookSettings from hook::TABLE,
        /// MCP servers whose tools plans may use, in the order of the file.
        mcp: McpSettings from mcp::TABLE,
        /// Messaging services through which people write, in the order of the file.
        channels: ChannelSettings from channel::TABLE,
        /// Commands that `/help` lists, in the order of the file; if empty, it lists kiso's own.
        commands: Command from command::TABLE,
    }
}

/// Largest `config.toml` that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Reads a regular file. Anything else is an error: a named pipe would block, and a device has no end.
fn read_file(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let file = crate::home::open_file(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(std::io::Error::other(format!("it has more than {} MiB", MAX_FILE >> 20)));
    }
    Ok(bytes)
}

/// Defaults that must not exceed the maximum.
const ORDERED: [(&str, &str, &str); 2] =
    [("engine", "default_memory_mib", "max_memory_mib"), ("engine", "default_timeout_s", "max_timeout_s")];

impl Config {
    /// Reads the home's `config.toml`. In a fresh home, writes it first. Refuses settings that would expose the home itself.
    pub fn load(home: &Home) -> Result<Config, ConfigError> {
        let path = home.config_path();
        if !path.exists() {
            home.write_new(&path, Config::default_file().as_bytes())?;
        }
        let bytes = read_file(&path).map_err(|error| ConfigError::Unreadable { path: path.clone(), error })?;
        let checked = |config: Config| {
            let text = String::from_utf8_lossy(&bytes);
            own::check(&config, &text, home)?;
            own::trust_ca_file(&config, &text, home)?;
            Ok(config)
        };
        Config::parse(&bytes).and_then(checked).map_err(|problems| ConfigError::Invalid { path, problems })
    }

    /// Parses and validates the text of a `config.toml`. Absent keys have their defaults.
    pub fn parse(text: &[u8]) -> Result<Config, Vec<Problem>> {
        parse::parse(text)
    }

    /// Returns the `config.toml` of a fresh home.
    pub fn default_file() -> &'static str {
        DEFAULT_FILE
    }
}

const DEFAULT_FILE: &str = "\
# The configuration of kiso. docs/configuration.md describes every key, and `kiso config show` prints the values in effect.
# `kiso config set KEY VALUE` changes one. Put secrets into the environment or `kiso secret`, not into this file.

# The model of every role: \"PROVIDER:MODEL\", or \"reflex\", the built-in rules.
model = \"reflex\"

# [limits]
# max_tokens_per_day = 2_000_000

# [network]
# default = \"deny\"

# [folders.photos]
# path = \"~/Pictures\"
";

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn the_default_file_has_the_defaults_and_valid_comments() {
        let file = Config::default_file();
        assert_eq!(Config::parse(file.as_bytes()).unwrap(), Config::default());
        assert!(file.lines().count() <= 15);
        let shown: Vec<_> = file.lines().skip(4).map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
        let config = Config::parse(shown[1..].join("\n").as_bytes()).unwrap();
        assert_eq!((config.limits.max_tokens_per_day, config.folders.len()), (2_000_000, 1));
    }

    /// Each value that documentation gives as an example is valid.
    #[test]
    fn examples_of_values_are_valid() {
        for key in KEYS {
            let table = if key.section.is_empty() { String::new() } else { format!("[{}]\n", key.section) };
            let text = format!("{table}{} = {}\n", key.name, key.example());
            Config::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
        }
    }

    #[test]
    fn examples_of_tables_are_valid() {
        let shown: String = NAMED.iter().map(NamedTable::example).collect();
        let config = Config::parse(shown.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}\n{shown}"));
        let counts = [config.providers.len(), config.model_settings.len(), config.pills.len(), config.mounts.len()];
        assert_eq!((config.folders.len(), config.network_rules.len()), (1, 2));
        let tables =
            [config.webhooks.len(), config.hooks.len(), config.mcp.len(), config.channels.len(), config.commands.len()];
        assert_eq!((counts, tables), ([1, 1, 1, 2], [1, 1, 1, 2, 2]));
    }

    #[test]
    fn values_and_overrides_are_taken() {
        let config = Config::parse(
            b"model = \"scripted:a\"\nlimits.file_mib = 1_000\n[models]\nplanner = \"reflex\"\n\
              [fallbacks]\nall = [\"reflex\"]\n[routing]\nfast_path = false\n[http]\nmax_response_mib = 2\n",
        )
        .unwrap();
        assert_eq!((config.model_of("planner"), config.model_of("reviewer")), ("reflex", "scripted:a"));
        assert_eq!(
            (config.fallbacks.all.as_slice(), config.routing.fast_path),
            (["reflex".to_owned()].as_slice(), false)
        );
        assert_eq!((config.limits.file_mib, config.engine.max_calls), (1_000, 8));
        assert_eq!(config.http.max_response_mib, 2);
    }

    #[test]
    fn unknown_keys_are_named_with_their_place_and_what_is_allowed() {
        assert_eq!(
            problems("\n  modle = \"reflex\"\n"),
            "2:3: unknown key modle: did you mean model? Allowed here: model, [approvals], [audio], [channels], [commands], [context], \
             [daemon], [engine], [exec], [fallbacks], [fleet], [folders], [gateway], [hooks], [http], [limits], [llm], [log], [mcp], [memory], [model_settings], [models], [network], \
             [pills], [policy], [providers], [retention], [routing], [schedule], [skills], [subagents], [undo], [user], [webhooks]\n"
        );
        assert_eq!(
            problems("[http]\nmax_response_mb = 1"),
            "2:1: unknown key http.max_response_mb: did you mean max_response_mib? Allowed here: connect_timeout_s, \
             max_response_mib\n"
        );
        let misplaced = problems("max_calls = 3");
        assert!(misplaced.contains("did you mean max_calls in [engine]?"), "{misplaced}");
        let table = problems("[enginge]\nmax_calls = 3");
        assert!(table.contains("1:2: unknown key enginge: did you mean [engine]?"), "{table}");
    }

    #[test]
    fn wrong_values_are_told_all_at_once() {
        assert_eq!(
            problems(
                "model = \"\"\n\n[limits]\nfile_mib = 0\nmax_replan_depth = \"3\"\n\
                 max_tokens_per_run = 99999999999999999999\n[models]\nworker = true\n\
                 [routing]\nfast_path = \"no\"\n[fallbacks]\nall = \"reflex\"\nactor = [\"reflex\", 3]\n\
                 worker = [\"a b\"]\nrouter = [\"reflex\",\"reflex\",\"reflex\",\"reflex\",\"reflex\",\"reflex\",\
                 \"reflex\",\"reflex\",\"reflex\"]\n"
            ),
            "1:9: model = \"\" is not allowed: it must have 1 to 200 characters and no spaces\n\
             4:12: limits.file_mib = 0 is out of range: 1 to 65536\n\
             5:20: limits.max_replan_depth must be an integer, and this is a string\n\
             6:22: limits.max_tokens_per_run = 99999999999999999999 is out of range: 1000 to 1000000000\n\
             8:10: models.worker must be a string, and this is a boolean\n\
             10:13: routing.fast_path must be true or false, and this is a string\n\
             12:7: fallbacks.all must be a list of strings, and this is a string\n\
             13:20: fallbacks.actor must be a list of strings, and this is an integer\n\
             14:11: fallbacks.worker = \"a b\" is not allowed: it must have 1 to 200 characters and no spaces\n\
             15:10: fallbacks.router has 9 entries; the most is 8\n"
        );
        assert!(problems("engine = 3").contains("1:10: [engine] must be a table, and this is an integer"));
        let negative = problems("[limits]\nfile_mib = -1");
        assert!(negative.contains("limits.file_mib = -1 is out of range"), "{negative}");
    }

    #[test]
    fn a_default_may_not_exceed_its_maximum() {
        assert_eq!(
            problems("[engine]\nmax_memory_mib = 32\n"),
            "2:18: engine.max_memory_mib = 32 is less than engine.default_memory_mib = 64 (the default): set both\n"
        );
        let given = problems("[engine]\ndefault_timeout_s = 900\n");
        assert!(
            given.contains("2:21: engine.default_timeout_s = 900 is more than engine.max_timeout_s = 600"),
            "{given}"
        );
    }

    proptest::proptest! {
        /// Any text gives a configuration or a list of problems whose places are in the text.
        #[test]
        fn nothing_in_a_file_is_too_odd(parts in proptest::collection::vec(odd(), 0..12)) {
            let text = parts.concat();
            if let Err(problems) = Config::parse(text.as_bytes()) {
                proptest::prop_assert!(!problems.is_empty());
                for problem in problems {
                    proptest::prop_assert!((1..=text.lines().count() + 1).contains(&problem.line), "{problem}\n{text}");
                }
            }
        }
    }

    fn odd() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        const NAMES: &[&str] = &[
            "providers",
            "model_settings",
            "pills",
            "models",
            "fallbacks",
            "exec",
            "mounts",
            "network",
            "rules",
            "folders",
            "llm",
            "routing",
        ];
        const KEYS: &[&str] = &[
            "kind",
            "base_url",
            "key_env",
            "template",
            "effort",
            "all",
            "actor",
            "fast_path",
            "context_budget",
            "model",
        ];
        const VALUES: &[&str] = &[
            "3",
            "-1.5",
            "true",
            "\"a:b\"",
            "\"openai\"",
            "[]",
            "[\"reflex\", 1]",
            "{ kind = \"openai\" }",
            "[{ host = \"a\" }]",
            "nan",
            "1979-05-27",
        ];
        prop_oneof![
            (prop::sample::select(NAMES), "[a-z:/\"]{0,4}").prop_map(|(name, sub)| format!("[{name}.{sub:?}]\n")),
            prop::sample::select(NAMES).prop_map(|name| format!("[{name}]\n")),
            (prop::sample::select(KEYS), prop::sample::select(VALUES)).prop_map(|(k, v)| format!("{k} = {v}\n")),
            (prop::sample::select(NAMES), prop::sample::select(VALUES)).prop_map(|(k, v)| format!("{k} = {v}\n")),
            "\\PC{0,8}\n",
        ]
    }

    #[test]
    fn what_is_not_toml_is_refused_with_line_and_column() {
        let text = problems("model = \"reflex\"\n[limits\n");
        assert!(text.starts_with("2:8: "), "{text}");
        assert!(problems("model = \"a\"\nmodel = \"b\"").starts_with("2:1: duplicate key"));
        let bytes = Config::parse(b"model = \"\xff\"").unwrap_err();
        assert_eq!(bytes[0].to_string(), "1:10: this is not UTF-8 text");
    }
}
