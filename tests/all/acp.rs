//! `kiso acp`: the Agent Client Protocol, with messages as an editor sends them.

mod client;

use crate::harness::Home;
use crate::served::Served;
use crate::web;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

fn home() -> Home {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    home
}

/// A `kiso acp` process and its editor.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    count: i64,
    /// Updates since the last request.
    told: Vec<Value>,
}

impl Editor {
    fn start(home: &Home, args: &[&str]) -> Editor {
        let mut command = home.command(&[&["acp"], args].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kiso starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut editor = Editor { child, input, output, count: 0, told: Vec::new() };
        let begun = editor.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        assert_eq!(begun["result"]["protocolVersion"], 1, "{begun}");
        editor
    }

    fn say(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("it reads");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("it can be read") > 0, "kiso acp has ended");
        serde_json::from_str(&line).expect("a line is JSON")
    }

    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.count += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.count, "method": method, "params": params }));
        self.count
    }

    /// Reads messages until one meets a condition. Keeps the earlier ones.
    fn until_heard(&mut self, mut so: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let heard = self.hear();
            if so(&heard) {
                return heard;
            }
            self.told.push(heard);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.until_heard(|heard| heard["id"] == id)
    }

    /// Opens a conversation.
    #[track_caller]
    fn open(&mut self, cwd: impl AsRef<std::path::Path>) -> String {
        let opened = self.ask("session/new", json!({ "cwd": cwd.as_ref(), "mcpServers": [] }));
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    /// The stop reason of a prompt, and its reply.
    #[track_caller]
    fn prompt(&mut self, session: &str, text: &str) -> (String, String) {
        self.told.clear();
        let answer = self.ask("session/prompt", prompt(session, text));
        let reason = answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (reason.to_owned(), self.reply())
    }

    fn reply(&self) -> String {
        let chunks = self.updates("agent_message_chunk");
        chunks.iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.told.iter().map(|told| &told["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The diffs of files that a tool changed.
    fn diffs(&self) -> Vec<&Value> {
        let content =
            self.updates("tool_call_update").into_iter().flat_map(|update| update["content"].as_array().unwrap());
        content.filter(|content| content["type"] == "diff").collect()
    }

    /// Closes the input, and waits for the process to end.
    fn end(mut self) -> i32 {
        self.input = None;
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

#[test]
fn a_prompt_shows_its_plan_its_calls_and_what_they_changed() {
    let home = home();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open(home.dir.path());
    let (reason, reply) = editor.prompt(&session, "$ echo one > a.txt; cat a.txt");
    assert_eq!((reason.as_str(), reply.contains("one")), ("end_turn", true), "{reply}");
    let commands = editor.updates("available_commands_update");
    assert!(commands[0]["availableCommands"].as_array().unwrap().iter().any(|command| command["name"] == "model"));
    let plans = editor.updates("plan");
    let first = &plans.first().expect("there is a plan")["entries"][0];
    assert_eq!((&first["content"], &first["status"]), (&json!("$ echo one > a.txt; cat a.txt"), &json!("pending")));
    let last = plans.last().unwrap()["entries"].as_array().unwrap();
    assert!(last.iter().all(|entry| entry["status"] == "completed"), "{last:?}");
    let call = editor.updates("tool_call")[0].clone();
    assert_eq!((&call["kind"], &call["status"]), (&json!("execute"), &json!("in_progress")), "{call}");
    assert_eq!(call["rawInput"]["command"], "$ echo one > a.txt; cat a.txt".trim_start_matches("$ "), "{call}");
    let done = editor.updates("tool_call_update")[0];
    assert_eq!((&done["toolCallId"], &done["status"]), (&call["toolCallId"], &json!("completed")), "{done}");
    assert_eq!(done["content"][0]["content"]["text"], "```\none\n```", "{done}");
    let path = json!(home.work(&session).join("a.txt"));
    let diff = json!({ "type": "diff", "path": path, "oldText": null, "newText": "one\n" });
    assert_eq!((editor.diffs(), &done["locations"]), (vec![&diff], &json!([{ "path": path }])), "{done}");

    editor.prompt(&session, "$ echo two >> a.txt");
    let diff = json!({ "type": "diff", "path": path, "oldText": "one\n", "newText": "one\ntwo\n" });
    assert_eq!(editor.diffs(), [&diff]);
    editor.prompt(&session, "$ exit 3");
    assert_eq!(editor.updates("tool_call_update")[0]["status"], "failed");
    assert_eq!(editor.end(), 0);
}

#[test]
fn commands_are_answered_and_a_session_can_be_chosen_and_loaded() {
    let home = home();
    let mut editor = Editor::start(&home, &["--session", "desk"]);
    assert_eq!(editor.open("/"), "desk");
    let (reason, reply) = editor.prompt("desk", "/help");
    assert_eq!((reason.as_str(), reply.contains("/status")), ("end_turn", true), "{reply}");
    editor.prompt("desk", "$ echo hello");
    assert_eq!(editor.end(), 0);

    let mut editor = Editor::start(&home, &[]);
    let missing = editor.ask("session/load", json!({ "sessionId": "nowhere", "cwd": "/", "mcpServers": [] }));
    assert_eq!(missing["error"]["code"], -32_002, "{missing}");
    editor.told.clear();
    let loaded = editor.ask("session/load", json!({ "sessionId": "desk", "cwd": "/", "mcpServers": [] }));
    assert_eq!(loaded["result"], json!({}), "{loaded}");
    let asked = editor.updates("user_message_chunk");
    assert_eq!(asked.last().expect("there was one")["content"]["text"], "$ echo hello");
    assert!(editor.reply().contains("hello"), "{:?}", editor.told);
    assert!(editor.prompt("desk", "$ echo again").1.contains("again"));
}

#[test]
fn a_prompt_is_cancelled_and_the_next_one_works() {
    let home = home();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open("/");
    let id = editor.send("session/prompt", prompt(&session, "$ while :; do :; done"));
    editor.until_heard(|heard| heard["params"]["update"]["sessionUpdate"] == "tool_call");
    let busy = editor.ask("session/prompt", prompt(&session, "$ echo no"));
    assert!(busy["error"]["message"].as_str().unwrap().contains("still under way"), "{busy}");
    // Another conversation works at the same time.
    let other = editor.open("/");
    assert!(editor.prompt(&other, "$ echo beside").1.contains("beside"));
    editor.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    let ended = editor.until_heard(|heard| heard["id"] == id);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    assert!(editor.prompt(&session, "$ echo next").1.contains("next"));
    // At once, before the run can have started.
    let id = editor.send("session/prompt", prompt(&session, "$ while :; do :; done"));
    editor.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    let ended = editor.until_heard(|heard| heard["id"] == id);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
}

#[test]
fn files_come_along_and_the_message_names_them() {
    let home = home();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open("/");
    let blocks = json!([
        { "type": "text", "text": "$ cat " },
        { "type": "resource", "resource": { "uri": "file:///somewhere/note.txt", "text": "from the editor" } },
        { "type": "text", "text": " ; wc -c < " },
        { "type": "image", "mimeType": "image/png", "data": "iVBORw==" },
    ]);
    let answer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks }));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(std::fs::read_to_string(home.work(&session).join("note.txt")).unwrap(), "from the editor");
    let names = std::fs::read_dir(home.work(&session)).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("image-") && name.ends_with(".png")), "{names:?}");
    let shown = home.kiso(&["session", "export", &session]);
    assert!(shown.ok().stdout.contains("$ cat 'note.txt' ; wc -c < 'image-"), "{shown:?}");
    assert!(editor.reply().contains("from the editor"), "{}", editor.reply());
}

