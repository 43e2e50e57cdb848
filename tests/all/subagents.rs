//! Subagents in the daemon: spawning by a conversation, delivery of their answers, and order of work.

use crate::harness::{Home, wait_until};
use crate::model_server::{Call, Fault, ModelServer, Reply, Script, Texts};
use crate::served::Served;
use serde_json::{Value, json};

/// The question for a subagent; it takes the fast path, so that only a worker answers.
const QUESTION: &str = "what is a tide?";

fn text(role: &str, text: &str) -> Reply {
    Reply { role: Some(role.to_owned()), text: text.to_owned(), ..Reply::default() }
}

fn routed() -> Reply {
    let routing =
        json!({ "effort": "medium", "categories": ["subagents"], "tool_need": 1, "goal": "ask", "durable": false });
    text("router", &routing.to_string())
}

fn calls(name: &str, args: Value) -> Reply {
    let calls = vec![Call { name: name.to_owned(), args }];
    Reply { role: Some("actor".to_owned()), calls, ..Reply::default() }
}

fn spawn(more: Value) -> Reply {
    let mut args = json!({ "name": "tide", "message": QUESTION });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    calls("subagent_spawn", args)
}

/// A home with this server's model for all roles, and without background requests.
fn home(server: &ModelServer, more: &str) -> Home {
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [models]\ntitler = \"reflex\"\nsummarizer = \"reflex\"\n{more}",
        server.base_url()
    ));
    home
}

/// The sessions of subagents in the actor's prompts, as named by the tool.
fn spawned(server: &ModelServer) -> Vec<String> {
    let prompts = server.requests().into_iter().filter(|seen| seen.role() == "actor").map(|seen| seen.prompt());
    let all = prompts.collect::<Vec<_>>().join("\n");
    let ids = all.split("The subagent ").skip(1).filter_map(|rest| rest.split(' ').next());
    let mut ids: Vec<String> = ids.filter(|id| id.starts_with("sub.")).map(str::to_owned).collect();
    ids.dedup();
    ids
}

/// The messages of a session, as "role: text".
fn message_lines(served: &Served, session: &str) -> Vec<String> {
    let answer = served.request("GET", &format!("/sessions/{session}/messages"), None);
    if answer.status == 404 {
        return Vec::new();
    }
    let messages = answer.expect(200);
    let line = |m: &Value| format!("{}: {}", m["role"].as_str().unwrap(), m["text"].as_str().unwrap());
    messages["items"].as_array().unwrap().iter().map(line).collect()
}

const QUICK: &str = "[daemon]\ndebounce_ms = 20\n";

/// The rules of silence in the daemon. "Sent to the gateway" means: added to the session that gets the subagent's answers.
mod subagent_silent_logic {
    use super::*;

    /// Whether the conversation receives this answer of a subagent.
    #[track_caller]
    fn is_told(answer: &str) -> bool {
        let reply = vec![
            routed(),
            spawn(json!({ "inject_into": "self" })),
            text("actor", "It is asked."),
            text("worker", answer),
        ];
        let server = ModelServer::start(Script { reply, ..Script::default() });
        let home = home(&server, QUICK);
        let served = Served::start(&home);
        let message = served.send("main", "run a subagent about tides");
        assert_eq!(served.reply(message), "It is asked.");
        let ids = spawned(&server);
        assert_eq!(ids.len(), 1);
        // The answer is always in the subagent's own session; the other session gets it in the same transaction.
        wait_until("the answer of the subagent", || message_lines(&served, &ids[0]).len() == 2);
        assert_eq!(message_lines(&served, &ids[0])[1], format!("assistant: {answer}"));
        let main = message_lines(&served, "main");
        let told = main.iter().filter(|line| **line == format!("assistant: {answer}")).count();
        assert_eq!(main.len(), 2 + told, "{main:?}");
        assert!(told <= 1, "{main:?}");
        served.terminate();
        server.finish();
        told == 1
    }

    #[test]
    fn response_with_silent_true_not_sent_to_gateway() {
        assert!(!is_told("{\"silent\": true, \"log\": \"nothing new\"}"));
    }

    #[test]
    fn response_without_silent_field_sent_to_gateway() {
        assert!(is_told("{\"level\": 3}"));
    }

    #[test]
    fn response_with_silent_false_sent_to_gateway() {
        assert!(is_told("{\"silent\": false}"));
    }

    #[test]
    fn non_json_response_treated_as_not_silent_safe_default() {
        assert!(is_told("The sea, going up and down."));
    }

    #[test]
    fn parse_failure_treated_as_not_silent() {
        assert!(is_told("{\"silent\": true"));
    }
}

/// The subagent receives its message and working rules, and nothing of the conversation; it has its own model.
#[test]
fn a_subagent_is_isolated_and_the_conversation_sees_its_answer_in_the_next_turn() {
    let reply = vec![
        routed(),
        spawn(json!({ "inject_into": "self", "model": "lab:small" })),
        text("actor", "It is asked."),
        Reply {
            expect_contains: Texts::Many(vec![QUESTION.into(), "You work as a subagent".into()]),
            expect_absent: Texts::One("narwhal".into()),
            ..text("worker", "The sea, going up and down.")
        },
        Reply {
            expect_contains: Texts::Many(vec!["narwhal".into(), "The sea, going up and down.".into()]),
            expect_absent: Texts::One("You work as a subagent".into()),
            ..text("worker", "As was said.")
        },
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&server, &format!("{QUICK}[model_settings.\"lab:small\"]\ncontext_budget = 8000\n"));
    let served = Served::start(&home);
    served.reply(served.send("main", "run a subagent about tides for the narwhal"));
    wait_until("the answer", || message_lines(&served, "main").len() == 3);
    let worker = server.requests().into_iter().find(|seen| seen.role() == "worker").unwrap();
    assert_eq!(worker.body["model"], "small");
    assert_eq!(served.reply(served.send("main", "what is a wave?")), "As was said.");
    let id = &spawned(&server)[0];
    let listed = served.get("/sessions");
    assert!(!listed.to_string().contains(id.as_str()), "it is not a conversation: {listed}");
    assert!(!home.work(id).join("x").exists() && home.work(id).exists(), "a workspace of its own");
    server.finish();
}

