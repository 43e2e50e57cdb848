//! The daemon from outside: over HTTP, with the built-in model.

use crate::harness::{Home, wait_until};
use crate::served::{Answer, Served};
use crate::webhooks::Inbox;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{Read, Write};

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

#[test]
fn a_message_is_accepted_and_answered() {
    let home = home(QUICK);
    let served = Served::start(&home);
    assert_eq!(served.get("/health")["status"], "ok");
    let message = served.send("main", "$ echo hello | tr a-z A-Z");
    assert!(served.reply(message).contains("HELLO"), "{}", served.reply(message));
    let messages = served.get("/sessions/main/messages");
    let texts: Vec<_> = messages["items"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(texts, ["user", "assistant"]);
    assert_eq!(messages["items"][0]["text"], "$ echo hello | tr a-z A-Z", "it is shown as it was written");
    let runs = served.get("/runs?session=main");
    let run = runs["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(runs["items"][0]["status"], "done");
    let shown = served.get(&format!("/runs/{run}"));
    assert_eq!(shown["tasks"][0]["status"], "done", "{shown}");
    let trace = served.get(&format!("/runs/{run}/trace?prompts=true"));
    assert!(trace["items"].as_array().unwrap().len() > 5, "{trace}");
    assert!(served.request("GET", "/metrics", None).body.contains("kiso_running_runs 0"));
    assert_eq!(served.get("/sessions")["items"][0]["name"], "main");
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_message_with_a_key_is_taken_once() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let body = json!({ "session": "main", "text": "$ echo x >> once", "key": "k1" }).to_string();
    let send = || served.request("POST", "/msg", Some(&body)).expect(202);
    let (one, two) = (send(), send());
    assert_eq!(one["message"], two["message"]);
    assert_eq!((&one["status"], &two["status"]), (&json!("queued"), &json!("known")));
    served.reply(one["message"].as_i64().unwrap());
    assert_eq!(send()["message"], one["message"]);
    assert_eq!(std::fs::read_to_string(home.work("main").join("once")).unwrap(), "x\n");
}

#[test]
fn commands_are_answered_at_once() {
    let home = home(
        "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[providers.lab]\nkind = \"openai\"\n\
         base_url = \"http://127.0.0.1:9/v1\"\n[model_settings.\"lab:small\"]\ncontext_budget = 4000\n",
    );
    let served = Served::start(&home);
    let ask = |text: &str| served.command("main", text);
    assert!(ask("/status").contains("model: reflex"), "{}", ask("/status"));
    assert!(ask("/models").contains("lab:small: a context of 4000 tokens"), "{}", ask("/models"));
    assert!(ask("/model").contains("reflex"));
    assert!(ask("/model nothing").contains("no model \"nothing\" is configured"));
    assert!(ask("/model lab:small").contains("now lab:small"));
    assert!(ask("/status").contains("model: lab:small"));
    assert_eq!(served.command("other", "/model"), "The model of this session is reflex.");
    assert!(ask("/model default").contains("reflex"));
    assert!(ask("/help").contains("/new: clear the context"));
    assert!(ask("/skills").contains("- chart"));
    assert!(ask("/memory").contains("empty"));
    assert!(ask("/cancel").contains("Nothing"));
    assert!(ask("/dance").contains("no command /dance"));
    let message = served.send("main", "$ echo done");
    served.reply(message);
    assert!(ask("/trace").contains("✓ $ echo done"), "{}", ask("/trace"));
    assert!(ask("/new").contains("Context cleared"));
    assert_eq!(served.get("/status/main")["segment_start"], message + 1);
    assert!(ask("/status").contains(&format!("segment begins after message {}", message + 1)));
}

#[test]
fn bad_requests_are_refused_each_by_its_rule() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 60000\nmax_queued = 2\n[gateway]\nmax_body_kib = 4\n");
    let served = Served::start(&home);
    let post = |body: &str| served.request("POST", "/msg", Some(body));
    served.request("GET", "/nothing", None).refuses(404, "not_found");
    served.request("DELETE", "/msg", None).refuses(405, "wrong_method");
    served.request("GET", "/status/unknown", None).refuses(404, "not_found");
    served.request("GET", "/sessions/unknown/messages", None).refuses(404, "not_found");
    served.request("GET", "/messages/99", None).refuses(404, "not_found");
    served.request("GET", "/runs/zzzz", None).refuses(404, "not_found");
    served.request("GET", "/pub/zzzz", None).refuses(404, "not_found");
    post("{\"text\": \"x\"").refuses(400, "bad_request");
    post("{\"text\": 3}").refuses(400, "bad_request");
    post("{\"text\": \" \"}").refuses(400, "bad_request");
    post("{\"text\": \"x\", \"txet\": 1}").refuses(400, "bad_request");
    post("{\"text\": \"x\", \"session\": \"../etc\"}").refuses(400, "bad_request");
    post(&"[".repeat(3_000)).refuses(400, "bad_request");
    post(&format!("{{\"text\": \"{}\"}}", "x".repeat(5_000))).refuses(413, "too_large");
    served.send("a", "one");
    served.send("a", "two");
    let full = post("{\"session\": \"b\", \"text\": \"three\"}");
    full.refuses(429, "queue_full");
    assert!(full.headers.contains("retry-after: 5"), "{full:?}");
    // A request from another site's page in a browser.
    let mut stream = served.connect();
    let head = "POST /msg HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://evil.example\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[test]
fn tokens_are_asked_for_as_soon_as_there_is_one_and_end_when_they_are_revoked() {
    let home = home(QUICK);
    let mut served = Served::start(&home);
    served.get("/sessions");
    let token = home.kiso(&["token", "add", "phone"]).ok().stdout.trim().to_owned();
    served.request("GET", "/sessions", None).refuses(401, "unauthorized");
    assert_eq!(served.get("/health")["status"], "ok", "that is for everybody");
    served.token = Some(format!("{token}x"));
    served.request("GET", "/sessions", None).refuses(401, "unauthorized");
    served.token = Some(token.clone());
    served.get("/sessions");
    home.kiso(&["token", "add", "phone"]).exit(2).says(&["there is already a token"]);
    home.kiso(&["token", "list"]).ok().prints(&["phone  chat"]);
    let bytes = std::fs::read(home.path().join("store.db")).unwrap();
    assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "only its hash is kept");
    home.kiso(&["token", "add", "other"]).ok();
    home.kiso(&["token", "revoke", "phone"]).ok();
    served.request("GET", "/sessions", None).refuses(401, "unauthorized");
    home.kiso(&["token", "revoke", "phone"]).exit(2);
}

/// A client that reads `GET /me` first misses nothing that happens between a listing and the start of the stream.
#[test]
fn the_stream_goes_on_where_a_client_began_to_look() {
    let home = home(QUICK);
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo before"));
    let from = served.get("/me")["last_event_id"].as_i64().unwrap();
    served.get("/sessions");
    served.reply(served.send("main", "$ echo meanwhile"));
    let mut events = served.follow(&format!("?after={from}"), None);
    loop {
        let message = events.next(&["message"]);
        assert_ne!(message.data["text"], "$ echo before");
        if message.data["text"] == "$ echo meanwhile" {
            break;
        }
    }
    assert_eq!(served.terminate(), 0);
}

#[test]
fn events_go_on_where_a_client_left_them() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let mut events = served.follow("?session=main", Some(0));
    // The run lasts until it was seen: the feed reports the run's state at the time of reading.
    let message = served.send("main", "$ until [ -e go ]; do sleep 0.02; done; echo hello");
    let (mut heard, mut running, mut thought) = (None, false, false);
    while heard.is_none() || !running || !thought {
        let next = events.next(&["message", "run", "live"]);
        running |= next.name == "run" && next.data["status"] == "running";
        thought |= next.name == "live" && next.data["type"] == "thought";
        if next.name == "message" {
            heard = Some(next);
        }
    }
    let heard = heard.unwrap();
    assert_eq!((heard.data["id"].as_i64(), &heard.data["role"]), (Some(message), &json!("user")));
    wait_until("the workspace is there", || home.work("main").exists());
    std::fs::write(home.work("main").join("go"), "").unwrap();
    let ended = loop {
        let run = events.next(&["run"]);
        if run.data["status"] == "done" {
            break run;
        }
    };
    drop(events);
    // The stream from the first message on again, without events of other sessions.
    served.reply(served.send("other", "$ echo no"));
    let mut again = served.follow("?session=main", heard.id);
    let mut last = heard.id.unwrap();
    loop {
        let next = again.next(&["run", "event", "message", "session"]);
        let id = next.id.expect("what is in the feed has an id");
        assert!(id > last, "{id} after {last}");
        last = id;
        if next.id == ended.id {
            break;
        }
    }
    assert_eq!(again.next(&["message"]).data["role"], "assistant");
    assert_eq!(served.terminate(), 0);
    assert_eq!(again.next(&["shutdown"]).data, json!({}));
}

