//! The Unix socket of a real daemon, line by line, and the client in its documentation.

use crate::harness::{Home, missing_tool, root, skipped, wait_until};
use crate::served::Served;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// A guard against lines that never come; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that does only what the protocol requires.
pub(crate) struct Talk {
    pub stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Talk {
    pub(crate) fn connect(home: &Home) -> std::io::Result<Talk> {
        let stream = UnixStream::connect(home.path().join("kiso.sock"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Talk { lines: BufReader::new(stream.try_clone()?), stream })
    }

    /// Registers a client. Returns it with the daemon's answer.
    #[track_caller]
    pub(crate) fn register(home: &Home, wanted: Value) -> (Talk, Value) {
        let mut talk = Talk::connect(home).expect("it listens");
        let mut line = json!({ "type": "register", "client": "test", "protocol": 1 });
        line.as_object_mut().unwrap().extend(wanted.as_object().unwrap().clone());
        let registered = talk.ask(line);
        assert_eq!(registered["type"], "registered", "{registered}");
        (talk, registered)
    }

    pub(crate) fn try_say(&mut self, line: &Value) -> std::io::Result<()> {
        self.stream.write_all(format!("{line}\n").as_bytes())
    }

    #[track_caller]
    pub(crate) fn say(&mut self, line: Value) {
        self.try_say(&line).expect("it reads");
    }

    /// The next line, or `None` if the connection has ended.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            // An incomplete line was cut off by the end.
            Ok(_) if !line.ends_with('\n') => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no line came in time"),
            Err(_) => None,
        }
    }

    /// The next line that meets a condition.
    #[track_caller]
    fn until_line(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let line = self.hear().expect("the connection stands");
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Sends a line and returns its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, line: Value) -> Value {
        let known = line["ref"].clone();
        self.say(line);
        self.until_line(|line| line["type"] != "event" && line.get("id").is_none() && line["ref"] == known)
    }

    /// Sends something that is not a line of the protocol, and expects an error.
    #[track_caller]
    fn refused(&mut self, bytes: &[u8], code: &str) -> Value {
        self.stream.write_all(bytes).expect("it reads");
        let error = self.until_line(|line| line["type"] == "error");
        assert_eq!(error["code"], code, "{error}");
        error
    }

    /// Asserts that the daemon has closed the connection.
    #[track_caller]
    fn is_over(&mut self) {
        assert_eq!(self.hear(), None);
    }
}

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

/// A command that waits for the file `go`.
const WAITS: &str = "$ until [ -e go ]; do sleep 0.02; done; echo hello | tr a-z A-Z";

#[test]
fn a_message_is_accepted_answered_and_told() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let file = std::fs::symlink_metadata(home.path().join("kiso.sock")).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let (mut talk, registered) = Talk::register(&home, json!({ "session": "main", "live": true, "ref": "r0" }));
    assert_eq!(
        (&registered["protocol"], &registered["last"], &registered["ref"]),
        (&json!(1), &json!(0), &json!("r0"))
    );
    let accepted = talk.ask(json!({ "type": "inbound", "text": WAITS, "ref": "r1" }));
    assert_eq!(accepted["type"], "accepted", "{accepted}");
    assert_eq!((&accepted["session"], &accepted["status"]), (&json!("main"), &json!("queued")));
    // The feed reports a run's state at the time of reading, so the run waits until it was seen.
    let (mut user, mut running, mut thought) = (Value::Null, false, false);
    talk.until_line(|line| {
        running |= line["event"] == "run" && line["data"]["status"] == "running";
        thought |= line["event"] == "live" && line["data"]["type"] == "thought";
        if line["event"] == "message" {
            user = line["data"].clone();
        }
        running && thought && !user.is_null()
    });
    assert_eq!((&user["id"], &user["role"]), (&accepted["message"], &json!("user")));
    wait_until("the workspace is there", || home.work("main").exists());
    std::fs::write(home.work("main").join("go"), "").unwrap();
    let mut ended = 0;
    let reply = talk.until_line(|line| {
        ended += i32::from(line["event"] == "run" && line["data"]["status"] == "done");
        line["type"] == "outbound"
    });
    assert!(reply["message"]["text"].as_str().unwrap().contains("HELLO"), "{reply}");
    assert_eq!(reply["answers"], json!([accepted["message"]]));
    assert_eq!((&reply["session"], &reply["message"]["session"]), (&json!("main"), &json!("main")));
    assert_eq!(ended, 1, "its run was told before");
    // The same over HTTP.
    assert_eq!(served.reply(accepted["message"].as_i64().unwrap()), reply["message"]["text"].as_str().unwrap());
    assert!(served.request("GET", "/metrics", None).body.contains("kiso_socket_connections 1"));
    assert_eq!(served.terminate(), 0);
    talk.until_line(|line| line["type"] == "shutdown");
    talk.is_over();
    assert!(!home.path().join("kiso.sock").exists(), "it goes with the daemon");
}

