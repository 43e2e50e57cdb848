//! Sessions and their messages.

use std::collections::BTreeMap;

use rusqlite::OptionalExtension;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::words::indexed_grams;
use super::{RunId, SessionOwner, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Increases with every message.
    pub id: i64,
    pub role: MessageRole,
    pub text: String,
    pub at_ms: i64,
    /// The run that it began (user) or that wrote it (assistant).
    pub run: Option<RunId>,
    /// `#tags` of the text, without the `#`.
    pub tags: Vec<String>,
}

/// A session in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionLine {
    /// Its row, which distinguishes sessions with the same time of activity.
    #[serde(skip)]
    pub id: i64,
    pub name: SessionName,
    pub title: Option<String>,
    /// Milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// When its last message came, in milliseconds since 1970 (UTC).
    pub active_ms: i64,
    /// The model that was chosen for it; null for the configured ones.
    pub model: Option<String>,
    /// Number of unread replies, at most 99.
    #[schemars(range(max = 99))]
    pub unread: u32,
    /// The current run.
    pub running: Option<RunId>,
    /// The run that waits for an approval.
    pub waiting: Option<RunId>,
    pub placement: Placement,
    /// The label of machines of a fleet that its runs prefer; null for any.
    pub runs_on: Option<String>,
}

/// The place of a session in listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Placement {
    /// Listed with the others, by activity.
    Listed,
    /// Listed above the others. Retention does not delete it.
    Pinned,
    /// Separate from the others. It can be searched and continued like any other.
    Archived,
}

impl Placement {
    pub const ALL: [Placement; 3] = [Placement::Listed, Placement::Pinned, Placement::Archived];

    /// Parses the name of a placement.
    pub fn named(name: &str) -> Option<Placement> {
        name.parse().ok()
    }
}

/// The models that were chosen for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// For all roles that work on its messages.
    pub all: Option<String>,
    /// For single roles, by name.
    pub roles: BTreeMap<String, String>,
}

