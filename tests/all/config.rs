//! `kiso config`, the models in `kiso doctor`, and every command of docs/models.md, from outside.

use crate::harness::{Home, root};
use crate::model_server::ModelServer;
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret";

/// A provider of each format at `server`; the first needs a key.
fn providers(server: &ModelServer) -> String {
    let url = server.base_url();
    format!(
        "[providers.one]\nkind = \"openai\"\nbase_url = \"{url}\"\nkey_env = \"TEST_KEY\"\n\
         [providers.two]\nkind = \"anthropic\"\nbase_url = \"{url}/\"\n[llm]\nmax_retry_wait_s = 0\n"
    )
}

/// Runs kiso with the first provider's key in its environment.
fn with_key(home: &Home, args: &[&str]) -> crate::harness::Ran {
    home.kiso_with(args, |command| {
        command.env("TEST_KEY", KEY);
    })
}

fn doctor(home: &Home, args: &[&str]) -> crate::harness::Ran {
    let args: Vec<_> = ["doctor"].iter().chain(args).copied().collect();
    with_key(home, &args)
}

#[test]
fn check_tells_all_mistakes_at_once_with_their_places() {
    let home = Home::new();
    home.kiso(&["config", "check"]).ok().prints(&["config.toml is valid"]);
    home.config(
        "model = \"gpt\"\n[models]\nplaner = \"reflex\"\n[providers.a]\nkind = \"openai\"\nkey_env = \"sk-very-secret\"\n",
    );
    let ran = home.kiso(&["config", "check"]);
    ran.exit(3).says(&["config.toml:3:1: unknown key models.planer: did you mean planner?"]);
    ran.says(&[
        "config.toml:4:12: [providers.a] needs base_url",
        "config.toml:6:11: providers.a.key_env looks like a key",
    ]);
    assert!(!format!("{ran:?}").contains(KEY), "{ran:?}");
    let objects = home.kiso(&["--json", "config", "check"]).exit(3).json_lines();
    let places: Vec<_> = objects.iter().map(|o| (o["type"].as_str().unwrap(), o["line"].as_u64().unwrap())).collect();
    assert_eq!(places, [("problem", 3), ("problem", 4), ("problem", 6)]);
}

/// A command line with access to the home could read its key, and so every secret.
#[test]
fn a_mount_never_has_the_home_in_it() {
    let home = Home::new();
    home.kiso(&["config", "check"]).ok();
    let outer = home.dir.path().to_owned();
    std::os::unix::fs::symlink(home.path().join("sessions"), outer.join("link")).unwrap();
    home.file("shared/a.txt", "a");
    for path in [outer.clone(), home.path(), outer.join("link"), "/".into()] {
        home.config(&format!("[exec.mounts]\n\"/b\" = {{ path = \"{}\", role = \"user\" }}\n", path.display()));
        for args in [["config", "check"].as_slice(), &["serve", "--port", "0"], &["run", "$ cat /b/home/key"]] {
            home.kiso(args).exit(3).says(&["exec.mounts.\"/b\"", "has kiso's own home in it, or is in it"]);
        }
    }
    // A directory that was replaced by a link after the configuration was read.
    let shared = outer.join("shared").display().to_string();
    home.config(&format!("[exec.mounts]\n\"/b\" = {{ path = \"{shared}\", role = \"user\" }}\n"));
    home.kiso(&["run", "$ cat /b/a.txt"]).ok().prints(&["a"]);
    let daemon = crate::served::Served::start(&home);
    std::fs::rename(outer.join("shared"), outer.join("away")).unwrap();
    std::os::unix::fs::symlink(home.path(), outer.join("shared")).unwrap();
    let reply = daemon.reply(daemon.send("s", "$ cat /b/key"));
    assert!(reply.contains("has kiso's own home in it"), "{reply}");
}

#[test]
fn check_notes_what_a_run_would_stumble_over() {
    let home = Home::new();
    home.config(
        "model = \"scripted:/gone.toml\"\n[providers.a]\nkind = \"openai\"\nbase_url = \"http://10.0.0.1/v1\"\n\
         key_env = \"KISO_TEST_UNSET\"\n",
    );
    home.kiso(&["config", "check"]).ok().prints(&[
        "is valid",
        "note: KISO_TEST_UNSET, the variable with the key of [providers.a], is not set here",
        "note: [providers.a] sends its key unencrypted",
        "note: the script /gone.toml does not exist",
    ]);
    let object = home.kiso(&["--json", "config", "check"]).json();
    assert_eq!((object["type"].as_str(), object["notes"].as_array().unwrap().len()), (Some("checked"), 3));
}