#[test]
fn commands_and_status_are_answered_with_their_ref() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let (mut talk, _) = Talk::register(&home, json!({}));
    let command = |command: &str, args: &str| json!({ "type": "command", "session": "main", "command": command, "args": args, "ref": "c" });
    let answer = talk.ask(command("model", "nothing"));
    assert_eq!((&answer["type"], &answer["session"]), (&json!("outbound"), &json!("main")));
    assert!(answer["answer"].as_str().unwrap().contains("no model \"nothing\""), "{answer}");
    assert!(talk.ask(command("help", ""))["answer"].as_str().unwrap().contains("/new"));
    let typed = talk.ask(json!({ "type": "inbound", "text": "/status", "ref": "t" }));
    assert!(typed["answer"].as_str().unwrap().contains("model: reflex"), "{typed}");
    for odd in ["/help", "Help", "", "help me", "help\nme"] {
        assert_eq!(talk.ask(command(odd, ""))["code"], "bad_request", "{odd:?} is not a message either");
    }
    let unknown = talk.ask(json!({ "type": "status", "session": "main", "ref": "s" }));
    assert_eq!(unknown["code"], "not_found", "{unknown}");
    let accepted = talk.ask(json!({ "type": "inbound", "text": "$ echo x", "ref": "i" }));
    assert_eq!(accepted["session"], "default", "where none is named");
    talk.until_line(|line| line["type"] == "outbound");
    let status = talk.ask(json!({ "type": "status", "ref": "s" }));
    assert_eq!((&status["session"], &status["model"]), (&json!("default"), &json!("reflex")), "{status}");
    assert_eq!((&status["daemon"]["queued"], &status["daemon"]["running"]), (&json!(0), &json!(0)), "{status}");
    assert!(status["daemon"]["up_ms"].as_i64().is_some() && status["daemon"]["version"].is_string(), "{status}");
    drop(served);
}

#[test]
fn a_client_that_was_away_goes_on_behind_what_it_heard_last() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let (mut talk, _) = Talk::register(&home, json!({ "session": "main" }));
    talk.say(json!({ "type": "inbound", "text": "$ echo one" }));
    let first = talk.until_line(|line| line["type"] == "outbound");
    drop(talk);
    // Without a position, in this session and in another one; and across a restart.
    served.reply(served.send("other", "$ echo no"));
    let second = served.send("main", "$ echo two");
    served.reply(second);
    served.kill();
    let _served = Served::start(&home);
    let (mut talk, registered) = Talk::register(&home, json!({ "session": "main", "after": first["id"] }));
    assert!(registered["last"].as_i64() > first["id"].as_i64(), "{registered}");
    let mut last = first["id"].as_i64().unwrap();
    let reply = loop {
        let line = talk.hear().unwrap();
        let id = line["id"].as_i64().expect("what is in the feed has an id, and nothing else was asked for");
        assert!(id > last, "{id} after {last}");
        last = id;
        let of = if line["event"] == "session" { &line["data"]["name"] } else { &line["data"]["session"] };
        assert!(line["type"] == "outbound" || *of == "main", "{line}");
        if line["type"] == "outbound" {
            break line;
        }
    };
    assert_eq!(reply["answers"], json!([second]));
    // A used key is known, also after a restart.
    let say = json!({ "type": "inbound", "text": "$ echo three", "key": "k", "ref": "k" });
    let (one, two) = (talk.ask(say.clone()), talk.ask(say));
    assert_eq!((&one["status"], &two["status"]), (&json!("queued"), &json!("known")));
    assert_eq!(one["message"], two["message"]);
}

