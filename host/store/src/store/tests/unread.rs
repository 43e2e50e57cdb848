//! The read mark of a session.

use super::super::migrations;
use super::super::sessions::LINE;
use super::*;

fn say(store: &Store, name: &str, role: MessageRole, count: usize) -> i64 {
    let name = session(name);
    let write = move |tx: &Tx<'_>| {
        let ids = (0..count).map(|_| tx.add_message(&name, role, "text", 1, None));
        Ok(ids.collect::<Result<Vec<_>, _>>()?.pop().unwrap_or(0))
    };
    store.write_blocking(write).unwrap()
}

fn unread(store: &Store, name: &str) -> u32 {
    store.read_blocking(|view| view.session(&session(name))).unwrap().unwrap().unread
}

#[test]
fn replies_behind_the_mark_are_counted_up_to_99() {
    let house = House::new();
    let store = house.open();
    say(&store, "s", MessageRole::User, 3);
    let first = say(&store, "s", MessageRole::Assistant, 1);
    let last = say(&store, "s", MessageRole::Assistant, 130);
    say(&store, "t", MessageRole::Assistant, 2);
    assert_eq!((unread(&store, "s"), unread(&store, "t")), (99, 2));
    let mark = |name: &'static str, to| store.write_blocking(move |tx| tx.mark_read(&session(name), to)).unwrap();
    mark("s", last - 1);
    mark("s", first);
    assert_eq!(unread(&store, "s"), 1, "the mark never goes back");
    mark("s", i64::MAX);
    say(&store, "s", MessageRole::Assistant, 1);
    assert_eq!(unread(&store, "s"), 1, "nor beyond what there is");
    mark("nobody", 5);
    assert_eq!(unread(&store, "t"), 2);
}

/// However long a session is, a listing reads an index of its replies from the mark on, and no texts.
#[test]
fn a_listing_reads_no_messages() {
    let house = House::new();
    let store = house.open();
    let plan = store.read_blocking(|view| {
        let mut plan =
            view.conn.prepare(&format!("EXPLAIN QUERY PLAN SELECT {LINE} FROM sessions s WHERE name = 's'"))?;
        let lines = plan.query_map((), |row| row.get::<_, String>(3))?;
        Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n"))
    });
    let plan = plan.unwrap();
    assert!(plan.contains("COVERING INDEX replies_of_session (session=? AND id>?)"), "{plan}");
    assert!(plan.contains("runs_unfinished") && !plan.contains("SCAN m"), "{plan}");
}

/// Messages from before read marks existed count as read.
#[test]
fn an_older_store_begins_with_everything_read() {
    let house = House::new();
    let before = migrations::ALL.iter().position(|migration| migration.name == "what was read").unwrap();
    let mut conn = Connection::open(house.path()).unwrap();
    migrations::migrate(&mut conn, &migrations::ALL[..before]).unwrap();
    conn.execute_batch(
        "INSERT INTO sessions (id, name, created_ms, active_ms) VALUES (1, 's', 1, 1), (2, 'empty', 1, 1);
         INSERT INTO messages (session, role, text, at_ms) VALUES (1, 'user', 'a', 1), (1, 'assistant', 'b', 1)",
    )
    .unwrap();
    drop(conn);
    let store = house.open();
    assert_eq!((unread(&store, "s"), unread(&store, "empty")), (0, 0));
    say(&store, "s", MessageRole::Assistant, 1);
    assert_eq!(unread(&store, "s"), 1);
}

/// A reply that nobody has to read does not move the mark if earlier replies are unread.
#[test]
fn a_silent_reply_counts_as_read_where_none_waits() {
    let house = House::new();
    let store = house.open();
    let pass = |name: &'static str, reply| store.write_blocking(move |tx| tx.pass_over(&session(name), reply)).unwrap();
    let silent = say(&store, "quiet", MessageRole::Assistant, 1);
    pass("quiet", silent);
    assert_eq!(unread(&store, "quiet"), 0);
    say(&store, "loud", MessageRole::Assistant, 1);
    let silent = say(&store, "loud", MessageRole::Assistant, 1);
    pass("loud", silent);
    assert_eq!(unread(&store, "loud"), 2, "the first would be read with it");
}
