use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

mod connected_models;
mod facts;
mod ids;
mod life;
mod logins;
mod network_rules;
mod outbox;
mod remembered;
mod spawned;
mod statements;
mod summaries;
mod unread;

use super::*;
use kiso_base::home::{SessionName, SkillName};

/// A directory with a database; it is removed when the test ends.
struct House(PathBuf);

impl House {
    fn new() -> House {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kiso-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        // Left by a killed process with our id.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        House(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.join("store.db")
    }

    fn open(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn publication<'a>(path: &'a str, media_type: &'a str, title: Option<&'a str>) -> Publication<'a> {
    static LABEL: std::sync::LazyLock<kiso_plan::label::Label> = std::sync::LazyLock::new(Default::default);
    Publication { path, media_type, title, label: &LABEL }
}

fn session(name: &str) -> SessionName {
    SessionName::parse(name).unwrap()
}

fn skill(name: &str) -> KvOwner {
    KvOwner::new(&SkillName::parse(name).unwrap(), None)
}

/// A run without events that began at this time.
fn begin(store: &Store, at_ms: i64) -> RunId {
    store.write_blocking(move |tx| tx.create_run(&session("s"), "do it", at_ms)).unwrap()
}

fn append(store: &Store, run: &RunId, seq: u32) -> Result<(), StoreError> {
    let run = run.clone();
    store.write_blocking(move |tx| tx.append_event(&run, seq, 5, "kind", "{}"))
}

#[test]
fn a_run_is_there_after_the_store_was_closed() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1_000);
    append(&store, &run, 0).unwrap();
    append(&store, &run, 1).unwrap();
    let id = run.clone();
    store
        .write_blocking(move |tx| {
            tx.add_message(&session("s"), MessageRole::Assistant, "done", 2_000, Some(&id))?;
            tx.finish_run(&id, RunStatus::Done, 2_000, "{\"ok\":true}")
        })
        .unwrap();
    store.close();
    assert_eq!(store.read_blocking(|view| view.run(&run)), Err(StoreError::Closed));
    assert_eq!(store.write_blocking(|_| Ok(())), Err(StoreError::Closed));
    // The log was moved into the file, and the file is private.
    assert!(!house.0.join("store.db-wal").exists());
    assert_eq!(fs::metadata(house.path()).unwrap().permissions().mode() & 0o777, 0o600);

    let store = house.open();
    let found = store.read_blocking(|view| view.run(&run)).unwrap().unwrap();
    assert_eq!((found.message.as_str(), found.status, found.ended_ms), ("do it", RunStatus::Done, Some(2_000)));
    assert_eq!(found.outcome.as_deref(), Some("{\"ok\":true}"));
    let events = store.read_blocking(|view| view.events(&run)).unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 1]);
    let messages = store.read_blocking(|view| view.last_messages(&session("s"), 10)).unwrap();
    assert_eq!(messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["do it", "done"]);
    assert!(messages.iter().all(|message| message.run.as_ref() == Some(&run)));
    let id = run.clone();
    let again = store.write_blocking(move |tx| tx.finish_run(&id, RunStatus::Failed, 3_000, "{}"));
    assert_eq!(again, Err(StoreError::Ended { run }));
}

#[test]
fn an_event_is_appended_once_and_without_a_gap() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    assert!(matches!(append(&store, &run, 2), Err(StoreError::Gap { last: None, .. })));
    append(&store, &run, 0).unwrap();
    assert!(matches!(append(&store, &run, 0), Err(StoreError::Duplicate { seq: 0, .. })));
    assert!(matches!(append(&store, &run, 2), Err(StoreError::Gap { last: Some(0), .. })));
    append(&store, &run, 1).unwrap();
    assert!(matches!(append(&store, &run, 0), Err(StoreError::Duplicate { seq: 0, .. })));
    let unknown: RunId = "00000000000000".parse().unwrap();
    assert!(matches!(append(&store, &unknown, 0), Err(StoreError::NoRun { .. })));
}

