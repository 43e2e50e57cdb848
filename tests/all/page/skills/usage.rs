//! The permissions that a skill has used, and reducing its grant to these.

use super::super::browser::role;
use super::super::stage::{QUICK, Stage};
use super::{ASKING, grant, items, packed, reviews, ticked};
use crate::harness::Home;

#[test]
fn what_a_skill_used_is_shown_and_the_rest_is_taken_away() {
    let call = |home: &Home| {
        let work = home.work("default");
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(work.join("rain.csv"), "day,rain\n1,3\n2,5\n").unwrap();
        home.kiso(&["skill", "run", "data", "file=rain.csv", "compute=sum(rain)"]).ok().prints(&["8"]);
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, call) else { return };
    let tab = &stage.tab;
    // A skill that was never called has no record.
    tab.goto(&stage.url("#/skills/chart"));
    tab.click(role("button", "Show what it used"));
    tab.shows("No calls are recorded yet.");

    tab.goto(&stage.url("#/skills/data"));
    tab.click(role("button", "Show what it used"));
    tab.wait_of(role("region", "Used so far"), "it.innerText.includes('1 call since')");
    let used = items(tab, "Used hosts, folders and secrets");
    assert_eq!(used, ["read /work (1 call)"]);
    assert_eq!(items(tab, "Less would have been enough"), ["- workspace: write", "+ workspace: read"]);
    tab.click(role("button", "Allow only what was used"));
    tab.wait_for(role("dialog", "Allow only what was used?"));
    tab.click(role("button", "Allow only this"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("region", "Permissions"), "it.innerText.includes('Reads files of the chat that uses it.')");
    assert_eq!(stage.daemon.get("/skills/data")["grant"]["workspace"], "read");
    tab.click(role("button", "Show what it used"));
    tab.shows("It is allowed no more than it used.");
}

/// A permission with "ask" is neither granted nor refused; checking its box removes the question.
#[test]
fn what_a_person_is_asked_about_is_said() {
    let install = |home: &Home| {
        let file = packed(home, "echo.wasm", ASKING);
        home.kiso(&["skill", "add", file.to_str().unwrap(), "--grant", "none"]).ok();
        home.kiso(&["skill", "grant", "echo", "--ask-host", "api.example.org", "--ask-secret", "token"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, install) else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/skills/echo"));
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/asks you in each run/g).length === 2");
    assert!(!ticked(tab, "Reach api.example.org") && !ticked(tab, "Use the secret token"));
    tab.click(role("checkbox", "Reach api.example.org"));
    reviews(tab, &["echo may now reach api.example.org without asking (GET)"]);
    tab.click(role("button", "Change"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("region", "Permissions"), "it.innerText.match(/asks you in each run/g).length === 1");
    let now = grant(&stage);
    assert_eq!(
        (&now["http"][0]["host"], &now["ask"]["secrets"][0]["name"]),
        (&"api.example.org".into(), &"token".into())
    );
}
