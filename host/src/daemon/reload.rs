//! Reloads the configuration: checks it first, and applies it only as a whole.

use crate::channel::{self, ChannelError, Channels};
use kiso_agent::drive::{ModelError, RunExecutor};
use kiso_agent::node::RoleError;
use kiso_agent::session::intake::Intake;
use kiso_agent::session::wake::QueueLimits;
use kiso_base::config::{Config, ConfigChange, ConfigError, Effect};
use kiso_store::store::StoreError;

/// Reasons why the configuration is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{} is gone", path.display())]
    Gone { path: std::path::PathBuf },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Role(#[from] RoleError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads `config.toml` and uses it for everything that starts from now on. Returns the changes.
pub(super) async fn reload(
    drive: &RunExecutor,
    intake: &Intake,
    channels: &mut Channels,
) -> Result<Vec<ConfigChange>, ReloadError> {
    let path = drive.home.config_path();
    // A fresh home gets a file with the defaults. Writing one here would undo the user's settings.
    if !path.exists() {
        return Err(ReloadError::Gone { path });
    }
    let _alone = drive.lock_configuration().await;
    let config = drive.with_connected(Config::load(&drive.home)?).await?;
    kiso_agent::node::prompt::check_prompts(&drive.home)?;
    let configured = channel::configured(drive, &config)?;
    let changes = drive.newest_config().changes(&config);
    let limits = QueueLimits::from_config(&config);
    drive.adopt(config)?;
    intake.limit(limits);
    if let Err(error) = channels.replace(configured).await {
        tracing::error!("the channels are unchanged: {error}; reload again");
    }
    Ok(changes)
}

/// Logs one line for each way in which changes take effect.
pub(super) fn log(changes: &[ConfigChange]) {
    if changes.is_empty() {
        tracing::info!("the configuration was reloaded; nothing changed");
    }
    for (effect, what) in [
        (Effect::AtOnce, "in effect now"),
        (Effect::NextRun, "for new runs"),
        (Effect::Restart, "after a restart of kiso"),
    ] {
        let names: Vec<_> = changes.iter().filter(|c| c.effect == effect).map(|c| c.name.as_str()).collect();
        match effect {
            _ if names.is_empty() => {}
            Effect::Restart => tracing::warn!("{what}: {}", names.join(", ")),
            _ => tracing::info!("{what}: {}", names.join(", ")),
        }
    }
}
