//! Messages of a session for prompts: archived inputs stay archived.

use super::{DriveError, RunExecutor, SEALED_RUN};
use kiso_graph::step::{Event, StepResult};
use kiso_plan::prompt::ChatMessage;
use kiso_store::scratchpad;
use kiso_store::store::{Message, MessageRole, RunId};

impl RunExecutor {
    /// Converts stored messages for a prompt. A user's message that is too large is replaced by its preview, with the ref from
    /// its admission.
    pub(super) async fn to_chat_messages(&self, messages: Vec<Message>) -> Result<Vec<ChatMessage>, DriveError> {
        let limit = usize::try_from(self.config.limits.input_limit_tokens).unwrap_or(usize::MAX);
        let mut said = Vec::with_capacity(messages.len());
        for message in messages {
            let mut text = self.vault.open_text(SEALED_RUN, &message.text)?.into_owned();
            if message.role == MessageRole::User && scratchpad::is_too_large(&text, limit) {
                text = match self.archived(message.run.as_ref()).await? {
                    Some(key) => scratchpad::preview(&text, &key, limit),
                    None => scratchpad::truncate_middle(&text, limit),
                };
            }
            said.push(super::window::chat(message.role, &text));
        }
        Ok(said)
    }

    /// Returns the scratchpad key of a run's input. If a run has archived several inputs, the right one is unknown.
    async fn archived(&self, run: Option<&RunId>) -> Result<Option<String>, DriveError> {
        let Some(run) = run.cloned() else { return Ok(None) };
        let events = self.store.read(move |view| view.events(&run)).await?;
        let mut keys = Vec::new();
        for event in events.iter().filter(|event| event.kind == "admitted") {
            let event: Event = serde_json::from_str(&self.vault.open_text(SEALED_RUN, &event.body)?)?;
            if let StepResult::Admitted { archived: Some(key), .. } = event.result {
                keys.push(key);
            }
        }
        Ok(if keys.len() == 1 { keys.pop() } else { None })
    }
}
