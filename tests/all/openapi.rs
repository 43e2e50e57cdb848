//! The OpenAPI document compared with its daemon: every operation is requested, and responds as described.

mod administrators;
mod approvals;
mod folders;
mod listed_folders;
mod mcp;
mod metrics;
mod printed;
mod providers;
mod shared_files;
mod undo;
mod versions;

use crate::harness::{Home, everywhere, guest, wait_until};
use crate::served::{Answer, Served};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};

const CONFIG: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n\
    [hooks.a]\nauth = \"token\"\nonly = [\"body.kind = greeting\"]\ntemplate = \"{body.text}\"\n";

const MANIFEST: &str = "[kiso]\ntype = \"skill\"\nname = \"echo\"\nversion = \"0.1.0\"\ndescription = \"Answers\"\n\
    [kiso.skill]\nsecrets = [\"token\"]\n[kiso.skill.args]\ntext = { type = \"string\", required = true }\n\
    [kiso.skill.needs]\nhttp = [{ host = \"api.example.org\", methods = [\"GET\"] }]\n";

/// A daemon with a token of each scope, and its document.
struct Api {
    home: Home,
    served: Served,
    document: Value,
    chat: String,
    admin: String,
    /// Additional request headers.
    more: String,
    /// Method, documented path and status of every response so far.
    seen: BTreeSet<(String, String, u16)>,
}

impl Api {
    fn new(config: &str) -> Api {
        let home = Home::new();
        let [drop, share] = ["drop", "share"].map(|name| home.dir.path().join(name));
        for dir in [&drop, &share] {
            std::fs::create_dir(dir).unwrap();
        }
        let listed = |name, path: &std::path::Path| format!("[folders.{name}]\npath = {path:?}\nrole = \"user\"\n");
        home.config(&format!("{config}{}{}mode = \"read\"\n", listed("drop", &drop), listed("share", &share)));
        let mut served = Served::start(&home);
        let add = |args: &[&str]| home.kiso(&[&["token", "add"], args].concat()).ok().stdout.trim().to_owned();
        let (chat, admin) = (add(&["phone"]), add(&["root", "--scope", "admin"]));
        served.token = Some(chat.clone());
        let document = served.get("/openapi.json");
        Api { home, served, document, chat, admin, more: String::new(), seen: BTreeSet::new() }
    }

