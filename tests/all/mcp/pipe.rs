//! `kiso mcp` over standard input and output.

use super::{CONFIG, Pipe, home, meta, modern, request, text};
use crate::harness::{Home, wait_for};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Requests of a client of the older era, from the handshake to each kind of item.
#[test]
fn a_client_of_the_older_era_is_served() {
    let home = home();
    let mut pipe = Pipe::start(&home, &[]);
    pipe.initialize();
    assert_eq!(pipe.ask("ping", json!({}))["result"], json!({}));

    let tools = pipe.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["run", "exec", "echo", "memory_search"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(
        !names.contains(&"memory_save") && !names.contains(&"scratchpad") && !names.contains(&"file_write"),
        "{names:?}"
    );
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(echo["inputSchema"]["required"], json!(["text"]), "{echo}");

    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let answer = pipe.ask("tools/call", call("echo", json!({ "text": "hello" })));
    assert_eq!(text(&answer), "hello");
    assert_eq!(answer["result"].get("isError"), None, "{answer}");
    assert_eq!(answer["result"].get("resultType"), None, "that is of the newer era");

    let answer =
        pipe.ask("tools/call", call("exec", json!({ "command": "echo one > a.txt; cat a.txt; echo two >&2" })));
    let made = json!({ "exit_code": 0, "stdout": "one\n", "stderr": "two\n" });
    assert_eq!(answer["result"]["structuredContent"], made, "{answer}");
    let failed = pipe.ask("tools/call", call("exec", json!({ "command": "exit 3" })));
    assert_eq!(
        (&failed["result"]["isError"], &failed["result"]["structuredContent"]["exit_code"]),
        (&json!(true), &json!(3))
    );

    let listed = pipe.ask("resources/list", json!({}));
    let uri = "kiso://files/mcp-tester/a.txt";
    assert_eq!(listed["result"]["resources"][0]["uri"], uri, "the session is the client's: {listed}");
    let read = pipe.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "one\n", "{read}");

    let prompts = pipe.ask("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "shout", "{prompts}");
    let prompt = pipe.ask("prompts/get", json!({ "name": "shout", "arguments": { "input": "hi" } }));
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "$ echo hi | tr a-z A-Z", "{prompt}");

    let answer = pipe.ask("tools/call", call("run", json!({ "message": "$ cat a.txt" })));
    assert!(text(&answer).contains("one"), "{answer}");
    let structured = &answer["result"]["structuredContent"];
    assert_eq!((&structured["status"], &structured["session"]), (&json!("done"), &json!("mcp-tester")));
    assert_eq!(pipe.end(), 0);
    let runs = home.kiso(&["session", "list"]);
    assert!(runs.ok().stdout.contains("mcp-tester"), "the session is one like any other: {runs:?}");
}

/// In the newer era there is no handshake, and each request is independent.
#[test]
fn a_client_of_the_newer_era_is_served() {
    let home = home();
    let mut pipe = Pipe::start(&home, &["--session", "work"]);
    let found = pipe.ask("server/discover", modern(json!({})));
    let result = &found["result"];
    assert_eq!((&result["supportedVersions"][0], &result["resultType"]), (&json!("2026-07-28"), &json!("complete")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "kiso", "{found}");
    assert!(result["ttlMs"].as_u64().is_some() && result["cacheScope"] == "public", "{found}");
    let tools = pipe.ask("tools/list", modern(json!({})));
    assert!(tools["result"]["ttlMs"].as_u64().is_some(), "{tools}");
    let answer = pipe.ask("tools/call", modern(json!({ "name": "echo", "arguments": { "text": "a" } })));
    assert_eq!((text(&answer), &answer["result"]["resultType"]), ("a", &json!("complete")));
    let resources = pipe.ask("resources/list", modern(json!({})));
    assert_eq!(resources["result"]["cacheScope"], "private", "{resources}");

    // Methods of the other era are not known here.
    for method in ["ping", "initialize"] {
        assert_eq!(pipe.ask(method, modern(json!({})))["error"]["code"], -32_601);
    }
    assert_eq!(pipe.ask("server/discover", json!({}))["error"]["code"], -32_601);
    let mut wrong = modern(json!({}));
    wrong["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let refused = pipe.ask("tools/list", wrong);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["requested"]),
        (&json!(-32_022), &json!("1900-01-01"))
    );
    assert!(refused["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")), "{refused}");
}

