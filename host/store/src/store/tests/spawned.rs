//! Subagents and schedules.

use super::*;
use kiso_plan::plan::CallerScope;

const LIMITS: SpawnLimits = SpawnLimits { depth: 2, of_tree: 3, all: 4 };

fn spawn_of(parent: &str, name: &str) -> Spawn {
    Spawn {
        session: session(&format!("sub.{name}")),
        name: name.to_owned(),
        text: "look".to_owned(),
        caller: CallerScope::User,
        parent: session(parent),
        inject_into: Some(session(parent)),
        model: None,
        client_key: format!("key of {name}"),
        at_ms: 5,
        label: Default::default(),
    }
}

fn spawn(store: &Store, parent: &str, name: &str) -> Result<JobAdmission, SpawnRefused> {
    let new = spawn_of(parent, name);
    store.write_blocking(move |tx| tx.spawn(&new, &LIMITS)).unwrap()
}

/// Answers the waiting messages of a session; returns the run.
fn answer(store: &Store, name: &str, reply: &'static str) -> RunId {
    let of = session(name);
    let answer = move |tx: &Tx<'_>| {
        let run = tx.begin_queued(&of, 6)?.expect("something waits").run;
        tx.finish_run(&run, RunStatus::Done, 7, "{}")?;
        let message = tx.add_message(&of, MessageRole::Assistant, reply, 7, Some(&run))?;
        tx.inject_reply(&run, reply, &Default::default(), 7)?;
        tx.finish_jobs(&run, message)?;
        Ok(run)
    };
    store.write_blocking(answer).unwrap()
}

fn texts(store: &Store, name: &str) -> Vec<String> {
    let of = session(name);
    let messages = store.read_blocking(move |view| view.last_messages(&of, 100)).unwrap();
    messages.into_iter().map(|message| message.text).collect()
}

fn hourly(name: &str) -> NewSchedule {
    NewSchedule {
        label: Default::default(),
        name: name.to_owned(),
        timing: "@hourly".to_owned(),
        zone: "UTC".to_owned(),
        message: "look".to_owned(),
        session: Some(session("main")),
        model: None,
        caller: CallerScope::User,
        next_ms: 100,
        at_ms: 1,
    }
}

fn firing(store: &Store, name: &str) -> DueSchedule {
    let schedule = store.read_blocking(|view| view.schedule(name)).unwrap().unwrap();
    let (session, due_ms) = (session(&format!("schedule.{name}")), schedule.next_ms.unwrap());
    DueSchedule { schedule, session, due_ms, next_ms: Some(due_ms + 100), by_hand: false, at_ms: due_ms + 3, keep: 2 }
}

#[test]
fn a_subagent_is_admitted_once_for_each_call() {
    let house = House::new();
    let store = house.open();
    let first = spawn(&store, "main", "a").unwrap();
    assert_eq!(spawn(&store, "main", "a"), Ok(JobAdmission::Before(first.message())));
    let mut other = spawn_of("main", "a");
    other.client_key = "another call".to_owned();
    let refused = store.write_blocking(move |tx| tx.spawn(&other, &LIMITS)).unwrap();
    assert_eq!(refused, Err(SpawnRefused::Taken { session: session("sub.a") }));
    assert_eq!(texts(&store, "sub.a"), ["look"]);
    let subagents = store.read_blocking(|view| view.subagents_of(&session("main"), 10)).unwrap();
    assert_eq!(subagents.len(), 1);
    assert_eq!((subagents[0].state, subagents[0].name.as_deref()), (JobState::Queued, Some("a")));
    // It is not a person's conversation: it is neither listed nor counted as waiting.
    let listed =
        store.read_blocking(|view| Ok((view.list_sessions(&Placement::ALL, None, 10)?, view.count_queued()?))).unwrap();
    assert_eq!((listed.0.len(), listed.1), (1, 0));
}

#[test]
fn depth_and_number_are_capped_and_what_is_done_makes_room() {
    let house = House::new();
    let store = house.open();
    spawn(&store, "main", "a").unwrap();
    spawn(&store, "sub.a", "aa").unwrap();
    assert_eq!(spawn(&store, "sub.aa", "aaa"), Err(SpawnRefused::TooDeep { depth: 3, max: 2 }));
    spawn(&store, "sub.a", "ab").unwrap();
    assert_eq!(spawn(&store, "main", "b"), Err(SpawnRefused::TooManyHere { max: 3 }));
    spawn(&store, "other", "c").unwrap();
    assert_eq!(spawn(&store, "third", "d"), Err(SpawnRefused::TooMany { max: 4 }));
    assert!(!store.read_blocking(|view| view.has_session(&session("sub.d"))).unwrap(), "nothing of it is kept");
    answer(&store, "sub.aa", "done");
    spawn(&store, "main", "b").unwrap();
    let line = store.read_blocking(|view| view.line_of(&session("sub.ab"))).unwrap();
    assert_eq!(line, ["sub.ab", "sub.a", "main"].map(session));
}

