use rusqlite::Connection;

use super::super::migrations;
use super::*;
use kiso_plan::limits::Usage;
use kiso_plan::plan::TaskKind;

pub(super) fn fact(text: &str, confidence: u8) -> NewFact {
    NewFact { text: text.to_owned(), source: "reviewer".to_owned(), session: Some(session("s")), confidence }
}

fn facts(store: &Store) -> Vec<String> {
    store.read_blocking(|view| view.facts(100)).unwrap().into_iter().map(|fact| fact.text).collect()
}

#[test]
fn a_database_of_the_first_version_opens_and_keeps_everything() {
    let house = House::new();
    let mut conn = Connection::open(house.path()).unwrap();
    migrations::migrate(&mut conn, &migrations::ALL[..1]).unwrap();
    conn.execute_batch(
        "INSERT INTO sessions VALUES (3, 'old', 10);
         INSERT INTO messages VALUES (7, 3, 'user', 'plot rain', 11, '01hh000000abcd'), (8, 3, 'assistant', 'done', 12, '01hh000000abcd');
         INSERT INTO runs VALUES (1, '01hh000000abcd', 3, 7, 'done', 11, 12, '{}'), (2, '01hh000000abce', 3, 7, 'running', 13, NULL, NULL);
         INSERT INTO events VALUES (1, 0, 11, 'started', '{}');
         INSERT INTO kv VALUES (3, 'data', x'61', x'62');
         INSERT INTO published VALUES ('p', 3, 'pub/a.svg', 'image/svg+xml', NULL, 12);",
    )
    .unwrap();
    drop(conn);

    let store = house.open();
    let old = session("old");
    let (done, running): (RunId, RunId) = ("01hh000000abcd".parse().unwrap(), "01hh000000abce".parse().unwrap());
    store
        .read_blocking(|view| {
            let messages = view.last_messages(&old, 10)?;
            assert_eq!(
                messages.iter().map(|m| (m.id, m.text.as_str())).collect::<Vec<_>>(),
                [(7, "plot rain"), (8, "done")]
            );
            assert!(messages.iter().all(|message| message.tags.is_empty()));
            assert_eq!(view.run(&done)?.unwrap().status, RunStatus::Done);
            assert_eq!(view.events(&done)?.len(), 1);
            assert_eq!(view.kv_get(&old, &skill("data"), "a")?.unwrap(), b"b");
            assert!(view.published("p")?.is_some());
            assert_eq!(view.unfinished_runs(None)?, [running]);
            assert_eq!((view.summary(&old)?, view.title(&old)?), (None, None));
            assert_eq!(view.count_unsummarized(&old, 10)?, 2);
            assert_eq!(view.integrity()?, [""; 0]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn tasks_are_replaced_by_their_id_and_listed_as_planned() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let row = |id, position, status, output: Option<&str>| TaskRow {
        id,
        position,
        kind: TaskKind::Act,
        label: format!("task {id}"),
        task: "{}".to_owned(),
        status,
        output: output.map(str::to_owned),
        error: None,
        started_ms: Some(5),
        ended_ms: output.map(|_| 6),
    };
    let planned = [row(1, 0, TaskState::Planned, None), row(2, 1, TaskState::Planned, None)];
    let later = [
        row(1, 0, TaskState::Done, Some("fine")),
        row(3, 1, TaskState::Running, None),
        row(2, 2, TaskState::Dropped, None),
    ];
    let expected = later.clone();
    let id = run.clone();
    store.write_blocking(move |tx| tx.put_tasks(&id, &planned).and_then(|()| tx.put_tasks(&id, &later))).unwrap();
    assert_eq!(store.read_blocking(|view| view.tasks_of(&run)).unwrap(), expected);

    // A running task has no end, and its text is JSON: the tables accept nothing else.
    for bad in [
        TaskRow { ended_ms: Some(9), ..row(4, 4, TaskState::Running, None) },
        TaskRow { task: "no json".to_owned(), ..row(4, 4, TaskState::Planned, None) },
    ] {
        let id = run.clone();
        assert!(store.write_blocking(move |tx| tx.put_tasks(&id, &[bad])).is_err());
    }
    let other = begin(&store, 2);
    assert_eq!(store.read_blocking(|view| view.tasks_of(&other)).unwrap(), []);
}

#[test]
fn a_fact_is_there_once_and_the_surest_come_first() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            let first = tx.add_fact(&fact("The project uses pytest", 60), 1)?;
            tx.add_fact(&fact("The framework is Flask", 90), 2)?;
            tx.add_fact(&fact("Deploys run on Fridays", 60), 3)?;
            assert_eq!(tx.add_fact(&fact(" the project uses PYTEST\n", 70), 4)?, first);
            assert_eq!(tx.add_fact(&fact("the project uses pytest", 10), 5)?, first);
            Ok(())
        })
        .unwrap();
    assert_eq!(facts(&store), ["The framework is Flask", "The project uses pytest", "Deploys run on Fridays"]);
    let found = store.read_blocking(|view| view.find_facts("which framework? run pytest!", 10)).unwrap();
    let found: Vec<_> = found.iter().map(|fact| (fact.confidence, fact.session.clone().unwrap())).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(store.read_blocking(|view| view.find_facts("\"*", 10)).unwrap(), []);
    for bad in ["  ".to_owned(), "x".repeat(MAX_FACT_BYTES + 1)] {
        assert!(matches!(
            store.write_blocking(move |tx| tx.add_fact(&fact(&bad, 1), 1)),
            Err(StoreError::Quota { .. })
        ));
    }
}

