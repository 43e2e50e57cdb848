//! The outbox: texts that channels must send to people who are not connected. Its columns say `webhook`, because these were the
//! first channels. A row is written in the transaction of its event, so that exactly the events that happened are sent.

use rusqlite::{OptionalExtension, Row};
use strum::{EnumString, IntoStaticStr};

use super::id::secret_id;
use kiso_plan::label::Label;

use super::{RunId, StoreError, Tx, View};

/// Maximum waiting deliveries of one webhook, so that an unreachable receiver does not fill the disk. Further ones fail at once,
/// and can be retried.
pub const MAX_PENDING: u64 = 10_000;

/// Maximum ended deliveries that are kept: of successful and of failed ones, each.
const MAX_ENDED: i64 = 10_000;

/// How long a successful delivery is kept, in milliseconds: a day, in which somebody may want to look it up.
const KEEP_DELIVERED_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long a failed delivery is kept, in milliseconds: a month, in which somebody may retry it.
const KEEP_FAILED_MS: i64 = 30 * KEEP_DELIVERED_MS;

/// Rows that are deleted in one transaction.
const TRIM: u32 = 500;

/// Maximum characters of an error.
const MAX_ERROR: usize = 500;

/// An event that webhooks are notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum WebhookEvent {
    /// A reply was written.
    Reply,
    /// A run has ended.
    Run,
    /// A task with `notify: true` has finished, or the user got a notice before the reply.
    Notify,
}

impl WebhookEvent {
    pub const ALL: [WebhookEvent; 3] = [WebhookEvent::Reply, WebhookEvent::Run, WebhookEvent::Notify];
}

/// A channel and its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The channel's name.
    pub channel: String,
    /// Patterns with `*` and `?`; empty means every session.
    pub sessions: Vec<String>,
    pub events: Vec<WebhookEvent>,
}

/// The state of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookLine {
    pub webhook: String,
    pub pending: u64,
    /// Since the webhook exists.
    pub delivered: u64,
    pub failed: u64,
    /// When the next attempt is due; `None` if nothing is waiting.
    pub next_ms: Option<i64>,
}

/// A notification of a webhook, waiting or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: i64,
    /// The same in every attempt.
    pub key: String,
    pub channel: String,
    pub event: WebhookEvent,
    /// The reply; `None` if it was deleted, or for other events.
    pub message: Option<i64>,
    /// The run that ended or sent a notice; `None` if it was deleted, or for other events.
    pub run: Option<RunId>,
    /// The number of the run's event that contains the notice.
    pub seq: Option<u32>,
    /// When the event happened.
    pub at_ms: i64,
    /// The beginning of the delivery: the event's time, or that of a manual retry.
    pub since_ms: i64,
    /// Number of attempts.
    pub attempts: u32,
    /// When the next attempt is due.
    pub due_ms: i64,
    pub ended_ms: Option<i64>,
    /// The error of the last failed attempt.
    pub error: Option<String>,
    /// The label of the notice, if it is worse than that of a session's own data; a reply has its message's label.
    pub label: Option<Label>,
}

/// The event of a delivery.
#[derive(Debug, Default)]
struct Posted<'a> {
    message: Option<i64>,
    run: Option<i64>,
    seq: Option<u32>,
    label: Option<&'a Label>,
}

const COLUMNS: &str = "o.id, o.key, o.webhook, o.event, o.message, r.id, o.at_ms, o.since_ms, o.attempts,
     o.due_ms, o.ended_ms, o.error, o.seq, o.label FROM outbox o LEFT JOIN runs r ON r.num = o.run";

