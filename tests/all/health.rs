//! `/health` from outside, for a home that no longer works.

use crate::harness::{Home, everywhere, wait_until};
use crate::served::Served;

/// Asserts that the daemon is not ready, and that the message of the error contains `reason`.
#[track_caller]
fn not_ready(served: &Served, reason: &str) {
    let answer = served.request("GET", "/health", None);
    answer.refuses(503, "not_ready");
    assert!(answer.body.contains(reason), "{reason:?} is not the reason: {answer:?}");
}

/// Page size of a new store in bytes.
const PAGE: u64 = 1_024;

/// Overwrites all pages but the first, with or without a running daemon.
fn damage(home: &Home) {
    use std::os::unix::fs::FileExt;
    let path = home.path().join("store.db");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let bytes = file.metadata().unwrap().len();
    for at in (PAGE..bytes).step_by(PAGE as usize) {
        file.write_all_at(&[0xA5; PAGE as usize], at).unwrap();
    }
}

#[test]
fn a_store_with_damaged_pages_is_not_served() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo hello"));
    assert_eq!(served.terminate(), 0);
    // One damaged page in the middle is enough, also after a clean shutdown.
    let path = home.path().join("store.db");
    let whole = std::fs::read(&path).unwrap();
    let page: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'", (), |row| row.get(0))
        .unwrap();
    let mut bytes = whole.clone();
    let at = usize::try_from(page - 1).unwrap() * PAGE as usize;
    bytes[at..at + PAGE as usize].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    if !everywhere::is_so() {
        home.kiso(&["serve", "--port", "0"]).exit(3).says(&["store.db is damaged", "kiso restore"]);
    }
    std::fs::write(&path, whole).unwrap();
    let served = Served::start(&home);
    assert_eq!(served.get("/health")["status"], "ok");
    // The damage happens while the daemon runs.
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    damage(&home);
    wait_until("the damage to be met", || {
        served.request("GET", "/sessions/main/messages", None);
        served.request("GET", "/runs", None);
        served.request("GET", "/health", None).status == 503
    });
    not_ready(&served, "store.db is damaged (");
}

#[test]
fn a_missing_store_beside_sessions_is_not_made_again() {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    home.kiso(&["run", "$ echo kept > notes.txt"]).ok();
    let path = home.path().join("store.db");
    let aside = home.dir.path().join("aside");
    std::fs::rename(&path, &aside).unwrap();
    for args in [["run", "$ echo more"].as_slice(), &["serve", "--port", "0"], &["session", "list"]] {
        home.kiso(args).exit(3).says(&["store.db is missing or empty", "1 session", "kiso restore FILE"]);
        assert!(!path.exists(), "nothing is made");
    }
    std::fs::write(&path, "").unwrap();
    home.kiso(&["run", "$ echo more"]).exit(3).says(&["is missing or empty"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    home.kiso(&["run", "$ cat notes.txt"]).ok().prints(&["kept"]);
    // A person has to remove the store to start with a new one.
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(home.path().join("sessions"), home.dir.path().join("sessions")).unwrap();
    home.kiso(&["run", "$ echo again"]).ok();
}

/// Without the store no message is accepted, and without the sessions directory none is answered.
#[test]
fn health_says_why_the_home_cannot_work_any_more() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo hello"));
    // Changes that another process commits are not in a fleet's log.
    if !everywhere::is_so() {
        let other = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        other.execute_batch("ALTER TABLE feed RENAME TO other").unwrap();
        not_ready(&served, "the store cannot be read");
        other.execute_batch("ALTER TABLE other RENAME TO feed").unwrap();
    }
    let aside = home.dir.path().join("aside");
    // The store comes last: it cannot be put back after the daemon has opened the other file.
    for name in ["sessions", "store.db"] {
        let path = home.path().join(name);
        assert_eq!(served.get("/health")["status"], "ok");
        std::fs::rename(&path, &aside).unwrap();
        not_ready(&served, &format!("{name} was removed"));
        std::fs::rename(&aside, &path).unwrap();
        assert_eq!(served.get("/health")["status"], "ok", "{name} is there again");
        std::fs::rename(&path, &aside).unwrap();
        std::fs::write(&path, "something else").unwrap();
        not_ready(&served, &format!("{name} was replaced"));
        if name == "sessions" {
            std::fs::remove_file(&path).unwrap();
            std::fs::rename(&aside, &path).unwrap();
        }
    }
    assert_eq!(served.get("/health/live")["status"], "alive", "the process answers");
}
