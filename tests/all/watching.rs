//! Watching sessions and running runs over HTTP, as in docs/api.md.

use crate::harness::{Home, wait_until};
use crate::model_server::ModelServer;
use crate::served::{Events, Served};
use serde_json::{Value, json};

/// The router's answer to a message that needs no tools.
const TALK: &str = r#"{"effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false}"#;

/// The router's answer to a message that needs a plan.
const PLAN: &str = r#"{"effort": "high", "categories": [], "tool_need": 1, "goal": "an answer", "durable": false}"#;

/// The router's answer to a message that needs tools and no plan.
const TOOLS: &str = r#"{"effort": "medium", "categories": [], "tool_need": 1, "goal": "the sum", "durable": false}"#;

/// A home with the server's model for all roles.
fn home(server: &ModelServer) -> Home {
    let home = Home::new();
    home.config(&format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n[routing]\nfast_path = false\n\
         [daemon]\ndebounce_ms = 20\n[llm]\nmax_retry_wait_s = 1\n",
        server.base_url()
    ));
    home
}

fn reply(role: &str, text: &str, more: &str) -> String {
    format!("[[reply]]\nrole = \"{role}\"\ntext = {text:?}\n{more}\n")
}

/// The text of a role from the pieces of a stream, until it has at least this length.
fn heard(events: &mut Events, role: &str, least: usize) -> String {
    let mut text = String::new();
    while text.len() < least {
        let live = events.next(&["live"]).data;
        assert!(live["seq"].as_u64().is_some(), "{live}");
        match live["type"].as_str().unwrap() {
            "token" if live["role"] == role => text += live["text"].as_str().unwrap(),
            "text" if live["role"] == role => live["text"].as_str().unwrap().clone_into(&mut text),
            "restart" => text.clear(),
            _ => {}
        }
    }
    text
}

#[test]
fn who_begins_to_watch_in_the_middle_hears_all_of_the_answer() {
    const ANSWER: &str = "The first half, and the second half.";
    let stalls = "pieces = 8\nfault = \"stall_mid_stream\"";
    let script = [reply("router", TALK, ""), reply("worker", ANSWER, stalls), reply("titler", "Halves", "")];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server);
    let served = Served::start(&home);
    let mut early = served.follow("?session=main", None);
    let message = served.send("main", "tell me of both halves");
    let first = heard(&mut early, "worker", 1);
    // The model is silent now; a new client receives the earlier text.
    let mut late = served.follow("", None);
    let thought = late.next(&["live"]).data;
    assert_eq!((&thought["type"], &thought["kind"]), (&json!("thought"), &json!("synthesizing")), "{thought}");
    let since = thought["since_ms"].as_i64().unwrap();
    let mut elsewhere = served.follow("?session=other", None);
    let run = thought["run"].as_str().unwrap().to_owned();
    let board = served.get(&format!("/runs/{run}"));
    assert_eq!(board["thought"], json!({ "kind": "synthesizing", "text": thought["text"], "since_ms": since }));
    assert_eq!((&board["plans"], &board["tasks"]), (&json!(0), &json!([])));
    assert_eq!(served.get("/sessions")["items"][0]["running"], json!(run));
    let text = late.next(&["live"]).data;
    assert_eq!((&text["type"], &text["role"], text.get("cut")), (&json!("text"), &json!("worker"), None), "{text}");
    assert!(text["text"].as_str().unwrap().starts_with(&first) && ANSWER.starts_with(text["text"].as_str().unwrap()));
    server.release();
    // With the following pieces it is complete: no piece is lost or repeated.
    let mut whole = text["text"].as_str().unwrap().to_owned();
    while whole.len() < ANSWER.len() {
        let live = late.next(&["live"]).data;
        assert_eq!((&live["type"], &live["seq"]), (&json!("token"), &text["seq"]), "{live}");
        whole += live["text"].as_str().unwrap();
    }
    assert_eq!(whole, ANSWER);
    // The step's event has the number of its pieces.
    let said = std::iter::repeat_with(|| late.next(&["event"]).data).find(|event| event["kind"] == "conversed");
    assert_eq!(said.unwrap()["seq"], text["seq"]);
    assert_eq!(served.reply(message), ANSWER);
    let board = served.get(&format!("/runs/{run}"));
    assert_eq!((&board["thought"], &board["run"]["status"]), (&Value::Null, &json!("done")));
    // A stream of another session receives none of it: its first event is its own.
    assert_eq!(served.command("other", "/model default"), "The model of this session is now test:m.");
    assert_eq!(elsewhere.next(&["live", "session", "message"]).name, "session");
    // Titles come after the reply, and are not created during a shutdown.
    wait_until("the session has a title", || server.is_told());
    assert_eq!(served.terminate(), 0);
    server.finish();
}

