//! `/mcp` of the daemon: Streamable HTTP.

use super::{CONFIG, MODERN, home, meta, modern, request, text};
use crate::harness::{Home, wait_for};
use crate::served::{Answer, Served};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A daemon with a token, and a second token.
fn served(home: &Home) -> (Served, String) {
    let mut served = Served::start(home);
    let add = |name: &str| home.kiso(&["token", "add", name]).ok().stdout.trim().to_owned();
    served.token = Some(add("laptop"));
    (served, add("other"))
}

const BOTH: &str = "accept: application/json, text/event-stream\r\n";

/// Sends a request; the response is read as it arrives.
fn begin(served: &Served, method: &str, query: &str, headers: &str, body: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = served.connect();
    let token = match headers.contains("authorization") {
        true => String::new(),
        false => served.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default(),
    };
    let head = format!(
        "{method} /mcp{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{token}{headers}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head, reader)
}

fn ask(served: &Served, method: &str, query: &str, headers: &str, body: &str) -> Answer {
    let (head, mut reader) = begin(served, method, query, headers, body);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    Answer::parse(format!("{head}{rest}").as_bytes()).unwrap()
}

/// The headers that repeat fields of a message of the newer era.
fn repeated(message: &Value) -> String {
    let method = message["method"].as_str().unwrap();
    let named = message["params"].get("name").or(message["params"].get("uri")).and_then(Value::as_str);
    let named = named.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    format!("{BOTH}mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{named}")
}

/// Sends a request of the newer era.
fn post(served: &Served, method: &str, params: Value) -> Answer {
    let message = request(1, method, modern(params));
    ask(served, "POST", "", &repeated(&message), &message.to_string())
}

fn initialize() -> Value {
    let client = json!({ "name": "tester", "version": "1" });
    request(0, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }))
}