#[test]
fn a_subagent_that_waits_or_works_is_cancelled_and_tells_nobody() {
    let held = Reply { fault: Some(Fault::SlowFirstToken), ..text("worker", "never") };
    let reply = vec![routed(), spawn(json!({ "inject_into": "self" })), text("actor", "It is asked."), held];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&server, QUICK);
    let served = Served::start(&home);
    served.reply(served.send("main", "run a subagent about tides"));
    wait_until("the subagent to work", || server.held() == 1);
    let id = spawned(&server).remove(0);
    served.kill();
    drop(server);
    // The next turn cancels it by id; the next daemon has another model server.
    let reply = vec![
        Reply { fault: Some(Fault::SlowFirstToken), ..text("worker", "never") },
        routed(),
        calls("subagent_status", json!({ "id": id })),
        Reply {
            expect_contains: Texts::One(format!("{id} [working]")),
            ..calls("subagent_cancel", json!({ "id": id }))
        },
        Reply { expect_contains: Texts::One(format!("{id} is stopped")), ..text("actor", "Stopped.") },
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    let old = config.lines().find(|line| line.starts_with("base_url")).unwrap().to_owned();
    home.config(&config.replace(&old, &format!("base_url = \"{}\"", server.base_url())));
    let served = Served::start(&home);
    wait_until("the subagent to go on", || server.held() == 1);
    assert_eq!(served.reply(served.send("main", "run the cancellation of the subagent")), "Stopped.");
    wait_until("the end of the subagent", || message_lines(&served, &id).len() == 2);
    assert!(message_lines(&served, &id)[1].contains("cancelled"));
    assert_eq!(message_lines(&served, "main").len(), 4, "nobody is told: {:?}", message_lines(&served, "main"));
    server.finish();
}

/// However often the daemon dies, the conversation receives the answer once.
#[test]
fn a_killed_daemon_tells_the_answer_once() {
    let held = || Reply { fault: Some(Fault::SlowFirstToken), ..text("worker", "The sea, going up and down.") };
    let reply = vec![
        routed(),
        spawn(json!({ "inject_into": "self" })),
        text("actor", "It is asked."),
        held(),
        held(),
        text("worker", "The sea, going up and down."),
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&server, &format!("{QUICK}hold_after = 3\n"));
    let workers = || server.requests().iter().filter(|seen| seen.role() == "worker").count();
    let served = Served::start(&home);
    served.reply(served.send("main", "run a subagent about tides"));
    wait_until("the subagent to ask", || workers() == 1);
    served.kill();
    let served = Served::start(&home);
    wait_until("the subagent to ask again", || workers() == 2);
    served.kill();
    let served = Served::start(&home);
    wait_until("the answer", || message_lines(&served, "main").len() > 2);
    assert_eq!(message_lines(&served, "main")[2..], ["assistant: The sea, going up and down."]);
    let id = spawned(&server).remove(0);
    assert_eq!(message_lines(&served, &id).len(), 2);
    server.finish();
}

/// `kiso run` has no queue: it records the subagent, its answer says so, and the daemon does the work.
#[test]
fn what_kiso_run_spawns_is_done_by_the_daemon() {
    let waits = Texts::One("waits for `kiso serve`".into());
    let reply = vec![
        routed(),
        spawn(json!({ "inject_into": "self" })),
        Reply { expect_contains: waits, ..text("actor", "It will be asked.") },
        text("worker", "The sea, going up and down."),
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&server, QUICK);
    home.kiso(&["run", "run a subagent about tides"]).ok().prints(&["It will be asked."]);
    assert_eq!(server.requests().iter().filter(|seen| seen.role() == "worker").count(), 0);
    let served = Served::start(&home);
    wait_until("the answer", || message_lines(&served, "default").len() == 3);
    assert_eq!(message_lines(&served, "default")[2], "assistant: The sea, going up and down.");
    server.finish();
}

#[test]
fn limits_and_wrong_arguments_come_back_as_errors_that_name_the_way_out() {
    let expect = |contains: &str, reply: Reply| Reply { expect_contains: Texts::One(contains.to_owned()), ..reply };
    let reply = vec![
        routed(),
        spawn(json!({ "inject_into": "elsewhere" })),
        expect("is not of this conversation", spawn(json!({ "model": "lab:nothing" }))),
        expect("no model", spawn(json!({ "name": "Tide!" }))),
        expect("name", calls("subagent_status", json!({ "id": "main" }))),
        expect("there is no subagent", spawn(json!({}))),
        expect("was begun", spawn(json!({}))),
        expect("subagents.max_unfinished", text("actor", "One is enough.")),
        Reply { fault: Some(Fault::SlowFirstToken), ..text("worker", "never") },
    ];
    let server = ModelServer::start(Script { reply, ..Script::default() });
    let home = home(&server, &format!("{QUICK}[subagents]\nmax_unfinished = 1\n"));
    let served = Served::start(&home);
    served.command("elsewhere", "/new");
    assert_eq!(served.reply(served.send("main", "run a subagent about tides")), "One is enough.");
    wait_until("the one that was begun", || server.held() == 1);
    assert_eq!(spawned(&server).len(), 1);
    server.finish();
}
