//! The store from outside: backups, restores, exports, damage, and deletion of old data.

use crate::harness::{Home, everywhere, root};
use crate::served::Served;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// A guard against tests that never end; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

fn kept(home: &Home, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    entries.filter(|path| name(path).starts_with(beginning)).collect()
}

/// The texts of a session in an export.
fn texts(home: &Home, session: &str) -> Vec<String> {
    let lines = home.kiso(&["session", "export", session]).ok().json_lines();
    lines.iter().filter(|l| l["type"] == "message").map(|l| l["text"].as_str().unwrap().to_owned()).collect()
}

/// Temporary files of killed `kiso backup` and `kiso restore` are removed by the next such command, or by a start of the daemon.
#[test]
fn what_killed_backups_and_restores_left_is_removed() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait().unwrap();
    let part = home.file(&format!("copy.db.{pid}.part"), "half of a copy");
    let other = home.file(&format!("other.db.{pid}.part"), "of another file");
    let mine = home.file("copy.db.notes.part", "a person's");
    home.kiso(&["backup", "copy.db"]).ok();
    assert!(!part.exists() && other.exists() && mine.exists());
    let half = home.path().join(format!(".new-{pid}-0"));
    std::fs::write(&half, "half of a store").unwrap();
    home.kiso(&["restore", "copy.db"]).ok();
    assert!(!half.exists(), "restore");
    std::fs::write(&half, "half of a store").unwrap();
    if !everywhere::is_so() {
        let served = Served::start(&home);
        assert!(!half.exists(), "the daemon's start");
        assert_eq!(served.terminate(), 0);
    }
}

