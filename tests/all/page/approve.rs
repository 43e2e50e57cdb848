//! The card of a run that waits for a person, in a conversation.

use super::browser::{css, role};
use super::stage::Stage;
use crate::harness::{Home, root};
use crate::mcp::runs;
use crate::mcp::stand_in::{Era, StandIn};
use crate::web;
use serde_json::json;

#[test]
fn a_card_is_answered_with_its_buttons() {
    let address = web::serve(|_| web::text("It rains."));
    let grant = |home: &Home| {
        home.kiso(&["skill", "grant", "fetch", "--ask-host", &address, "--private"]).ok();
    };
    let Some(stage) = Stage::prepared(Home::new(), "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n", grant) else {
        return;
    };
    let tab = &stage.tab;
    stage.open("asked");
    stage.say(&format!("fetch url=http://{address}/one"));
    tab.wait_for(role("group", "Approval 1"));
    tab.shows(&format!("GET to {address}"));
    tab.shows(&format!("http://{address}/one"));
    // There is one card in view, without a text copy; the sidebar shows that the session needs a person.
    tab.wait_of(
        css(".approval"),
        "it.getBoundingClientRect().top >= 0 && it.getBoundingClientRect().bottom <= innerHeight",
    );
    tab.shows("Waiting for your answer below");
    assert!(!tab.text().contains("this needs your approval"), "{}", tab.text());
    tab.wait_of(css(".sessions li.current"), "it.innerText.includes('Needs you') && !it.querySelector('.spinner')");
    tab.audit("a run that asks");
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let folder = root().join("target/page");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("approval.png"), tab.screenshot()).unwrap();
    }
    tab.click(role("button", "Refuse"));
    tab.shows("refused by the user");
    tab.wait_gone(role("group", "Approval 1"));
    tab.wait_of(css(".approval-done"), "it.innerText.startsWith('Refused by') && it.innerText.includes('fetch')");
    tab.wait_of(css(".sessions li.current"), "!it.innerText.includes('Needs you')");
    stage.say(&format!("fetch url=http://{address}/two"));
    tab.wait_for(role("group", "Approval 2"));
    tab.click(role("button", "Approve"));
    tab.shows("It rains.");
    // The decision is still shown after a reload.
    tab.reload();
    tab.wait_until("[...document.querySelectorAll('.approval-done')].map((it) => it.innerText.split(' ')[0]).join() === 'Refused,Approved'");
    assert!(!tab.text().contains("this needs your approval"), "{}", tab.text());

    // A site without a rule leads to a question in plain words, and a line afterwards shows how long the answer is valid.
    std::fs::create_dir_all(stage.home.work("sites")).unwrap();
    std::fs::write(stage.home.work("sites").join("get.sh"), format!("curl -s http://{address}/three")).unwrap();
    stage.open("sites");
    stage.say("$ sh get.sh");
    tab.wait_for(role("group", "Approval 3"));
    tab.wait_of(role("group", "Approval 3"), &format!("it.innerText.includes('open {address}')"));
    for words in ["kiso wants to:", "Why kiso asks: Nobody has allowed this site yet.", "You have 24 hours to answer."]
    {
        tab.shows(words);
    }
    tab.audit("a card about a site");
    tab.click(role("button", "Approve"));
    tab.wait_until("[...document.querySelectorAll('.approval-done')].at(-1)?.innerText.startsWith('Allowed once')");
    tab.shows("It rains.");
    tab.click(role("button", "Show steps"));
    tab.wait_of(
        role("list", "Sites that were opened"),
        &format!("it.innerText.includes('{address}: you allowed it once')"),
    );
    // An address in the user's own message is allowed by that, and the line says so.
    stage.open("own-address");
    tab.wait_gone(role("list", "Sites that were opened"));
    stage.say(&format!("$ curl -s http://{address}/four"));
    tab.shows("It rains.");
    tab.click(role("button", "Show steps"));
    tab.shows("your message names this address");

    // The rules are listed under Manage, and can be removed there.
    let rule = json!({ "host": "never.example", "access": "deny" }).to_string();
    stage.daemon.request("POST", "/network", Some(&rule)).expect(200);
    tab.goto(&stage.url("#/sites"));
    tab.wait_of(
        role("list", "Rules"),
        "['never.example', 'Never', 'in every chat'].every((part) => it.innerText.includes(part))",
    );
    tab.audit("the rules for sites");
    tab.click(role("button", "Remove the rule about never.example"));
    tab.click(css("dialog footer .danger"));
    tab.shows("No rules yet");
    assert_eq!(stage.daemon.get("/network")["remembered"], json!([]));
}

#[test]
fn a_card_says_whose_words_a_call_goes_by() {
    let server = StandIn::start(Era::Modern);
    let table = format!("[mcp.oracle]\nurl = \"{}\"\nallow = [\"ask\"]\n", server.url);
    let home = runs::allowed(&table);
    let (first, bound) = (json!({ "text": "why" }), json!({ "text": { "from": 1 } }));
    let tasks = runs::plan(&[runs::ask(&first), runs::ask(&bound), runs::say()]);
    let lines = [("planner", tasks.as_str()), ("worker", "It is 42.")];
    let lines = lines.map(|(role, reply)| format!("{}\n", json!({ "role": role, "reply": reply })));
    let script = home.file("script.jsonl", lines.concat());
    let config = format!("model = \"scripted:{}\"\n[daemon]\ndebounce_ms = 0\n{table}", script.display());
    let Some(stage) = Stage::prepared(home, &config, |_| {}) else { return };
    let tab = &stage.tab;
    stage.open("asked");
    stage.say("what is the answer?");
    tab.wait_for(role("group", "Approval 1"));
    tab.shows("written by anybody");
    // The card appears because of the arguments, and the next call may have others.
    assert_eq!(tab.count(role("button", "Always in this chat")), 0);
    assert_eq!(server.state().calls, [first]);
    tab.click(role("button", "Approve"));
    tab.shows("It is 42.");
    assert_eq!(server.state().calls.len(), 2);
}