#[test]
fn the_project_is_changed_only_when_the_person_agrees() {
    let home = home();
    let project = home.dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("main.rs"), "fn main() {}\n").unwrap();

    let mut editor = Editor::start(&home, &[]);
    let session = editor.open(&project);
    let (_, reply) = editor.prompt(&session, "$ ls /project");
    assert!(!reply.contains("main.rs"), "without --project there is none: {reply}");
    drop(editor);

    let mut editor = Editor::start(&home, &["--project"]);
    let session = editor.open(&project);
    assert!(editor.prompt(&session, "$ cat /project/main.rs").1.contains("fn main"));
    let (_, reply) = editor.prompt(&session, "$ echo x > /project/main.rs");
    assert!(reply.contains("Read-only"), "{reply}");
    let relative = editor.ask("session/new", json!({ "cwd": "project", "mcpServers": [] }));
    assert!(relative["error"]["message"].as_str().unwrap().contains("absolute"), "{relative}");
    let around = editor.ask("session/new", json!({ "cwd": home.dir.path(), "mcpServers": [] }));
    assert!(around["error"]["message"].as_str().unwrap().contains("kiso's own home"), "{around}");
    assert_eq!(editor.end(), 0);
    let closed = home.kiso(&["diff", "--session", &session]);
    closed.exit(2).says(&["no folder open"]);

    let mut editor = Editor::start(&home, &["--project", "ask"]);
    let line = "$ echo changed > main.rs && cat /project/main.rs && rm -f none && echo new > new.txt";
    for (option, is_applied) in [("wait", false), ("discard", false), ("not offered", false), ("accept", true)] {
        let session = editor.open(&project);
        editor.told.clear();
        let id = editor.send("session/prompt", prompt(&session, line));
        let request = editor.until_heard(|heard| heard["method"] == "session/request_permission");
        let call = &request["params"]["toolCall"];
        assert!(call["title"].as_str().unwrap().contains("2 changes"), "{request}");
        assert!(call["title"].as_str().unwrap().contains(project.to_str().unwrap()), "{request}");
        let diff = &call["content"][0];
        assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("fn main() {}\n"), &json!("changed\n")), "{request}");
        assert_eq!(call["content"][1]["newText"], "new\n", "{request}");
        assert!(editor.reply().contains("changed"), "the session sees its own: {}", editor.reply());
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        editor.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": chosen }));
        let ended = editor.until_heard(|heard| heard["id"] == id);
        assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
        let text = std::fs::read_to_string(project.join("main.rs")).unwrap();
        assert_eq!(text == "changed\n", is_applied, "{option}");
        let waits = home.kiso(&["--json", "diff", "--session", &session]).json_lines().len();
        assert_eq!(waits, if matches!(option, "wait" | "not offered") { 2 } else { 0 }, "{option}");
    }
    let session = editor.open(&project);
    let id = editor.send("session/prompt", prompt(&session, "$ echo x > /project/x"));
    let request = editor.until_heard(|heard| heard["method"] == "session/request_permission");
    editor.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    let ended = editor.until_heard(|heard| heard["id"] == id);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    let late = json!({ "outcome": { "outcome": "selected", "optionId": "accept" } });
    editor.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": late }));
    assert!(!project.join("x").exists());
}

