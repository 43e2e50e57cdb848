//! Who began a session, for callers that may read only the sessions that they began.

use rusqlite::OptionalExtension;

use super::{LoginId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A caller that may read only the sessions that it began: a token, or a browser that a link of the owner logged in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionOwner(String);

impl SessionOwner {
    /// The token with this handle.
    pub fn from_token(handle: &str) -> SessionOwner {
        SessionOwner(format!("token {handle}"))
    }

    /// A login without a token.
    pub fn from_login(login: LoginId) -> SessionOwner {
        SessionOwner(format!("login {}", login.hex()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parents that are followed up a tree of subagents. Limits keep trees far below.
const MAX_HEIGHT: u32 = 64;

/// Prefixes of the sessions that kiso begins for schedules, hooks, channels and subagents. If a caller began one of these names
/// first, it would own what kiso later writes there.
const HOST_PREFIXES: [&str; 4] = ["schedule.", "hook.", "channel.", "sub."];

/// A session and its parents, up to the top of the tree, with their owners.
const LINE: &str = "WITH RECURSIVE line (id, parent, owner, height) AS (
     SELECT id, parent, owner, 0 FROM sessions WHERE name = ?1
     UNION ALL
     SELECT s.id, s.parent, s.owner, height + 1 FROM sessions s JOIN line ON s.id = line.parent WHERE height < ?2)";

impl View<'_> {
    /// Whether this caller began the session, or the one that its subagents belong to.
    pub fn owns_session(&self, owner: &SessionOwner, session: &SessionName) -> Result<bool, StoreError> {
        let mut query =
            self.conn.prepare_cached(&format!("{LINE} SELECT EXISTS (SELECT 1 FROM line WHERE owner = ?3)"))?;
        Ok(query.query_row((session.as_str(), MAX_HEIGHT, owner.as_str()), |row| row.get(0))?)
    }

    /// Whether two sessions have the same owner. Those that nobody owns count as of one owner.
    pub fn have_same_owner(&self, one: &SessionName, other: &SessionName) -> Result<bool, StoreError> {
        Ok(self.session_owner(one)? == self.session_owner(other)?)
    }

    fn session_owner(&self, session: &SessionName) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "{LINE} SELECT owner FROM line WHERE owner IS NOT NULL ORDER BY height LIMIT 1"
        ))?;
        Ok(query.query_row((session.as_str(), MAX_HEIGHT), |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Begins a session for this caller; true if it is new or already the caller's. Names that kiso gives itself cannot be begun.
    /// `max`: sessions that there may be.
    pub fn claim_session(
        &self,
        owner: &SessionOwner,
        session: &SessionName,
        max: u64,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        if self.has_session(session)? {
            return self.owns_session(owner, session);
        }
        if HOST_PREFIXES.iter().any(|prefix| session.as_str().starts_with(prefix)) {
            return Ok(false);
        }
        self.may_open(session, max)?;
        self.open_session(session, at_ms)?;
        self.set_owner(owner, session)?;
        Ok(true)
    }

    /// The same for a session whose name only this caller can know or have made: one without an owner becomes the caller's.
    pub fn adopt_session(
        &self,
        owner: &SessionOwner,
        session: &SessionName,
        max: u64,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT owner FROM sessions WHERE name = ?1")?;
        let found: Option<Option<String>> = query.query_row([session.as_str()], |row| row.get(0)).optional()?;
        if found == Some(None) {
            self.set_owner(owner, session)?;
        }
        self.claim_session(owner, session, max, at_ms)
    }

    fn set_owner(&self, owner: &SessionOwner, session: &SessionName) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached("UPDATE sessions SET owner = ?2 WHERE name = ?1")?;
        update.execute((session.as_str(), owner.as_str()))?;
        Ok(())
    }
}
