//! Performs the steps of a run: the only code that calls models and tools for one, and records what happened.
//!
//! ```text
//! Run::next_step ──▶ perform ──▶ Run::accept ──▶ commit the event ──▶ tell the listener ──▶ next step
//! ```
//!
//! An event is committed before the next effect and before the next call of a paid model, and the start of an effect is an
//! event of its own, so a run that was cut off can be told from its log, and taken up again ([`RunExecutor::resume`]).
//!
//! | what is on disk | before |
//! |---|---|
//! | that a task or tool has started, with all that led to it | it is started |
//! | an answer of a paid model, with its price | anything is made of it |
//! | the reply with the outcome, and what goes to webhooks and to those who follow the feed | it goes out |
//!
//! Where all models are built in, the route, the plan and the start of the first task are one commit; so are the last result,
//! the reply and the session's name. The result of each task before goes with the start of the next.

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

/// Everything that a run needs from its surroundings.
#[derive(Debug, Clone)]
pub struct RunExecutor {
    pub home: Home,
    /// The configuration of this piece of work; [`RunExecutor::newest`] has the newest.
    pub config: Arc<Config>,
    /// The configuration, models and tools that were reloaded since the process began.
    current: Current,
    pub store: Store,
    pub tools: Tools,
    pub models: Models,
    connected_keys: ConnectedKeys,
    pub vault: Vault,
    /// What is kept of the files that runs change.
    undo: Undo,
    /// Ends the work between two steps.
    pub(crate) pause: Pause,
    /// The runs that this process has in hand.
    ours: RunSet,
    /// What a fleet adds; `None` for a home of one machine.
    pub member: Option<Arc<dyn FleetMember>>,
}

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not go on. What goes wrong inside the work is no such error but an ending of the run.
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
    /// Nothing was begun.
    #[error("storage limit reached: {0}; delete sessions or files that you no longer need")]
    HomeFull(LimitHit),
    /// Of work that nobody waits for: it has to wait until the limit allows it.
    #[error("the limit {} of {} is reached", .0.limit, .0.value)]
    OverLimit(LimitReached),
    /// Of work that nobody waits for; it is tried again later.
    #[error("{0}")]
    Background(String),
    #[error("the run cannot be resumed: {0}")]
    NotResumable(String),
    #[error("what was cut off in the session {session} cannot be rolled back: {error}")]
    Undo { session: SessionName, error: std::io::Error },
    #[error(transparent)]
    Overdue(#[from] Overdue),
    /// What waits for a person to say that it is to be tried again.
    #[error("the run was cut off {}, and is not resumed automatically", often(*times))]
    CutOff { times: u32 },
    /// A person is asked, and the run is taken up again once they have answered.
    #[error(
        "the run waits for approval {approval}: `kiso approval accept {approval}` or `kiso approval refuse {approval}` answers it"
    )]
    Waiting { approval: i64 },
    /// The run stays as it is; [`RunExecutor::resume`] goes on with it.
    #[error("the run was left between two steps, to be taken up later")]
    Paused,
}

impl DriveError {
    /// Whether the run itself is the trouble, so that trying again will not help.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Illegal(_) | Self::Json(_) | Self::NotResumable(_) | Self::Vault(VaultError::Closed { .. })
        )
    }
}

/// The `kind` of the first event: what the run was given. All others are kinds of [`StepResult`].
pub const SPEC: &str = "spec";

impl RunExecutor {
    /// Returns an executor for the home of `skills`. Keys of models and servers come from `environment`, and those of connected
    /// providers from the store. A model without its key is an error.
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

    /// The same for a daemon: a model without its key answers that it has none, and everything else works.
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

    /// Whether there is room for more messages and what comes of them.
    pub async fn has_room(&self) -> Result<(), DriveError> {
        let skills = self.tools.skills().clone();
        match tokio::task::spawn_blocking(move || skills.home_is_full()).await {
            Ok(Some(hit)) => Err(DriveError::HomeFull(hit)),
            _ => Ok(()),
        }
    }

    /// Whether a message spells out all that is to be done. Such a message never goes to a model.
    pub fn is_explicit(&self, message: &str) -> bool {
        reflex::is_explicit(message, &self.tools.cards())
    }

    /// The same with the built-in rules alone, if the message is spelt out and anything else is configured.
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
                // As far as it came, for whoever looks into it or takes it up again; what is in the way may be in the way of
                // this, too.
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
            // What fails is tried again behind the reply.
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