/// Every invalid message gets an error with the reason, and the next request is answered.
#[test]
fn what_is_wrong_is_said_and_the_next_request_is_answered() {
    let home = Home::new();
    home.config(&format!("{CONFIG}[gateway]\nmax_body_kib = 64\n"));
    home.add("echo");
    let mut pipe = Pipe::start(&home, &[]);
    pipe.initialize();
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(100_000));
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":{}1{}}}}}",
        "[".repeat(99),
        "]".repeat(99)
    );
    for (line, code) in [
        ("{", -32_700),
        ("[1, 2]", -32_600),
        ("7", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32_602),
        ("\u{0}", -32_700),
        (&long, -32_600),
        (&deep, -32_600),
    ] {
        pipe.say(line);
        let refused = pipe.hear();
        let shown: String = line.chars().take(80).collect();
        assert_eq!(refused["error"]["code"], code, "{shown}: {refused}");
        assert_eq!(refused["jsonrpc"], "2.0");
    }
    // A notification gets no answer, whatever it contains.
    pipe.say("{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}");
    pipe.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":[]}}");
    pipe.say("");
    for (method, params, code, part) in [
        ("no/such", json!({}), -32_601, "no/such"),
        ("tools/call", json!({}), -32_602, "name"),
        ("tools/call", json!({ "name": "ecko" }), -32_602, "near: echo"),
        ("tools/call", json!({ "name": "echo", "arguments": [1] }), -32_602, "arguments"),
        ("tools/call", json!({ "name": "memory_save", "arguments": {} }), -32_602, "memory_save"),
        ("tools/list", json!({ "cursor": "x" }), -32_602, "cursor"),
        ("resources/read", json!({ "uri": "file:///etc/passwd" }), -32_602, "resource"),
        ("resources/read", json!({ "uri": "kiso://files/default/../../x" }), -32_602, "resource"),
        ("resources/read", json!({ "uri": "kiso://files/default/%2e%2e/x" }), -32_602, "resource"),
        ("prompts/get", json!({ "name": "none" }), -32_602, "none"),
        ("prompts/get", json!({ "name": "shout", "arguments": { "other": "x" } }), -32_602, "other"),
    ] {
        let refused = pipe.ask(method, params.clone());
        assert_eq!(refused["error"]["code"], code, "{method} {params}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(part), "{method} {params}: {refused}");
    }
    // An error about a tool's arguments is a result, so that a model can read it.
    for (name, arguments, part) in [
        ("echo", json!({}), "text"),
        ("echo", json!({ "text": "x".repeat(500) }), "text"),
        ("exec", json!({ "command": "  " }), "command"),
        ("run", json!({ "message": "" }), "message"),
        ("run", json!({ "message": "x", "more": 1 }), "message"),
        ("memory_search", json!({ "query": 7 }), "query"),
    ] {
        let answer = pipe.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        assert_eq!(answer["result"]["isError"], true, "{name}: {answer}");
        assert!(text(&answer).contains(part), "{name}: {answer}");
    }
    assert_eq!(text(&pipe.ask("tools/call", json!({ "name": "echo", "arguments": { "text": "still" } }))), "still");
}

/// Ten calls that never end leave room for others, and stop when their client cancels them.
#[test]
fn ten_spinning_calls_do_not_stop_others() {
    let home = home();
    let mut pipe = Pipe::start(&home, &[]);
    pipe.initialize();
    for id in 100..110 {
        let params = json!({ "name": "command", "arguments": { "mode": "loop" } });
        pipe.say(&request(id, "tools/call", params).to_string());
    }
    for _ in 0..5 {
        assert_eq!(text(&pipe.ask("tools/call", json!({ "name": "echo", "arguments": { "text": "on" } }))), "on");
    }
    for id in 100..110 {
        let params = json!({ "requestId": id, "reason": "enough" });
        pipe.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string());
    }
    // Their messages stop, and their slots are free: this many calls of the tool succeed.
    for _ in 0..5 {
        let answer = pipe.ask("tools/call", json!({ "name": "command", "arguments": { "mode": "list" } }));
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    assert_eq!(pipe.end(), 0);
}

