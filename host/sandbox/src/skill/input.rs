//! The input of one call, before anything is prepared for it.

use super::http_need::HttpNeed;
use super::workspace::SpaceUsage;
use crate::effect::files::FileLabels;
use crate::effect::network::Network;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use crate::engine::limits::Budget;
use kiso_base::config::Http as HttpConfig;
use kiso_base::home::{SessionName, SkillName};
use kiso_store::secret::Secrets;
use kiso_store::store::{KvOwner, Store};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The input of one call, without its grant.
pub struct CallInput<'a> {
    pub skill: SkillName,
    pub tool: String,
    /// The checked arguments, with defaults filled in.
    pub args: Value,
    pub session: SessionName,
    pub locale: String,
    pub budget: Budget,
    /// The session's workspace on this machine.
    pub work: PathBuf,
    /// Whether the skill may see it.
    pub visible: bool,
    pub usage: Arc<SpaceUsage>,
    /// The transaction that it belongs to, if it can be undone.
    pub transaction: Option<Arc<Transaction>>,
    /// The effects that it may have outside of the sandbox, and the label of the data that it reads.
    pub permit: Permit,
    /// The labels of the session's files, if it sees them.
    pub labels: Option<Arc<FileLabels>>,
    pub declared: DeclaredSecrets,
    /// The secrets of the run; a skill sees those that it declares and was granted.
    pub secrets: &'a Secrets,
    pub http: HttpConfig,
    /// The network of a bundled skill beside its grant, and the needs of its manifest.
    pub network: Option<(Network, Vec<HttpNeed>)>,
    pub store: Store,
    pub observer: Arc<dyn Observer>,
    pub keep: Keep,
}

impl std::fmt::Debug for CallInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallInput").field("skill", &self.skill).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The secrets that a manifest names.
#[derive(Debug, Clone, Default)]
pub struct DeclaredSecrets {
    /// Secrets of the conversation.
    pub session: Vec<String>,
    /// Secrets of the environment: name to whether a call needs it.
    pub environment: BTreeMap<String, bool>,
    /// Those of both kinds that the host puts into requests. The guest never gets them.
    pub injected: BTreeSet<String>,
}

/// Whether a call can read and write values on disk. A self-test and `kiso skill test` cannot, because they run code that
/// nobody has approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    Disk(KvOwner),
    Nothing,
}

/// Receives the progress of a call while it runs. Must return at once.
pub trait Observer: Send + Sync {
    /// A skill is being compiled, which may take seconds.
    fn compiling(&self, _skill: &str) {}

    /// The skill is still being compiled, for this long.
    fn still_compiling(&self, _skill: &str, _elapsed: Duration) {}

    /// The guest reported progress: a share from 0 to 1 if known, and a few words.
    fn progress(&self, _skill: &str, _done: Option<f64>, _note: &str) {}
}

/// Ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {}
