//! Connecting a first model, with the page only.

use super::browser::{css, role};
use super::script::{server, talk, title};
use super::stage::{MESSAGE, QUICK, Stage};
use crate::harness::Home;
use serde_json::json;

const KEY: &str = "sk-connect-0123456789abcdef";

/// The calls of a check of a model without pictures.
const CHECKED: &str = r#"
[[reply]]
role = "worker"
text = "one, two, three"

[[reply]]
role = "worker"
calls = [{ name = "report_number", args = { number = 7 } }]

[[reply]]
role = "worker"
text = '{"word": "kiso", "number": 7}'

[[reply]]
role = "worker"
text = "0"
"#;

/// Whether the page contains the text, also in inputs.
fn holds(stage: &Stage, text: &str) -> bool {
    let script = format!(
        "document.documentElement.outerHTML.includes({0}) || [...document.querySelectorAll('input')].some((one) => one.value.includes({0}))",
        json!(text)
    );
    stage.tab.eval(&script) == true
}

fn fill(stage: &Stage, field: &str, text: &str) {
    stage.tab.click(role("textbox", field));
    stage.tab.press("Control+a");
    stage.tab.insert_text(text);
}

#[test]
fn a_model_is_connected_tested_and_used_without_a_restart() {
    let script = [format!("key = \"{KEY}\"\n"), CHECKED.to_owned(), talk("Hello from the server.", ""), title("Hello")];
    let server = server(&script);
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.open("connected");
    tab.click(role("button", "Model: reflex"));
    tab.click(role("menuitem", "Connect a model…"));
    tab.wait_for(role("dialog", "Connect a model"));
    tab.wait_for(role("radio", "OpenAI"));
    for card in ["OpenAI", "Anthropic", "OpenRouter", "Gemini", "Groq", "Ollama", "LM Studio", "llama.cpp"] {
        assert!(tab.has(role("radio", card)), "{card}: {:?}", tab.names("radio"));
    }
    tab.click(role("radio", "OpenAI"));
    tab.wait_for(css("#connect-key"));
    let field = "[it.type, it.autocomplete, it.required]";
    assert_eq!(tab.eval_on(css("#connect-key"), field), json!(["password", "off", true]));
    tab.audit("the way to a model");
    tab.click(role("radio", "Other server"));
    fill(&stage, "Address", &server.base_url());

    // A wrong key: the error says what to do, and the key is removed from the page.
    tab.expects("answer: 502");
    fill(&stage, "API key", "sk-wrong-0123456789abcdef");
    tab.click(role("button", "Connect"));
    tab.shows("The provider does not accept the key");
    tab.shows("Copy the key again");
    assert!(!holds(&stage, "sk-wrong"), "{}", tab.text());
    tab.wait_of(role("region", "Connected providers"), "it.innerText.includes('Key rejected')");
    tab.audit("a key that is refused");

    // Another one can be entered at once.
    fill(&stage, "API key", KEY);
    tab.click(role("button", "Save"));
    // The server's only model is selected.
    tab.wait_of(role("radio", "test-model"), "it.checked");
    assert!(!holds(&stage, KEY), "the key is in the page");
    tab.wait_of(role("region", "Connected providers"), "it.innerText.includes('Works')");
    tab.click(role("button", "Test"));
    tab.wait_of(css(".connect-found"), "it.innerText.startsWith('Works')");
    tab.shows("This model does not read pictures.");
    tab.audit("a test of a model");
    tab.click(role("button", "Add to the menu"));
    tab.wait_for(role("button", "Remove from the menu"));
    assert_eq!(stage.daemon.get("/models")["default"], "reflex");
    tab.click(role("button", "Use this model"));
    tab.shows("Done. Chats now use");
    tab.wait_gone(role("dialog", "Connect a model"));
    let name = stage.daemon.get("/models")["default"].as_str().unwrap().to_owned();
    assert!(name.starts_with("127-0-0-1") || name.starts_with("server"), "{name}");
    assert!(name.ends_with(":test-model"), "{name}");

    // The key is in no response, and nowhere in plain text.
    for path in ["/providers", "/models", "/config"] {
        assert!(!stage.daemon.get(path).to_string().contains(KEY), "{path}");
    }
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(stage.home.path().join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{file}");
    }
    assert!(!stage.daemon.log().contains(KEY));
    let config = std::fs::read_to_string(stage.home.path().join("config.toml")).unwrap();
    assert!(!config.contains("127.0.0.1"), "{config}");

    // It answers, here and in the terminal.
    tab.wait_for(role("button", &format!("Model: {name}")));
    stage.say("write a poem about the sea");
    tab.shows("Hello from the server.");
    stage.home.kiso(&["doctor", "--offline"]).prints(&[&format!("ok   model {name}: not called")]);
    super::script::finish(server);

    tab.click(role("button", &format!("Model: {name}")));
    tab.click(role("menuitem", "More models…"));
    let provider = name.split(':').next().unwrap();
    // Its models can be listed with one click, without entering the key.
    tab.click(role("button", &format!("Models of {provider}")));
    tab.wait_for(role("radio", "test-model default"));
    tab.click(role("button", &format!("Remove {provider}")));
    tab.wait_for(role("dialog", &format!("Remove {provider}?")));
    tab.click(css("dialog[aria-labelledby]:last-of-type footer .danger"));
    tab.wait_gone(role("button", &format!("Remove {provider}")));
    assert_eq!(stage.daemon.get("/models")["default"], "reflex");
    assert_eq!(stage.daemon.get("/providers")["items"], json!([]));
}