/// An accepted message is answered, however often the daemon dies.
#[test]
fn a_killed_daemon_goes_on_where_it_was() {
    // The daemon is killed so soon after each start that no run makes progress.
    let home = home(&format!("{QUICK}hold_after = 100\n"));
    let mut messages = Vec::new();
    for round in 0..5 {
        let served = Served::start(&home);
        for n in 0..4 {
            let text = format!("$ echo {round}.{n} >> seen; echo {round}.{n}");
            messages.push((format!("s{n}"), served.send(&format!("s{n}"), &text)));
        }
        served.kill();
    }
    let served = Served::start(&home);
    for (session, message) in &messages {
        served.reply(*message);
        let all = served.get(&format!("/sessions/{session}/messages"));
        let items = all["items"].as_array().unwrap();
        let run = served.get(&format!("/messages/{message}"))["run"].clone();
        let replies = items.iter().filter(|m| m["role"] == "assistant" && m["run"] == run).count();
        assert_eq!(replies, 1, "one final reply: {all}");
        let seen = std::fs::read_to_string(home.work(session).join("seen")).unwrap_or_default();
        let lines: Vec<_> = seen.lines().collect();
        assert_eq!(lines.iter().collect::<HashSet<_>>().len(), lines.len(), "nothing was done twice: {seen}");
    }
    assert_eq!(served.terminate(), 0);
    let check = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    let answer: String = check.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
}

