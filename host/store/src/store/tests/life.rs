//! Backups, checks and retention.

use std::collections::BTreeSet;

use super::super::{integrity::AT_ONCE, migrations};
use super::*;
use kiso_plan::plan::CallerScope;

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Two answered messages of a session, as a daemon stores them, that came and ended at this time.
fn answered(tx: &Tx<'_>, name: &str, at_ms: i64) -> Result<RunId, StoreError> {
    let number = tx.feed_end()?;
    let new = |text: &str, key: &str| NewJob {
        session: session(name),
        text: text.to_owned(),
        caller: CallerScope::User,
        priority: JobPriority::Interactive,
        client_key: Some(format!("{key}-{number}")),
        at_ms,
        label: Default::default(),
    };
    tx.admit(&new("one", "a"))?;
    tx.admit(&new("two", "b"))?;
    let run = tx.begin_queued(&session(name), at_ms)?.unwrap().run;
    for seq in 0..3 {
        tx.append_event(&run, seq, at_ms, "kind", "{}")?;
        tx.put_prompt(&run, &Prompt { seq, nth: 0, role: "planner".into(), text: "p".repeat(3_000) })?;
    }
    let task = TaskRow {
        id: 1,
        position: 0,
        kind: kiso_plan::plan::TaskKind::Exec,
        label: "exec".into(),
        task: "{}".into(),
        status: TaskState::Done,
        output: Some("out".into()),
        error: None,
        started_ms: Some(at_ms),
        ended_ms: Some(at_ms),
    };
    tx.put_tasks(&run, &[task])?;
    let line = UsageLine { at_ms, role: "r".into(), model: "m".into(), usage: Default::default() };
    tx.add_usage(&session(name), Some(&run), &line)?;
    tx.finish_run(&run, RunStatus::Done, at_ms, "{}")?;
    let reply = tx.add_message(&session(name), MessageRole::Assistant, "answer", at_ms, Some(&run))?;
    tx.finish_jobs(&run, reply)?;
    tx.add_work(DueKind::Memory, &session(name), Some(&run), at_ms)?;
    tx.scratchpad_put(&session(name), "k", "v", true, at_ms)?;
    tx.kv_set(&session(name), &skill("a"), "k", b"v")?;
    tx.put_secret(&session(name), "token", b"x", at_ms)?;
    tx.break_session(&session(name), at_ms)?;
    tx.publish(&session(name), publication("pub/a", "text/plain", None), at_ms)?;
    Ok(run)
}

fn count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.read_blocking(|view| Ok(view.conn.query_row(&sql, (), |row| row.get(0))?)).unwrap()
}

/// Calls until nothing is left; returns how often something was deleted.
fn all(store: &Store, forget: impl Fn(&Tx<'_>) -> Result<usize, StoreError> + Send + Copy + 'static) -> usize {
    let mut times = 0;
    while store.write_blocking(move |tx| forget(tx)).unwrap() > 0 {
        times += 1;
        assert!(times < 1_000, "it never ends");
    }
    times
}

#[test]
fn old_prompts_and_traces_go_and_what_is_under_way_stays() {
    let house = House::new();
    let store = house.open();
    let (old, young, running) = store
        .write_blocking(|tx| {
            let running = tx.create_run(&session("busy"), "go on", DAY)?;
            tx.append_event(&running, 0, DAY, "kind", "{}")?;
            tx.put_prompt(&running, &Prompt { seq: 0, nth: 0, role: "planner".into(), text: "p".into() })?;
            let old = (0..40).map(|_| answered(tx, "s", 2 * DAY)).collect::<Result<Vec<_>, _>>()?;
            Ok((old, answered(tx, "s", 9 * DAY)?, running))
        })
        .unwrap();
    let left =
        |run: &RunId| store.read_blocking(|view| Ok((view.prompts(run)?.len(), view.events(run)?.len()))).unwrap();
    assert!(all(&store, |tx| tx.forget_prompts(3 * DAY)) > 1, "a few rows with each transaction");
    assert!(old.iter().all(|run| left(run) == (0, 3)));
    assert_eq!((left(&young), left(&running)), ((3, 3), (1, 1)));
    all(&store, |tx| tx.forget_traces(3 * DAY));
    assert!(old.iter().all(|run| left(run) == (0, 0)));
    assert_eq!((left(&young), left(&running)), ((3, 3), (1, 1)));
    store
        .read_blocking(|view| {
            assert_eq!(view.run(&old[0])?.unwrap().outcome.as_deref(), Some("{}"));
            assert_eq!(
                (&view.tasks_of(&old[0])?[0].output, view.tasks_of(&young)?[0].output.as_deref()),
                (&None, Some("out"))
            );
            assert_eq!(view.last_messages(&session("s"), 1_000)?.len(), 41 * 3);
            assert_eq!(view.integrity()?, [""; 0]);
            Ok(())
        })
        .unwrap();
}

/// Pinned sessions are kept; archived ones are deleted like any others.
#[test]
fn retention_keeps_what_is_pinned() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            for name in ["pinned", "archived", "listed"] {
                answered(tx, name, DAY)?;
            }
            tx.set_placement(&session("pinned"), Placement::Pinned)?;
            tx.set_placement(&session("archived"), Placement::Archived)
        })
        .unwrap();
    all(&store, |tx| tx.forget_sessions(3 * DAY));
    let names = |placements: &[Placement]| -> Vec<String> {
        let lines = store.read_blocking(|view| view.list_sessions(placements, None, 10)).unwrap();
        lines.into_iter().map(|line| line.name.to_string()).collect()
    };
    assert_eq!(names(&Placement::ALL), ["pinned"]);
    // A name that was deleted can be used and listed again.
    store.write_blocking(|tx| answered(tx, "archived", 9 * DAY)).unwrap();
    assert_eq!(names(&[Placement::Listed]), ["archived"]);
}

