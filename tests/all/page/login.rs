//! Logging in and out, and the data left behind.

use super::browser::{Browser, css, role};
use super::stage::{ACCOUNT, Stage, expects_new_sessions, log_out, say, unfold};
use crate::harness::Home;
use crate::served::Served;

/// Logging in with a token, by keyboard only; a wrong one is refused with a message, and neither stays in the address.
#[test]
fn a_token_logs_in_and_the_log_out_is_final() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = Browser::get().expect("it is there").tab();
    tab.expects("answer: 401");
    expects_new_sessions(&tab);
    tab.goto(&stage.url(""));
    tab.wait_for(role("heading", "kiso"));
    tab.wait("the field has the focus", || tab.focused() == "textbox \"Token\"");
    tab.audit("log-in");
    tab.type_text("kiso_wrong");
    tab.press("Enter");
    tab.wait_for(role("alert", ""));
    tab.shows("Run kiso open on your server, or paste a token.");
    let refused = tab.eval_on(role("alert", ""), "it.innerText");
    let refused = refused.as_str().unwrap().trim();
    assert!(refused.starts_with("The token is not valid") && !refused.contains('`'), "{refused}");
    assert_eq!(tab.eval_on(role("alert", ""), "it.querySelector('code').textContent"), "kiso token list");
    tab.audit("log-in, refused");
    tab.wait_of(role("textbox", "Token"), "it.value === 'kiso_wrong'");
    tab.press("Control+a");
    tab.insert_text(stage.daemon.token.as_deref().unwrap());
    tab.press("Enter");
    tab.wait_for(ACCOUNT);
    assert_eq!(tab.eval("document.cookie"), "", "scripts cannot read what logs the browser in");
    tab.reload();
    log_out(&tab);
    tab.wait_for(role("textbox", "Token"));
    assert_eq!(tab.eval("fetch('/sessions').then((answer) => answer.status)"), 401);
    tab.reload();
    tab.wait_for(role("textbox", "Token"));
}

/// The link printed by `kiso open` works once; its code does not stay in the address.
#[test]
fn a_link_logs_in_once() {
    let Some(browser) = Browser::get() else { return };
    let home = Home::new();
    let daemon = Served::start(&home);
    let link = home.kiso(&["open", "--print"]).ok().stdout.trim().to_owned();
    assert!(link.starts_with(&format!("http://{}/#code=", daemon.address)), "{link}");
    let tab = browser.tab();
    expects_new_sessions(&tab);
    tab.goto(&link);
    tab.wait_for(ACCOUNT);
    assert!(!tab.eval("location.href").to_string().contains("code"), "{}", tab.eval("location.href"));
    assert_eq!(tab.eval("history.length"), 2, "no entry of the history has the code");
    let other = browser.tab();
    other.expects("answer: 401");
    other.goto(&link);
    other.wait_for(role("alert", ""));
    other.wait_for(role("textbox", "Token"));
    // A user who is already logged in sees that at once, but not after logging out.
    tab.expects("answer: 401");
    tab.goto("about:blank");
    tab.goto(&link);
    tab.wait_for(ACCOUNT);
    tab.shows("already used");
    log_out(&tab);
    tab.wait_for(role("textbox", "Token"));
    assert!(!tab.has(css(".login [role=alert]")), "{}", tab.describe());
}

/// A user with scope `chat` sees no controls that they may not use; revoking the token ends the login.
#[test]
fn rights_end_with_the_token() {
    let Some(stage) = Stage::reflex() else { return };
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let tab = Browser::get().expect("it is there").tab();
    tab.expects("answer: 401");
    stage.log_in_with(&tab, token["token"].as_str().unwrap());
    tab.wait_for(ACCOUNT);
    unfold(&tab);
    assert!(tab.has(role("link", "Skills")) && !tab.has(role("link", "Memory")), "{:?}", tab.names("link"));
    unfold(&stage.tab);
    stage.tab.wait_for(role("link", "Memory"));
    stage.home.kiso(&["token", "revoke", "guest"]).ok();
    tab.wait_for(role("textbox", "Token"));
    stage.tab.check();
}

/// A user with scope `chat` starts with an own session, and sees none of the owner's.
#[test]
fn a_guest_begins_with_an_empty_list() {
    let Some(stage) = Stage::reflex() else { return };
    stage.daemon.reply(stage.daemon.send("default", "$ echo for the owner alone"));
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let tab = Browser::get().expect("it is there").tab();
    stage.log_in_with(&tab, token["token"].as_str().unwrap());
    tab.wait_until("location.hash.startsWith('#/s/chat-')");
    tab.shows("What would you like to do?");
    assert!(!tab.text().contains("for the owner alone"), "{}", tab.text());
    say(&tab, "$ echo hello guest");
    tab.shows("hello guest");
    tab.wait("the owner sees both", || stage.daemon.get("/sessions")["items"].as_array().unwrap().len() == 2);
    tab.goto(&stage.url("#/s/default"));
    tab.shows("What would you like to do?");
    assert!(!tab.text().contains("for the owner alone"), "{}", tab.text());
}
