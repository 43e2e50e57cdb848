//! What a member of a fleet adds to the work: whether it may still act, and where files are kept besides the home.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::home::SessionName;

/// How often it is looked whether something may be begun.
const LOOK: Duration = Duration::from_millis(50);

/// A member that owns the home.
pub trait FleetMember: fmt::Debug + Send + Sync {
    /// Of its ownership: grows with each owner, so that a receiver can refuse what comes from one before.
    fn epoch(&self) -> u64;

    /// Whether something may be begun that cannot be taken back: whether nobody else can own the home yet.
    fn may_act(&self) -> bool;

    /// Keeps the session's files as they are now for the other members; under which name. Waits on the caller's thread.
    fn keep_files(&self, session: &SessionName) -> Result<[u8; 32], String>;
}

/// Returns when something may be begun that cannot be taken back. Of a member that owns nothing any more it never does: its
/// process is replaced.
pub async fn may_act(member: Option<&Arc<dyn FleetMember>>) {
    while member.is_some_and(|member| !member.may_act()) {
        tokio::time::sleep(LOOK).await;
    }
}