#[test]
fn facts_are_consolidated_all_or_none_and_new_ones_stay() {
    let house = House::new();
    let store = house.open();
    let old = store
        .write_blocking(|tx| Ok(vec![tx.add_fact(&fact("a one", 50), 1)?, tx.add_fact(&fact("b one", 50), 1)?]))
        .unwrap();
    store.write_blocking(|tx| tx.add_fact(&fact("learned meanwhile", 50), 2)).unwrap();
    let ids = old.clone();
    let broken = [fact("a and b", 50), fact("", 50)];
    assert!(store.write_blocking(move |tx| tx.replace_facts(&ids, &broken)).is_err());
    assert_eq!(facts(&store).len(), 3);
    let ids = old.clone();
    assert!(store.write_blocking(move |tx| tx.replace_facts(&ids, &[fact("a and b", 50)])).unwrap());
    assert_eq!(facts(&store), ["learned meanwhile", "a and b"], "it is as new as what it replaces");
    // Another consolidation of the same facts comes too late.
    assert!(!store.write_blocking(move |tx| tx.replace_facts(&old, &[fact("b and a", 50)])).unwrap());
    assert_eq!(facts(&store), ["learned meanwhile", "a and b"]);
    // Deleted facts are not found either.
    assert_eq!(store.read_blocking(|view| view.find_facts("one", 10)).unwrap(), []);
    assert_eq!(store.read_blocking(|view| view.count_facts(10)).unwrap(), 2);
    assert_eq!(store.read_blocking(|view| view.count_facts(1)).unwrap(), 1);
}

