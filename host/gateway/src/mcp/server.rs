//! State that all clients' requests share, and the callers of requests.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admission::SandboxQueue;
use super::catalog::{self, OfferedTool};
use super::hold::Holds;
use super::progress::ProgressTeller;
use crate::attachment::{self, Attachment};
use crate::error::ApiError;
use kiso_agent::drive::RunExecutor;
use kiso_agent::session::workspace::{FileError, Incoming};
use kiso_agent::tool::builtin::ToolFault;
use kiso_base::home::{Home, SessionName};
use kiso_base::rpc::{BUSY, RpcError};
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::skill::Quota;
use kiso_store::secret::Secrets;
use kiso_store::store::SessionOwner;

/// Maximum number of concurrent requests of all clients.
const MAX_REQUESTS: usize = 256;

/// Maximum length of a word in the name of a client's session.
const MAX_WORD: usize = 24;

/// The MCP server. Clones are cheap and share the state.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    drive: RunExecutor,
    secrets: Secrets,
    admission: SandboxQueue,
    holds: Holds,
    places: Arc<Semaphore>,
    /// The list of tools, with the revision for which it was created.
    offered: Mutex<(u64, Arc<Vec<OfferedTool>>)>,
}

/// The caller, and the kiso session to work in.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub caller: CallerScope,
    pub session: SessionName,
    /// Set if the caller may read only sessions that it created.
    pub owner: Option<SessionOwner>,
}

/// A message for a run, with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunMessage {
    pub text: String,
    pub files: Vec<Attachment>,
}

impl RunMessage {
    /// Writes the files to the session's workspace and returns the text that names them. `begin` is how this process opens files
    /// for writing.
    pub(super) async fn settled(
        self,
        drive: &RunExecutor,
        session: &SessionName,
        begin: fn(&Home, &SessionName, Arc<Quota>) -> Result<Incoming, FileError>,
    ) -> Result<String, ApiError> {
        if self.files.is_empty() {
            return Ok(self.text);
        }
        let names = attachment::put(drive, session, self.files, LabelId::from_label(&Label::attached()), begin).await?;
        Ok(format!("{}\n\nFiles: {}", self.text, names.join(", ")))
    }
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunAnswer {
    pub text: String,
    /// "done", "failed", "cancelled" or "limit".
    pub status: &'static str,
    pub run: Option<String>,
}

/// Processes messages. If the caller stops waiting, the run is cancelled.
pub(super) trait Runner: Send + Sync {
    fn run<'a>(
        &'a self,
        asker: &'a Asker,
        message: RunMessage,
        progress: &'a ProgressTeller,
    ) -> BoxFuture<'a, Result<RunAnswer, ToolFault>>;
}

impl Server {
    /// `secrets` are from the environment.
    pub fn new(drive: RunExecutor, secrets: Secrets) -> Server {
        let admission = SandboxQueue::new(drive.config.engine.max_calls);
        let places = Arc::new(Semaphore::new(MAX_REQUESTS));
        let (holds, offered) = (Holds::default(), Mutex::default());
        Server(Arc::new(Inner { drive, secrets, admission, holds, places, offered }))
    }

    pub(super) fn drive(&self) -> &RunExecutor {
        &self.0.drive
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    pub(super) fn admission(&self) -> &SandboxQueue {
        &self.0.admission
    }

    pub(super) fn holds(&self) -> &Holds {
        &self.0.holds
    }

    /// Takes a place among the concurrent requests.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        let place = self.0.places.clone().try_acquire_owned();
        place.map_err(|_| RpcError::new(BUSY, format!("{MAX_REQUESTS} requests are already under way")))
    }

    /// Returns the current tools. Reads the installed skills.
    pub(super) fn offered(&self) -> Arc<Vec<OfferedTool>> {
        let tools = self.0.drive.newest().tools;
        let revision = tools.revision();
        let mut offered = self.0.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.0 != revision {
            *offered = (revision, Arc::new(catalog::offered(tools.outward())));
        }
        offered.1.clone()
    }

    /// Returns a number that changes whenever the tools change. Reads the installed skills.
    pub(super) async fn revision(&self) -> u64 {
        let tools = self.0.drive.newest().tools;
        tokio::task::spawn_blocking(move || tools.revision()).await.unwrap_or_default()
    }
}

/// Returns the session of a client that names none: one for each token and program, so that a returning client finds its files.
pub(super) fn session_for(token: Option<&str>, client: Option<&str>) -> SessionName {
    let mut name = "mcp".to_owned();
    for word in [token, client].into_iter().flatten() {
        let plain = word.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let plain: String = plain.take(MAX_WORD).collect();
        let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
        if !words.is_empty() {
            name = format!("{name}-{}", words.join("-"));
        }
    }
    SessionName::parse(&name).unwrap_or_default()
}

/// Returns the session of a client that works in a folder. Each folder has its own, so that a client cannot change another
/// project's folder.
pub fn session_for_folder(client: Option<&str>, folder: &Path) -> SessionName {
    let name = folder.file_name().map(|name| name.to_string_lossy());
    let digest = ring::digest::digest(&ring::digest::SHA256, folder.as_os_str().as_bytes());
    let short = data_encoding::HEXLOWER.encode(&digest.as_ref()[..4]);
    let name = format!("{}-{short}", session_for(client, name.as_deref()));
    SessionName::parse(&name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_session_whatever_it_calls_itself() {
        let of = |token, client| session_for(token, client).to_string();
        assert_eq!(of(None, None), "mcp");
        assert_eq!(of(None, Some("Claude Code")), "mcp-claude-code");
        assert_eq!(of(Some("laptop"), Some("../../x")), "mcp-laptop-x");
        assert_eq!(of(None, Some("ÄÖ..")), "mcp");
        assert!(of(Some(&"t".repeat(99)), Some(&"c".repeat(99))).len() <= 64);
    }

    #[test]
    fn each_folder_has_a_session_of_its_own() {
        let of = |folder: &str| session_for_folder(Some("Claude Code"), Path::new(folder)).to_string();
        assert!(of("/home/me/My Site").starts_with("mcp-claude-code-my-site-"), "{}", of("/home/me/My Site"));
        assert_ne!(of("/a/site"), of("/b/site"));
        assert_eq!(of("/a/site"), of("/a/site"));
        assert!(of(&format!("/{}", "x".repeat(99))).len() <= 64);
    }
}
