//! The schedule in the daemon, on the command line and over HTTP, with the real clock.

use crate::harness::{Home, wait_until};
use crate::served::Served;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

const OFTEN: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[schedule]\nmin_interval_s = 1\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The receipts of a schedule, oldest first.
fn receipts(home: &Home, name: &str) -> Vec<Value> {
    let mut all = home.kiso(&["--json", "schedule", "receipts", name, "-n", "1000"]).ok().json_lines();
    all.reverse();
    all
}

/// Receipts that were not skipped, after all of them have ended. A machine slower than the schedule skips some.
#[track_caller]
fn ended(home: &Home, name: &str) -> Vec<Value> {
    let mut all = Vec::new();
    wait_until("what was begun to end", || {
        all = receipts(home, name);
        all.retain(|receipt| receipt["state"] != "skipped");
        // Work of a killed daemon may fail, and is reported as usual.
        all.iter().all(|receipt| receipt["state"] == "done" || receipt["state"] == "failed")
    });
    all
}

fn done(home: &Home, name: &str) -> usize {
    receipts(home, name).iter().filter(|receipt| receipt["state"] == "done").count()
}

/// A schedule that another process adds while the daemon runs is noticed, and so is its removal.
#[test]
fn a_message_comes_by_itself_and_its_answer_is_told() {
    let home = home(OFTEN);
    let served = Served::start(&home);
    let added =
        home.kiso(&["--json", "schedule", "add", "tick", "@every 1s", "$ echo tick", "--session", "main"]).ok().json();
    assert_eq!(
        (&added["when"], &added["role"], &added["paused"]),
        (&json!("@every 1s"), &json!("admin"), &json!(false))
    );
    wait_until("two times", || done(&home, "tick") >= 2);
    let paused = home.kiso(&["--json", "schedule", "pause", "tick"]).ok().json();
    assert_eq!(paused["paused"], true);
    let (all, messages) = (ended(&home, "tick"), served.get("/sessions/main/messages"));
    let told = messages["items"].as_array().unwrap();
    assert_eq!(told.len(), all.len(), "one answer for each receipt: {told:?}");
    for (receipt, message) in all.iter().zip(told) {
        assert_eq!((&message["role"], &message["run"]), (&json!("assistant"), &receipt["run"]));
        assert!(message["text"].as_str().unwrap().contains("tick"));
        assert!(receipt["fired_ms"].as_i64() >= receipt["due_ms"].as_i64() && receipt["by_hand"] == false);
    }
    home.kiso(&["schedule", "run", "tick"]).ok().prints(&["tick was sent as message"]);
    wait_until("the one by hand", || {
        receipts(&home, "tick").last().is_some_and(|last| last["by_hand"] == true && last["state"] == "done")
    });
    home.kiso(&["schedule", "remove", "tick"]).ok().prints(&["tick is removed"]);
    assert_eq!(home.kiso(&["schedule", "list"]).ok().stdout, "");
    home.kiso(&["schedule", "receipts", "tick"]).exit(2).says(&["there is no schedule \"tick\""]);
}

#[test]
fn after_a_time_away_what_was_missed_comes_once() {
    let home = home(OFTEN);
    let added = home.kiso(&["--json", "schedule", "add", "tick", "@every 1s", "$ echo tick"]).ok().json();
    let first = added["next_ms"].as_i64().unwrap();
    wait_until("three times to be missed", || now_ms() > first + 2_000);
    assert_eq!(receipts(&home, "tick").len(), 0);
    let served = Served::start(&home);
    wait_until("two times", || done(&home, "tick") >= 2);
    served.terminate();
    let all = receipts(&home, "tick");
    assert_eq!(all[0]["due_ms"].as_i64(), Some(first), "the receipt says since when it was due");
    // Other missed times have no receipt: the next one is after the time when the first fired.
    let (fired, next) = (all[0]["fired_ms"].as_i64().unwrap(), all[1]["due_ms"].as_i64().unwrap());
    assert!(fired > first + 2_000 && next > fired && (next - first) % 1_000 == 0, "{all:?}");
}