#[test]
fn chunks_are_kept_once_and_found_by_words() {
    let house = House::new();
    let store = house.open();
    let kept = store
        .write_blocking(|tx| {
            let add = |text| tx.add_chunk(text, "turn", Some(&session("s")), 1);
            Ok([
                add("The staging server is called Grünwald and runs Debian")?,
                add("the  staging server is called\ngrünwald and runs debian")?,
                add("Lunch is at noon")?,
                add("Servers are restarted on Mondays")?,
            ])
        })
        .unwrap();
    assert_eq!(kept, [true, false, true, true]);
    let find = |question: &str| -> Vec<String> {
        let found = store.read_blocking(|view| view.find_chunks(question, 10)).unwrap();
        found.into_iter().map(|chunk| chunk.text.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(find("grunwald server"), ["The"]);
    assert_eq!(find("serv"), ["Servers", "The"]);
    // No chunk has all words, so those with some are returned.
    assert_eq!(find("When is lunch, and who cooks?")[0], "Lunch");
    assert_eq!(find("NEAR(\"lunch"), ["Lunch"]);
    assert_eq!(find("?"), [""; 0]);
    store.write_blocking(|tx| tx.add_chunk("東京の天気は晴れです。APIは使えます", "turn", None, 1)).unwrap();
    for question in ["天気", "明日の東京", "api", "晴れ", "東"] {
        assert_eq!(find(question).len(), 1, "{question}");
    }
    assert_eq!(find("大阪"), [""; 0]);
    let id = store.read_blocking(|view| view.find_chunks("lunch", 1)).unwrap()[0].id;
    assert!(store.write_blocking(move |tx| tx.delete_chunk(id)).unwrap());
    assert_eq!(find("lunch"), [""; 0]);
}

/// A word in very many chunks does not hide chunks with a rare word. If all words are common, the newest chunks count.
#[test]
fn words_of_many_chunks_do_not_rank() {
    let house = House::new();
    let store = house.open();
    let many = |tx: &Tx<'_>| {
        tx.add_chunk("the weather in Oslo, with a giraffe", "turn", None, 1)?;
        (0..1_500).try_for_each(|n| tx.add_chunk(&format!("weather of day {n}"), "turn", None, 2).map(drop))?;
        tx.add_chunk("the newest weather of a day", "turn", None, 3)
    };
    assert!(store.write_blocking(many).unwrap());
    let find = |question: &str| -> Vec<String> {
        let found = store.read_blocking(|view| view.find_chunks(question, 2)).unwrap();
        found.into_iter().map(|chunk| chunk.text).collect()
    };
    assert_eq!(find("weather without any giraffe"), ["the weather in Oslo, with a giraffe"]);
    assert_eq!(find("weather giraffe"), ["the weather in Oslo, with a giraffe"]);
    assert_eq!(find("weather day"), ["the newest weather of a day", "weather of day 1499"]);
    assert_eq!(find("day weather unknown")[0], "the newest weather of a day");
    assert_eq!(find("weather 777 unknown"), ["weather of day 777"]);
}

#[test]
fn the_weakest_fact_makes_room_for_a_new_one() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            tx.conn.execute(
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
                 INSERT INTO facts (text, grams, source, confidence, at_ms) SELECT 'fact ' || x, '', '', 50, x FROM n",
                [MAX_FACTS],
            )?;
            tx.add_fact(&fact("hardly believed", 1), 1)?;
            assert_eq!(tx.count_facts(u32::MAX)?, MAX_FACTS);
            assert_eq!(tx.find_facts("believed", 5)?.len(), 1);
            tx.add_fact(&fact("a sure thing", 99), 2)?;
            assert_eq!(tx.find_facts("believed", 5)?, []);
            let all = tx.facts(u32::MAX)?;
            assert_eq!((all.len(), all[0].text.as_str()), (MAX_FACTS as usize, "a sure thing"));
            // Of equally certain facts, the oldest was deleted.
            assert!(all.iter().all(|fact| fact.text != "fact 1") && all.iter().any(|fact| fact.text == "fact 2"));
            Ok(())
        })
        .unwrap();
}

#[test]
fn memory_has_an_end_and_gaps_do_not_count() {
    let house = House::new();
    let store = house.open();
    let add = |text: &'static str| store.write_blocking(move |tx| tx.add_chunk(text, "turn", None, 1));
    store
        .write_blocking(|tx| {
            tx.conn.execute(
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
                 INSERT INTO memory_chunks (id, digest, source, at_ms, text, grams) SELECT 2 * x, CAST(x AS BLOB), '', 1, '', '' FROM n",
                [MAX_CHUNKS as i64 - 1],
            )?;
            Ok(())
        })
        .unwrap();
    assert_eq!(add("the last one"), Ok(true));
    assert!(matches!(add("one more"), Err(StoreError::Quota { max: MAX_CHUNKS, .. })));
    assert!(store.write_blocking(|tx| tx.delete_chunk(2)).unwrap());
    assert_eq!(add("one more"), Ok(true));
}

