//! Deletes a session in one transaction: everything that belongs to it, and nothing that others need.

use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

/// The result of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// These sessions were deleted: the given one, and its subagents.
    Done(Vec<SessionName>),
    /// There is none with this name.
    Unknown,
    /// In this session (the given one or one of its subagents), a message is waiting or a run has not ended. Accepted messages
    /// are always answered, so nothing was deleted.
    AtWork(SessionName),
}

/// The tables with rows of a session, in the order of deletion: none refers to one before it. Rows are found by the session
/// (`?1`). A test compares this list with the existing tables.
///
/// Usage is deleted with its session. The sums of days stay; otherwise, a deletion would reset the daily limits.
const OWNED: [(&str, &str); 25] = [
    ("chats", "session = ?1"),
    ("chat_requests", "session = ?1"),
    ("prompts", "run IN (SELECT num FROM runs WHERE session = ?1)"),
    ("tasks", "run IN (SELECT num FROM runs WHERE session = ?1)"),
    ("approvals", "run IN (SELECT num FROM runs WHERE session = ?1)"),
    ("approval_rules", "session = ?1"),
    ("network_rules", "session = ?1"),
    ("events", "run IN (SELECT num FROM runs WHERE session = ?1)"),
    ("usage_totals", "scope = 'run' AND key IN (SELECT num FROM runs WHERE session = ?1)"),
    ("usage", "session = ?1"),
    ("background", "session = ?1"),
    ("jobs", "session = ?1"),
    ("runs", "session = ?1"),
    ("messages", "session = ?1"),
    ("branches", "session = ?1"),
    ("branch_summaries", "session = ?1"),
    ("summaries", "session = ?1"),
    ("segments", "session = ?1"),
    ("facts", "session = ?1"),
    ("memory_chunks", "session = ?1"),
    ("scratchpad", "session = ?1"),
    ("pictures", "session = ?1"),
    ("published", "session = ?1"),
    ("secrets", "session = ?1"),
    ("kv", "session = ?1"),
];

