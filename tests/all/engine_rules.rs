//! The rules of turns, sessions and memory that an engine like this must follow, tested with the real daemon and a scripted model
//! server. The tests of subagents cover the privacy of subagents and the order at the model's slots.

mod command_handler_test;

use crate::crash;
use crate::harness::{Home, everywhere, wait_until};
use crate::model_server::{ModelServer, Seen};
use crate::served::Served;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// A daemon with a scripted model server.
struct ScriptedDaemon {
    home: Home,
    model: ModelServer,
    served: Served,
}

impl ScriptedDaemon {
    fn start(replies: &[(&'static str, Value)], config: &str) -> ScriptedDaemon {
        ScriptedDaemon::with(replies, config, |_| {})
    }

    /// The same; `prepare` fills the store before the daemon starts.
    fn with(replies: &[(&'static str, Value)], config: &str, prepare: impl FnOnce(&Connection)) -> ScriptedDaemon {
        let home = Home::new();
        let model = crash::serve(&home, replies, &format!("{QUICK}{config}"));
        prepare(&crash::store(&home));
        let served = Served::start(&home);
        ScriptedDaemon { home, model, served }
    }

    /// Sends a message in the session `main` and returns the reply.
    fn ask(&self, text: &str) -> String {
        self.served.reply(self.served.send("main", text))
    }

    fn command(&self, text: &str) -> String {
        self.served.command("main", text)
    }

    /// Requests to a role so far.
    fn asked(&self, role: &str) -> Vec<Seen> {
        self.model.requests().into_iter().filter(|seen| seen.role() == role).collect()
    }

    /// The last prompt of a role.
    fn prompt(&self, role: &str) -> String {
        self.asked(role).last().unwrap_or_else(|| panic!("the {role} was not asked")).prompt()
    }
}

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

fn uncounted(mut reply: Value) -> Value {
    reply["fault"] = json!("no_usage");
    reply
}

fn routed(effort: &str) -> (&'static str, Value) {
    let routing = json!({
        "effort": effort, "categories": ["shell"], "tool_need": 0.9, "goal": "what was asked", "durable": false,
    });
    ("router", json!({ "text": routing.to_string() }))
}

fn runs(lines: &[&str]) -> (&'static str, Value) {
    let calls: Vec<_> = lines.iter().map(|line| json!({ "name": "exec", "args": { "command": line } })).collect();
    ("actor", json!({ "calls": calls }))
}

fn acted(text: &str) -> (&'static str, Value) {
    ("actor", json!({ "text": text }))
}

/// The other three rules are tested at `session::turns`, where the time can be set.
mod debounce_test {
    use super::*;

    /// Sends two messages well within the time, and a third in another session.
    fn talk() -> (ScriptedDaemon, [i64; 2], i64) {
        let home = Home::new();
        home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 4000\n");
        let model = ModelServer::start(crate::model_server::Script::default());
        let served = Served::start(&home);
        let pair = ["$ echo one", "two"].map(|text| served.send("main", text));
        let other = served.send("other", "$ echo three");
        (ScriptedDaemon { home, model, served }, pair, other)
    }

    #[test]
    fn multiple_messages_from_same_chat_id_merged() {
        let (daemon, [first, second], other) = talk();
        let reply = daemon.served.reply(first);
        assert_eq!(daemon.served.reply(second), reply);
        assert_ne!(daemon.served.reply(other), reply);
        let runs = [first, second].map(|id| daemon.served.get(&format!("/messages/{id}"))["run"].clone());
        assert_eq!(runs[0], runs[1], "one run");
    }

    #[test]
    fn messages_processed_in_order() {
        let (daemon, [first, _], _) = talk();
        daemon.served.reply(first);
        let run = daemon.served.get(&format!("/messages/{first}"))["run"].as_str().expect("it has a run").to_owned();
        let trace = daemon.served.get(&format!("/runs/{run}/trace?after=0"));
        assert_eq!(trace["items"][0]["kind"], "admitted");
        assert_eq!(trace["items"][0]["body"]["message"], "$ echo one\n\ntwo", "{trace}");
    }
}

mod context_builder_test {
    use super::*;

    #[test]
    fn context_includes_system_prompt_core_memory_sliding_window() {
        let daemon = ScriptedDaemon::with(&[says("The sea."), says("A ball of ice.")], "", |store| {
            let core = r#"INSERT INTO core_memory VALUES (1, '{"user": {"name": "Ada"}}', 1)"#;
            store.execute(core, ()).expect("core memory can be written");
        });
        daemon.ask("what is a tide?");
        daemon.ask("what is a comet?");
        let seen = daemon.asked("worker").pop().expect("it was asked");
        assert_eq!(seen.body["messages"][0]["role"], "system");
        let system = seen.body["messages"][0]["content"].to_string();
        assert!(system.contains("You are the voice of kiso"), "{system}");
        let prompt = seen.prompt();
        let at = |part: &str| prompt.find(part).unwrap_or_else(|| panic!("{part:?} is not in\n{prompt}"));
        let order = [at("Core memory"), at("user.name: Ada"), at("what is a tide?"), at("The sea.")];
        assert!(order.is_sorted(), "{order:?}\n{prompt}");
    }

    #[test]
    fn sliding_window_respects_context_budget() {
        let (turns, filler) = (8, "waves and wind ".repeat(80));
        // A provider's token counts correct the estimate, and this server would count ten tokens.
        let replies = (0..turns).flat_map(|nth| [routed("low"), says(&format!("Reply {nth}."))]);
        let replies: Vec<_> = replies.map(|(role, reply)| (role, uncounted(reply))).collect();
        let count = |budget: usize| {
            let config = format!("[model_settings.\"test:m\"]\ncontext_budget = {budget}\n");
            let daemon = ScriptedDaemon::start(&replies, &config);
            for nth in 0..turns {
                daemon.ask(&format!("MARK{nth}: {filler}"));
            }
            let prompt = daemon.prompt("worker");
            assert!(prompt.contains(&format!("MARK{}", turns - 2)), "the newest stays: {prompt}");
            (0..turns - 1).filter(|nth| prompt.contains(&format!("MARK{nth}:"))).count()
        };
        assert_eq!(count(32_000), turns - 1, "a large budget has room for all");
        let few = count(3_000);
        assert!((1..turns - 1).contains(&few), "a small budget has room for the newest: {few}");
    }

    #[test]
    fn sliding_window_only_shows_messages_from_current_segment_after_session_break() {
        let daemon = ScriptedDaemon::start(&[says("The sea."), says("A ball of ice."), says("A ball of fire.")], "");
        daemon.ask("what is a tide?");
        assert!(daemon.command("/new").contains("Context cleared"));
        daemon.ask("what is a comet?");
        let prompt = daemon.prompt("worker");
        assert!(!prompt.contains("what is a tide?") && !prompt.contains("The sea."), "{prompt}");
        daemon.ask("what is a star?");
        let prompt = daemon.prompt("worker");
        assert!(prompt.contains("what is a comet?") && !prompt.contains("what is a tide?"), "{prompt}");
    }

    /// Every message of the schedule goes to a subagent.
    #[test]
    fn subagent_uses_subagent_window_instead_of_sliding_window() {
        let replies = [says("The sea."), says("A ball of ice."), says("A ball of fire.")];
        let daemon = ScriptedDaemon::start(&replies, "[context]\nsliding_window = 20\nsubagent_window = 2\n");
        let schedule = json!({ "name": "sky", "when": "@yearly", "message": "what is a tide?" }).to_string();
        daemon.served.request("POST", "/schedules", Some(&schedule)).expect(201);
        for _ in 0..replies.len() {
            let fired = daemon.served.request("POST", "/schedules/sky/run", None).expect(202);
            daemon.served.reply(fired["message"].as_i64().expect("it was sent"));
        }
        let prompt = daemon.prompt("worker");
        assert!(prompt.contains("A ball of ice.") && !prompt.contains("The sea."), "{prompt}");
    }

    /// By kiso's own estimate, prompt and answer together take at most nine tenths of the budget.
    #[test]
    fn ten_percent_safety_margin_applied_to_context_budget() {
        const BUDGET: usize = 3_000;
        let turns = 10;
        let replies = (0..turns).flat_map(|_| [routed("low"), says("Yes.")]);
        let replies: Vec<_> = replies.map(|(role, reply)| (role, uncounted(reply))).collect();
        let daemon =
            ScriptedDaemon::start(&replies, &format!("[model_settings.\"test:m\"]\ncontext_budget = {BUDGET}\n"));
        for _ in 0..turns {
            daemon.ask(&"waves and wind ".repeat(70));
        }
        let taken = daemon.asked("worker").into_iter().map(|seen| {
            let text = ["system", "user"].map(|role| {
                let all = seen.body["messages"].as_array().expect("there are messages");
                let of = all.iter().filter(|message| message["role"] == role);
                of.map(|message| kiso_plan::estimate::tokens(message["content"].as_str().unwrap_or_default()))
                    .sum::<usize>()
            });
            let answer = ["max_tokens", "max_completion_tokens"].map(|key| seen.body[key].as_u64().unwrap_or(0));
            text.into_iter().sum::<usize>() + usize::try_from(answer[0].max(answer[1])).expect("it is small")
        });
        let most = taken.max().expect("it was asked");
        let (usable, little) = (BUDGET * 9 / 10, BUDGET * 8 / 10);
        assert!((little..=usable).contains(&most), "{most} of {BUDGET}");
    }

    #[test]
    fn summary_included_when_available() {
        let summary = ("summarizer", json!({ "text": "TIDESANDCOMETS" }));
        let replies = [says("The sea."), says("A ball of ice."), says("A ball of fire."), summary];
        let daemon = ScriptedDaemon::start(&replies, "[context]\nsummarize_threshold = 2\n");
        daemon.ask("what is a tide?");
        daemon.ask("what is a comet?");
        let store = crash::store(&daemon.home);
        let summaries = || store.query_row("SELECT count(*) FROM summaries", (), |row| row.get::<_, u32>(0)).unwrap();
        wait_until("a summary behind the reply", || summaries() > 0);
        daemon.ask("what is a star?");
        let prompt = daemon.prompt("worker");
        assert!(prompt.contains("Summary of the session so far") && prompt.contains("TIDESANDCOMETS"), "{prompt}");
    }

    #[test]
    fn tools_descriptions_included_in_context() {
        let daemon = ScriptedDaemon::start(&[routed("medium"), acted("None.")], "");
        daemon.ask("how many files are there in /work");
        let body = daemon.asked("actor").pop().expect("it was asked").body;
        let tools = body["tools"].as_array().expect("tools are sent");
        let exec = tools.iter().find(|tool| tool["function"]["name"] == "exec").expect("exec is one of them");
        assert!(exec["function"]["description"].as_str().is_some_and(|text| text.len() > 20), "{exec}");
        assert_eq!(exec["function"]["parameters"]["properties"]["command"]["type"], "string", "{exec}");
    }
}

mod tool_call_loop_test {
    use super::*;

    #[test]
    fn single_tool_call_processed_correctly() {
        let daemon =
            ScriptedDaemon::start(&[routed("medium"), runs(&["echo one > file; cat file"]), acted("It is one.")], "");
        assert_eq!(daemon.ask("write one to a file"), "It is one.");
        assert_eq!(std::fs::read_to_string(daemon.home.work("main").join("file")).unwrap(), "one\n");
    }

    #[test]
    fn multiple_sequential_tool_calls() {
        let script =
            [routed("medium"), runs(&["echo 1 >> n"]), runs(&["echo 2 >> n"]), runs(&["cat n"]), acted("Two.")];
        let daemon = ScriptedDaemon::start(&script, "");
        assert_eq!(daemon.ask("count up in a file"), "Two.");
        assert_eq!(std::fs::read_to_string(daemon.home.work("main").join("n")).unwrap(), "1\n2\n");
        assert_eq!(daemon.asked("actor").len(), 4);
    }

    #[test]
    fn loop_stops_when_llm_returns_no_tool_calls() {
        let daemon = ScriptedDaemon::start(&[routed("medium"), acted("Nothing to do."), runs(&["touch never"])], "");
        assert_eq!(daemon.ask("look at the files and say what to do"), "Nothing to do.");
        assert_eq!(daemon.asked("actor").len(), 1);
        assert!(!daemon.home.work("main").join("never").exists());
    }

    /// Here, the exception is an event and a message that says so: a run never stops silently.
    #[test]
    fn tool_call_loop_exception_thrown_after_max_tool_call_rounds() {
        let assessed = acted("GOAL NOT ACHIEVED\nThere was no end to it.");
        // Without a plan, reaching the limit starts planning, once; inside a plan it ends the loop.
        let act = json!({ "type": "act", "detail": "count", "expect": "a number" });
        let message = json!({ "type": "msg", "detail": "say it", "notify": true });
        let plan = json!({ "goal": "a count", "tasks": [act, message] });
        let planned = ("planner", json!({ "text": plan.to_string() }));
        let rounds = || [runs(&["echo 1"]), runs(&["echo 2"])];
        let [one, two] = rounds();
        let [three, four] = rounds();
        let script = [routed("medium"), one, two, planned, three, four, assessed, runs(&["touch never"])];
        let limits = "[limits]\nmax_tool_call_rounds = 2\nmax_replan_depth = 0\n";
        let daemon = ScriptedDaemon::start(&script, limits);
        let reply = daemon.ask("count the files for ever");
        assert!(reply.contains("There was no end to it."), "{reply}");
        assert_eq!(daemon.asked("actor").len(), 5, "two rounds, two of a plan, and what came of them");
        let run = daemon.served.get("/runs?session=main")["items"][0]["id"].as_str().unwrap().to_owned();
        let trace = daemon.served.get(&format!("/runs/{run}/trace")).to_string();
        assert!(trace.contains("max_tool_call_rounds"), "{trace}");
        assert!(!daemon.home.work("main").join("never").exists());
    }

    #[test]
    fn tool_results_added_to_context_for_next_round() {
        let daemon =
            ScriptedDaemon::start(&[routed("medium"), runs(&["echo MARKED | tr A-Z a-z"]), acted("Done.")], "");
        daemon.ask("write something in small letters");
        let seen = daemon.asked("actor").pop().expect("it was asked");
        let messages = seen.body["messages"].as_array().unwrap();
        let call = messages.iter().find(|message| message["tool_calls"].is_array()).expect("the call stands there");
        let result = messages.iter().find(|message| message["role"] == "tool").expect("and its result");
        assert_eq!(call["tool_calls"][0]["id"], result["tool_call_id"]);
        assert!(result["content"].to_string().contains("marked"), "{result}");
    }
}

mod session_manager_test {
    use super::*;

    #[test]
    fn creates_session_with_routing_default_model() {
        let daemon = ScriptedDaemon::start(&[says("The sea.")], "");
        daemon.ask("what is a tide?");
        assert_eq!(daemon.served.get("/status/main")["model"], "test:m");
        assert_eq!(daemon.asked("worker")[0].body["model"], "m");
    }

    #[test]
    fn returns_existing_session_for_known_chat_id() {
        let daemon = ScriptedDaemon::start(&[says("The sea."), says("A ball of ice.")], "");
        daemon.ask("what is a tide?");
        let before = daemon.served.get("/sessions")["items"][0].clone();
        daemon.ask("what is a comet?");
        let sessions = daemon.served.get("/sessions");
        assert_eq!(sessions["items"].as_array().unwrap().len(), 1);
        assert_eq!(sessions["items"][0]["created_ms"], before["created_ms"]);
        assert_eq!(daemon.served.get("/sessions/main/messages")["items"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn update_model_changes_session_model() {
        let config = "[model_settings.\"test:other\"]\ncontext_budget = 8_000\n";
        let daemon =
            ScriptedDaemon::start(&[says("The sea."), says("A ball of ice."), says("A ball of fire.")], config);
        daemon.ask("what is a tide?");
        assert!(daemon.command("/model test:other").contains("now test:other"));
        daemon.ask("what is a comet?");
        daemon.served.reply(daemon.served.send("elsewhere", "what is a star?"));
        let models: Vec<_> = daemon.asked("worker").iter().map(|seen| seen.body["model"].clone()).collect();
        assert_eq!(models, ["m", "other", "m"], "of this session alone");
    }

    #[test]
    fn reset_segment_writes_session_break_marker() {
        let daemon = ScriptedDaemon::start(&[says("The sea.")], "");
        daemon.ask("what is a tide?");
        assert_eq!(daemon.served.get("/status/main")["segment_start"], 0);
        daemon.command("/new");
        let last = daemon.served.get("/sessions/main/messages")["items"][1]["id"].clone();
        assert_eq!(daemon.served.get("/status/main")["segment_start"], last);
    }

    /// The segment also stays reset after a restart: it is in the store.
    #[test]
    fn new_segment_starts_after_reset_segment() {
        let ScriptedDaemon { home, model, served } =
            ScriptedDaemon::start(&[says("The sea."), says("A ball of ice.")], "");
        served.reply(served.send("main", "what is a tide?"));
        served.command("main", "/new");
        served.kill();
        let daemon = ScriptedDaemon { served: Served::start(&home), home, model };
        daemon.ask("what is a comet?");
        assert!(!daemon.prompt("worker").contains("what is a tide?"));
        let log = daemon.served.get("/sessions/main/messages");
        assert_eq!(log["items"][0]["text"], "what is a tide?", "the log keeps everything");
    }
}

mod message_processor_integration_test {
    use super::*;

    #[test]
    fn simple_message_processed_end_to_end() {
        let daemon = ScriptedDaemon::start(&[says("The sea, going up and down.")], "");
        assert_eq!(daemon.ask("what is a tide?"), "The sea, going up and down.");
        assert_eq!(daemon.model.problems(), Vec::<String>::new());
    }

    #[test]
    fn tool_call_returned_by_llm_is_executed() {
        let daemon =
            ScriptedDaemon::start(&[routed("medium"), runs(&["seq 3 | tee numbers"]), acted("1, 2 and 3.")], "");
        assert_eq!(daemon.ask("write three numbers into a file"), "1, 2 and 3.");
        assert_eq!(std::fs::read_to_string(daemon.home.work("main").join("numbers")).unwrap(), "1\n2\n3\n");
    }

    #[test]
    fn response_sent_to_gateway_via_socket() {
        let daemon = ScriptedDaemon::start(&[says("The sea, going up and down.")], "");
        let mut socket = UnixStream::connect(daemon.home.path().join("kiso.sock")).expect("the socket is there");
        socket.set_read_timeout(Some(crash::GUARD)).unwrap();
        let mut tell = |line: Value| writeln!(socket, "{line}").expect("it takes lines");
        tell(json!({ "type": "register", "client": "test", "protocol": 1, "session": "main" }));
        tell(json!({ "type": "inbound", "session": "main", "text": "what is a tide?" }));
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
        let outbound = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.expect("a line comes in time")).expect("it is JSON");
            (line["type"] == "outbound").then_some(line)
        });
        assert_eq!(outbound.expect("a reply comes")["message"]["text"], "The sea, going up and down.");
    }
}

/// "Graceful shutdown: waits for the model calls in flight."
#[test]
fn what_a_model_is_saying_at_the_end_is_not_lost() {
    let held = ("worker", json!({ "text": "The sea.", "fault": "slow_first_token" }));
    let ScriptedDaemon { home, model, served } = ScriptedDaemon::start(&[held], "");
    let message = served.send("main", "what is a tide?");
    wait_until("the model is asked", || model.held() == 1);
    let (address, socket) = (served.address.clone(), home.path().join("kiso.sock"));
    let ended = std::thread::spawn(move || served.terminate());
    // A fleet member forwards connections to its port to the next owner.
    wait_until("intake is closed", || match everywhere::is_so() {
        false => std::net::TcpStream::connect(&address).is_err(),
        true => std::os::unix::net::UnixStream::connect(&socket).is_err(),
    });
    assert!(!ended.is_finished(), "it waits for the call");
    model.release();
    assert_eq!(ended.join().expect("it ends"), 0);
    let served = Served::start(&home);
    assert_eq!(served.reply(message), "The sea.");
    assert_eq!(model.requests().iter().filter(|seen| seen.role() == "worker").count(), 1, "it was asked once");
}
