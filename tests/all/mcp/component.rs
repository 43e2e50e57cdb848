//! Servers that are components: started in the sandbox, with the limits of a skill, in both eras.

use super::runs::{allowed, ask, plan, run, run_with, run_without, say};
use crate::harness::{Home, guest};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

/// The guest `oracle` as a server in a mode, with more lines in its table.
fn oracle(mode: &str, more: &str) -> String {
    let path = guest("oracle");
    format!(
        "[mcp.oracle]\ncomponent = \"{}\"\nallow = [\"ask\"]\nenv = [\"MODE = {mode}\", \"ERA = modern\"]\n{more}",
        path.display()
    )
}

fn legacy(mode: &str) -> String {
    oracle(mode, "").replace("ERA = modern", "ERA = legacy")
}

#[test]
fn a_component_is_a_server_in_both_eras() {
    for tables in [oracle("", ""), legacy(""), legacy("strict")] {
        let home = allowed(&tables);
        // The text also shows that each call is the first of its server: none sees another's state.
        let two = [ask(&json!({ "text": "one" })), ask(&json!({ "text": "two" })), say()];
        let calls = [("planner", "oracle.ask", plan(&two)), ("worker", "call 1: two is 42", "It is 42.".to_owned())];
        run(&home, &tables, &calls).ok().prints(&["It is 42."]);
    }
}

#[test]
fn what_holds_for_other_servers_holds_for_components() {
    let home = Home::new();
    home.config(&oracle("", ""));
    let calls = [
        ("planner", "", plan(&[ask(&json!({ "text": "why" })), say()])),
        ("planner", "tasks[0].skill", plan(&[say()])),
        ("worker", "", "Nobody knows.".to_owned()),
    ];
    run(&home, &oracle("", ""), &calls).ok();
    home.kiso(&["mcp", "allow", "oracle"]).ok();
    let calls = [
        ("planner", "", plan(&[ask(&json!({ "text": 7 })), say()])),
        ("planner", "tasks[0].args.text", plan(&[say()])),
        ("worker", "", "Nobody knows.".to_owned()),
    ];
    run(&home, &oracle("", ""), &calls).ok();
    // The same file with a different description.
    run_without(&home, &oracle("turncoat", ""), "kiso mcp list");
    home.kiso(&["mcp", "list"]).ok().prints(&["oracle.ask  off, because it has changed", "every password"]);
    // Another file is another server.
    let copy = home.file("copy.wasm", std::fs::read(guest("oracle")).unwrap());
    let elsewhere = oracle("", "").replace(&*guest("oracle").to_string_lossy(), &copy.to_string_lossy());
    home.config(&elsewhere);
    home.kiso(&["mcp", "list"]).ok().prints(&["oracle.ask  off until it is allowed"]);
}

#[test]
fn a_component_that_misbehaves_fails_the_call_and_not_the_run() {
    let home = allowed(&oracle("", ""));
    for (mode, more, told) in [
        // Either the waiting client or the sandbox notices the timeout first.
        ("hang", "timeout_s = 2\n", "timeout_s"),
        ("silent", "timeout_s = 2\n", "timeout_s"),
        ("other", "timeout_s = 2\n", "timeout_s"),
        ("flood", "max_result_kib = 64\n", "its answer is longer than 64 KiB"),
        ("huge", "max_result_kib = 64\n", "its answer is longer than 64 KiB"),
        ("drip", "max_result_kib = 4096\n", "it sends more than 10000 messages before its answer"),
        ("die", "", "whether the call was done is not known: it ended"),
        ("crash", "", "it crashed: the oracle fell, on purpose"),
        ("exit3", "", "the oracle is closed"),
        ("not-json", "", "Welcome to the oracle!"),
        ("memory", "memory_mib = 16\n", "more memory than its 16 MiB; the setting is memory_mib of its [mcp.NAME]"),
        ("complain", "", "it wrote more output than its"),
        ("many-tools", "", "it lists more than 1000 tools"),
        ("endless-pages", "", "it lists more than 1000 tools"),
    ] {
        run_without(&home, &oracle(mode, more), told);
        // The next server starts fresh after any failure. It has a normal timeout: it is started twice, for its list and the
        // call.
        let well = if more.starts_with("timeout_s") { "" } else { more };
        run_with(&home, &oracle("", well), "then", "call 1: then is 42");
        // A server of the older era is handled by the same code after its first message; these are the modes that matter there.
        if matches!(mode, "hang" | "flood" | "huge" | "die" | "crash" | "many-tools" | "endless-pages") {
            let older = |mode: &str| oracle(mode, more).replace("ERA = modern", "ERA = legacy");
            run_without(&home, &older(mode), told);
            let well = oracle("", well).replace("ERA = modern", "ERA = legacy");
            run_with(&home, &well, "then", "call 1: then is 42");
        }
    }
}

