//! Credentials that a model finds or names in the user's messages.

use super::DriveError;
use super::run_context::RunContext;
use kiso_base::clock::now_ms;
use kiso_graph::plan::{self, alias_of};
use kiso_graph::run::Run;
use kiso_store::secret::{SecretValue, VaultError, is_declared_as};
use kiso_store::store::StoreError;

/// Name for a credential that models may not name.
const UNNAMED: &str = "credential";

impl RunContext<'_> {
    /// Returns whether a skill requests a credential of this name from the conversation.
    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        self.drive.tools.cards().iter().any(|card| card.secrets.iter().any(|declared| is_declared_as(declared, name)))
    }

    /// Stores credentials from a model that has read files of the user. It may only use names that skills request.
    pub(super) async fn keep_asked_for(&mut self, run: &Run, found: plan::Secrets) -> Result<(), DriveError> {
        let (known, unnamed): (Vec<_>, Vec<_>) = found.into_iter().partition(|(name, _)| self.is_asked_for(name));
        for (name, value) in known {
            self.keep(run, plan::Secrets::one(name, value)).await?;
        }
        for (name, value) in unnamed {
            self.keep_unnamed(run, plan::Secrets::one(name, value)).await?;
        }
        Ok(())
    }

    /// Stores credentials from a model that has read more than the user's own words. The name of a credential appears in later
    /// prompts as the user's text, so the host chooses the name; existing names stay.
    pub(super) async fn keep_unnamed(&mut self, run: &Run, found: plan::Secrets) -> Result<(), DriveError> {
        for (_, value) in found.into_iter().filter(|(_, value)| alias_of(value).is_none()) {
            let name = self.secrets.name_for(UNNAMED, &SecretValue::new(value.clone()));
            self.keep(run, plan::Secrets::one(name, value)).await?;
        }
        Ok(())
    }

    /// Stores credentials before anything that follows can be recorded.
    pub(super) async fn keep(&mut self, run: &Run, found: plan::Secrets) -> Result<(), DriveError> {
        // A weak model fills a field because it exists; an invented credential would be redacted from every text that contains
        // it.
        let talk = self.talk(run, &[]);
        let written = |value: &str| {
            let mut texts = std::iter::once(run.message()).chain(talk.iter().map(|message| message.text.as_str()));
            texts.any(|text| text.contains(value.trim()))
        };
        let value = |value: String| match alias_of(&value) {
            Some(name) => self.find_mentioned(run, name).cloned(),
            None => written(&value).then(|| SecretValue::new(value)),
        };
        let mut kept = Vec::new();
        for (name, given) in found {
            if let Some(value) = value(given) {
                kept.extend(self.secrets.displaced(&name, &value));
                kept.push((name, value));
            }
        }
        for (name, value) in &kept {
            self.secrets.add_session(name.clone(), value.clone());
        }
        let save = async |secrets: &[(String, SecretValue)]| {
            self.drive.vault.save(&self.drive.store, &self.session, secrets, now_ms()).await
        };
        if kept.is_empty() {
            return Ok(());
        }
        match save(&kept).await {
            // The space is full. Credentials that do not fit are known only to this run, and are not stored anywhere.
            Err(VaultError::Store(StoreError::Quota { what, max })) => {
                tracing::warn!("not every credential of the message is kept: {what} (at most {max})");
                for one in &kept {
                    match save(std::slice::from_ref(one)).await {
                        Ok(()) | Err(VaultError::Store(StoreError::Quota { .. })) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(())
            }
            saved => Ok(saved?),
        }
    }

    /// Returns the secret of that name, if the user mentions it in the messages that the model sees. Mentions in files or in
    /// results of skills do not count.
    fn find_mentioned(&self, run: &Run, name: &str) -> Option<&SecretValue> {
        let place = format!("[secret {name}]");
        let by_user = self.earlier.messages.iter().filter(|message| message.from == "user");
        let mut texts = by_user.map(|message| message.text.as_str()).chain([run.message()]);
        // A secret that a model has just found is in the message in its original form.
        texts.any(|text| self.secrets.redact(text).contains(&place)).then(|| self.secrets.session(name)).flatten()
    }
}