#[test]
fn a_run_shows_its_plans_with_what_became_of_each_task() {
    let exec = |line: &str| json!({ "type": "exec", "detail": line, "expect": "a list of names", "review": true });
    let tell = json!({ "type": "msg", "detail": "tell", "notify": true });
    let first = json!({ "goal": "find the names", "tasks": [exec("echo x"), tell] }).to_string();
    let fix =
        json!({ "status": "needs_fix", "reason": "no names", "inject": [exec("cat names >&2; exit 3")] }).to_string();
    let give_up = json!({ "status": "replan", "reason": "there is no such file" }).to_string();
    let second =
        json!({ "goal": "make up names", "tasks": [exec("echo ann > pub/names.txt; cat pub/names.txt"), tell] });
    let script = [
        reply("router", PLAN, ""),
        reply("planner", &first, ""),
        reply("reviewer", &fix, ""),
        reply("reviewer", &give_up, ""),
        reply("planner", &second.to_string(), ""),
        reply("reviewer", r#"{"status": "ok"}"#, ""),
        reply("worker", "It is Ann.", ""),
        reply("titler", "Names", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server);
    let served = Served::start(&home);
    assert!(served.reply(served.send("main", "which names are there?")).contains("It is Ann."));
    let run = served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    let board = served.get(&format!("/runs/{run}"));
    assert_eq!((&board["goal"], &board["plans"]), (&json!("make up names"), &json!(2)), "{board:#}");
    let tasks = board["tasks"].as_array().unwrap();
    let shown: Vec<_> = tasks
        .iter()
        .map(|task| {
            let verdict = task["verdict"]["status"].as_str().unwrap_or("none");
            json!([task["id"], task["plan"], task["attempt"], task["status"], verdict, task["exit_code"]])
        })
        .collect();
    let expected = [
        json!([1, 1, 1, "failed", "needs_fix", 0]),
        json!([3, 1, 2, "failed", "replan", 3]),
        json!([2, 1, 1, "dropped", "none", null]),
        json!([4, 2, 1, "done", "ok", 0]),
        json!([5, 2, 1, "done", "none", null]),
    ];
    assert_eq!(shown, expected, "{board:#}");
    assert_eq!(tasks[0]["verdict"]["reason"], "no names");
    assert!(tasks[1]["stderr"].as_str().unwrap().contains("names"), "{board:#}");
    assert_eq!(tasks[1]["detail"], "cat names >&2; exit 3");
    assert_eq!((&tasks[3]["output"], &tasks[4]["output"]), (&json!("ann\n"), &json!("It is Ann.")));
    assert!(tasks.iter().all(|task| task["ended_ms"].is_i64()), "{board:#}");
    server.finish();
}

/// The medium route has one task, and no plan; until a model has searched the message for secrets, the task does not show its
/// text.
#[test]
fn a_task_without_a_plan_is_shown_when_it_was_looked_at() {
    let call = "calls = [{ name = \"exec\", args = { command = \"echo $((2 + 3))\" } }]\nfault = \"stall_mid_stream\"";
    let script = [
        reply("router", TOOLS, ""),
        reply("actor", "I add them up", &format!("pieces = 4\n{call}")),
        reply("actor", "The sum is 5.", ""),
        reply("titler", "A sum", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server);
    home.config(&format!(
        "{}[pills.sum]\ntemplate = \"Add up {{input}}\"\neffort = \"medium\"\n",
        std::fs::read_to_string(home.path().join("config.toml")).unwrap()
    ));
    let served = Served::start(&home);
    let mut events = served.follow("", None);
    let message = served.send("main", "!sum 2 and 3, my words");
    heard(&mut events, "actor", 1);
    let run = served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    let board = served.get(&format!("/runs/{run}"));
    assert_eq!((&board["tasks"][0]["status"], &board["tasks"][0]["plan"]), (&json!("running"), &json!(0)), "{board:#}");
    assert!(!board.to_string().contains("my words"), "{board:#}");
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(home.path().join(file)).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"my words"), "{file} has them in clear");
    }
    server.release();
    assert!(served.reply(message).contains("The sum is 5."));
    let board = served.get(&format!("/runs/{run}"));
    assert_eq!((&board["tasks"][0]["status"], &board["plans"]), (&json!("done"), &json!(0)), "{board:#}");
    assert!(board["tasks"][0]["detail"].as_str().unwrap().contains("2 and 3, my words"), "{board:#}");
}

