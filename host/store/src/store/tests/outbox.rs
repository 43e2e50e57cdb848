//! Notifications of webhooks: each is queued once, limited in number, and never found by reading whole tables.

use super::statements::prepared;
use super::*;
use kiso_plan::label::Label;

fn subscription(webhook: &str, sessions: &[&str], events: &[WebhookEvent]) -> Subscription {
    let sessions = sessions.iter().map(|pattern| (*pattern).to_owned()).collect();
    Subscription { channel: webhook.to_owned(), sessions, events: events.to_vec() }
}

fn set(store: &Store, all: &[Subscription]) -> Vec<(String, u64)> {
    let all = all.to_vec();
    store.write_blocking(move |tx| tx.set_webhooks(&all, 50)).unwrap()
}

fn reply(store: &Store, name: &str, at_ms: i64) -> i64 {
    let name = session(name);
    store.write_blocking(move |tx| tx.add_message(&name, MessageRole::Assistant, "done", at_ms, None)).unwrap()
}

fn pending(store: &Store, webhook: &str) -> Vec<Delivery> {
    store.read_blocking(|view| view.pending_deliveries(webhook, 100)).unwrap()
}

fn failed(store: &Store) -> Vec<Delivery> {
    store.read_blocking(|view| view.failed_deliveries(100)).unwrap()
}

#[test]
fn each_reply_is_posted_once_to_everybody_who_asked() {
    let house = House::new();
    let store = house.open();
    reply(&store, "a", 1);
    assert_eq!(
        set(
            &store,
            &[
                subscription("all", &[], &[WebhookEvent::Reply]),
                subscription("some", &["a*", "?b"], &[WebhookEvent::Reply]),
                subscription("runs", &[], &[WebhookEvent::Run]),
            ]
        ),
        []
    );
    let run = begin(&store, 2);
    let messages = ["a", "abc", "b", "bb", "s"].map(|name| reply(&store, name, 3));
    store
        .write_blocking({
            let run = run.clone();
            move |tx| {
                tx.finish_run(&run, RunStatus::Failed, 4, "{}")?;
                // There are no notifications of a user's message, or in a subagent's session.
                tx.add_message(&session("a"), MessageRole::User, "hello", 5, None)?;
                tx.ensure_session(&session("child"), 6)?;
                tx.conn.execute("UPDATE sessions SET parent = 1 WHERE name = 'child'", ())?;
                tx.add_message(&session("child"), MessageRole::Assistant, "inner", 6, None)
            }
        })
        .unwrap();
    let told = |webhook| pending(&store, webhook).iter().map(|delivery| delivery.message).collect::<Vec<_>>();
    assert_eq!(told("all"), messages.map(Some));
    assert_eq!(told("some"), [messages[0], messages[1], messages[3]].map(Some));
    let runs = pending(&store, "runs");
    assert_eq!((runs.len(), &runs[0].run, runs[0].event, runs[0].at_ms), (1, &Some(run), WebhookEvent::Run, 4));
    let all = [pending(&store, "all"), pending(&store, "some"), runs].concat();
    let keys: std::collections::HashSet<_> = all.iter().map(|delivery| delivery.key.clone()).collect();
    assert_eq!(keys.len(), 9, "each has a key of its own");
}

/// A write that fails stores neither the reply nor its notification.
#[test]
fn what_did_not_happen_is_not_told() {
    let house = House::new();
    let store = house.open();
    set(&store, &[subscription("all", &[], &[WebhookEvent::Reply])]);
    let failing = store.write_blocking(|tx| {
        tx.add_message(&session("a"), MessageRole::Assistant, "done", 1, None)?;
        Err::<(), _>(StoreError::Closed)
    });
    assert!(failing.is_err());
    assert_eq!(pending(&store, "all"), []);
}

