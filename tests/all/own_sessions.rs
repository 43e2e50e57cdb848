//! A token of scope `chat`, and a browser logged in by a link with that scope, read only the sessions that they started, through
//! every interface.

use crate::harness::{Home, wait_until};
use crate::mcp::{modern, request};
use crate::served::{Answer, Served, ask};
use serde_json::{Value, json};
use std::io::{Read, Write};

/// A word that is only in the owner's session.
const SECRET: &str = "zanzibar";

struct Stage {
    home: Home,
    served: Served,
    phone: String,
    other: String,
}

/// The owner has a session with a message, a file, a run, a schedule and shared files; `phone` and `other` may chat.
fn stage() -> Stage {
    let home = Home::new();
    home.config("[daemon]\ndebounce_ms = 20\n");
    home.kiso(&["run", "-s", "mine", &format!("$ echo {SECRET} | tee note.txt")]).ok();
    home.kiso(&["schedule", "add", "tea", "every day at 4 pm", &format!("$ echo {SECRET}"), "--session", "mine"]).ok();
    let add = |args: &[&str]| home.kiso(&[&["token", "add"], args].concat()).ok().stdout.trim().to_owned();
    let (phone, other, root) = (add(&["phone"]), add(&["other"]), add(&["root", "--scope", "admin"]));
    let mut served = Served::start(&home);
    served.token = Some(root);
    Stage { home, served, phone, other }
}

impl Stage {
    #[track_caller]
    fn by(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        ask(&self.served.address, Some(token), method, path, body.map(|body| body.to_string()).as_deref()).unwrap()
    }

    /// Sends a message with a token and waits for its reply.
    #[track_caller]
    fn say(&self, token: &str, session: &str, text: &str) -> Value {
        let sent = self.by(token, "POST", "/msg", Some(json!({ "session": session, "text": text }))).expect(202);
        self.served.reply(sent["message"].as_i64().unwrap());
        sent
    }
}

#[test]
fn a_chat_token_reads_nothing_of_the_owners_session() {
    let stage = stage();
    let run = stage.served.get("/runs?session=mine")["items"][0]["id"].as_str().unwrap().to_owned();
    let message = stage.served.send("mine", "$ echo again");
    stage.served.reply(message);
    stage.say(&stage.phone, "theirs", "$ echo hello > hello.txt; cat hello.txt");

    // Paths of another session, run or message answer as if it did not exist.
    for (method, path, body) in [
        ("GET", "/sessions/mine/messages", None),
        ("GET", "/status/mine", None),
        ("GET", "/sessions/mine/export", None),
        ("GET", "/sessions/mine/files", None),
        ("GET", "/sessions/mine/files/note.txt", None),
        ("PUT", "/sessions/mine/files/new.txt", Some(json!({}))),
        ("DELETE", "/sessions/mine/files/note.txt", None),
        ("GET", "/sessions/mine/undo", None),
        ("POST", "/sessions/mine/undo", Some(json!({}))),
        ("GET", "/sessions/mine/folders", None),
        ("POST", "/sessions/mine/folders", Some(json!({ "name": "x" }))),
        ("POST", "/sessions/mine/deliver", Some(json!({ "file": "note.txt", "folder": "shared" }))),
        ("POST", "/sessions/mine/read", Some(json!({ "message": 1 }))),
        ("PATCH", "/sessions/mine", Some(json!({ "title": "taken" }))),
        ("POST", "/msg", Some(json!({ "session": "mine", "text": "$ cat note.txt" }))),
        ("POST", "/msg", Some(json!({ "session": "mine", "text": "/trace" }))),
        ("POST", "/skills/data/call", Some(json!({ "session": "mine", "args": { "file": "note.txt" } }))),
        ("GET", "/search?q=zanzibar&session=mine", None),
        ("GET", "/runs?session=mine", None),
        ("GET", "/events?session=mine", None),
        ("GET", "/approvals?session=mine", None),
        ("GET", "/remembered_approvals?session=mine", None),
        ("PATCH", "/schedules/tea", Some(json!({ "message": "x" }))),
        ("GET", "/schedules/tea/receipts", None),
        ("POST", "/schedules/tea/run", None),
        ("POST", "/schedules/tea/pause", None),
        ("POST", "/schedules/tea/resume", None),
        ("DELETE", "/schedules/tea", None),
        ("GET", "/v1/models/kiso/mine", None),
    ] {
        let answer = stage.by(&stage.phone, method, path, body);
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
        assert!(!answer.body.contains(SECRET), "{method} {path}: {}", answer.body);
    }
    let paths = [
        ("GET", format!("/runs/{run}")),
        ("GET", format!("/runs/{run}/trace")),
        ("GET", format!("/runs/{run}/undo")),
        ("GET", format!("/messages/{message}")),
    ];
    for (method, path) in paths {
        stage.by(&stage.phone, method, &path, None).refuses(404, "not_found");
        stage.served.request(method, &path, None).expect(200);
    }
    for path in ["cancel", "retry", "undo", "redo"] {
        stage.by(&stage.phone, "POST", &format!("/runs/{run}/{path}"), Some(json!({}))).refuses(404, "not_found");
    }

    // It cannot start a session of a kind in which kiso works for somebody else.
    for name in ["schedule.milk", "hook.mail", "channel.desk", "sub.a.0"] {
        let sent = stage.by(&stage.phone, "POST", "/msg", Some(json!({ "session": name, "text": "$ true" })));
        sent.refuses(404, "not_found");
        stage
            .by(&stage.phone, "PUT", &format!("/sessions/{name}/files/a.txt"), Some(json!("x")))
            .refuses(404, "not_found");
    }
    // Listings contain only its own items.
    let sessions = stage.by(&stage.phone, "GET", "/sessions", None).expect(200);
    let names: Vec<&Value> = sessions["items"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["theirs"]);
    let runs = stage.by(&stage.phone, "GET", "/runs", None).expect(200);
    assert!(runs["items"].as_array().unwrap().iter().all(|one| one["session"] == "theirs"), "{runs}");
    for path in ["/search?q=zanzibar", "/schedules", "/approvals?all=true", "/remembered_approvals"] {
        let listed = stage.by(&stage.phone, "GET", path, None).expect(200);
        assert_eq!(listed["items"], json!([]), "{path}");
    }
    assert_ne!(stage.by(&stage.phone, "GET", "/search?q=hello", None).expect(200)["items"], json!([]));
    let models = stage.by(&stage.phone, "GET", "/v1/models", None).expect(200).to_string();
    assert!(models.contains("kiso/theirs") && !models.contains("kiso/mine"), "{models}");

    // A second token reads none of them either, and the owner reads everything.
    stage.by(&stage.other, "GET", "/sessions/theirs/messages", None).refuses(404, "not_found");
    assert_eq!(stage.by(&stage.other, "GET", "/sessions", None).expect(200)["items"], json!([]));
    assert_eq!(stage.served.get("/sessions")["items"].as_array().unwrap().len(), 2);
    stage.served.get("/sessions/theirs/messages");

    // The session of an earlier schedule with the same name is not given to it.
    stage.home.kiso(&["schedule", "run", "tea"]).ok();
    wait_until("the schedule", || {
        let all = stage.home.kiso(&["--json", "schedule", "receipts", "tea"]).ok().json_lines();
        all.iter().any(|receipt| receipt["state"] == "done")
    });
    stage.home.kiso(&["schedule", "remove", "tea"]).ok();
    let tea = json!({ "name": "tea", "when": "@daily", "message": "$ cat note.txt", "session": "theirs" });
    stage.by(&stage.phone, "POST", "/schedules", Some(tea)).refuses(409, "taken");
    stage.by(&stage.phone, "GET", "/sessions/schedule.tea/messages", None).refuses(404, "not_found");
    stage.served.get("/sessions/schedule.tea/messages");
}

