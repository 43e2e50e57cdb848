//! Sessions as after months of use, written directly to the store.

use crate::harness::Home;
use rusqlite::{Connection, params};

/// Time of the first message in a filled session: 2026-01-05, 09:00 UTC.
const BEGAN_MS: i64 = 1_767_603_600_000;

/// Time between two of its messages.
const APART_MS: i64 = 60_000;

/// Writes a session with these messages, alternating between the user's and the replies; each pair has its run.
pub(super) fn session(home: &Home, name: &str, texts: impl IntoIterator<Item = String>) {
    let mut store = Connection::open(home.path().join("store.db")).expect("it is SQLite");
    let tx = store.transaction().expect("nobody else writes");
    tx.execute("INSERT INTO sessions (name, created_ms, active_ms) VALUES (?1, ?2, ?2)", params![name, BEGAN_MS])
        .expect("the table is as it is");
    let session = tx.last_insert_rowid();
    let mut began = 0;
    for (n, text) in texts.into_iter().enumerate() {
        let at_ms = BEGAN_MS + n as i64 * APART_MS;
        let (role, id) = (if n % 2 == 0 { "user" } else { "assistant" }, format!("{session:06}{:08}", n / 2));
        tx.execute(
            "INSERT INTO messages (session, role, text, at_ms, run) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![session, role, text, at_ms, id],
        )
        .expect("the table is as it is");
        if n % 2 == 0 {
            began = tx.last_insert_rowid();
            continue;
        }
        let reply = tx.last_insert_rowid();
        tx.execute(
            "INSERT INTO runs (id, session, message, status, started_ms, ended_ms, outcome)
             VALUES (?1, ?2, ?3, 'done', ?4, ?5, '{}')",
            params![id, session, began, at_ms - APART_MS, at_ms],
        )
        .expect("the table is as it is");
        tx.execute(
            "INSERT INTO jobs (message, session, state, caller, priority, run, reply)
             VALUES (?1, ?2, 'done', 'admin', 'interactive', ?3, ?4)",
            params![began, session, tx.last_insert_rowid(), reply],
        )
        .expect("the table is as it is");
        tx.execute("UPDATE sessions SET active_ms = ?1 WHERE id = ?2", params![at_ms, session])
            .expect("the table is as it is");
    }
    tx.execute("UPDATE sessions SET read_to = (SELECT max(id) FROM messages) WHERE id = ?1", [session])
        .expect("the table is as it is");
    tx.commit().expect("there is room");
}