    /// Sends a request and checks the response against the document. `path` is the documented path; `token` may also be a login
    /// cookie.
    #[track_caller]
    fn ask(&mut self, method: &str, path: &str, asked: &str, token: Option<&str>, body: &[u8]) -> Answer {
        let operation = &self.document["paths"][path][method.to_lowercase()];
        assert!(operation.is_object(), "{method} {path} is not in the document");
        let kind = operation["requestBody"]["content"].as_object().and_then(|content| content.keys().next());
        let kind = kind.map(|kind| format!("content-type: {kind}\r\n")).unwrap_or_default();
        let token = match token {
            Some(cookie) if cookie.contains('=') => {
                format!("cookie: {cookie}\r\nx-kiso-page: 1\r\nsec-fetch-site: same-origin\r\n")
            }
            Some(token) => format!("authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        let (length, more) = (body.len(), &self.more);
        let head = format!(
            "{method} {asked} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}{more}{kind}content-length: {length}\r\n\r\n"
        );
        let mut stream = self.served.connect();
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut bytes = Vec::new();
        let mut reader = BufReader::new(stream);
        let content = &operation["responses"]["200"]["content"];
        if content.get("text/event-stream").is_some() && content.get("application/json").is_none() {
            // The stream does not end; its head is enough.
            while !bytes.ends_with(b"\r\n\r\n") {
                assert!(reader.read_until(b'\n', &mut bytes).unwrap() > 0);
            }
        }
        if !bytes.starts_with(b"HTTP/1.1 200") {
            reader.read_to_end(&mut bytes).unwrap();
        }
        let answer = Answer::parse(&bytes).unwrap_or_else(|| panic!("{method} {asked}: no answer"));
        self.hold(method, path, &answer);
        self.seen.insert((method.to_owned(), path.to_owned(), answer.status));
        answer
    }

    /// Checks that the document describes the response.
    #[track_caller]
    fn hold(&self, method: &str, path: &str, answer: &Answer) {
        let what = format!("{method} {path}");
        let responses = &self.document["paths"][path][method.to_lowercase()]["responses"];
        let documented = &responses[answer.status.to_string()];
        assert!(documented.is_object(), "{what} does not document {}: {answer:?}", answer.status);
        let Some(content) = documented["content"].as_object() else { return };
        let (kind, shape) = content.iter().next().unwrap();
        assert!(answer.headers.contains(&format!("content-type: {kind}")), "{what}: {answer:?}");
        if kind != "application/json" {
            return;
        }
        let schema = json!({ "allOf": [shape["schema"]], "components": self.document["components"] });
        let body: Value =
            serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{what}: {error}: {answer:?}"));
        let validator = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{what}: {error}"));
        let wrong: Vec<_> =
            validator.iter_errors(&body).map(|error| format!("{error} at {}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{what}: {wrong:?}\n{body:#}");
    }

    /// Method, path and operation of every documented operation.
    fn operations(&self) -> Vec<(String, String, Value)> {
        let mut all = Vec::new();
        for (path, operations) in self.document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                all.push((method.to_uppercase(), path.clone(), operation.clone()));
            }
        }
        all
    }
}

/// A path with values for its parameters.
fn filled(path: &str) -> String {
    ["{id}", "{session}", "{name}", "{path}", "{model}", "{seq}", "{place}"]
        .iter()
        .fold(path.replace("{run}", &"1".repeat(14)), |path, name| path.replace(name, "1"))
}

#[test]
fn every_operation_answers_as_it_is_documented() {
    let mut api = Api::new(CONFIG);
    let message = api.served.send("main", "$ echo hello");
    api.served.reply(message);
    let run = api.served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    api.home.kiso(&["memory", "fact", "add", "The house is blue"]).ok();
    let db = rusqlite::Connection::open(api.home.path().join("store.db")).unwrap();
    db.execute_batch(
        "INSERT INTO memory_chunks (digest, source, at_ms, text, grams) VALUES (x'00', 'turn', 1, 'the garden is green', '');
         INSERT INTO published (id, session, path, media_type, title, at_ms)
         SELECT 'abcdef', id, 'pub/a.txt', 'text/plain', NULL, 1 FROM sessions;
         INSERT INTO usage_totals (scope, key, calls, input, output, cost_micros) VALUES ('day', 20454, 1, 2, 3, 4)",
    )
    .unwrap();
    std::fs::write(api.home.work("main").join("pub/a.txt"), "published").unwrap();
    let packed = api.home.dir.path().join("packed.wasm");
    let (manifest, echo) = (api.home.file("kiso.toml", MANIFEST), guest("echo"));
    let [manifest, echo, out] = [&manifest, &echo, &packed].map(|path| path.to_str().unwrap());
    api.home.kiso(&["skill", "pack", echo, "--manifest", manifest, "-o", out]).ok();
    let packed = std::fs::read(&packed).unwrap();
    let nameless = std::fs::read(guest("calc")).unwrap();

    let files = "/sessions/{session}/files/{path}";
    let message_path = format!("/messages/{message}");
    let ends = ["", "/trace?prompts=true", "/cancel", "/retry"];
    let [run_path, trace, cancel, retry] = ends.map(|end| format!("/runs/{run}{end}"));
    let (c, a) = (Some(api.chat.clone()), Some(api.admin.clone()));
    let hook = Some(api.home.kiso(&["connect", "hook", "secret", "a"]).ok().stdout.trim().to_owned());
    let login = json!({ "token": api.chat }).to_string();
    let login = login.as_bytes();
    let in_browser = Some(api.ask("POST", "/login", "/login", None, login).cookie());
    let index = api.ask("GET", "/", "/", None, b"").body;
    let asset = index.split('"').find(|part| part.starts_with("/page/")).unwrap().to_owned();
    let chat = br#"{"model": "kiso", "messages": [{"role": "user", "content": "$ echo hi"}]}"#;
    let created = br#"{"model": "kiso", "input": "$ echo hi"}"#;
    let created = api.ask("POST", "/v1/responses", "/v1/responses", c.as_deref(), created).expect(200);
    let response = format!("/v1/responses/{}", created["id"].as_str().unwrap());
    let stopped = format!("{response}/cancel");
    // Method, documented path, requested path, token, body, status.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a Option<String>, &'a [u8], u16);
    let cases: Vec<Case<'_>> = vec![
        ("GET", "/", "/", &None, b"", 200),
        ("GET", "/page/{digest}/{file}", &asset, &None, b"", 200),
        ("GET", "/page/{digest}/{file}", "/page/0/x", &None, b"", 404),
        ("POST", "/login", "/login", &None, login, 200),
        ("POST", "/login", "/login", &None, br#"{"token": "kiso_x"}"#, 401),
        ("POST", "/login", "/login", &None, br#"{"token": "a", "code": "b"}"#, 400),
        ("GET", "/me", "/me", &in_browser, b"", 200),
        ("GET", "/me", "/me", &c, b"", 200),
        ("POST", "/logout", "/logout", &c, b"", 400),
        ("POST", "/logout", "/logout", &in_browser, b"", 204),
        ("POST", "/logout", "/logout", &in_browser, b"", 401),
        ("POST", "/msg", "/msg", &c, br#"{"text": "hello", "session": "fresh", "key": "k"}"#, 202),
        ("POST", "/msg", "/msg", &c, br#"{"text": "/status"}"#, 200),
        ("POST", "/msg", "/msg", &c, br#"{"text": ""}"#, 400),
        ("POST", "/hooks/{name}", "/hooks/a", &hook, br#"{"kind": "greeting", "text": "hello"}"#, 202),
        ("POST", "/hooks/{name}", "/hooks/a", &hook, br#"{"kind": "farewell"}"#, 200),
        ("POST", "/hooks/{name}", "/hooks/a", &hook, br#"{"kind": "greeting"}"#, 422),
        ("POST", "/hooks/{name}", "/hooks/a", &hook, b"{", 400),
        ("POST", "/hooks/{name}", "/hooks/a", &c, b"{}", 401),
        ("POST", "/hooks/{name}", "/hooks/none", &None, b"{}", 404),
        ("GET", "/messages/{id}", &message_path, &c, b"", 200),
        ("GET", "/messages/{id}", "/messages/4000", &c, b"", 404),
        ("GET", "/v1/models", "/v1/models", &c, b"", 200),
        ("GET", "/v1/models/{model}", "/v1/models/kiso%2Fmain", &c, b"", 200),
        ("GET", "/v1/models/{model}", "/v1/models/gpt", &c, b"", 404),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", &c, chat, 200),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", &c, br#"{"model": "kiso", "messages": []}"#, 400),
        ("POST", "/v1/responses", "/v1/responses", &c, br#"{"model": "kiso", "input": "$ echo hi"}"#, 200),
        ("POST", "/v1/responses", "/v1/responses", &c, br#"{"model": "gpt", "input": "hi"}"#, 404),
        ("GET", "/v1/responses/{id}", "/v1/responses/resp_none", &c, b"", 404),
        ("GET", "/v1/responses/{id}", &response, &c, b"", 200),
        ("POST", "/v1/responses/{id}/cancel", "/v1/responses/resp_none/cancel", &c, b"", 404),
        ("POST", "/v1/responses/{id}/cancel", &stopped, &c, b"", 200),
        ("DELETE", "/v1/responses/{id}", &response, &c, b"", 200),
        ("DELETE", "/v1/responses/{id}", &response, &c, b"", 404),
        ("GET", "/sessions", "/sessions?limit=1", &c, b"", 200),
        ("GET", "/sessions", "/sessions?limit=0", &c, b"", 400),
        ("PATCH", "/sessions/{session}", "/sessions/main", &c, br#"{"title": "Of hellos"}"#, 200),
        ("PATCH", "/sessions/{session}", "/sessions/main", &c, br#"{"title": " "}"#, 400),
        ("PATCH", "/sessions/{session}", "/sessions/main", &c, br#"{"placement": "pinned"}"#, 200),
        ("PATCH", "/sessions/{session}", "/sessions/main", &c, b"{}", 400),
        ("GET", "/sessions", "/sessions?placement=pinned,archived", &c, b"", 200),
        ("GET", "/sessions", "/sessions?placement=lost", &c, b"", 400),
        ("PATCH", "/sessions/{session}", "/sessions/main", &c, br#"{"title": "gpj.\u202eexe"}"#, 400),
        ("PATCH", "/sessions/{session}", "/sessions/nowhere", &c, br#"{"title": "x"}"#, 404),
        ("GET", "/sessions/{session}/messages", "/sessions/main/messages?limit=1", &c, b"", 200),
        ("GET", "/sessions/{session}/messages", "/sessions/nowhere/messages", &c, b"", 404),
        ("POST", "/sessions/{session}/read", "/sessions/main/read", &c, br#"{"message": 1}"#, 204),
        ("POST", "/sessions/{session}/read", "/sessions/main/read", &c, br#"{"massage": 1}"#, 400),
        ("POST", "/sessions/{session}/read", "/sessions/nowhere/read", &c, br#"{"message": 1}"#, 404),
        ("PUT", files, "/sessions/main/files/in/a.bin", &c, b"\x00\xff", 201),
        ("PUT", files, "/sessions/main/files/in/a.bin", &c, b"", 409),
        ("PUT", files, "/sessions/main/files/in%2F..%2Fa.bin", &c, b"", 400),
        ("GET", "/sessions/{session}/files", "/sessions/main/files?limit=1", &c, b"", 200),
        ("GET", "/sessions/{session}/files", "/sessions/nowhere/files", &c, b"", 404),
        ("GET", files, "/sessions/main/files/in/a.bin", &c, b"", 200),
        ("GET", files, "/sessions/main/files/none", &c, b"", 404),
        ("DELETE", files, "/sessions/main/files/in/a.bin", &c, b"", 204),
        ("DELETE", files, "/sessions/main/files/in/a.bin", &c, b"", 404),
        ("GET", "/sessions/{session}/export", "/sessions/main/export", &c, b"", 200),
        ("GET", "/sessions/{session}/export", "/sessions/nowhere/export", &c, b"", 404),
        ("GET", "/search", "/search?q=HELLO+echo&session=main", &c, b"", 200),
        ("GET", "/search", "/search?q=+", &c, b"", 400),
        ("GET", "/status/{session}", "/status/main", &c, b"", 200),
        ("GET", "/status/{session}", "/status/nowhere", &c, b"", 404),
        ("GET", "/runs", "/runs?session=main&limit=5", &c, b"", 200),
        ("GET", "/runs", "/runs?limit=1000", &c, b"", 400),
        ("GET", "/runs/{run}", &run_path, &c, b"", 200),
        ("GET", "/runs/{run}", "/runs/zzz", &c, b"", 404),
        ("GET", "/runs/{run}/trace", &trace, &c, b"", 200),
        ("GET", "/runs/{run}/trace", "/runs/zzz/trace", &c, b"", 404),
        ("POST", "/runs/{run}/cancel", &cancel, &c, b"", 409),
        ("POST", "/runs/{run}/cancel", "/runs/zzz/cancel", &c, b"", 404),
        ("POST", "/runs/{run}/retry", &retry, &c, b"", 409),
        ("POST", "/runs/{run}/retry", "/runs/zzz/retry", &c, b"", 404),
        ("GET", "/events", "/events?session=main&after=0", &c, b"", 200),
        ("GET", "/events", "/events?after=x", &c, b"", 400),
        (
            "POST",
            "/schedules",
            "/schedules",
            &c,
            br#"{"name": "tick", "when": "@daily", "message": "hello", "session": "told"}"#,
            201,
        ),
        (
            "POST",
            "/schedules",
            "/schedules",
            &c,
            br#"{"name": "tick", "when": "@daily", "message": "hello", "session": "told"}"#,
            409,
        ),
        ("POST", "/schedules", "/schedules", &c, br#"{"name": "tock", "when": "0 25 * * *", "message": "hello"}"#, 400),
        (
            "POST",
            "/schedules",
            "/schedules",
            &a,
            br#"{"name": "tock", "when": "@daily", "message": "hello", "session": "told"}"#,
            201,
        ),
        ("GET", "/schedules", "/schedules", &c, b"", 200),
        ("PATCH", "/schedules/{name}", "/schedules/tick", &c, br#"{"when": "@hourly"}"#, 200),
        ("PATCH", "/schedules/{name}", "/schedules/tick", &c, br#"{"when": "0 25 * * *"}"#, 400),
        ("PATCH", "/schedules/{name}", "/schedules/tock", &c, br#"{"message": "hi"}"#, 403),
        ("PATCH", "/schedules/{name}", "/schedules/none", &c, b"{}", 404),
        ("POST", "/schedules/{name}/run", "/schedules/tick/run", &c, b"", 202),
        ("POST", "/schedules/{name}/run", "/schedules/none/run", &c, b"", 404),
        ("POST", "/schedules/{name}/run", "/schedules/tock/run", &c, b"", 403),
        ("GET", "/schedules/{name}/receipts", "/schedules/tick/receipts?limit=1", &c, b"", 200),
        ("GET", "/schedules/{name}/receipts", "/schedules/tick/receipts?before=x", &c, b"", 400),
        ("GET", "/schedules/{name}/receipts", "/schedules/none/receipts", &c, b"", 404),
        ("POST", "/schedules/{name}/pause", "/schedules/tick/pause", &c, b"", 200),
        ("POST", "/schedules/{name}/pause", "/schedules/none/pause", &c, b"", 404),
        ("POST", "/schedules/{name}/resume", "/schedules/tick/resume", &c, b"", 200),
        ("POST", "/schedules/{name}/resume", "/schedules/tock/resume", &c, b"", 403),
        ("DELETE", "/schedules/{name}", "/schedules/tock", &c, b"", 403),
        ("DELETE", "/schedules/{name}", "/schedules/tick", &c, b"", 204),
        ("DELETE", "/schedules/{name}", "/schedules/tick", &c, b"", 404),
        ("PUT", "/pills/{name}", "/pills/sum", &c, br#"{"template": "Sum up {input}", "effort": "low"}"#, 201),
        ("PUT", "/pills/{name}", "/pills/sum", &c, br#"{"template": "again"}"#, 409),
        ("PUT", "/pills/{name}", "/pills/sum", &c, br#"{"template": "again", "replace": true}"#, 200),
        ("PUT", "/pills/{name}", "/pills/a%20b", &c, br#"{"template": "x"}"#, 400),
        ("PUT", "/pills/{name}", "/pills/root", &a, br#"{"template": "x", "categories": ["web"]}"#, 201),
        ("PUT", "/pills/{name}", "/pills/root", &c, br#"{"template": "y", "replace": true}"#, 403),
        ("GET", "/pills", "/pills", &c, b"", 200),
        ("DELETE", "/pills/{name}", "/pills/root", &c, b"", 403),
        ("DELETE", "/pills/{name}", "/pills/sum", &c, b"", 204),
        ("DELETE", "/pills/{name}", "/pills/sum", &c, b"", 404),
        ("GET", "/skills", "/skills?limit=2", &c, b"", 200),
        ("GET", "/skills", "/skills?before=none", &c, b"", 400),
        ("POST", "/skills", "/skills", &a, b"no component", 400),
        ("POST", "/skills", "/skills", &a, b"", 400),
        ("POST", "/skills", "/skills", &a, &nameless, 400),
        ("POST", "/skills", "/skills?name=sums", &a, &nameless, 201),
        ("POST", "/skills", "/skills", &a, &packed, 409),
        ("POST", "/skills", "/skills?grant=none", &a, &packed, 201),
        ("POST", "/skills", "/skills?grant=all&name=chart", &a, &packed, 409),
        ("GET", "/skills/{name}", "/skills/echo", &c, b"", 200),
        ("GET", "/skills/{name}", "/skills/none", &c, b"", 404),
        (
            "PUT",
            "/skills/{name}/grants",
            "/skills/echo/grants",
            &a,
            br#"{"hosts": [{"host": "api.example.org"}], "secrets": ["token"], "limits": true}"#,
            200,
        ),
        ("PUT", "/skills/{name}/grants", "/skills/echo/grants", &a, br#"{"hosts": [{"host": "evil.example"}]}"#, 400),
        ("PUT", "/skills/{name}/grants", "/skills/echo/grants", &a, br#"{"secrets": ["other"]}"#, 400),
        ("PUT", "/skills/{name}/grants", "/skills/echo/grants", &a, br#"{}"#, 400),
        ("PUT", "/skills/{name}/grants", "/skills/none/grants", &a, br#"{"grant": "all"}"#, 404),
        (
            "POST",
            "/skills/{name}/call",
            "/skills/echo/call",
            &c,
            br#"{"session": "main", "args": {"text": "hi"}}"#,
            200,
        ),
        ("POST", "/skills/{name}/call", "/skills/echo/call", &c, br#"{"args": {"txet": "hi"}}"#, 400),
        ("POST", "/skills/{name}/call", "/skills/none/call", &c, br#"{}"#, 404),
        ("GET", "/skills/{name}/audit", "/skills/echo/audit", &a, b"", 200),
        ("GET", "/skills/{name}/audit", "/skills/none/audit", &a, b"", 404),
        ("GET", "/indexed_skills", "/indexed_skills?q=echo", &a, b"", 200),
        ("GET", "/indexed_skills", "/indexed_skills?what=echo", &a, b"", 400),
        ("GET", "/indexed_skills", "/indexed_skills", &c, b"", 403),
        ("POST", "/skills/{name}/tighten", "/skills/feed/tighten", &a, b"{}", 400),
        ("POST", "/skills/{name}/tighten", "/skills/echo/tighten", &a, b"{}", 200),
        ("POST", "/skills/{name}/tighten", "/skills/none/tighten", &a, b"{}", 404),
        ("DELETE", "/skills/{name}", "/skills/echo", &a, b"", 200),
        ("DELETE", "/skills/{name}", "/skills/echo", &a, b"", 404),
        ("DELETE", "/skills/{name}", "/skills/chart", &a, b"", 409),
        ("GET", "/memory", "/memory?limit=1", &a, b"", 200),
        ("GET", "/memory", "/memory?q=garden&before=1", &a, b"", 400),
        ("DELETE", "/memory/{id}", "/memory/1", &a, b"", 200),
        ("DELETE", "/memory/{id}", "/memory/1", &a, b"", 404),
        ("GET", "/facts", "/facts?q=house", &a, b"", 200),
        ("GET", "/facts", "/facts?limit=-1", &a, b"", 400),
        ("POST", "/facts", "/facts", &a, br#"{"text": "The garden is large"}"#, 201),
        ("POST", "/facts", "/facts", &a, br#"{"text": "  "}"#, 400),
        ("PUT", "/facts/{id}", "/facts/2", &a, br#"{"text": "The garden is small"}"#, 200),
        ("PUT", "/facts/{id}", "/facts/99", &a, br#"{"text": "x"}"#, 404),
        ("PATCH", "/memory/core", "/memory/core", &a, br#"{"user": {"city": "Oslo"}}"#, 200),
        ("PATCH", "/memory/core", "/memory/core", &a, b"[1]", 400),
        ("DELETE", "/facts/{id}", "/facts/1", &a, b"", 200),
        ("DELETE", "/facts/{id}", "/facts/x", &a, b"", 404),
        ("GET", "/input", "/input", &c, b"", 200),
        ("GET", "/models", "/models", &c, b"", 200),
        ("POST", "/models/check", "/models/check", &a, b"", 200),
        ("POST", "/models/check", "/models/check", &c, b"", 403),
        ("GET", "/usage", "/usage?before=2030-01-01", &c, b"", 200),
        ("GET", "/usage", "/usage?before=soon", &c, b"", 400),
        ("GET", "/config", "/config", &a, b"", 200),
        ("GET", "/fleet", "/fleet", &a, b"", if everywhere::is_so() { 200 } else { 404 }),
        ("GET", "/pub/{id}", "/pub/abcdef", &None, b"", 200),
        ("GET", "/pub/{id}", "/pub/zzz", &None, b"", 404),
        ("GET", "/health", "/health", &None, b"", 200),
        ("GET", "/health/details", "/health/details", &c, b"", 200),
        ("GET", "/health/live", "/health/live", &None, b"", 200),
        ("GET", "/metrics", "/metrics", &c, b"", 200),
        ("GET", "/openapi.json", "/openapi.json", &None, b"", 200),
        ("DELETE", "/sessions/{session}", "/sessions/main", &a, b"", 200),
        ("DELETE", "/sessions/{session}", "/sessions/main", &a, b"", 404),
    ];
    let (mut answers, mut wrong) = (Vec::new(), Vec::new());
    for (method, path, asked, token, body, status) in cases {
        let answer = api.ask(method, path, asked, token.as_deref(), body);
        if answer.status != status {
            wrong.push(format!("{method} {asked} should be {status}: {answer:?}"));
        }
        answers.push((asked.to_owned(), answer));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // An active run is cancelled.
    let waiting = api.served.send("slow", "$ sleep 50");
    let started = |api: &Api| api.served.get(&format!("/messages/{waiting}"))["run"].as_str().map(str::to_owned);
    wait_until("the run to start", || started(&api).is_some());
    let slow = started(&api).unwrap();
    let busy = api.ask("DELETE", "/sessions/{session}", "/sessions/slow", a.as_deref(), b"");
    busy.refuses(409, "at_work");
    api.ask("POST", "/skills/{name}/call", "/skills/chart/call", c.as_deref(), br#"{"session": "slow"}"#)
        .refuses(409, "busy");
    undo::answers(&mut api, &slow, c.as_deref());
    folders::answers(&mut api, a.as_deref());
    listed_folders::answers(&mut api, c.as_deref());
    approvals::answers(&mut api, &db, a.as_deref(), c.as_deref());
    versions::answers(&mut api, c.as_deref());
    providers::answers(&mut api, a.as_deref());
    let retry = |api: &mut Api| api.ask("POST", "/runs/{run}/retry", &format!("/runs/{slow}/retry"), c.as_deref(), b"");
    retry(&mut api).refuses(409, "running");
    // tests/all/held.rs shows how a run becomes held.
    crate::crash::store(&api.home).execute("UPDATE runs SET held_ms = 1 WHERE id = ?1", [&slow]).unwrap();
    retry(&mut api).expect(200);
    api.ask("POST", "/runs/{run}/cancel", &format!("/runs/{slow}/cancel"), c.as_deref(), b"").expect(200);

    mcp::a_session(&mut api);
    // Operations that need a token, or an administrator's.
    for (method, path, operation) in api.operations() {
        if operation["security"] == json!([]) {
            continue;
        }
        api.ask(&method, &path, &filled(&path), None, b"").refuses(401, "unauthorized");
        if operation["security"].is_array() {
            api.ask(&method, &path, &filled(&path), c.as_deref(), b"{}").refuses(403, "forbidden");
        }
        if operation["requestBody"]["content"].get("application/json").is_some() {
            // JSON-RPC has its own codes.
            let code = if path == "/mcp" { json!(-32_700) } else { json!("bad_request") };
            let answer = api.ask(&method, &path, &filled(&path), a.as_deref(), b"[[[");
            assert_eq!(answer.expect(400)["error"]["code"], code);
        }
    }
    for (method, path, operation) in api.operations() {
        let well = |status: &u16| api.seen.contains(&(method.clone(), path.clone(), *status));
        let documented: Vec<u16> =
            operation["responses"].as_object().unwrap().keys().map(|status| status.parse().unwrap()).collect();
        // Partial responses are tested in tests/all/published.rs, calls need a model with tool calls (tests/all/page/calls.rs),
        // and a fleet needs a NATS server (tests/all/fleet/seen.rs).
        let elsewhere = |status: u16| status == 206 || path == "/fleet" || path.contains("/calls/");
        for status in documented.iter().filter(|status| **status < 300 && !elsewhere(**status)) {
            assert!(well(status), "{method} {path} was never seen to answer {status}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "path") {
            assert!(path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap())), "{method} {path}");
        }
    }

    let answer = |asked: &str| answers.iter().find(|(path, _)| path == asked).map(|(_, answer)| answer).unwrap();
    let json = |asked: &str| -> Value { serde_json::from_str(&answer(asked).body).unwrap() };
    let needed: Value =
        serde_json::from_str(&answers.iter().find(|(_, a)| a.body.contains("grant_needed")).unwrap().1.body).unwrap();
    let asks = json!({
        "http": [{ "host": "api.example.org", "methods": ["GET"], "private": false }], "secrets": [{ "name": "token" }],
    });
    assert_eq!((&needed["error"]["skill"], &needed["error"]["asks"]), (&json!("echo"), &asks), "{needed:#}");
    let shown = json("/skills/echo");
    let none = json!({ "http": [], "secrets": [], "workspace": "none" });
    assert_eq!(
        (&shown["needs"]["http"], &shown["needs"]["secrets"], &shown["grant"]),
        (&asks["http"], &asks["secrets"], &none)
    );
    let mut granted = asks.clone();
    granted["workspace"] = json!("none");
    assert_eq!(json("/skills/echo/grants")["grant"], granted, "what was asked for was granted, and the rest stays");
    let found = json("/search?q=HELLO+echo&session=main");
    assert_eq!(found["items"].as_array().unwrap().last().unwrap()["text"], "$ echo hello", "{found}");
    assert_eq!(json("/memory?limit=1")["items"][0]["text"], "the garden is green");
    assert_eq!(
        json("/pills")["items"][0],
        json!({ "name": "root", "template": "x", "categories": ["web"], "effort": "high", "origin": "admin" })
    );
    assert_eq!(json("/facts?q=house")["items"][0]["text"], "The house is blue");
    assert_eq!(json("/usage?before=2030-01-01")["items"].as_array().unwrap().last().unwrap()["day"], "2026-01-01");
    // The lines of HTTP chunks come between.
    let lines: Vec<Value> = answer("/sessions/main/export")
        .body
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["session", "message", "message", "run", "task", "task", "usage", "usage", "usage", "usage", "end"],
        "{lines:?}"
    );
    assert!(!api.home.work("main").exists() && !api.home.path().join("sessions/.gone-main").exists());
    assert!(!api.home.path().join("cache/upload").exists());
    assert_eq!(api.served.terminate(), 0);
}