/// A reply printed by `kiso run` counts as read; other replies do not.
#[test]
fn a_reply_that_was_printed_is_read() {
    let home = Home::new();
    home.config("[daemon]\ndebounce_ms = 1\n");
    home.kiso(&["run", "-s", "main", "$ echo one"]).ok();
    let served = Served::start(&home);
    let unread = || served.get("/sessions")["items"][0]["unread"].as_u64().unwrap();
    assert_eq!(unread(), 0);
    served.reply(served.send("main", "$ echo two"));
    home.kiso(&["run", "-s", "main", "$ echo three"]).ok();
    assert_eq!(unread(), 2, "one that nobody has read comes before it");
}

#[test]
fn replies_are_unread_until_somebody_reads_them() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    let unread = |session: &str| {
        let all = served.get("/sessions")["items"].as_array().unwrap().clone();
        all.into_iter().find(|line| line["name"] == session).unwrap()["unread"].as_u64().unwrap()
    };
    let read = |session: &str, message: i64| {
        let body = json!({ "message": message }).to_string();
        assert_eq!(served.request("POST", &format!("/sessions/{session}/read"), Some(&body)).status, 204);
    };
    let ids = |session: &str| -> Vec<i64> {
        let all = served.get(&format!("/sessions/{session}/messages"));
        all["items"].as_array().unwrap().iter().map(|message| message["id"].as_i64().unwrap()).collect()
    };
    for text in ["$ echo one", "$ echo two"] {
        served.reply(served.send("main", text));
    }
    served.reply(served.send("other", "$ echo three"));
    assert_eq!((unread("main"), unread("other")), (2, 1));
    let mut events = served.follow("?session=main", None);
    let main = ids("main");
    read("main", main[1]);
    let told = events.next(&["session"]).data;
    assert_eq!((&told["name"], &told["unread"], &told["running"]), (&json!("main"), &json!(1), &Value::Null), "{told}");
    assert!(told["created_ms"].is_i64() && told["title"].is_string(), "{told}");
    // The mark never goes back, and never beyond the last message.
    read("main", main[0]);
    assert_eq!(unread("main"), 1);
    read("main", i64::MAX);
    assert_eq!((unread("main"), unread("other")), (0, 1));
    served.reply(served.send("main", "$ echo four"));
    assert_eq!(unread("main"), 1);
    assert_eq!(served.request("PATCH", "/sessions/main", Some(r#"{"title": "Numbers"}"#)).expect(200)["unread"], 1);
}

#[test]
fn what_can_be_typed_is_told() {
    let home = Home::new();
    home.config(
        "model = \"reflex\"\n[pills.digest]\ntemplate = \"Read {input}\"\neffort = \"low\"\ndescription = \"Sums up\"\n",
    );
    let served = Served::start(&home);
    let input = served.get("/input");
    assert_eq!(input["pills"], json!([{ "name": "digest", "description": "Sums up", "effort": "low" }]));
    let find = |list: &str, name: &str| {
        let entry = input[list].as_array().unwrap().iter().find(|entry| entry["name"] == name);
        entry.unwrap_or_else(|| panic!("{list} {name}: {input:#}")).clone()
    };
    assert_eq!(find("tags", "shell")["skills"], json!(["exec", "file_read", "file_write", "file_edit", "look"]));
    assert!(find("tags", "data")["skills"].as_array().unwrap().contains(&json!("data")));
    assert_eq!(find("commands", "model")["args"], "[[ROLE] MODEL]");
    assert_eq!(input["models"], json!(["reflex"]));
    let data = find("skills", "data");
    assert_eq!(data["skill"], "data");
    assert!(data["args"].as_array().unwrap().contains(&json!("file")), "{data}");
}

/// The trace names the component exactly, with its permissions and limits.
#[test]
fn a_trace_tells_what_a_component_was_granted_and_used_of_its_limits() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[exec]\nmemory_mib = 300\n");
    let served = Served::start(&home);
    std::fs::create_dir_all(home.work("main")).unwrap();
    std::fs::write(home.work("main").join("a.csv"), "town,rain\nOslo,3\n").unwrap();
    served.reply(served.send("main", "@data file=a.csv\n$ echo done"));
    let run = served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    let trace = served.get(&format!("/runs/{run}/trace"));
    let reports: Vec<_> = trace["items"].as_array().unwrap().iter().map(|event| &event["body"]["report"]).collect();
    let of = |kind: &str| {
        *reports.iter().find(|report| report["task"]["type"] == kind).unwrap_or_else(|| panic!("{trace:#}"))
    };
    let (skill, exec) = (of("skill"), of("exec"));
    assert_eq!(skill["task"]["skill"], "data", "it was named as in every message");
    assert_eq!(skill["grant"], json!({ "http": [], "secrets": [] }), "{skill:#}");
    assert_eq!(skill["grant"], served.get("/skills/data")["grant"]);
    assert_eq!(skill["skill_digest"], served.get("/skills/data")["digest"]);
    for (report, memory) in [(skill, None), (exec, Some(300_u64 << 20))] {
        let (used, limits) = (&report["used"], &report["limits"]);
        for what in ["millis", "memory_bytes", "written_bytes"] {
            assert!(used[what].as_u64().unwrap() <= limits[what].as_u64().unwrap(), "{what}: {report:#}");
        }
        assert!(memory.is_none_or(|memory| limits["memory_bytes"] == memory), "{report:#}");
    }
    assert!(limits_of(skill, "host_calls") > 0 && limits_of(exec, "processes_at_once") > 0);
}

fn limits_of(report: &Value, what: &str) -> u64 {
    report["limits"][what].as_u64().unwrap_or_else(|| panic!("{what}: {report:#}"))
}

#[test]
fn the_daemon_says_in_figures_how_it_is() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    served.reply(served.send("main", "$ echo hello"));
    let _stream = served.follow("", None);
    let health = served.get("/health/details");
    assert_eq!((&health["status"], &health["warnings"]), (&json!("ok"), &json!([])), "{health:#}");
    assert_eq!((&health["sessions"], &health["messages"], &health["runs"]), (&json!(1), &json!(2), &json!(1)));
    assert_eq!((&health["queued"], &health["running"], &health["event_streams"]), (&json!(0), &json!(0), &json!(1)));
    let number = |what: &str| health[what].as_u64().unwrap_or_else(|| panic!("{what}: {health:#}"));
    assert!(number("now_ms") >= number("started_ms") && number("store_bytes") > 4_096 && number("free_bytes") > 0);
    assert!(number("rss_bytes") > 1 << 20 && health["model_slots"]["free"].as_u64().unwrap() > 0, "{health:#}");
    std::fs::create_dir_all(home.path().join("skills/broken")).unwrap();
    std::fs::write(home.path().join("skills/broken/installed.json"), "no record").unwrap();
    let warnings = served.get("/health/details")["warnings"].clone();
    assert!(warnings[0].as_str().unwrap().contains("broken"), "{warnings}");
}