#[test]
fn what_is_no_line_of_the_protocol_is_refused_each_by_its_rule() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 60000\nmax_queued = 1\n[gateway]\nmax_body_kib = 4\n");
    let _served = Served::start(&home);
    let mut talk = Talk::connect(&home).unwrap();
    let early = talk.refused(b"{\"type\":\"inbound\",\"text\":\"x\",\"ref\":\"e\"}\n", "bad_request");
    assert!(early["message"].as_str().unwrap().contains("register") && early["ref"] == "e", "{early}");
    let other = talk.refused(b"{\"type\":\"register\",\"client\":\"c\",\"protocol\":2}\n", "bad_request");
    assert!(other["message"].as_str().unwrap().contains("protocol 2"), "{other}");
    talk.refused(b"{\"type\":\"register\",\"client\":\"\",\"protocol\":1}\n", "bad_request");
    talk.refused(b"{\"type\":\"register\",\"client\":\"c\",\"protocol\":1,\"session\":\"../x\"}\n", "bad_request");
    assert_eq!(talk.ask(json!({ "type": "register", "client": "c", "protocol": 1 }))["type"], "registered");
    talk.refused(b"{\"type\":\"register\",\"client\":\"c\",\"protocol\":1}\n", "bad_request");
    for line in
        ["", "hello", "[]", "{\"type\":\"dance\"}", "{\"type\":\"inbound\"}", "{\"type\":\"inbound\",\"text\":\" \"}"]
    {
        talk.refused(format!("{line}\n").as_bytes(), "bad_request");
    }
    talk.refused(b"{\"type\":\"inbound\",\"text\":\"x\",\"txet\":1}\n", "bad_request");
    talk.refused(b"{\"type\":\"inbound\",\"text\":\"x\",\"key\":\"\"}\n", "bad_request");
    talk.refused(format!("{}\n", "[".repeat(4_000)).as_bytes(), "bad_request");
    let long = "r".repeat(129);
    talk.refused(format!("{{\"type\":\"status\",\"ref\":\"{long}\"}}\n").as_bytes(), "bad_request");
    assert_eq!(talk.ask(json!({ "type": "inbound", "text": "one" }))["type"], "accepted");
    assert_eq!(talk.ask(json!({ "type": "inbound", "text": "two", "ref": "f" }))["code"], "queue_full");
    // These end the connection.
    talk.refused(b"{\"type\":\"\xff\"}\n", "bad_request");
    talk.is_over();
    let (mut talk, _) = Talk::register(&home, json!({}));
    talk.refused("x".repeat(4 << 10).as_bytes().repeat(2).as_slice(), "too_large");
    talk.is_over();
    // An incomplete line is ignored.
    let (mut talk, _) = Talk::register(&home, json!({}));
    talk.stream.write_all(b"{\"type\":\"inbound\",\"text\":\"half\"}").unwrap();
    talk.stream.shutdown(std::net::Shutdown::Write).unwrap();
    talk.is_over();
}

#[test]
fn who_does_not_register_is_dropped() {
    let home = home(&format!("{QUICK}[gateway]\nrequest_timeout_s = 1\n"));
    let _served = Served::start(&home);
    let mut silent = Talk::connect(&home).unwrap();
    assert_eq!(silent.hear().unwrap()["code"], "timeout");
    silent.is_over();
}

#[test]
fn who_does_not_read_or_is_one_too_many_is_dropped() {
    let home = home(&format!("{QUICK}[gateway]\nstalled_timeout_s = 1\nmax_connections = 2\n"));
    let served = Served::start(&home);
    // A client that reads nothing, until the buffers between both sides are full.
    let (stalled, _) = Talk::register(&home, json!({ "after": 0 }));
    let (mut talk, _) = Talk::register(&home, json!({ "session": "quiet" }));
    let mut third = Talk::connect(&home).unwrap();
    assert_eq!(third.hear().unwrap()["code"], "too_many_connections");
    third.is_over();
    let text = format!("$ true # {}", "x".repeat(200_000));
    for _ in 0..40 {
        talk.ask(json!({ "type": "inbound", "session": "loud", "text": text, "ref": "x" }));
    }
    wait_until("the stalled one to be let go", || {
        served.request("GET", "/metrics", None).body.contains("kiso_socket_connections 1\n")
    });
    assert_eq!(talk.ask(json!({ "type": "command", "command": "help", "ref": "h" }))["type"], "outbound");
    drop(stalled);
}

/// A command that waits for the file `go`.
const WAITING: &str = "run `while [ ! -e go ]; do sleep 0.02; done`";

