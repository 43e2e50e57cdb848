//! Versions of turns.

use super::*;
use crate::store::Store;
use kiso_plan::label::Integrity;

fn session() -> SessionName {
    SessionName::parse("s").unwrap()
}

/// A store in a directory that is removed after the test.
fn house() -> (Store, tempdir::Dir) {
    let dir = tempdir::Dir::new();
    (Store::open(&dir.0.join("store.db")).unwrap(), dir)
}

mod tempdir {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub(super) struct Dir(pub(super) PathBuf);

    impl Dir {
        pub(super) fn new() -> Dir {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("kiso-branches-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let dir = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).unwrap();
            Dir(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn job(text: &str, at_ms: i64) -> NewJob {
    NewJob {
        session: session(),
        text: text.to_owned(),
        caller: CallerScope::Admin,
        priority: JobPriority::Interactive,
        client_key: None,
        at_ms,
        label: Label::default(),
    }
}

/// Adds a message, and begins a run for the first waiting messages.
fn ask(tx: &Tx<'_>, text: &str, at_ms: i64) -> Result<(i64, RunId), StoreError> {
    let message = tx.admit(&job(text, at_ms))?.message();
    Ok((message, begin(tx, at_ms)?))
}

fn begin(tx: &Tx<'_>, at_ms: i64) -> Result<RunId, StoreError> {
    Ok(tx.begin_queued(&session(), at_ms)?.expect("something waits").run)
}

fn reply(tx: &Tx<'_>, run: &RunId, text: &str, at_ms: i64) -> Result<(), StoreError> {
    let reply = tx.add_message(&session(), MessageRole::Assistant, text, at_ms, Some(run))?;
    tx.finish_jobs(run, reply)?;
    tx.finish_run(run, crate::store::RunStatus::Done, at_ms, "{}")
}

fn again(message: i64, text: Option<&str>) -> NewVersion {
    NewVersion {
        message,
        text: text.map(str::to_owned),
        caller: CallerScope::Admin,
        client_key: None,
        at_ms: 100 + message,
        cancel: false,
        undo: false,
    }
}

fn texts(view: &View<'_>) -> Vec<String> {
    let of = |messages: Vec<Message>| messages.into_iter().map(|message| message.text).collect::<Vec<_>>();
    let shown = of(view.messages_before(&session(), None, 100).unwrap());
    // All sources for prompts and clients agree.
    assert_eq!(of(view.last_of_segment(&session(), 100).unwrap()), shown);
    assert_eq!(of(view.last_messages(&session(), 100).unwrap()), shown);
    assert_eq!(of(view.messages_after(&session(), 0, 100).unwrap()), shown);
    let unsummarized = of(view.messages_to_summarize(&session(), i64::MAX, 100).unwrap());
    assert_eq!(unsummarized.len() as u32, view.count_unsummarized(&session(), 100).unwrap());
    assert!(shown.ends_with(&unsummarized));
    shown
}

#[test]
fn a_version_takes_the_place_of_its_turn_and_of_all_that_followed() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (_, one) = ask(tx, "one", 1)?;
            reply(tx, &one, "1", 2)?;
            let (two, run_two) = ask(tx, "two", 3)?;
            // It arrives during the run, before its reply.
            let waits = tx.admit(&job("three", 4))?.message();
            reply(tx, &run_two, "2", 5)?;
            let three = begin(tx, 6)?;
            reply(tx, &three, "3", 7)?;
            assert_eq!(texts(tx), ["one", "1", "two", "three", "2", "3"]);

            // The reply after the message stays.
            let version = tx.replace_turn(&again(waits, Some("four")))?.unwrap();
            assert_eq!((version.added, version.session.as_str()), (1, "s"));
            assert_eq!(texts(tx), ["one", "1", "two", "2", "four"]);
            let four = begin(tx, 8)?;
            reply(tx, &four, "4", 9)?;
            assert_eq!(tx.versions(waits)?, [waits, version.message]);
            assert_eq!(tx.versions(version.message)?, [waits, version.message]);

            // An earlier turn: later replaced turns leave with it, and return with it.
            let other = tx.replace_turn(&again(two, None))?.unwrap().message;
            assert_eq!(texts(tx), ["one", "1", "two"]);
            let run = begin(tx, 10)?;
            reply(tx, &run, "2 again", 11)?;
            assert!(matches!(tx.replace_turn(&again(four_of(tx, "4")?, None))?, Err(NotReplaced::Elsewhere)));
            tx.show_version(two)?.unwrap();
            assert_eq!(texts(tx), ["one", "1", "two", "2", "four", "4"], "the branch in which something was said last");
            tx.show_version(waits)?.unwrap();
            assert_eq!(texts(tx), ["one", "1", "two", "three", "2", "3"]);
            let before = |count| {
                let found = tx.messages_up_to(four_of(tx, "4")?, count)?;
                Ok::<_, StoreError>(found.into_iter().map(|one| one.text).collect::<Vec<_>>())
            };
            assert_eq!(before(9)?, ["one", "1", "two", "2", "four", "4"], "of a branch that is not in use");
            assert_eq!(before(2)?, ["four", "4"]);
            tx.show_version(other)?.unwrap();
            assert_eq!(texts(tx), ["one", "1", "two", "2 again"]);
            // A version of a version is a version of the same turn.
            let third = tx.replace_turn(&again(other, None))?.unwrap().message;
            assert_eq!(tx.versions(third)?, [two, other, third]);
            assert!(matches!(tx.show_version(two)?, Err(NotReplaced::AtWork(_))), "the new version waits");
            let run = begin(tx, 12)?;
            assert!(matches!(tx.show_version(two)?, Err(NotReplaced::AtWork(_))));
            reply(tx, &run, "2 once more", 13)?;
            assert_eq!(texts(tx), ["one", "1", "two", "2 once more"]);
            assert!(matches!(tx.replace_turn(&again(999, None))?, Err(NotReplaced::Unknown)));
            Ok(())
        })
        .unwrap();
}

fn four_of(tx: &Tx<'_>, text: &str) -> Result<i64, StoreError> {
    Ok(tx.conn.query_row("SELECT id FROM messages WHERE text = ?1", [text], |row| row.get(0))?)
}

#[test]
fn a_run_under_way_is_in_the_way_unless_it_may_be_cancelled() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (one, run) = ask(tx, "one", 1)?;
            let waits = tx.admit(&job("more", 2))?.message();
            assert!(matches!(tx.replace_turn(&again(waits, None))?, Err(NotReplaced::Unanswered)));
            assert!(matches!(tx.replace_turn(&again(one, None))?, Err(NotReplaced::AtWork(_))));
            assert!(!tx.cancel_requested(&run)?);
            let new = NewVersion { cancel: true, client_key: Some("k".into()), undo: true, ..again(one, Some("uno")) };
            let version = tx.replace_turn(&new)?.unwrap();
            assert!(tx.cancel_requested(&run)?);
            // A repeated request is not executed again.
            let known = tx.replace_turn(&new)?.unwrap();
            assert_eq!((known.message, known.added), (version.message, 0));
            // The run takes none of the waiting messages, and its reply belongs to its own branch.
            assert!(tx.is_run_replaced(&run)? && !tx.take_message(&run, waits)?);
            tx.add_message(&session(), MessageRole::Assistant, "stopped", 4, Some(&run))?;
            tx.finish_run(&run, crate::store::RunStatus::Cancelled, 4, "{}")?;
            let window = |tx: &Tx<'_>| {
                tx.last_of_segment(&session(), 9).map(|all| all.into_iter().map(|one| one.text).collect::<Vec<_>>())
            };
            assert_eq!(window(tx)?, ["more", "uno"]);
            // The new version is answered first and alone; no waiting message is lost.
            assert_eq!(tx.undo_before(&session())?, Some((version.message, vec![run.clone()])));
            tx.set_undone(version.message)?;
            assert_eq!(tx.undo_before(&session())?, None);
            let begun = tx.begin_queued(&session(), 5)?.unwrap();
            assert_eq!(begun.texts, ["uno"]);
            reply(tx, &begun.run, "1", 6)?;
            let begun = tx.begin_queued(&session(), 7)?.unwrap();
            assert_eq!(begun.texts, ["more"]);
            reply(tx, &begun.run, "2", 8)?;
            tx.show_version(one)?.unwrap();
            assert_eq!(window(tx)?, ["one", "stopped"]);
            tx.show_version(version.message)?.unwrap();
            assert_eq!(window(tx)?, ["more", "uno", "1", "2"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_summary_is_of_its_branch() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (first, run) = ask(tx, "one", 1)?;
            reply(tx, &run, "1", 2)?;
            let (two, run) = ask(tx, "two", 3)?;
            reply(tx, &run, "2", 4)?;
            let (three, run) = ask(tx, "three", 5)?;
            reply(tx, &run, "3", 6)?;
            let of =
                |text: &str, to| crate::store::Summary { text: text.into(), to, sources: vec!["history-1".into()] };
            let now = |tx: &Tx<'_>| tx.summary(&session()).map(|summary| summary.map(|summary| summary.text));
            tx.set_summary(&session(), 0, &of("one and two", two + 1))?;
            let bad = Label { integrity: Integrity::World, ..Label::default() };
            tx.set_summary_label(&session(), &bad)?;
            // Both branches contain the summarized messages.
            let change = tx.replace_turn(&again(three, None))?.unwrap().change;
            assert_eq!((change, now(tx)?), (BranchChange::default(), Some("one and two".into())));
            let run = begin(tx, 7)?;
            reply(tx, &run, "3 again", 8)?;
            // It contains messages that are now replaced.
            let version = tx.replace_turn(&again(two, None))?.unwrap();
            assert_eq!((version.change.dropped, now(tx)?), (vec!["one and two".to_owned()], None));
            assert_eq!(tx.count_unsummarized(&session(), 9)?, 3);
            let run = begin(tx, 9)?;
            reply(tx, &run, "2 again", 10)?;
            tx.set_summary(&session(), 0, &of("only one", first + 1))?;
            tx.set_summary_label(&session(), &Label::session())?;
            // Back in the branch, its summary returns with its label, and a worse label does not get better.
            tx.show_version(two)?.unwrap();
            assert_eq!(now(tx)?, Some("one and two".into()));
            assert_eq!(tx.summary_label(&session())?.integrity, Integrity::World);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_break_a_passage_and_a_fact_are_of_their_branch() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (one, run) = ask(tx, "one", 1)?;
            reply(tx, &run, "1", 2)?;
            tx.break_session(&session(), 3)?;
            let (two, run) = ask(tx, "the harbour is blue", 4)?;
            reply(tx, &run, "2", 5)?;
            tx.add_chunk("the harbour is blue", "turn", Some(&session()), 4)?;
            let fact = crate::store::NewFact {
                text: "The harbour is blue.".into(),
                source: "user".into(),
                session: Some(session()),
                confidence: 90,
            };
            tx.add_fact(&fact, 4)?;
            let search = crate::store::Search::parse("harbour").unwrap();
            let found = |tx: &Tx<'_>| -> Result<_, StoreError> {
                let messages = tx.find_messages(&search, None, None, 9)?.len();
                let facts = tx.trusted_facts(9)?.len() + tx.find_facts("harbour", 9)?.len();
                Ok((messages, tx.find_chunks("harbour", 9)?.len(), facts, tx.segment_start(&session())?))
            };
            assert_eq!(found(tx)?, (1, 1, 2, two - 1));
            tx.replace_turn(&again(one, Some("uno")))?.unwrap();
            assert_eq!(found(tx)?, (0, 0, 0, 0));
            assert!(tx.is_turn_replaced(&session(), 4)?);
            let run = begin(tx, 6)?;
            reply(tx, &run, "ein", 7)?;
            // A person's search finds it, and opens it in its branch.
            let mut seen = Vec::new();
            tx.messages_with(&search, None, None, |candidate| {
                seen.push(candidate.message.id);
                true
            })?;
            assert_eq!(seen, [two]);
            // Another turn contains the same text.
            assert!(tx.add_chunk("The harbour is blue", "turn", Some(&session()), 60)?);
            assert!(!tx.add_chunk("The harbour is blue", "turn", Some(&session()), 61)?);
            assert_eq!(found(tx)?, (0, 1, 0, 0));
            tx.show_version(two)?.unwrap();
            assert_eq!(found(tx)?, (1, 1, 2, two - 1));
            Ok(())
        })
        .unwrap();
}