#[test]
fn a_second_daemon_on_the_same_home_says_whose_it_is() {
    let home = home(QUICK);
    let _served = Served::start(&home);
    home.kiso(&["serve", "--port", "0"]).exit(1).says(&["another kiso serves this home"]);
}

#[test]
fn an_address_that_others_reach_demands_a_token() {
    let home = home("model = \"reflex\"\n[gateway]\nbind = \"0.0.0.0\"\n");
    home.kiso(&["serve", "--port", "0"]).exit(3).says(&["can be reached from other machines", "kiso token add"]);
}

/// A message that arrives completely only during the shutdown is refused with a reason, and is not kept.
#[test]
fn what_comes_while_it_ends_is_refused() {
    let home = home(QUICK);
    let mut served = Served::start(&home);
    let mut events = served.follow("", None);
    let body = json!({ "session": "late", "text": "$ echo late" }).to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let mut late = served.connect();
    let head = format!(
        "POST /msg HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        served.address,
        body.len()
    );
    late.write_all((head + first).as_bytes()).unwrap();
    // The request is read before the shutdown begins: a response on a later connection proves it.
    served.get("/health");
    served.signal(rustix::process::Signal::TERM);
    // Streams receive this event when the daemon stops accepting requests.
    events.next(&["shutdown"]);
    late.write_all(rest.as_bytes()).unwrap();
    let mut answer = Vec::new();
    late.read_to_end(&mut answer).unwrap();
    Answer::parse(&answer).expect("it is answered").refuses(503, "shutting_down");
    assert_eq!(served.ended(), 0);
    let served = Served::start(&home);
    assert_eq!(served.get("/sessions")["items"], json!([]), "nothing of it was kept");
}

/// The log at `KISO_LOG=debug` shows a message from its request to the delivery of the reply, with session and run, but without
/// the texts.
#[test]
fn the_log_tells_the_story_of_a_message() {
    let inbox = Inbox::open();
    let home = home(&format!("{QUICK}[webhooks.a]\nurl = \"http://{}/hook\"\nallow_private = true\n", inbox.address));
    home.add("echo");
    let served = Served::start_with(&home, &["--log", "json"], |command| {
        command.env("KISO_LOG", "debug");
    });
    for said in ["$ echo marker-7d1", "@echo text=marker-8e2"] {
        served.reply(served.send("main", said));
        inbox.next().answer("200 OK", "");
    }
    let log = served.logs("\"delivered\"", 2);
    assert!(!log.contains("marker-"), "what was said stands in the log:\n{log}");
    let run = served.get("/runs?session=main")["items"][1]["id"].as_str().unwrap().to_owned();
    // Each log line as its spans and its message.
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told: Vec<(String, String)> = lines
        .filter(|line| line["target"].as_str().is_some_and(|target| target.starts_with("kiso")))
        .map(|line| {
            let spans = line["spans"].as_array().into_iter().flatten();
            let spans =
                spans.map(|span| format!("{}{{{}}}", span["name"].as_str().unwrap(), span["fields"].as_str().unwrap()));
            (spans.collect::<Vec<_>>().join(" "), line["message"].as_str().unwrap().to_owned())
        })
        .collect();
    let of_run = format!("session.turn{{session=main}} drive.run{{session=main run={run}}}");
    let story = [
        ("gateway.request{method=POST path=\"/msg\"} session.take{session=main}".to_owned(), "a message is queued"),
        ("session.turn{session=main}".to_owned(), "a turn begins"),
        (format!("{of_run} drive.perform{{node=\"input\" step=\"admit\"}}"), "performed"),
        (
            format!(
                "{of_run} drive.perform{{node=\"planner\" step=\"plan\"}} llm.complete{{role=planner model=\"reflex\"}}"
            ),
            "the model has answered",
        ),
        (
            format!("{of_run} drive.perform{{node=\"action\" step=\"execute\"}} exec.run{{session=main}}"),
            "the line has ended",
        ),
        (format!("{of_run} drive.perform{{node=\"output\" step=\"finish\"}}"), "performed"),
        (of_run, "the run has ended"),
    ];
    let mut rest = told.iter();
    for (spans, text) in &story {
        assert!(
            rest.any(|(within, said)| within == spans && said == text),
            "{text:?} in {spans:?} is not told, or not in its place: {told:#?}"
        );
    }
    // A reply is delivered at once; the run may still clean up afterwards.
    let deliver = "channel.deliver{channel=\"a\" id=1}";
    assert!(told.iter().any(|(within, said)| within == deliver && said == "delivered"), "{told:#?}");
    let call = "skill.call{session=main skill=echo tool=\"echo\"}";
    assert!(told.iter().any(|(within, said)| within.ends_with(call) && said == "the call has ended"), "{told:#?}");
}
