//! Performs the steps of a run: the only code that calls models and tools for a run, and records its events.
//!
//! ```text
//! Run::next_step ──▶ perform ──▶ Run::accept ──▶ commit the event ──▶ tell the listener ──▶ next step
//! ```
//!
//! An event is committed before the next effect and before the next call of a paid model, and the start of an effect is a
//! separate event. So the log shows whether a run was interrupted, and the run can be resumed ([`RunExecutor::resume`]).
//!
//! | stored | before |
//! |---|---|
//! | the start of a task or tool, with everything that led to it | it is started |
//! | an answer of a paid model, with its price | it is used |
//! | the reply with the outcome, and notifications for webhooks and the feed | they are sent |
//!
//! If all models are built in, the route, the plan and the start of the first task are one commit; the last result, the reply and
//! the session's name are another. The result of each earlier task is committed with the start of the next one.

mod action;
mod admit;
mod agent_skills;
mod approve;
mod arrival;
mod attached;
mod background;
mod begin;
mod cancel;
mod caps;
mod clean;
mod connected;
mod credential;
mod current;
mod dialog;
mod earlier;
mod elsewhere;
mod embed;
mod folder;
mod form;
mod heard;
mod log;
mod member;
mod models;
mod network;
mod pause;
mod perform;
mod place;
mod prompt;
mod review;
mod rights;
mod run_context;
mod said;
mod session;
mod shared;
mod spent;
mod subagent;
mod undo;
mod unfinished;
mod voice;
mod window;
mod workspace;

pub use self::approve::{AlwaysScope, CardReply, CardReplyError};
pub use self::cancel::Cancel;
pub use self::clean::clean_title;
pub use self::connected::{ConnectError, ConnectedKeys, MAX_KEY, ProviderEntry};
pub use self::earlier::EarlierWork;
pub use self::folder::{FolderFailure, FolderView, RestingFolders, RevertedAcceptance};
pub use self::log::SEALED_RUN;
pub use self::models::{ConfiguredModel, ModelError, Models, TokenBudget};
pub use self::shared::{SharedEditDone, SharedFailure};
pub use self::undo::UndoFailure;
pub use self::voice::{Listener, Thought};

use self::current::Current;
use self::heard::HeardListener;
use self::log::Log;
pub(crate) use self::pause::Pause;
use self::run_context::RunContext;
use self::unfinished::RunSet;
use crate::mcp::McpServers;
use crate::node::{RoleError, output};
use crate::tool::Tools;
use kiso_base::compute::Overdue;
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_base::role::Role;
use kiso_graph::outcome::Outcome;
use kiso_graph::run::{Policy, Run};
use kiso_graph::step::{IllegalResult, Step, StepResult};
use kiso_llm::reflex;
use kiso_plan::block::Block;
use kiso_plan::limits::LimitReached;
use kiso_plan::plan::TaskKind;
use kiso_plan::report::often;
use kiso_sandbox::effect::member::{FleetMember, may_act};
use kiso_sandbox::effect::overlay::SharedHistory;
use kiso_sandbox::effect::undo::Undo;
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::{LimitHit, Skills};
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::{Vault, VaultError};
use kiso_store::store::{RunId, Store, StoreError};
use std::sync::Arc;

/// Everything that a run needs from its environment.
#[derive(Debug, Clone)]
pub struct RunExecutor {
    pub home: Home,
    /// The configuration for this work; [`RunExecutor::newest`] has the newest.
    pub config: Arc<Config>,
    /// The configuration, models and tools that were reloaded since the process started.
    current: Current,
    pub store: Store,
    pub tools: Tools,
    pub models: Models,
    connected_keys: ConnectedKeys,
    pub vault: Vault,
    /// Undo data of the files that runs change.
    undo: Undo,
    /// Ends the work between two steps.
    pub(crate) pause: Pause,
    /// The runs of this process.
    ours: RunSet,
    /// Access to the fleet; `None` for a home on one machine.
    pub member: Option<Arc<dyn FleetMember>>,
}

