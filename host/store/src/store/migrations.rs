//! Numbered changes of the tables.
//!
//! A released migration never changes, because existing databases were made with the old text. Its checksum is stored, so that a
//! change is detected instead of being silently missing. All pending migrations are applied in one transaction: after a crash,
//! the database has either the old or the newest version.

use ring::digest::{SHA256, digest};
use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;

pub(super) struct Migration {
    pub name: &'static str,
    pub sql: &'static str,
}

/// In order; the first has version 1.
pub(super) const ALL: &[Migration] = &[
    Migration { name: "sessions and runs", sql: include_str!("migrations/0001_sessions_and_runs.sql") },
    Migration { name: "what is remembered", sql: include_str!("migrations/0002_what_is_remembered.sql") },
    Migration { name: "prompts", sql: include_str!("migrations/0003_prompts.sql") },
    Migration { name: "sessions that live on", sql: include_str!("migrations/0004_sessions_that_live_on.sql") },
    Migration { name: "tokens", sql: include_str!("migrations/0005_tokens.sql") },
    Migration { name: "subagents", sql: include_str!("migrations/0006_subagents.sql") },
    Migration { name: "schedules", sql: include_str!("migrations/0007_schedules.sql") },
    Migration { name: "outbox", sql: include_str!("migrations/0008_outbox.sql") },
    Migration { name: "memory by meaning", sql: include_str!("migrations/0009_memory_by_meaning.sql") },
    Migration { name: "the store's own life", sql: include_str!("migrations/0010_the_stores_own_life.sql") },
    Migration { name: "deletion of sessions", sql: include_str!("migrations/0011_deletion.sql") },
    Migration { name: "no statistics", sql: include_str!("migrations/0012_no_statistics.sql") },
    Migration { name: "page", sql: include_str!("migrations/0013_page.sql") },
    Migration { name: "what was read", sql: include_str!("migrations/0014_what_was_read.sql") },
    Migration { name: "summaries of segments", sql: include_str!("migrations/0015_summaries_of_segments.sql") },
    Migration {
        name: "held runs and notifications",
        sql: include_str!("migrations/0016_held_runs_and_notifications.sql"),
    },
    Migration { name: "messages by their words", sql: include_str!("migrations/0017_messages_by_their_words.sql") },
    Migration { name: "documentation by meaning", sql: include_str!("migrations/0018_documentation_by_meaning.sql") },
    Migration { name: "pills", sql: include_str!("migrations/0019_pills.sql") },
    Migration { name: "what workspaces hold", sql: include_str!("migrations/0020_what_workspaces_hold.sql") },
    Migration { name: "cuts without progress", sql: include_str!("migrations/0021_cuts_without_progress.sql") },
    Migration {
        name: "pinned and archived sessions",
        sql: include_str!("migrations/0022_pinned_and_archived_sessions.sql"),
    },
    Migration { name: "chats", sql: include_str!("migrations/0023_chats.sql") },
    Migration { name: "prompts in pieces", sql: include_str!("migrations/0024_prompts_in_pieces.sql") },
    Migration { name: "narrower tables", sql: include_str!("migrations/0025_narrower_tables.sql") },
    Migration { name: "cached tokens", sql: include_str!("migrations/0026_cached_tokens.sql") },
    Migration { name: "hooks", sql: include_str!("migrations/0027_hooks.sql") },
    Migration { name: "tools of MCP servers", sql: include_str!("migrations/0028_mcp_tools.sql") },
    Migration { name: "channels", sql: include_str!("migrations/0029_channels.sql") },
    Migration { name: "undo", sql: include_str!("migrations/0034_undo.sql") },
    Migration { name: "approvals", sql: include_str!("migrations/0035_approvals.sql") },
    Migration { name: "skills", sql: include_str!("migrations/0036_skills.sql") },
    Migration { name: "logins at MCP servers", sql: include_str!("migrations/0037_mcp_logins.sql") },
    Migration { name: "cards in messages", sql: include_str!("migrations/0038_approval_messages.sql") },
    Migration { name: "labels", sql: include_str!("migrations/0039_labels.sql") },
    Migration { name: "labels of the outbox", sql: include_str!("migrations/0040_outbox_labels.sql") },
    Migration { name: "files of a fleet", sql: include_str!("migrations/0041_files_of_a_fleet.sql") },
    Migration { name: "steps that left", sql: include_str!("migrations/0042_steps_that_left.sql") },
    Migration { name: "sessions run on", sql: include_str!("migrations/0043_sessions_run_on.sql") },
    Migration { name: "marks of any name", sql: include_str!("migrations/0044_marks_of_any_name.sql") },
    Migration { name: "labels of published files", sql: include_str!("migrations/0045_published_labels.sql") },
    Migration { name: "pictures", sql: include_str!("migrations/0046_pictures.sql") },
    Migration { name: "rules of the network", sql: include_str!("migrations/0047_network_rules.sql") },
    Migration { name: "connected providers", sql: include_str!("migrations/0048_connected_providers.sql") },
    Migration { name: "branches", sql: include_str!("migrations/0049_branches.sql") },
    Migration { name: "owners of sessions", sql: include_str!("migrations/0050_session_owners.sql") },
    Migration { name: "titles", sql: include_str!("migrations/0051_titles.sql") },
    Migration { name: "sums of the built-in rules", sql: include_str!("migrations/0052_rule_totals.sql") },
    Migration { name: "replies in use", sql: include_str!("migrations/0053_replies_in_use.sql") },
];