#[test]
fn an_old_session_goes_whole_and_facts_and_memory_stay() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            for _ in 0..30 {
                answered(tx, "old", 2 * DAY)?;
            }
            tx.set_title(&session("old"), "Old things", false)?;
            answered(tx, "young", 9 * DAY)?;
            tx.create_run(&session("busy"), "go on", DAY)?;
            let waits = NewJob {
                session: session("waits"),
                text: "x".into(),
                caller: CallerScope::User,
                priority: JobPriority::Interactive,
                client_key: None,
                at_ms: DAY,
                label: Default::default(),
            };
            tx.admit(&waits)?;
            let fact = NewFact {
                text: "rain is wet".into(),
                source: "user".into(),
                session: Some(session("old")),
                confidence: 50,
            };
            tx.add_fact(&fact, DAY)?;
            tx.add_chunk("a passage", "turn", Some(&session("old")), DAY)?;
            // A subagent is deleted without its session.
            tx.add_message(&session("sub"), MessageRole::User, "x", DAY, None)?;
            tx.conn.execute(
                "UPDATE sessions SET parent = (SELECT id FROM sessions WHERE name = 'young') WHERE name = 'sub'",
                (),
            )?;
            Ok(())
        })
        .unwrap();
    assert!(store.read_blocking(|view| view.is_at_rest(i64::MAX)).is_ok_and(|rest| !rest), "a run is under way");
    let before = count(&store, "feed");
    assert!(all(&store, |tx| tx.forget_sessions(3 * DAY)) > 3, "a few rows with each transaction");
    store
        .read_blocking(|view| {
            let listed: Vec<_> =
                view.list_sessions(&Placement::ALL, None, 10)?.into_iter().map(|line| line.name.to_string()).collect();
            assert_eq!(listed, ["young", "waits", "busy"]);
            assert_eq!((view.title(&session("old"))?, view.last_messages(&session("old"), 10)?), (None, vec![]));
            assert_eq!(view.facts(10)?[0].session, Some(session("old")));
            assert_eq!(view.find_chunks("passage", 5)?.len(), 1);
            assert_eq!((view.secrets(&session("old"))?.len(), view.scratchpad_list(&session("old"))?.len()), (0, 0));
            assert_eq!(view.unfinished_runs(None)?.len(), 1);
            assert_eq!(view.count_queued()?, 1);
            assert_eq!(view.integrity()?, [""; 0]);
            Ok(())
        })
        .unwrap();
    // The remaining rows belong to the three sessions that stay, and none refers to deleted rows.
    assert_eq!(
        ["messages", "runs", "jobs", "events", "prompts", "tasks"].map(|t| count(&store, t)),
        [3 + 1 + 1, 2, 3, 3, 3, 1]
    );
    assert_eq!(["usage", "background", "segments", "kv", "published"].map(|t| count(&store, t)), [1; 5]);
    assert_eq!(count(&store, "pragma_foreign_key_check"), 0);
    assert!(count(&store, "feed") > before, "those who watch are told");
    // Its name can be used again, and a known key is new.
    let again = NewJob {
        session: session("old"),
        text: "x".into(),
        caller: CallerScope::User,
        priority: JobPriority::Interactive,
        client_key: Some("a-0".into()),
        at_ms: 10 * DAY,
        label: Default::default(),
    };
    assert!(matches!(store.write_blocking(move |tx| tx.admit(&again)).unwrap(), JobAdmission::Now(_)));
    assert_eq!(
        store.read_blocking(|view| view.list_sessions(&Placement::ALL, None, 10)).unwrap()[0].name,
        session("old")
    );
}