/// Why the executor could not be created.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not continue. Failures within the work are not such errors; they end the run with an outcome.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Home(#[from] kiso_base::home::HomeError),
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the run took a step that its graph does not allow; this is a bug in kiso: {0}")]
    Illegal(#[from] IllegalResult),
    #[error("an event could not be written down or read: {0}")]
    Json(#[from] serde_json::Error),
    /// Nothing was started.
    #[error("storage limit reached: {0}; delete sessions or files that you no longer need")]
    HomeFull(LimitHit),
    /// Only for background work, which waits until the limit allows it.
    #[error("the limit {} of {} is reached", .0.limit, .0.value)]
    OverLimit(LimitReached),
    /// Only for background work; it is retried later.
    #[error("{0}")]
    Background(String),
    #[error("the run cannot be resumed: {0}")]
    NotResumable(String),
    #[error("what was cut off in the session {session} cannot be rolled back: {error}")]
    Undo { session: SessionName, error: std::io::Error },
    #[error(transparent)]
    Overdue(#[from] Overdue),
    /// The run is held until a person retries it.
    #[error("the run was cut off {}, and is not resumed automatically", often(*times))]
    CutOff { times: u32 },
    /// A person was asked; the run is resumed after the answer.
    #[error(
        "the run waits for approval {approval}: `kiso approval accept {approval}` or `kiso approval refuse {approval}` answers it"
    )]
    Waiting { approval: i64 },
    /// The run stays unchanged; [`RunExecutor::resume`] continues it.
    #[error("the run was left between two steps, to be taken up later")]
    Paused,
}

impl DriveError {
    /// Returns whether the run itself is the problem, so that a retry will not help.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Illegal(_) | Self::Json(_) | Self::NotResumable(_) | Self::Vault(VaultError::Closed { .. })
        )
    }
}

/// The `kind` of the first event: the run's specification. All others are kinds of [`StepResult`].
pub const SPEC: &str = "spec";

impl RunExecutor {
    /// Returns an executor for the home of `skills`. Keys of models and servers come from `environment`, and those of connected
    /// providers from the store. A missing key of a model is an error.
    pub fn open(
        skills: Skills,
        exec: Exec,
        store: Store,
        environment: fn(&str) -> Option<String>,
    ) -> Result<RunExecutor, OpenError> {
        let drive = RunExecutor::open_anyway(skills, exec, store, environment)?;
        match drive.models.unready().first() {
            Some(error) => Err(error.clone().into()),
            None => Ok(drive),
        }
    }

    /// The same for a daemon: a model without its key only reports that when it is called, and everything else works.
    pub fn open_anyway(
        skills: Skills,
        exec: Exec,
        store: Store,
        environment: fn(&str) -> Option<String>,
    ) -> Result<RunExecutor, OpenError> {
        let (home, config) = (skills.home().clone(), skills.config().clone());
        let servers = McpServers::open(&config, store.clone(), skills.clone(), environment);
        let vault = Vault::open(&home);
        let connected_keys = ConnectedKeys::load(&store, &vault)?;
        Ok(RunExecutor {
            models: Models::open_anyway(&config, connected_keys.environment(environment))?.in_home(&home),
            connected_keys,
            tools: Tools::new(skills, exec, store.clone(), servers),
            vault,
            undo: SharedHistory::undo(home.clone()),
            home,
            config: config.into(),
            store,
            current: Current::default(),
            pause: Pause::new(),
            ours: RunSet::default(),
            member: None,
        })
    }

    /// Checks that there is space for more messages and their results.
    pub async fn has_room(&self) -> Result<(), DriveError> {
        let skills = self.tools.skills().clone();
        match tokio::task::spawn_blocking(move || skills.home_is_full()).await {
            Ok(Some(hit)) => Err(DriveError::HomeFull(hit)),
            _ => Ok(()),
        }
    }

