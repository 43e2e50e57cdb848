//! `kiso config reload`.

use crate::cli::{Exit, Failure, Shared};
use kiso_base::config::Config;
use kiso_base::home::Home;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {}

impl ReloadArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        // Errors that the daemon would report are reported here, where the user sees them. A missing file is not created:
        // the daemon would use the defaults as if somebody had chosen them.
        if !home.config_path().exists() {
            return Err(Failure::new(Exit::Config, format!("{} is gone", home.config_path().display())));
        }
        Config::load(&home)?;
        kiso_agent::node::prompt::check_prompts(&home)?;
        let path = home.path().display();
        let Some(pid) = home.daemon()? else {
            return Err(Failure::new(
                Exit::Failed,
                format!("no daemon is running for {path}; it reads config.toml when it starts"),
            ));
        };
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format!("the daemon of {path} (process {pid}) could not be notified: {why}"))
        };
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| failed(&"it is not a process"))?;
        kill_process(process, Signal::HUP).map_err(|error| failed(&error))?;
        match shared.json {
            true => outln!("{}", json!({ "type": "reloading", "pid": pid })),
            false => outln!("process {pid} is reloading config.toml; its log says what changed"),
        }
        Ok(Exit::Done)
    }
}