/// A waiting message is older than the version that is answered before it and whose run takes it.
#[test]
fn a_version_that_takes_up_an_older_message_has_both() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (one, run) = ask(tx, "one", 1)?;
            let waits = tx.admit(&job("more", 2))?.message();
            let version = tx.replace_turn(&NewVersion { cancel: true, ..again(one, None) })?.unwrap().message;
            reply(tx, &run, "stopped", 3)?;
            let run = begin(tx, 4)?;
            assert!(tx.take_message(&run, waits)?);
            reply(tx, &run, "1", 5)?;
            let of_run = tx.messages_of_run(&run)?;
            assert_eq!(of_run.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["more", "one", "1"]);
            assert_eq!(tx.answered_by(&run, of_run[2].id)?, [waits, version]);
            let asked = tx.turn(waits)?.unwrap().asked;
            assert_eq!(asked.iter().map(|one| one.id).collect::<Vec<_>>(), [version, waits]);
            // Both are repeated, as a version of the same turn.
            let third = tx.replace_turn(&again(waits, None))?.unwrap();
            assert_eq!((third.added, tx.versions(one)?), (2, vec![one, version, third.message - 1]));
            assert_eq!(texts(tx), ["one", "more"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_version_that_waits_follows_one_of_an_earlier_turn() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (one, run_one) = ask(tx, "one", 1)?;
            reply(tx, &run_one, "1", 2)?;
            let (two, run_two) = ask(tx, "two", 3)?;
            reply(tx, &run_two, "2", 4)?;
            let second = tx.replace_turn(&NewVersion { undo: true, ..again(two, Some("dos")) })?.unwrap().message;
            let first = tx.replace_turn(&again(one, Some("uno")))?.unwrap().message;
            assert_eq!(tx.branches(&session())?, [OldBranch { id: first, parent: 0, first: one }]);
            assert_eq!(tx.undo_before(&session())?, Some((first, vec![run_two])));
            for (begun, answer) in [("uno", "1"), ("dos", "2")] {
                let next = tx.begin_queued(&session(), 5)?.unwrap();
                assert_eq!(next.texts, [begun]);
                reply(tx, &next.run, answer, 6)?;
            }
            // It is a turn of the branch that it followed.
            tx.replace_turn(&again(second, Some("deux")))?.unwrap();
            assert_eq!(texts(tx), ["uno", "1", "deux"]);
            Ok(())
        })
        .unwrap();
}

