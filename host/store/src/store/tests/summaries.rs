//! Summaries of sessions.

use rusqlite::Connection;

use super::super::migrations;
use super::*;

#[test]
fn a_summary_moves_forward_only() {
    let house = House::new();
    let store = house.open();
    let ids: Vec<i64> = store
        .write_blocking(|tx| {
            (0..10).map(|n| tx.add_message(&session("s"), MessageRole::User, &n.to_string(), n, None)).collect()
        })
        .unwrap();
    let texts = |keep, limit| -> Vec<String> {
        let found = store
            .read_blocking(|view| {
                view.messages_to_summarize(&session("s"), view.first_of_last(&session("s"), keep)?, limit)
            })
            .unwrap();
        found.into_iter().map(|message| message.text).collect()
    };
    assert_eq!(texts(7, 100), ["0", "1", "2"]);
    assert_eq!(texts(20, 100), [""; 0]);
    let of = |text: &str, to| Summary { text: text.into(), to, sources: vec![format!("history-{to}")] };
    let to = ids[4];
    assert!(store.write_blocking(move |tx| tx.set_summary(&session("s"), 0, &of("short", to))).unwrap());
    assert!(!store.write_blocking(move |tx| tx.set_summary(&session("s"), 0, &of("older", to - 2))).unwrap());
    assert_eq!(store.read_blocking(|view| view.summary(&session("s"))).unwrap().unwrap(), of("short", to));
    assert_eq!(texts(2, 2), ["5", "6"]);
    assert_eq!(store.read_blocking(|view| view.count_unsummarized(&session("s"), 100)).unwrap(), 5);
    assert_eq!(store.read_blocking(|view| view.count_unsummarized(&session("s"), 3)).unwrap(), 3);
    assert!(store.write_blocking(|tx| tx.set_title(&session("s"), "Numbers", false)).unwrap());
    assert!(!store.write_blocking(|tx| tx.set_title(&session("s"), "Other", false)).unwrap());
    assert_eq!(store.read_blocking(|view| view.title(&session("s"))).unwrap().as_deref(), Some("Numbers"));
}

/// Titles of two sessions about the same topic are made different; one that a person sets stays unchanged.
#[test]
fn a_title_says_what_differs() {
    let house = House::new();
    let store = house.open();
    let titled = |name: &'static str, text: &'static str, by_person: bool| {
        let write = move |tx: &Tx<'_>| {
            tx.add_message(&session(name), MessageRole::User, text, 1, None)?;
            tx.set_title(&session(name), "Sales by month", by_person)?;
            tx.title(&session(name))
        };
        store.write_blocking(write).unwrap().unwrap()
    };
    assert_eq!(titled("a", "show the sales by month", false), "Sales by month");
    assert_eq!(titled("b", "and now\nfor Oslo\n\nFiles: sales.csv", false), "Sales by month: and now for Oslo");
    assert_eq!(titled("c", "Sales by month", false), "Sales by month", "nothing differs");
    assert_eq!(titled("d", "for Lisbon", true), "Sales by month");
    assert_eq!(titled("e", SEALED_TEXT, false), "Sales by month", "what nobody has looked at is in no title");
}

/// A message that no model has searched for secrets.
const SEALED_TEXT: &str = "sealed:1:AAAA";

/// Rule: "What resets with /new — sliding window and last summary reset".
#[test]
fn a_segment_is_summarized_without_what_was_said_before_it() {
    let house = House::new();
    let store = house.open();
    let s = session("s");
    let say = |text: &'static str, role, run: Option<RunId>| {
        store.write_blocking(move |tx| tx.add_message(&session("s"), role, text, 1, run.as_ref())).unwrap()
    };
    let run = begin(&store, 1);
    let before = say("before", MessageRole::User, None);
    let old = Summary { text: "old".into(), to: before, sources: vec!["history-1".into()] };
    let kept = old.clone();
    assert!(store.write_blocking(move |tx| tx.set_summary(&session("s"), 0, &old)).unwrap());
    assert_eq!(store.read_blocking(|view| view.summary(&s)).unwrap(), Some(kept));
    let segment = store.write_blocking(|tx| tx.break_session(&session("s"), 1)).unwrap();
    // It belongs to the previous segment, like its question.
    say("late answer", MessageRole::Assistant, Some(run));
    let after = say("after", MessageRole::User, None);
    let texts = |keep| -> Vec<String> {
        let found =
            store.read_blocking(|view| view.messages_to_summarize(&s, view.first_of_last(&s, keep)?, 100)).unwrap();
        found.into_iter().map(|message| message.text).collect()
    };
    assert_eq!(store.read_blocking(|view| view.summary(&s)).unwrap(), None);
    assert_eq!(store.read_blocking(|view| view.count_unsummarized(&s, 100)).unwrap(), 1);
    assert_eq!((texts(0), texts(1)), (vec!["after".to_owned()], Vec::new()));
    // A late summary of the old segment does not affect the new one.
    let late = Summary { text: "later".into(), to: before + 1, sources: Vec::new() };
    assert!(store.write_blocking(move |tx| tx.set_summary(&session("s"), 0, &late)).unwrap());
    assert_eq!(store.read_blocking(|view| view.summary(&s)).unwrap(), None);
    let new = Summary { text: "new".into(), to: after, sources: Vec::new() };
    let kept = new.clone();
    assert!(store.write_blocking(move |tx| tx.set_summary(&session("s"), segment, &new)).unwrap());
    assert_eq!(store.read_blocking(|view| view.summary(&s)).unwrap(), Some(kept));
    assert_eq!(store.read_blocking(|view| view.count_unsummarized(&s, 100)).unwrap(), 0);
}

/// A summary from before segments existed may cover messages before a break: it stays with the segment that it may cover.
#[test]
fn a_summary_of_before_goes_with_the_segment_that_it_may_hold() {
    let house = House::new();
    let mut conn = Connection::open(house.path()).unwrap();
    let ours = migrations::ALL.iter().position(|migration| migration.name == "summaries of segments").unwrap();
    migrations::migrate(&mut conn, &migrations::ALL[..ours]).unwrap();
    conn.execute_batch(
        "INSERT INTO sessions (id, name, created_ms, summary, summarized_to) VALUES
             (1, 'whole', 1, 'WHOLE', 9), (2, 'mixed', 1, 'MIXED', 9), (3, 'twice', 1, 'TWICE', 9),
             (4, 'ended', 1, 'ENDED', 9), (5, 'blank', 1, NULL, 0);
         INSERT INTO segments VALUES (2, 5, 1), (3, 3, 1), (3, 5, 1), (4, 9, 1);",
    )
    .unwrap();
    drop(conn);
    let store = house.open();
    let found = |name: &str| store.read_blocking(|view| view.summary(&session(name))).unwrap().map(|found| found.text);
    let found = ["whole", "mixed", "twice", "ended", "blank"].map(found);
    assert_eq!(found, [Some("WHOLE".to_owned()), None, None, None, None]);
    let conn = Connection::open(house.path()).unwrap();
    let mut rows = conn.prepare("SELECT session, segment, text FROM summaries ORDER BY session").unwrap();
    let rows = rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(i64, i64, String)> = rows.map(Result::unwrap).collect();
    let kept = [(1, 0, "WHOLE"), (2, 0, "MIXED"), (3, 3, "TWICE"), (4, 0, "ENDED")];
    assert_eq!(rows, kept.map(|(session, segment, text)| (session, segment, text.to_owned())));
}
