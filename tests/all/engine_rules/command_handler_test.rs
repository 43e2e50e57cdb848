//! Commands in messages.

use super::*;

const TWO: &str = "[model_settings.\"test:other\"]\ncontext_budget = 8_000\n";

#[test]
fn slash_new_resets_segment_and_returns_confirmation() {
    let daemon = ScriptedDaemon::start(&[says("The sea.")], "");
    daemon.ask("what is a tide?");
    assert!(daemon.command("/new").starts_with("Context cleared."));
    assert_ne!(daemon.served.get("/status/main")["segment_start"], 0);
    assert_eq!(daemon.model.requests().len(), 1, "no model was asked for it");
}

#[test]
fn slash_model_without_args_shows_current_model() {
    assert_eq!(
        ScriptedDaemon::start(&[], TWO).command("/model"),
        "The model of this session is test:m (titler: reflex)."
    );
}

#[test]
fn slash_model_with_valid_model_switches_model() {
    let daemon = ScriptedDaemon::start(&[], TWO);
    assert_eq!(daemon.command("/model test:other"), "The model of this session is now test:other (titler: reflex).");
    assert_eq!(daemon.command("/model"), "The model of this session is test:other (titler: reflex).");
}

#[test]
fn slash_model_with_invalid_model_returns_error() {
    let daemon = ScriptedDaemon::start(&[], TWO);
    let answer = daemon.command("/model nobody:nothing");
    assert!(answer.starts_with("The model was not changed") && answer.contains("nobody"), "{answer}");
    assert_eq!(daemon.command("/model"), "The model of this session is test:m (titler: reflex).");
}

/// "with argument `provider/model-id` …: switches model for this session": for every role that works on the session's messages,
/// also one with its own model in `config.toml`, but not for work after the reply.
#[test]
fn slash_model_changes_every_role_that_is_meant() {
    let config = "planner = \"test:own\"\nworker = \"test:own\"\n";
    let config = QUICK
        .replace("[daemon]", &format!("{config}[model_settings.\"test:other\"]\ncontext_budget = 8_000\n[daemon]"));
    let plan = json!({ "goal": "a greeting", "tasks": [{ "type": "msg", "detail": "Greet", "notify": true }] });
    let plan = || ("planner", json!({ "text": plan.to_string() }));
    let said = |text| [routed("high"), plan(), says(text)];
    let replies: Vec<_> = ["One.", "Two.", "Three.", "Four."].into_iter().flat_map(said).collect();
    let home = Home::new();
    let model = crash::serve(&home, &replies, &config);
    let daemon = ScriptedDaemon { served: Served::start(&home), home, model };
    let of_each = |daemon: &ScriptedDaemon| {
        let asked = daemon.model.requests();
        let last = asked[asked.len() - 3..].iter().map(|seen| (seen.role().to_owned(), seen.body["model"].clone()));
        last.map(|(role, model)| format!("{role} {}", model.as_str().unwrap())).collect::<Vec<_>>()
    };
    let message = "write a greeting for the whole team into the report";
    daemon.ask(message);
    assert_eq!(of_each(&daemon), ["router m", "planner own", "worker own"]);
    assert!(
        daemon.command("/status").contains(", router, reasoner, actor, eyes: test:m; titler: reflex)"),
        "{}",
        daemon.command("/status")
    );
    let now = "The model of this session is now test:other (titler: reflex).";
    assert_eq!(daemon.command("/model test:other"), now, "the titler has its own");
    daemon.ask(message);
    assert_eq!(of_each(&daemon), ["router other", "planner other", "worker other"]);
    assert!(
        daemon.command("/status").contains("- model: test:other (titler: reflex)\n"),
        "{}",
        daemon.command("/status")
    );
    let status = daemon.served.get("/status/main");
    assert_eq!((&status["model"], &status["models"]["worker"]), (&json!("test:other"), &json!("test:other")));
    // One role only, and back.
    assert!(daemon.command("/model worker test:m").contains("worker: test:m"));
    daemon.ask(message);
    assert_eq!(of_each(&daemon), ["router other", "planner other", "worker m"]);
    assert!(daemon.command("/model cook test:m").contains("\"cook\" is not a role; there are planner, "));
    daemon.command("/model default");
    daemon.ask(message);
    assert_eq!(of_each(&daemon), ["router m", "planner own", "worker own"]);
    assert_eq!(daemon.model.problems(), Vec::<String>::new());
}

/// "**/help** — lists all available commands as configured in `engine.yaml` under `commands:`".
#[test]
fn slash_help_lists_what_is_configured_under_commands() {
    let plain = ScriptedDaemon::start(&[], "").command("/help");
    assert!(plain.contains("- /new: ") && plain.contains("- /status: "), "{plain}");
    let config = "[commands]\nnew = \"Forget it\"\ntides = \"Look a tide up\"\n[pills.tides]\n\
                  template = \"what is a tide at {input}?\"\neffort = \"low\"\n";
    let daemon = ScriptedDaemon::start(&[says("The sea.")], config);
    assert_eq!(daemon.command("/help"), "- /new: Forget it\n- /tides [TEXT]: Look a tide up");
    let listed = daemon.served.get("/input")["commands"].clone();
    assert_eq!(listed[1], json!({ "name": "tides", "args": "[TEXT]", "summary": "Look a tide up" }));
    // A listed command works.
    assert_eq!(daemon.ask("/tides Brest"), "The sea.");
    assert!(daemon.prompt("worker").contains("what is a tide at Brest?"));
    assert!(daemon.command("/new").starts_with("Context cleared."));
}

#[test]
fn slash_models_lists_all_configured_models() {
    let answer = ScriptedDaemon::start(&[], TWO).command("/models");
    assert!(answer.contains("test:m: a context of ") && answer.contains(", the default"), "{answer}");
    assert!(answer.contains("test:other: a context of 8000 tokens"), "{answer}");
    assert!(answer.contains("reflex"), "the titler's: {answer}");
}

#[test]
fn slash_status_returns_uptime_and_session_info() {
    let answer = ScriptedDaemon::start(&[], TWO).command("/status");
    for part in ["up for ", "model: test:m", "segment begins", "nothing is running", "model calls waiting"] {
        assert!(answer.contains(part), "{part:?}: {answer}");
    }
}