    /// Returns whether a message specifies all work explicitly. Such a message is never sent to a model.
    pub fn is_explicit(&self, message: &str) -> bool {
        reflex::is_explicit(message, &self.tools.cards())
    }

    /// Returns an executor with only the built-in rules, if the message is explicit and other models are configured.
    fn for_message(&self, message: &str) -> Result<Option<RunExecutor>, DriveError> {
        if self.models.are_free() || !self.is_explicit(message) {
            return Ok(None);
        }
        let models = self.models.built_in(&self.config)?;
        Ok(Some(RunExecutor { models, ..self.clone() }))
    }

    #[tracing::instrument(name = "drive.run", level = "debug", skip_all, fields(session = %log.session, run = %log.id))]
    #[expect(clippy::expect_used, reason = "a run that has ended has an outcome")]
    async fn drive(
        &self,
        mut run: Run,
        mut log: Log,
        mut at_work: RunContext<'_>,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<(RunId, Outcome), DriveError> {
        let in_hand = self.ours.take(&log.id);
        log.member.clone_from(&self.member);
        let mut listener = HeardListener::new(listener);
        let unfinished = match self.perform_all(&mut run, &mut log, &mut at_work, cancel, &mut listener).await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                // Stores the events so far, for inspection or for resuming the run. The obstacle may prevent this, too.
                let _ = log.leave().await;
                if matches!(error, DriveError::Paused | DriveError::Waiting { .. }) {
                    let id = log.id.clone();
                    self.store.write(move |tx| tx.uncount_resumed(&id)).await?;
                }
                return Err(error);
            }
        };
        let outcome = run.outcome().cloned().expect("a run that has ended has an outcome");
        let outcome = Outcome { thought_ms: at_work.thought_ms, ..heard::with_unfinished(outcome, unfinished) };
        let title = match at_work.earlier.messages.is_empty() {
            // A failed title is retried after the reply.
            true => self.first_title(&log.session, &run, &output::reply(&outcome)).await.unwrap_or_default(),
            false => None,
        };
        let full = at_work.window_is_full();
        log.finish(&outcome, &run, &at_work.secrets, &self.config.context, title, full).await?;
        in_hand.ended();
        self.close_undo(&log.session, &log.id);
        tracing::debug!(events = log.seq, "the run has ended");
        Ok((log.id, outcome))
    }

    /// Performs all steps until the run has ended. Returns the text of the interrupted step, if a step was interrupted.
    async fn perform_all(
        &self,
        run: &mut Run,
        log: &mut Log,
        at_work: &mut RunContext<'_>,
        cancel: &Cancel,
        listener: &mut HeardListener<'_>,
    ) -> Result<Vec<Block>, DriveError> {
        let (store, id) = (self.store.clone(), log.id.clone());
        // A resumed run may have been cancelled earlier, so this is checked before it starts anything.
        let asked_before = log.seq > 0 && cancel::asked(&store, &id).await;
        let mut wanted = std::pin::pin!(cancel.wanted(asked_before, &store, &id));
        let mut cancelled = false;
        let mut unfinished = Vec::new();
        // A resumed run stays on this machine: two sessions that prefer different machines would otherwise move each other
        // forever.
        if log.seq == 0 {
            self.find_preferred_machine(&log.session).await?;
        }
        loop {
            let step = run.next_step();
            if let Step::Ended = step {
                return Ok(unfinished);
            }
            if self.pause.is_paused() {
                return Err(DriveError::Paused);
            }
            self.find_machine(&step).await?;
            if has_effect(&step) {
                log.commit().await?;
                may_act(self.member.as_ref()).await;
            }
            listener.step(log.seq + 1, &step);
            voice::think(&step, &self.tools, listener);
            let delivers = matches!(step, Step::Finish(_));
            at_work.seq = log.seq;
            let result = {
                // Boxed, because the future of a step is large and differs from step to step.
                let mut performing = Box::pin(at_work.perform(run, step, listener));
                tokio::select! {
                    // Polled first, so that a run that is cancelled before it continues does nothing more.
                    biased;
                    // A run at its end only delivers the reply; there is nothing left to cancel.
                    () = &mut wanted, if !cancelled && !delivers => {
                        cancelled = true;
                        StepResult::Cancelled
                    }
                    result = &mut performing => result?,
                }
            };
            if matches!(result, StepResult::Cancelled) {
                unfinished = listener.unfinished();
                // Interrupted work is rolled back before anybody learns that the run has ended.
                self.undo.quiet(&log.session).await;
                self.tools.skills().measure_anew(&log.session);
            }
            at_work.slots += window::slots_of_result(&result);
            let mut event = run.accept_with(result, at_work.meter.take())?;
            event.reasoning = at_work.meter.take_reasoning();
            at_work.thought_ms += event.reasoning.iter().map(|thought| thought.millis).sum::<u64>();
            let taken = std::mem::take(&mut at_work.taking);
            log.append(&event, run, &at_work.secrets, at_work.take_asked(), taken)?;
            // A paid answer is stored before it is used, and a reply before the turn continues.
            if event.continues || !self.models.are_free() {
                log.commit().await?;
            }
            if event.continues {
                // The next message of the turn must know the facts and memory that were added in the meantime.
                at_work.earlier = self.earlier(&log.session, Some(&log.id), run.spec().policy.subagent).await?;
            }
            listener.event(log.seq, &event, run);
            voice::conclude(&event, listener);
        }
    }

    /// Adds the secrets of a session and the keys of providers and servers.
    pub async fn with_session(&self, session: &SessionName, mut secrets: Secrets) -> Result<Secrets, DriveError> {
        for (name, value) in self.vault.load(&self.store, session).await? {
            secrets.add_session(name, value);
        }
        for (name, value) in self.models.keys().into_iter().chain(self.tools.servers().keys()) {
            secrets.add_key(name, value);
        }
        Ok(secrets)
    }

    /// Returns the secrets that must not be stored in plain text outside of sessions: the keys of providers.
    pub fn keys_alone(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let keys = self.models.keys().into_iter().chain(self.tools.servers().keys());
        keys.for_each(|(name, value)| secrets.add_key(name, value));
        secrets
    }

    fn policy(&self) -> Policy {
        let routing = &self.config.routing;
        // The actor's lane gets the part of its context that prompt, tools and answer leave.
        let lane_tokens = self.models.settings(Role::Actor).context_budget * 9 / 20;
        // The built-in rules make plans and cannot converse.
        let fast_path = routing.fast_path && self.models.for_role(Role::Worker).name() != kiso_llm::reflex::NAME;
        let threshold = u8::try_from(routing.tool_need_threshold_percent).unwrap_or(100);
        Policy {
            fast_path,
            tool_need_threshold: threshold,
            lane_tokens,
            subagent: false,
            shows_all: self.config.policy.effects == "off",
        }
    }

    fn system_prompt(&self, role: Role) -> Result<String, DriveError> {
        Ok(crate::node::prompt::system_prompt(&self.home, role, self.models.send_schemas(role))?)
    }
}

/// Returns whether a step has an irreversible or visible effect, so that everything that led to it must be stored before.
fn has_effect(step: &Step) -> bool {
    match step {
        Step::Execute { brief, .. } => brief.task.kind != TaskKind::Msg,
        Step::Call { .. } | Step::Tell { .. } | Step::Approve { .. } => true,
        _ => false,
    }
}

/// Returns the boundary that fences foreign text in prompts: sixteen random characters.
#[expect(clippy::expect_used, reason = "the system has random numbers")]
fn boundary() -> String {
    let mut bytes = [0u8; 8];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).expect("the system has random numbers");
    data_encoding::HEXLOWER.encode(&bytes)
}
