//! The card of a run that waits for a person, in the conversation.

use super::browser::role;
use super::stage::Stage;
use crate::harness::{Home, root};
use crate::web;

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
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let folder = root().join("target/page");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("approval.png"), tab.screenshot()).unwrap();
    }
    tab.click(role("button", "Refuse"));
    tab.shows("refused by the user");
    stage.say(&format!("fetch url=http://{address}/two"));
    tab.wait_for(role("group", "Approval 2"));
    tab.click(role("button", "Approve"));
    tab.shows("It rains.");
}
