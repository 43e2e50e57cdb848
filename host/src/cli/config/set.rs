//! `kiso config set`.

use crate::cli::{Exit, Failure, Shared};
use kiso_base::config::{Config, ConfigError, NotSet};
use kiso_base::home::{Home, HomeError};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// The key, with its table: limits.max_tasks
    key: String,
    /// The value in TOML; anything else is a string
    #[arg(required_unless_present = "default", allow_hyphen_values = true)]
    value: Option<String>,
    /// Remove the key, so that its default applies
    #[arg(long, conflicts_with = "value")]
    default: bool,
}

impl SetArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        // Writes the file of a fresh home, and reports the mistakes of an older one.
        Config::load(&home)?;
        let path = home.config_path();
        let shown = path.display().to_string();
        let unreadable = |error| Failure::from(ConfigError::Unreadable { path: path.clone(), error });
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        if path.is_symlink() {
            // A write would replace the link and leave its target as it is.
            return Err(Failure::new(
                Exit::Failed,
                format!("{shown} was not changed: it is a link; edit the file that it leads to"),
            ));
        }
        let changed = Config::with_value(&text, &self.key, self.value.as_deref()).map_err(|error| match error {
            NotSet::Invalid(problems) => {
                let why: Vec<_> = problems.iter().map(|problem| problem.message.clone()).collect();
                Failure::new(Exit::Config, format!("{shown} was not changed: {}", why.join("; ")))
            }
            error => Failure::new(Exit::Usage, format!("{shown} was not changed: {error}")),
        })?;
        if changed != text {
            home.write_atomic(&path, changed.as_bytes()).map_err(|error: HomeError| Failure::from(error))?;
        }
        if shared.json {
            outln!(
                "{}",
                json!({ "type": "set", "key": self.key, "value": self.value, "file": shown, "changed": changed != text })
            );
            return Ok(Exit::Done);
        }
        match &self.value {
            _ if changed == text => outln!("{shown} already has it"),
            Some(_) => outln!("{shown}: {} is set; a running daemon takes it after `kiso config reload`", self.key),
            None => {
                outln!("{shown}: {} has its default; a running daemon takes it after `kiso config reload`", self.key)
            }
        }
        Ok(Exit::Done)
    }
}