#[test]
fn two_handles_on_one_file_lose_nothing() {
    let house = House::new();
    let stores: Vec<Store> = std::thread::scope(|scope| {
        // Opened at the same time, so that creating the file and its tables is tested as well.
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| house.open())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let run = begin(&stores[0], 1);
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for number in 0..25 {
                    let add =
                        move |tx: &Tx| tx.add_message(&session("s"), MessageRole::User, &number.to_string(), 1, None);
                    // SQLite does not grant the lock in order, so on a busy disk a writer may time out.
                    while let Err(error) = store.write_blocking(add) {
                        assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
                    }
                }
            });
        }
        // They compete for each event, too: exactly one of them appends each.
        let threads: Vec<_> = stores
            .iter()
            .map(|store| scope.spawn(|| (0..25).filter(|seq| append(store, &run, *seq).is_ok()).count()))
            .collect();
        let won: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(won >= 1);
        assert_eq!(stores[1].read_blocking(|view| view.events(&run)).unwrap().len(), won);
    });
    assert_eq!(stores[3].read_blocking(|view| view.last_messages(&session("s"), 1_000)).unwrap().len(), 101);
}

#[test]
fn writes_that_wait_share_a_commit_and_fail_alone() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let (release, held) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let hold = scope.spawn(|| {
            store.write_blocking(move |_| {
                held.recv().unwrap();
                Ok(())
            })
        });
        let add = |text: &'static str| {
            store.write_blocking(move |tx| tx.add_message(&session("s"), MessageRole::User, text, 1, None))
        };
        let good: Vec<_> = ["a", "b"].map(|text| scope.spawn(move || add(text))).into_iter().collect();
        let refused = scope.spawn(|| {
            let run = run.clone();
            store.write_blocking(move |tx| {
                tx.add_message(&session("s"), MessageRole::User, "half done", 1, None)?;
                tx.append_event(&run, 7, 1, "x", "{}")
            })
        });
        let broken = scope.spawn(|| {
            store.write_blocking(|tx| -> Result<(), StoreError> {
                tx.add_message(&session("s"), MessageRole::User, "half done", 1, None)?;
                panic!("a mistake")
            })
        });
        release.send(()).unwrap();
        hold.join().unwrap().unwrap();
        assert!(good.into_iter().all(|thread| thread.join().unwrap().is_ok()));
        assert!(matches!(refused.join().unwrap(), Err(StoreError::Gap { .. })));
        assert_eq!(broken.join().unwrap(), Err(StoreError::Panicked { message: "a mistake".to_owned() }));
    });
    let messages = store.read_blocking(|view| view.last_messages(&session("s"), 10)).unwrap();
    let mut texts: Vec<_> = messages.into_iter().map(|message| message.text).collect();
    texts.sort();
    assert_eq!(texts, ["a", "b", "do it"]);
}

#[test]
fn a_full_disk_fails_the_write_and_the_store_lives_on() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let pages = move |tx: &Tx<'_>, extra: i64| -> Result<(), StoreError> {
        let now: i64 = tx.conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
        tx.conn.pragma_update_and_check(None, "max_page_count", now + extra, |_| Ok(()))?;
        Ok(())
    };
    store.write_blocking(move |tx| pages(tx, 4)).unwrap();
    let id = run.clone();
    let big = format!("\"{}\"", "x".repeat(1 << 20));
    let full = store.write_blocking(move |tx| tx.append_event(&id, 0, 1, "big", &big));
    assert_eq!(full, Err(StoreError::DiskFull { path: house.path() }));
    // A small one still fits, the reader sees nothing of the big one, and with free space everything works again.
    append(&store, &run, 0).unwrap();
    assert_eq!(store.read_blocking(|view| view.events(&run)).unwrap().len(), 1);
    store.write_blocking(move |tx| pages(tx, 4_000)).unwrap();
    let id = run.clone();
    let big = format!("\"{}\"", "x".repeat(1 << 20));
    store.write_blocking(move |tx| tx.append_event(&id, 1, 1, "big", &big)).unwrap();
}

#[test]
fn what_is_no_database_of_ours_is_refused() {
    let house = House::new();
    fs::write(house.path(), "This is a letter and certainly no database. ".repeat(100)).unwrap();
    let error = Store::open(&house.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("store.db is damaged"), "{error}");
    let missing = Store::open(&house.0.join("missing/store.db")).unwrap_err();
    assert!(missing.to_string().contains("missing/store.db cannot be opened"), "{missing}");

    let house = House::new();
    house.open().close();
    let conn = Connection::open(house.path()).unwrap();
    conn.execute("INSERT INTO migrations (version, name, checksum) VALUES (99, 'future', '')", ()).unwrap();
    drop(conn);
    let newer = Store::open(&house.path()).unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 99, .. }), "{newer:?}");
    assert!(newer.to_string().contains("store.db is at version 99"), "{newer}");
}

