//! Skills: what each needs and was granted, installed by dropping a file, called by a form.

use super::browser::{Browser, css, role};
use super::stage::Stage;
use crate::harness::guest;
use kiso_tests::root;
use serde_json::json;

/// A skill that asks for a host and a secret.
const ASKING: &str = r#"
[kiso]
type = "skill"
name = "asking"
version = "0.3.0"
description = "Answers with its arguments <b>in bold</b>"

[kiso.skill]
secrets = ["token"]
summary = "Asks for more than it needs"
category = "test"

[kiso.skill.args]
text = { type = "string", required = true, max_length = 400 }

[kiso.skill.needs]
workspace = "none"
http = [{ host = "api.example.org", methods = ["GET"] }]
"#;

#[test]
fn a_file_is_dropped_asks_is_granted_and_revoked() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    // It asks first, and says so with a conflict.
    tab.expects("answer: 409 /skills");
    let packed = stage.home.dir.path().join("asking.wasm");
    let (manifest, echo) = (stage.home.file("kiso.toml", ASKING), guest("echo"));
    let [manifest, echo, out] = [&manifest, &echo, &packed].map(|path| path.to_str().unwrap());
    stage.home.kiso(&["skill", "pack", echo, "--manifest", manifest, "-o", out]).ok();
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("heading", "Skills"));
    tab.wait_for(role("link", "chart"));
    tab.audit("skills");
    tab.drop_file(css("main"), &packed);
    tab.wait_for(role("dialog", "Install asking?"));
    // Nothing is ticked by itself.
    let ticks = "[...document.querySelectorAll('dialog input[type=checkbox]')].map((it) => it.checked)";
    assert_eq!(tab.eval(ticks), json!([false, false]));
    tab.audit("what a skill asks for");
    tab.click(role("checkbox", "api.example.org"));
    tab.click(role("button", "Install and grant selected"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_until("location.hash === '#/skills/asking'");
    tab.wait_for(role("heading", "What it may do"));
    tab.audit("a skill");
    assert!(tab.text().contains("Answers with its arguments <b>in bold</b>"), "{}", tab.text());
    let grant = |what: &str| stage.daemon.get("/skills/asking")["grant"][what].clone();
    assert_eq!(grant("http")[0]["host"], "api.example.org");
    assert_eq!(grant("secrets"), json!([]));
    // What changes is said in words before it does.
    tab.click(role("checkbox", "Use the secret token"));
    tab.click(role("checkbox", "Reach api.example.org"));
    tab.click(role("button", "Review the change"));
    let change = tab.of(role("list", "What changes"), "it.innerText");
    let change = change.as_str().unwrap();
    assert!(
        change.contains("may now use the secret token") && change.contains("may no longer reach api.example.org"),
        "{change}"
    );
    tab.audit("a change of a grant");
    tab.click(role("button", "Change"));
    stage.daemon.until(|| grant("secrets")[0]["name"] == "token" && grant("http") == json!([]));
    tab.wait_gone(role("dialog", ""));
    tab.click(role("button", "Revoke all"));
    tab.click(role("button", "Revoke"));
    stage.daemon.until(|| grant("secrets") == json!([]));
    tab.wait_gone(role("dialog", ""));
    // Who may chat sees it and changes nothing.
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let guest = Browser::get().expect("it is there").tab();
    stage.log_in_with(&guest, token["token"].as_str().unwrap());
    guest.goto(&stage.url("#/skills/asking"));
    guest.shows("Only an administrator changes this.");
    assert!(!guest.has(role("button", "Review the change")) && !guest.has(role("checkbox", "Use the secret")));
    // Removed, after a question.
    tab.click(role("button", "Actions for asking"));
    tab.click(role("menuitem", "Remove"));
    tab.click(role("button", "Remove"));
    tab.wait_until("location.hash === '#/skills'");
    stage.daemon.request("GET", "/skills/asking", None).refuses(404, "not_found");
}

#[test]
fn what_is_no_skill_is_refused_in_words() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 4");
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("link", "chart"));
    let file = stage.home.file("broken.wasm", "this is no component");
    tab.choose_file(css("main input[type=file]"), &file);
    tab.wait_for(role("dialog", "It was not installed"));
    tab.wait_for(role("alert", ""));
    tab.audit("a file that is no skill");
    tab.click(role("button", "Close"));
    tab.wait_gone(role("dialog", ""));
    // One without a name is asked for it.
    tab.choose_file(css("main input[type=file]"), &guest("calc"));
    tab.wait_for(role("dialog", "What is it called?"));
    tab.type_text("sums");
    tab.press("Enter");
    tab.wait_until("location.hash === '#/skills/sums'");
}

#[test]
fn a_skill_is_called_by_the_form_of_its_schema() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.daemon.reply(stage.daemon.send("desk", "$ echo begin"));
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("desk").join("weather.csv")).unwrap();
    tab.goto(&stage.url("#/skills/data"));
    tab.wait_for(role("form", "Call data"));
    tab.audit("a skill with its form");
    // What is required is said at its field, before anything is sent.
    tab.forget_requests();
    tab.click(css("form.call button.primary"));
    tab.wait_for(css("form.call [aria-invalid=true]"));
    assert_eq!(tab.requests_to("/skills/data/call").len(), 0);
    tab.audit("a form with something missing");
    tab.of(css("#call-session"), "it.focus()");
    tab.press("Control+a");
    tab.insert_text("desk");
    tab.focus(css("form.call [aria-invalid=true]"));
    tab.insert_text("weather.csv");
    tab.click(css("form.call input[type=checkbox]"));
    tab.click(css("form.call button.primary"));
    tab.wait_for(css(".call-result"));
    tab.wait_of(css(".call-result"), "it.textContent.includes('temperature_c')");
    tab.audit("what a skill answered");
    let sent = tab.requests_to("/skills/data/call");
    assert_eq!(sent.len(), 1, "{sent:?}");
}
