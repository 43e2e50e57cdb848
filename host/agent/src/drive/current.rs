//! A configuration that was read anew, and who goes by it.
//!
//! A piece of work holds a [`RunExecutor`] from its beginning to its end, so that a run is not half of one configuration and half
//! of another. Whoever begins a piece asks for [`RunExecutor::newest`].

use std::sync::{Arc, PoisonError, RwLock};

use super::{ModelError, Models, RunExecutor};
use crate::tool::Tools;
use kiso_base::config::{Config, Effect};
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::{Quiet, Skills};

/// What was read last; empty until something was. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Current(Arc<RwLock<Option<Parts>>>, Arc<tokio::sync::Mutex<()>>);

/// What follows from a configuration.
#[derive(Debug, Clone)]
struct Parts {
    config: Arc<Config>,
    models: Models,
    tools: Tools,
}

/// Tables, and a key, that the sandbox is made from.
const OF_THE_SANDBOX: [&str; 5] = ["engine.", "exec.", "http.", "skills.", "policy.trusted_skills"];

impl RunExecutor {
    /// The drive with the newest configuration, for a piece of work that begins.
    pub fn newest(&self) -> RunExecutor {
        match &*self.current.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(Parts { config, models, tools }) => {
                RunExecutor { config: config.clone(), models: models.clone(), tools: tools.clone(), ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// The newest configuration.
    pub fn newest_config(&self) -> Arc<Config> {
        let current = self.current.0.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map_or_else(|| self.config.clone(), |parts| parts.config.clone())
    }

    /// Held from reading what a configuration is made of until it is adopted, so that no change is lost.
    pub async fn lock_configuration(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.current.1.clone().lock_owned().await
    }

    /// Has [`RunExecutor::newest`] go by another configuration, or changes nothing where one of its models cannot be opened. What
    /// is known of the models, and the compiled skills, are kept as far as they are the same.
    pub fn adopt(&self, config: Config) -> Result<(), ModelError> {
        let old = self.newest();
        let models = old.models.reopened(&config)?;
        let changes = old.config.changes(&config);
        let sandboxed = |name: &str| {
            matches!(name, "[exec.mounts]" | "[folders]")
                || OF_THE_SANDBOX.iter().any(|section| name.starts_with(section))
        };
        let tools = match changes.iter().any(|change| change.effect == Effect::NextRun && sandboxed(&change.name)) {
            false => old.tools.under(&config),
            true => {
                let skills = Skills::new(self.home.clone(), config.clone(), self.store.clone(), Arc::new(Quiet));
                let exec = Exec::new(self.home.clone(), config.clone(), skills.clone());
                let servers = old.tools.servers().reopened(&config, &skills);
                Tools::new(skills, exec, self.store.clone(), servers)
            }
        };
        self.store.limit_sessions(config.limits.max_sessions);
        tools.skills().limit_home(&config.limits);
        let parts = Parts { config: Arc::new(config), models, tools };
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Some(parts);
        Ok(())
    }
}
