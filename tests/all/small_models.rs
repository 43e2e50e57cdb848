//! Answers of small models: enforced forms, repetitions, inventions.

use crate::harness::Home;
use crate::model_server::{ModelServer, Script, Seen};
use serde_json::{Value, json};

/// A home with a model that gives these replies, and more lines of configuration.
fn home(replies: Value, more: &str) -> (Home, ModelServer) {
    let script: Script = serde_json::from_value(json!({ "reply": replies })).expect("a script has this form");
    let server = ModelServer::start(script);
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = {:?}\n[llm]\nmax_attempts = 1\n{more}",
        server.base_url()
    ));
    (home, server)
}

fn routed(secrets: &Value) -> Value {
    let routing = json!({
        "effort": "high", "categories": [], "tool_need": 1, "goal": "The numbers are counted", "durable": false,
        "secrets": secrets,
    });
    json!({ "role": "router", "text": routing.to_string() })
}

fn schema(seen: &Seen) -> &Value {
    &seen.body["response_format"]["json_schema"]["schema"]
}

#[test]
fn an_answer_that_goes_in_circles_is_cut_off_and_says_so() {
    let circle = format!("A tide is {}", "the sea, which is the sea of ".repeat(400));
    let replies = json!([{ "role": "worker", "text": circle, "pieces": 900 }, { "role": "titler", "text": "Tides" }]);
    let (home, server) = home(replies, "");
    let ran = home.kiso(&["run", "what is a tide?"]);
    ran.ok().prints(&[
        "A tide is the sea, which",
        "[This text was cut off after ",
        "because the model only repeated itself]",
    ]);
    assert!(ran.stdout.len() < 4_000, "{} bytes", ran.stdout.len());
    server.finish();
}

/// If only JSON is possible, the planner's remark and its last message are fields.
#[test]
fn a_plan_is_asked_for_by_its_schema() {
    let circle =
        json!({ "role": "planner", "text": format!("{{\"goal\": \"{}", "again and ".repeat(700)), "pieces": 500 });
    let plan = json!({ "say": "I count \"them\".", "goal": "The numbers are counted", "reply": "Say how many",
        "tasks": [{ "type": "exec", "detail": "seq 3", "notify": true }] });
    let replies = json!([
        routed(&json!([])),
        circle,
        { "role": "planner", "text": plan.to_string(), "pieces": 9, "expect_contains": "because the model only repeated itself" },
        { "role": "worker", "text": "Three.", "expect_contains": "Say how many" },
        { "role": "titler", "text": "Numbers" },
    ]);
    let (home, server) = home(replies, "");
    let ran = home.kiso(&["run", "count the numbers in the shell up to three"]);
    ran.ok().prints(&["Three."]);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("I count \"them\"."), "{}{}", ran.stdout, ran.stderr);
    let requests = server.requests();
    let of = |role: &str| requests.iter().find(|seen| seen.role() == role).expect("it was asked");
    let plan = schema(of("planner"));
    assert_eq!(plan["required"], json!(["goal", "tasks", "reply"]));
    let skill = &plan["properties"]["tasks"]["items"]["anyOf"][0]["properties"]["skill"]["enum"];
    assert!(skill.as_array().is_some_and(|names| !names.is_empty()), "the skills by name: {plan}");
    let categories = &schema(of("router"))["properties"]["categories"]["items"]["enum"];
    assert!(categories.as_array().is_some_and(|names| names.contains(&json!("shell"))), "{categories}");
    server.finish();
}

/// A plan with this command, and the requests that follow if the command runs.
fn planned(detail: &str) -> Value {
    let plan = json!({ "goal": "g", "reply": "Say it", "tasks": [{ "type": "exec", "detail": detail }] });
    json!({ "role": "planner", "text": plan.to_string() })
}

fn written() -> [Value; 2] {
    [json!({ "role": "worker", "text": "Three." }), json!({ "role": "titler", "text": "Numbers" })]
}

/// A command of this length.
fn command(length: usize) -> String {
    let numbers: String = (0..length).map(|n| format!("{n} ")).collect();
    format!("echo {}", &numbers[..length - 5])
}

/// Maximum length of a command in the schema that a planner received.
fn room_of_command(seen: &Seen) -> Option<u64> {
    let forms = schema(seen)["properties"]["tasks"]["items"]["anyOf"].as_array().expect("a form for each type");
    let exec = forms.iter().find(|form| form["properties"]["type"]["enum"][0] == "exec").expect("one of them");
    exec["properties"]["detail"]["maxLength"].as_u64()
}

/// A grammar ends a command when its maximum length is reached. The maximum is in the schema that was sent.
#[test]
fn a_command_that_fills_its_room_is_refused() {
    let ask = ["run", "count the numbers in the shell up to three"];
    let room = {
        let mut replies = vec![routed(&json!([])), planned("seq 3")];
        replies.extend(written());
        let (home, server) = home(replies.into(), "");
        home.kiso(&ask).ok().prints(&["Three."]);
        let requests = server.requests();
        let planner = requests.iter().find(|seen| seen.role() == "planner").expect("it was asked");
        room_of_command(planner).expect("a small model has a bound") as usize
    };
    assert!((100..1_200).contains(&room), "{room}");
    let mut short = planned("seq 3");
    short["expect_contains"] =
        json!([format!("tasks[0].detail: fills the {room} characters that it may have"), "write a shorter command"]);
    let mut replies = vec![routed(&json!([])), planned(&command(room)), short];
    replies.extend(written());
    let (home, server) = home(replies.into(), "");
    home.kiso(&ask).ok().prints(&["Three."]);
    server.finish();
    // A longer command shows that the server does not enforce the schema, and a shorter one ended on its own.
    for length in [room - 1, room + 1] {
        let mut replies = vec![routed(&json!([])), planned(&command(length))];
        replies.extend(written());
        let (home, server) = self::home(replies.into(), "");
        home.kiso(&ask).ok().prints(&["Three."]);
        server.finish();
    }
}

/// Nothing in the request could have cut it off.
#[test]
fn a_long_command_of_a_large_model_is_run() {
    for length in [480, 768, 1_200, 6_000] {
        let mut replies = vec![routed(&json!([])), planned(&command(length))];
        replies.extend(written());
        let (home, server) = home(replies.into(), "[model_settings.\"lab:m\"]\ncontext_budget = 128_000\n");
        let ran = home.kiso(&["run", "count the numbers in the shell up to three"]);
        ran.ok().prints(&["Three."]);
        let requests = server.requests();
        let planner = requests.iter().find(|seen| seen.role() == "planner").expect("it was asked");
        assert_eq!((room_of_command(planner), planner.body["max_tokens"].as_u64()), (None, Some(16_000)));
        assert_eq!(schema(planner)["properties"]["tasks"]["maxItems"], 49, "and the reply is the fiftieth");
        server.finish();
    }
}

/// A model fills a field for credentials because it exists. A value that no user wrote is not a credential, and is not redacted.
#[test]
fn an_invented_credential_is_none() {
    let replies = json!([
        routed(&json!([{ "name": "token", "value": "tulips and roses" }])),
        { "role": "planner", "text": json!({ "goal": "g", "reply": "Say it", "tasks": [] }).to_string() },
        { "role": "worker", "text": "There are tulips and roses." },
        { "role": "titler", "text": "Flowers" },
    ]);
    let (home, server) = home(replies, "");
    home.kiso(&["run", "count the flowers of the garden in the shell"]).ok().prints(&["There are tulips and roses."]);
    server.finish();
}
