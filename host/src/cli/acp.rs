//! `kiso acp`: kiso as an editor's agent, over the Agent Client Protocol on standard streams.
//!
//! ```text
//!  editor ── lines ──▶ agent ──▶ a task for each session ──▶ the daemon's socket
//!    ▲                              │ prompt: files into the workspace, then the message
//!    └───────── updates ────────────┘ events of its run: plan, tool calls, diffs, text
//! ```

mod agent;
mod board;
mod content;
mod diff;
mod session;
mod update;

use super::client::daemon::{begin, is_served};
use super::show::Paint;
use super::{Exit, Failure, Opened, Shared, block_on, log};
use clap::ValueEnum;
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::skill::Quiet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct AcpArgs {
    /// The session that every conversation of the editor is in; created if it does not exist. Without it, each has its own
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Show the editor's project to command lines as /project: `read` for reading only, `ask` to show you in the
    /// editor what a prompt would change in it, and to apply that when you agree
    #[arg(long, value_enum, value_name = "ACCESS", num_args = 0..=1, default_missing_value = "read")]
    project: Option<ProjectAccess>,
}

/// The access of a session to the editor's project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ProjectAccess {
    Read,
    /// Read access; changes are written if a person agrees in the editor.
    Ask,
}

const AFTER: &str = "Editors start this themselves; docs/clients.md has the lines for Zed. It uses the daemon of the home, or one of its own where none runs.";

impl AcpArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = self.session.as_deref().map(SessionName::parse).transpose()?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        // The same steps as in a daemon before it opens the store, because one is started here.
        if !is_served(&home)? {
            crate::daemon::check_before_start(&home)?;
        }
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        log::configure(&opened.config.log.level, &opened.config.log.format);
        log::catch_panics();
        let options = agent::AgentOptions { session, project: self.project };
        block_on(async {
            let own = begin(&opened, "editor", Paint::never()).await?;
            let drive = opened.drive()?;
            let servers = drive.tools.servers().clone();
            let served = agent::serve(drive, options, std::io::stdin(), std::io::stdout()).await;
            servers.stop().await;
            if let Some(daemon) = own {
                daemon.stop().await;
            }
            served.map_err(|error| Failure::new(Exit::Failed, format!("failed to write an answer: {error}")))?;
            Ok(Exit::Done)
        })?
    }
}