/// A skill named in a message adds its category, without asking the router for tools.
#[test]
fn a_skill_that_is_named_brings_its_tools() {
    let script = [
        reply("router", TOOLS, ""),
        "[[reply]]\nrole = \"actor\"\nexpect_contains = \"@chart\"\ntext = \"There is nothing to draw.\"\n".to_owned(),
        reply("titler", "A chart", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server);
    let served = Served::start(&home);
    served.reply(served.send("main", "draw it with @chart, ann@example.org"));
    let run = served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    let trace = served.get(&format!("/runs/{run}/trace"));
    let admitted = trace["items"].as_array().unwrap().iter().find(|event| event["kind"] == "admitted").unwrap();
    let chart = served.get("/skills/chart")["category"].clone();
    assert_eq!(admitted["body"]["categories"], json!([chart]), "{admitted:#}");
    assert!(admitted["body"]["message"].as_str().unwrap().contains("@chart"));
    server.finish();
}

/// A client that polls without a pause receives each change, but responses are delayed while nothing changes.
#[test]
fn polls_are_answered_with_news() {
    let home = Home::new();
    home.config("[daemon]\ndebounce_ms = 0\n");
    let served = Served::start(&home);
    let message = served.send("main", "$ sleep 2; echo slept");
    let (mut asked, mut statuses) = (0, Vec::new());
    let job = loop {
        let job = served.get(&format!("/messages/{message}"));
        asked += 1;
        let status = job["status"].as_str().expect("it has one").to_owned();
        if statuses.last() != Some(&status) {
            statuses.push(status);
        }
        if job["reply"].is_object() {
            break job;
        }
    };
    assert!(job["reply"]["text"].as_str().unwrap().contains("slept"), "{job}");
    assert_eq!(statuses.last().map(String::as_str), Some("done"), "{statuses:?}");
    assert!(statuses.contains(&"running".to_owned()), "{statuses:?}");
    assert!(asked < 100, "it was asked {asked} times");
    // A finished message is returned at once, however often it is requested.
    (0..3).for_each(|_| assert_eq!(served.get(&format!("/messages/{message}"))["status"], "done"));
}
