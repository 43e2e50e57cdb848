//! The amount of input that models have to process: the part of each request that was not the beginning of an earlier one, and
//! the length of the first prompts on a fresh home. A local model reads some fifty tokens a second, and other models charge for
//! them.

use crate::harness::{Home, KISO};
use crate::model_server::{self, ModelServer, Script};
use crate::served::Served;
use kiso_plan::estimate::tokens;
use measure::{Course, Figures, figures, plan, talk, tool_loop};
use serde_json::json;

#[path = "prefix/measure.rs"]
mod measure;

#[track_caller]
fn at_most(course: Course, most: f64) -> Figures {
    let found = figures(KISO.as_ref(), &course);
    let total = found.total();
    println!(
        "{}: {:.3} × the longest requests, {} bytes of {}",
        course.name,
        total.ratio(),
        total.fresh,
        total.longest
    );
    assert!(total.ratio() <= most, "{}: {:.2} × the longest requests\n{found:#?}", course.name, total.ratio());
    found
}

/// The minimum is 1: every part of a request is read once.
#[test]
fn a_loop_is_read_once() {
    for (rounds, course) in [(8, tool_loop("8 rounds", 8)), (16, tool_loop("16 rounds", 16))] {
        let found = at_most(course, 1.15);
        assert_eq!(found.roles["actor"].requests, rounds + 1);
        assert!(found.roles["actor"].ratio() < 1.01, "{found:#?}");
    }
}

#[test]
fn a_plan_is_read_once_by_each_role() {
    let found = at_most(plan(), 1.5);
    let counts =
        ["router", "planner", "reviewer", "reasoner", "actor", "worker"].map(|role| found.roles[role].requests);
    assert_eq!(counts, [1, 3, 8, 2, 4, 1]);
    for role in ["planner", "reviewer", "reasoner"] {
        assert!(found.roles[role].ratio() < 1.01, "the {role} is sent what it was sent before\n{found:#?}");
    }
}

#[test]
fn a_talk_is_read_once() {
    let found = at_most(talk("12 turns", "[context]\nsliding_window = 40\n", 12, 0), 1.15);
    assert_eq!(found.roles.len(), 1, "one call a message: {found:#?}");
    assert_eq!(found.roles["worker"].requests, 12);
}

/// A full window is cut to half its size, so that only some messages make the model read it again.
#[test]
fn a_talk_that_outgrows_its_window_is_read_anew_now_and_then() {
    // If each message pushed out the oldest one, it would be about 13.
    at_most(talk("24 turns", "[context]\nsummarize_threshold = 1_000\n", 24, 3), 4.0);
}

/// They once had 2,640 tokens for the planner and 670 for the router. The router's description of the categories allows leaving
/// out useless tools for planner and actor.
#[test]
fn the_first_prompts_on_a_fresh_home_are_short() {
    let routing =
        json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "The forecast", "durable": false });
    let plan = json!({ "goal": "The forecast", "tasks": [{ "type": "msg", "detail": "Say it", "notify": true }] });
    let reply = json!([
        { "role": "router", "text": routing.to_string() },
        { "role": "planner", "text": plan.to_string() },
        { "role": "worker", "text": "Rain." },
        { "role": "titler", "text": "Rain" },
    ]);
    let script: Script = serde_json::from_value(json!({ "reply": reply })).expect("a script has this form");
    let server = ModelServer::start(script);
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = {:?}\n",
        server.base_url()
    ));
    home.kiso(&["run", "please tell me the weather forecast for the file"]).ok();
    assert_eq!(home.kiso(&["--json", "skill", "list"]).ok().json_lines().len(), 6, "the skills of a fresh home");
    for (role, most) in [("router", 405), ("planner", 1_400)] {
        let seen = server.requests().into_iter().find(|seen| seen.role() == role).expect("it was asked");
        let messages = seen.body["messages"].as_array().expect("it has messages");
        let prompt: String = messages.iter().filter_map(|message| message["content"].as_str()).collect();
        let size = tokens(&prompt);
        println!("{size} tokens for the {role}");
        assert!(size <= most, "the first prompt of the {role} has {size} tokens:\n{prompt}");
    }
    server.finish();
}

/// Tools once were half of some prompts. A fresh home has six skills, and every category is offered.
#[test]
fn the_tools_of_the_medium_route_on_a_fresh_home_are_short() {
    let routing =
        json!({ "effort": "medium", "categories": [], "tool_need": 1, "goal": "The forecast", "durable": false });
    let reply = json!([
        { "role": "router", "text": routing.to_string() },
        { "role": "actor", "text": "Rain." },
        { "role": "titler", "text": "Rain" },
    ]);
    let script: Script = serde_json::from_value(json!({ "reply": reply })).expect("a script has this form");
    let server = ModelServer::start(script);
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = {:?}\n",
        server.base_url()
    ));
    home.kiso(&["run", "please tell me the weather forecast for the file"]).ok();
    let seen = server.requests().into_iter().find(|seen| seen.role() == "actor").expect("it was asked");
    let size = |tool: &serde_json::Value| {
        let function = &tool["function"];
        let text = |of: &serde_json::Value| of.as_str().map_or_else(|| of.to_string(), str::to_owned);
        ["name", "description", "parameters"].map(|part| tokens(&text(&function[part]))).iter().sum::<usize>()
    };
    let tools = seen.body["tools"].as_array().expect("it has tools");
    let sizes: Vec<_> = tools.iter().map(|tool| (tool["function"]["name"].to_string(), size(tool))).collect();
    let skills = ["chart", "data", "document", "feed", "fetch", "search"];
    let is_skill = |name: &str| skills.iter().any(|skill| name.trim_matches('"') == *skill);
    let of =
        |skills: bool| sizes.iter().filter(|(name, _)| is_skill(name) == skills).map(|(_, size)| size).sum::<usize>();
    println!("{} tokens for kiso's own tools, {} for those of the six skills", of(false), of(true));
    assert!(of(false) <= 1_010, "kiso's own tools have {} tokens: {sizes:?}", of(false));
    assert!(of(true) <= 1_150, "the six skills have {} tokens: {sizes:?}", of(true));
    assert!(sizes.iter().any(|(name, _)| name.contains("file_edit")), "{sizes:?}");
    server.finish();
}

/// Cached tokens reported by a provider are stored, priced and shown.
#[test]
fn cached_tokens_are_counted_priced_and_shown() {
    for kind in ["openai", "anthropic"] {
        let reply = json!([
            { "role": "worker", "text": "The sea.", "usage": { "input": 1_000, "output": 5, "cached": 800 } },
            { "role": "titler", "text": "Seas" },
        ]);
        let script: Script = serde_json::from_value(json!({ "reply": reply })).expect("a script has this form");
        let server = ModelServer::start(script);
        let home = Home::new();
        home.config(&format!(
            "model = \"lab:m\"\n[providers.lab]\nkind = {kind:?}\nbase_url = {:?}\n[model_settings.\"lab:m\"]\n\
             input_price = 10\ncached_input_price = 1\noutput_price = 0\n",
            server.base_url()
        ));
        home.kiso(&["run", "what is a tide?"]).ok();
        // Two hundred tokens at ten dollars a million, eight hundred at one.
        home.kiso(&["trace", "last"]).ok().prints(&["1000 (800 cached) + 5 tokens, $0.0028"]);
        let served = Served::start(&home);
        let day = served.get("/usage")["items"][0].clone();
        assert_eq!(day["cached_tokens"], 800, "{day}");
        assert_eq!(served.terminate(), 0);
        server.finish();
    }
}
