//! Memory beyond sessions: shown, searched and deleted by administrators only.

use super::browser::{Browser, css, role};
use super::stage::{QUICK, Stage, manage, unfold};
use super::themes::audit_in_both;
use crate::harness::Home;
use serde_json::json;

/// More than one page of passages.
const PASSAGES: usize = 60;

/// Stores core memory, passages and facts.
fn remember(home: &Home) {
    let core = json!({ "type": "core", "document": { "user": { "city": "Oslo", "likes": ["tea", "maps"] } } });
    let passage = |n: usize| {
        let text = format!("the ferry number {n} leaves at noon");
        json!({ "type": "passage", "text": text, "source": "note", "session": null, "at_ms": 1_700_000_000_000_i64 })
    };
    let lines: String =
        std::iter::once(core).chain((1..=PASSAGES).map(passage)).map(|line| format!("{line}\n")).collect();
    let file = home.file("memory.jsonl", lines);
    home.kiso(&["memory", "import", file.to_str().unwrap()]).ok();
    home.kiso(&["memory", "fact", "add", "The user lives in Oslo"]).ok();
    home.kiso(&["memory", "fact", "add", "Tea is at five", "--confidence", "40"]).ok();
}

#[test]
fn memory_is_shown_searched_and_forgotten() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, remember) else { return };
    let tab = &stage.tab;
    manage(tab, "Memory");
    tab.wait_of(
        css(".lists-core"),
        "['user', 'city', 'Oslo', 'likes', 'tea', 'maps'].every((part) => it.innerText.includes(part))",
    );
    audit_in_both(tab, "core memory");
    tab.click(role("link", "Passages"));
    tab.wait_until("location.hash === '#/memory/passages'");
    let rows = css(".lists-rows > li");
    tab.wait_for(role("list", "passages"));
    let shown = tab.count(rows);
    assert!(shown < PASSAGES, "one page of {shown}");
    tab.shows(&format!("the ferry number {PASSAGES} leaves at noon"));
    tab.click(role("button", "Show more"));
    tab.wait("all of them are there", || tab.count(rows) == PASSAGES);
    tab.wait_gone(role("button", "Show more"));
    audit_in_both(tab, "passages");
    tab.focus(role("searchbox", "Search passages"));
    tab.insert_text("ferry 17");
    tab.wait_of(css(".lists-rows > li:first-child"), "it.innerText.includes('number 17')");
    let id = stage.daemon.get("/memory?q=ferry+17")["items"][0]["id"].to_string();
    tab.click(role("button", &format!("Forget passage {id}")));
    tab.wait_for(role("dialog", "Forget this passage?"));
    tab.wait_of(role("dialog", ""), "it.querySelector('q').innerText === 'the ferry number 17 leaves at noon'");
    audit_in_both(tab, "a passage that is to be forgotten");
    tab.click(role("button", "Cancel"));
    tab.wait_gone(role("dialog", ""));
    tab.click(role("button", &format!("Forget passage {id}")));
    tab.wait_for(role("dialog", "Forget this passage?"));
    tab.click(css("dialog footer button.danger"));
    tab.wait_gone(role("button", &format!("Forget passage {id}")));
    tab.wait("the search has the focus again", || tab.focused() == "searchbox \"Search passages\"");
    let left = stage.daemon.get("/memory?limit=500")["items"].as_array().unwrap().clone();
    assert!(
        left.len() == PASSAGES - 1 && left.iter().all(|one| one["text"] != "the ferry number 17 leaves at noon"),
        "{left:?}"
    );
}

#[test]
fn facts_are_shown_searched_and_forgotten() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, remember) else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/memory/facts"));
    tab.wait_of(
        role("list", "facts"),
        "it.children[0].innerText.includes('Tea is at five') && it.children[0].innerText.includes('40 % sure')
          && it.children[1].innerText.includes('The user lives in Oslo') && it.children[1].innerText.includes('told by a person')",
    );
    audit_in_both(tab, "facts");
    tab.focus(role("searchbox", "Search facts"));
    tab.insert_text("where does the user live");
    tab.wait_of(role("list", "facts"), "it.children.length === 1 && it.innerText.includes('Oslo')");
    tab.eval_on(role("searchbox", "Search facts"), "it.select()");
    tab.insert_text("zeppelin");
    tab.shows("No matching facts");
    tab.eval_on(role("searchbox", "Search facts"), "it.select()");
    tab.press("Delete");
    tab.click(role("button", "Forget fact 2"));
    tab.wait_for(role("dialog", "Forget this fact?"));
    tab.click(css("dialog footer button.danger"));
    tab.wait_gone(role("button", "Forget fact 2"));
    let left = stage.daemon.get("/facts")["items"].as_array().unwrap().clone();
    assert!(left.len() == 1 && left[0]["text"] == "The user lives in Oslo", "{left:?}");
    tab.wait_for(role("button", "Forget fact 1"));
}

#[test]
fn memory_is_added_to_and_changed() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, remember) else { return };
    let tab = &stage.tab;
    tab.expects("answer: 400 /facts");
    let write = |button: &str, name: Option<&str>, text: &str| {
        tab.click(role("button", button));
        tab.wait_for(role("dialog", ""));
        if let Some(name) = name {
            tab.focus(role("textbox", "Name"));
            tab.insert_text(name);
        }
        tab.focus(role("textbox", "Text"));
        tab.eval_on(role("textbox", "Text"), "it.select()");
        tab.insert_text(text);
        tab.click(role("button", "Save"));
    };
    tab.goto(&stage.url("#/memory"));
    write("Add to core memory", Some("user.name"), "Ada");
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(css(".lists-core"), "it.innerText.includes('Ada')");
    write("Edit user.city", None, "Bergen");
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(css(".lists-core"), "it.innerText.includes('Bergen') && !it.innerText.includes('Oslo')");
    tab.click(role("button", "Forget user.likes"));
    tab.wait_for(role("dialog", "Forget user.likes?"));
    tab.click(css("dialog footer button.danger"));
    tab.wait_gone(role("button", "Forget user.likes"));
    assert_eq!(stage.daemon.get("/memory")["core"], json!({ "user": { "city": "Bergen", "name": "Ada" } }));
    audit_in_both(tab, "core memory that can be changed");
    tab.goto(&stage.url("#/memory/facts"));
    write("Add a fact", None, "my password: correct-horse-battery-9");
    tab.shows("it contains a secret");
    tab.eval_on(role("textbox", "Text"), "it.select()");
    tab.insert_text("The cat is grey");
    audit_in_both(tab, "a fact that is written");
    tab.click(role("button", "Save"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("list", "facts"), "it.children[0].innerText.includes('The cat is grey')");
    write("Edit fact 1", None, "The user lives in Bergen");
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("list", "facts"), "it.innerText.includes('Bergen') && !it.innerText.includes('Oslo')");
}

/// A guest does not even see the number of entries.
#[test]
fn memory_is_not_for_guests() {
    let Some(stage) = Stage::prepared(Home::new(), QUICK, remember) else { return };
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let tab = Browser::get().expect("it is there").tab();
    stage.log_in_with(&tab, token["token"].as_str().unwrap());
    unfold(&tab);
    tab.wait_for(role("link", "Skills"));
    assert!(!tab.has(role("link", "Memory")), "{:?}", tab.names("link"));
    tab.goto(&stage.url("#/memory/facts"));
    tab.shows("Only for administrators");
    assert!(tab.requests_to("/memory").is_empty() && tab.requests_to("/facts").is_empty());
    assert!(!tab.text().contains("Oslo"));
    audit_in_both(&tab, "memory, for a guest");
    tab.check();
}
