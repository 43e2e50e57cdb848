//! Seed 002, "Context builder tests", under their names: what the model was really sent.

use crate::harness::Home;
use crate::model_server::{ModelServer, Seen};
use crate::served::Served;
use kiso::context::tokens;
use kiso::graph::plan::Caller;
use kiso::home::SessionName;
use kiso::llm::Role;
use kiso::node::built_in_prompt;
use kiso::store::{JobPriority, NewJob, Store};
use std::io::Write;
use std::process::Stdio;

/// Replies of a message that is answered without tools: the worker writes "answer NUMBER".
fn low(number: usize) -> String {
    format!(
        "[[reply]]\nrole = \"router\"\n\
         text = '{{\"effort\": \"low\", \"categories\": [], \"tool_need\": 0, \"goal\": \"talk\", \"durable\": false}}'\n\
         [[reply]]\nrole = \"worker\"\ntext = \"answer {number}\"\n"
    )
}

const TITLE: &str = "[[reply]]\nrole = \"titler\"\ntext = \"A talk\"\n";

/// A home with a model that answers `count` messages, and with this in its configuration.
fn home(count: usize, replies: &str, more: &str) -> (ModelServer, Home) {
    let script: String = (1..=count).map(low).collect();
    let server = ModelServer::toml(&format!("{script}{TITLE}{replies}"));
    let home = Home::new();
    home.config(&format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n[routing]\nfast_path = false\n\
         [daemon]\ndebounce_ms = 1\n{more}\n",
        server.base_url()
    ));
    (server, home)
}

fn last(server: &ModelServer, role: &str) -> Seen {
    let requests = server.requests();
    requests.into_iter().rfind(|seen| seen.role() == role).unwrap_or_else(|| panic!("the {role} was never asked"))
}

/// The messages that a prompt shows.
fn window(seen: &Seen) -> Vec<String> {
    let prompt = seen.prompt();
    let Some((_, rest)) = prompt.split_once("\n## Last messages\n<<<") else { return Vec::new() };
    let (boundary, rest) = rest.split_once('\n').expect("a fence has a boundary");
    let (messages, _) = rest.split_once(&format!("\n{boundary}>>>")).expect("a fence ends");
    messages.lines().map(str::to_owned).collect()
}