/// A version gets neither a more trusted label nor more rights.
#[test]
fn a_version_launders_nothing() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let bad = Label { integrity: Integrity::World, ..Label::default() };
            let sent = NewJob {
                caller: CallerScope::User,
                priority: JobPriority::Background,
                label: bad.clone(),
                ..job("x", 1)
            };
            let message = tx.admit(&sent)?.message();
            let run = begin(tx, 2)?;
            reply(tx, &run, "y", 3)?;
            let version = tx.replace_turn(&again(message, Some("z")))?.unwrap();
            assert_eq!(version.priority, JobPriority::Background);
            assert_eq!(tx.label(LabelledRow::Message, version.message)?.integrity, bad.integrity);
            assert_eq!(tx.job(version.message)?.unwrap().caller, CallerScope::User);
            Ok(())
        })
        .unwrap();
}

#[test]
fn versions_have_a_limit() {
    let (store, _dir) = house();
    store
        .write_blocking(|tx| {
            let (mut last, run) = ask(tx, "one", 1)?;
            reply(tx, &run, "1", 2)?;
            for n in 1..MAX_VERSIONS {
                last = tx.replace_turn(&again(last, None))?.unwrap().message;
                let run = begin(tx, 2 + n as i64)?;
                reply(tx, &run, "1", 3 + n as i64)?;
            }
            assert!(matches!(tx.replace_turn(&again(last, None))?, Err(NotReplaced::TooMany)));
            assert_eq!(tx.versions(last)?.len(), MAX_VERSIONS);
            Ok(())
        })
        .unwrap();
}
