//! Conversations of programs that use OpenAI's API: their sessions, and their requests by key.

use rusqlite::{OptionalExtension, Row};

use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum remembered requests of all tokens; the oldest are deleted first.
pub const MAX_CHAT_REQUESTS: i64 = 20_000;

/// A session that is a program's conversation, and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    pub session: SessionName,
    /// Digest of the token and of the person that it represents.
    pub owner: String,
    /// Digest of the conversation up to the last question, in the form that the program sends.
    pub asked: Vec<u8>,
    /// The question's message; `None` for a command.
    pub message: Option<i64>,
    /// For commands: the digest of the answer.
    pub answer: Option<Vec<u8>>,
    /// Digest of the program's instructions to the model.
    pub instructions: Option<Vec<u8>>,
}

/// A request that can be repeated or retrieved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRequest {
    pub id: String,
    /// Handle of the token; empty for a local program that needs none.
    pub token: String,
    /// The program's key for the request.
    pub key: Option<String>,
    /// Digest of the request.
    pub asked: Vec<u8>,
    /// `None` for a command without a session.
    pub session: Option<SessionName>,
    /// `None` for a command.
    pub message: Option<i64>,
    /// For commands.
    pub answer: Option<String>,
    pub model: String,
    /// The id of the request that it continues.
    pub previous: Option<String>,
    /// A JSON object.
    pub metadata: String,
    /// Whether it can be retrieved.
    pub stored: bool,
    pub at_ms: i64,
}

const CHAT: &str = "SELECT s.name, c.owner, c.asked, c.message, c.answer, c.instructions FROM chats c
     JOIN sessions s ON s.id = c.session";

const REQUEST: &str = "SELECT r.id, r.token, r.key, r.asked, s.name, r.message, r.answer, r.model, r.previous,
     r.metadata, r.stored, r.at_ms FROM chat_requests r LEFT JOIN sessions s ON s.id = r.session";

impl View<'_> {
    /// Returns the conversation of a session.
    pub fn chat(&self, session: &SessionName) -> Result<Option<Chat>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("{CHAT} WHERE s.name = ?1"))?;
        Ok(query.query_row([session.as_str()], chat).optional()?)
    }

    /// Returns the conversations of an owner whose last question is this one, latest first, at most `limit`.
    pub fn chats_asked(&self, owner: &str, asked: &[u8], limit: u32) -> Result<Vec<Chat>, StoreError> {
        let mut query = self
            .conn
            .prepare_cached(&format!("{CHAT} WHERE c.owner = ?1 AND c.asked = ?2 ORDER BY c.session DESC LIMIT ?3"))?;
        let rows = query.query_map((owner, asked, limit), chat)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the request with this id that a token made.
    pub fn chat_request(&self, token: &str, id: &str) -> Result<Option<ChatRequest>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("{REQUEST} WHERE r.id = ?1 AND r.token = ?2"))?;
        Ok(query.query_row((id, token), request).optional()?)
    }

    /// Returns the request that a token made with this key.
    pub fn chat_request_by_key(&self, token: &str, key: &str) -> Result<Option<ChatRequest>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("{REQUEST} WHERE r.token = ?1 AND r.key = ?2"))?;
        Ok(query.query_row((token, key), request).optional()?)
    }
}