pub(super) fn migrate(conn: &mut Connection, all: &[Migration]) -> Result<(), StoreError> {
    // Without the write lock first, because usually there is nothing to do.
    if applied(conn, all)? == all.len() {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let done = applied(&tx, all)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
             version INTEGER PRIMARY KEY,
             name TEXT NOT NULL,
             checksum TEXT NOT NULL, -- SHA-256 of the text
             applied TEXT NOT NULL DEFAULT (datetime('now'))
         ) STRICT",
    )?;
    for (version, migration) in (1_u32..).zip(all).skip(done) {
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO migrations (version, name, checksum) VALUES (?1, ?2, ?3)",
            (version, migration.name, checksum(migration.sql)),
        )?;
    }
    Ok(tx.commit()?)
}

/// Returns how many migrations are applied, after checking that they are the first ones of this list.
pub(super) fn applied(conn: &Connection, all: &[Migration]) -> Result<usize, StoreError> {
    let tables = |filter: &str| -> Result<i64, rusqlite::Error> {
        let sql = format!("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND {filter}");
        conn.query_row(&sql, (), |row| row.get(0))
    };
    if tables("name = 'migrations'")? == 0 {
        return match tables("name NOT LIKE 'sqlite_%'")? {
            0 => Ok(0),
            _ => Err(StoreError::Foreign { path: Default::default() }),
        };
    }
    let mut rows = conn.prepare("SELECT version, name, checksum FROM migrations ORDER BY version")?;
    let rows = rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let rows = rows.collect::<Result<Vec<(u32, String, String)>, _>>()?;
    let known = all.len() as u32;
    if let Some((found, ..)) = rows.last().filter(|(version, ..)| *version > known) {
        return Err(StoreError::Newer { path: Default::default(), found: *found, known });
    }
    for (index, (version, name, found)) in rows.iter().enumerate() {
        if *version as usize != index + 1 {
            return Err(StoreError::corrupt(format!("migration {} is missing", index + 1)));
        }
        if *found != checksum(all[index].sql) {
            return Err(StoreError::Changed { path: Default::default(), version: *version, name: name.clone() });
        }
    }
    Ok(rows.len())
}

fn checksum(sql: &str) -> String {
    data_encoding::HEXLOWER.encode(digest(&SHA256, sql.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migration = Migration { name: "one", sql: "CREATE TABLE a (x); INSERT INTO a VALUES (1);" };
    const TWO: Migration = Migration { name: "two", sql: "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1;" };

    fn sum(conn: &Connection) -> i64 {
        conn.query_row("SELECT sum(x + y) FROM a", (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_is_applied_once_and_in_order() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[ONE]).unwrap();
        migrate(&mut conn, &[ONE, TWO]).unwrap();
        migrate(&mut conn, &[ONE, TWO]).unwrap();
        assert_eq!(sum(&conn), 3);
    }

    #[test]
    fn one_that_fails_leaves_none() {
        let mut conn = Connection::open_in_memory().unwrap();
        let broken = Migration { name: "broken", sql: "CREATE TABLE b (x); INSERT INTO missing VALUES (1);" };
        assert!(migrate(&mut conn, &[ONE, TWO, broken]).is_err());
        assert!(conn.prepare("SELECT * FROM a").is_err());
        migrate(&mut conn, &[ONE, TWO]).unwrap();
        assert_eq!(sum(&conn), 3);
    }

    #[test]
    fn a_newer_database_is_refused_and_left_alone() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[ONE, TWO]).unwrap();
        let error = migrate(&mut conn, &[ONE]).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
        assert!(error.to_string().contains("is at version 2 and this kiso knows versions up to 1"), "{error}");
        migrate(&mut conn, &[ONE, TWO]).unwrap();
    }

    #[test]
    fn a_changed_or_missing_one_is_noticed() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[ONE, TWO]).unwrap();
        let changed = Migration { name: "one", sql: "CREATE TABLE a (x, z);" };
        let error = migrate(&mut conn, &[changed, TWO]).unwrap_err();
        assert!(matches!(error, StoreError::Changed { version: 1, .. }), "{error}");
        conn.execute("DELETE FROM migrations WHERE version = 1", ()).unwrap();
        assert!(matches!(migrate(&mut conn, &[ONE, TWO]), Err(StoreError::Corrupt { .. })));
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE bookmarks (url)").unwrap();
        assert!(matches!(migrate(&mut conn, &[ONE]), Err(StoreError::Foreign { .. })));
    }
}
