//! Approvals: cards of runs are shown once, can be answered from anywhere, and survive a restart of the daemon.

mod bounds;
mod terminal;

use crate::crash::{serve, store};
use crate::harness::{Home, wait_for, wait_until};
use crate::model_server::ModelServer;
use crate::served::Served;
use crate::web::Web;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 0\n";

/// A home in which `fetch` reaches the server after an approval.
fn asking(web: &Web) -> Home {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\nmax_jobs = 1\n");
    grant(&home, web);
    home
}

fn grant(home: &Home, web: &Web) {
    web.is_asked_for(home);
}

fn fetch(web: &Web, path: &str) -> Value {
    json!({ "type": "skill", "skill": "fetch", "args": { "url": web.url(path) } })
}

fn plan(tasks: &[Value]) -> (&'static str, Value) {
    let message = json!({ "type": "msg", "detail": "say what it says", "notify": true });
    let tasks: Vec<_> = tasks.iter().chain([&message]).collect();
    ("planner", json!({ "text": json!({ "goal": "the weather", "tasks": tasks }).to_string() }))
}

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

fn routed(effort: &str) -> (&'static str, Value) {
    let routing =
        json!({ "effort": effort, "categories": [], "tool_need": 1, "goal": "the weather", "durable": false });
    ("router", json!({ "text": routing.to_string() }))
}

/// A home in which a model plans.
fn planned(web: &Web, replies: &[(&'static str, Value)]) -> (Home, ModelServer) {
    let home = Home::new();
    let replies: Vec<_> = [routed("high")].iter().chain(replies).cloned().collect();
    let model = serve(&home, &replies, QUICK);
    grant(&home, web);
    (home, model)
}

/// The pending card of a session.
fn card(served: &Served, session: &str) -> Value {
    wait_for("a card", || served.get(&format!("/approvals?session={session}"))["items"].as_array()?.first().cloned())
}

fn id(card: &Value) -> i64 {
    card["id"].as_i64().unwrap()
}

fn answer(served: &Served, card: &Value, accept: Value) -> Value {
    let body = json!({ "accept": accept }).to_string();
    served.request("POST", &format!("/approvals/{}", id(card)), Some(&body)).expect(200)
}

#[test]
fn a_run_waits_for_a_word_and_goes_on_with_it() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let message = served.send("main", &format!("fetch url={}", web.url("a")));
    let card = card(&served, "main");
    wait_until("the message to wait", || served.get(&format!("/messages/{message}"))["status"] == "waiting");
    let run = card["run"].as_str().unwrap();
    assert_eq!(served.get(&format!("/runs/{run}"))["run"]["status"], "waiting");
    assert_eq!(card["effects"].as_array().unwrap().len(), 1, "{card}");
    let effect = &card["effects"][0];
    assert_eq!((&effect["tool"], &effect["task"]), (&json!("fetch"), &json!(1)), "{effect}");
    assert_eq!(effect["access"][0]["hosts"], json!([{ "host": web.address, "methods": ["GET"] }]));
    assert!(effect["args"].to_string().contains(&web.url("a")), "{effect}");
    let said = served.get("/sessions/main/messages")["items"][1]["text"].to_string();
    assert!(said.contains(&format!("/approve {}", id(&card))) && said.contains(&web.address), "{said}");
    // The only slot for runs is free meanwhile, also in the same session.
    assert!(served.reply(served.send("other", "$ echo one")).contains("one"));
    assert!(served.reply(served.send("main", "$ echo two")).contains("two"));
    assert_eq!(web.asked(), [""; 0], "nothing goes out before");

    served.request("POST", "/approvals/99", Some("{\"accept\":[]}")).refuses(404, "not_found");
    let path = format!("/approvals/{}", id(&card));
    served.request("POST", &path, Some("{\"accept\":[2]}")).refuses(400, "bad_request");
    assert_eq!(answer(&served, &card, json!([1]))["state"], "answered");
    assert!(served.reply(message).contains("Rain in Oslo"));
    assert_eq!(web.asked(), ["/a"]);
    served.request("POST", &path, Some("{\"accept\":[1]}")).refuses(409, "over");
    let trace = home.kiso(&["trace", run]);
    trace.ok().prints(&["approval: asks for 1 effect", "approval: accepted 1 by this machine"]);
}

#[test]
fn what_is_refused_is_not_done_and_the_planner_hears_of_it() {
    let web = Web::start();
    let (home, model) = planned(&web, &[plan(&[fetch(&web, "a")]), plan(&[]), says("It was not looked up.")]);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    let number = id(&card(&served, "main")).to_string();
    home.kiso(&["approval", "accept", &number, "7"]).exit(2).says(&["has the numbers 1 to 1, and not 7"]);
    home.kiso(&["approval", "refuse", &number]).ok().prints(&["nothing is accepted"]);
    home.kiso(&["approval", "refuse", &number]).exit(1).says(&["waits for no answer"]);
    assert!(served.reply(message).contains("It was not looked up."));
    assert_eq!(web.asked(), [""; 0]);
    let replanned = model.requests().into_iter().any(|request| format!("{request:?}").contains("refused by the user"));
    assert!(replanned, "the planner reads why");
}

#[test]
fn one_card_has_all_that_a_plan_foresees_and_some_of_it_is_accepted() {
    let web = Web::start();
    let (home, _model) = planned(&web, &[plan(&[fetch(&web, "a"), fetch(&web, "b")]), plan(&[]), says("One of two.")]);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    let asked = card(&served, "main");
    assert_eq!(asked["effects"].as_array().unwrap().len(), 2, "{asked}");
    answer(&served, &asked, json!([1]));
    assert!(served.reply(message).contains("One of two."));
    assert_eq!(web.asked(), ["/a"]);
    assert_eq!(served.get("/approvals?all=true")["items"].as_array().unwrap().len(), 1, "nobody is asked twice");
}

#[test]
fn another_argument_is_another_question_and_the_same_one_is_not() {
    let web = Web::start();
    let plans = [
        plan(&[fetch(&web, "a"), fetch(&web, "b")]),
        // An accepted call may be repeated; a new one asks.
        plan(&[fetch(&web, "a"), fetch(&web, "b?leak=1")]),
        plan(&[]),
        says("Enough."),
    ];
    let (home, _model) = planned(&web, &plans);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    answer(&served, &card(&served, "main"), json!([1]));
    let second = card(&served, "main");
    assert_eq!(second["effects"].as_array().unwrap().len(), 1, "{second}");
    assert!(second["effects"][0]["args"].to_string().contains("leak=1"), "{second}");
    answer(&served, &second, json!([]));
    assert!(served.reply(message).contains("Enough."));
    assert_eq!(web.asked(), ["/a", "/a"]);
}

#[test]
fn nobody_answers_in_time() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let message = served.send("main", &format!("fetch url={}", web.url("a")));
    let asked = card(&served, "main");
    assert!(asked["expires_ms"].as_i64() > asked["asked_ms"].as_i64().map(|asked| asked + 86_000_000));
    store(&home).execute("UPDATE approvals SET expires_ms = 1, card = json_set(card, '$.expires_ms', 1)", ()).unwrap();
    let reply = served.reply(message);
    assert!(reply.contains("nobody accepted this in time"), "{reply}");
    assert_eq!(web.asked(), [""; 0]);
    let path = format!("/approvals/{}", id(&asked));
    served.request("POST", &path, Some("{\"accept\":[1]}")).refuses(409, "over");
    assert_eq!(served.get(&path)["state"], "expired");
}