impl View<'_> {
    /// Returns the webhooks, by name.
    pub fn webhooks(&self) -> Result<Vec<WebhookLine>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT w.name, w.delivered, w.failed,
                 (SELECT count(*) FROM outbox o WHERE o.webhook = w.name AND o.state = 'pending'),
                 (SELECT min(o.due_ms) FROM outbox o WHERE o.webhook = w.name AND o.state = 'pending')
             FROM webhooks w WHERE w.name > '' ORDER BY w.name",
        )?;
        let count = |row: &Row<'_>, index| row.get::<_, i64>(index).map(i64::unsigned_abs);
        let rows = query.query_map((), |row| {
            let (delivered, failed, pending) = (count(row, 1)?, count(row, 2)?, count(row, 3)?);
            Ok(WebhookLine { webhook: row.get(0)?, pending, delivered, failed, next_ms: row.get(4)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the waiting deliveries of a webhook by due time, at most `limit`. Notices of a run are sent in order: a delivery
    /// is left out while an earlier one of the same run is waiting.
    pub fn pending_deliveries(&self, webhook: &str, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE o.webhook = ?1 AND o.state = 'pending' AND NOT EXISTS (
                 SELECT 1 FROM outbox e WHERE e.webhook = o.webhook AND e.state = 'pending' AND e.id < o.id AND e.run = coalesce(
                     o.run, (SELECT q.num FROM messages m JOIN runs q ON q.id = m.run WHERE m.id = o.message)))
             ORDER BY o.due_ms, o.id LIMIT ?2"
        ))?;
        let rows = query.query_map((webhook, limit), delivery)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the numbers of a run's events that a webhook was notified of before the reply, oldest first.
    pub fn notified(&self, webhook: &str, run: &RunId) -> Result<Vec<u32>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT o.seq FROM outbox o JOIN runs r ON r.num = o.run
             WHERE r.id = ?2 AND o.webhook = ?1 AND o.seq IS NOT NULL AND o.state = 'delivered' ORDER BY o.seq",
        )?;
        let rows = query.query_map((webhook, run), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the deliveries that were given up, latest first, at most `limit`.
    pub fn failed_deliveries(&self, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE o.state = 'failed' AND o.ended_ms IS NOT NULL
             ORDER BY o.ended_ms DESC, o.id DESC LIMIT ?1"
        ))?;
        let rows = query.query_map([limit], delivery)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Sets the list of webhooks. Gives up waiting deliveries of webhooks that are no longer listed, and returns their numbers by
    /// webhook.
    pub fn set_webhooks(&self, all: &[Subscription], at_ms: i64) -> Result<Vec<(String, u64)>, StoreError> {
        let mut dropped = Vec::new();
        for old in self.webhooks()?.into_iter().filter(|old| all.iter().all(|new| new.channel != old.webhook)) {
            let mut update = self.conn.prepare_cached(
                "UPDATE outbox SET state = 'failed', ended_ms = ?2, error = 'it is not in config.toml any more'
                 WHERE webhook = ?1 AND state = 'pending'",
            )?;
            let count = update.execute((&old.webhook, at_ms))?;
            self.conn.prepare_cached("DELETE FROM webhooks WHERE name = ?1")?.execute([&old.webhook])?;
            dropped.push((old.webhook, count as u64));
        }
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO webhooks (name, sessions, events) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET sessions = excluded.sessions, events = excluded.events",
        )?;
        for Subscription { channel, sessions, events } in all {
            let events: Vec<_> = events.iter().map(|event| event.as_str()).collect();
            upsert.execute((channel, as_list(sessions), as_list(&events)))?;
        }
        Ok(dropped)
    }

    /// Queues the notifications of a reply in this session.
    pub(super) fn tell_webhooks_of_reply(&self, session: i64, message: i64, at_ms: i64) -> Result<(), StoreError> {
        for webhook in self.subscribers(WebhookEvent::Reply, session)? {
            self.post(&webhook, WebhookEvent::Reply, Posted { message: Some(message), ..Posted::default() }, at_ms)?;
        }
        Ok(())
    }

    /// Queues the notifications of a run's end.
    pub(super) fn tell_webhooks_of_run(&self, run: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut query = self.conn.prepare_cached("SELECT session FROM runs WHERE num = ?1")?;
        let session = query.query_row([run], |row| row.get(0))?;
        for webhook in self.subscribers(WebhookEvent::Run, session)? {
            self.post(&webhook, WebhookEvent::Run, Posted { run: Some(run), ..Posted::default() }, at_ms)?;
        }
        Ok(())
    }

    /// Queues the notifications of a run's notice before its reply: the event `seq` contains the text, which has this label.
    pub fn tell_webhooks_of_notification(
        &self,
        run: &RunId,
        seq: u32,
        label: &Label,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut query = self.conn.prepare_cached("SELECT session FROM runs WHERE num = ?1")?;
        let session = query.query_row([num], |row| row.get(0))?;
        for webhook in self.subscribers(WebhookEvent::Notify, session)? {
            let said = Posted { run: Some(num), seq: Some(seq), label: Some(label), ..Posted::default() };
            self.post(&webhook, WebhookEvent::Notify, said, at_ms)?;
        }
        Ok(())
    }

    /// Returns the webhooks for an event in a session. Subagents have none: their results are reported in the session that they
    /// work for.
    fn subscribers(&self, event: WebhookEvent, session: i64) -> Result<Vec<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT name, sessions, events FROM webhooks WHERE name > ''")?;
        let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let all = rows.collect::<Result<Vec<(String, String, String)>, _>>()?;
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = self.conn.prepare_cached("SELECT name, parent IS NULL FROM sessions WHERE id = ?1")?;
        let (name, is_own): (String, bool) = query.query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut told = Vec::new();
        for (webhook, sessions, events) in all {
            let (sessions, events) = (of_list(&sessions)?, of_list(&events)?);
            let wanted = sessions.is_empty() || sessions.iter().any(|pattern| matches(pattern, &name));
            if is_own && wanted && events.iter().any(|wanted| wanted == event.as_str()) {
                told.push(webhook);
            }
        }
        Ok(told)
    }

    fn post(&self, webhook: &str, event: WebhookEvent, of: Posted<'_>, at_ms: i64) -> Result<(), StoreError> {
        let Posted { message, run, seq, label } = of;
        let worse = label.filter(|label| !label.is_ordinary());
        let label = worse.map(kiso_base::json::text);
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO outbox (key, webhook, event, message, run, seq, at_ms, since_ms, due_ms, state, label)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?7, 'pending', ?8)",
        )?;
        let id = insert.insert((secret_id()?, webhook, event, message, run, seq, at_ms, label))?;
        let mut query =
            self.conn.prepare_cached("SELECT count(*) FROM outbox WHERE webhook = ?1 AND state = 'pending'")?;
        if query.query_row([webhook], |row| row.get::<_, u32>(0).map(u64::from))? > MAX_PENDING {
            self.give_up(id, false, at_ms, &format!("{MAX_PENDING} deliveries waited already"))?;
        }
        Ok(())
    }

    /// Records a successful delivery.
    pub fn delivered(&self, id: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE outbox SET state = 'delivered', ended_ms = ?2, attempts = attempts + 1, error = NULL
             WHERE id = ?1 AND state = 'pending' RETURNING webhook",
        )?;
        if let Some(webhook) = update.query_row((id, at_ms), |row| row.get::<_, String>(0)).optional()? {
            let mut count =
                self.conn.prepare_cached("UPDATE webhooks SET delivered = delivered + 1 WHERE name = ?1")?;
            count.execute([webhook])?;
        }
        Ok(())
    }

    /// Records a failed attempt; the next one is due at `due_ms`.
    pub fn put_off_delivery(&self, id: i64, due_ms: i64, error: &str) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE outbox SET due_ms = ?2, attempts = attempts + 1, error = ?3 WHERE id = ?1 AND state = 'pending'",
        )?;
        update.execute((id, due_ms, clip(error)))?;
        Ok(())
    }

    /// Gives up a delivery; `attempted` if there was an attempt just now.
    pub fn give_up(&self, id: i64, attempted: bool, at_ms: i64, error: &str) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE outbox SET state = 'failed', ended_ms = ?2, attempts = attempts + ?3, error = ?4
             WHERE id = ?1 AND state = 'pending' RETURNING webhook",
        )?;
        let given_up = update.query_row((id, at_ms, attempted, clip(error)), |row| row.get::<_, String>(0));
        if let Some(webhook) = given_up.optional()? {
            let mut count = self.conn.prepare_cached("UPDATE webhooks SET failed = failed + 1 WHERE name = ?1")?;
            count.execute([webhook])?;
        }
        Ok(())
    }

    /// Makes all waiting and given-up deliveries due now, of one webhook or of all current ones. Returns their number.
    pub fn retry_deliveries(&self, webhook: Option<&str>, at_ms: i64) -> Result<u64, StoreError> {
        let wanted = "webhook IN (SELECT name FROM webhooks WHERE name > '' AND (?1 IS NULL OR name = ?1))";
        let mut hurry =
            self.conn.prepare_cached(&format!("UPDATE outbox SET due_ms = ?2 WHERE state = 'pending' AND {wanted}"))?;
        let hurried = hurry.execute((webhook, at_ms))?;
        // Their age is counted from now; otherwise, they would exceed the maximum age at once.
        let mut bring = self.conn.prepare_cached(&format!(
            "UPDATE outbox SET state = 'pending', ended_ms = NULL, attempts = 0, since_ms = ?2, due_ms = ?2
             WHERE state = 'failed' AND ended_ms IS NOT NULL AND {wanted} AND (message IS NOT NULL OR run IS NOT NULL)"
        ))?;
        Ok((hurried + bring.execute((webhook, at_ms))?) as u64)
    }

    /// Deletes some deliveries that ended long ago, or exceed the maximum. Returns how many; 0 if none is left.
    pub fn trim_outbox(&self, now_ms: i64) -> Result<usize, StoreError> {
        let mut gone = 0;
        for (state, keep) in [("delivered", KEEP_DELIVERED_MS), ("failed", KEEP_FAILED_MS)] {
            let mut old = self.conn.prepare_cached(
                "DELETE FROM outbox WHERE id IN (
                     SELECT id FROM outbox WHERE state = ?1 AND ended_ms < ?2 ORDER BY ended_ms, id LIMIT ?3)",
            )?;
            gone += old.execute((state, now_ms - keep, TRIM))?;
            let mut query =
                self.conn.prepare_cached("SELECT count(*) FROM outbox WHERE state = ?1 AND ended_ms IS NOT NULL")?;
            let count: i64 = query.query_row([state], |row| row.get(0))?;
            if count > MAX_ENDED {
                let mut first = self.conn.prepare_cached(
                    "DELETE FROM outbox WHERE id IN (
                         SELECT id FROM outbox WHERE state = ?1 AND ended_ms IS NOT NULL ORDER BY ended_ms, id LIMIT ?2)",
                )?;
                gone += first.execute((state, (count - MAX_ENDED).min(i64::from(TRIM))))?;
            }
        }
        Ok(gone)
    }
}