/// A user's message never gets an administrator's rights because both arrived at the same time.
#[test]
fn messages_of_different_callers_are_answered_by_runs_of_their_own() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 500\n");
    let mut served = Served::start(&home);
    served.token = Some(home.kiso(&["token", "add", "phone"]).ok().stdout.trim().to_owned());
    // A user may write to a session that they started.
    served.reply(served.send("main", "$ true"));
    let (mut talk, _) = Talk::register(&home, json!({ "session": "main" }));
    let run_of = |message: i64| {
        served.reply(message);
        served.get(&format!("/messages/{message}"))["run"].clone()
    };
    // At the same time: a message that the first run does not include gets its own run without another message.
    let admin = talk.ask(json!({ "type": "inbound", "text": "$ echo one", "ref": "a" }))["message"].as_i64().unwrap();
    let user = served.send("main", "$ echo two");
    assert_ne!(run_of(admin), run_of(user));
    // While the other run is active, as an addition to it.
    let admin = talk.ask(json!({ "type": "inbound", "text": WAITING, "ref": "a" }))["message"].as_i64().unwrap();
    talk.until_line(|line| line["event"] == "event" && line["data"]["kind"] == "planned");
    let own = talk.ask(json!({ "type": "inbound", "text": "and 3", "ref": "a" }))["message"].as_i64().unwrap();
    let user = served.send("main", "and 4");
    std::fs::write(home.work("main").join("go"), "").unwrap();
    assert_ne!(run_of(admin), run_of(user));
    assert_eq!(run_of(admin), run_of(own), "it adds to the turn");
    let metrics = served.request("GET", "/metrics", None).body;
    assert!(metrics.contains("kiso_queued_messages 0\n"), "those of a turn are no longer waiting: {metrics}");
}

/// Idle clients do not slow down active ones.
#[test]
fn many_idle_clients_are_no_trouble() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let idle: Vec<_> = (0..200).map(|_| Talk::register(&home, json!({ "live": true })).0).collect();
    let (mut talk, _) = Talk::register(&home, json!({ "session": "main" }));
    talk.say(json!({ "type": "inbound", "text": "$ echo here" }));
    talk.until_line(|line| line["type"] == "outbound");
    for mut one in idle {
        one.until_line(|line| line["type"] == "outbound");
    }
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_replaced_and_nothing_else_is() {
    let home = home(QUICK);
    Served::start(&home).kill();
    let path = home.path().join("kiso.sock");
    assert!(path.exists() && UnixStream::connect(&path).is_err(), "it was left");
    assert_eq!(Served::start(&home).terminate(), 0);
    std::fs::write(&path, "precious").unwrap();
    home.kiso(&["serve", "--port", "0"]).exit(3).says(&["kiso.sock is not a socket", "move it away"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_home_whose_path_is_too_long_for_a_socket_says_so() {
    let home = Home::new();
    let long = home.dir.path().join("x".repeat(120));
    let ran = home.kiso_with(&["serve", "--port", "0"], |command| {
        command.env("KISO_HOME", &long);
    });
    ran.exit(3).says(&["kiso.sock is too long for a socket", "--home"]);
}

/// File permissions keep other users out; if they were removed, the daemon checks the user.
#[test]
fn a_program_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return skipped("the socket as another user", "only root can become one");
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return missing_tool("the socket as another user", "there is no python3");
    }
    let home = home(QUICK);
    let _served = Served::start(&home);
    let path = home.path().join("kiso.sock");
    let open = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(home.dir.path(), open(0o755)).unwrap();
    std::fs::set_permissions(home.path(), open(0o755)).unwrap();
    let script = "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[1])\nprint(s.recv(4096).decode())";
    let connect = || Command::new("python3").args(["-c", script]).arg(&path).output().unwrap();
    let closed = connect();
    assert!(String::from_utf8_lossy(&closed.stderr).contains("PermissionError"), "{closed:?}");
    std::fs::set_permissions(&path, open(0o666)).unwrap();
    let open = connect();
    assert!(String::from_utf8_lossy(&open.stdout).contains("\"code\":\"unauthorized\""), "{open:?}");
}

/// The client in docs/socket.md works as documented.
#[test]
fn the_documented_client_works() {
    if Command::new("python3").arg("--version").output().is_err() {
        return missing_tool("the example of docs/socket.md", "there is no python3");
    }
    let page = std::fs::read_to_string(root().join("docs/socket.md")).unwrap();
    let client = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it is there");
    assert!(client.lines().count() <= 30, "it is short: {} lines", client.lines().count());
    let home = home(QUICK);
    let _served = Served::start(&home);
    let file = home.file("client.py", client);
    let say =
        |text: &str| Command::new("python3").arg(&file).arg(home.path().join("kiso.sock")).arg(text).output().unwrap();
    let ran = say("$ echo hello | tr a-z A-Z");
    assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("HELLO"), "{ran:?}");
    let ran = say("/model");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("reflex"), "{ran:?}");
    let ran = say(" ");
    assert!(!ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("empty"), "{ran:?}");
}

/// Unread data is not lost when the daemon ends: the last line announces the end.
#[test]
fn the_end_is_told_to_clients_that_have_not_registered_too() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let mut talk = Talk::connect(&home).unwrap();
    // The daemon has accepted the connection when a later one is answered.
    Talk::register(&home, json!({}));
    assert_eq!(served.terminate(), 0);
    let mut rest = String::new();
    talk.stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "{\"type\":\"shutdown\"}\n");
}
