//! `kiso mcp`: the server on standard streams, and servers whose tools plans can use.

mod login;
mod servers;

use super::folder::FolderArgs;
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, log};
use clap::Subcommand;
use kiso_base::home::SessionName;
use kiso_gateway::mcp::session_for_folder;
use kiso_gateway::mcp::stdio::{self, ClientPlace};
use kiso_sandbox::skill::Quiet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,

    /// The session to work in; created if it does not exist. Without it, each client has its own
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,

    #[command(flatten)]
    folders: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// List the MCP servers in config.toml and the state of their tools
    List,
    /// Log in to an MCP server that asks for it (OAuth), in your browser
    #[command(after_help = login::AFTER)]
    Login {
        /// Server, as in config.toml
        name: String,
        /// Print the link without opening a browser
        #[arg(long)]
        print: bool,
    },
    /// Log out of an MCP server and delete its tokens
    Logout {
        /// Server, as in config.toml
        name: String,
    },
    /// Show tools of an MCP server and allow them as they are now
    Allow {
        /// Server, as in config.toml
        name: String,
        /// Tool to allow [default: all that `allow` in config.toml names]
        tool: Option<String>,
    },
}

const AFTER: &str = "Without a subcommand, this serves kiso's tools on standard input and output. Editors and agents start this themselves; docs/clients.md has the lines for each. It needs no daemon and \
    works beside one. The daemon serves the same at /mcp.";

impl McpArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match &self.command {
            Some(McpCommand::List) => return servers::list(shared),
            Some(McpCommand::Allow { name, tool }) => return servers::allow(shared, name, tool.as_deref()),
            Some(McpCommand::Login { name, print }) => return login::log_in(shared, name, *print),
            Some(McpCommand::Logout { name }) => return login::log_out(shared, name),
            None => {}
        }
        let session = self.session.as_deref().map(SessionName::parse).transpose()?;
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let session = match (session, self.folders.dir.first()) {
            (None, Some(dir)) => Some(session_for_folder(None, &dir.canonicalize().unwrap_or_else(|_| dir.clone()))),
            (session, _) => session,
        };
        let has_folders = !self.folders.dir.is_empty();
        if let Some(session) = session.as_ref().filter(|_| has_folders) {
            self.folders.open(&opened, session)?;
        }
        let place = ClientPlace { session, has_folders };
        log::configure(&opened.config.log.level, &opened.config.log.format);
        log::catch_panics();
        let drive = opened.drive()?;
        let servers = drive.tools.servers().clone();
        let served = block_on(async {
            let (input, output) = (std::io::stdin(), std::io::stdout());
            let served = stdio::serve(drive, environment_secrets(), place, input, output).await;
            servers.stop().await;
            served
        })?;
        served.map_err(|error| Failure::new(Exit::Failed, format!("failed to write an answer: {error}")))?;
        opened.store.close();
        Ok(Exit::Done)
    }
}