#[test]
fn a_window_holds_the_last_messages_of_its_session() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            for number in 0..30 {
                tx.add_message(&session("a"), MessageRole::User, &format!("a{number}"), number, None)?;
                tx.add_message(&session("b"), MessageRole::User, &format!("b{number}"), number, None)?;
            }
            Ok(())
        })
        .unwrap();
    let window = store.read_blocking(|view| view.last_messages(&session("a"), 3)).unwrap();
    assert_eq!(window.into_iter().map(|message| message.text).collect::<Vec<_>>(), ["a27", "a28", "a29"]);
    assert_eq!(store.read_blocking(|view| view.last_messages(&session("c"), 3)).unwrap(), []);
    // The window is found by the index without sorting, so its cost does not grow with the session.
    let plan: String = store
        .read_blocking(|view| {
            let sql = "EXPLAIN QUERY PLAN SELECT id FROM messages WHERE session = 1 ORDER BY id DESC LIMIT 3";
            Ok(view.conn.query_row(sql, (), |row| row.get(3))?)
        })
        .unwrap();
    assert!(plan.contains("messages_of_session"), "{plan}");
}

#[test]
fn runs_are_listed_by_page_and_found_by_what_people_type() {
    let house = House::new();
    let store = house.open();
    assert!(matches!(store.read_blocking(|view| view.resolve_run("last")), Err(StoreError::NoRun { .. })));
    // The clock is set back before the last one, which stays the last.
    let runs: Vec<RunId> = [1_000, 2_000_000_000_000, 2_000_000_000_001, 5].map(|at| begin(&store, at)).to_vec();
    let id = |text: &str| store.read_blocking(|view| view.resolve_run(text));
    assert_eq!(id("last").unwrap(), runs[3]);
    assert_eq!(id(runs[1].as_str()).unwrap(), runs[1]);
    assert_eq!(id(&runs[2].as_str().to_uppercase()[..10]).unwrap(), runs[2]);
    assert_eq!(
        id(&runs[1].as_str()[..8]),
        Err(StoreError::Ambiguous { text: runs[1].as_str()[..8].to_owned(), runs: runs[1..3].to_vec(), more: false })
    );
    for wrong in ["", "zzz", "%", "../x", "la st"] {
        assert!(matches!(id(wrong), Err(StoreError::NoRun { .. })), "{wrong}");
    }

    let list = |of: Option<&str>, before: Option<&RunId>| -> Vec<RunId> {
        let lines = store.read_blocking(|view| view.list_runs(of.map(session).as_ref(), before, 3)).unwrap();
        lines.into_iter().map(|line| line.id).collect()
    };
    assert_eq!(list(None, None), [runs[3].clone(), runs[2].clone(), runs[1].clone()]);
    assert_eq!(list(Some("s"), Some(&runs[1])), [runs[0].clone()]);
    assert_eq!(list(Some("other"), None), []);
    for (status, found) in [(RunStatus::Running, 3), (RunStatus::Failed, 0)] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        assert_eq!(store.read_blocking(|view| view.list_runs_of(filter, None, 3)).unwrap().len(), found, "{status:?}");
    }
}

