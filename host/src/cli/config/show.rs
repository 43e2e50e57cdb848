//! `kiso config show`.

use crate::cli::show::printable;
use crate::cli::{Exit, Failure, Shared, is_set};
use kiso_base::config::Config;
use kiso_base::home::Home;

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {}

impl ShowArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let config = Config::load(&home)?;
        let path = home.config_path();
        if shared.json {
            let mut object = config.to_json(is_set);
            object["type"] = "config".into();
            object["file"] = path.display().to_string().into();
            outln!("{object}");
        } else {
            out!("{}", printable(&format!("# {}, with every default\n{}", path.display(), config.effective(is_set))));
        }
        Ok(Exit::Done)
    }
}
