//! Channels that are components: their cursors, the senders who may write, and notes besides replies.

use ring::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Row};
use strum::{EnumString, IntoStaticStr};

use super::{StoreError, Tx, View};

/// Validity of a pairing code in milliseconds.
pub const PAIRING_MS: i64 = 60 * 60_000;

/// Maximum strangers of a channel who have a code at once. Further ones get none until a code expires.
pub(super) const MAX_WAITING: u32 = 20;

/// Maximum senders of a channel who may write.
pub(super) const MAX_SENDERS: u32 = 100;

/// Maximum waiting notes of a channel; further ones are dropped.
const MAX_NOTES: u32 = 500;

/// How long handled messages are remembered, in milliseconds: services forget theirs much earlier.
const KEEP_MS: i64 = 90 * 24 * 60 * 60_000;

/// Old messages that one transaction deletes.
const TRIM: u32 = 100;

/// The rights of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SenderStanding {
    /// None: a stranger who has a code.
    Waiting,
    /// May write; the text counts as text from outside.
    Allowed,
    /// May write with the rights of the home's owner.
    Owner,
}

/// Somebody who wrote through a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSender {
    /// Unique among all senders of the home; part of the session's name.
    pub number: i64,
    /// The service's id of the sender.
    pub sender: String,
    /// Chosen by the sender.
    pub name: Option<String>,
    pub standing: SenderStanding,
    /// When the code was created, or the sender was allowed.
    pub at_ms: i64,
}

/// A text of a channel to somebody, besides replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelNote {
    pub id: i64,
    pub recipient: String,
    /// Sealed.
    pub text: String,
    pub attempts: u32,
}

/// The state of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelLine {
    pub cursor: Option<String>,
    /// Why the last poll failed.
    pub trouble: Option<String>,
}