#[test]
fn a_backup_is_made_while_the_daemon_works_and_put_back() {
    let home = home(QUICK);
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo one"));
    let made = home.kiso(&["--json", "backup", "copy.db"]).json();
    let file = home.dir.path().join("copy.db");
    assert_eq!((&made["type"], made["file"].as_str()), (&json!("backup"), file.to_str()));
    assert_eq!(made["bytes"].as_u64(), Some(std::fs::metadata(&file).unwrap().len()));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    home.kiso(&["backup", "copy.db"]).exit(2).says(&["copy.db already exists", "--force"]);
    home.kiso(&["doctor", "--offline"]).ok().prints(&["is whole: ", "the last backup was today"]);
    served.reply(served.send("main", "$ echo two"));

    home.kiso(&["restore", "copy.db"]).exit(1).says(&["another kiso serves this home"]);
    assert_eq!(served.terminate(), 0);
    let restored = home.kiso(&["--json", "restore", "copy.db"]).json();
    assert_eq!((&restored["opens"], &restored["version"]), (&json!(true), &made["version"]));
    assert_eq!(texts(&home, "main")[0], "$ echo one");
    assert_eq!(texts(&home, "main").len(), 2);
    assert_eq!(kept(&home, "store.db.before-restore-").len(), 1, "and no log beside it");

    // The kept store can be restored, too.
    std::fs::rename(restored["kept"].as_str().unwrap(), home.dir.path().join("kept.db")).unwrap();
    home.kiso(&["restore", "kept.db"]).ok().prints(&["is restored from"]).says(&["the previous store is in"]);
    assert_eq!(texts(&home, "main").len(), 4);
    let served = Served::start(&home);
    assert!(served.reply(served.send("main", "$ echo three")).contains("three"));
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_store_that_somebody_works_in_is_not_replaced() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    home.kiso(&["backup", "copy.db"]).ok();
    // A running run with an open store.
    let mut child = home
        .command(&["run", "$ echo ready > ready; sleep 1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !home.work("default").join("ready").exists() {
        assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "the run does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    home.kiso(&["restore", "copy.db"]).exit(1).says(&["is in use by another kiso"]);
    assert_eq!(kept(&home, ".new-").len() + kept(&home, "store.db.before").len(), 0, "nothing is left of the attempt");
    child.kill().unwrap();
    child.wait().unwrap();
    home.kiso(&["restore", "copy.db"]).ok();
}

#[test]
fn sealed_texts_open_with_the_key_and_without_it_it_is_said() {
    // A waiting message that no model has processed.
    let old = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 60000\n");
    let served = Served::start(&old);
    served.send("default", "my pin is 4711");
    served.kill();
    let conn = rusqlite::Connection::open(old.path().join("store.db")).unwrap();
    let sealed: i64 =
        conn.query_row("SELECT count(*) FROM messages WHERE text LIKE 'sealed:%'", (), |row| row.get(0)).unwrap();
    drop(conn);
    assert!(sealed > 0, "the test needs a sealed message");
    let file = old.dir.path().join("copy.db");
    let ran = old.kiso(&["backup", "--with-key", "copy.db"]);
    ran.ok().says(&["not included: config.toml", "keep it separate"]);
    let key = old.dir.path().join("copy.db.key");
    assert_eq!(std::fs::read(&key).unwrap(), std::fs::read(old.path().join("key")).unwrap());
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);

    let new = home(QUICK);
    let file = file.to_str().unwrap();
    new.kiso(&["restore", file]).ok().says(&["does not open what is sealed", "--with-key"]);
    assert!(texts(&new, "default")[0].contains("cannot be opened"), "{:?}", texts(&new, "default"));
    new.kiso(&["restore", file, "--with-key"]).ok().says(&["the previous key is in"]);
    assert_eq!(kept(&new, "key.before-restore-").len(), 1);
    assert!(texts(&new, "default")[0].contains("4711"));
    assert_eq!(
        new.kiso(&["--json", "restore", file, "--with-key"]).json()["key_kept"],
        Value::Null,
        "it is the right one"
    );
    std::fs::write(&key, "short").unwrap();
    new.kiso(&["restore", file, "--with-key"]).exit(2).says(&["copy.db.key is not a kiso key: it has 5 bytes"]);
    std::fs::remove_file(&key).unwrap();
    new.kiso(&["restore", file, "--with-key"]).exit(2).says(&["copy.db.key cannot be read"]);
}

#[test]
fn what_is_no_backup_is_refused() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    home.kiso(&["restore", "none.db"]).exit(1).says(&["none.db", "No such file"]);
    home.kiso(&["restore", "."]).exit(2).says(&["is not a backup of kiso"]);
    home.file("letter.db", "Dear reader, this is a letter. ".repeat(50));
    home.kiso(&["restore", "letter.db"]).exit(2).says(&["letter.db", "damaged"]);
    let other = rusqlite::Connection::open(home.dir.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    drop(other);
    home.kiso(&["restore", "other.db"]).exit(2).says(&["other.db is not a backup of kiso"]);
    home.kiso(&["backup", "copy.db"]).ok();
    let newer = rusqlite::Connection::open(home.dir.path().join("copy.db")).unwrap();
    newer.execute("INSERT INTO migrations (version, name, checksum) VALUES (999, 'future', '')", ()).unwrap();
    drop(newer);
    home.kiso(&["restore", "copy.db"]).exit(3).says(&["copy.db is at version 999", "newer kiso"]);
    let store = home.path().join("store.db");
    home.kiso(&["backup", "--force", store.to_str().unwrap()]).exit(2).says(&["is the store itself"]);
    home.kiso(&["restore", store.to_str().unwrap()]).exit(2).says(&["is the store itself"]);
    home.kiso(&["backup", "/nonexistent/copy.db"]).exit(1).says(&["/nonexistent/copy.db"]);
    assert_eq!(texts(&home, "default").len(), 2, "nothing changed");
    assert_eq!(kept(&home, "store.db.before").len() + kept(&home, ".new-").len(), 0);
}

/// docs/json.md describes every line of an export with all its members, and a complete export has an end line.
#[test]
fn an_export_has_everything_and_an_end() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    home.kiso(&["run", "$ echo two"]).ok();
    let lines = home.kiso(&["session", "export", "default"]).ok().json_lines();
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds.last()), ("session", Some(&"end")));
    let count = |kind: &str| kinds.iter().filter(|k| **k == kind).count() as u64;
    assert_eq!([count("message"), count("run"), count("task")], [4, 2, 4], "{kinds:?}");
    assert_eq!(*lines.last().unwrap(), json!({ "type": "end", "messages": 4, "runs": 2 }));
    let run = lines.iter().find(|line| line["type"] == "run").unwrap();
    assert_eq!(
        (&run["status"], &run["outcome"]["ending"], &run["message"]),
        (&json!("done"), &json!("done"), &json!("$ echo one"))
    );
    let docs = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    let section = docs.split("## `kiso session export`").nth(1).unwrap().split("\n## ").next().unwrap();
    for line in &lines {
        let kind = line["type"].as_str().unwrap();
        let row = section.lines().find(|row| row.starts_with(&format!("| `{kind}`"))).unwrap();
        for member in line.as_object().unwrap().keys().filter(|key| *key != "type") {
            assert!(row.contains(&format!("`{member}`")), "{kind}.{member} is not documented");
        }
    }

    home.kiso(&["session", "export", "default", "--output", "out.jsonl"]).ok().prints(&["out.jsonl"]);
    let path = home.dir.path().join("out.jsonl");
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), lines.len());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    home.kiso(&["session", "export", "default", "-o", "out.jsonl"]).exit(2).says(&["out.jsonl already exists"]);
    // Also if the existing file was readable by everybody, or cannot be replaced.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let exported = home.kiso(&["--json", "session", "export", "default", "-o", "out.jsonl", "--force"]).json();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    home.kiso(&["session", "export", "default", "-o", ".", "--force"]).exit(2).says(&["is not a file"]);
    home.kiso(&["session", "export", "default", "-o", "no/such/place.jsonl"])
        .exit(1)
        .says(&["no/such/place.jsonl", "cannot be written"]);
    let left = std::fs::read_dir(home.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().ends_with(".part")), "nothing is left over");
    assert_eq!(exported["session"], "default");
    home.kiso(&["session", "export", "nobody"]).exit(2).says(&["there is no session nobody"]);
    home.kiso(&["session", "export", "../x"]).exit(2).says(&["session"]);
}

