//! The reloaded configuration, and which work uses it.
//!
//! A piece of work uses one [`RunExecutor`] from its beginning to its end, so that a run never mixes two configurations.
//! [`RunExecutor::newest`] returns the executor for new work.

use std::sync::{Arc, PoisonError, RwLock};

use super::{ModelError, Models, RunExecutor};
use crate::tool::Tools;
use kiso_base::config::{Config, Effect};
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::{Quiet, Skills};

/// The reloaded configuration; empty until the first reload. Clones are cheap and share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Current(Arc<RwLock<Option<Parts>>>, Arc<tokio::sync::Mutex<()>>);

/// Everything that depends on the configuration.
#[derive(Debug, Clone)]
struct Parts {
    config: Arc<Config>,
    models: Models,
    tools: Tools,
}

/// Tables and keys of the configuration that affect the sandbox.
const OF_THE_SANDBOX: [&str; 5] = ["engine.", "exec.", "http.", "skills.", "policy.trusted_skills"];

impl RunExecutor {
    /// Returns the executor with the newest configuration, for new work.
    pub fn newest(&self) -> RunExecutor {
        match &*self.current.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(Parts { config, models, tools }) => {
                RunExecutor { config: config.clone(), models: models.clone(), tools: tools.clone(), ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// Returns the newest configuration.
    pub fn newest_config(&self) -> Arc<Config> {
        let current = self.current.0.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map_or_else(|| self.config.clone(), |parts| parts.config.clone())
    }

    /// Locks the configuration from reading its sources until it is adopted, so that no change is lost.
    pub async fn lock_configuration(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.current.1.clone().lock_owned().await
    }

    /// Makes [`RunExecutor::newest`] use another configuration, or changes nothing if one of its models cannot be opened.
    /// Knowledge about models, and compiled skills, are kept if they are unchanged.
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