#[test]
fn what_is_forgotten_leaves_no_word_in_the_file() {
    let house = House::new();
    let store = house.open();
    let there = |word: &str| {
        let bytes = fs::read(house.path()).unwrap();
        bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    };
    let id = store
        .write_blocking(|tx| {
            tx.add_chunk("kept: Madagascar", "turn", None, 1)?;
            tx.add_chunk("gone: Zanzibar", "turn", None, 1)?;
            tx.scratchpad_put(&session("s"), "k", "gone: Zanzibar", true, 1)?;
            tx.add_fact(&fact("Zanzibar is gone", 50), 1)
        })
        .unwrap();
    store.close();
    assert!(there("madagascar") && there("zanzibar"));
    let store = house.open();
    let chunk = store.read_blocking(|view| view.find_chunks("zanzibar", 1)).unwrap()[0].id;
    store
        .write_blocking(move |tx| {
            assert!(tx.delete_chunk(chunk)? && tx.delete_fact(id)? && tx.scratchpad_delete(&session("s"), "k")?);
            Ok(())
        })
        .unwrap();
    store.close();
    assert!(there("madagascar"));
    assert!(!there("zanzibar"));
}

#[test]
fn the_scratchpad_drops_what_the_host_put_away_and_never_what_was_saved() {
    let house = House::new();
    let store = house.open();
    let put = |key: &'static str, bytes: u64, named: bool| {
        let text = "x".repeat(bytes as usize);
        store.write_blocking(move |tx| tx.scratchpad_put(&session("s"), key, &text, named, 1))
    };
    let keys = || -> Vec<String> {
        let list = store.read_blocking(|view| view.scratchpad_list(&session("s"))).unwrap();
        list.into_iter().map(|entry| entry.key).collect()
    };
    assert!(matches!(put("big", MAX_ENTRY_BYTES + 1, true), Err(StoreError::Quota { .. })));
    put("notes", MAX_ENTRY_BYTES, true).unwrap();
    for key in ["tool-1", "tool-2", "tool-3", "tool-4", "tool-5", "tool-6", "tool-7"] {
        put(key, MAX_ENTRY_BYTES, false).unwrap();
    }
    assert_eq!(keys().len(), 8);
    put("tool-8", MAX_ENTRY_BYTES, false).unwrap();
    assert_eq!(keys(), ["tool-8", "tool-7", "tool-6", "tool-5", "tool-4", "tool-3", "tool-2", "notes"]);
    // Replacing one needs no room.
    put("notes", MAX_ENTRY_BYTES, true).unwrap();
    assert_eq!(keys().len(), 8);
    for key in ["a", "b", "c", "d", "e"] {
        put(key, MAX_ENTRY_BYTES, true).unwrap();
    }
    // Saved entries never take the room that the host needs.
    assert!(matches!(put("f", 1, true), Err(StoreError::Quota { max: MAX_NAMED_BYTES, .. })));
    put("tool-9", MAX_ENTRY_BYTES, false).unwrap();
    assert_eq!(keys(), ["tool-9", "e", "d", "c", "b", "a", "notes", "tool-8"]);
    assert!(store.write_blocking(|tx| tx.scratchpad_delete(&session("s"), "notes")).unwrap());
    assert!(!store.write_blocking(|tx| tx.scratchpad_delete(&session("s"), "notes")).unwrap());
    assert_eq!(store.read_blocking(|view| view.scratchpad_get(&session("s"), "notes")).unwrap(), None);
    assert_eq!(store.read_blocking(|view| view.scratchpad_get(&session("t"), "a")).unwrap(), None);
}

#[test]
fn numbers_of_generated_keys_go_on() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            for key in ["input-1", "input-12", "input-9", "input-x", "inputs-99", "tool-30"] {
                tx.scratchpad_put(&session("s"), key, "text", false, 1)?;
            }
            Ok(())
        })
        .unwrap();
    let last = |stem: &str| store.read_blocking(|view| view.scratchpad_last(&session("s"), stem)).unwrap();
    assert_eq!([last("input"), last("tool"), last("summary")], [12, 30, 0]);
}

