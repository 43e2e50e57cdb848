//! Accepts messages: validates them, answers commands, stores all others, and only then acknowledges them.

mod event;
mod version;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::command::{self, SlashCommand};
use super::wake::{QueueLimits, Wake};
use crate::drive::{DriveError, RunExecutor, SEALED_RUN};
use kiso_base::clock::now_ms;
use kiso_base::compute::{self, Overdue};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_store::secret::found;
use kiso_store::secret::vault::VaultError;
use kiso_store::store::{JobAdmission, JobPriority, MAX_CLIENT_KEY, NewJob, NotReplaced, StoreError};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

pub use self::event::InboundEvent;
pub use self::version::Revision;

/// Maximum size of a message in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// Seconds after which a client may retry if the queue is full.
pub const RETRY_AFTER_S: u64 = 5;

/// A received message.
#[derive(Debug, Clone)]
pub struct Inbound {
    pub session: SessionName,
    pub text: String,
    pub caller: CallerScope,
    /// Whether the message counts as typed by a person: messages of programs with their own models cannot answer approvals.
    pub by_person: bool,
    pub priority: JobPriority,
    /// Idempotency key, so that the client can repeat the message without having it processed twice.
    pub client_key: Option<String>,
    /// Whether its sender has finished: it is processed at once, together with earlier messages.
    pub flush: bool,
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntakeOutcome {
    /// It is stored and will be answered. `again` if a message with the same client key was accepted before.
    Queued { message: i64, again: bool },
    /// It was a command, and this is the answer.
    Answered { text: String },
}

/// Why a message was not accepted. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error("the message is empty")]
    Empty,
    #[error("the message has {bytes} bytes; at most {max} are taken")]
    TooLarge { bytes: usize, max: usize },
    #[error("the message's key must have 1 to {max} characters")]
    BadKey { max: usize },
    #[error("{max} messages are already waiting (daemon.max_queued); try again in {RETRY_AFTER_S} seconds")]
    Full { max: u64 },
    #[error(
        "{max} messages of the hook {hook} are already waiting (max_waiting); try again in {RETRY_AFTER_S} seconds"
    )]
    HookFull { hook: String, max: u64 },
    #[error(transparent)]
    NotReplaced(#[from] NotReplaced),
    #[error("kiso is shutting down; send the message again when it is back")]
    ShuttingDown,
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl From<Overdue> for IntakeError {
    fn from(overdue: Overdue) -> IntakeError {
        IntakeError::Drive(overdue.into())
    }
}

impl From<StoreError> for IntakeError {
    fn from(error: StoreError) -> IntakeError {
        IntakeError::Drive(error.into())
    }
}

impl From<VaultError> for IntakeError {
    fn from(error: VaultError) -> IntakeError {
        IntakeError::Drive(error.into())
    }
}

/// Accepts messages. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Intake(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    drive: RunExecutor,
    wake: mpsc::UnboundedSender<Wake>,
    closed: AtomicBool,
    /// Number of waiting messages, and of those about to wait.
    queued: Arc<AtomicU64>,
    began_ms: i64,
}

impl Intake {
    /// `queued` is the number of waiting messages; the queue decrements it.
    pub(super) fn new(drive: RunExecutor, wake: mpsc::UnboundedSender<Wake>, queued: Arc<AtomicU64>) -> Intake {
        let inner = Inner { drive, wake, closed: AtomicBool::new(false), queued, began_ms: now_ms() };
        Intake(Arc::new(inner))
    }

    /// Accepts a message, or answers it if it is a command. When this returns `Queued`, the message is stored.
    #[tracing::instrument(name = "session.take", level = "debug", skip_all, fields(session = %inbound.session))]
    pub async fn take(&self, inbound: Inbound) -> Result<IntakeOutcome, IntakeError> {
        let text = inbound.text.trim();
        self.check(Some(text), inbound.client_key.as_deref())?;
        // A configured command that names a pill becomes that pill.
        let pill = self.0.drive.newest_config().command_pill(text);
        let text = pill.as_deref().unwrap_or(text);
        if let Some(SlashCommand::Revise(revised)) = SlashCommand::parse(text) {
            return self.revise_last(&inbound, revised).await;
        }
        if let Some(command) = SlashCommand::parse(text) {
            let asked = command::CommandContext {
                drive: &self.0.drive.newest(),
                session: &inbound.session,
                queued: self.0.queued.load(Ordering::Relaxed),
                began_ms: Some(self.0.began_ms),
                stopped: command == SlashCommand::Cancel && self.cancel(&inbound.session).await,
                by_person: inbound.by_person,
                caller: inbound.caller,
            };
            return Ok(IntakeOutcome::Answered { text: asked.answer(command).await? });
        }
        let (this, text) = (self.clone(), text.to_owned());
        // Runs in a separate task: if the client disconnects during the write, the message must still get its turn.
        match tokio::spawn(async move { this.enqueue(&inbound, &text).await }.in_current_span()).await {
            Ok(taken) => taken,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(IntakeError::ShuttingDown),
        }
    }