#[test]
fn the_editor_is_asked_about_what_its_prompt_would_do() {
    let home = home();
    let (told, asked) = std::sync::mpsc::channel();
    let address = web::serve(move |path| {
        told.send(path.to_owned()).unwrap();
        web::text("It rains.")
    });
    home.kiso(&["skill", "grant", "fetch", "--ask-host", &address, "--private"]).ok();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open("/");
    let mut answer = |option: &str, path: &str| {
        editor.told.clear();
        let id = editor.send("session/prompt", prompt(&session, &format!("fetch url=http://{address}/{path}")));
        let request = editor.until_heard(|heard| heard["method"] == "session/request_permission");
        let shown = request["params"]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
        assert!(shown.contains(&format!("GET to {address}")) && shown.contains(path), "{request}");
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        editor.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": chosen }));
        editor.until_heard(|heard| heard["id"] == id);
        editor.reply()
    };
    let refused = answer("refuse", "no");
    assert!(refused.contains("refused by the user"), "{refused}");
    let other = answer("what was not offered", "neither");
    assert!(other.contains("refused by the user"), "{other}");
    let accepted = answer("accept", "yes");
    assert!(accepted.contains("It rains."), "{accepted}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["/yes"], "only what was accepted");
}

#[test]
fn what_is_wrong_is_said_and_nothing_ends() {
    let home = home();
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open("/");
    for (method, params, code) in [
        ("session/fork", json!({}), -32_601),
        ("session/prompt", prompt("nowhere", "hello"), -32_002),
        ("session/prompt", json!({ "sessionId": session }), -32_602),
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "audio", "data": "" }] }), -32_602),
        ("session/new", json!({ "mcpServers": [] }), -32_602),
        ("session/load", json!({ "sessionId": "../../etc", "cwd": "/" }), -32_002),
    ] {
        let answer = editor.ask(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let long = "x".repeat((1 << 20) + 1);
    let answer = editor.ask("session/prompt", prompt(&session, &long));
    assert!(answer["error"]["message"].as_str().unwrap().contains("1048576"), "{answer}");
    editor.line("no JSON");
    let answer = editor.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32_700)), "{answer}");
    editor.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "nowhere" } }));
    editor.say(&json!({ "jsonrpc": "2.0", "id": "nowhere/1", "result": {} }));
    for _ in 1..32 {
        editor.open("/");
    }
    let full = editor.ask("session/new", json!({ "cwd": "/", "mcpServers": [] }));
    assert!(full["error"]["message"].as_str().unwrap().contains("already open"), "{full}");
    assert!(editor.prompt(&session, "$ echo still here").1.contains("still here"));
}

/// The message is on disk before the daemon dies, and the next daemon answers it once.
#[test]
fn a_prompt_outlives_the_daemon() {
    let home = home();
    let served = Served::start(&home);
    let mut editor = Editor::start(&home, &[]);
    let session = editor.open("/");
    let id = editor.send("session/prompt", prompt(&session, "$ echo begun; while [ ! -e go ]; do :; done; echo went"));
    editor.until_heard(|heard| heard["params"]["update"]["sessionUpdate"] == "tool_call");
    served.kill();
    let go = home.work(&session).join("go");
    std::fs::write(&go, "").unwrap();
    let _served = Served::start(&home);
    // In a fleet, the files are restored to the state after the last step.
    std::thread::spawn(move || {
        while std::fs::write(&go, "").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let ended = editor.until_heard(|heard| heard["id"] == id);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    let texts = editor.reply();
    assert!(!texts.is_empty(), "{:?}", editor.told);
    assert!(editor.prompt(&session, "$ echo next").1.contains("next"));
}
