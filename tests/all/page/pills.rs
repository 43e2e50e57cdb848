//! Creating, changing, sharing and deleting pills in the page; tags in a conversation, and items with the same tag.

use super::browser::{css, role};
use super::stage::{MESSAGE, Stage, say};
use super::themes::audit_in_both;
use kiso_tests::root;
use serde_json::{Value, json};

fn pills(stage: &Stage) -> Vec<Value> {
    stage.daemon.get("/pills")["items"].as_array().unwrap().clone()
}

/// Rule: "Checks for "Action Pills" (user workflows)".
#[test]
fn a_pill_is_made_changed_shared_and_deleted() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 409 /pills");
    stage.open("kitchen");
    tab.goto(&stage.url("#/pills"));
    tab.shows("No pills yet");
    audit_in_both(tab, "no pills");
    tab.click(role("button", "New pill"));
    tab.wait("the name has the focus", || tab.focused() == "textbox \"Name\"");
    // Missing values are reported at their fields, without a request to the daemon.
    tab.press("Enter");
    for name in ["Name", "Prompt"] {
        tab.wait_of(role("textbox", name), "it.ariaInvalid === 'true'");
    }
    tab.focus(role("textbox", "Name"));
    tab.insert_text("shout");
    tab.focus(role("textbox", "Prompt"));
    tab.insert_text("$ echo {input} | tr a-z A-Z");
    tab.focus(role("textbox", "Description"));
    tab.insert_text("Says it louder");
    tab.wait_for(role("checkbox", "data"));
    audit_in_both(tab, "a pill that is being made");
    tab.click(role("button", "Create pill"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(
        role("list", "Pills"),
        "['!shout', 'Says it louder', '$ echo {input} | tr a-z A-Z', 'high effort', 'Tools: all'].every((part) => it.innerText.includes(part))",
    );
    audit_in_both(tab, "pills");
    // A name with spaces becomes one with which a message can begin.
    tab.click(role("button", "New pill"));
    tab.focus(role("textbox", "Name"));
    tab.insert_text("Weekly digest");
    tab.wait_of(css("#pill-name-help"), "it.innerText.includes('!weekly-digest')");
    tab.focus(role("textbox", "Prompt"));
    tab.insert_text("$ echo digest");
    tab.click(role("button", "Create pill"));
    tab.wait_of(role("list", "Pills"), "it.innerText.includes('!weekly-digest')");
    assert_eq!(stage.daemon.request("DELETE", "/pills/weekly-digest", None).status, 204);
    // The pill is offered in the composer, and works.
    stage.open("kitchen");
    tab.click(role("button", "shout"));
    tab.wait_of(MESSAGE, "it.value === '!shout '");
    tab.type_text("hello");
    tab.press("Enter");
    tab.shows("HELLO");
    tab.wait_gone(role("button", "Stop"));
    // The pill is changed, and shared as a line that another home can import.
    tab.goto(&stage.url("#/pills"));
    tab.click(role("button", "Change shout"));
    tab.eval_on(role("textbox", "Prompt"), "it.select()");
    tab.insert_text("$ echo {input} | rev");
    tab.click(role("checkbox", "data"));
    tab.click(role("button", "Save pill"));
    tab.wait_of(role("list", "Pills"), "it.innerText.includes('| rev') && it.innerText.includes('Tools: data')");
    let made = json!({ "name": "shout", "template": "$ echo {input} | rev", "categories": ["data"], "effort": "high", "description": "Says it louder", "origin": "admin" });
    assert_eq!(pills(&stage), [made]);
    tab.click(role("button", "Add shared pills"));
    tab.wait_for(role("textbox", "Pills as lines of JSON"));
    tab.insert_text("{\"name\": \"wave\", \"template\": \"$ echo bye {input}\"}\nnothing");
    tab.click(role("button", "Add pills"));
    tab.shows("Line 2 is not a pill.");
    assert_eq!(pills(&stage).len(), 1);
    tab.eval_on(role("textbox", "Pills as lines of JSON"), "it.select()");
    tab.insert_text("{\"name\": \"wave\", \"template\": \"$ echo bye {input}\"}");
    tab.click(role("button", "Add pills"));
    tab.wait_of(role("list", "Pills"), "it.innerText.includes('!wave')");
    // An existing name is not used for a new pill.
    tab.click(role("button", "New pill"));
    tab.focus(role("textbox", "Name"));
    tab.insert_text("wave");
    tab.focus(role("textbox", "Prompt"));
    tab.insert_text("x");
    tab.click(role("button", "Create pill"));
    tab.wait_of(role("textbox", "Name"), "it.ariaInvalid === 'true' && document.activeElement === it");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    tab.click(role("button", "Actions for wave"));
    tab.click(role("menuitem", "Delete…"));
    tab.click(role("button", "Delete"));
    tab.wait_of(role("list", "Pills"), "!it.innerText.includes('!wave')");
    assert_eq!(pills(&stage).len(), 1);
}

/// Rule: "Processes inline hashtags (e.g., `#research`)".
#[test]
fn tags_are_marked_and_lead_to_what_has_the_same() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.daemon.reply(stage.daemon.send("other", "$ echo the last trip #travel"));
    stage.open("trip");
    say(tab, "$ echo 'a boat (#travel, #data) and `#no`'");
    tab.wait_for(role("button", "Copy reply"));
    tab.reload();
    tab.wait_for(css(".chat-tag"));
    tab.focus(MESSAGE);
    tab.wait_of(css(".chat-tag.unknown"), "it.textContent === '#travel'");
    let tags = "[...document.querySelectorAll('.chat-tag')].map((it) => it.textContent + (it.classList.contains('unknown') ? '?' : ''))";
    assert_eq!(tab.eval(tags), json!(["#travel?", "#data"]));
    audit_in_both(tab, "a message with tags");
    tab.click(css(".chat-tag.unknown"));
    tab.wait_of(css("#search"), "it.value === '#travel' && document.activeElement === it");
    tab.wait_of(css("nav.sessions"), "it.innerText.includes('the last trip') && it.innerText.includes('a boat')");
    // The marks do not change the text.
    assert_eq!(
        tab.eval_on(css(".chat-asked .run-text"), "it.textContent"),
        "$ echo 'a boat (#travel, #data) and `#no`'"
    );
}

/// Rule: "Charts: Live Chart.js visualization": the chart of a run, from the chart skill.
#[test]
fn the_chart_of_a_run_is_drawn() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    std::fs::create_dir_all(stage.home.work("rain")).unwrap();
    std::fs::copy(root().join("examples/weather.csv"), stage.home.work("rain").join("weather.csv")).unwrap();
    stage.open("rain");
    say(tab, "total rain per city from weather.csv as a bar chart");
    tab.wait_for(css("article canvas"));
    tab.wait_gone(role("button", "Stop"));
    tab.click(role("button", "Table"));
    tab.wait_of(css(".chart-rows"), "it.innerText.includes('Oslo')");
    audit_in_both(tab, "the chart of a run");
}
