//! Cards that runs wait for, their answers, and remembered decisions.
//!
//! A card is written in the transaction of the event that asks. Its answer is written in one transaction with the change that
//! lets the queue continue the run.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use super::sessions::session_name;
use super::{RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::approval::{Card, CardAccess, CardAnswer};

/// Maximum cards that wait at once, in all sessions together.
pub const MAX_PENDING_CARDS: u64 = 100;

/// Maximum remembered decisions.
pub const MAX_APPROVAL_RULES: u64 = 500;

/// Maximum cards in a page of a listing.
const MAX_PAGE: u32 = 500;

/// The state of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ApprovalState {
    Pending,
    Answered,
    /// It expired without an answer.
    Expired,
    /// Its run ended first.
    Withdrawn,
}

/// A card of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub struct ApprovalLine {
    /// The card's number.
    pub id: i64,
    pub run: RunId,
    pub session: SessionName,
    pub state: ApprovalState,
    /// Milliseconds since 1970 (UTC).
    pub asked_ms: i64,
    #[serde(flatten)]
    pub card: Card,
    pub answer: Option<CardAnswer>,
}

/// A remembered decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalRule {
    pub id: i64,
    /// `None` if it applies to all sessions.
    pub session: Option<SessionName>,
    /// The called tool.
    pub tool: String,
    pub access: Vec<CardAccess>,
    /// Milliseconds since 1970 (UTC).
    pub made_ms: i64,
    /// `None` if it applies as long as its session exists.
    pub until_ms: Option<i64>,
}

/// A decision to remember.
#[derive(Debug, Clone)]
pub struct NewApprovalRule {
    pub session: Option<SessionName>,
    pub tool: String,
    pub access: Vec<CardAccess>,
    pub until_ms: Option<i64>,
}

const COLUMNS: &str = "a.id, r.id, s.name, a.state, a.asked_ms, a.card, a.answer FROM approvals a
     JOIN runs r ON r.num = a.run JOIN sessions s ON s.id = r.session";

