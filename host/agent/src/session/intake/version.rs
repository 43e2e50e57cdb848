//! Another version of a turn: the same message answered again, or an edited one in its place.

use std::sync::atomic::Ordering;

use super::{Inbound, Intake, IntakeError, IntakeOutcome, sealed};
use crate::session::command::RevisedText;
use crate::session::version::move_passages;
use crate::session::wake::Wake;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::plan::CallerScope;
use kiso_store::store::{NewVersion, NotReplaced, VersionAdmission};

/// A request for another version of a turn.
#[derive(Debug, Clone)]
pub struct Revision {
    /// A message of the turn.
    pub message: i64,
    /// The new text of this message; `None` answers the same again.
    pub text: Option<String>,
    pub caller: CallerScope,
    /// Idempotency key, as for a message.
    pub client_key: Option<String>,
    /// Whether to cancel an active run. Without it, an active run causes an error.
    pub cancel: bool,
    /// Whether to undo the file changes of the replaced runs, even if somebody has changed the files since.
    pub undo: bool,
}

impl Intake {
    /// Replaces a turn. When this returns, the new version is stored, and it is answered before everything else that waits.
    pub async fn revise(&self, revision: Revision) -> Result<(SessionName, IntakeOutcome), IntakeError> {
        let text = revision.text.as_deref().map(str::trim);
        self.check(text, revision.client_key.as_deref())?;
        let this = self.clone();
        // Runs in a separate task, as for a message.
        match tokio::spawn(async move { this.enqueue_version(revision).await }).await {
            Ok(taken) => taken,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(IntakeError::ShuttingDown),
        }
    }

    async fn enqueue_version(&self, revision: Revision) -> Result<(SessionName, IntakeOutcome), IntakeError> {
        let inner = &*self.0;
        let drive = &inner.drive.newest();
        let place = inner.reserve(drive.config.daemon.max_queued)?;
        drive.has_room().await?;
        let Revision { message, text, caller, client_key, cancel, undo } = revision;
        let text = match text {
            None => None,
            Some(text) => {
                let found = drive.store.read(move |view| view.message(message)).await?;
                let (session, _) = found.ok_or(NotReplaced::Unknown)?;
                Some(sealed(drive, &session, text.trim()).await?)
            }
        };
        let new = NewVersion { message, text, caller, client_key, at_ms: now_ms(), cancel, undo };
        let write = drive.store.write(move |tx| {
            let replaced = tx.replace_turn(&new)?;
            if let Ok(VersionAdmission { session, change, .. }) = &replaced {
                move_passages(tx, session, change)?;
            }
            Ok(replaced)
        });
        let VersionAdmission { session, message, added, priority, .. } = write.await??;
        if added > 0 {
            place.keep();
            inner.queued.fetch_add(added - 1, Ordering::AcqRel);
            let _ = inner.wake.send(Wake::Message { session: session.clone(), priority, flush: true });
            // Wakes the queue, because cancelled runs that waited for a person have no turn.
            drive.store.ring();
        }
        Ok((session, IntakeOutcome::Queued { message, again: added == 0 }))
    }

    /// `/retry` and `/edit`: create another version of the session's last turn.
    pub(super) async fn revise_last(
        &self,
        inbound: &Inbound,
        revised: RevisedText,
    ) -> Result<IntakeOutcome, IntakeError> {
        let (text, undo) = match revised {
            RevisedText::Same { undo } => (None, undo),
            RevisedText::New(text) => (Some(text), false),
        };
        let session = inbound.session.clone();
        let last = self.0.drive.store.read(move |view| view.last_asked(&session)).await?;
        let answered = |text: &str| Ok(IntakeOutcome::Answered { text: text.to_owned() });
        let Some(message) = last else { return answered("No message of this session has been answered yet.") };
        let (caller, client_key) = (inbound.caller, inbound.client_key.clone());
        match self.revise(Revision { message, text, caller, client_key, cancel: false, undo }).await {
            Ok((_, outcome)) => Ok(outcome),
            Err(IntakeError::Empty) => answered("`/edit` takes the new text of the last message."),
            Err(IntakeError::NotReplaced(NotReplaced::AtWork(_))) => {
                answered("A run has not ended here. Wait for it, or stop it with `/cancel`.")
            }
            Err(IntakeError::NotReplaced(why)) => answered(&format!("Nothing was replaced: {why}.")),
            Err(error) => Err(error),
        }
    }
}
