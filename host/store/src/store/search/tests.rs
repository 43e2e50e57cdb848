use super::*;
use crate::store::{MessageRole, SEALED, Store, migrations};
use std::path::Path;

fn name(text: &str) -> SessionName {
    SessionName::parse(text).unwrap()
}

fn open() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.db")).unwrap();
    (dir, store)
}

fn add(store: &Store, session: &str, text: &str) -> i64 {
    let (session, text) = (name(session), text.to_owned());
    store.write_blocking(move |tx| tx.add_message(&session, MessageRole::User, &text, 1, None)).unwrap()
}

/// Returns the joined texts of the results, and the id to continue from. `enough` ends the search.
fn look(
    store: &Store,
    q: &str,
    session: Option<&str>,
    before: Option<i64>,
    enough: usize,
) -> (Vec<String>, Option<i64>) {
    let (search, session, mut found) = (Search::parse(q).unwrap(), session.map(name), Vec::new());
    let next = store.read_blocking(|view| {
        view.messages_with(&search, session.as_ref(), before, |candidate| {
            let text = candidate.message.text.replace(SEALED, "");
            if search.fits(&candidate, &text) {
                found.push(text);
            }
            found.len() < enough
        })
    });
    (found, next.unwrap())
}

fn best(store: &Store, q: &str, sessions: Option<&[SessionName]>) -> Vec<String> {
    let search = Search::parse(q).unwrap();
    let found = store.read_blocking(|view| view.find_messages(&search, sessions, None, 9)).unwrap();
    found.into_iter().map(|(_, message)| message.text).collect()
}

fn count(store: &Store, sql: &str) -> i64 {
    store.read_blocking(|view| Ok(view.conn.query_row(sql, (), |row| row.get(0))?)).unwrap()
}

#[test]
fn messages_are_found_by_all_of_their_words_the_newest_first() {
    let (_dir, store) = open();
    let ids: Vec<i64> =
        ["Rain in Grünwald", "rainy days", "no weather"].iter().map(|text| add(&store, "a", text)).collect();
    add(&store, "b", "rain elsewhere in Grunwald");
    assert_eq!(look(&store, "RAIN", None, None, 9).0, ["rain elsewhere in Grunwald", "rainy days", "Rain in Grünwald"]);
    assert_eq!(look(&store, "grunwald rain", Some("a"), None, 9), (vec!["Rain in Grünwald".to_owned()], None));
    assert_eq!(look(&store, "rain", Some("a"), None, 1), (vec!["rainy days".to_owned()], Some(ids[1])));
    assert_eq!(look(&store, "rain", Some("a"), Some(ids[1]), 1).0, ["Rain in Grünwald"]);
    assert_eq!(look(&store, "rain", Some("nobody"), None, 9), (vec![], None));
    assert_eq!(best(&store, "rain grünwald", Some(&[name("a")])), ["Rain in Grünwald"]);
    assert_eq!(best(&store, "rain grünwald", Some(&[])), [""; 0]);
}

#[test]
fn what_is_sealed_has_no_words_in_the_index_and_is_looked_through() {
    let (_dir, store) = open();
    let id = add(&store, "a", &format!("{SEALED}my password is hunter22"));
    add(&store, "a", "the password is gone");
    assert_eq!(count(&store, "SELECT count(*) FROM message_terms WHERE term = 'hunter22'"), 0);
    assert_eq!(best(&store, "password", None), ["the password is gone"]);
    assert_eq!(look(&store, "password", None, None, 9).0, ["the password is gone", "my password is hunter22"]);
    // A model has searched it for secrets.
    store.write_blocking(move |tx| tx.replace_message(id, "my password is [secret]")).unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM unindexed"), 0);
    assert_eq!(best(&store, "my password", None), ["my password is [secret]"]);
    store.write_blocking(move |tx| tx.replace_message(id, "nothing")).unwrap();
    assert_eq!(best(&store, "secret", None), [""; 0], "the words of before are gone");
}

#[test]
fn tags_are_looked_for_as_such() {
    let (_dir, store) = open();
    for text in ["trip to Oslo #travel", "time travel is a story", "#travel #2024plan"] {
        let id = add(&store, "a", text);
        let tags = Tags::from_text(text).names;
        store.write_blocking(move |tx| tx.set_tags(id, &tags)).unwrap();
    }
    assert_eq!(look(&store, "travel", None, None, 9).0.len(), 3);
    assert_eq!(look(&store, "#Travel", None, None, 9).0, ["#travel #2024plan", "trip to Oslo #travel"]);
    assert_eq!(best(&store, "#travel oslo", None), ["trip to Oslo #travel"]);
}