impl ModelChoice {
    /// Whether no model was chosen.
    pub fn is_default(&self) -> bool {
        self.all.is_none() && self.roles.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum MessageRole {
    User,
    Assistant,
}

/// Bytes of texts in a page of messages: the message that reaches them is the last one.
pub const PAGE_BYTES: usize = 4 << 20;

impl View<'_> {
    /// Returns the last `count` messages of the session's branch in use, oldest first; empty if the session does not exist. Reads
    /// only that many rows, however long the session is.
    pub fn last_messages(&self, session: &SessionName, count: u32) -> Result<Vec<Message>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0 ORDER BY id DESC LIMIT ?2",
        )?;
        let rows = query.query_map((session.as_str(), count), message)?;
        let mut messages = rows.collect::<Result<Vec<_>, _>>()?;
        messages.reverse();
        Ok(messages)
    }

    /// Whether a session with this name exists.
    pub fn has_session(&self, session: &SessionName) -> Result<bool, StoreError> {
        Ok(self.session_id(session)?.is_some())
    }

    /// Returns sessions of these placements, most recently active first: those before the given activity and row, at most
    /// `limit`. Leaves out subagents and sessions that retention has deleted.
    pub fn list_sessions(
        &self,
        placements: &[Placement],
        before: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<SessionLine>, StoreError> {
        self.list_sessions_of(None, placements, before, limit)
    }

    /// The same for sessions that this caller began; if `None`, for all.
    pub fn list_sessions_of(
        &self,
        owner: Option<&SessionOwner>,
        placements: &[Placement],
        before: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<SessionLine>, StoreError> {
        let (at, id) = before.unwrap_or((i64::MAX, i64::MAX));
        // Two statements, because with an "or" SQLite would read the sessions of all other owners.
        let of_owner = if owner.is_some() { "owner = ?5 AND" } else { "?5 IS NULL AND" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {LINE} FROM sessions s
             WHERE {of_owner} (parent IS NOT NULL) = 0 AND (active_ms, id) < (?1, ?2) AND active_ms >= 0
                 AND instr(?4, placement) > 0
             ORDER BY active_ms DESC, id DESC LIMIT ?3",
        ))?;
        // No placement's name is a part of another one.
        let named = placements.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(",");
        let rows = query.query_map((at, id, limit, named, owner.map(SessionOwner::as_str)), session_line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the session with this name, as in a listing.
    pub fn session(&self, session: &SessionName) -> Result<Option<SessionLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {LINE} FROM sessions s WHERE name = ?1"))?;
        Ok(query.query_row([session.as_str()], session_line).optional()?)
    }

    /// Returns the message with this id, with its session.
    pub fn message(&self, id: i64) -> Result<Option<(SessionName, Message)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, s.name FROM messages m
             JOIN sessions s ON s.id = m.session WHERE m.id = ?1",
        )?;
        Ok(query.query_row([id], |row| Ok((session_name(row, 6)?, message(row)?))).optional()?)
    }

    /// Returns the last `count` messages of the branch in use before the one with this id (`None`: the last ones), oldest first;
    /// fewer if they exceed [`PAGE_BYTES`].
    pub fn messages_before(
        &self,
        session: &SessionName,
        before: Option<i64>,
        count: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0 AND id < ?2 ORDER BY id DESC LIMIT ?3",
        )?;
        let rows = query.query((session.as_str(), before.unwrap_or(i64::MAX), count))?;
        let mut messages = page_of(rows)?;
        messages.reverse();
        Ok(messages)
    }

    /// Returns the models that were chosen for the session.
    pub fn model_choice(&self, session: &SessionName) -> Result<ModelChoice, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT model, role_models FROM sessions WHERE name = ?1")?;
        let found = query.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)));
        let Some((all, roles)) = found.optional()? else { return Ok(ModelChoice::default()) };
        let wrong = |error: serde_json::Error| StoreError::corrupt(format!("the models of a session: {error}"));
        Ok(ModelChoice { all, roles: serde_json::from_str(&roles).map_err(wrong)? })
    }

    /// Checks that a session with this name exists, or may be created.
    pub fn may_open(&self, session: &SessionName, max: u64) -> Result<(), StoreError> {
        if self.has_session(session)? || self.count_sessions()? < max {
            return Ok(());
        }
        Err(StoreError::Sessions { max })
    }

    fn count_sessions(&self) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM sessions")?;
        Ok(query.query_row((), |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    /// Returns the size of the session's workspace when it was last measured.
    pub fn workspace_bytes(&self, session: &SessionName) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT workspace_bytes FROM sessions WHERE name = ?1")?;
        let bytes = query.query_row([session.as_str()], |row| row.get::<_, i64>(0)).optional()?;
        Ok(bytes.unwrap_or(0).unsigned_abs())
    }

    /// Returns the total size of all workspaces when they were last measured, of the undo data, and of the store.
    pub fn home_bytes(&self) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT coalesce(sum(workspace_bytes), 0) FROM sessions INDEXED BY sessions_with_files WHERE workspace_bytes > 0",
        )?;
        let workspaces = query.query_row((), |row| row.get::<_, i64>(0))?.unsigned_abs();
        let space = self.space()?;
        Ok(workspaces + self.undo_bytes()? + space.bytes.saturating_sub(space.free))
    }

    /// Returns the total size of the undo data of all sessions.
    pub fn undo_bytes(&self) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT coalesce(sum(undo_bytes), 0) FROM sessions INDEXED BY sessions_with_undo WHERE undo_bytes > 0",
        )?;
        Ok(query.query_row((), |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    pub(super) fn session_id(&self, session: &SessionName) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT id FROM sessions WHERE name = ?1")?;
        Ok(query.query_row([session.as_str()], |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Adds a message, and creates the session if necessary. A reply is in the branch of the message that its run began with, any
    /// other message in the branch in use. Returns the message's id.
    pub fn add_message(
        &self,
        session: &SessionName,
        role: MessageRole,
        text: &str,
        at_ms: i64,
        run: Option<&RunId>,
    ) -> Result<i64, StoreError> {
        let session = self.ensure_session(session, at_ms)?;
        let (branch, replaced) = self.branch_for(session, run)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO messages (session, role, text, at_ms, run, grams, branch, replaced) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let grams = indexed_grams(text);
        let message = insert.insert((session, role, text, at_ms, run, grams, branch, replaced))?;
        self.tell_message(session, message, at_ms)?;
        if role == MessageRole::Assistant {
            self.tell_webhooks_of_reply(session, message, at_ms)?;
        }
        Ok(message)
    }

    /// Sets the session's model for all roles; `None` restores the configured one.
    pub fn set_session_model(&self, session: &SessionName, model: Option<&str>, at_ms: i64) -> Result<(), StoreError> {
        let id = self.ensure_session(session, at_ms)?;
        let mut update = self.conn.prepare_cached(
            "UPDATE sessions SET model = ?2, role_models = '{}', active_ms = max(active_ms, ?3) WHERE id = ?1",
        )?;
        update.execute((id, model, at_ms))?;
        self.tell_session(session)
    }

    /// Sets the session's model for one role; `None` removes it.
    pub fn set_role_model(
        &self,
        session: &SessionName,
        role: &str,
        model: Option<&str>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let id = self.ensure_session(session, at_ms)?;
        let mut choice = self.model_choice(session)?;
        match model {
            Some(model) => drop(choice.roles.insert(role.to_owned(), model.to_owned())),
            None => drop(choice.roles.remove(role)),
        }
        let roles = kiso_base::json::text(&choice.roles);
        let mut update = self
            .conn
            .prepare_cached("UPDATE sessions SET role_models = ?2, active_ms = max(active_ms, ?3) WHERE id = ?1")?;
        update.execute((id, roles, at_ms))?;
        self.tell_session(session)
    }

    /// Records that the owner has read the session up to this message. The mark only moves forward, and not beyond the last
    /// message.
    pub fn mark_read(&self, session: &SessionName, message: i64) -> Result<(), StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET read_to = ?2 WHERE name = ?1 AND read_to < ?2")?;
        let mut query = self.conn.prepare_cached(
            "SELECT coalesce(max(id), 0) FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?1)",
        )?;
        let last: i64 = query.query_row([session.as_str()], |row| row.get(0))?;
        match update.execute((session.as_str(), message.min(last)))? {
            0 => Ok(()),
            _ => self.tell_session(session),
        }
    }

    /// Sets the session's place in listings; does nothing if the session does not exist.
    pub fn set_placement(&self, session: &SessionName, placement: Placement) -> Result<(), StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET placement = ?2 WHERE name = ?1 AND placement <> ?2")?;
        match update.execute((session.as_str(), placement))? {
            0 => Ok(()),
            _ => self.tell_session(session),
        }
    }

    /// Sets the label of machines that its runs prefer; does nothing if the session does not exist.
    pub fn set_runs_on(&self, session: &SessionName, label: Option<&str>) -> Result<(), StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET runs_on = ?2 WHERE name = ?1 AND runs_on IS NOT ?2")?;
        match update.execute((session.as_str(), label))? {
            0 => Ok(()),
            _ => self.tell_session(session),
        }
    }

    /// Creates the session if it does not exist; otherwise, records that it is active now.
    pub fn open_session(&self, session: &SessionName, at_ms: i64) -> Result<(), StoreError> {
        let id = self.ensure_session(session, at_ms)?;
        self.conn
            .prepare_cached("UPDATE sessions SET active_ms = max(active_ms, ?2) WHERE id = ?1")?
            .execute((id, at_ms))?;
        self.tell_session(session)
    }

    /// Marks a reply that nobody has to read as read, if no reply before it is unread.
    pub fn pass_over(&self, session: &SessionName, message: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE sessions SET read_to = ?2 WHERE name = ?1 AND NOT EXISTS (
                 SELECT 1 FROM messages m INDEXED BY replies_of_session WHERE m.session = sessions.id
                     AND m.role = 'assistant' AND m.id > sessions.read_to AND m.id < ?2 AND m.replaced = 0)",
        )?;
        match update.execute((session.as_str(), message))? {
            0 => Ok(()),
            _ => self.tell_session(session),
        }
    }

    /// Stores the size of the session's workspace.
    pub fn set_workspace_bytes(&self, session: &SessionName, bytes: u64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached("UPDATE sessions SET workspace_bytes = ?2 WHERE name = ?1")?;
        update.execute((session.as_str(), i64::try_from(bytes).unwrap_or(i64::MAX)))?;
        Ok(())
    }

    /// Stores the size of the session's undo data.
    pub fn set_undo_bytes(&self, session: &SessionName, bytes: u64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached("UPDATE sessions SET undo_bytes = ?2 WHERE name = ?1")?;
        update.execute((session.as_str(), i64::try_from(bytes).unwrap_or(i64::MAX)))?;
        Ok(())
    }

    /// Checks that a further session may be created.
    pub(super) fn check_sessions(&self) -> Result<(), StoreError> {
        let max = self.max_sessions;
        if max < u64::MAX && self.count_sessions()? >= max { Err(StoreError::Sessions { max }) } else { Ok(()) }
    }

    /// Returns the session's row; creates it with this time if necessary.
    pub(super) fn ensure_session(&self, session: &SessionName, at_ms: i64) -> Result<i64, StoreError> {
        if let Some(id) = self.session_id(session)? {
            return Ok(id);
        }
        self.check_sessions()?;
        let mut insert =
            self.conn.prepare_cached("INSERT INTO sessions (name, created_ms, active_ms) VALUES (?1, ?2, ?2)")?;
        Ok(insert.insert((session.as_str(), at_ms))?)
    }
}