#[test]
fn what_arrived_meanwhile_is_taken_once() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let (first, second) = store
        .write_blocking(|tx| {
            let first = tx.add_message(&session("s"), MessageRole::User, "also #urgent", 2, None)?;
            tx.set_tags(first, &["urgent".to_owned()])?;
            tx.add_message(&session("s"), MessageRole::Assistant, "notice", 3, None)?;
            Ok((first, tx.add_message(&session("s"), MessageRole::User, "and more", 4, None)?))
        })
        .unwrap();
    let waiting = store.read_blocking(|view| view.waiting_messages(&session("s"), 10)).unwrap();
    assert_eq!(waiting.iter().map(|message| message.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(waiting[0].tags, ["urgent"]);
    let id = run.clone();
    let taken =
        store.write_blocking(move |tx| Ok([tx.take_message(&id, first)?, tx.take_message(&id, first)?])).unwrap();
    assert_eq!(taken, [true, false]);
    assert_eq!(store.read_blocking(|view| view.waiting_messages(&session("s"), 10)).unwrap().len(), 1);
    let after = store.read_blocking(|view| view.messages_after(&session("s"), first, 10)).unwrap();
    assert_eq!(after.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["notice", "and more"]);
    let many = vec!["t".to_owned(); MAX_TAGS + 1];
    assert!(store.write_blocking(move |tx| tx.set_tags(first, &many)).is_err());
}

#[test]
fn a_run_is_asked_to_stop_and_counts_its_resumptions() {
    let house = House::new();
    let store = house.open();
    let (one, other) = (begin(&store, 1), begin(&store, 2));
    assert_eq!(
        store.read_blocking(|view| view.unfinished_runs(Some(&session("s")))).unwrap(),
        [one.clone(), other.clone()]
    );
    assert_eq!(store.read_blocking(|view| view.unfinished_runs(Some(&session("t")))).unwrap(), []);
    let id = one.clone();
    let resumed = store
        .write_blocking(move |tx| {
            tx.request_cancel(&id)?;
            Ok([tx.count_resumed(&id)?, tx.count_resumed(&id)?])
        })
        .unwrap();
    assert_eq!(resumed, [1, 2]);
    // No process drives a held run: the queue resumes it in order to end it.
    let id = one.clone();
    let due = store
        .write_blocking(move |tx| {
            tx.hold_run(&id, 5)?;
            let held = (tx.run(&id)?.map(|run| run.status), tx.runs_to_retry(10)?.len());
            tx.request_cancel(&id)?;
            let cancelled = (tx.run(&id)?.map(|run| run.status), tx.runs_to_retry(10)?.len());
            Ok([held, cancelled, (None, usize::try_from(tx.count_resumed(&id)?).unwrap())])
        })
        .unwrap();
    assert_eq!(due, [(Some(RunStatus::Held), 0), (Some(RunStatus::Running), 1), (None, 1)]);
    let requested = |run: &RunId| store.read_blocking(|view| view.cancel_requested(run)).unwrap();
    assert_eq!((requested(&one), requested(&other)), (true, false));
    let id = other.clone();
    store.write_blocking(move |tx| tx.finish_run(&id, RunStatus::Done, 3, "{}")).unwrap();
    let id = other.clone();
    assert_eq!(store.write_blocking(move |tx| tx.request_cancel(&id)), Err(StoreError::Ended { run: other.clone() }));
    assert_eq!(store.read_blocking(|view| view.unfinished_runs(None)).unwrap(), [one]);
}

#[test]
fn usage_adds_up_per_run_session_and_day() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let call = |at_ms, input_tokens| UsageLine {
        at_ms,
        role: "planner".to_owned(),
        model: "a:b".to_owned(),
        usage: Usage { input_tokens, output_tokens: 1, cost_micros: 2, ..Usage::default() },
    };
    let calls = [call(DAY - 1, 10), call(DAY, 20), call(DAY + 5, u64::MAX)];
    let id = run.clone();
    store
        .write_blocking(move |tx| {
            tx.add_usage(&session("s"), Some(&id), &calls[0])?;
            tx.add_usage(&session("s"), Some(&id), &calls[1])?;
            tx.add_usage(&session("s"), None, &calls[2])
        })
        .unwrap();
    let total = |scope: Scope<'_>| store.read_blocking(|view| view.usage_total(scope)).unwrap();
    let of_run = total(Scope::Run(&run));
    assert_eq!(
        of_run,
        Totals { calls: 2, usage: Usage { input_tokens: 30, output_tokens: 2, cost_micros: 4, ..Usage::default() } }
    );
    assert_eq!(total(Scope::Session(&session("s"))).calls, 3);
    assert_eq!(total(Scope::Session(&session("nobody"))), Totals::default());
    assert_eq!(
        (total(Scope::Day(0)).calls, total(Scope::Day(2 * DAY - 1)).calls, total(Scope::Day(-1)).calls),
        (1, 2, 0)
    );
    assert_eq!(store.read_blocking(|view| view.usage_of(&run)).unwrap(), [call(DAY - 1, 10), call(DAY, 20)]);
}