#[test]
fn show_is_a_configuration_and_holds_no_key() {
    let home = Home::new();
    let text = "model = \"a:gpt\"\n[limits]\nmax_tasks = 7\n[providers.a]\nkind = \"openai\"\n\
                base_url = \"https://localhost/v1\"\nkey_env = \"TEST_KEY\"\n";
    home.config(text);
    let show = |args: &[&str]| with_key(&home, args);
    let shown = show(&["config", "show"]);
    shown.ok().prints(&["model = \"a:gpt\" # default: \"reflex\"", "max_tasks = 7 # default: 50", "max_calls = 8\n"]);
    shown.prints(&["key_env = \"TEST_KEY\" # set\n"]);
    let object = show(&["--json", "config", "show"]).json();
    assert_eq!((&object["type"], &object["providers"][0]["key_is_set"]), (&json!("config"), &json!(true)));
    assert_eq!(object["roles"]["actor"]["model"], "a:gpt");
    assert!(!object.to_string().contains(KEY) && !shown.stdout.contains(KEY));
    let unset = home.kiso(&["config", "show"]);
    unset.ok().prints(&["key_env = \"TEST_KEY\" # not set\n"]);
    // The shown configuration can replace the written one, and gives the same result.
    home.config(&shown.stdout);
    assert_eq!(show(&["config", "show"]).ok().stdout, shown.stdout);
}

#[test]
fn presets_are_configurations_and_are_written_once() {
    for preset in ["openrouter", "openai", "anthropic", "gemini", "groq", "ollama", "lmstudio", "llama.cpp", "vllm"] {
        let home = Home::new();
        let printed = home.kiso(&["config", "preset", preset]).ok().stdout.clone();
        home.config(&printed);
        home.kiso(&["config", "check"]).ok();
        let home = Home::new();
        let written = home.kiso(&["config", "preset", preset, "--write"]);
        written.ok().prints(&["every role now uses", "next: "]);
        let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
        assert!(
            text.starts_with("# The configuration of kiso") && text.contains("# max_tokens_per_day"),
            "comments are kept"
        );
        home.kiso(&["config", "check"]).ok();
        home.kiso(&["config", "preset", preset, "--write"]).ok().prints(&["already has it"]);
    }
    let home = Home::new();
    let list = ["openrouter", "llama.cpp", "kiso config preset NAME"];
    home.kiso(&["config", "preset"]).ok().prints(&list);
    assert_eq!(home.kiso(&["--json", "config", "preset"]).ok().stdout.lines().count(), 9);
    home.kiso(&["config", "preset", "--write"]).exit(2).says(&["<NAME>"]);
    home.kiso(&["config", "preset", "acme"]).exit(2).says(&["openrouter", "llama.cpp"]);
    let text = "model = \"scripted:/a\" # mine\n";
    home.config(text);
    let refused = home.kiso(&["config", "preset", "ollama", "--write"]);
    refused.exit(1).says(&["was not changed: it has a model already", "model = \"ollama:qwen3:8b\""]);
    assert_eq!(std::fs::read_to_string(home.path().join("config.toml")).unwrap(), text);
    home.config("[limits]\nmax_task = 1\n");
    home.kiso(&["config", "preset", "ollama", "--write"]).exit(3).says(&["config.toml:2:1", "max_tasks"]);
}

#[test]
fn set_changes_one_value_or_nothing() {
    let home = Home::new();
    home.kiso(&["config", "set", "limits.max_tasks", "9"])
        .ok()
        .prints(&["limits.max_tasks is set", "kiso config reload"]);
    home.kiso(&["config", "show"]).ok().prints(&["max_tasks = 9 # default: 50"]);
    home.kiso(&["config", "set", "limits.max_tasks", "9"]).ok().prints(&["already has it"]);
    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(text.starts_with("# The configuration of kiso") && text.contains("# max_tokens_per_day"), "{text}");
    home.kiso(&["config", "set", "limits.max_task", "9"]).exit(3).says(&["was not changed", "did you mean max_tasks"]);
    home.kiso(&["config", "set", "limits.max_tasks", "many"]).exit(3).says(&["must be an integer"]);
    home.kiso(&["config", "set", "a b", "1"]).exit(2).says(&["is not the name of a key"]);
    home.kiso(&["config", "set", "limits.max_tasks"]).exit(2).says(&["<VALUE>"]);
    assert_eq!(std::fs::read_to_string(home.path().join("config.toml")).unwrap(), text);
    let object = home.kiso(&["--json", "config", "set", "limits.max_tasks", "--default"]).ok().json();
    assert_eq!(
        (&object["type"], &object["key"], &object["value"]),
        (&json!("set"), &json!("limits.max_tasks"), &json!(null))
    );
    home.kiso(&["config", "show"]).ok().prints(&["max_tasks = 50\n"]);
}

/// Three answers to the three questions of a probe: text, a tool call, JSON.
const ABLE: &str = r#"
[[reply]]
text = "one, two, three, four"
pieces = 4
[[reply]]
calls = [{ name = "report_number", args = { number = 7 } }]
[[reply]]
text = '{"word": "kiso", "number": 7}'
[[reply]]
text = "4271"
"#;