/// A model without its key does not disturb anything else, and its card leads to the solution.
#[test]
fn a_missing_key_is_a_card_with_its_remedy() {
    let config = format!(
        "model = \"cloud:m\"\n{QUICK}[providers.cloud]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"KISO_NO_SUCH_KEY\"\n"
    );
    let Some(stage) = Stage::with(Home::new(), &config) else { return };
    let tab = &stage.tab;
    stage.open("keyless");
    stage.say("$ echo it works");
    tab.wait_of(css("figure.terminal"), "it.innerText.includes('it works')");
    stage.say("write a poem about tea, please");
    tab.wait_for(role("group", "The model has no key"));
    tab.shows("KISO_NO_SUCH_KEY");
    tab.audit("a card of an error");
    tab.click(role("button", "Connect a model"));
    tab.wait_for(role("dialog", "Connect a model"));
    tab.shows("cloud:m has no key");
    tab.press("Escape");
    let warnings = stage.daemon.get("/health/details")["warnings"].to_string();
    assert!(warnings.contains("KISO_NO_SUCH_KEY"), "{warnings}");
    // The configuration file has priority: a connected model does not replace its model.
    let body = json!({ "kind": "openai", "base_url": "http://127.0.0.1:9/v1" }).to_string();
    stage.daemon.request("PUT", "/providers/mine", Some(&body)).expect(200);
    let body = json!({ "model": "m", "default": true }).to_string();
    let used = stage.daemon.request("PUT", "/providers/mine/models", Some(&body)).expect(200);
    assert_eq!(used, json!({ "model": "mine:m", "in_use": false }));
    let body = json!({ "kind": "openai", "base_url": "http://127.0.0.1:9/v1" }).to_string();
    stage.daemon.request("PUT", "/providers/cloud", Some(&body)).expect(400);
}

/// Reasoning is streamed into a folded section, is not part of the reply, and is kept after a reload.
#[test]
fn thoughts_are_folded_above_the_reply() {
    const THOUGHT: &str = "The user greets me, so I greet back.";
    let more = format!("reasoning = {THOUGHT:?}\nfault = \"stepped\"\npieces = 2");
    let absent = format!("expect_absent = {THOUGHT:?}");
    let server = server(&[talk("Good morning.", &more), title("Morning"), talk("Good evening.", &absent)]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("thinking");
    stage.say("write a greeting for the morning");
    tab.wait_of(css(".chat-thought summary"), "it.innerText.includes('Thinking…')");
    tab.click(css(".chat-thought summary"));
    tab.wait_of(css(".chat-thought-text"), &format!("it.innerText.includes({})", json!(THOUGHT)));
    tab.audit("thoughts that stream");
    server.release_many(10);
    tab.wait_for(role("button", "Copy reply"));
    tab.wait_of(css(".chat-thought summary"), "it.innerText.includes('Thought for')");
    tab.reload();
    tab.wait_of(css(".chat-thought summary"), "it.innerText.includes('Thought for')");
    assert!(!tab.text().contains(THOUGHT), "it is folded");
    tab.click(css(".chat-thought summary"));
    tab.wait_of(css(".chat-thought-text"), &format!("it.innerText.includes({})", json!(THOUGHT)));
    let reply = stage.daemon.get("/sessions/thinking/messages")["items"][1].clone();
    assert_eq!(reply["text"], "Good morning.");
    let run = stage.daemon.get(&format!("/runs/{}", reply["run"].as_str().unwrap()));
    assert_eq!((&run["reasoning"][0]["role"], &run["reasoning"][0]["text"]), (&json!("worker"), &json!(THOUGHT)));
    // Later requests do not contain it.
    stage.tab.wait_for(MESSAGE);
    stage.say("write a greeting for the evening");
    tab.shows("Good evening.");
    super::script::finish(server);
}