impl View<'_> {
    pub fn channel(&self, channel: &str) -> Result<ChannelLine, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT cursor, trouble FROM channels WHERE name = ?1")?;
        let line = query.query_row([channel], |row| Ok(ChannelLine { cursor: row.get(0)?, trouble: row.get(1)? }));
        Ok(line.optional()?.unwrap_or_default())
    }

    /// Whether a message was handled before.
    pub fn channel_received(&self, channel: &str, id: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT 1 FROM channel_received WHERE channel = ?1 AND id = ?2")?;
        Ok(query.query_row((channel, hash(id)), |_| Ok(())).optional()?.is_some())
    }

    pub fn channel_sender(&self, channel: &str, sender: &str) -> Result<Option<ChannelSender>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT number, sender, name, standing, at_ms FROM channel_senders WHERE channel = ?1 AND sender = ?2",
        )?;
        Ok(query.query_row((channel, sender), sender_of).optional()?)
    }

    /// Returns the senders who may write, then the strangers with codes, in the order of their arrival.
    pub fn channel_senders(&self, channel: &str) -> Result<Vec<ChannelSender>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT number, sender, name, standing, at_ms FROM channel_senders WHERE channel = ?1
             ORDER BY standing = 'waiting', number",
        )?;
        let rows = query.query_map([channel], sender_of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns due notes, oldest first.
    pub fn channel_notes(&self, channel: &str, now_ms: i64, limit: u32) -> Result<Vec<ChannelNote>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, recipient, text, attempts FROM channel_notes WHERE channel = ?1 AND due_ms <= ?2
             ORDER BY due_ms, id LIMIT ?3",
        )?;
        let rows = query.query_map((channel, now_ms, limit), |row| {
            Ok(ChannelNote { id: row.get(0)?, recipient: row.get(1)?, text: row.get(2)?, attempts: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Records that all messages up to the cursor were handled.
    pub fn set_channel_cursor(&self, channel: &str, cursor: &str, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO channels (name, cursor, at_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET cursor = excluded.cursor, at_ms = excluded.at_ms",
        )?;
        upsert.execute((channel, cursor, at_ms))?;
        Ok(())
    }

    /// Records a channel's current problem, or that it has none.
    pub fn set_channel_trouble(&self, channel: &str, trouble: Option<&str>, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO channels (name, trouble, at_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET trouble = excluded.trouble, at_ms = excluded.at_ms",
        )?;
        upsert.execute((channel, trouble, at_ms))?;
        Ok(())
    }

    /// Records that a message was handled, and a note about it: recipient and sealed text.
    pub fn receive_channel_message(
        &self,
        channel: &str,
        id: &str,
        note: Option<(&str, &str)>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO channel_received (channel, id, at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?;
        // Only the first one to record the message adds the note.
        if insert.execute((channel, hash(id), at_ms))? == 1
            && let Some((recipient, text)) = note
        {
            self.add_channel_note(channel, recipient, text, at_ms)?;
        }
        let mut trim = self.conn.prepare_cached(
            "DELETE FROM channel_received WHERE (channel, id) IN
                 (SELECT channel, id FROM channel_received WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        )?;
        trim.execute((at_ms - KEEP_MS, TRIM))?;
        Ok(())
    }

    /// Adds a note for somebody; the text is sealed.
    pub fn add_channel_note(&self, channel: &str, recipient: &str, text: &str, at_ms: i64) -> Result<(), StoreError> {
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM channel_notes WHERE channel = ?1")?;
        if query.query_row([channel], |row| row.get::<_, u32>(0))? < MAX_NOTES {
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO channel_notes (channel, recipient, text, due_ms) VALUES (?1, ?2, ?3, ?4)",
            )?;
            insert.execute((channel, recipient, text, at_ms))?;
        }
        Ok(())
    }

    /// Removes a note that was delivered or given up.
    pub fn end_channel_note(&self, id: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM channel_notes WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Records a failed delivery of a note; the next attempt is due at `due_ms`.
    pub fn put_off_channel_note(&self, id: i64, due_ms: i64) -> Result<(), StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE channel_notes SET due_ms = ?2, attempts = attempts + 1 WHERE id = ?1")?;
        update.execute((id, due_ms))?;
        Ok(())
    }

    /// Gives a stranger this code. Returns false if the stranger has a valid one, or too many strangers have one.
    pub fn offer_channel_code(
        &self,
        channel: &str,
        sender: &str,
        name: Option<&str>,
        code: &str,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        let mut forget = self.conn.prepare_cached(
            "DELETE FROM channel_senders WHERE channel = ?1 AND standing = 'waiting' AND at_ms <= ?2",
        )?;
        forget.execute((channel, at_ms - PAIRING_MS))?;
        let mut query = self
            .conn
            .prepare_cached("SELECT count(*) FROM channel_senders WHERE channel = ?1 AND standing = 'waiting'")?;
        if query.query_row([channel], |row| row.get::<_, u32>(0))? >= MAX_WAITING {
            return Ok(false);
        }
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO channel_senders (channel, sender, name, standing, code, at_ms)
             VALUES (?1, ?2, ?3, 'waiting', ?4, ?5) ON CONFLICT DO NOTHING",
        )?;
        Ok(insert.execute((channel, sender, name, hash(code), at_ms))? == 1)
    }

    /// Allows the stranger who has this code; `None` if nobody has it, or it has expired. Fails with a quota error if the maximum
    /// number of senders is reached.
    pub fn allow_channel_sender(
        &self,
        channel: &str,
        code: &str,
        standing: SenderStanding,
        at_ms: i64,
    ) -> Result<Option<ChannelSender>, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT count(*) FROM channel_senders WHERE channel = ?1 AND standing <> 'waiting'")?;
        if query.query_row([channel], |row| row.get::<_, u32>(0))? >= MAX_SENDERS {
            let what = "too many senders of the channel may write already";
            return Err(StoreError::Quota { what, max: u64::from(MAX_SENDERS) });
        }
        let mut update = self.conn.prepare_cached(
            "UPDATE channel_senders SET standing = ?3, code = NULL, at_ms = ?4
             WHERE channel = ?1 AND code = ?2 AND standing = 'waiting' AND at_ms > ?5
             RETURNING number, sender, name, standing, at_ms",
        )?;
        Ok(update.query_row((channel, hash(code), standing, at_ms, at_ms - PAIRING_MS), sender_of).optional()?)
    }

    /// Removes a sender's permission, or forgets a stranger, and drops waiting notes to them. Returns false if there is none.
    pub fn remove_channel_sender(&self, channel: &str, sender: &str) -> Result<bool, StoreError> {
        let mut notes = self.conn.prepare_cached("DELETE FROM channel_notes WHERE channel = ?1 AND recipient = ?2")?;
        notes.execute((channel, sender))?;
        let mut offers =
            self.conn.prepare_cached("DELETE FROM channel_offers WHERE channel = ?1 AND recipient = ?2")?;
        offers.execute((channel, sender))?;
        let mut delete = self.conn.prepare_cached("DELETE FROM channel_senders WHERE channel = ?1 AND sender = ?2")?;
        Ok(delete.execute((channel, sender))? == 1)
    }
}

/// The hash of a text: the text can be found by it, but not read.
#[expect(clippy::expect_used, reason = "SHA-256 has 32 bytes")]
fn hash(text: &str) -> [u8; 32] {
    digest(&SHA256, text.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn sender_of(row: &Row<'_>) -> rusqlite::Result<ChannelSender> {
    Ok(ChannelSender {
        number: row.get(0)?,
        sender: row.get(1)?,
        name: row.get(2)?,
        standing: row.get(3)?,
        at_ms: row.get(4)?,
    })
}