/// Starts a session of the older era. Returns its headers.
fn handshake(served: &Served) -> String {
    let answer = ask(served, "POST", "", BOTH, &initialize().to_string());
    assert_eq!(answer.expect(200)["result"]["protocolVersion"], "2025-11-25");
    let id = answer.headers.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("it has a session");
    let session = format!("{BOTH}mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let said = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let accepted = ask(served, "POST", "", &session, &said.to_string());
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    session
}

/// The next message of a stream.
#[track_caller]
fn next(reader: &mut impl BufRead) -> Value {
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.trim_end().strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn a_client_of_the_older_era_has_a_session() {
    let home = home();
    let (served, other) = served(&home);
    let session = handshake(&served);
    let post = |message: &Value| ask(&served, "POST", "", &session, &message.to_string());
    let call = |name: &str, arguments: Value| request(7, "tools/call", json!({ "name": name, "arguments": arguments }));
    let answer = post(&call("echo", json!({ "text": "hello" }))).expect(200);
    assert_eq!((&answer["id"], text(&answer)), (&json!(7), "hello"));
    let answer = post(&call("exec", json!({ "command": "echo x > x.txt" }))).expect(200);
    assert_eq!(answer["result"]["structuredContent"]["exit_code"], 0, "{answer}");
    let listed = post(&request(8, "resources/list", json!({}))).expect(200);
    assert_eq!(listed["result"]["resources"][0]["uri"], "kiso://files/mcp-laptop-tester/x.txt");
    // The same file in kiso's own API.
    let files = served.get("/sessions/mcp-laptop-tester/files");
    assert_eq!(files["items"][0]["path"], "x.txt", "{files}");

    // Another token cannot use the session, and a request without its id has none.
    let stolen = format!("{session}authorization: Bearer {other}\r\n");
    assert_eq!(ask(&served, "POST", "", &stolen, &request(1, "ping", json!({})).to_string()).status, 404);
    assert_eq!(ask(&served, "POST", "", BOTH, &request(1, "ping", json!({})).to_string()).status, 400);
    // Notifications outside of requests: one stream for each session.
    let (head, mut stream) = begin(&served, "GET", "", &session, "");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
    assert_eq!(ask(&served, "GET", "", &session, "").status, 409);
    assert!(home.kiso(&["skill", "remove", "echo"]).ok().code == 0);
    assert_eq!(next(&mut stream)["method"], "notifications/tools/list_changed");
    assert_eq!(ask(&served, "DELETE", "", &stolen, "").status, 404);
    assert_eq!(ask(&served, "DELETE", "", &session, "").status, 204);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(post(&request(9, "ping", json!({}))).status, 404, "its client begins a new one");
    for method in ["GET", "DELETE"] {
        assert_eq!(ask(&served, method, "", BOTH, "").status, 405);
    }
}

#[test]
fn a_client_of_the_newer_era_says_everything_with_each_request() {
    let home = home();
    let (served, _) = served(&home);
    let found = post(&served, "server/discover", json!({})).expect(200);
    assert_eq!(found["result"]["supportedVersions"][0], MODERN, "{found}");
    let answer = post(&served, "tools/call", json!({ "name": "echo", "arguments": { "text": "hello" } }));
    assert!(!answer.headers.contains("mcp-session-id"), "{answer:?}");
    assert_eq!(text(&answer.expect(200)), "hello");
    let message = request(1, "tools/call", modern(json!({ "name": "exec", "arguments": { "command": "pwd > here" } })));
    assert_eq!(ask(&served, "POST", "?session=named", &repeated(&message), &message.to_string()).status, 200);
    assert_eq!(served.get("/sessions/named/files")["items"][0]["path"], "here");
    let bad = ask(&served, "POST", "?session=../x", &repeated(&message), &message.to_string());
    bad.refuses(400, "bad_request");

    // Headers and message must agree.
    let echo = request(1, "tools/call", modern(json!({ "name": "echo", "arguments": { "text": "x" } })));
    let body = echo.to_string();
    let good = repeated(&echo);
    let mismatched = [
        good.replace("mcp-name: echo", "mcp-name: exec"),
        good.replace("mcp-name: echo\r\n", ""),
        good.replace("mcp-method: tools/call", "mcp-method: tools/list"),
        good.replace("mcp-method: tools/call\r\n", ""),
        good.replace(&format!("mcp-protocol-version: {MODERN}\r\n"), ""),
        good.replace(MODERN, "2025-11-25"),
        good.replace(MODERN, "1900-01-01"),
        good.replace("mcp-name: echo", "mcp-name: =?base64?!!?="),
    ];
    for headers in mismatched {
        let refused = ask(&served, "POST", "", &headers, &body).expect(400);
        assert_eq!(refused["error"]["code"], -32_020, "{headers}: {refused}");
    }
    let encoded = good.replace("mcp-name: echo", "mcp-name: =?base64?ZWNobw==?=");
    assert_eq!(text(&ask(&served, "POST", "", &encoded, &body).expect(200)), "x");
    let unknown = body.replace(MODERN, "1900-01-01");
    let refused = ask(&served, "POST", "", &good.replace(MODERN, "1900-01-01"), &unknown).expect(400);
    assert_eq!(refused["error"]["code"], -32_022, "{refused}");
    let bare = request(1, "tools/list", json!({}));
    let refused = ask(&served, "POST", "", &format!("{BOTH}mcp-protocol-version: {MODERN}\r\n"), &bare.to_string());
    assert_eq!(refused.expect(400)["error"]["code"], -32_602);
    assert_eq!(post(&served, "no/such", json!({})).expect(404)["error"]["code"], -32_601);
    assert_eq!(post(&served, "tools/call", json!({ "name": "none" })).expect(200)["error"]["code"], -32_602);
}

#[test]
fn a_door_has_a_lock() {
    let home = home();
    let (served, _) = served(&home);
    let message = request(1, "server/discover", modern(json!({})));
    let (body, headers) = (message.to_string(), repeated(&message));
    let none = ask(&served, "POST", "", &format!("{headers}authorization: Bearer kiso_none\r\n"), &body);
    none.refuses(401, "unauthorized");
    for page in ["origin: https://example.org\r\n", "sec-fetch-site: cross-site\r\n"] {
        ask(&served, "POST", "", &format!("{headers}{page}"), &body).refuses(403, "forbidden");
    }
    let own = format!("{headers}origin: http://{}\r\n", served.address);
    assert_eq!(ask(&served, "POST", "", &own, &body).status, 200);
    assert_eq!(ask(&served, "POST", "", "accept: text/html\r\n", &body).status, 406);
    assert_eq!(ask(&served, "POST", "", &headers, "{").expect(400)["error"]["code"], -32_700);
    assert_eq!(ask(&served, "POST", "", &headers, "[]").expect(400)["error"]["code"], -32_600);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(3 << 20));
    assert_eq!(ask(&served, "POST", "", &headers, &large).status, 413);
}

/// Calls that never end, from clients that disconnect: they do not disturb other clients or the daemon.
#[test]
fn spinning_calls_of_clients_that_hang_up_are_stopped() {
    let home = home();
    let (served, _) = served(&home);
    let spin = request(1, "tools/call", modern(json!({ "name": "command", "arguments": { "mode": "loop" } })));
    let head = |message: &Value| {
        let body = message.to_string();
        let token = served.token.as_deref().unwrap();
        let (headers, length) = (repeated(message), body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n{headers}content-length: {length}\r\n\r\n{body}",
            served.address
        )
    };
    let spinning: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(head(&spin).as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..3 {
        let answer = post(&served, "tools/call", json!({ "name": "echo", "arguments": { "text": "on" } }));
        assert_eq!(text(&answer.expect(200)), "on");
    }
    drop(spinning);
    // The tool's slots are free again.
    let answer = post(&served, "tools/call", json!({ "name": "command", "arguments": { "mode": "list" } }));
    assert!(answer.expect(200)["result"]["content"].is_array());
}

#[test]
fn a_run_has_files() {
    let home = home();
    let (served, _) = served(&home);
    let run = |args: Value| {
        let message = request(3, "tools/call", modern(json!({ "name": "run", "arguments": args })));
        let (_, mut stream) = begin(&served, "POST", "?session=files", &repeated(&message), &message.to_string());
        next(&mut stream)
    };
    let image = "data:image/png;base64,iVBORw==";
    let files = json!([{ "name": "a/notes.txt", "data": "b24gdGhlIG1hdA==" }, { "data": image }]);
    let told = run(json!({ "message": "$ cat notes.txt; ls", "files": files }));
    assert!(text(&told).contains("on the mat"), "{told}");
    let said = served.get("/sessions/files/messages")["items"][0]["text"].as_str().unwrap().to_owned();
    assert!(said.starts_with("$ cat notes.txt; ls\n\nFiles: notes.txt, image-") && said.ends_with(".png"), "{said}");
    for (files, why) in [
        (json!([{ "name": "a.txt" }]), "a file has `data`"),
        (json!([{ "name": "a.txt", "data": "%" }]), "not base64"),
        (json!(vec![json!({ "data": image }); 17]), "at most 16 files"),
        (json!("a"), "`files` is a list"),
    ] {
        let told = run(json!({ "message": "hello", "files": files }));
        assert!(told["result"]["isError"] == true && text(&told).contains(why), "{told}");
    }
}

#[test]
fn a_run_is_a_message_that_is_followed() {
    let home = home();
    let (served, _) = served(&home);
    let run = |message: &str| {
        let mut params = modern(json!({ "name": "run", "arguments": { "message": message } }));
        params["_meta"]["progressToken"] = json!(5);
        request(3, "tools/call", params)
    };
    let message = run("$ echo one two");
    let (head, mut stream) = begin(&served, "POST", "?session=runs", &repeated(&message), &message.to_string());
    assert!(head.contains("text/event-stream") && head.contains("x-accel-buffering: no"), "{head}");
    let mut told = next(&mut stream);
    let mut pieces = 0;
    while told.get("id").is_none() {
        assert_eq!((&told["method"], &told["params"]["progressToken"]), (&json!("notifications/progress"), &json!(5)));
        pieces += 1;
        told = next(&mut stream);
    }
    assert!(pieces > 0 && text(&told).contains("one two"), "{told}");
    let structured = &told["result"]["structuredContent"];
    assert_eq!((&structured["status"], &structured["session"]), (&json!("done"), &json!("runs")));
    let id = structured["run"].as_str().unwrap();
    assert_eq!(served.get("/runs?session=runs")["items"][0]["id"], id);
    let said = served.get("/sessions/runs/messages");
    assert_eq!(said["items"].as_array().unwrap().len(), 2, "{said}");

    // In the newer era, disconnecting cancels the request.
    let message = run("$ echo begun > begun; sleep 1000");
    let hung_up = begin(&served, "POST", "?session=gone", &repeated(&message), &message.to_string());
    wait_for("the command", || home.work("gone").join("begun").exists().then_some(()));
    drop(hung_up);
    let ended = |session: &str| {
        wait_for("the run's end", || {
            let runs = served.get(&format!("/runs?session={session}"));
            Some(runs["items"][0]["status"].clone()).filter(|status| *status != "running" && !status.is_null())
        })
    };
    assert_eq!(ended("gone"), "cancelled");

    // In the older era, a notification cancels it.
    let session = handshake(&served);
    let message = request(
        9,
        "tools/call",
        json!({ "name": "run", "arguments": { "message": "$ echo begun > begun; sleep 1000" } }),
    );
    let (_, mut stream) = begin(&served, "POST", "?session=older", &session, &message.to_string());
    wait_for("the command", || home.work("older").join("begun").exists().then_some(()));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    assert_eq!(ask(&served, "POST", "", &session, &cancelled.to_string()).status, 202);
    assert_eq!(ended("older"), "cancelled");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("\"id\":9"), "what was cancelled has no answer: {rest}");
}

#[test]
fn a_stream_of_changes_ends_with_a_result() {
    let home = Home::new();
    home.config(CONFIG);
    let (served, _) = served(&home);
    let wanted = json!({ "toolsListChanged": true, "resourcesListChanged": true });
    let message = request("l", "subscriptions/listen", json!({ "_meta": meta(), "notifications": wanted }));
    let (_, mut stream) = begin(&served, "POST", "", &repeated(&message), &message.to_string());
    let acknowledged = next(&mut stream);
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }), "{acknowledged}");
    home.add("echo");
    assert_eq!(next(&mut stream)["method"], "notifications/tools/list_changed");
    served.terminate();
    let closed = next(&mut stream);
    assert_eq!((&closed["id"], &closed["result"]["resultType"]), (&json!("l"), &json!("complete")));
}