impl View<'_> {
    /// Returns the card with this number.
    pub fn approval(&self, id: i64) -> Result<Option<ApprovalLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE a.id = ?1"))?;
        Ok(query.query_row([id], line).optional()?)
    }

    /// Returns the card that the run's event `seq` asks with.
    pub fn approval_of(&self, run: &RunId, seq: u32) -> Result<Option<ApprovalLine>, StoreError> {
        let num = self.num(run)?;
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE a.run = ?1 AND a.seq = ?2"))?;
        Ok(query.query_row((num, seq), line).optional()?)
    }

    /// Returns the card that a message shows.
    pub fn approval_in_message(&self, message: i64) -> Result<Option<ApprovalLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE a.id = (SELECT approval FROM approval_messages WHERE message = ?1)"
        ))?;
        Ok(query.query_row([message], line).optional()?)
    }

    /// Returns the number of the card that a message shows.
    pub fn approval_number_in_message(&self, message: i64) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT approval FROM approval_messages WHERE message = ?1")?;
        Ok(query.query_row([message], |row| row.get(0)).optional()?)
    }

    /// Whether a message of this session shows the card.
    pub fn shows_approval(&self, session: &SessionName, id: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT 1 FROM approval_messages a INDEXED BY approval_messages_of_approval JOIN messages m ON m.id = a.message JOIN sessions s ON s.id = m.session
             WHERE a.approval = ?1 AND s.name = ?2",
        )?;
        Ok(query.exists((id, session.as_str()))?)
    }

    /// Returns cards, latest first: waiting ones or all, of one session or of all, with numbers below `before`. The cards of
    /// a session include those of its subagents that its messages show.
    pub fn approvals(
        &self,
        session: Option<&SessionName>,
        all: bool,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ApprovalLine>, StoreError> {
        let pending = if all { "" } else { "a.state = 'pending' AND" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE {pending} a.id < ?1 AND (?2 IS NULL OR s.name = ?2 OR EXISTS (
                 SELECT 1 FROM approval_messages shown INDEXED BY approval_messages_of_approval
                 JOIN messages m ON m.id = shown.message JOIN sessions of ON of.id = m.session
                 WHERE shown.approval = a.id AND of.name = ?2)) ORDER BY a.id DESC LIMIT ?3"
        ))?;
        let before = before.unwrap_or(i64::MAX);
        let rows = query.query_map((before, session.map(SessionName::as_str), limit.min(MAX_PAGE)), line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Number of waiting cards.
    pub fn count_pending_approvals(&self) -> Result<u64, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT count(*) FROM approvals INDEXED BY approvals_pending WHERE state = 'pending'")?;
        let count: i64 = query.query_row((), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Whether a waiting card has expired.
    pub fn has_expired_approvals(&self, now_ms: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT 1 FROM approvals INDEXED BY approvals_pending WHERE state = 'pending' AND expires_ms <= ?1 LIMIT 1",
        )?;
        Ok(query.exists([now_ms])?)
    }

    /// Returns the runs of a session that wait for a person.
    pub fn runs_waiting(&self, session: &SessionName) -> Result<Vec<RunId>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM runs INDEXED BY runs_unfinished WHERE status = 'running' AND waiting IS NOT NULL
             AND session = (SELECT id FROM sessions WHERE name = ?1) ORDER BY num",
        )?;
        let rows = query.query_map([session.as_str()], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the remembered decisions that are valid at `now_ms`: those for this session, or all.
    pub fn approval_rules(&self, session: Option<&SessionName>, now_ms: i64) -> Result<Vec<ApprovalRule>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT a.id, s.name, a.tool, a.access, a.made_ms, a.until_ms FROM approval_rules a
             LEFT JOIN sessions s ON s.id = a.session
             WHERE a.until_ms > ?1 AND (?2 IS NULL OR s.name = ?2 OR a.session IS NULL) ORDER BY a.id",
        )?;
        let rows = query.query_map((now_ms, session.map(SessionName::as_str)), |row| {
            let session: Option<String> = row.get(1)?;
            let until: i64 = row.get(5)?;
            Ok(ApprovalRule {
                id: row.get(0)?,
                session: session.map(|_| session_name(row, 1)).transpose()?,
                tool: row.get(2)?,
                access: json(row, 3)?,
                made_ms: row.get(4)?,
                until_ms: (until != i64::MAX).then_some(until),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Records the card of the run's event `seq`; the run waits from now on. Returns the card's number.
    pub fn ask_approval(&self, run: &RunId, seq: u32, card: &Card, at_ms: i64) -> Result<i64, StoreError> {
        let num = self.num(run)?;
        let body = kiso_base::json::text(card);
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO approvals (run, seq, card, asked_ms, expires_ms, state) VALUES (?1, ?2, ?3, ?4, ?5, 'pending')",
        )?;
        let id = insert.insert((num, seq, body, at_ms, card.expires_ms))?;
        self.conn.prepare_cached("UPDATE runs SET waiting = ?2, retry_ms = NULL WHERE num = ?1")?.execute((num, id))?;
        self.tell_run(num)?;
        Ok(id)
    }

    /// Records that a message shows a card.
    pub fn show_approval(&self, message: i64, id: i64) -> Result<(), StoreError> {
        let mut insert =
            self.conn.prepare_cached("INSERT INTO approval_messages (message, approval) VALUES (?1, ?2)")?;
        insert.execute((message, id))?;
        Ok(())
    }

    /// Records a person's answer; the queue then continues the run. Returns false if the card is no longer waiting.
    pub fn answer_approval(&self, id: i64, answer: &CardAnswer, at_ms: i64) -> Result<bool, StoreError> {
        let body = kiso_base::json::text(answer);
        let mut update = self.conn.prepare_cached(
            "UPDATE approvals SET state = 'answered', answer = ?2, ended_ms = ?3
             WHERE id = ?1 AND state = 'pending' AND expires_ms > ?3 RETURNING run",
        )?;
        let run: Option<i64> = update.query_row((id, body, at_ms), |row| row.get(0)).optional()?;
        run.map_or(Ok(()), |run| self.go_on(run, at_ms))?;
        Ok(run.is_some())
    }

    /// Expires cards whose time has passed: their runs continue without an answer.
    pub fn expire_approvals(&self, now_ms: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE approvals SET state = 'expired', ended_ms = ?1 WHERE state = 'pending' AND expires_ms <= ?1
             RETURNING run",
        )?;
        let runs = update.query_map([now_ms], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        runs.into_iter().try_for_each(|run| self.go_on(run, now_ms))
    }

    /// Lets a run continue that was waiting for its card.
    fn go_on(&self, run: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut update = self
            .conn
            .prepare_cached("UPDATE runs SET waiting = NULL, retry_ms = ?2 WHERE num = ?1 AND status = 'running'")?;
        update.execute((run, at_ms))?;
        self.tell_run(run)
    }

    /// Withdraws the cards of a run.
    pub(super) fn withdraw_approvals(&self, run: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE approvals SET state = 'withdrawn', ended_ms = ?2 WHERE run = ?1 AND state = 'pending'",
        )?;
        update.execute((run, at_ms))?;
        Ok(())
    }

    /// Remembers decisions.
    pub fn remember_approvals(&self, rules: &[NewApprovalRule], now_ms: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM approval_rules WHERE until_ms <= ?1")?.execute([now_ms])?;
        let mut count = self.conn.prepare_cached("SELECT count(*) FROM approval_rules")?;
        let count: i64 = count.query_row((), |row| row.get(0))?;
        if count.unsigned_abs() + rules.len() as u64 > MAX_APPROVAL_RULES {
            return Err(StoreError::Quota { what: "too many approvals are remembered", max: MAX_APPROVAL_RULES });
        }
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO approval_rules (session, tool, access, made_ms, until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for rule in rules {
            // Without its session, it would apply to all.
            let session = match &rule.session {
                Some(name) => match self.session_id(name)? {
                    Some(id) => Some(id),
                    None => continue,
                },
                None => None,
            };
            let access = kiso_base::json::text(&rule.access);
            insert.execute((session, &rule.tool, access, now_ms, rule.until_ms.unwrap_or(i64::MAX)))?;
        }
        Ok(())
    }

    /// Forgets a decision. Returns false if there is none with this number.
    pub fn forget_approval(&self, id: i64) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM approval_rules WHERE id = ?1")?.execute([id])? > 0)
    }
}

fn line(row: &Row<'_>) -> rusqlite::Result<ApprovalLine> {
    let answer: Option<String> = row.get(6)?;
    Ok(ApprovalLine {
        id: row.get(0)?,
        run: row.get(1)?,
        session: session_name(row, 2)?,
        state: row.get(3)?,
        asked_ms: row.get(4)?,
        card: json(row, 5)?,
        answer: answer.map(|_| json(row, 6)).transpose()?,
    })
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(index)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into()))
}
