//! `kiso session import` accepts exports of `kiso session export`: completely or not at all, whatever the file contains.

use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};

/// A home with a conversation of two segments, and its export.
fn talked() -> (Home, Vec<String>) {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    for text in ["$ echo first #one", "$ echo second"] {
        home.kiso(&["run", "--session", "trip", text]).ok();
    }
    home.kiso(&["session", "new", "trip"]).ok();
    home.kiso(&["run", "--session", "trip", "$ echo third"]).ok();
    home.kiso(&["session", "rename", "trip", "Of echoes"]).ok();
    home.kiso(&["session", "pin", "trip"]).ok();
    let served = Served::start(&home);
    served.command("trip", "/model planner reflex");
    served.terminate();
    let lines = export(&home, "trip");
    (home, lines)
}

#[track_caller]
fn export(home: &Home, session: &str) -> Vec<String> {
    home.kiso(&["session", "export", session]).ok().stdout.lines().map(str::to_owned).collect()
}

/// The lines without values that depend on their store.
fn plain(lines: &[String]) -> Vec<Value> {
    let (mut numbers, mut runs) = (Vec::new(), Vec::new());
    let plain = |line: &String| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        // Numbers and ids, replaced by the order of their first occurrence.
        for (key, known) in [("id", &mut numbers), ("run", &mut runs)] {
            if line["type"] == "task" && key == "id" {
                continue;
            }
            if let Some(value) = line.get(key).cloned().filter(|value| !value.is_null()) {
                let at = known.iter().position(|one| *one == value).unwrap_or_else(|| {
                    known.push(value);
                    known.len() - 1
                });
                line[key] = at.into();
            }
        }
        for segment in line["segments"].as_array_mut().into_iter().flatten() {
            segment["after"] = Value::Null;
        }
        line["session"] = Value::Null;
        line
    };
    lines.iter().map(plain).collect()
}

/// Asserts that an import fails and changes nothing.
#[track_caller]
fn refused(home: &Home, lines: &[String], code: i32, said: &[&str]) {
    let file = home.file("bad.jsonl", lines.join("\n"));
    let sessions = home.kiso(&["session", "list"]).ok().stdout.clone();
    home.kiso(&["session", "import", file.to_str().unwrap()]).exit(code).says(said).says(&["bad.jsonl", "nothing was"]);
    assert_eq!(home.kiso(&["session", "list"]).ok().stdout, sessions);
}

/// Rule: "session log is append-only and never erased"; an exported session can be restored.
#[test]
fn what_was_exported_comes_back_as_it_was() {
    let (home, lines) = talked();
    let file = home.file("trip.jsonl", lines.join("\n"));
    let file = file.to_str().unwrap();
    home.kiso(&["session", "import", file]).exit(2).says(&[
        "a session named trip already exists",
        "--as",
        "nothing was imported",
    ]);
    // Beside the original: the ids of its runs are taken.
    home.kiso(&["session", "import", file, "--as", "copy"]).ok().prints(&["session copy: 6 messages, 3 runs"]);
    assert_eq!(plain(&export(&home, "copy")), plain(&lines));
    assert_ne!(export(&home, "copy")[7], lines[7], "the runs have ids of their own");
    // In another home, and in this one after the session was deleted.
    let other = Home::new();
    other.config("model = \"reflex\"\n");
    other.kiso(&["--json", "session", "import", file]).ok().prints(&["\"type\":\"imported\"", "\"messages\":6"]);
    assert_eq!(plain(&export(&other, "trip")), plain(&lines));
    home.kiso(&["session", "delete", "trip", "--yes"]).ok();
    home.kiso(&["session", "import", file]).ok();
    assert_eq!(export(&home, "trip").iter().filter(|line| line.contains("\"type\":\"run\"")).count(), 3);
    // Its placement and models are restored.
    let head: Value = serde_json::from_str(&export(&other, "trip")[0]).unwrap();
    assert_eq!((&head["placement"], &head["role_models"]), (&json!("pinned"), &json!({ "planner": "reflex" })));
    // It works like any other: it continues its segment, and is found by words and tags.
    other.kiso(&["run", "--session", "trip", "$ echo fourth"]).ok().prints(&["fourth"]);
    let store = rusqlite::Connection::open(other.path().join("store.db")).unwrap();
    let texts = |sql: &str| -> i64 { store.query_row(sql, (), |row| row.get(0)).unwrap() };
    assert_eq!(texts("SELECT count(*) FROM message_words WHERE message_words MATCH 'second'"), 2);
    assert_eq!(texts("SELECT count(*) FROM segments"), 1);
    assert_eq!(texts("SELECT count(*) FROM messages WHERE tags = '[\"one\"]'"), 1);
}