#[test]
fn a_card_outlives_the_daemon_however_it_ends() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let message = served.send("main", &format!("fetch url={}", web.url("a")));
    let asked = card(&served, "main");
    served.kill();
    let served = Served::start(&home);
    served.kill();
    let served = Served::start(&home);
    assert_eq!(served.terminate(), 0);
    let mut served = Served::start(&home);
    assert_eq!(card(&served, "main"), asked, "the same card, and only one");
    assert_eq!(served.get(&format!("/messages/{message}"))["status"], "waiting");
    // The card is answered while no daemon runs.
    served.kill();
    home.kiso(&["approval", "accept", &id(&asked).to_string()]).ok().prints(&["all is accepted"]);
    assert_eq!(web.asked(), [""; 0]);
    served = Served::start(&home);
    assert!(served.reply(message).contains("Rain in Oslo"));
    assert_eq!(web.asked(), ["/a"], "once");
}

#[test]
fn a_run_that_waits_is_cancelled() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let stop = |session: &str, how: &dyn Fn(&str)| {
        let message = served.send(session, &format!("fetch url={}", web.url("a")));
        let asked = card(&served, session);
        how(asked["run"].as_str().unwrap());
        wait_until("the message to be cancelled", || {
            served.get(&format!("/messages/{message}"))["status"] == "cancelled"
        });
        let path = format!("/approvals/{}", id(&asked));
        assert_eq!(served.get(&path)["state"], "withdrawn");
        served.request("POST", &path, Some("{\"accept\":[1]}")).refuses(409, "over");
    };
    stop("api", &|run| drop(served.request("POST", &format!("/runs/{run}/cancel"), Some("")).expect(200)));
    stop("command", &|_| assert!(served.command("command", "/cancel").contains("Stopping")));
    stop("terminal", &|run| {
        home.kiso(&["cancel", run]).ok();
    });
    assert_eq!(web.asked(), [""; 0]);
}

