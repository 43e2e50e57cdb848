//! Looking through messages, from the newest to the oldest.

use super::sessions::{message, session_name};
use super::{Message, StoreError, View};
use crate::home::SessionName;

impl View<'_> {
    /// Shows the messages before the one with this id (none: the last), newest first, of one session or of all, at most
    /// `most`, until `wants_more` is false. Returns the id of the last one shown if there may be more.
    pub fn look_back(
        &self,
        session: Option<&SessionName>,
        before: Option<i64>,
        most: u32,
        mut wants_more: impl FnMut(SessionName, Message) -> bool,
    ) -> Result<Option<i64>, StoreError> {
        // Two statements: one that fitted both could use the index of neither.
        let of = if session.is_some() { "m.session = (SELECT id FROM sessions WHERE name = ?3) AND" } else { "" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, s.name FROM messages m JOIN sessions s ON s.id = m.session
             WHERE {of} m.id < ?1 ORDER BY m.id DESC LIMIT ?2"
        ))?;
        let before = before.unwrap_or(i64::MAX);
        let mut rows = match session {
            Some(session) => query.query((before, most, session.as_str()))?,
            None => query.query((before, most))?,
        };
        let (mut shown, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let message = message(row)?;
            (shown, last) = (shown + 1, Some(message.id));
            if !wants_more(session_name(row, 6)?, message) {
                return Ok(last);
            }
        }
        Ok(last.filter(|_| shown == most))
    }
}
