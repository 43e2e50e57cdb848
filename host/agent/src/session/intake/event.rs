//! Accepts events of other programs. They are not messages of a person: they are processed like a subagent's, in a session of
//! their hook.

use super::{Inner, Intake, IntakeError, IntakeOutcome, sealed};
use crate::session::intake::MAX_MESSAGE;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_store::store::{HookAdmission, HookDelivery, JobAdmission, JobPriority, NewJob};
use std::sync::atomic::Ordering;

/// A received event.
#[derive(Debug, Clone)]
pub struct InboundEvent {
    pub hook: String,
    /// Label of its content.
    pub label: Label,
    /// The session of the hook.
    pub session: SessionName,
    pub text: String,
    /// Keys that identify repetitions.
    pub keys: Vec<Vec<u8>>,
    /// The session that receives the reply.
    pub told: Option<SessionName>,
    /// Maximum number of waiting messages of the hook.
    pub max_waiting: u64,
}

impl Intake {
    /// Accepts an event. When this returns `Queued`, its message is stored. Nothing in it is a command.
    pub async fn take_event(&self, event: InboundEvent) -> Result<IntakeOutcome, IntakeError> {
        if event.text.trim().is_empty() {
            return Err(IntakeError::Empty);
        }
        if event.text.len() > MAX_MESSAGE {
            return Err(IntakeError::TooLarge { bytes: event.text.len(), max: MAX_MESSAGE });
        }
        if self.0.closed.load(Ordering::Acquire) {
            return Err(IntakeError::ShuttingDown);
        }
        let inner = self.0.clone();
        // Runs in a separate task: an event whose keys are stored must have a message.
        match tokio::spawn(async move { inner.enqueue_event(event).await }).await {
            Ok(taken) => taken,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(IntakeError::ShuttingDown),
        }
    }
}

impl Inner {
    async fn enqueue_event(&self, event: InboundEvent) -> Result<IntakeOutcome, IntakeError> {
        let InboundEvent { hook, label, session, text, keys, told, max_waiting } = event;
        let drive = &self.drive.newest();
        let text = sealed(drive, &session, &text).await?;
        let job = NewJob {
            session,
            text,
            // The right to send events does not make somebody an administrator.
            caller: CallerScope::User,
            priority: JobPriority::Subagent,
            client_key: None,
            at_ms: now_ms(),
            label,
        };
        let delivery = HookDelivery { hook: hook.clone(), keys, job, told, max_waiting };
        match drive.store.write(move |tx| tx.admit_delivery(&delivery)).await? {
            HookAdmission::Full => Err(IntakeError::HookFull { hook, max: max_waiting }),
            HookAdmission::Taken(admitted) => {
                drive.store.ring();
                let again = matches!(admitted, JobAdmission::Before(_));
                Ok(IntakeOutcome::Queued { message: admitted.message(), again })
            }
        }
    }
}
