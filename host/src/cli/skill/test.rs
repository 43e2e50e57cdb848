//! `kiso skill test`.

use super::build::build;
use super::run::arguments;
use super::{open, print_ended};
use crate::cli::{Exit, Failure, Shared, block_on, environment_secrets, session};
use kiso_sandbox::skill::Caller;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Arguments
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// All arguments as one JSON object
    #[arg(long, conflicts_with = "words", value_name = "JSON")]
    args: Option<String>,
    /// The skill's project
    #[arg(long, default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    /// The session whose /work it sees; created if it does not exist
    #[arg(long, short, default_value = "skill-test", value_name = "NAME")]
    session: String,
    /// Copy this file or folder into the session's /work first; repeat for several
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
}

impl TestArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = session(Some(&self.session))?;
        let built = build(&self.dir)?;
        let (opened, show) = open(shared)?;
        let candidate = opened.skills.examine(&built, None, None)?;
        let name = candidate.name().to_string();
        let args = arguments(self.args.as_deref(), &self.words, &candidate.manifest().args)?;
        let _lock = opened.home.lock_session(&session)?;
        opened.copy_in(&session, &self.file, &show)?;
        show.busy(&name);
        let secrets = environment_secrets();
        let caller = Caller::by_hand(&session, &secrets);
        let ended = block_on(opened.skills.try_out(candidate, &args, caller))??;
        print_ended(ended, &name, &session, &opened.home.work_dir(&session), &show, shared.json)
    }
}