#[test]
fn a_chat_token_uses_what_it_began() {
    let stage = stage();
    let by = |method: &str, path: &str, body| stage.by(&stage.phone, method, path, body);
    by("PUT", "/sessions/theirs/files/a.txt", Some(json!("x"))).expect(201);
    by("GET", "/sessions/theirs/files/a.txt", None).expect(200);
    let sent = stage.say(&stage.phone, "theirs", "$ echo b > b.txt; echo done");
    let run = by("GET", "/runs?session=theirs", None).expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    for path in ["trace", "undo"] {
        by("GET", &format!("/runs/{run}/{path}"), None).expect(200);
    }
    by("GET", &format!("/runs/{run}"), None).expect(200);
    by("GET", &format!("/messages/{}", sent["message"]), None).expect(200);
    by("POST", &format!("/runs/{run}/undo"), Some(json!({}))).expect(200);
    for path in ["/sessions/theirs/messages", "/status/theirs", "/sessions/theirs/files", "/sessions/theirs/folders"] {
        by("GET", path, None).expect(200);
    }
    // A schedule must report to one of the token's sessions; otherwise nobody could read the replies.
    let schedule = |session: Option<&str>| json!({ "name": "news", "when": "every weekday at 8", "message": "$ echo news", "session": session });
    by("POST", "/schedules", Some(schedule(Some("mine")))).refuses(404, "not_found");
    by("POST", "/schedules", Some(schedule(None))).refuses(400, "bad_request");
    by("POST", "/schedules", Some(schedule(Some("theirs")))).expect(201);
    assert_eq!(by("GET", "/schedules", None).expect(200)["items"][0]["name"], "news");
    by("PATCH", "/schedules/news", Some(json!({ "session": "mine" }))).refuses(404, "not_found");
    assert_eq!(by("DELETE", "/schedules/news", None).status, 204);
    // Shared files are for everybody; a token that may not read `default` has another session for undoing its changes.
    stage.home.kiso(&["run", "$ true"]).ok();
    let put = by("PUT", "/files/list.txt", Some(json!("x"))).expect(201);
    let keeper = put["session"].as_str().unwrap().to_owned();
    assert!(keeper.starts_with("shared-files-"), "{put}");
    by("POST", &format!("/sessions/{keeper}/undo"), Some(json!({ "run": put["run"] }))).expect(200);
    by("GET", "/sessions/default/messages", None).refuses(404, "not_found");
}