/// Each time fires once, however often the daemon dies.
#[test]
fn a_killed_daemon_fires_each_time_once() {
    // A slow machine may be killed at the same step each time, and the run should not wait for a person.
    let home = home(&OFTEN.replace("debounce_ms = 20", "debounce_ms = 20\nhold_after = 1000"));
    home.kiso(&["schedule", "add", "tick", "@every 1s", "$ echo tick", "--session", "main"]).ok();
    for round in 1..=4 {
        let served = Served::start(&home);
        wait_until("a time", || receipts(&home, "tick").len() >= round);
        served.kill();
    }
    home.kiso(&["schedule", "pause", "tick"]).ok();
    let served = Served::start(&home);
    let all = ended(&home, "tick");
    let due: BTreeSet<i64> = all.iter().map(|receipt| receipt["due_ms"].as_i64().unwrap()).collect();
    let runs: BTreeSet<&str> = all.iter().map(|receipt| receipt["run"].as_str().unwrap()).collect();
    assert_eq!((due.len(), runs.len()), (all.len(), all.len()), "{all:?}");
    let messages = served.get("/sessions/main/messages");
    let told: Vec<&str> = messages["items"].as_array().unwrap().iter().map(|m| m["run"].as_str().unwrap()).collect();
    assert_eq!((told.len(), told.into_iter().collect::<BTreeSet<_>>()), (all.len(), runs), "each is told once");
}

#[test]
fn the_times_to_come_are_shown_in_their_zone() {
    let home = home("model = \"reflex\"\n[schedule]\ntime_zone = \"Asia/Tokyo\"\n");
    home.kiso(&["schedule", "add", "a", "0 9 * * *", "hello"])
        .ok()
        .prints(&["a  0 9 * * * (Asia/Tokyo): next ", "+09:00"])
        .says(&["no daemon is running", "`kiso serve`"]);
    home.kiso(&["schedule", "add", "b", "at 2099-01-31 08:00", "hello", "--zone", "Europe/Berlin"]).ok();
    let times = home.kiso(&["--json", "schedule", "next", "-n", "3"]).ok().json_lines();
    let names: Vec<_> = times.iter().map(|time| time["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "a", "a", "b"], "a single time comes once");
    assert!(times[0]["at"].as_str().unwrap().ends_with("09:00:00 +09:00"), "{times:?}");
    assert_eq!(times[3]["at"], "2099-01-31 08:00:00 +01:00");
    home.kiso(&["schedule", "next", "c"]).exit(2).says(&["there is no schedule \"c\""]);
}

#[test]
fn what_is_wrong_is_named() {
    let home = home("model = \"reflex\"\n");
    let add = |args: &[&str]| home.kiso(&[&["schedule", "add"], args].concat());
    add(&["x", "61 * * * *", "m"])
        .exit(2)
        .says(&["the minute field of the cron expression, \"61\", is wrong", "0 to 59"]);
    add(&["x", "0 9 * * FRY", "m"]).exit(2).says(&["the day of week field", "\"FRY\""]);
    add(&["x", "0 9 *", "m"]).exit(2).says(&["says no time", "5 fields"]);
    add(&["x", "@every 5 minutes", "m"]).exit(2).says(&["@every 10m"]);
    add(&["x", "*/10 * * * * *", "m"]).exit(5).says(&["every 10 seconds", "schedule.min_interval_s"]);
    add(&["x", "0 0 31 2 *", "m"]).exit(2).says(&["never comes"]);
    add(&["x", "@daily", "m", "--zone", "Moon/Base"]).exit(2).says(&["there is no time zone \"Moon/Base\""]);
    add(&["x", "@daily", "m", "--model", "lab:m"]).exit(2).says(&["no model \"lab:m\" is configured"]);
    add(&["x", "@daily", "m", "--session", "../x"]).exit(2);
    add(&["X", "@daily", "m"]).exit(2).says(&["cannot be the name of a schedule"]);
    add(&["x", "@daily", ""]).exit(2).says(&["the message is empty"]);
    assert_eq!(home.kiso(&["schedule", "list"]).ok().stdout, "", "nothing of it was kept");
    let error = home.kiso(&["--json", "schedule", "run", "x"]).exit(2).json();
    assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("usage")));
    home.config("model = \"reflex\"\n[schedule]\ntime_zone = \"Moon/Base\"\n");
    add(&["x", "@daily", "m"]).exit(3).says(&["schedule.time_zone in config.toml", "Moon/Base"]);
}