    async fn enqueue(&self, inbound: &Inbound, text: &str) -> Result<IntakeOutcome, IntakeError> {
        let inner = &*self.0;
        let drive = &inner.drive.newest();
        let place = inner.reserve(drive.config.daemon.max_queued)?;
        let job = NewJob {
            session: inbound.session.clone(),
            text: sealed(drive, &inbound.session, text).await?,
            caller: inbound.caller,
            priority: inbound.priority,
            client_key: inbound.client_key.clone(),
            at_ms: now_ms(),
            label: Label::default(),
        };
        let admitted = drive.store.write(move |tx| tx.admit(&job)).await?;
        tracing::debug!(id = admitted.message(), "a message is queued");
        if let JobAdmission::Now(_) = admitted {
            place.keep();
            // The queue is gone only when the daemon ends; the next one finds the message in the store.
            let (session, priority, flush) = (inbound.session.clone(), inbound.priority, inbound.flush);
            let _ = inner.wake.send(Wake::Message { session, priority, flush });
        }
        Ok(IntakeOutcome::Queued { message: admitted.message(), again: matches!(admitted, JobAdmission::Before(_)) })
    }

    /// Checks a message, if there is a text, and its key before anything is stored.
    fn check(&self, text: Option<&str>, client_key: Option<&str>) -> Result<(), IntakeError> {
        if text.is_some_and(str::is_empty) {
            return Err(IntakeError::Empty);
        }
        if let Some(text) = text.filter(|text| text.len() > MAX_MESSAGE) {
            return Err(IntakeError::TooLarge { bytes: text.len(), max: MAX_MESSAGE });
        }
        if client_key.is_some_and(|key| key.is_empty() || key.chars().count() > MAX_CLIENT_KEY) {
            return Err(IntakeError::BadKey { max: MAX_CLIENT_KEY });
        }
        match self.0.closed.load(Ordering::Acquire) {
            true => Err(IntakeError::ShuttingDown),
            false => Ok(()),
        }
    }

    /// Cancels the session's run, and those of its runs that wait for a person; returns false if there is none.
    pub async fn cancel(&self, session: &SessionName) -> bool {
        let (stopped, answer) = oneshot::channel();
        let _ = self.0.wake.send(Wake::Cancel { session: session.clone(), stopped });
        let stopped = answer.await.unwrap_or(false);
        self.0.drive.cancel_waiting(session).await.is_ok_and(|waiting| waiting) || stopped
    }

    /// Passes the limits of the new configuration to the queue.
    pub fn limit(&self, limits: QueueLimits) {
        let _ = self.0.wake.send(Wake::Limits(limits));
    }

    /// Waits for an answer of the queue; returns false if it is gone.
    pub async fn is_alive(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        self.0.wake.send(Wake::Alive(answer)).is_ok() && answered.await.is_ok()
    }

    /// Stops accepting messages.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }

    /// Returns the number of waiting messages.
    pub fn queued(&self) -> u64 {
        self.0.queued.load(Ordering::Relaxed)
    }
}

impl Inner {
    /// Reserves a place in the queue before a message is stored, so that no two messages get the last one.
    fn reserve(&self, max: u64) -> Result<QueueSlot<'_>, IntakeError> {
        let place = QueueSlot(&self.queued);
        match self.queued.fetch_add(1, Ordering::AcqRel) < max {
            true => Ok(place),
            // Dropping the place decrements the count.
            false => Err(IntakeError::Full { max }),
        }
    }
}

/// Returns a message in its stored form, without secrets.
async fn sealed(drive: &RunExecutor, session: &SessionName, text: &str) -> Result<String, IntakeError> {
    drive.has_room().await?;
    let known = drive.secrets_of(session).await?;
    // The client chooses its length, and every word is examined.
    let (text, found) = {
        let (text, known) = (text.to_owned(), known.clone());
        compute::run_on(text.len(), "looking for secrets in the message", move || found::extract(&text, &known)).await?
    };
    if !found.is_empty() {
        drive.vault.save(&drive.store, session, &found, now_ms()).await?;
    }
    Ok(drive.vault.seal_text(SEALED_RUN, &known.redact(&text))?)
}

/// A place in the queue that is returned unless it is kept.
struct QueueSlot<'a>(&'a AtomicU64);

impl QueueSlot<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        count_down(self.0, 1);
    }
}

/// Decrements the number of waiting messages, not below zero.
pub(super) fn count_down(queued: &AtomicU64, by: u64) {
    let _ = queued.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |queued| Some(queued.saturating_sub(by)));
}
