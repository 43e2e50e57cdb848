//! A skill is called by a form.

use super::*;

#[test]
fn a_skill_is_called_by_a_form() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let work = stage.home.work("lab");
    stage.daemon.reply(stage.daemon.send("lab", "$ echo begin"));
    std::fs::copy(root().join("examples/weather.csv"), work.join("weather.csv")).unwrap();
    tab.goto(&stage.url("#/skills/data"));
    tab.wait_for(role("form", "Call data"));
    tab.eval_on(role("combobox", "Chat"), "it.select()");
    tab.focus(role("combobox", "Chat"));
    tab.insert_text("lab");
    // Files of the workspace are offered.
    tab.wait_until("[...document.querySelectorAll('#form-files option')].some((it) => it.value === 'weather.csv')");

    // Missing values and invalid numbers are reported at their fields, before a request is sent.
    tab.focus(role("textbox", "limit"));
    tab.insert_text("many");
    tab.press("Enter");
    let file = css("form.call [id='arg.file']");
    tab.wait_of(file, "it.ariaInvalid === 'true' && document.activeElement === it");
    tab.wait_of(role("textbox", "limit"), "it.ariaInvalid === 'true'");
    assert_eq!(tab.requests_to("/skills/data/call").len(), 0);
    audit_in_both(tab, "a form with mistakes");
    tab.eval_on(role("textbox", "limit"), "it.select()");
    tab.focus(role("textbox", "limit"));
    tab.insert_text("2");
    tab.focus(file);
    tab.insert_text("weather.csv");
    tab.focus(role("textbox", "sort 1"));
    tab.insert_text("date");
    let before = tab.count(css("form.call [aria-invalid=true]"));
    assert_eq!(before, 0, "what is right says nothing");
    tab.click(role("button", "Call"));
    tab.wait_for(role("region", "Result"));
    let sent: Value = serde_json::from_str(tab.requests_to("/skills/data/call")[0].body.as_deref().unwrap()).unwrap();
    assert_eq!(sent, json!({ "session": "lab", "args": { "file": "weather.csv", "sort": ["date"], "limit": 2 } }));
    let ended = stage.daemon.request("POST", "/skills/data/call", Some(&sent.to_string())).expect(200);
    let text = ended["text"].as_str().unwrap().trim();
    tab.wait_of(role("region", "Answer"), &format!("it.textContent.trim() === {}", json!(text)));
    tab.wait_of(css(".call-used"), "['time', 'memory', 'of'].every((part) => it.innerText.includes(part))");
    audit_in_both(tab, "what came of a call");
    let _clipboard = tab.allow_clipboard();
    tab.click(role("button", "As JSON"));
    tab.wait("the call is in the clipboard", || {
        serde_json::from_str::<Value>(&tab.clipboard()).is_ok_and(|copied| copied == sent)
    });

    // A failed call says who is responsible and why.
    tab.eval_on(file, "it.select()");
    tab.focus(file);
    tab.insert_text("gone.csv");
    tab.click(role("button", "Call"));
    tab.wait_of(role("region", "Result"), "it.innerText.includes('failed') && it.innerText.includes('gone.csv')");
    // Earlier calls can be reused.
    tab.wait("both calls are remembered", || tab.count(css(".call-past li")) == 2);
    tab.click(css(".call-past li:nth-child(2) button"));
    tab.wait_of(file, "it.value === 'weather.csv'");
    tab.click(role("button", "Clear"));
    tab.wait_of(file, "it.value === ''");
}

/// A user with scope `chat` sees and calls skills, but has no controls for administrators.
#[test]
fn a_guest_only_looks_and_calls() {
    let install = |home: &Home| {
        let file = packed(home, "echo.wasm", ASKING);
        home.kiso(&["skill", "add", file.to_str().unwrap(), "--grant", "none"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, install) else { return };
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let tab = Browser::get().expect("it is there").tab();
    stage.log_in_with(&tab, token["token"].as_str().unwrap());
    tab.wait_for(ACCOUNT);
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("link", "echo"));
    assert!(!tab.has(role("button", "Install a skill")), "{:?}", tab.names("button"));
    tab.click(role("link", "echo"));
    tab.wait_of(
        role("region", "Permissions"),
        "it.innerText.includes('api.example.org') && it.innerText.includes('Only administrators')",
    );
    assert!(!tab.has(role("checkbox", "")), "{:?}", tab.names("checkbox"));
    for action in ["Review changes", "Revoke all", "Select all", "Actions for echo"] {
        assert!(!tab.has(role("button", action)), "{action}: {:?}", tab.names("button"));
    }
    audit_in_both(&tab, "a skill, for a guest");
    tab.focus(role("textbox", "text"));
    tab.insert_text("hello from a guest");
    tab.click(role("button", "Call"));
    tab.wait_of(role("region", "Answer"), "it.textContent.trim() === 'hello from a guest'");
    tab.check();
}