/// A stream contains no events and no partial texts of other sessions.
#[test]
fn a_stream_tells_of_own_sessions_alone() {
    let mut stage = stage();
    let root = stage.served.token.replace(stage.phone.clone()).unwrap();
    let mut events = stage.served.follow("", None);
    stage.served.token = Some(root);
    let message = stage.served.send("mine", &format!("$ echo {SECRET}"));
    stage.served.reply(message);
    stage.say(&stage.phone, "theirs", "$ echo the end");
    loop {
        let heard = events.next(&["message", "run", "event", "session", "live", "notify", "deleted"]);
        let text = heard.data.to_string();
        assert!(!text.contains(SECRET) && !text.contains("\"mine\""), "{text}");
        if heard.data["role"] == "assistant" {
            assert_eq!(heard.data["session"], "theirs");
            break;
        }
    }
}

#[test]
fn programs_with_a_chat_token_reach_their_own_sessions() {
    let stage = stage();
    let chat = |model: &str, text: &str| json!({ "model": model, "messages": [{ "role": "user", "content": text }] });
    stage.by(&stage.phone, "POST", "/v1/chat/completions", Some(chat("kiso/mine", "$ cat note.txt"))).expect(404);
    let answered =
        stage.by(&stage.phone, "POST", "/v1/chat/completions", Some(chat("kiso", "$ echo hello"))).expect(200);
    assert!(answered.to_string().contains("hello"), "{answered}");
    let sessions = stage.by(&stage.phone, "GET", "/sessions", None).expect(200);
    assert_eq!(sessions["items"].as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(stage.by(&stage.other, "GET", "/sessions", None).expect(200)["items"], json!([]));
    let response = json!({ "model": "kiso", "input": "$ echo hello" });
    let response = stage.by(&stage.phone, "POST", "/v1/responses", Some(response)).expect(200);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    stage.by(&stage.phone, "GET", &path, None).expect(200);
    assert_eq!(stage.by(&stage.other, "GET", &path, None).status, 404);

    let mcp = |token: &str, path: &str, method: &str, params: Value| {
        let named = match params["name"].as_str().or(params["uri"].as_str()) {
            Some(name) => format!("mcp-name: {name}\r\n"),
            None => String::new(),
        };
        let body = request(1, method, modern(params)).to_string();
        let mut stream = stage.served.connect();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             accept: application/json\r\ncontent-type: application/json\r\nmcp-protocol-version: {}\r\nmcp-method: {method}\r\n{named}\
             content-length: {}\r\n\r\n{body}",
            stage.served.address,
            crate::mcp::MODERN,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let file = |session: &str| json!({ "uri": format!("kiso://files/{session}/note.txt") });
    for (path, method, params) in [
        ("/mcp", "resources/read", file("mine")),
        ("/mcp?session=mine", "resources/list", json!({})),
        ("/mcp?session=mine", "tools/call", json!({ "name": "exec", "arguments": { "command": "cat note.txt" } })),
    ] {
        let answer = mcp(&stage.phone, path, method, params.clone());
        assert!(
            !answer.contains(SECRET) && !answer.contains("kiso://files/mine/note.txt\",\"name"),
            "{method}: {answer}"
        );
    }
    let root = stage.served.token.clone().unwrap();
    assert!(mcp(&root, "/mcp?session=mine", "resources/read", file("mine")).contains(SECRET));
}

/// A browser logged in by a link of scope `chat` is a separate user.
#[test]
fn a_guests_browser_reads_what_it_began() {
    let stage = stage();
    let log_in = || {
        let link = stage.home.kiso(&["open", "--print", "--scope", "chat"]).ok().stdout.trim().to_owned();
        let code = json!({ "code": link.split("#code=").nth(1).unwrap() }).to_string();
        let answer = ask(&stage.served.address, None, "POST", "/login", Some(&code)).unwrap();
        answer.expect(200);
        answer.cookie()
    };
    let by = |cookie: &str, method: &str, path: &str, body: Option<Value>| {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut stream = stage.served.connect();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncookie: {cookie}\r\nx-kiso-page: 1\r\n\
             sec-fetch-site: same-origin\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            stage.served.address,
            body.len()
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::parse(&bytes).unwrap()
    };
    let (one, two) = (log_in(), log_in());
    by(&one, "GET", "/sessions/mine/messages", None).refuses(404, "not_found");
    by(&one, "POST", "/msg", Some(json!({ "session": "mine", "text": "hi" }))).refuses(404, "not_found");
    let sent = by(&one, "POST", "/msg", Some(json!({ "session": "guests", "text": "$ echo hi" }))).expect(202);
    stage.served.reply(sent["message"].as_i64().unwrap());
    by(&one, "GET", "/sessions/guests/messages", None).expect(200);
    by(&two, "GET", "/sessions/guests/messages", None).refuses(404, "not_found");
    assert_eq!(by(&two, "GET", "/sessions", None).expect(200)["items"], json!([]));
    assert_eq!(by(&one, "GET", "/me", None).expect(200)["scope"], "chat");
}