/// A new table that refers to a run or a message would prevent the deletion of old ones.
#[test]
fn everything_that_refers_to_a_run_or_a_message_is_forgotten_with_it() {
    let house = House::new();
    let store = house.open();
    let sql = "SELECT t.name || '.' || f.\"from\" || ' to ' || f.\"table\" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
               WHERE f.\"table\" IN ('runs', 'messages') AND f.on_delete = 'NO ACTION'";
    let found: BTreeSet<String> = store
        .read_blocking(|view| {
            let mut query = view.conn.prepare(sql)?;
            let rows = query.query_map((), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .unwrap();
    let dealt_with = [
        "background.run to runs",
        "events.run to runs",
        "jobs.message to messages",
        "jobs.run to runs",
        "prompts.run to runs",
        "runs.message to messages",
        "tasks.run to runs",
        "usage.run to runs",
    ];
    assert_eq!(found, dealt_with.map(str::to_owned).into(), "deal with it in store/retention.rs");
}

#[test]
fn free_pages_are_given_back_a_few_at_a_time() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let id = run.clone();
    store
        .write_blocking(move |tx| {
            (0..200).try_for_each(|seq| {
                tx.put_prompt(&id, &Prompt { seq, nth: 0, role: "planner".into(), text: "p".repeat(8_000) })
            })?;
            tx.finish_run(&id, RunStatus::Done, 2, "{}")
        })
        .unwrap();
    all(&store, |tx| tx.forget_prompts(DAY));
    let space = || store.read_blocking(|view| view.space()).unwrap();
    let before = space();
    assert!(before.free * 2 > before.bytes, "{before:?}");
    assert_eq!(store.write_blocking(|tx| tx.give_back(10)).unwrap(), 10);
    assert_eq!(space().bytes, before.bytes - 10 * PAGE.unsigned_abs());
    assert!(all(&store, |tx| Ok(tx.give_back(100)? as usize)) > 1);
    assert_eq!(space().free, 0);
    store.checkpoint().unwrap();
    assert_eq!(fs::metadata(house.path()).unwrap().len(), space().bytes);
    assert_eq!(fs::metadata(house.0.join("store.db-wal")).unwrap().len(), 0);
    assert_eq!(store.read_blocking(|view| view.integrity()).unwrap(), [""; 0]);
}

/// Stops the other threads, even if a test fails; otherwise, they would run forever.
struct Over<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_copy_is_whole_while_others_write() {
    let house = House::new();
    let store = house.open();
    begin(&store, 1);
    let (done, copies) = (std::sync::atomic::AtomicBool::new(false), house.0.join("copy.db"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Two messages in each transaction: a copy has both or none.
            while !done.load(Ordering::Relaxed) {
                store
                    .write_blocking(|tx| {
                        tx.add_message(&session("s"), MessageRole::User, "a", 1, None)?;
                        tx.add_message(&session("s"), MessageRole::Assistant, "b", 1, None)
                    })
                    .unwrap();
            }
        });
        let _over = Over(&done);
        for _ in 0..3 {
            let copied = store.back_up(&copies, true, 7).unwrap();
            assert_eq!(copied.version as usize, migrations::ALL.len());
            let copy = Store::open(&copies).unwrap();
            assert_eq!(copy.read_blocking(|view| view.last_messages(&session("s"), 1_000_000)).unwrap().len() % 2, 1);
            copy.close();
        }
    });
    assert_eq!(fs::metadata(&copies).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(store.read_blocking(|view| view.marked(Mark::Backup)).unwrap(), Some(7));
    assert!(matches!(store.back_up(&copies, false, 8), Err(BackupError::Exists { .. })));
    assert!(matches!(store.back_up(&house.path(), true, 8), Err(BackupError::Itself { .. })));
    let names: BTreeSet<_> =
        fs::read_dir(&house.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(
        names,
        ["copy.db", "store.db", "store.db-shm", "store.db-wal"].map(str::to_owned).into(),
        "nothing else is left"
    );
}

#[test]
fn a_backup_takes_the_place_of_the_store_which_is_kept() {
    let house = House::new();
    let (file, temp) = (house.0.join("copy.db"), house.0.join("temp"));
    let store = house.open();
    let kept = begin(&store, 1);
    store.back_up(&file, false, 5).unwrap();
    let later = begin(&store, 2);
    store.close();
    let restored = restore(&file, &house.path(), &temp, 1_700_000_000_000).unwrap();
    assert_eq!(restored.version as usize, migrations::ALL.len());
    let aside = restored.kept.unwrap();
    assert!(aside.ends_with("store.db.before-restore-20231114T221320Z"), "{}", aside.display());
    let runs = |path: &std::path::Path| {
        let store = Store::open(path).unwrap();
        let lines = store.read_blocking(|view| view.list_runs(None, None, 10)).unwrap();
        let marked = store.read_blocking(|view| view.marked(Mark::Restore)).unwrap();
        store.close();
        (lines.into_iter().map(|line| line.id).collect::<Vec<_>>(), marked)
    };
    assert_eq!(runs(&house.path()), (vec![kept.clone()], Some(1_700_000_000_000)));
    assert_eq!(runs(&aside), (vec![later, kept], None));
    // A second restore in the same second, over a restored store; and one without an existing store.
    let again = restore(&file, &house.path(), &temp, 1_700_000_000_000).unwrap();
    assert!(again.kept.unwrap().ends_with("store.db.before-restore-20231114T221320Z-2"));
    fs::remove_file(house.path()).unwrap();
    assert_eq!(restore(&file, &house.path(), &temp, 9).unwrap().kept, None);
    assert_eq!(fs::metadata(house.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A damaged store is moved aside with its log, part of which may be recoverable; the log does not affect the restored store.
#[test]
fn a_damaged_store_is_kept_with_its_log() {
    let house = House::new();
    let (file, temp) = (house.0.join("copy.db"), house.0.join("temp"));
    let store = house.open();
    begin(&store, 1);
    store.back_up(&file, false, 5).unwrap();
    store.checkpoint().unwrap();
    begin(&store, 2);
    let crashed = House::new();
    let wal = fs::read(house.0.join("store.db-wal")).unwrap();
    fs::write(crashed.0.join("store.db-wal"), &wal).unwrap();
    fs::write(crashed.path(), vec![7; 8192]).unwrap();
    let aside = restore(&file, &crashed.path(), &temp, 9).unwrap().kept.unwrap();
    assert!(fs::read(&aside).unwrap() == vec![7; 8192], "the file is as it was");
    assert!(fs::read(format!("{}-wal", aside.display())).unwrap() == wal, "its log is as it was");
    assert_eq!(crashed.open().read_blocking(|view| view.list_runs(None, None, 10)).unwrap().len(), 1);
}

/// A backup of an older kiso is migrated.
#[test]
fn an_older_backup_is_migrated() {
    let house = House::new();
    let (file, temp) = (house.0.join("copy.db"), house.0.join("temp"));
    let mut conn = Connection::open(&file).unwrap();
    migrations::migrate(&mut conn, &migrations::ALL[..2]).unwrap();
    drop(conn);
    let restored = restore(&file, &house.path(), &temp, 9).unwrap();
    assert_eq!((restored.version, restored.kept), (2, None));
    begin(&house.open(), 1);
}

#[test]
fn what_is_no_whole_backup_is_refused_and_nothing_is_changed() {
    let house = House::new();
    let (file, temp) = (house.0.join("copy.db"), house.0.join("temp"));
    let store = house.open();
    begin(&store, 1);
    store.back_up(&file, false, 5).unwrap();
    store.close();
    let before = fs::read(house.path()).unwrap();
    let good = fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let error = restore(&file, &house.path(), &temp, 9).unwrap_err();
        assert!(!temp.exists() && fs::read(house.path()).unwrap() == before, "{error}");
        assert!(error.to_string().contains("copy.db"), "{error}");
        error
    };
    assert!(matches!(refused(b""), BackupError::NoBackup { .. }));
    assert!(matches!(refused(&b"a letter ".repeat(1_000)), BackupError::Damaged { .. }));
    assert!(matches!(refused(&good[..good.len() / 2]), BackupError::Damaged { .. }));
    let mut garbled = good.clone();
    garbled[4096 * 3..4096 * 6].fill(0xa5);
    assert!(matches!(refused(&garbled), BackupError::Damaged { .. }));
    fs::write(&file, &good).unwrap();
    let conn = Connection::open(&file).unwrap();
    conn.execute("INSERT INTO migrations (version, name, checksum) VALUES (99, 'future', '')", ()).unwrap();
    drop(conn);
    let newer = fs::read(&file).unwrap();
    assert!(matches!(refused(&newer), BackupError::Store(StoreError::Newer { found: 99, .. })));
    fs::write(house.0.join("copy.db-wal"), "x").unwrap();
    assert!(matches!(restore(&file, &house.path(), &temp, 9), Err(BackupError::Live { .. })));
}

#[test]
fn a_store_that_was_left_open_is_looked_at_and_not_touched() {
    let house = House::new();
    assert!(check_unopened(&house.path(), AT_ONCE).unwrap(), "there is none yet");
    let store = house.open();
    for at in 0..50 {
        begin(&store, at);
    }
    store.checkpoint().unwrap();
    begin(&store, 60);
    // The file and its log, as left by a crash.
    let crashed = House::new();
    for ending in ["", "-wal"] {
        fs::copy(house.0.join(format!("store.db{ending}")), crashed.0.join(format!("store.db{ending}"))).unwrap();
    }
    assert!(!check_unopened(&crashed.path(), 4096).unwrap(), "it is too large");
    assert!(check_unopened(&crashed.path(), AT_ONCE).unwrap());
    assert!(fs::metadata(crashed.0.join("store.db-wal")).unwrap().len() > 0, "the log is still there");

    // A log that was truncated in a power cut ends with its last complete commit.
    let wal = crashed.0.join("store.db-wal");
    let length = fs::metadata(&wal).unwrap().len();
    fs::OpenOptions::new().write(true).open(&wal).unwrap().set_len(length - 1_000).unwrap();
    assert!(check_unopened(&crashed.path(), AT_ONCE).unwrap());
    let runs = |house: &House| house.open().read_blocking(|view| view.list_runs(None, None, 100)).unwrap().len();
    assert_eq!(runs(&crashed), 50);

    let mut bytes = fs::read(crashed.path()).unwrap();
    bytes[4096 * 4..4096 * 8].fill(0xa5);
    fs::write(crashed.path(), &bytes).unwrap();
    let error = check_unopened(&crashed.path(), AT_ONCE).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("kiso restore FILE"), "{error}");
    assert!(fs::read(crashed.path()).unwrap() == bytes, "nothing is written");
}

/// Runs the statements of the tested functions, so that all plans are checked, and those for a start, a listing and a status:
/// their cost must not depend on the amount of data. Except for the one that sorts the waiting sessions.
pub(super) fn sends_all(tx: &Tx<'_>) {
    answered(tx, "plans", 1).unwrap();
    tx.mark(Mark::Backup, 1).unwrap();
    tx.marked(Mark::Backup).unwrap();
    tx.is_at_rest(0).unwrap();
    tx.forget_prompts(DAY).unwrap();
    tx.forget_traces(DAY).unwrap();
    while tx.forget_sessions(DAY).unwrap() > 0 {}
    tx.trim_feed(1_000, 10).unwrap();
    tx.list_sessions(&Placement::ALL, None, 10).unwrap();
    tx.list_runs(None, None, 10).unwrap();
    tx.list_runs(Some(&session("plans")), None, 10).unwrap();
    tx.runs_after(&session("plans"), None, 10).unwrap();
    tx.messages_before(&session("plans"), None, 10).unwrap();
    tx.segment_start(&session("plans")).unwrap();
    tx.last_of_segment(&session("plans"), 10).unwrap();
    tx.queued_jobs(&session("plans"), 10).unwrap();
    tx.count_queued().unwrap();
    tx.feed(None, 0, 10).unwrap();
    tx.feed_start().unwrap();
    tx.feed_end().unwrap();
}

/// Like a takeover in a fleet and `kiso restore`, during a conversation that continues.
#[test]
fn a_store_that_another_process_has_replaced_is_read_and_written_as_it_is_now() {
    let (house, other) = (House::new(), House::new());
    let store = house.open();
    begin(&store, 1_000);
    let run = {
        let other = other.open();
        let run = begin(&other, 2_000);
        other.close();
        run
    };
    assert_eq!(count(&store, "runs"), 1);
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(house.0.join(format!("store.db{ending}")));
    }
    fs::rename(other.path(), house.path()).unwrap();

    assert_eq!(store.read_blocking(|view| view.run(&run)).unwrap().map(|run| run.started_ms), Some(2_000));
    append(&store, &run, 0).unwrap();
    store.close();
    let store = house.open();
    assert_eq!(store.read_blocking(|view| view.events(&run)).unwrap().len(), 1);
    assert_eq!(count(&store, "runs"), 1);
}
