//! A process that is killed in the middle of a step, and not at its end.

use super::*;

/// What a run was in the middle of, and what its critic is told afterwards.
struct Middle {
    tasks: Vec<Value>,
    /// Replies between the plan and the death.
    before: Replies,
    /// Replies after it, up to the message.
    after: Replies,
    /// What is on disk when the process is killed.
    effects: &'static str,
    /// Kind of the last event then.
    last: &'static str,
    /// Status of the task in the end.
    status: &'static str,
}

/// A command line that is never done after its effect, a skill that takes its time, and the second of three calls.
#[test]
fn killed_in_the_middle_of_what_it_does() {
    const ENDLESS: &str = "echo one >> effects; while :; do :; done";
    let ok = || ("reviewer", text(&json!({ "status": "ok" })));
    let told = |fix: &str| {
        let verdict = json!({ "status": "needs_fix", "reason": "nobody saw its end", "inject": [exec(fix)] });
        ("reviewer", json!({ "text": verdict.to_string(), "expect_contains": "interrupted" }))
    };
    let act = json!({ "type": "act", "detail": "set three marks", "review": true, "expect": "all" });
    let brief = json!({
        "goal": "marks", "required": [], "delta": "all", "success": ["all are there"], "context": { "discovery": [], "credentials": [], "artifacts": [], "blockers": [] },
        "action": "set them",
    });
    let call = |line: &str| json!({ "name": "exec", "args": { "command": line } });
    let batch = [call(&mark("zero")), call(ENDLESS), call(&mark("two"))];
    let looks = [call(&again("zero")), call(&again("one")), call(&again("two"))];
    let middles = [
        Middle {
            tasks: vec![exec(ENDLESS)],
            before: vec![],
            after: vec![told(&again("one")), ok()],
            effects: "one\n",
            last: "started",
            status: "interrupted",
        },
        Middle {
            tasks: vec![exec("echo one >> effects"), skill(json!({ "mode": "slow", "amount": 9_000 }))],
            before: vec![ok()],
            after: vec![told("echo looked"), ok()],
            effects: "one\n",
            last: "started",
            status: "interrupted",
        },
        Middle {
            tasks: vec![act],
            before: vec![("reasoner", text(&brief)), ("actor", json!({ "calls": batch }))],
            after: vec![
                (
                    "actor",
                    json!({ "calls": looks, "expect_contains": ["interrupted", "may or may not have taken effect"] }),
                ),
                ("actor", json!({ "text": "All three are there." })),
                ok(),
            ],
            effects: "zero\none\n",
            last: "calls_started",
            status: "done",
        },
    ];
    for Middle { mut tasks, before, after, effects, last, status } in middles {
        let home = home();
        let cut = tasks.len();
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
        running.until("the middle of the work", begun);
        running.kill();
        server.finish();

        let mut replies = after;
        replies.push(("worker", json!({ "text": "It is there." })));
        replies.push(("titler", json!({ "text": "Marks" })));
        let server = serve(&home, &replies, "");
        let ran = home.kiso(&RESUME);
        assert_eq!(server.problems(), Vec::<String>::new(), "{ran:?}");
        ran.ok().prints(&["It is there."]);
        let (now, _) = ended(&home);
        assert_eq!(now.tasks[cut - 1].1, status, "{now:#?}");
        let mut marks: Vec<_> = now.files["effects"].lines().collect();
        let written = marks.len();
        marks.sort_unstable();
        marks.dedup();
        assert_eq!(marks.len(), written, "no effect happened twice: {now:#?}");
    }
}
