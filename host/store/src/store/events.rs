//! The log of a run: its events in order, never changed.

use rusqlite::{OptionalExtension, Row};

use super::sessions::PAGE_BYTES;
use super::{RunId, StoreError, Tx, View};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number in the log; the first one is 0 or 1, and they are consecutive.
    pub seq: u32,
    pub at_ms: i64,
    pub kind: String,
    /// JSON.
    pub body: String,
}

/// Whether more events may follow a page that was requested with `count` events.
pub fn is_whole_page(page: &[Event], count: u32) -> bool {
    page.len() == count as usize || page.iter().map(|event| event.body.len()).sum::<usize>() >= PAGE_BYTES
}

impl View<'_> {
    /// Returns all events of a run, in order.
    pub fn events(&self, run: &RunId) -> Result<Vec<Event>, StoreError> {
        let mut query =
            self.conn.prepare_cached("SELECT seq, at_ms, kind, body FROM events WHERE run = ?1 ORDER BY seq")?;
        let rows = query.query_map([self.num(run)?], event)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the events of a run after the one with this number, in order: at most `limit`, and fewer if they exceed
    /// [`PAGE_BYTES`].
    pub fn events_after(&self, run: &RunId, seq: u32, limit: u32) -> Result<Vec<Event>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT seq, at_ms, kind, body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?;
        let mut rows = query.query((self.num(run)?, seq, limit))?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES
            && let Some(row) = rows.next()?
        {
            let one = event(row)?;
            bytes += one.body.len();
            events.push(one);
        }
        Ok(events)
    }

    /// Returns the events of a run of these kinds, in order.
    pub fn events_of_kinds(&self, run: &RunId, kinds: &[&str]) -> Result<Vec<Event>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT seq, at_ms, kind, body FROM events
             WHERE run = ?1 AND kind IN (SELECT value FROM json_each(?2)) ORDER BY seq",
        )?;
        let rows = query.query_map((self.num(run)?, serde_json::json!(kinds).to_string()), event)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the last events of a run of these kinds, newest first, at most `limit`.
    pub fn last_events(&self, run: &RunId, kinds: &[&str], limit: u32) -> Result<Vec<Event>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT seq, at_ms, kind, body FROM events
             WHERE run = ?1 AND kind IN (SELECT value FROM json_each(?2)) ORDER BY seq DESC LIMIT ?3",
        )?;
        let rows = query.query_map((self.num(run)?, serde_json::json!(kinds).to_string(), limit), event)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns an event of a run.
    pub fn event(&self, run: &RunId, seq: u32) -> Result<Option<Event>, StoreError> {
        let mut query =
            self.conn.prepare_cached("SELECT seq, at_ms, kind, body FROM events WHERE run = ?1 AND seq = ?2")?;
        Ok(query.query_row((self.num(run)?, seq), event).optional()?)
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event { seq: row.get(0)?, at_ms: row.get(1)?, kind: row.get(2)?, body: row.get(3)? })
}

impl Tx<'_> {
    /// Appends an event. An existing number is refused ([`StoreError::Duplicate`]), so that of two processes that drive the same
    /// run only one continues. A gap is refused as well, because an incomplete log cannot be replayed.
    pub fn append_event(&self, run: &RunId, seq: u32, at_ms: i64, kind: &str, body: &str) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut query = self.conn.prepare_cached("SELECT max(seq) FROM events WHERE run = ?1")?;
        let last: Option<u32> = query.query_row([num], |row| row.get(0))?;
        match last {
            Some(last) if seq <= last => return Err(StoreError::Duplicate { run: run.clone(), seq }),
            Some(last) if seq == last + 1 => {}
            None if seq <= 1 => {}
            _ => return Err(StoreError::Gap { run: run.clone(), seq, last }),
        }
        let mut insert =
            self.conn.prepare_cached("INSERT INTO events (run, seq, at_ms, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute((num, seq, at_ms, kind, body))?;
        self.tell_event(num, seq)
    }
}