/// Kills the daemon during its work.
fn crashed(home: &Home) {
    let served = Served::start(home);
    for n in 0..20 {
        served.send(&format!("s{n}"), "$ echo hello");
    }
    served.kill();
}

/// The daemon refuses the store, and so does a chat that would start one.
fn refused(home: &Home) {
    for args in [["serve", "--port=0"], ["chat", "--plain"]] {
        home.kiso(&args).exit(3).says(&["store.db is damaged", "kiso restore FILE"]);
    }
}

#[test]
fn a_damaged_store_is_refused_and_left_as_it_is_and_a_backup_helps() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    home.kiso(&["backup", "copy.db"]).ok();
    crashed(&home);
    // Simulates a lost page of the disk: data that is not in the log is lost.
    let store = home.path().join("store.db");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&store, &bytes).unwrap();
    if everywhere::is_so() {
        // The fleet has all of it.
        let served = Served::start(&home);
        assert_eq!(served.get("/sessions/default/messages")["items"].as_array().unwrap().len(), 2);
        return;
    }
    let wal = std::fs::read(home.path().join("store.db-wal")).unwrap();
    // Repeated attempts have the same result.
    for _ in 0..2 {
        refused(&home);
        assert!(std::fs::read(&store).unwrap() == bytes, "the file is as it was");
        assert!(std::fs::read(home.path().join("store.db-wal")).unwrap() == wal, "the log is as it was");
    }
    home.kiso(&["restore", "copy.db"]).ok();
    let kept = kept(&home, "store.db.before-restore-");
    assert_eq!(kept.len(), 2, "the file and its log: {kept:?}");
    assert_eq!(texts(&home, "default").len(), 2);
    let served = Served::start(&home);
    assert!(served.reply(served.send("main", "$ echo hello")).contains("hello"));
    assert_eq!(served.terminate(), 0);
}

