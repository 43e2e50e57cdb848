//! `/health` from outside, for a home that cannot work any more.

use crate::harness::{Home, everywhere};
use crate::served::Served;

/// Asserts that the daemon is not ready, and that the message of the error contains `reason`.
#[track_caller]
fn not_ready(served: &Served, reason: &str) {
    let answer = served.request("GET", "/health", None);
    answer.refuses(503, "not_ready");
    assert!(answer.body.contains(reason), "{reason:?} is not the reason: {answer:?}");
}

/// Without the store no message is accepted, and without the directory of the sessions none is answered.
#[test]
fn health_says_why_the_home_cannot_work_any_more() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo hello"));
    // What another process commits is not in the log of a fleet.
    if !everywhere::is_so() {
        let other = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        other.execute_batch("ALTER TABLE feed RENAME TO other").unwrap();
        not_ready(&served, "the store cannot be read");
        other.execute_batch("ALTER TABLE other RENAME TO feed").unwrap();
    }
    let aside = home.dir.path().join("aside");
    // The store comes last: nobody can put it back after the daemon has opened the other file.
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
