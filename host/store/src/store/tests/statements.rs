//! Checks the query plans of the store's statements.

use rusqlite::Connection;

use super::remembered::fact;
use super::*;
use kiso_plan::limits::Usage;

/// Checks every statement that these functions ran: none reads a whole growing table.
#[test]
fn nothing_is_found_by_reading_whole_tables() {
    let house = House::new();
    let store = house.open();
    let run = begin(&store, 1);
    let conn = connect(&house.path()).unwrap();
    conn.set_prepared_statement_cache_capacity(256);
    let s = session("s");
    let tx = Tx(View::new(&conn));
    let line = UsageLine { at_ms: 1, role: "r".into(), model: "m".into(), usage: Usage::default() };
    tx.add_usage(&s, Some(&run), &line).unwrap();
    tx.add_fact(&fact("a fact", 5), 1).unwrap();
    tx.add_chunk("a chunk", "turn", Some(&s), 1).unwrap();
    tx.scratchpad_put(&s, "k", "v", true, 1).unwrap();
    tx.keep_picture(&s, "0a", b"x", 1).unwrap();
    tx.describe_picture(&s, "0a", "a cat").unwrap();
    tx.put_secret(&s, "n", b"v", 1).unwrap();
    tx.add_work(DueKind::Facts, &s, None, 1).unwrap();
    tx.put_tasks(&run, &[]).unwrap();
    tx.leave_tasks(&run, 1).unwrap();
    tx.set_summary(&s, 0, &Summary { text: "x".into(), to: 1, sources: Vec::new() }).unwrap();
    tx.set_title(&s, "x", true).unwrap();
    let card = kiso_plan::approval::Card { effects: Vec::new(), expires_ms: 9 };
    let asked = tx.ask_approval(&run, 0, &card, 1).unwrap();
    tx.approval(asked).unwrap();
    tx.approval_of(&run, 0).unwrap();
    tx.approvals(None, false, None, 5).unwrap();
    tx.count_pending_approvals().unwrap();
    tx.has_expired_approvals(5).unwrap();
    let shown = tx.add_message(&s, MessageRole::Assistant, "x", 1, None).unwrap();
    tx.show_approval(shown, asked).unwrap();
    tx.approval_in_message(shown).unwrap();
    tx.shows_approval(&s, asked).unwrap();
    tx.offer_card("c", "ada", "letter", asked).unwrap();
    tx.offers_of_card("c", "ada", asked).unwrap();
    for offer in tx.offers_decided("c", 9, 5).unwrap() {
        tx.put_off_offer("c", &offer, 9).unwrap();
        tx.end_offer("c", &offer).unwrap();
    }
    tx.runs_waiting(&s).unwrap();
    tx.answer_approval(asked, &kiso_plan::approval::CardAnswer::expired(), 5).unwrap();
    tx.expire_approvals(5).unwrap();
    tx.request_cancel(&run).unwrap();
    tx.count_resumed(&run).unwrap();
    let waiting = tx.add_message(&s, MessageRole::User, "x", 1, None).unwrap();
    tx.take_message(&run, waiting).unwrap();
    tx.facts(5).unwrap();
    tx.find_facts("a fact", 5).unwrap();
    tx.find_chunks("no such", 5).unwrap();
    tx.find_chunks("chunk chunky", 5).unwrap();
    tx.find_chunks("chunk", 5).unwrap();
    tx.chunk(1).unwrap();
    tx.chunks_before(None, 5).unwrap();
    tx.chunks_after(0, 5).unwrap();
    tx.has_chunk("a chunk").unwrap();
    tx.fact(1).unwrap();
    tx.facts_before(None, 5).unwrap();
    tx.has_fact("a fact").unwrap();
    tx.session(&s).unwrap();
    let embedder = tx.add_embedder("m").unwrap();
    let vector = Vector::new(&[1.0, -1.0]).unwrap();
    tx.set_vector(1, embedder, Some(&vector)).unwrap();
    tx.nearest(embedder, &vector, 5, 0.0).unwrap();
    tx.set_vector(1, embedder, None).unwrap();
    tx.unembedded(embedder, 5).unwrap();
    tx.tasks_of(&run).unwrap();
    tx.scratchpad_list(&s).unwrap();
    tx.scratchpad_get(&s, "k").unwrap();
    tx.scratchpad_last(&s, "input").unwrap();
    tx.scratchpad_each(&s, |_, _| true).unwrap();
    tx.summary(&s).unwrap();
    tx.title(&s).unwrap();
    tx.count_unsummarized(&s, 5).unwrap();
    tx.first_of_last(&s, 5).unwrap();
    tx.messages_to_summarize(&s, 5, 5).unwrap();
    tx.messages_after(&s, 5, 5).unwrap();
    tx.waiting_messages(&s, 5).unwrap();
    tx.unfinished_runs(None).unwrap();
    tx.unfinished_runs(Some(&s)).unwrap();
    tx.cancel_requested(&run).unwrap();
    tx.usage_total(Scope::Run(&run)).unwrap();
    tx.usage_of(&run).unwrap();
    tx.secrets(&s).unwrap();
    tx.claim_work(5, 6, Some(&s)).unwrap();
    tx.put_off_work(5, 6).unwrap();
    tx.core_memory().unwrap();
    super::life::sends_all(&tx);
    super::spawned::touch_all(&tx);
    let (v, owner) = (session("v"), SessionOwner::from_token("x"));
    tx.claim_session(&owner, &v, 1_000, 1).unwrap();
    tx.list_sessions_of(Some(&owner), &[Placement::Listed], None, 5).unwrap();
    tx.create_run(&v, "x", 1).unwrap();
    let (caller, client_key) = (kiso_plan::plan::CallerScope::Admin, Some("v".to_owned()));
    let message = tx.last_asked(&v).unwrap().unwrap();
    let new = NewVersion { message, text: None, caller, client_key, at_ms: 1, cancel: true, undo: true };
    tx.replace_turn(&new).unwrap().unwrap();
    tx.undo_before(&v).unwrap();
    tx.show_version(message).unwrap().unwrap_err();

    let sent = prepared(&conn);
    assert!(sent.len() > 30, "{sent:#?}");
    for sql in sent {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = plan.parameter_count();
        let nulls = rusqlite::params_from_iter(vec![rusqlite::types::Null; count]);
        let steps: Vec<String> =
            plan.query_map(nulls, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        for step in steps {
            // Scans are allowed over these: the indexes of unfinished runs, of waiting messages and of spawned jobs, which have a
            // row for each active one; an index of the sessions, whose number is limited, when a new one is created; the facts
            // and the scratchpad's numbers in the order of an index, when only the first rows are read; subqueries; the words of
            // an FTS index, which is queried with MATCH; its terms between two bounds; and the signs of the passages' vectors,
            // whose number is limited.
            let bounded = !step.starts_with("SCAN")
                || [
                    "runs_unfinished",
                    "SCAN sessions USING COVERING INDEX",
                    "approvals_pending",
                    "jobs_queued",
                    "jobs_spawned",
                    "facts_by_confidence",
                    ":M",
                    "(subquery",
                    "CONSTANT ROW",
                    "_terms VIRTUAL TABLE INDEX 1537",
                    "memory_signs",
                ]
                .iter()
                .any(|allowed| step.contains(allowed));
            assert!(bounded, "{step}\n{sql}");
            assert!(!step.contains("TEMP B-TREE"), "{step}\n{sql}");
        }
    }
}

#[test]
fn a_statement_is_planned_once_whatever_values_it_gets() {
    let house = House::new();
    let store = house.open();
    let runs = [begin(&store, 1), begin(&store, 2)];
    let conn = connect(&house.path()).unwrap();
    let tx = Tx(View::new(&conn));
    for (n, run) in (1..).zip(&runs) {
        let (s, at_ms) = (session(&format!("s{n}")), i64::from(n));
        tx.add_message(&s, MessageRole::User, "x", at_ms, None).unwrap();
        tx.append_event(run, 1, at_ms, "kind", "{}").unwrap();
        tx.append_event(run, 2, at_ms, "kind", "{}").unwrap();
        tx.messages_after(&s, at_ms, n).unwrap();
        tx.waiting_messages(&s, n).unwrap();
        tx.facts(n).unwrap();
        tx.claim_work(at_ms, at_ms + 1, Some(&s)).unwrap();
        tx.secrets(&s).unwrap();
    }
    assert!(prepared(&conn).len() > 10, "{:#?}", prepared(&conn));
    let again = each_statement(&conn, |statement| {
        // SAFETY: the statement is alive, and nobody else uses it.
        unsafe { rusqlite::ffi::sqlite3_stmt_status(statement, rusqlite::ffi::SQLITE_STMTSTATUS_REPREPARE, 0) }
    });
    let again: Vec<_> = again.into_iter().filter(|(_, times)| *times > 0).collect();
    assert_eq!(again, []);
}

/// Returns the statements that the connection has prepared and cached, except for those of FTS5 itself.
pub(super) fn prepared(conn: &Connection) -> Vec<String> {
    each_statement(conn, |_| ()).into_iter().map(|(sql, ())| sql).collect()
}

/// Returns [`prepared`] with the result of `ask` for each.
fn each_statement<T>(conn: &Connection, ask: impl Fn(*mut rusqlite::ffi::sqlite3_stmt) -> T) -> Vec<(String, T)> {
    let mut found = Vec::new();
    let mut statement = std::ptr::null_mut();
    loop {
        // SAFETY: the connection outlives the loop and nobody else uses it meanwhile; SQLite returns each statement after the
        // previous one, null after the last, and a text that lives as long as its statement.
        let sql = unsafe {
            statement = rusqlite::ffi::sqlite3_next_stmt(conn.handle(), statement);
            if statement.is_null() {
                return found;
            }
            std::ffi::CStr::from_ptr(rusqlite::ffi::sqlite3_sql(statement))
        };
        let sql = sql.to_str().unwrap().to_owned();
        if !sql.contains("_words_") && !sql.contains("'main'.") {
            found.push((sql, ask(statement)));
        }
    }
}