/// A power failure may cut off the end of the log: the store returns to the last complete commit; in a fleet, to the last one.
#[test]
fn a_log_that_was_cut_off_ends_with_its_last_whole_commit() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 60000\n");
    let served = Served::start(&home);
    let messages: Vec<i64> = (0..20).map(|n| served.send("main", &format!("$ echo {n}"))).collect();
    served.kill();
    let wal = home.path().join("store.db-wal");
    let length = std::fs::metadata(&wal).unwrap().len();
    for cut in [1, 5_000, length / 2] {
        std::fs::OpenOptions::new().write(true).open(&wal).unwrap().set_len(length - cut).unwrap();
        let served = Served::start(&home);
        let left = served.get("/sessions/main/messages")["items"].as_array().unwrap().len();
        // The fleet has everything that was accepted.
        assert_eq!(left == messages.len(), everywhere::is_so(), "{left} are left");
        let ids: Vec<_> = (0..left).map(|n| messages[n]).collect();
        assert!(ids.iter().all(|id| served.get(&format!("/messages/{id}"))["status"] == "queued"), "no gap");
        served.kill();
        // The next start in the loop continues from this state.
        if std::fs::metadata(&wal).unwrap().len() < length - cut {
            break;
        }
    }
    home.kiso(&["doctor", "--offline"]).ok();
}

#[test]
fn a_store_of_a_newer_kiso_is_refused() {
    let home = home(QUICK);
    home.kiso(&["run", "$ echo one"]).ok();
    let conn = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    conn.execute("INSERT INTO migrations (version, name, checksum) VALUES (999, 'future', '')", ()).unwrap();
    drop(conn);
    home.kiso(&["serve", "--port", "0"]).exit(3).says(&["is at version 999", "used by a newer kiso"]);
}

#[test]
fn the_daemon_forgets_what_is_old() {
    let home = home("model = \"reflex\"\n[retention]\nprompts_days = 10\ntraces_days = 15\nsessions_days = 20\n");
    for session in ["old", "middle", "young"] {
        home.kiso(&["run", "--session", session, "$ echo rain"]).ok();
    }
    let conn = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    let age = |session: &str, days: i64| {
        let ms = days * 24 * 60 * 60 * 1_000;
        let of = "(SELECT id FROM sessions WHERE name = ?1)";
        conn.execute(&format!("UPDATE runs SET ended_ms = ended_ms - ?2 WHERE session = {of}"), (session, ms)).unwrap();
        conn.execute("UPDATE sessions SET active_ms = active_ms - ?2 WHERE name = ?1", (session, ms)).unwrap();
    };
    age("old", 21);
    age("middle", 16);
    age("young", 11);
    drop(conn);
    let count = |sql: &str| -> i64 {
        let conn = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        conn.query_row(sql, (), |row| row.get(0)).unwrap()
    };
    assert!(count("SELECT count(*) FROM prompts") > 0);
    let served = Served::start(&home);
    let began = Instant::now();
    while count("SELECT count(*) FROM prompts") > 0 || served.get("/sessions")["items"].as_array().unwrap().len() > 2 {
        assert!(began.elapsed() < PATIENCE, "nothing is forgotten");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sessions = served.get("/sessions");
    assert_eq!(sessions["items"][0]["name"], "young", "{sessions}");
    assert_eq!(served.get("/sessions/young/messages")["items"].as_array().unwrap().len(), 2);
    assert_eq!(served.get("/sessions/old/messages")["items"].as_array().unwrap().len(), 0);
    let run =
        |session: &str| served.get(&format!("/runs?session={session}"))["items"][0]["id"].as_str().unwrap().to_owned();
    let steps = served.get(&format!("/runs/{}/trace", run("young")));
    assert!(!steps["items"].as_array().unwrap().is_empty(), "its steps are kept");
    home.kiso(&["trace", &run("middle")]).ok().prints(&["$ echo rain", "its steps are no longer kept"]);
    assert_eq!(served.terminate(), 0);
    assert_eq!(count("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    home.kiso(&["doctor", "--offline"]).ok();
}