#[test]
fn what_is_remembered_is_not_asked_until_it_is_forgotten() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let message = served.send("main", &format!("fetch url={}", web.url("a")));
    let number = id(&card(&served, "main"));
    assert!(served.command("main", "/approve").contains(&format!("Approval {number}")));
    assert!(served.command("other", &format!("/approve {number}")).contains("there is no approval"));
    assert!(served.command("main", "/approve one").contains("Write /approve NUMBER"));
    let said = served.command("main", &format!("/approve {number} always"));
    assert!(said.contains("for the rest of this session"), "{said}");
    served.reply(message);
    assert!(served.reply(served.send("main", &format!("fetch url={}", web.url("b")))).contains("Rain"));
    assert_eq!(web.asked(), ["/a", "/b"]);

    let elsewhere = served.send("other", &format!("fetch url={}", web.url("c")));
    let asked = card(&served, "other");
    home.kiso(&["approval", "accept", &id(&asked).to_string(), "--always", "30d"]).ok();
    served.reply(elsewhere);
    served.reply(served.send("third", &format!("fetch url={}", web.url("d"))));
    assert_eq!(web.asked().len(), 4);

    let remembered = home.kiso(&["--json", "approval", "remembered"]).ok().json_lines();
    assert_eq!(remembered.len(), 2, "{remembered:?}");
    assert_eq!(remembered, {
        let mut listed = served.get("/remembered_approvals")["items"].as_array().unwrap().clone();
        listed.iter_mut().for_each(|rule| rule["type"] = json!("remembered"));
        listed
    });
    for rule in &remembered {
        home.kiso(&["approval", "forget", &rule["id"].to_string()]).ok();
    }
    home.kiso(&["approval", "forget", "1"]).exit(2).says(&["there is no remembered decision 1"]);
    served.send("main", &format!("fetch url={}", web.url("e")));
    card(&served, "main");
    assert_eq!(web.asked().len(), 4);
}

/// A program may have put a stranger's text into its request.
#[test]
fn a_client_of_openai_s_interface_answers_no_card() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    served.send("main", &format!("fetch url={}", web.url("a")));
    let asked = card(&served, "main");
    let say = |text: String| {
        let body = json!({ "model": "kiso/main", "messages": [{ "role": "user", "content": text }] }).to_string();
        served.request("POST", "/v1/chat/completions", Some(&body)).expect(200).to_string()
    };
    let said = say(format!("/approve {}", id(&asked)));
    assert!(said.contains("A person answers approvals"), "{said}");
    assert_eq!(card(&served, "main"), asked, "it waits as before");
    assert_eq!(web.asked(), [""; 0]);
}

#[test]
fn the_time_of_what_is_remembered_ends() {
    let web = Web::start();
    let home = asking(&web);
    let served = Served::start(&home);
    let message = served.send("main", &format!("fetch url={}", web.url("a")));
    let path = format!("/approvals/{}", id(&card(&served, "main")));
    served.request("POST", &path, Some("{\"accept\":[],\"always\":\"30_days\"}")).refuses(403, "forbidden");
    home.kiso(&["approval", "accept", path.rsplit('/').next().unwrap(), "--always", "30d"]).ok();
    served.reply(message);
    store(&home).execute("UPDATE approval_rules SET until_ms = 1", ()).unwrap();
    served.send("main", &format!("fetch url={}", web.url("b")));
    card(&served, "main");
    assert_eq!(web.asked(), ["/a"]);
}

#[test]
fn a_card_shows_what_would_hide() {
    let web = Web::start();
    let evil = format!("\u{202e}x\u{7}\u{200b}{}", "y".repeat(380));
    let mut task = fetch(&web, "a");
    task["args"]["save"] = json!(evil);
    let (home, _model) = planned(&web, &[plan(&[task]), plan(&[]), says("No.")]);
    let served = Served::start(&home);
    served.send("main", "what is the weather?");
    let asked = card(&served, "main");
    let args = asked["effects"][0]["args"].as_array().unwrap();
    let arg = args.iter().find(|arg| arg["name"] == "save").unwrap();
    let shown = arg["shown"].as_str().unwrap();
    assert!(shown.contains(r"\u{202e}x\u{7}\u{200b}yyy"), "{shown}");
    assert!(shown.len() < 300 && arg["left_out"] == 384 - 200, "{asked}");
    let text = served.get("/sessions/main/messages")["items"][1]["text"].as_str().unwrap().to_owned();
    assert!(!text.contains(['\u{202e}', '\u{7}', '\u{200b}']) && text.contains("more characters"), "{text}");
    let told = home.kiso(&["approval", "show", &id(&asked).to_string()]);
    assert!(!told.ok().stdout.contains(['\u{202e}', '\u{7}']), "{}", told.stdout);
}