/// A subagent's report is a message of this session and of a separate run, whose lines are not in the file.
#[test]
fn a_report_of_another_session_comes_back_too() {
    let (home, mut lines) = talked();
    home.kiso(&["session", "delete", "trip", "--yes"]).ok();
    let reply = lines.iter().position(|line| line.contains("\"assistant\"")).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&lines[reply]).unwrap();
    report["run"] = "01aaaaaaaaaaaa".into();
    lines[reply] = report.to_string();
    let file = home.file("trip.jsonl", lines.join("\n"));
    home.kiso(&["session", "import", file.to_str().unwrap()]).ok().prints(&["session trip: 6 messages, 3 runs"]);
    assert_eq!(export(&home, "trip").len(), lines.len());
}

#[test]
fn nothing_is_taken_of_a_file_that_is_wrong() {
    let (home, lines) = talked();
    home.kiso(&["session", "delete", "trip", "--yes"]).ok();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line.to_owned();
        lines
    };
    let last = lines.len() - 1;
    refused(&home, &lines[..last], 1, &["it is not whole", "\"end\""]);
    refused(&home, &lines[1..], 1, &["bad.jsonl:1:", "the first line"]);
    refused(&home, &with(3, "{not json"), 1, &["bad.jsonl:4:"]);
    refused(&home, &with(1, "{\"type\": \"massage\"}"), 1, &["bad.jsonl:2:", "massage"]);
    refused(&home, &with(last, "{\"type\": \"end\", \"messages\": 5, \"runs\": 3}"), 1, &["as many messages"]);
    refused(&home, &with(2, &lines[1]), 1, &["bad.jsonl:3:", "does not come after"]);
    refused(&home, &with(1, &lines[1].replace("\"user\"", "\"system\"")), 1, &["bad.jsonl:2:", "\"system\""]);
    refused(&home, &with(0, &lines[0].replace("\"trip\"", "\"a/b\"")), 1, &["bad.jsonl:1:"]);
    refused(&home, &with(0, &lines[0].replace("pinned", "nailed")), 1, &["bad.jsonl:1:", "nailed", "archived"]);
    refused(
        &home,
        &with(0, &lines[0].replace("\"planner\"", "\"plumber\"")),
        1,
        &["bad.jsonl:1:", "plumber", "planner"],
    );
    let run = lines.iter().position(|line| line.contains("\"type\":\"run\"")).unwrap();
    let mut gone = lines.clone();
    gone.remove(run);
    refused(&home, &gone, 1, &[&format!("bad.jsonl:{}:", run + 1), "there is no line of run"]);
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let mut outcome: Value = serde_json::from_str(&lines[run]).unwrap();
    outcome["outcome"] = serde_json::from_str(&deep).unwrap();
    refused(&home, &with(run, &outcome.to_string()), 1, &[&format!("bad.jsonl:{}:", run + 1), "deeper than"]);
    refused(&home, &with(1, &lines[1].replace("first", &"x".repeat(9 << 20))), 1, &["bad.jsonl:2:", "longer than"]);
    home.kiso(&["session", "import", "none.jsonl"]).exit(1).says(&["none.jsonl cannot be read"]);
    home.kiso(&["session", "import", "."]).exit(1).says(&["it is not a file"]);
    // A refused import leaves nothing that blocks a later one.
    let file = home.file("trip.jsonl", lines.join("\n\n"));
    home.kiso(&["session", "import", file.to_str().unwrap()]).ok();
}

#[test]
fn a_credential_of_a_file_is_taken_out_and_what_was_sealed_is_sealed_again() {
    let (home, mut lines) = talked();
    let key = "sk-proj-Plover31Plover31Plover31Plover31Plover31";
    lines[1] = lines[1].replace("first", &format!("my api key is {key} first"));
    lines[2] = lines[2].replace("\"text\"", "\"sealed\":true,\"text\"").replace("first", "an odd word");
    let file = home.file("trip.jsonl", lines.join("\n"));
    home.kiso(&["session", "import", file.to_str().unwrap(), "--as", "copy"]).ok();
    std::fs::remove_file(file).unwrap();
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    store.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let bytes = std::fs::read(home.path().join("store.db")).unwrap();
    let stands = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!stands(key) && !stands("an odd word"));
    let again = export(&home, "copy");
    assert!(again[2].contains("\"sealed\":true") && again[2].contains("an odd word"), "{}", again[2]);
    assert!(!again[1].contains(key), "{}", again[1]);
}
