//! What a session changes about how its messages are worked on.

use super::{Drive, DriveError, Models};
use crate::home::SessionName;
use crate::secret::Secrets;

impl Drive {
    /// The drive as it is now, with the session's model, if it has one of its own. One that the configuration no longer has gives way to
    /// the default.
    pub async fn for_session(&self, session: &SessionName) -> Result<Drive, DriveError> {
        let name = session.clone();
        let model = self.store.read(move |view| view.session_model(&name)).await?;
        let drive = self.now();
        let Some(model) = model.filter(|model| *model != drive.config.model) else { return Ok(drive) };
        match drive.models_with(&model) {
            Ok(models) => Ok(Drive { models, ..drive }),
            Err(why) => {
                tracing::warn!(%session, "{why}; the default answers instead");
                Ok(drive)
            }
        }
    }

    /// The models with another default, which must be one that the configuration mentions.
    pub fn models_with(&self, model: &str) -> Result<Models, String> {
        let known = self.config.model_strings();
        if !known.contains(&model) {
            return Err(format!("no model {model:?} is configured; there are {}", known.join(", ")));
        }
        self.models.with_default(&self.config, model).map_err(|error| error.to_string())
    }

    /// The secrets that a call in this session knows, with those of the environment.
    pub async fn secrets_with(&self, session: &SessionName, environment: Secrets) -> Result<Secrets, DriveError> {
        self.with_session(session, environment).await
    }

    /// What must not be written down in clear in this session: what was found in its messages, and the keys of providers.
    pub async fn secrets_of(&self, session: &SessionName) -> Result<Secrets, DriveError> {
        self.with_session(session, Secrets::default()).await
    }
}
