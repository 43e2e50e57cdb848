//! Credentials that a model found in what the user wrote, or gave another name.

use super::DriveError;
use super::run_context::RunContext;
use kiso_base::clock::now_ms;
use kiso_graph::plan::{self, alias_of};
use kiso_graph::run::Run;
use kiso_store::secret::{SecretValue, VaultError, is_declared_as};
use kiso_store::store::StoreError;

/// What a credential is called that nobody may name.
const UNNAMED: &str = "credential";

impl RunContext<'_> {
    /// Whether a skill asks the conversation for a credential of this name.
    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        self.drive.tools.cards().iter().any(|card| card.secrets.iter().any(|declared| is_declared_as(declared, name)))
    }

    /// Keeps what a model found that has read files which the user attached. It may choose no name but those that skills ask for.
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

    /// Keeps what a model found that was told more than the user's words. What a credential is called stands in later prompts as the
    /// user's, so the host calls it something; what has a name keeps it.
    pub(super) async fn keep_unnamed(&mut self, run: &Run, found: plan::Secrets) -> Result<(), DriveError> {
        for (_, value) in found.into_iter().filter(|(_, value)| alias_of(value).is_none()) {
            let name = self.secrets.name_for(UNNAMED, &SecretValue::new(value.clone()));
            self.keep(run, plan::Secrets::one(name, value)).await?;
        }
        Ok(())
    }

    /// Keeps what a model found, before anything that follows can be written down.
    pub(super) async fn keep(&mut self, run: &Run, found: plan::Secrets) -> Result<(), DriveError> {
        // A weak model fills a field because it is there; what it makes up would be struck from every text that has it.
        let talk = self.talk(run, &[]);
        let written = |value: &str| {
            let mut texts = std::iter::once(run.message()).chain(talk.iter().map(|message| message.text.as_str()));
            texts.any(|text| text.contains(value.trim()))
        };
        let value = |value: String| match alias_of(&value) {
            Some(name) => self.said(run, name).cloned(),
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
            // As many as there is room for. The others are known for this run, so that they are written nowhere.
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

    /// The secret of that name, if the user speaks of it in the messages that the model sees: what stands in a file or
    /// comes from a skill does not lead to a secret.
    fn said(&self, run: &Run, name: &str) -> Option<&SecretValue> {
        let place = format!("[secret {name}]");
        let by_user = self.earlier.messages.iter().filter(|message| message.from == "user");
        let mut texts = by_user.map(|message| message.text.as_str()).chain([run.message()]);
        // A secret that a model has just found stands in the message as it came.
        texts.any(|text| self.secrets.redact(text).contains(&place)).then(|| self.secrets.session(name)).flatten()
    }
}