#[test]
fn a_delivery_waits_arrives_or_is_given_up_and_can_be_brought_back() {
    let house = House::new();
    let store = house.open();
    set(&store, &[subscription("all", &[], &[WebhookEvent::Reply])]);
    let messages = [1, 2, 3].map(|at| reply(&store, "a", at));
    let ids: Vec<_> = pending(&store, "all").iter().map(|delivery| delivery.id).collect();
    let (one, two, three) = (ids[0], ids[1], ids[2]);
    store
        .write_blocking(move |tx| {
            tx.put_off_delivery(one, 500, "it answered 500")?;
            tx.delivered(two, 10)?;
            tx.give_up(three, true, 20, &"x".repeat(10_000))?;
            // An ended delivery cannot end again.
            tx.give_up(two, true, 30, "no")?;
            tx.put_off_delivery(two, 600, "no")?;
            tx.delivered(three, 30)
        })
        .unwrap();
    let [waits] = pending(&store, "all").try_into().unwrap();
    assert_eq!(
        (waits.id, waits.attempts, waits.due_ms, waits.error.as_deref()),
        (one, 1, 500, Some("it answered 500"))
    );
    let [lost] = failed(&store).try_into().unwrap();
    assert_eq!((lost.id, lost.attempts, lost.error.map(|error| error.len())), (three, 1, Some(500)));
    let line = |store: &Store| store.read_blocking(|view| view.webhooks()).unwrap().remove(0);
    assert_eq!(
        line(&store),
        WebhookLine { webhook: "all".into(), pending: 1, delivered: 1, failed: 1, next_ms: Some(500) }
    );
    assert_eq!(store.write_blocking(|tx| tx.retry_deliveries(Some("other"), 40)).unwrap(), 0);
    assert_eq!(store.write_blocking(|tx| tx.retry_deliveries(Some("all"), 40)).unwrap(), 2, "one is hurried");
    let back = pending(&store, "all").into_iter().find(|delivery| delivery.id == three).unwrap();
    assert_eq!((back.attempts, back.at_ms, back.since_ms, back.due_ms, &back.key), (0, 3, 40, 40, &lost.key));
    // Waiting deliveries of a removed webhook are given up and recorded, and cannot be retried.
    assert_eq!(set(&store, &[]), [("all".to_owned(), 2)]);
    assert!(failed(&store).iter().all(|delivery| delivery.error.as_deref().unwrap().contains("not in config.toml")));
    assert_eq!(store.write_blocking(|tx| tx.retry_deliveries(None, 60)).unwrap(), 0);
    // When a message is deleted, its delivery stays but refers to no other message.
    store.write_blocking(move |tx| Ok(tx.conn.execute("DELETE FROM messages WHERE id = ?1", [messages[0]])?)).unwrap();
    assert!(failed(&store).iter().any(|delivery| delivery.id == one && delivery.message.is_none()));
}

#[test]
fn the_outbox_is_bounded() {
    let house = House::new();
    let store = house.open();
    set(&store, &[subscription("all", &[], &[WebhookEvent::Reply])]);
    store
        .write_blocking(|tx| {
            (0..MAX_PENDING + 5).try_for_each(|at| {
                tx.add_message(&session("a"), MessageRole::Assistant, "done", at as i64, None).map(drop)
            })
        })
        .unwrap();
    let line = || store.read_blocking(|view| view.webhooks()).unwrap().remove(0);
    assert_eq!((line().pending, line().failed), (MAX_PENDING, 5));
    assert!(failed(&store)[0].error.as_deref().unwrap().contains("waited already"));
    // All are delivered; a day later they are deleted, but failed ones are not yet.
    let day = 24 * 60 * 60 * 1_000;
    store
        .write_blocking(|tx| {
            let all = tx.pending_deliveries("all", u32::MAX)?;
            all.iter().try_for_each(|delivery| tx.delivered(delivery.id, 20_000))
        })
        .unwrap();
    assert_eq!(store.write_blocking(move |tx| tx.trim_outbox(20_000 + day)).unwrap(), 0);
    let trim = |now| while store.write_blocking(move |tx| tx.trim_outbox(now)).unwrap() > 0 {};
    let count = || {
        store.read_blocking(|view| {
            Ok(view.conn.query_row("SELECT count(*) FROM outbox", (), |row| row.get::<_, i64>(0))?)
        })
    };
    trim(20_001 + day);
    assert_eq!(count().unwrap(), 5);
    trim(20_000 + 31 * day);
    assert_eq!(count().unwrap(), 0);
}

#[test]
fn a_pattern_means_names() {
    let table = [
        ("a", "a", true),
        ("a", "ab", false),
        ("*", "anything", true),
        ("team-*", "team-", true),
        ("team-*", "team-red", true),
        ("team-*", "Team-red", false),
        ("*-red", "team-red", true),
        ("*-red", "team-red-2", false),
        ("a*b*c", "a1b2b3c", true),
        ("a*b*c", "a1c2b", false),
        ("???", "abc", true),
        ("???", "ab", false),
        ("**", "x", true),
    ];
    for (pattern, name, expected) in table {
        assert_eq!(super::super::outbox::matches(pattern, name), expected, "{pattern} against {name}");
    }
    // No pattern takes long.
    assert!(!super::super::outbox::matches(&"*a".repeat(32), &format!("{}b", "a".repeat(62))));
}

