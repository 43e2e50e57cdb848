//! Schedules: messages that are sent automatically, with a receipt for each time that one was due.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use super::jobs::caller;
use super::{JobPriority, JobState, LabelledRow, NewJob, RunId, RunStatus, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;

/// A new schedule.
#[derive(Debug, Clone)]
pub struct NewSchedule {
    pub name: String,
    /// The timing, as it was written.
    pub timing: String,
    /// The time zone of the timing, from the IANA database.
    pub zone: String,
    /// As stored: sealed.
    pub message: String,
    /// The session that gets the reply.
    pub session: Option<SessionName>,
    pub model: Option<String>,
    /// The role that it runs with.
    pub caller: CallerScope,
    pub next_ms: i64,
    pub at_ms: i64,
    /// The label of its message.
    pub label: Label,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub id: i64,
    pub name: String,
    pub timing: String,
    pub zone: String,
    /// As stored: sealed.
    pub message: String,
    pub session: Option<SessionName>,
    pub model: Option<String>,
    pub caller: CallerScope,
    pub paused: bool,
    /// When it is due next; `None` if never again.
    pub next_ms: Option<i64>,
    /// When it was last due.
    pub last_due_ms: Option<i64>,
    pub created_ms: i64,
}

/// A schedule that is due, or that is fired by hand.
#[derive(Debug, Clone)]
pub struct DueSchedule {
    /// The schedule as it was read. It does not fire if it has changed since.
    pub schedule: Schedule,
    /// The session that does the work.
    pub session: SessionName,
    pub due_ms: i64,
    /// When it is due next.
    pub next_ms: Option<i64>,
    pub by_hand: bool,
    pub at_ms: i64,
    /// Maximum receipts of the schedule.
    pub keep: u64,
}

/// The result of one time that a schedule was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Receipt {
    pub id: i64,
    /// Name of the schedule.
    #[serde(rename = "name")]
    pub schedule: String,
    /// Milliseconds since 1970 (UTC).
    pub due_ms: i64,
    /// Later than `due_ms` if no daemon was running at that time.
    pub fired_ms: i64,
    pub by_hand: bool,
    pub message: Option<i64>,
    pub run: Option<RunId>,
    pub state: ReceiptState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ReceiptState {
    /// The previous message was still waiting.
    Skipped,
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
    /// Its result is no longer stored.
    Gone,
}

const COLUMNS: &str =
    "id, name, timing, zone, message, session, model, caller, paused, next_ms, last_due_ms, created_ms
     FROM schedules";

impl View<'_> {
    /// Whether any schedules exist.
    pub fn has_schedules(&self) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM schedules)")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// Returns the schedules, by name.
    pub fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} ORDER BY name"))?;
        let rows = query.query_map((), schedule)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the schedule with this name.
    pub fn schedule(&self, name: &str) -> Result<Option<Schedule>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE name = ?1"))?;
        Ok(query.query_row([name], schedule).optional()?)
    }

    /// Returns the due schedules, longest due first, at most `limit`.
    pub fn schedules_due(&self, now_ms: i64, limit: u32) -> Result<Vec<Schedule>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE paused = 0 AND next_ms IS NOT NULL AND next_ms <= ?1 ORDER BY next_ms LIMIT ?2"
        ))?;
        let rows = query.query_map((now_ms, limit), schedule)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns when the next schedule is due.
    pub fn schedule_next_ms(&self) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT next_ms FROM schedules WHERE paused = 0 AND next_ms IS NOT NULL ORDER BY next_ms LIMIT 1",
        )?;
        Ok(query.query_row((), |row| row.get(0)).optional()?)
    }

    /// Returns the receipts of one schedule or of all, latest first, at most `limit`.
    pub fn receipts(
        &self,
        schedule: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Receipt>, StoreError> {
        // Two statements, because with an "or" SQLite would read the receipts of all other schedules.
        let of =
            if schedule.is_some() { "t.schedule = (SELECT id FROM schedules WHERE name = ?1)" } else { "?1 IS NULL" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT t.id, s.name, t.due_ms, t.fired_ms, t.by_hand, t.message, j.state, r.id, r.status FROM receipts t
             JOIN schedules s ON s.id = t.schedule
             LEFT JOIN messages m ON m.id = t.message AND m.at_ms = t.fired_ms LEFT JOIN jobs j ON j.message = m.id
             LEFT JOIN runs r ON r.num = j.run WHERE {of} AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3"
        ))?;
        let rows = query.query_map((schedule, before.unwrap_or(i64::MAX), limit), receipt)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Adds a schedule. Returns false if there is one with this name; fails with [`StoreError::Quota`] if there are `max`
    /// already.
    pub fn add_schedule(&self, new: &NewSchedule, max: u64) -> Result<bool, StoreError> {
        let count: i64 = self.conn.query_row("SELECT count(*) FROM schedules", (), |row| row.get(0))?;
        if self.schedule(&new.name)?.is_some() {
            return Ok(false);
        }
        if count.unsigned_abs() >= max {
            return Err(StoreError::Quota {
                what: "there are as many schedules as schedule.max_schedules allows",
                max,
            });
        }
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO schedules (name, timing, zone, message, session, model, caller, next_ms, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let session = new.session.as_ref().map(SessionName::as_str);
        insert.execute((
            &new.name,
            &new.timing,
            &new.zone,
            &new.message,
            session,
            &new.model,
            new.caller.name(),
            new.next_ms,
            new.at_ms,
        ))?;
        self.set_label(LabelledRow::Schedule, self.conn.last_insert_rowid(), &new.label)?;
        Ok(true)
    }

    /// Deletes a schedule with its receipts. Returns whether there was one. Work that it has begun continues.
    pub fn remove_schedule(&self, id: i64) -> Result<bool, StoreError> {
        self.conn.prepare_cached("DELETE FROM receipts WHERE schedule = ?1")?.execute([id])?;
        Ok(self.conn.prepare_cached("DELETE FROM schedules WHERE id = ?1")?.execute([id])? > 0)
    }

    /// Stores a changed schedule; its next time only if that is still `from_ms`. Returns whether the schedule exists.
    pub fn change_schedule(&self, changed: &Schedule, from_ms: Option<i64>) -> Result<bool, StoreError> {
        let Schedule { id, timing, zone, message, session, model, next_ms, .. } = changed;
        let mut update = self.conn.prepare_cached(
            "UPDATE schedules SET timing = ?2, zone = ?3, message = ?4, session = ?5, model = ?6,
                 next_ms = CASE WHEN next_ms IS ?7 THEN ?8 ELSE next_ms END WHERE id = ?1",
        )?;
        let session = session.as_ref().map(SessionName::as_str);
        Ok(update.execute((id, timing, zone, message, session, model, from_ms, next_ms))? > 0)
    }

    /// Pauses a schedule, or continues it with `to_ms` as its next time, if that is still `from_ms`. Returns whether the schedule
    /// exists.
    pub fn pause_schedule(
        &self,
        id: i64,
        paused: bool,
        from_ms: Option<i64>,
        to_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE schedules SET paused = ?2, next_ms = CASE WHEN next_ms IS ?3 THEN ?4 ELSE next_ms END WHERE id = ?1",
        )?;
        Ok(update.execute((id, paused, from_ms, to_ms))? > 0)
    }

    /// Changes the next time of a schedule, if that is still `from_ms`.
    pub fn move_schedule(&self, id: i64, from_ms: Option<i64>, to_ms: Option<i64>) -> Result<bool, StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE schedules SET next_ms = ?3 WHERE id = ?1 AND next_ms IS ?2")?;
        Ok(update.execute((id, from_ms, to_ms))? > 0)
    }

    /// Fires a schedule in one transaction: receipt, message, job and next time. `None` if another process has fired, paused or
    /// removed it meanwhile. If the previous message is still waiting, this time is skipped, and the receipt says so.
    pub fn fire_schedule(&self, firing: &DueSchedule) -> Result<Option<ReceiptState>, StoreError> {
        let DueSchedule { schedule: read, session, due_ms, next_ms, by_hand, at_ms, keep } = firing;
        let unchanged =
            |now: &Schedule| now.id == read.id && (*by_hand || (now.next_ms == read.next_ms && !now.paused));
        let Some(now) = self.schedule(&read.name)?.filter(unchanged) else { return Ok(None) };
        let room = if self.has_session(session)? { Ok(()) } else { self.check_sessions() };
        if *by_hand {
            room.clone()?;
        }
        // If there is no room for another session, the time is skipped as if the previous message was waiting.
        let waits = room.is_err() || !self.queued_jobs(session, 1)?.is_empty();
        let message = if waits { None } else { Some(self.admit_fired(&now, session, *at_ms)?) };
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO receipts (schedule, due_ms, fired_ms, by_hand, message) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        insert.execute((now.id, due_ms, at_ms, by_hand, message))?;
        // Firing by hand does not change the times.
        if !by_hand {
            let mut update =
                self.conn.prepare_cached("UPDATE schedules SET next_ms = ?2, last_due_ms = ?3 WHERE id = ?1")?;
            update.execute((now.id, next_ms, due_ms))?;
        }
        let mut trim = self.conn.prepare_cached(
            "DELETE FROM receipts WHERE schedule = ?1 AND id <= (
                 SELECT id FROM receipts WHERE schedule = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        )?;
        trim.execute((now.id, i64::try_from(*keep).unwrap_or(i64::MAX)))?;
        Ok(Some(if waits { ReceiptState::Skipped } else { ReceiptState::Queued }))
    }

    /// Admits the message of a due schedule in the session that works for it, which is a subagent of the session that gets the
    /// reply.
    fn admit_fired(&self, schedule: &Schedule, session: &SessionName, at_ms: i64) -> Result<i64, StoreError> {
        let job = NewJob {
            session: session.clone(),
            text: schedule.message.clone(),
            caller: schedule.caller,
            priority: JobPriority::Subagent,
            client_key: None,
            at_ms,
            label: self.label(LabelledRow::Schedule, schedule.id)?,
        };
        let message = self.admit_unasked(&job, &schedule.name, schedule.session.as_ref())?;
        let mut update = self.conn.prepare_cached("UPDATE sessions SET model = ?2 WHERE name = ?1")?;
        update.execute((session.as_str(), &schedule.model))?;
        Ok(message)
    }
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    let session: Option<String> = row.get(5)?;
    Ok(Schedule {
        id: row.get(0)?,
        name: row.get(1)?,
        timing: row.get(2)?,
        zone: row.get(3)?,
        message: row.get(4)?,
        session: session.and_then(|name| SessionName::parse(&name).ok()),
        model: row.get(6)?,
        caller: caller(row, 7)?,
        paused: row.get(8)?,
        next_ms: row.get(9)?,
        last_due_ms: row.get(10)?,
        created_ms: row.get(11)?,
    })
}

fn receipt(row: &Row<'_>) -> rusqlite::Result<Receipt> {
    let message: Option<i64> = row.get(5)?;
    let (job, status): (Option<JobState>, Option<RunStatus>) = (row.get(6)?, row.get(8)?);
    let state = match (message, job, status) {
        (None, ..) => ReceiptState::Skipped,
        (Some(_), Some(JobState::Queued), _) => ReceiptState::Queued,
        (Some(_), _, Some(RunStatus::Running | RunStatus::Waiting | RunStatus::Held)) => ReceiptState::Running,
        (Some(_), _, Some(RunStatus::Done)) => ReceiptState::Done,
        (Some(_), _, Some(RunStatus::Failed)) => ReceiptState::Failed,
        (Some(_), _, Some(RunStatus::Cancelled)) => ReceiptState::Cancelled,
        (Some(_), _, None) => ReceiptState::Gone,
    };
    Ok(Receipt {
        id: row.get(0)?,
        schedule: row.get(1)?,
        due_ms: row.get(2)?,
        fired_ms: row.get(3)?,
        by_hand: row.get(4)?,
        message,
        run: row.get(7)?,
        state,
    })
}