#[test]
fn a_reply_is_told_with_the_end_of_its_run_and_once() {
    let house = House::new();
    let store = house.open();
    spawn(&store, "main", "a").unwrap();
    // A failed transaction adds no messages.
    let failed: Result<(), _> = store.write_blocking(|tx| {
        let run = tx.begin_queued(&session("sub.a"), 6)?.expect("it waits").run;
        tx.inject_reply(&run, "lost", &Default::default(), 6)?;
        Err(StoreError::Closed)
    });
    assert!(failed.is_err() && texts(&store, "main").is_empty());
    let run = answer(&store, "sub.a", "it is done");
    let again = store.write_blocking({
        let run = run.clone();
        move |tx| tx.inject_reply(&run, "it is done", &Default::default(), 8)
    });
    assert_eq!((again, texts(&store, "main")), (Ok(()), vec!["it is done".to_owned()]));
    let told = store.read_blocking(|view| view.last_of_segment(&session("main"), 5)).unwrap();
    assert_eq!(told[0].run, Some(run), "it stands in the window, with the run that it came from");
}

#[test]
fn what_waits_is_cancelled_without_having_begun() {
    let house = House::new();
    let store = house.open();
    spawn(&store, "main", "a").unwrap();
    let cancel = |tx: &Tx<'_>| tx.cancel_queued(&session("sub.a"), "{}", "cancelled", 9);
    let run = store.write_blocking(cancel).unwrap().expect("it waited");
    assert_eq!(store.write_blocking(cancel), Ok(None));
    let subagent = store.read_blocking(|view| view.subagent(&session("sub.a"))).unwrap().unwrap();
    assert_eq!((subagent.status, subagent.run), (Some(RunStatus::Cancelled), Some(run)));
    assert_eq!((texts(&store, "main").len(), subagent.reply.as_deref()), (0, Some("cancelled")));
    assert_eq!(store.read_blocking(|view| view.spawned_queued(10)).unwrap(), []);
}

#[test]
fn a_time_that_is_due_is_fired_once_by_whoever_comes_first() {
    let house = House::new();
    let stores = [house.open(), house.open()];
    stores[0].write_blocking(|tx| tx.add_schedule(&hourly("tea"), 10)).unwrap();
    assert_eq!(stores[0].read_blocking(|view| view.schedules_due(99, 10)).unwrap(), []);
    let firings = stores.each_ref().map(|store| firing(store, "tea"));
    let fired: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .zip(firings)
            .map(|(store, firing)| {
                scope.spawn(move || store.write_blocking(move |tx| tx.fire_schedule(&firing)).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(fired.iter().filter(|state| **state == Some(ReceiptState::Queued)).count(), 1, "{fired:?}");
    assert_eq!(fired.iter().filter(|state| state.is_none()).count(), 1, "{fired:?}");
    assert_eq!(stores[1].read_blocking(|view| view.schedule_next_ms()).unwrap(), Some(200));
    assert_eq!(texts(&stores[1], "schedule.tea"), ["look"]);
    let parent = stores[1].read_blocking(|view| view.parent_of(&session("schedule.tea"))).unwrap();
    assert_eq!(parent, Some(session("main")));
}

#[test]
fn a_time_is_skipped_while_the_one_before_waits_and_receipts_have_an_end() {
    let house = House::new();
    let store = house.open();
    store.write_blocking(|tx| tx.add_schedule(&hourly("tea"), 10)).unwrap();
    let fire = || {
        let firing = firing(&store, "tea");
        store.write_blocking(move |tx| tx.fire_schedule(&firing)).unwrap()
    };
    let states = || -> Vec<_> {
        let receipts = store.read_blocking(|view| view.receipts(Some("tea"), None, 10)).unwrap();
        receipts.iter().map(|receipt| (receipt.due_ms, receipt.state)).collect()
    };
    assert_eq!(fire(), Some(ReceiptState::Queued));
    assert_eq!(fire(), Some(ReceiptState::Skipped));
    assert_eq!(states(), [(200, ReceiptState::Skipped), (100, ReceiptState::Queued)]);
    answer(&store, "schedule.tea", "tea is ready");
    assert_eq!(states()[1].1, ReceiptState::Done);
    assert_eq!((fire(), texts(&store, "main")), (Some(ReceiptState::Queued), vec!["tea is ready".to_owned()]));
    assert_eq!(states(), [(300, ReceiptState::Queued), (200, ReceiptState::Skipped)], "two are kept");
    let stale = firing(&store, "tea");
    store
        .write_blocking(move |tx| tx.pause_schedule(stale.schedule.id, true, stale.schedule.next_ms, Some(400)))
        .unwrap();
    assert_eq!(fire(), None, "it was paused meanwhile");
    let id = store.read_blocking(|view| view.schedule("tea")).unwrap().unwrap().id;
    assert_eq!(store.write_blocking(move |tx| tx.remove_schedule(id)), Ok(true));
    assert_eq!((states(), store.write_blocking(move |tx| tx.remove_schedule(id))), (vec![], Ok(false)));
}

/// Runs all SQL statements about subagents and schedules that read growing tables; a test checks their query plans.
pub(super) fn touch_all(tx: &Tx<'_>) {
    let (main, sub) = (session("main"), session("sub.a"));
    tx.spawn(&spawn_of("main", "a"), &LIMITS).unwrap().unwrap();
    tx.subagents_of(&main, 5).unwrap();
    tx.subagent(&sub).unwrap();
    tx.line_of(&sub).unwrap();
    tx.spawned_queued(5).unwrap();
    let run = tx.cancel_queued(&sub, "{}", "x", 5).unwrap().unwrap();
    tx.priority_of_run(&run).unwrap();
    tx.inject_reply(&run, "x", &Default::default(), 5).unwrap();
    tx.schedules_due(5, 5).unwrap();
    tx.schedule_next_ms().unwrap();
    tx.schedule("tea").unwrap();
    tx.receipts(Some("tea"), None, 5).unwrap();
}