/// Checks every statement that was run: none reads a whole growing table, none sorts.
#[test]
fn the_outbox_is_read_by_its_indexes() {
    let house = House::new();
    let store = house.open();
    set(&store, &[subscription("all", &[], &[WebhookEvent::Reply, WebhookEvent::Run])]);
    let run = begin(&store, 1);
    let conn = connect(&house.path()).unwrap();
    conn.set_prepared_statement_cache_capacity(256);
    let tx = Tx(View::new(&conn));
    tx.set_webhooks(&[subscription("other", &[], &[])], 1).unwrap();
    tx.set_webhooks(&[subscription("all", &[], &[WebhookEvent::Reply, WebhookEvent::Run])], 1).unwrap();
    tx.add_message(&session("s"), MessageRole::Assistant, "x", 1, None).unwrap();
    tx.finish_run(&run, RunStatus::Done, 1, "{}").unwrap();
    let ids: Vec<_> = tx.pending_deliveries("all", 9).unwrap().iter().map(|delivery| delivery.id).collect();
    tx.put_off_delivery(ids[0], 1, "x").unwrap();
    tx.delivered(ids[0], 1).unwrap();
    tx.give_up(ids[1], true, 1, "x").unwrap();
    tx.failed_deliveries(9).unwrap();
    tx.retry_deliveries(None, 1).unwrap();
    tx.trim_outbox(1).unwrap();
    tx.webhooks().unwrap();
    let sent = prepared(&conn);
    assert!(sent.iter().filter(|sql| sql.contains("outbox")).count() >= 12, "{sent:#?}");
    // SQLite's own statements when a message or a run is deleted.
    let deletions = ["message", "run"].map(|of| format!("UPDATE outbox SET {of} = NULL WHERE {of} = ?1"));
    for sql in sent.into_iter().chain(deletions) {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nulls = rusqlite::params_from_iter(vec![rusqlite::types::Null; plan.parameter_count()]);
        let steps: Vec<String> =
            plan.query_map(nulls, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        for step in steps {
            let bounded = !step.starts_with("SCAN") || step.contains("CONSTANT ROW");
            assert!(bounded && !step.contains("TEMP B-TREE"), "{step}\n{sql}");
        }
    }
}

/// Notices of one run are sent one at a time: later ones wait for earlier ones, even postponed ones. Those of other runs do not
/// wait.
#[test]
fn what_a_run_says_is_told_in_its_order() {
    let house = House::new();
    let store = house.open();
    set(&store, &[subscription("all", &[], &[WebhookEvent::Reply, WebhookEvent::Notify])]);
    let (run, other) = (begin(&store, 1), begin(&store, 1));
    let (of, another) = (run.clone(), other.clone());
    store
        .write_blocking(move |tx| {
            for seq in [3, 5] {
                tx.tell_webhooks_of_notification(&of, seq, &Label::default(), 2)?;
            }
            tx.add_message(&session("s"), MessageRole::Assistant, "done", 3, Some(&of))?;
            tx.tell_webhooks_of_notification(&another, 4, &Label::default(), 4)
        })
        .unwrap();
    let told = || {
        pending(&store, "all").into_iter().map(|delivery| (delivery.id, delivery.run, delivery.seq)).collect::<Vec<_>>()
    };
    let first = told();
    let seen: Vec<_> = first.iter().map(|(_, run, seq)| (run.clone(), *seq)).collect();
    assert_eq!(seen, [(Some(run.clone()), Some(3)), (Some(other), Some(4))]);
    let id = first[0].0;
    store.write_blocking(move |tx| tx.put_off_delivery(id, 900, "it answered 500")).unwrap();
    assert_eq!(told().len(), 2, "it is put off, and what follows waits for it");
    for (seq, after) in [(3, Some(5)), (5, None)] {
        let next = pending(&store, "all").into_iter().find(|delivery| delivery.run == Some(run.clone())).unwrap();
        assert_eq!(next.seq, Some(seq));
        store.write_blocking(move |tx| tx.delivered(next.id, 10)).unwrap();
        let next = pending(&store, "all").into_iter().find(|delivery| delivery.run == Some(run.clone()));
        assert_eq!(next.and_then(|delivery| delivery.seq), after);
    }
    assert!(pending(&store, "all").iter().any(|delivery| delivery.event == WebhookEvent::Reply), "at last the reply");
    assert_eq!(store.read_blocking(move |view| view.notified("all", &run)).unwrap(), [3, 5]);
}