impl ToSql for RunId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_str()))
    }
}

impl FromSql for RunId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<RunId> {
        value.as_str()?.parse().map_err(FromSqlError::other)
    }
}

/// Reads a message from a row of id, role, text, at_ms, run and tags.
pub(super) fn message(row: &rusqlite::Row<'_>) -> rusqlite::Result<Message> {
    let tags = serde_json::from_str(row.get_ref(5)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, error.into()))?;
    Ok(Message { id: row.get(0)?, role: row.get(1)?, text: row.get(2)?, at_ms: row.get(3)?, run: row.get(4)?, tags })
}

/// The columns of a [`SessionLine`] for sessions `s`: reads two indexes for each, and no texts.
pub(super) const LINE: &str = "s.id, s.name, s.title, s.created_ms, s.active_ms, s.model,
     (SELECT count(*) FROM (SELECT 1 FROM messages m INDEXED BY replies_of_session
          WHERE m.session = s.id AND m.role = 'assistant' AND m.id > s.read_to AND m.replaced = 0 LIMIT 99)),
     (SELECT r.id FROM runs r INDEXED BY runs_unfinished
          WHERE r.status = 'running' AND r.held_ms IS NULL AND r.waiting IS NULL AND r.session = s.id ORDER BY r.num DESC LIMIT 1),
     s.placement, s.runs_on,
     (SELECT r.id FROM runs r INDEXED BY runs_unfinished
          WHERE r.status = 'running' AND r.waiting IS NOT NULL AND r.session = s.id ORDER BY r.num DESC LIMIT 1)";

/// Reads a session from a row of [`LINE`].
fn session_line(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionLine> {
    Ok(SessionLine {
        id: row.get(0)?,
        name: session_name(row, 1)?,
        title: row.get(2)?,
        created_ms: row.get(3)?,
        active_ms: row.get(4)?,
        model: row.get(5)?,
        unread: row.get(6)?,
        running: row.get(7)?,
        placement: row.get(8)?,
        runs_on: row.get(9)?,
        waiting: row.get(10)?,
    })
}

/// Reads a session's name from a row.
pub(super) fn session_name(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<SessionName> {
    SessionName::parse(row.get_ref(index)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into()))
}

/// Collects messages up to the maximum size of a page in memory.
pub(super) fn page_of(mut rows: rusqlite::Rows<'_>) -> Result<Vec<Message>, StoreError> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let one = message(row)?;
        bytes += one.text.len();
        messages.push(one);
    }
    Ok(messages)
}

/// Whether a page that was requested with this many messages may have been cut off.
pub fn is_full(page: &[Message], count: u32) -> bool {
    page.len() == count as usize || page.iter().map(|message| message.text.len()).sum::<usize>() >= PAGE_BYTES
}
