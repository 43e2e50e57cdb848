//! The owners of sessions, for callers that may only read the sessions that they began.

use rusqlite::OptionalExtension;

use super::{LoginId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A caller that may only read the sessions that it began: a token, or a browser that was logged in by a link of the owner.
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

/// Maximum parents that are followed in a tree of subagents. Other limits keep trees much lower.
const MAX_HEIGHT: u32 = 64;

/// Prefixes of sessions that kiso begins for schedules, hooks, channels and subagents. A caller that began a session with such a
/// name first would own everything that kiso writes there later.
const HOST_PREFIXES: [&str; 4] = ["schedule.", "hook.", "channel.", "sub."];

/// A session and its ancestors, with their owners.
const LINE: &str = "WITH RECURSIVE line (id, parent, owner, height) AS (
     SELECT id, parent, owner, 0 FROM sessions WHERE name = ?1
     UNION ALL
     SELECT s.id, s.parent, s.owner, height + 1 FROM sessions s JOIN line ON s.id = line.parent WHERE height < ?2)";

impl View<'_> {
    /// Whether this caller began the session, or the one that it is a subagent of.
    pub fn owns_session(&self, owner: &SessionOwner, session: &SessionName) -> Result<bool, StoreError> {
        let mut query =
            self.conn.prepare_cached(&format!("{LINE} SELECT EXISTS (SELECT 1 FROM line WHERE owner = ?3)"))?;
        Ok(query.query_row((session.as_str(), MAX_HEIGHT, owner.as_str()), |row| row.get(0))?)
    }

    /// Whether two sessions have the same owner. Sessions without an owner count as having the same one.
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
    /// Begins a session for this caller. Returns whether it is new or already the caller's. Names that kiso itself uses are
    /// refused. `max` is the maximum number of sessions.
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

    /// The same for a session whose name only this caller can know or have created: a session without an owner becomes the
    /// caller's.
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