/// Whether a session's name matches the pattern: `*` stands for any characters, `?` for one.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut of) = (0, 0);
    // The place of the last star, and the end of the text that it matches so far.
    let mut star = None;
    while at < name.len() {
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[at] => (at, of) = (at + 1, of + 1),
            _ => match star {
                Some((stood, upto)) => {
                    (at, of) = (upto + 1, stood + 1);
                    star = Some((stood, upto + 1));
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|letter| *letter == b'*')
}

fn as_list<T: serde::Serialize>(items: &[T]) -> String {
    kiso_base::json::text(items)
}

fn of_list(json: &str) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::corrupt(format!("a list of a webhook: {error}")))
}

fn clip(error: &str) -> String {
    error.chars().take(MAX_ERROR).collect()
}

fn of_json(label: &str) -> rusqlite::Result<Label> {
    serde_json::from_str(label)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(13, rusqlite::types::Type::Text, error.into()))
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: row.get(0)?,
        key: row.get(1)?,
        channel: row.get(2)?,
        event: row.get(3)?,
        message: row.get(4)?,
        run: row.get(5)?,
        at_ms: row.get(6)?,
        since_ms: row.get(7)?,
        attempts: row.get(8)?,
        due_ms: row.get(9)?,
        ended_ms: row.get(10)?,
        error: row.get(11)?,
        seq: row.get(12)?,
        label: row.get::<_, Option<String>>(13)?.map(|label| of_json(&label)).transpose()?,
    })
}