impl View<'_> {
    /// Returns the session and its direct and indirect subagents; empty if there is no such session.
    pub fn session_tree(&self, session: &SessionName) -> Result<Vec<SessionName>, StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(Vec::new()) };
        Ok(self.with_subagents(id)?.into_iter().map(|(_, name)| name).collect())
    }

    /// Returns a session of this tree in which a message is waiting or a run has not ended.
    pub fn at_work_below(&self, session: &SessionName) -> Result<Option<SessionName>, StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(None) };
        for (id, name) in self.with_subagents(id)? {
            if self.is_at_work(id)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Returns the session and its direct and indirect subagents, parents first.
    fn with_subagents(&self, session: i64) -> Result<Vec<(i64, SessionName)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "WITH RECURSIVE tree (id, depth) AS (
                 SELECT ?1, 0 UNION SELECT s.id, depth + 1 FROM sessions s JOIN tree ON s.parent = tree.id WHERE depth < 64)
             SELECT s.id, s.name FROM tree JOIN sessions s ON s.id = tree.id ORDER BY depth, s.id",
        )?;
        let rows = query.query_map([session], |row| Ok((row.get(0)?, session_name(row, 1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether a message of the session is waiting, or a run of it has not ended.
    fn is_at_work(&self, session: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE session = ?1 AND state = 'queued')
             OR EXISTS (SELECT 1 FROM runs INDEXED BY runs_unfinished WHERE status = 'running' AND held_ms IS NULL
                           AND session = ?1)",
        )?;
        Ok(query.query_row([session], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Deletes a session with everything that belongs to it: messages, runs and their traces, usage, published files, its
    /// secrets, facts and passages that were learned in it, the schedules that report to it, and its subagents with theirs. Facts
    /// consolidated from several sessions, core memory and the sums of days stay. The caller removes the files in its workspace.
    pub fn delete_session(&self, session: &SessionName) -> Result<Deletion, StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(Deletion::Unknown) };
        if let Some(busy) = self.at_work_below(session)? {
            return Ok(Deletion::AtWork(busy));
        }
        let mut tree = self.with_subagents(id)?;
        // Subagents refer to their parents.
        tree.reverse();
        // Row numbers are reused: old notices in the feed would refer to another session. The feed is short, and an index would
        // cost a write for each notice, so it is searched once.
        let ids = serde_json::Value::from_iter(tree.iter().map(|(id, _)| *id)).to_string();
        self.conn
            .prepare_cached("DELETE FROM feed WHERE session IN (SELECT value FROM json_each(?1))")?
            .execute([ids])?;
        for (id, name) in &tree {
            // A schedule that reports to a deleted session would create it again, without its credentials.
            let of_name = "session = ?1 OR 'schedule.' || name = ?1";
            let receipts = format!("DELETE FROM receipts WHERE schedule IN (SELECT id FROM schedules WHERE {of_name})");
            self.conn.prepare_cached(&receipts)?.execute([name.as_str()])?;
            self.conn.prepare_cached(&format!("DELETE FROM schedules WHERE {of_name}"))?.execute([name.as_str()])?;
            for (table, of_session) in OWNED {
                self.conn.prepare_cached(&format!("DELETE FROM {table} WHERE {of_session}"))?.execute([id])?;
            }
            self.conn.prepare_cached("DELETE FROM usage_totals WHERE scope = 'session' AND key = ?1")?.execute([id])?;
            self.conn.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
        }
        tree.reverse();
        Ok(Deletion::Done(tree.into_iter().map(|(_, name)| name).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{JobPriority, MessageRole, NewFact, NewJob, Publication, RunStatus, Scope, Store, UsageLine};
    use kiso_plan::label::Label;
    use kiso_plan::plan::CallerScope;

    fn session(name: &str) -> SessionName {
        SessionName::parse(name).unwrap()
    }

    /// A store with two sessions that have rows in every table, and a subagent of the first.
    fn filled() -> (Store, std::path::PathBuf) {
        let dir = std::env::temp_dir().join(format!(
            "kiso-deletion-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        let store = Store::open(&dir.join("store.db")).unwrap();
        store
            .write_blocking(|tx| {
                for name in ["a", "b", "sub"] {
                    fill(tx, &session(name))?;
                }
                tx.conn.execute(
                    "UPDATE sessions SET parent = (SELECT id FROM sessions WHERE name = 'a') WHERE name = 'sub'",
                    (),
                )?;
                Ok(())
            })
            .unwrap();
        (store, dir)
    }

    fn fill(tx: &Tx<'_>, s: &SessionName) -> Result<(), StoreError> {
        let job = NewJob {
            session: s.clone(),
            text: "do it".to_owned(),
            caller: CallerScope::User,
            priority: JobPriority::Interactive,
            client_key: None,
            at_ms: 1,
            label: Default::default(),
        };
        tx.admit(&job)?;
        let begun = tx.begin_queued(s, 1)?.expect("a message waits");
        let run = begun.run;
        tx.append_event(&run, 0, 1, "spec", "{}")?;
        let num = tx.num(&run)?;
        let id = tx.session_id(s)?.expect("it was made");
        tx.conn.execute(
            "INSERT INTO tasks (run, id, position, kind, label, task, status) VALUES (?1, 1, 1, 'exec', 'x', '{}', 'done')",
            [num],
        )?;
        tx.conn.execute("INSERT INTO prompts (run, seq, nth, role, text) VALUES (?1, 0, 0, 'planner', 'x')", [num])?;
        tx.conn.execute("INSERT INTO segments (session, after, at_ms) VALUES (?1, 0, 1)", [id])?;
        tx.conn.execute("INSERT INTO chats (session, owner, asked) VALUES (?1, 'o', x'00')", [id])?;
        tx.conn.execute(
            "INSERT INTO chat_requests (id, token, asked, session, model, metadata, stored, at_ms)
             VALUES (?1, 't', x'00', ?2, 'kiso', '{}', 1, 1)",
            (s.as_str(), id),
        )?;
        tx.conn.execute(
            "INSERT INTO kv (session, skill, key, value) VALUES (?1, 'k', CAST('x' AS BLOB), CAST('x' AS BLOB))",
            [id],
        )?;
        tx.conn
            .execute("INSERT INTO background (kind, session, run, due_ms) VALUES ('title', ?1, ?2, 1)", (id, num))?;
        let line = UsageLine { at_ms: 1, role: "planner".into(), model: "m".into(), usage: Default::default() };
        tx.add_usage(s, Some(&run), &line)?;
        tx.add_usage(s, None, &line)?;
        let fact =
            NewFact { text: format!("fact of {s}"), source: "user".into(), session: Some(s.clone()), confidence: 50 };
        tx.add_fact(&fact, 1)?;
        tx.add_chunk(&format!("passage of {s}"), "turn", Some(s), 1)?;
        tx.scratchpad_put(s, "k", "v", true, 1)?;
        tx.keep_picture(s, "0a", b"x", 1)?;
        tx.set_summary(s, 0, &crate::store::Summary { text: "x".into(), to: 1, sources: Vec::new() })?;
        tx.put_secret(s, "n", b"v", 1)?;
        let card = kiso_plan::approval::Card { effects: Vec::new(), expires_ms: 9 };
        tx.ask_approval(&run, 0, &card, 1)?;
        let rule = crate::store::NewApprovalRule {
            session: Some(s.clone()),
            tool: "x".into(),
            access: vec![],
            until_ms: None,
        };
        tx.remember_approvals(&[rule], 1)?;
        let rule = kiso_plan::network::NetworkRule::new("a.example", kiso_plan::network::NetworkAccess::Allow);
        let rule = crate::store::NewNetworkRule { session: Some(s.clone()), rule, by: "x".into() };
        tx.remember_network_rule(&rule, 1)?;
        tx.publish(
            s,
            Publication { path: "pub/a.txt", media_type: "text/plain", title: None, label: &Label::default() },
            1,
        )?;
        tx.finish_run(&run, RunStatus::Done, 2, "{}")?;
        let reply = tx.add_message(s, MessageRole::Assistant, "done", 2, Some(&run))?;
        tx.finish_jobs(&run, reply)?;
        tx.conn
            .execute("INSERT INTO branches (id, session, parent, first, run) VALUES (?1, ?2, 0, ?1, 1)", (reply, id))?;
        let kept = "INSERT INTO branch_summaries VALUES (?1, ?2, 0, 'x', 1, '[]', '{}')";
        tx.conn.execute(kept, (id, reply))?;
        Ok(())
    }

    fn rows(store: &Store, table: &str) -> i64 {
        store
            .read_blocking(|view| {
                Ok(view.conn.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0))?)
            })
            .unwrap()
    }

    #[test]
    fn everything_of_a_session_goes_and_nothing_of_others() {
        let (store, dir) = filled();
        let before: Vec<i64> = OWNED.iter().map(|(table, _)| rows(&store, table)).collect();
        for ((table, _), count) in OWNED.iter().zip(&before) {
            assert!(*count >= 3, "each session has something in {table}");
        }
        let gone = store.write_blocking(|tx| tx.delete_session(&session("a"))).unwrap();
        assert_eq!(gone, Deletion::Done(vec![session("a"), session("sub")]));
        for ((table, _), count) in OWNED.iter().zip(&before).filter(|((table, _), _)| *table != "usage_totals") {
            assert_eq!(rows(&store, table), count / 3, "{table}");
        }
        assert_eq!(rows(&store, "sessions"), 1);
        assert_eq!(rows(&store, "usage_totals WHERE scope <> 'day'"), 2, "the run and the session that are left");
        let day = store.read_blocking(|view| view.usage_total(Scope::Day(1))).unwrap();
        assert_eq!(day.calls, 6, "a deletion lifts no cap");
        let found = store.read_blocking(|view| view.find_chunks("passage", 10)).unwrap();
        assert_eq!(found.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>(), ["passage of b"]);
        let told = store.read_blocking(|view| view.feed(None, 0, 100)).unwrap();
        assert!(told.iter().all(|notice| notice.session == session("b")) && !told.is_empty());
        store
            .read_blocking(|view| {
                let wrong: Option<String> = view.conn.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
                assert_eq!(wrong.as_deref(), Some("ok"));
                let orphans = view.conn.prepare("PRAGMA foreign_key_check")?.query_map((), |_| Ok(()))?.count();
                assert_eq!(orphans, 0);
                Ok(())
            })
            .unwrap();
        // The name can be used again.
        let gone = store.write_blocking(|tx| tx.delete_session(&session("a"))).unwrap();
        assert_eq!(gone, Deletion::Unknown);
        store.write_blocking(|tx| fill(tx, &session("a"))).unwrap();
        assert_eq!(store.read_blocking(|view| view.last_messages(&session("a"), 9)).unwrap().len(), 2);
        store.close();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_was_accepted_is_not_deleted() {
        let (store, dir) = filled();
        let job = NewJob {
            session: session("sub"),
            text: "more".to_owned(),
            caller: CallerScope::User,
            priority: JobPriority::Subagent,
            client_key: None,
            at_ms: 3,
            label: Default::default(),
        };
        store.write_blocking(move |tx| tx.admit(&job)).unwrap();
        let delete = || store.write_blocking(|tx| tx.delete_session(&session("a"))).unwrap();
        assert_eq!(delete(), Deletion::AtWork(session("sub")), "it waits");
        store.write_blocking(|tx| tx.begin_queued(&session("sub"), 4)).unwrap();
        assert_eq!(delete(), Deletion::AtWork(session("sub")), "it is being done");
        assert_eq!(rows(&store, "sessions"), 3);
        store.close();
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// A table that is added later must be emptied here, or found not to belong to sessions.
    #[test]
    fn every_table_that_refers_to_sessions_runs_or_messages_is_emptied() {
        let (store, dir) = filled();
        let referring: Vec<String> = store
            .read_blocking(|view| {
                let mut query = view.conn.prepare(
                    "SELECT DISTINCT t.name FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
                     WHERE t.type = 'table' AND f.on_delete = 'NO ACTION'
                     AND f.\"table\" IN ('sessions', 'runs', 'messages', 'jobs') ORDER BY 1",
                )?;
                let names = query.query_map((), |row| row.get(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            })
            .unwrap();
        assert!(referring.len() > 10, "{referring:?}");
        for table in referring.iter().filter(|table| *table != "sessions") {
            assert!(OWNED.iter().any(|(owned, _)| owned == table), "{table} is left when its session is deleted");
        }
        store.close();
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// Neither the statements nor SQLite's checks for them read a whole growing table.
    #[test]
    fn nothing_is_found_by_reading_whole_tables() {
        let (store, dir) = filled();
        store
            .read_blocking(|view| {
                for (table, of_session) in OWNED {
                    let sql = format!("EXPLAIN QUERY PLAN DELETE FROM {table} WHERE {of_session}");
                    let mut plan = view.conn.prepare(&sql)?;
                    let steps = plan.query_map([1], |row| row.get::<_, String>("detail"))?;
                    for step in steps {
                        let step = step?;
                        assert!(!step.starts_with("SCAN"), "{table}: {step}");
                    }
                }
                // Every column that refers to deletable rows is the first column of an index.
                let mut query = view.conn.prepare(
                    "SELECT t.name, f.\"from\" FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
                     WHERE t.type = 'table' AND f.\"table\" IN ('sessions', 'runs', 'messages')
                     AND NOT EXISTS (
                         SELECT 1 FROM pragma_index_list(t.name) i, pragma_index_info(i.name) c
                         WHERE c.seqno = 0 AND c.name = f.\"from\" AND (NOT i.partial OR EXISTS (
                             SELECT 1 FROM sqlite_schema x WHERE x.name = i.name AND x.sql LIKE '%IS NOT NULL')))
                     AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) k WHERE k.pk = 1 AND k.name = f.\"from\")",
                )?;
                let missing = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
                assert_eq!(missing.collect::<Result<Vec<(String, String)>, _>>()?, []);
                Ok(())
            })
            .unwrap();
        store.close();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