#[test]
fn doctor_asks_each_model_once_what_it_can_do() {
    for provider in ["one", "two"] {
        // In the Messages format, the schema for the answer is sent as a tool, and the answer's content is not checked.
        let server = ModelServer::toml(ABLE);
        let home = Home::new();
        home.config(&format!("model = \"{provider}:m\"\n[models]\nrouter = \"reflex\"\n{}", providers(&server)));
        let ran = doctor(&home, &[]);
        ran.ok().prints(&["ok   models: planner: ", "ok   model reflex: built in, not called; for router"]);
        ran.prints(&[&format!(
            "ok   model {provider}:m: answers, streams, usage, tools, json schema, pictures; for planner, reviewer"
        )]);
        assert_eq!(server.requests().len(), 4);
        assert!(!format!("{ran:?}").contains(KEY), "{ran:?}");
        server.finish();
    }
}

#[test]
fn doctor_says_what_a_model_cannot_and_offline_asks_nobody() {
    let server = ModelServer::toml(
        "[[reply]]\ntext = \"one\"\npieces = 1\n[[reply]]\ntext = \"7\"\n[[reply]]\ntext = \"no\"\n[[reply]]\ntext = \"0\"\n",
    );
    let home = Home::new();
    home.config(&format!("model = \"one:m\"\n{}", providers(&server)));
    doctor(&home, &["--offline"]).ok().prints(&["ok   model one:m: not called; for planner"]);
    assert!(server.requests().is_empty());
    let objects = doctor(&home, &["--json"]).ok().json_lines();
    let model = objects.iter().find(|o| o["what"] == "model one:m").unwrap();
    let able = |name: &str| {
        let found = model["capabilities"].as_array().unwrap().iter().find(|c| c["name"] == name).unwrap();
        found["works"].as_bool().unwrap()
    };
    assert_eq!(["answers", "tools", "json schema", "pictures"].map(able), [true, false, false, false]);
    assert!(model["detail"].as_str().unwrap().contains("no tools: it called no tool, and said \"7\""), "{model}");
    server.finish();
}

#[test]
fn doctor_fails_when_a_model_does_not_answer() {
    let server = ModelServer::toml("[[reply]]\nfault = \"status_500\"\n");
    let home = Home::new();
    home.config(&format!("model = \"one:m\"\n{}", providers(&server)));
    let ran = doctor(&home, &[]);
    ran.exit(1).prints(&["FAIL model one:m: the model one:m did not answer"]);
    server.finish();
    // A provider without its key is not asked.
    let ran = home.kiso(&["doctor"]);
    ran.exit(3).prints(&["FAIL models: ", "TEST_KEY, the variable with the key of [providers.one], is not set"]);
    ran.prints(&["FAIL model one:m: "]);
    let ran = home.kiso(&["run", "hello"]);
    ran.exit(3).says(&["TEST_KEY"]);
}

/// A run continues with a fallback, or with the same model after a pause.
#[test]
fn a_run_survives_a_model_that_fails() {
    let plan = json!({ "goal": "greet", "tasks": [{ "type": "msg", "detail": "greet", "notify": true }] }).to_string();
    let routed = json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "greet", "durable": false });
    let script = json!({ "reply": [
        { "role": "router", "text": routed.to_string() },
        { "role": "planner", "fault": "status_500" },
        { "role": "planner", "text": plan },
        { "role": "worker", "raw": "{\"error\": {\"message\": \"no such model\"}}", "status": 404 },
        { "role": "worker", "text": "Good morning" },
        { "role": "titler", "text": "A greeting" },
    ] });
    let server = ModelServer::start(serde_json::from_value(script).unwrap());
    let home = Home::new();
    home.config(&format!("model = \"one:m\"\n[fallbacks]\nworker = [\"two:n\"]\n{}", providers(&server)));
    let ran = with_key(&home, &["run", "greet my cat in its own words, please"]);
    ran.ok().prints(&["Good morning"]);
    let asked: Vec<Value> = server.requests().iter().map(|seen| seen.body["model"].clone()).collect();
    assert_eq!(asked, ["m", "m", "m", "m", "n", "m"]);
    server.finish();
}

/// Every TOML block in docs/models.md is a valid configuration, together with the providers that it needs.
#[test]
fn the_settings_of_the_page_about_models_are_right() {
    let page = std::fs::read_to_string(root().join("docs/models.md")).unwrap();
    let blocks: Vec<_> = page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let providers = blocks[0];
    for block in &blocks {
        let text = if block == &providers { providers.to_owned() } else { format!("{block}\n{providers}") };
        if let Err(problems) = kiso_base::config::Config::parse(text.as_bytes()) {
            panic!("{problems:?}\n{text}");
        }
    }
    assert!(blocks.len() >= 4, "{} blocks were found", blocks.len());
}

/// The page is generated from the lists of keys, and not edited by hand.
#[test]
fn the_page_of_the_configuration_is_what_the_program_says() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).expect("docs/configuration.md is there");
    let home = Home::new();
    let made = home.kiso(&["config", "docs"]).ok().stdout.clone();
    assert!(
        page == made,
        "docs/configuration.md is old: run `cargo run -p kiso -- config docs > docs/configuration.md`"
    );
    assert_eq!(home.kiso(&["--json", "config", "docs"]).json()["text"], page);
}
