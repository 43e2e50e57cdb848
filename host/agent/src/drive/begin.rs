//! The start of a run: for a given message, or for the waiting messages of a session.

use super::log::{Log, Messages};
use super::run_context::RunContext;
use super::{Cancel, DriveError, Listener, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::compute;
use kiso_base::home::SessionName;
use kiso_graph::outcome::Outcome;
use kiso_graph::run::{Policy, Run, RunSpec};
use kiso_llm::reflex;
use kiso_plan::pill;
use kiso_plan::plan::CallerScope;
use kiso_store::secret::{Secrets, found};
use kiso_store::store::{BegunRun, JobPriority, RunId};

impl RunExecutor {
    /// Performs a run from its message to its reply. `secrets` are from the environment; further ones may be found in the
    /// message. They are removed from it before anything is stored.
    pub async fn run(
        &self,
        session: &SessionName,
        message: &str,
        caller: CallerScope,
        secrets: Secrets,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<(RunId, Outcome), DriveError> {
        self.has_room().await?;
        let message = Messages::Given { text: message.to_owned(), caller };
        self.turn(session, message, secrets, cancel, listener)
            .await?
            .ok_or_else(|| DriveError::NotResumable("the run that was begun for the message is gone".to_owned()))
    }

    /// Performs a run for the waiting messages of a session, as one turn; `None` if there are none. The caller holds the
    /// session's lock.
    pub async fn run_queued(
        &self,
        session: &SessionName,
        secrets: Secrets,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<Option<(RunId, Outcome)>, DriveError> {
        self.turn(session, Messages::Waiting, secrets, cancel, listener).await
    }

    async fn turn(
        &self,
        session: &SessionName,
        mut messages: Messages,
        secrets: Secrets,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<Option<(RunId, Outcome)>, DriveError> {
        // Before anything is stored: only an administrator can fix an unusable prompt.
        crate::node::prompt::check_prompts(&self.home)?;
        self.settle(session).await?;
        if matches!(messages, Messages::Waiting) {
            self.undo_replaced(session).await?;
        }
        let mut secrets = self.with_session(session, secrets).await?;
        if let Messages::Given { text, .. } = &mut messages {
            self.extract_secrets(session, text, &mut secrets).await?;
        }
        let (name, known, limits, policy) = (session.to_string(), secrets.clone(), self.limits(), self.policy());
        // Before the run has messages of its own; like for a person, which is the usual case.
        let earlier = self.earlier(session, None, false).await?;
        let (segment, context, shown) = (earlier.segment.clone(), earlier.label(), earlier.shown());
        let (cards, has_models) = (self.tools.cards(), !self.models.are_free());
        let is_explicit = move |text: &str| has_models && reflex::is_explicit(text, &cards);
        let is_apart = is_explicit.clone();
        let spec = move |begun: &BegunRun, texts: Vec<String>| {
            let message = known.redact(&texts.join("\n\n"));
            let mut joined = Vec::new();
            if texts.iter().skip(1).any(|text| pill::may_begin(text)) {
                joined.extend(texts.iter().map(|text| known.redact(text)));
            }
            // If only the joined text shows a secret, the messages are kept together.
            if joined.join("\n\n") != message {
                joined.clear();
            }
            let explicit = is_explicit(&message);
            RunSpec {
                id: begun.run.to_string(),
                session: name,
                message,
                joined,
                caller: begun.caller,
                limits,
                policy: Policy {
                    subagent: begun.priority != JobPriority::Interactive,
                    fast_path: policy.fast_path && !explicit,
                    ..policy
                },
                segment,
                label: begun.label.clone(),
                context: context.clone(),
                shown,
            }
        };
        let begun = Log::begin(&self.store, &self.vault, session, messages, spec, is_apart, self.boot()).await?;
        let Some((log, spec)) = begun else { return Ok(None) };
        listener.begun(&log.id);
        let earlier = match spec.policy.subagent {
            true => self.earlier(session, Some(&log.id), true).await?,
            false => earlier,
        };
        let by_rules = self.for_message(&spec.message)?;
        let executor = by_rules.as_ref().unwrap_or(self);
        let at_work = RunContext::new(executor, &log, &spec, secrets, earlier);
        executor.drive(Run::new(spec), log, at_work, cancel, listener).await.map(Some)
    }

    /// Removes likely secrets from a message, and stores them for the session.
    async fn extract_secrets(
        &self,
        session: &SessionName,
        message: &mut String,
        secrets: &mut Secrets,
    ) -> Result<(), DriveError> {
        let (text, known) = (std::mem::take(message), secrets.clone());
        let (text, found) =
            compute::run_on(text.len(), "looking for secrets in the message", move || found::extract(&text, &known))
                .await?;
        self.vault.save(&self.store, session, &found, now_ms()).await?;
        for (name, value) in found {
            secrets.add_session(name, value);
        }
        // This message may repeat a secret of an earlier one.
        *message = secrets.redact(&text);
        Ok(())
    }
}
