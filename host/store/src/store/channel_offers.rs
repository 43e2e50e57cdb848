//! Cards with choices that channels have sent: their outcomes must still be shown where the cards were sent.

use super::{StoreError, Tx, View};

/// A sent card that has been decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelOffer {
    pub recipient: String,
    pub letter: String,
    /// The number of the card.
    pub approval: i64,
    pub attempts: u32,
}

impl View<'_> {
    /// Returns the messages that sent a card to a recipient.
    pub fn offers_of_card(&self, channel: &str, recipient: &str, approval: i64) -> Result<Vec<String>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT letter FROM channel_offers WHERE channel = ?1 AND recipient = ?2 AND approval = ?3",
        )?;
        let rows = query.query_map((channel, recipient, approval), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns cards sent by a channel that are no longer waiting and whose outcome should be shown by now.
    pub fn offers_decided(&self, channel: &str, now_ms: i64, limit: u32) -> Result<Vec<ChannelOffer>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT o.recipient, o.letter, o.approval, o.attempts FROM channel_offers o
             WHERE o.channel = ?1 AND o.due_ms <= ?2 AND NOT EXISTS (
                 SELECT 1 FROM approvals a WHERE a.id = o.approval AND a.state = 'pending' AND a.expires_ms > ?2)
             LIMIT ?3",
        )?;
        let rows = query.query_map((channel, now_ms, limit), |row| {
            Ok(ChannelOffer {
                recipient: row.get(0)?,
                letter: row.get(1)?,
                approval: row.get(2)?,
                attempts: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Records that a card with choices is about to be sent.
    pub fn offer_card(&self, channel: &str, recipient: &str, letter: &str, approval: i64) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO channel_offers (channel, recipient, letter, approval) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?;
        insert.execute((channel, recipient, letter, approval))?;
        Ok(())
    }

    /// Removes an offer after its outcome was shown or given up.
    pub fn end_offer(&self, channel: &str, offer: &ChannelOffer) -> Result<(), StoreError> {
        let mut delete = self
            .conn
            .prepare_cached("DELETE FROM channel_offers WHERE channel = ?1 AND recipient = ?2 AND letter = ?3")?;
        delete.execute((channel, &offer.recipient, &offer.letter))?;
        Ok(())
    }

    /// Records that an outcome could not be shown; the next attempt is due at `due_ms`.
    pub fn put_off_offer(&self, channel: &str, offer: &ChannelOffer, due_ms: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE channel_offers SET due_ms = ?4, attempts = attempts + 1
             WHERE channel = ?1 AND recipient = ?2 AND letter = ?3",
        )?;
        update.execute((channel, &offer.recipient, &offer.letter, due_ms))?;
        Ok(())
    }
}
