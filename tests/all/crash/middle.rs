//! A process is killed in the middle of a step instead of at its end.

use super::*;

/// A run and the point at which it is interrupted.
struct Middle {
    tasks: Vec<Value>,
    /// Replies between the plan and the kill.
    before: Replies,
    /// Replies after the kill, up to the message.
    after: Replies,
    /// The effects on disk when the process is killed.
    effects: &'static str,
    /// Kind of the last event at that time.
    last: &'static str,
    /// The effects on disk in the end.
    marks: &'static str,
}

/// A command line that waits after its first change, a slow skill, and the second of three calls: their partial effects are
/// rolled back, and all are done once.
#[test]
fn killed_in_the_middle_of_what_it_does() {
    const WAITS: &str = "echo one >> effects; until [ -e go ]; do :; done; echo more >> effects";
    let ok = || ("reviewer", text(&json!({ "status": "ok" })));
    let act = json!({ "type": "act", "detail": "set three marks", "review": true, "expect": "all" });
    let call = |line: &str| json!({ "name": "exec", "args": { "command": line } });
    let batch = [call(&mark("zero")), call(WAITS), call(&mark("two"))];
    let middles = [
        Middle {
            tasks: vec![exec(WAITS)],
            before: vec![],
            after: vec![ok()],
            effects: "one\n",
            last: "started",
            marks: "one\nmore\n",
        },
        Middle {
            tasks: vec![exec("echo one >> effects"), skill(json!({ "mode": "slow", "amount": 6_000 }))],
            before: vec![ok()],
            after: vec![ok()],
            effects: "one\n",
            last: "started",
            marks: "one\n",
        },
        Middle {
            // The command line is followed by a message that the model writes.
            tasks: vec![act, json!({ "type": "exec", "detail": "true" })],
            before: vec![("actor", json!({ "calls": batch }))],
            after: vec![("actor", json!({ "text": "All three are there." })), ok()],
            effects: "zero\none\n",
            last: "calls_started",
            marks: "zero\none\nmore\ntwo\n",
        },
    ];
    for Middle { mut tasks, before, after, effects, last, marks } in middles {
        let home = home();
        let cut = tasks.iter().position(|task| task["type"] == "act").map_or(tasks.len(), |place| place + 1);
        tasks.push(message());
        let mut replies = vec![("router", routing("high")), ("planner", plan(&tasks))];
        replies.extend(before);
        let server = serve(&home, &replies, "");
        let mut running = Running::start(home.command(&["run", MESSAGE]));
        let begun = || {
            let path = home.path().join("store.db");
            let Ok(conn) = Connection::open(path) else { return false };
            let sql = "SELECT kind, (SELECT count(*) FROM events WHERE run = 1 AND kind = 'started') FROM events
                WHERE run = 1 ORDER BY seq DESC LIMIT 1";
            let found = conn.query_row(sql, (), |row| Ok((row.get::<_, String>(0)?, row.get::<_, isize>(1)?)));
            let there = std::fs::read_to_string(home.work("default").join("effects")).unwrap_or_default();
            found.is_ok_and(|(kind, started)| kind == last && started == cut as isize) && there == effects
        };
        wait_on(&mut running.0, "the middle of the work", begun);
        running.kill();
        server.finish();
        std::fs::write(home.work("default").join("go"), "").unwrap();

        let mut replies = after;
        replies.push(("worker", json!({ "text": "It is there." })));
        replies.push(("titler", json!({ "text": "Marks" })));
        let server = serve(&home, &replies, "");
        let ran = home.kiso(&RESUME);
        assert_eq!(server.problems(), Vec::<String>::new(), "{ran:?}");
        ran.ok().prints(&["It is there."]);
        let (now, _) = ended(&home);
        assert!(now.tasks.iter().all(|(_, status)| status == "done"), "{now:#?}");
        assert_eq!(now.files["effects"], marks);
    }
}