/// Requests beyond the limit are refused, and so is an id that is still in use; other requests are answered.
#[test]
fn a_flood_of_requests_is_bounded() {
    let home = home();
    let mut pipe = Pipe::start(&home, &[]);
    pipe.initialize();
    for id in 100..170 {
        let params = json!({ "name": "command", "arguments": { "mode": "loop" } });
        pipe.say(&request(id, "tools/call", params).to_string());
    }
    // Two answers with the same id could not be distinguished.
    pipe.say(&request(163, "ping", json!({})).to_string());
    let mut refused: Vec<(i64, i64)> = Vec::new();
    while refused.len() < 7 {
        let heard = pipe.hear();
        refused.extend(heard["error"]["code"].as_i64().map(|code| (heard["id"].as_i64().unwrap(), code)));
    }
    let flood: Vec<_> = (164..170).map(|id| (id, 429)).collect();
    assert_eq!((&refused[..6], refused[6]), (&flood[..], (163, -32_600)));
}

/// A client is notified when anybody installs a skill, in both eras.
#[test]
fn a_client_hears_of_a_new_skill() {
    let home = Home::new();
    home.config(CONFIG);
    let (mut old, mut new) = (Pipe::start(&home, &[]), Pipe::start(&home, &[]));
    old.initialize();
    new.say(
        &request(
            "l",
            "subscriptions/listen",
            json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } }),
        )
        .to_string(),
    );
    let subscription = json!({ "io.modelcontextprotocol/subscriptionId": "l" });
    let acknowledged = new.hear();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(acknowledged["params"]["_meta"], subscription);
    assert!(!old.ask("tools/list", json!({})).to_string().contains("\"echo\""));
    home.add("echo");
    assert_eq!(old.hear()["method"], "notifications/tools/list_changed");
    let told = new.hear();
    assert_eq!(
        (&told["method"], &told["params"]["_meta"]),
        (&json!("notifications/tools/list_changed"), &subscription)
    );
    assert!(old.ask("tools/list", json!({})).to_string().contains("\"echo\""));
    new.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "l" } }).to_string(),
    );
    assert!(new.ask("tools/list", modern(json!({}))).to_string().contains("\"echo\""), "the stream is over");
}

/// A run reports its progress, and stops when it is cancelled.
#[test]
fn a_run_tells_its_progress_and_can_be_cancelled() {
    let home = home();
    let mut pipe = Pipe::start(&home, &["--session", "runs"]);
    pipe.initialize();
    let params = json!({
        "name": "run", "arguments": { "message": "$ echo begun > begun; sleep 1000" }, "_meta": { "progressToken": "p" },
    });
    pipe.say(&request(50, "tools/call", params).to_string());
    let mut last = 0;
    for _ in 0..2 {
        let told = pipe.hear();
        assert_eq!(
            (&told["method"], &told["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p"))
        );
        let progress = told["params"]["progress"].as_i64().unwrap();
        assert!(progress > last && told["params"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
        last = progress;
    }
    wait_for("the command", || home.work("runs").join("begun").exists().then_some(()));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 50 } });
    pipe.say(&cancelled.to_string());
    let status = wait_for("the run's end", || {
        let shown = home.kiso(&["--json", "trace"]);
        shown.stdout.contains("\"cancelled\"").then_some(shown.stdout)
    });
    assert!(status.contains("sleep"), "{status}");
    pipe.say(
        &request(51, "tools/call", json!({ "name": "exec", "arguments": { "command": "echo free" } })).to_string(),
    );
    let answer = loop {
        // Progress messages already sent may still arrive.
        let heard = pipe.hear();
        if heard.get("id").is_some() {
            break heard;
        }
    };
    assert_eq!((&answer["id"], answer["result"]["structuredContent"]["stdout"].as_str()), (&json!(51), Some("free\n")));
}

/// A script that sends everything at once and closes its end gets its answers.
#[test]
fn a_client_that_closes_has_its_answers() {
    let home = home();
    let mut pipe = Pipe::start(&home, &[]);
    for id in 1..9 {
        let params = modern(json!({ "name": "echo", "arguments": { "text": id.to_string() } }));
        pipe.say(&request(id, "tools/call", params).to_string());
    }
    pipe.input = None;
    let mut heard: Vec<i64> = (1..9).map(|_| pipe.hear()["id"].as_i64().unwrap()).collect();
    heard.sort_unstable();
    assert_eq!(heard, (1..9).collect::<Vec<_>>());
    assert_eq!(pipe.end(), 0);
}

/// A client that exits without reading its answers causes no error.
#[test]
fn a_client_that_reads_no_more_has_gone() {
    let home = home();
    let mut command = home.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kiso starts");
    drop(child.stdout.take());
    let params = modern(json!({ "name": "echo", "arguments": { "text": "nobody reads this" } }));
    let line = format!("{}\n", request(1, "tools/call", params));
    child.stdin.take().expect("it is a pipe").write_all(line.as_bytes()).expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
