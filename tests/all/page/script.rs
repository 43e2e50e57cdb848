//! Answers of the scripted model.

use crate::model_server::{ModelServer, Script};
use kiso_tests::root;

/// The router's answer to a message that needs only a text.
const TALK: &str = r#"{"effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false}"#;

/// The router's answer to a message that needs a plan.
const PLAN: &str = r#"{"effort": "high", "categories": [], "tool_need": 1, "goal": "an answer", "durable": false}"#;

/// A reply of the script; `more` are its other keys.
pub(super) fn reply(role: &str, text: &str, more: &str) -> String {
    format!("[[reply]]\nrole = \"{role}\"\ntext = {text:?}\n{more}\n")
}

/// The answers to a conversational message.
pub(super) fn talk(text: &str, more: &str) -> String {
    reply("router", TALK, "") + &reply("worker", text, more)
}

/// The answers until there is a plan.
pub(super) fn plan(plan: &str) -> String {
    reply("router", PLAN, "") + &reply("planner", plan, "")
}

/// The answer that names the session.
pub(super) fn title(text: &str) -> String {
    reply("titler", text, "")
}

pub(super) fn server(replies: &[String]) -> ModelServer {
    ModelServer::toml(&replies.concat())
}

/// The answers of a scenario in tests/scenarios, and a title for the session.
pub(super) fn scenario(name: &str) -> ModelServer {
    let text = std::fs::read_to_string(root().join("tests/scenarios").join(name)).expect("it is there");
    let table: toml::Table = toml::from_str(&text).expect("it is TOML");
    let mut script: Script =
        toml::Table::from_iter([("reply".to_owned(), table["reply"].clone())]).try_into().expect("these are replies");
    script.reply.extend(toml::from_str::<Script>(&title("A title")).expect("it is a reply").reply);
    ModelServer::start(script)
}

/// Waits until the whole script was used, and panics if anything deviated from it.
#[track_caller]
pub(super) fn finish(server: ModelServer) {
    server.finish();
}