#[test]
fn a_card_has_so_many_effects_and_the_others_a_card_of_their_own() {
    let web = Web::start();
    let tasks: Vec<_> = (0..22).map(|n| fetch(&web, &n.to_string())).collect();
    let (home, _model) = planned(&web, &[plan(&tasks), says("All.")]);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    let first = card(&served, "main");
    assert_eq!(first["effects"].as_array().unwrap().len(), 20);
    answer(&served, &first, json!((1..=20).collect::<Vec<_>>()));
    let second = card(&served, "main");
    assert_eq!(second["effects"].as_array().unwrap().len(), 2);
    assert_eq!(web.asked(), [""; 0], "nothing starts before all of it is answered");
    answer(&served, &second, json!([1, 2]));
    assert!(served.reply(message).contains("All."));
    assert_eq!(web.asked().len(), 22);
}

#[test]
fn a_call_of_the_action_loop_is_asked_when_it_comes() {
    let web = Web::start();
    let home = Home::new();
    let call = |path: &str| {
        let args = json!({ "url": web.url(path) });
        ("actor", json!({ "calls": [{ "name": "fetch", "args": args }] }))
    };
    let replies = [routed("medium"), call("a"), call("a"), call("b"), ("actor", json!({ "text": "It rains." }))];
    let _model = serve(&home, &replies, QUICK);
    grant(&home, &web);
    let served = Served::start(&home);
    let message = served.send("main", "what is the weather?");
    answer(&served, &card(&served, "main"), json!([1]));
    let second = card(&served, "main");
    assert!(second["effects"][0]["args"].to_string().contains(&web.url("b")), "{second}");
    answer(&served, &second, json!([]));
    assert!(served.reply(message).contains("It rains."));
    assert_eq!(web.asked(), ["/a", "/a"], "the same call is asked once");
}

#[test]
fn a_run_in_a_terminal_waits_for_an_answer_from_elsewhere() {
    let web = Web::start();
    let home = asking(&web);
    let mut child = home
        .command(&["run", &format!("fetch url={}", web.url("a"))])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = told.find(|line| line.contains("kiso approval accept 1")).expect("it says how to answer");
    assert!(line.contains("kiso approval refuse 1"), "{line}");
    assert_eq!(web.asked(), [""; 0]);
    home.kiso(&["approval", "list"]).ok().prints(&[&web.address]);
    home.kiso(&["approval", "accept", "1"]).ok();
    std::thread::spawn(move || told.for_each(drop));
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("Rain in Oslo"), "{ended:?}");
}

#[test]
fn nothing_that_is_to_be_asked_happens_where_nobody_can_be_asked() {
    let web = Web::start();
    let home = asking(&web);
    home.kiso(&["skill", "run", "fetch", &format!("url={}", web.url("a"))]).exit(4).says(&["not allowed"]);
    assert_eq!(web.asked(), [""; 0]);
    // The last command applies. A host cannot be granted both with and without asking.
    let granted = home.kiso(&["skill", "grant", "fetch"]);
    granted.ok().prints(&["[[ask.http]]", &web.address]);
    home.kiso(&["skill", "info", "fetch"]).ok().prints(&["once you have accepted it"]);
    home.kiso(&["skill", "grant", "fetch", "--host", &web.address, "--private"]).ok();
    assert!(!home.kiso(&["skill", "grant", "fetch"]).ok().stdout.contains("ask"));
    home.kiso(&["skill", "run", "fetch", &format!("url={}", web.url("a"))]).ok();
    home.kiso(&["skill", "grant", "fetch", "--host", "*"]).ok();
    let both = home.kiso(&["skill", "grant", "fetch", "--ask-host", "a.example"]);
    both.exit(2).says(&["`a.example` is to be asked for, and is granted without asking by `*`"]);
    home.kiso(&["skill", "grant", "fetch", "--private"]).exit(2).says(&["--host or --ask-host"]);
    home.kiso(&["skill", "grant", "data", "--ask-host", "a.example"]).exit(2).says(&["data asks for no host"]);
}