impl Tx<'_> {
    /// Stores the progress of a conversation. Does nothing if the session does not exist, because a command creates none.
    pub fn put_chat(&self, chat: &Chat) -> Result<(), StoreError> {
        let Some(session) = self.session_id(&chat.session)? else { return Ok(()) };
        let mut upsert = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO chats (session, owner, asked, message, answer, instructions)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        upsert.execute((session, &chat.owner, &chat.asked, chat.message, &chat.answer, &chat.instructions))?;
        Ok(())
    }

    /// Stores a request, replacing one with its key; if there are too many, deletes the oldest.
    pub fn put_chat_request(&self, new: &ChatRequest) -> Result<(), StoreError> {
        let session = new.session.as_ref().map(|session| self.session_id(session)).transpose()?.flatten();
        let mut insert = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO chat_requests
                 (id, token, key, asked, session, message, answer, model, previous, metadata, stored, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let num = insert.insert(rusqlite::params![
            new.id,
            new.token,
            new.key,
            new.asked,
            session,
            new.message,
            new.answer,
            new.model,
            new.previous,
            new.metadata,
            new.stored,
            new.at_ms
        ])?;
        self.conn
            .prepare_cached("DELETE FROM chat_requests WHERE num <= ?1")?
            .execute([num.saturating_sub(MAX_CHAT_REQUESTS)])?;
        Ok(())
    }

    /// Makes a request unavailable for retrieval. Returns whether it was available.
    pub fn hide_chat_request(&self, token: &str, id: &str) -> Result<bool, StoreError> {
        let mut update = self
            .conn
            .prepare_cached("UPDATE chat_requests SET stored = 0 WHERE id = ?1 AND token = ?2 AND stored = 1")?;
        Ok(update.execute((id, token))? > 0)
    }
}

fn chat(row: &Row<'_>) -> rusqlite::Result<Chat> {
    Ok(Chat {
        session: session_name(row, 0)?,
        owner: row.get(1)?,
        asked: row.get(2)?,
        message: row.get(3)?,
        answer: row.get(4)?,
        instructions: row.get(5)?,
    })
}

fn request(row: &Row<'_>) -> rusqlite::Result<ChatRequest> {
    let session = match row.get_ref(4)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(session_name(row, 4)?),
    };
    Ok(ChatRequest {
        id: row.get(0)?,
        token: row.get(1)?,
        key: row.get(2)?,
        asked: row.get(3)?,
        session,
        message: row.get(5)?,
        answer: row.get(6)?,
        model: row.get(7)?,
        previous: row.get(8)?,
        metadata: row.get(9)?,
        stored: row.get(10)?,
        at_ms: row.get(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn requests_are_found_by_key_and_id_of_their_token_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let new = |number: i64, key: Option<&str>| ChatRequest {
            id: format!("r{number}"),
            token: "t".to_owned(),
            key: key.map(str::to_owned),
            asked: vec![1],
            session: None,
            message: None,
            answer: Some("answer".to_owned()),
            model: "kiso".to_owned(),
            previous: None,
            metadata: "{}".to_owned(),
            stored: true,
            at_ms: number,
        };
        let first = new(1, Some("k"));
        let kept = first.clone();
        store.write_blocking(move |tx| tx.put_chat_request(&kept)).unwrap();
        store
            .read_blocking(|view| {
                assert_eq!(view.chat_request("t", "r1")?, Some(first.clone()));
                assert_eq!(view.chat_request_by_key("t", "k")?, Some(first.clone()));
                assert_eq!((view.chat_request("u", "r1")?, view.chat_request_by_key("u", "k")?), (None, None));
                Ok(())
            })
            .unwrap();
        store
            .write_blocking(move |tx| {
                assert!(!tx.hide_chat_request("u", "r1")?);
                assert!(tx.hide_chat_request("t", "r1")? && !tx.hide_chat_request("t", "r1")?);
                assert!(tx.chat_request_by_key("t", "k")?.is_some(), "it was done, whoever may ask for it");
                // As if the maximum had been reached.
                tx.conn.execute("UPDATE chat_requests SET num = num + 5", ())?;
                tx.conn.execute(
                    "INSERT INTO chat_requests (num, id, token, asked, model, metadata, stored, at_ms)
                     VALUES (?1, 'r2', 't', x'00', 'kiso', '{}', 1, 1)",
                    [MAX_CHAT_REQUESTS + 5],
                )?;
                tx.put_chat_request(&new(3, None))?;
                assert_eq!(tx.chat_request("t", "r1")?, None);
                assert!(tx.chat_request("t", "r2")?.is_some() && tx.chat_request("t", "r3")?.is_some());
                Ok(())
            })
            .unwrap();
    }
}