    /// Performs all steps until the run has ended. Returns what the step has said that was stopped, if one was.
    async fn perform_all(
        &self,
        run: &mut Run,
        log: &mut Log,
        at_work: &mut RunContext<'_>,
        cancel: &Cancel,
        listener: &mut HeardListener<'_>,
    ) -> Result<Vec<Block>, DriveError> {
        let (store, id) = (self.store.clone(), log.id.clone());
        // A run that is taken up again was perhaps to be stopped long ago: it starts nothing before that is known.
        let asked_before = log.seq > 0 && cancel::asked(&store, &id).await;
        let mut wanted = std::pin::pin!(cancel.wanted(asked_before, &store, &id));
        let mut cancelled = false;
        let mut unfinished = Vec::new();
        // One that is taken up again goes on where it is: two sessions that prefer different machines would move each other for ever.
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
                // On the heap: what a step awaits is deep, and differs from step to step.
                let mut performing = Box::pin(at_work.perform(run, step, listener));
                tokio::select! {
                    // First, so that a run that is stopped before it goes on does nothing more.
                    biased;
                    // The reply of a run that is at its end is delivered; there is nothing left to stop.
                    () = &mut wanted, if !cancelled && !delivers => {
                        cancelled = true;
                        StepResult::Cancelled
                    }
                    result = &mut performing => result?,
                }
            };
            if matches!(result, StepResult::Cancelled) {
                unfinished = listener.unfinished();
                // What it was cut off in is rolled back before anybody hears that it has ended.
                self.undo.quiet(&log.session).await;
                self.tools.skills().measure_anew(&log.session);
            }
            at_work.slots += window::slots_of_result(&result);
            let mut event = run.accept_with(result, at_work.meter.take())?;
            event.reasoning = at_work.meter.take_reasoning();
            at_work.thought_ms += event.reasoning.iter().map(|thought| thought.millis).sum::<u64>();
            let taken = std::mem::take(&mut at_work.taking);
            log.append(&event, run, &at_work.secrets, at_work.take_asked(), taken)?;
            // An answer that was paid for is on disk before it is used, and a reply before the turn goes on behind it.
            if event.continues || !self.models.are_free() {
                log.commit().await?;
            }
            if event.continues {
                // What was learned and remembered meanwhile is known to the next message of the turn.
                at_work.earlier = self.earlier(&log.session, Some(&log.id), run.spec().policy.subagent).await?;
            }
            listener.event(log.seq, &event, run);
            voice::conclude(&event, listener);
        }
    }

    /// With the secrets of a session and the keys of providers and servers.
    pub async fn with_session(&self, session: &SessionName, mut secrets: Secrets) -> Result<Secrets, DriveError> {
        for (name, value) in self.vault.load(&self.store, session).await? {
            secrets.add_session(name, value);
        }
        for (name, value) in self.models.keys().into_iter().chain(self.tools.servers().keys()) {
            secrets.add_key(name, value);
        }
        Ok(secrets)
    }

    /// What must not be written down in clear where no session is spoken of: the keys of providers.
    pub fn keys_alone(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let keys = self.models.keys().into_iter().chain(self.tools.servers().keys());
        keys.for_each(|(name, value)| secrets.add_key(name, value));
        secrets
    }

    fn policy(&self) -> Policy {
        let routing = &self.config.routing;
        // The actor's lane has what its context leaves beside prompt, tools and answer.
        let lane_tokens = self.models.settings(Role::Actor).context_budget * 9 / 20;
        // The built-in rules make plans and no conversation.
        let fast_path = routing.fast_path && self.models.of(Role::Worker).name() != kiso_llm::reflex::NAME;
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

/// Whether a step does something that cannot be taken back, or that somebody sees: what led to it is on disk before.
fn has_effect(step: &Step) -> bool {
    match step {
        Step::Execute { brief, .. } => brief.task.kind != TaskKind::Msg,
        Step::Call { .. } | Step::Tell { .. } | Step::Approve { .. } => true,
        _ => false,
    }
}

/// What fences foreign text in prompts: sixteen characters that nobody can guess.
#[expect(clippy::expect_used, reason = "the system has random numbers")]
fn boundary() -> String {
    let mut bytes = [0u8; 8];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).expect("the system has random numbers");
    data_encoding::HEXLOWER.encode(&bytes)
}
