//! `kiso config`: shows, checks and changes the configuration.

mod check;
mod preset;
mod reload;
mod set;
mod show;

use super::{Exit, Failure, Shared};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Show the configuration in effect, including defaults
    Show(show::ShowArgs),
    /// Change one value in config.toml
    Set(set::SetArgs),
    /// Check config.toml and report every problem
    Check(check::CheckArgs),
    /// Print docs/configuration.md: every key with its type, default, range and meaning
    Docs,
    /// Reload config.toml in the running daemon, if it is valid
    Reload(reload::ReloadArgs),
    /// Print the configuration of a provider, or add it to config.toml
    Preset(preset::PresetArgs),
}

impl ConfigCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self {
            Self::Show(command) => command.execute(shared),
            Self::Set(command) => command.execute(shared),
            Self::Check(command) => command.execute(shared),
            Self::Docs => {
                let page = kiso_base::config::Config::page();
                match shared.json {
                    true => {
                        outln!("{}", serde_json::json!({ "type": "page", "name": "configuration.md", "text": page }))
                    }
                    false => out!("{page}"),
                }
                Ok(Exit::Done)
            }
            Self::Reload(command) => command.execute(shared),
            Self::Preset(command) => command.execute(shared),
        }
    }
}