#[test]
fn work_waits_once_and_is_given_up_in_the_end() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let id = run.clone();
    store
        .write_blocking(move |tx| {
            tx.add_work(DueKind::Title, &session("s"), None, 10)?;
            tx.add_work(DueKind::Title, &session("s"), None, 11)?;
            tx.add_work(DueKind::Memory, &session("s"), Some(&id), 5)?;
            tx.add_work(DueKind::Title, &session("t"), None, 99)
        })
        .unwrap();
    let claim = |now, of: Option<&'static str>| {
        let claim = move |tx: &Tx<'_>| tx.claim_work(now, now + 100, of.map(session).as_ref());
        store.write_blocking(claim).unwrap()
    };
    assert_eq!(claim(50, Some("t")), None);
    let due = [claim(50, None).unwrap(), claim(51, Some("s")).unwrap()];
    assert_eq!(due.clone().map(|due| due.kind), [DueKind::Memory, DueKind::Title]);
    assert_eq!(due[0].run.as_ref(), Some(&run));
    // Nobody else can claim it before its time has passed.
    assert_eq!(claim(51, None), None);
    assert_eq!(claim(149, Some("s")), None);
    assert_eq!([claim(151, Some("s")).unwrap(), claim(151, Some("s")).unwrap()], due);
    let (memory, title) = (due[0].id, due[1].id);
    store.write_blocking(move |tx| tx.put_off_work(title, 160)).unwrap();
    assert_eq!(claim(160, Some("s")).map(|due| (due.id, due.attempts)), Some((title, 0)));
    store.write_blocking(move |tx| tx.finish_work(memory)).unwrap();
    let tries = store
        .write_blocking(move |tx| (0..MAX_ATTEMPTS).map(|_| tx.retry_work(title, 20)).collect::<Result<Vec<_>, _>>())
        .unwrap();
    assert_eq!(tries, [true, true, true, true, false]);
    assert_eq!(claim(1_000, Some("s")), None);
}

#[test]
fn sealed_secrets_are_kept_by_session_and_name() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            tx.put_secret(&session("s"), "token", b"old", 1)?;
            tx.put_secret(&session("s"), "token", b"new", 2)?;
            tx.put_secret(&session("s"), "password", b"pw", 2)
        })
        .unwrap();
    store
        .read_blocking(|view| {
            assert_eq!(view.secret(&session("s"), "token")?.unwrap(), b"new");
            assert_eq!(view.secret(&session("t"), "token")?, None);
            assert_eq!(view.secret_names(&session("s"))?, ["password", "token"]);
            assert_eq!(view.secrets(&session("s"))?.len(), 2);
            Ok(())
        })
        .unwrap();
    let full = store
        .write_blocking(|tx| (0..=MAX_SECRETS).try_for_each(|n| tx.put_secret(&session("s"), &n.to_string(), b"x", 3)));
    assert!(matches!(full, Err(StoreError::Quota { .. })));
    let long = vec![0; MAX_SEALED_BYTES as usize + 1];
    assert!(store.write_blocking(move |tx| tx.put_secret(&session("s"), "long", &long, 3)).is_err());
    assert!(store.write_blocking(|tx| tx.delete_secret(&session("s"), "token")).unwrap());
}
