//! Settings of a session for its runs.

use super::{DriveError, Models, RunExecutor};
use kiso_base::home::SessionName;
use kiso_store::secret::Secrets;
use kiso_store::store::ModelChoice;

impl RunExecutor {
    /// Returns the newest executor with the session's own models, if it has some. A model that is no longer configured is
    /// replaced by the default.
    pub async fn for_session(&self, session: &SessionName) -> Result<RunExecutor, DriveError> {
        let name = session.clone();
        let mut choice = self.store.peek(move |view| view.model_choice(&name)).await?;
        let drive = self.newest();
        let gone = |model: &str| drive.check_model(model).err();
        if let Some(why) = choice.all.as_deref().and_then(gone) {
            tracing::warn!(%session, "{why}; the default answers instead");
            choice.all = None;
        }
        choice.roles.retain(|role, model| match gone(model) {
            Some(why) => {
                tracing::warn!(%session, role, "{why}; another one answers instead");
                false
            }
            None => true,
        });
        match drive.models_with(&choice) {
            Ok(models) => Ok(RunExecutor { models, ..drive }),
            Err(why) => {
                tracing::warn!(%session, "{why}; the default answers instead");
                Ok(drive)
            }
        }
    }

    /// Returns the models with a session's choice, each of which must be in the configuration.
    pub fn models_with(&self, choice: &ModelChoice) -> Result<Models, String> {
        if choice.is_default() {
            return Ok(self.models.clone());
        }
        choice.all.iter().chain(choice.roles.values()).try_for_each(|model| self.check_model(model))?;
        self.models.chosen(&self.config, choice).map_err(|error| error.to_string())
    }

    fn check_model(&self, model: &str) -> Result<(), String> {
        let known = self.config.model_strings();
        match known.contains(&model) {
            true => Ok(()),
            false => Err(format!("no model {model:?} is configured; there are {}", known.join(", "))),
        }
    }

    /// Returns the secrets for a call in this session, including those of the environment.
    pub async fn secrets_with(&self, session: &SessionName, environment: Secrets) -> Result<Secrets, DriveError> {
        self.with_session(session, environment).await
    }

    /// Returns the secrets that must not be stored in plain text in this session: those found in its messages, and the keys of
    /// providers.
    pub async fn secrets_of(&self, session: &SessionName) -> Result<Secrets, DriveError> {
        self.with_session(session, Secrets::default()).await
    }
}