#[test]
fn over_http_a_schedule_has_the_rights_of_its_token() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let [user, admin] = ["chat", "admin"].map(|scope| {
        let ran = home.kiso(&["token", "add", scope, "--scope", scope]);
        ran.ok().stdout.trim().to_owned()
    });
    let mut served = Served::start(&home);
    served.request("GET", "/schedules", None).refuses(401, "unauthorized");
    served.token = Some(user.clone());
    let body = |name: &str| {
        json!({ "name": name, "when": "@daily", "message": "$ echo hi", "zone": "UTC", "session": "main" }).to_string()
    };
    let mine = served.request("POST", "/schedules", Some(&body("mine"))).expect(201);
    assert_eq!((&mine["role"], &mine["zone"], &mine["paused"]), (&json!("user"), &json!("UTC"), &json!(false)));
    served.request("POST", "/schedules", Some(&body("mine"))).refuses(409, "taken");
    served.request("POST", "/schedules", Some(&body("No"))).refuses(400, "bad_request");
    served.request("POST", "/schedules", Some("{\"name\": \"x\"}")).refuses(400, "bad_request");
    served.request("POST", "/schedules/none/run", None).refuses(404, "not_found");
    home.kiso(&["schedule", "add", "roots", "@daily", "$ echo hi"]).ok();
    served.request("PATCH", "/schedules/roots", Some(r#"{"message": "$ echo mine"}"#)).refuses(404, "not_found");
    for (method, path) in [("DELETE", ""), ("POST", "/run"), ("POST", "/pause"), ("POST", "/resume")] {
        served.request(method, &format!("/schedules/roots{path}"), None).refuses(404, "not_found");
    }
    let fired = served.request("POST", "/schedules/mine/run", None).expect(202);
    served.reply(fired["message"].as_i64().unwrap());
    assert_eq!(served.get("/sessions/main/messages")["items"].as_array().unwrap().len(), 1);
    assert_eq!(served.request("POST", "/schedules/mine/pause", None).expect(200)["paused"], true);
    assert_eq!(served.request("POST", "/schedules/mine/resume", None).expect(200)["paused"], false);
    let names = |served: &Served| -> Vec<Value> {
        served.get("/schedules")["items"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect()
    };
    assert_eq!(names(&served), ["mine"]);
    served.token = Some(admin);
    assert_eq!(names(&served), ["mine", "roots"]);
    assert_eq!(served.request("DELETE", "/schedules/roots", None).status, 204);
    assert_eq!(served.request("DELETE", "/schedules/mine", None).status, 204);
    assert_eq!(served.get("/schedules")["items"], json!([]));
}

/// Named fields are changed, all others stay, also the next time if the same timing is given again. A refusal changes nothing.
#[test]
fn a_schedule_is_changed_where_it_stands() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[subagents]\nmodel = \"reflex\"\n");
    let before = home
        .kiso(&["--json", "schedule", "add", "tide", "@every 10m", "$ echo low", "--session", "main", "--zone", "UTC"])
        .ok()
        .json();
    home.kiso(&["schedule", "pause", "tide"]).ok();
    let edit = |args: &[&str]| home.kiso(&[&["--json", "schedule", "edit", "tide"], args].concat());
    let mut wanted = before.clone();
    wanted["paused"] = json!(true);
    wanted["message"] = json!("$ echo high");
    assert_eq!(edit(&["--message", "$ echo high", "--when", "@every 10m"]).ok().json(), wanted);
    wanted["session"] = Value::Null;
    assert_eq!(edit(&["--session", ""]).ok().json(), wanted);
    let moved = edit(&["--when", "0 6 * * *", "--zone", "Europe/Berlin"]).ok().json();
    assert_eq!(
        (&moved["when"], &moved["zone"], &moved["paused"]),
        (&json!("0 6 * * *"), &json!("Europe/Berlin"), &json!(true))
    );
    assert_ne!(moved["next_ms"], before["next_ms"]);
    for (args, exit, words) in [
        (&["--when", "61 * * * *"][..], 2, "61"),
        (&["--zone", "Moon/Base"], 2, "there is no time zone \"Moon/Base\""),
        (&["--message", " "], 2, "the message is empty"),
        (&["--model", "lab:m"], 2, "no model \"lab:m\" is configured"),
        (&["--session", "schedule.tide"], 2, "its own session"),
        (&["--when", "* * * * * *"], 5, "schedule.min_interval_s"),
        (&[], 2, "nothing is to be changed"),
    ] {
        home.kiso(&[&["schedule", "edit", "tide"], args].concat()).exit(exit).says(&[words]);
    }
    home.kiso(&["schedule", "edit", "none", "--message", "x"]).exit(2).says(&["there is no schedule \"none\""]);
    assert_eq!(home.kiso(&["--json", "schedule", "list"]).ok().json(), moved);
    // Over HTTP, a change returns the new values.
    let token = home.kiso(&["token", "add", "admin", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let mut served = Served::start(&home);
    served.token = Some(token);
    let change = json!({ "message": "$ echo tide is $((1+1))", "session": "main", "zone": "UTC" }).to_string();
    let changed = served.request("PATCH", "/schedules/tide", Some(&change)).expect(200);
    assert_eq!(
        (&changed["session"], &changed["when"], &changed["zone"]),
        (&json!("main"), &json!("0 6 * * *"), &json!("UTC"))
    );
    served.request("PATCH", "/schedules/tide", Some(r#"{"massage": "x"}"#)).refuses(400, "bad_request");
    served.request("PATCH", "/schedules/none", Some("{}")).refuses(404, "not_found");
    let fired = served.request("POST", "/schedules/tide/run", None).expect(202);
    assert!(served.reply(fired["message"].as_i64().unwrap()).contains("tide is 2"));
    let none = served.request("PATCH", "/schedules/tide", Some(r#"{"session": null}"#)).expect(200);
    assert_eq!(none["session"], Value::Null);
}

/// A conversation creates a schedule, receives the answers, and removes the schedule.
#[test]
fn the_agent_schedules_with_the_rights_of_its_conversation() {
    use crate::model_server::{Call, ModelServer, Reply, Script, Texts};
    let text = |role: &str, text: &str| Reply { role: Some(role.into()), text: text.into(), ..Reply::default() };
    let routing = json!({ "effort": "medium", "categories": ["schedule"], "tool_need": 1, "goal": "a reminder", "durable": false });
    let router = || text("router", &routing.to_string());
    let call = |name: &str, args: Value| {
        let calls = vec![Call { name: name.into(), args }];
        Reply { role: Some("actor".into()), calls, ..Reply::default() }
    };
    let expect = |part: &str, reply: Reply| Reply { expect_contains: Texts::One(part.into()), ..reply };
    let add = |when: &str| {
        call("schedule_add", json!({ "name": "tide", "when": when, "message": "what is a tide?", "zone": "UTC" }))
    };
    let reply = vec![
        router(),
        add("* * * *"),
        expect("5 fields", add("@daily")),
        expect("Scheduled: tide  @daily (UTC), to main", text("actor", "I will tell you.")),
        text("worker", "The sea, going up and down."),
        router(),
        call("schedule_list", json!({})),
        expect("what is a tide?", call("schedule_remove", json!({ "name": "tide" }))),
        expect("The schedule tide is removed", text("actor", "It is off.")),
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n[models]\ntitler = \"reflex\"\n\
         summarizer = \"reflex\"\n[daemon]\ndebounce_ms = 20\n",
        server.base_url()
    ));
    let served = Served::start(&home);
    assert_eq!(served.reply(served.send("main", "schedule a run of the tide report")), "I will tell you.");
    assert_eq!(home.kiso(&["--json", "schedule", "list"]).ok().json()["role"], "user");
    home.kiso(&["schedule", "run", "tide"]).ok();
    let told = || served.get("/sessions/main/messages")["items"].as_array().unwrap().len();
    wait_until("the answer", || told() == 3);
    let item = &served.get("/sessions/main/messages")["items"][2];
    assert_eq!((&item["role"], &item["text"]), (&json!("assistant"), &json!("The sea, going up and down.")));
    assert_eq!(served.reply(served.send("main", "run the removal of the schedule")), "It is off.");
    server.finish();
}