fn remember_core(home: &Home) {
    let mut command = home.command(&["memory", "import", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("kiso starts");
    let line = b"{\"type\":\"core\",\"document\":{\"user\":{\"city\":\"Oslo\"}}}\n";
    child.stdin.take().expect("it is piped").write_all(line).expect("it reads");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn context_includes_system_prompt_core_memory_sliding_window() {
    let (server, home) = home(2, "", "");
    remember_core(&home);
    home.kiso(&["run", "tell me about ferries"]).ok().prints(&["answer 1"]);
    home.kiso(&["run", "tell me about trains"]).ok().prints(&["answer 2"]);
    let asked = last(&server, "worker");
    let system = asked.body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert_eq!(asked.body["messages"][0]["role"], "system");
    assert!(system.contains(built_in_prompt(Role::Worker).trim()), "{system}");
    let prompt = asked.prompt();
    assert!(prompt.contains("user.city: Oslo"), "{prompt}");
    assert_eq!(window(&asked), ["user: tell me about ferries", "assistant: answer 1"]);
    assert!(prompt.contains("tell me about trains"));
    // In the order of the layers.
    let place = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("{text:?} is not in {prompt}"));
    assert!(place("user.city") < place("user: tell me about ferries"));
    server.finish();
}

#[test]
fn sliding_window_respects_context_budget() {
    let long = |n: usize| format!("message {n}: {}", "a few more words ".repeat(120));
    let shown = |budget: u32| {
        let more = format!("[model_settings.\"test:m\"]\ncontext_budget = {budget}\nmax_output_tokens = 200");
        let (server, home) = home(6, "", &more);
        for n in 1..=6 {
            home.kiso(&["run", &long(n)]).ok();
        }
        let asked = last(&server, "worker");
        server.finish();
        let users: Vec<_> = window(&asked).into_iter().filter(|line| line.starts_with("user: message")).collect();
        (users.iter().map(|line| line[14..15].to_owned()).collect::<Vec<_>>(), tokens(&asked.prompt()))
    };
    let (all, _) = shown(60_000);
    assert_eq!(all, ["1", "2", "3", "4", "5"]);
    let (some, used) = shown(3_000);
    assert!(some.len() < 5 && some.last().is_some_and(|last| last == "5"), "the newest stay: {some:?}");
    assert!(used <= 3_000, "{used}");
}

#[test]
fn sliding_window_only_shows_messages_from_current_segment_after_session_break() {
    let (server, home) = home(3, "", "");
    home.kiso(&["run", "tell me about ferries"]).ok();
    home.kiso(&["session", "new", "default"]).ok();
    home.kiso(&["run", "tell me about trains"]).ok();
    assert_eq!(window(&last(&server, "worker")), ["(none)"]);
    home.kiso(&["run", "tell me about planes"]).ok();
    let asked = last(&server, "worker");
    assert_eq!(window(&asked), ["user: tell me about trains", "assistant: answer 2"]);
    assert!(!asked.prompt().contains("ferries"));
    server.finish();
}

#[test]
fn subagent_uses_subagent_window_instead_of_sliding_window() {
    let (server, home) = home(4, "", "[context]\nsliding_window = 4\nsubagent_window = 2");
    for n in 1..=3 {
        home.kiso(&["run", &format!("tell me about number {n}")]).ok();
    }
    let asked = last(&server, "worker");
    assert_eq!(window(&asked).len(), 4, "{:?}", window(&asked));
    let store = Store::open(&home.path().join("store.db")).unwrap();
    let job = NewJob {
        session: SessionName::parse("default").unwrap(),
        text: "look for yourself".to_owned(),
        caller: Caller::User,
        priority: JobPriority::Subagent,
        client_key: None,
        at_ms: 1,
    };
    store.write_blocking(move |tx| tx.admit(&job).map(drop)).unwrap();
    let id = store.read_blocking(|view| view.last_messages(&SessionName::parse("default").unwrap(), 1)).unwrap()[0].id;
    store.close();
    let served = Served::start(&home);
    assert_eq!(served.reply(id), "answer 4");
    assert_eq!(served.terminate(), 0);
    assert_eq!(window(&last(&server, "worker")), ["user: tell me about number 3", "assistant: answer 3"]);
    server.finish();
}

#[test]
fn ten_percent_safety_margin_applied_to_context_budget() {
    const BUDGET: usize = 6_000;
    let more = format!(
        "[model_settings.\"test:m\"]\ncontext_budget = {BUDGET}\nmax_output_tokens = 500\n\
         [context]\nsummarize_threshold = 1000\n"
    );
    let (server, home) = home(12, "", &more);
    for n in 1..=12 {
        home.kiso(&["run", &format!("message {n}: {}", "some words of a long talk ".repeat(90))]).ok();
    }
    let asked = last(&server, "worker");
    let answer = usize::try_from(asked.body["max_tokens"].as_u64().unwrap()).unwrap();
    let used = tokens(&asked.prompt()) + answer;
    assert!(used <= BUDGET * 9 / 10, "{used} of {BUDGET}");
    // Which was the limit, and not that there was no more to say.
    assert!(used > BUDGET * 7 / 10, "{used} of {BUDGET}");
    assert!(asked.prompt().contains("more left out"), "{}", asked.prompt());
    server.finish();
}

#[test]
fn summary_included_when_available() {
    let summary = "[[reply]]\nrole = \"summarizer\"\ntext = \"They spoke of ferries.\"\n".repeat(2);
    let (server, home) = home(3, &summary, "[context]\nsummarize_threshold = 2\nsliding_window = 1");
    home.kiso(&["run", "tell me about ferries"]).ok();
    home.kiso(&["run", "tell me about trains"]).ok();
    assert!(!last(&server, "worker").prompt().contains("They spoke of ferries."));
    home.kiso(&["run", "tell me about planes"]).ok();
    let prompt = last(&server, "worker").prompt();
    assert!(prompt.contains("They spoke of ferries."), "{prompt}");
}

#[test]
fn tools_descriptions_included_in_context() {
    let actor = r#"
[[reply]]
role = "router"
text = '{"effort": "medium", "categories": ["memory"], "tool_need": 1, "goal": "look", "durable": false}'
[[reply]]
role = "actor"
text = "There is nothing."
[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "plan", "durable": false}'
[[reply]]
role = "planner"
text = '{"goal": "tell", "tasks": [{"type": "msg", "detail": "Say it", "notify": true}]}'
[[reply]]
role = "worker"
text = "Planned."
"#;
    let (server, home) = home(0, actor, "");
    home.kiso(&["run", "look it up"]).ok().prints(&["There is nothing."]);
    let asked = last(&server, "actor");
    let tools = asked.body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == "memory_search").expect("it is offered");
    let description = tool["function"]["description"].as_str().unwrap();
    assert!(description.starts_with("Search what is remembered"), "{description}");
    assert_eq!(tool["function"]["parameters"]["required"][0], "query");
    assert!(tools.iter().all(|tool| tool["function"]["name"] != "exec"), "only those of the categories");
    home.kiso(&["run", "make a plan"]).ok().prints(&["Planned."]);
    let prompt = last(&server, "planner").prompt();
    assert!(prompt.contains("- chart (chart): Draw a line, bar or scatter chart"), "{prompt}");
    server.finish();
}