#[test]
fn what_is_deleted_or_forgotten_leaves_the_index() {
    let (_dir, store) = open();
    for n in 0..40 {
        add(&store, if n % 2 == 0 { "a" } else { "b" }, &format!("meteor number {n}"));
    }
    store.write_blocking(|tx| tx.delete_session(&name("a"))).unwrap();
    assert_eq!(look(&store, "meteor", None, None, 99).0.len(), 20);
    while store.write_blocking(|tx| tx.forget_sessions(1_000)).unwrap() > 0 {}
    assert_eq!(count(&store, "SELECT count(*) FROM message_terms"), 0);
    store
        .write_blocking(|tx| {
            Ok(tx.conn.execute("INSERT INTO message_words (message_words, rank) VALUES ('integrity-check', 1)", ())?)
        })
        .unwrap();
}

/// Creates a store as it was before a migration, with the sessions and messages of another store.
fn older_store(path: &Path, before: &str, source: &Path) {
    let due = migrations::ALL.iter().position(|migration| migration.name == before).unwrap();
    let mut conn = rusqlite::Connection::open(path).unwrap();
    migrations::migrate(&mut conn, &migrations::ALL[..due]).unwrap();
    conn.execute("ATTACH ?1 AS source", [source.to_str().unwrap()]).unwrap();
    for table in ["sessions", "messages"] {
        let sql = format!("SELECT group_concat(name, ', ') FROM pragma_table_info('{table}', 'main')");
        let columns: String = conn.query_row(&sql, (), |row| row.get(0)).unwrap();
        let copy = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}");
        conn.execute(&copy, ()).unwrap();
    }
}

/// For a store from before the index: the start reads nothing, everything can be found meanwhile, and each step is small.
#[test]
fn an_older_store_is_indexed_step_by_step() {
    let (dir, store) = open();
    for n in 0..250 {
        let sealed = if n == 100 { SEALED } else { "" };
        add(&store, "a", &format!("{sealed}old number {n}"));
    }
    store.close();
    let path = dir.path().join("older.db");
    older_store(&path, "messages by their words", &dir.path().join("store.db"));
    let store = Store::open(&path).unwrap();
    add(&store, "b", "new number 7");
    assert_eq!(count(&store, "SELECT count(*) FROM messages WHERE grams IS NOT NULL"), 1);
    let all = |q: &str| look(&store, q, None, None, 999).0;
    let (before, one) = (all("number"), all("number 77"));
    assert_eq!((before.len(), one.len()), (251, 1));
    let step = |limit| store.write_blocking(move |tx| tx.index_messages(limit)).unwrap();
    assert_eq!(step(100), 100);
    assert_eq!(count(&store, "SELECT count(*) FROM messages WHERE grams IS NOT NULL"), 101);
    assert_eq!(all("number"), before, "found while the index grows");
    assert_eq!((step(100), step(100), step(100)), (100, 50, 0));
    assert_eq!(all("number"), before);
    assert_eq!(count(&store, "SELECT count(*) FROM unindexed"), 1, "the sealed one");
    assert_eq!(best(&store, "number 77", None), ["old number 77"]);
}

/// Neither way of searching reads a whole table of messages.
#[test]
fn the_index_is_used() {
    let (_dir, store) = open();
    add(&store, "a", "x");
    let steps = |sql: &str| -> Vec<String> {
        let plan = |view: &View<'_>| {
            let mut plan = view.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let steps = plan.query_map((), |row| row.get("detail"))?;
            Ok(steps.collect::<Result<_, _>>()?)
        };
        store.read_blocking(plan).unwrap()
    };
    let of = "SELECT m.text FROM messages m JOIN sessions s ON s.id = m.session WHERE";
    for rule in ["m.id < 5", "m.session = (SELECT id FROM sessions WHERE name = 'a') AND m.id < 5"] {
        for step in steps(&format!("{of} {rule} ORDER BY m.id DESC LIMIT 3")) {
            assert!(!step.starts_with("SCAN m") && !step.contains("TEMP B-TREE"), "{rule}: {step}");
        }
    }
    let hits = "SELECT w.rowid, m.session FROM message_words w JOIN messages m ON m.id = w.rowid
                WHERE w.message_words MATCH 'x' AND w.rowid < 9 AND w.rowid >= 1 ORDER BY w.rowid DESC LIMIT 5";
    for step in steps(hits) {
        assert!(!step.starts_with("SCAN m") && !step.contains("TEMP B-TREE"), "{step}");
    }
}