#[test]
fn values_are_kept_apart_by_session_and_skill() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            let (s, a, b) = (session("s"), skill("a"), skill("b"));
            assert_eq!(tx.kv_get(&s, &a, "k")?, None);
            assert!(!tx.kv_delete(&s, &a, "k")?);
            tx.kv_set(&s, &a, "k", b"one")?;
            tx.kv_set(&s, &a, "k", b"two")?;
            tx.kv_set(&s, &b, "k", b"")?;
            tx.kv_set(&session("t"), &a, "other", b"x")?;
            for key in ["é", "ka", "k\0z", "l", "kb"] {
                tx.kv_set(&s, &a, key, b"v")?;
            }
            assert_eq!(tx.kv_get(&s, &a, "k")?.as_deref(), Some(&b"two"[..]));
            assert_eq!(tx.kv_get(&s, &b, "k")?.as_deref(), Some(&b""[..]));
            assert_eq!(tx.kv_keys(&s, &a, "k")?, ["k", "k\0z", "ka", "kb"]);
            assert_eq!(tx.kv_keys(&s, &a, "")?.len(), 6);
            assert!(tx.kv_delete(&s, &a, "k")?);
            assert_eq!(tx.kv_get(&s, &a, "k")?, None);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_limits_of_a_skills_values_hold() {
    let house = House::new();
    let store = house.open();
    let set = |name: &'static str, key: String, bytes: usize| {
        store.write_blocking(move |tx| tx.kv_set(&session("s"), &skill(name), &key, &vec![0; bytes]))
    };
    assert!(matches!(set("a", String::new(), 1), Err(StoreError::BadKey { bytes: 0, .. })));
    assert!(matches!(set("a", "k".repeat(257), 1), Err(StoreError::BadKey { bytes: 257, .. })));
    assert!(matches!(set("a", "k".to_owned(), (64 << 10) + 1), Err(StoreError::Quota { max: MAX_VALUE_BYTES, .. })));
    set("a", "k".repeat(256), 64 << 10).unwrap();

    // 1 MiB: beside the first value, fourteen full ones with their keys fit. A further one does not, a smaller one does, and
    // replacing one needs no room.
    (0..14).for_each(|number| set("a", format!("{number:02}"), 64 << 10).unwrap());
    assert!(matches!(set("a", "14".to_owned(), 64 << 10), Err(StoreError::Quota { max: MAX_SPACE_BYTES, .. })));
    set("a", "14".to_owned(), 60 << 10).unwrap();
    set("a", "00".to_owned(), 64 << 10).unwrap();
    set("b", "00".to_owned(), 64 << 10).unwrap();

    store
        .write_blocking(|tx| (0..1_000).try_for_each(|n| tx.kv_set(&session("s"), &skill("c"), &n.to_string(), b"")))
        .unwrap();
    assert!(matches!(set("c", "more".to_owned(), 0), Err(StoreError::Quota { max: MAX_KEYS, .. })));
    set("c", "7".to_owned(), 10).unwrap();
}

#[test]
fn a_path_keeps_its_link_and_a_session_has_a_thousand() {
    let house = House::new();
    let store = house.open();
    let ids = store
        .write_blocking(|tx| {
            let publish = |title| tx.publish(&session("s"), publication("pub/a.svg", "image/svg+xml", title), 7);
            Ok([publish(None)?, publish(Some("Rain"))?, publish(None)?])
        })
        .unwrap();
    assert!(ids[0] == ids[1] && ids[1] == ids[2]);
    let found = store.read_blocking(|view| view.published(&ids[0])).unwrap().unwrap();
    assert_eq!((found.path.as_str(), found.title.as_deref(), found.at_ms), ("pub/a.svg", Some("Rain"), 7));
    assert_eq!(store.read_blocking(|view| view.published("nonsense")).unwrap(), None);
    let full = store.write_blocking(|tx| {
        (1..1_000).try_for_each(|n| {
            tx.publish(&session("s"), publication(&n.to_string(), "text/plain", None), 8).map(drop)
        })?;
        tx.publish(&session("t"), publication("pub/a.svg", "image/svg+xml", None), 8)?;
        assert!(matches!(
            tx.publish(&session("s"), publication("one more", "text/plain", None), 8),
            Err(StoreError::Quota { max: MAX_PUBLISHED, .. })
        ));
        tx.publish(&session("s"), publication("999", "text/html", None), 9)
    });
    full.unwrap();
    assert_eq!(store.read_blocking(|view| view.published_of(&session("s"))).unwrap().len(), 1_000);
}

#[tokio::test]
async fn many_writers_wait_without_blocking_each_other() {
    let house = House::new();
    let store = house.open();
    let run = store.write(|tx| tx.create_run(&session("s"), "go", 1)).await.unwrap();
    // More than the queue holds, all waiting at once.
    let writes: Vec<_> = (0..2 * QUEUE)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                store.write(move |tx| tx.add_message(&session("s"), MessageRole::User, &n.to_string(), 1, None)).await
            })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let (found, messages) =
        store.read(move |view| Ok((view.run(&run)?, view.last_messages(&session("s"), 10_000)?))).await.unwrap();
    assert_eq!((found.unwrap().status, messages.len()), (RunStatus::Running, 2 * QUEUE + 1));
}
