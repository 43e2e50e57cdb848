//! `kiso man`: manual pages, made from the same declarations as `--help`. They are part of the program because people who
//! build kiso without a package want them, too; they add less than a thousandth to its size.

use super::{Exit, Failure};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Directory to write to, such as ~/.local/share/man/man1; created if missing
    dir: PathBuf,
}

impl ManArgs {
    pub(super) fn execute(&self, kiso: clap::Command) -> Result<Exit, Failure> {
        let written = std::fs::create_dir_all(&self.dir).and_then(|()| clap_mangen::generate_to(kiso, &self.dir));
        match written {
            Ok(()) => Ok(Exit::Done),
            Err(e) => Err(Failure::new(Exit::Failed, format!("{}: {e}", self.dir.display()))),
        }
    }
}
