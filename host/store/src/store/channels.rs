//! Channels that are components: how far each has read, who may write, and what is to be said beside replies.

use ring::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Row};
use strum::{EnumString, IntoStaticStr};

use super::{StoreError, Tx, View};

/// Milliseconds for which a pairing code holds.
pub const PAIRING_MS: i64 = 60 * 60_000;

/// Strangers of a channel who have a code at once. Further ones get none until one of these has run out.
pub(super) const MAX_WAITING: u32 = 20;

/// Senders of a channel who may write.
pub(super) const MAX_SENDERS: u32 = 100;

/// Notes of a channel that wait; a further one is not kept.
const MAX_NOTES: u32 = 500;

/// Milliseconds for which a message is known that was dealt with: services forget theirs long before.
const KEEP_MS: i64 = 90 * 24 * 60 * 60_000;

/// Old messages that one transaction forgets.
const TRIM: u32 = 100;

/// What a sender may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SenderStanding {
    /// Nothing: a stranger who has a code.
    Waiting,
    /// Write; what comes is text from outside.
    Allowed,
    /// Write as the owner of the home does.
    Owner,
}

/// Somebody who wrote through a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSender {
    /// Of all senders of the home; in the name of the session.
    pub number: i64,
    /// In the service's words.
    pub sender: String,
    /// That the sender chose.
    pub name: Option<String>,
    pub standing: SenderStanding,
    /// When the code was made, or the sender was allowed.
    pub at_ms: i64,
}

/// What a channel says to somebody, beside replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelNote {
    pub id: i64,
    pub recipient: String,
    /// Sealed.
    pub text: String,
    pub attempts: u32,
}

/// How a channel stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelLine {
    pub cursor: Option<String>,
    /// Why the last poll did not go well.
    pub trouble: Option<String>,
}

impl View<'_> {
    pub fn channel(&self, channel: &str) -> Result<ChannelLine, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT cursor, trouble FROM channels WHERE name = ?1")?;
        let line = query.query_row([channel], |row| Ok(ChannelLine { cursor: row.get(0)?, trouble: row.get(1)? }));
        Ok(line.optional()?.unwrap_or_default())
    }

    /// Whether a message was dealt with already.
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

    /// Everybody who may write, and then those who wait, in the order in which they came.
    pub fn channel_senders(&self, channel: &str) -> Result<Vec<ChannelSender>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT number, sender, name, standing, at_ms FROM channel_senders WHERE channel = ?1
             ORDER BY standing = 'waiting', number",
        )?;
        let rows = query.query_map([channel], sender_of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Notes that are due, oldest first.
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
    /// All messages up to here were dealt with.
    pub fn set_channel_cursor(&self, channel: &str, cursor: &str, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO channels (name, cursor, at_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET cursor = excluded.cursor, at_ms = excluded.at_ms",
        )?;
        upsert.execute((channel, cursor, at_ms))?;
        Ok(())
    }

    /// What a channel has trouble with, or that it has none.
    pub fn set_channel_trouble(&self, channel: &str, trouble: Option<&str>, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO channels (name, trouble, at_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET trouble = excluded.trouble, at_ms = excluded.at_ms",
        )?;
        upsert.execute((channel, trouble, at_ms))?;
        Ok(())
    }

    /// A message was dealt with, and this is to be said about it: recipient and sealed text.
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
        // Who came first has said it.
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

    /// Something is to be said to somebody; the text is sealed.
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

    /// A note arrived, or is given up.
    pub fn end_channel_note(&self, id: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM channel_notes WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// A note did not arrive; the next attempt is due at `due_ms`.
    pub fn put_off_channel_note(&self, id: i64, due_ms: i64) -> Result<(), StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE channel_notes SET due_ms = ?2, attempts = attempts + 1 WHERE id = ?1")?;
        update.execute((id, due_ms))?;
        Ok(())
    }

    /// Gives a stranger this code; false where the stranger has one that holds, or too many strangers have.
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

    /// Lets the stranger in who has this code; none where nobody has it, or it has run out. An error of the quota where as many
    /// senders may write as can.
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

    /// Lets a sender write no more, or forgets a stranger; false where there is none. What waits to be said to them is not said.
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

/// A text is found by this, and cannot be read from it.
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