#[test]
fn the_first_of_two_answers_counts_and_questions_are_answered() {
    let home = allowed(&oracle("", ""));
    run_with(&home, &oracle("twice", ""), "why", "the oracle says 42");
    let trace = home.kiso(&["trace", "last"]).ok().stdout.clone();
    assert!(!trace.contains("or is it 43"), "{trace}");
    run_with(&home, &oracle("ask", ""), "why", "ping 71 {}, roots 72 -32601");
}

#[test]
fn a_component_sees_nothing_of_the_machine() {
    let home = allowed(&oracle("", ""));
    run_with(&home, &oracle("look", ""), "why", "vars ERA=modern; files false; net false");
    let key = "hunter2-of-the-oracle";
    let tables = oracle("look", "env_from = [\"KEY = ORACLE_KEY\"]\n");
    run_without(&home, &tables, "the variable ORACLE_KEY is not set");
    let ran = home.kiso_with(&["mcp", "list"], |command| {
        command.env("ORACLE_KEY", key);
    });
    ran.ok();
    let lines = [
        json!({ "role": "planner", "reply": plan(&[ask(&json!({ "text": "why" })), say()]) }),
        json!({ "role": "worker", "expect_contains": "KEY=[secret ORACLE_KEY]", "reply": "Done." }),
    ];
    let script = home.file("script.jsonl", lines.map(|line| line.to_string() + "\n").concat());
    home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
    let ran = home.kiso_with(&["run", "what is the answer?"], |command| {
        command.env("ORACLE_KEY", key);
    });
    ran.ok().prints(&["Done."]);
}

#[test]
fn a_component_reaches_the_hosts_of_its_table_and_no_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let url = format!("http://{host}/");
    let home = allowed(&oracle("", ""));
    for (more, told) in [
        (String::new(), "refused"),
        (format!("hosts = [\"{host}\"]\n"), "refused"),
        (format!("hosts = [\"{host}\"]\nallow_private = true\n"), "got 200"),
    ] {
        run_with(&home, &oracle("fetch", &more), &url, told);
    }
}

#[test]
fn a_file_that_is_no_server_is_told() {
    let home = Home::new();
    let text = home.file("text.wasm", "no wasm");
    for (path, told) in [
        (text, "this is not WebAssembly"),
        (guest("echo"), "is a kiso skill, and a server is a wasi:cli/command"),
        (home.path().join("none.wasm"), "cannot be read"),
    ] {
        home.config(&format!("[mcp.oracle]\ncomponent = \"{}\"\n", path.display()));
        home.kiso(&["mcp", "list"]).exit(1).says(&["it cannot be started", told]);
        let listed = home.kiso(&["--json", "mcp", "list"]).exit(1).json();
        let error = &listed["error"];
        assert_eq!((&listed["kind"], &error["code"]), (&json!("component"), &json!("unavailable")), "{listed}");
    }
    assert_ne!(home.kiso(&["--json", "doctor", "--offline"]).code, 0);
    home.config(&oracle("", ""));
    let checks = home.kiso(&["--json", "doctor", "--offline"]).ok().json_lines();
    let check = checks.iter().find(|check| check["what"] == "MCP server oracle").unwrap_or(&Value::Null);
    assert!(check["detail"].as_str().unwrap_or_default().contains("runs in the sandbox"), "{check}");
}
