//! A host without a rule: the question to a person, asked once, and the line that waits for the answer.

use crate::harness::{Home, wait_for};
use crate::served::Served;
use crate::web::Web;
use serde_json::{Value, json};
use std::fs;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n";

/// A daemon, a server, and a script in the workspace that reads from it.
struct Desk {
    home: Home,
    served: Served,
    web: Web,
}

impl Desk {
    fn new() -> Desk {
        let (home, web) = (Home::new(), Web::start());
        home.config(QUICK);
        let script = format!("curl -s {} >> got.txt", web.url("a"));
        fs::create_dir_all(home.work("s")).unwrap();
        fs::write(home.work("s").join("get.sh"), script).unwrap();
        let token = home.kiso(&["--json", "token", "add", "desk", "--scope", "admin"]).json();
        let mut served = Served::start(&home);
        served.token = Some(token["token"].as_str().unwrap().to_owned());
        Desk { home, served, web }
    }

    fn card(&self) -> Value {
        let cards = || self.served.get("/approvals?session=s")["items"].as_array()?.first().cloned();
        wait_for("a card", cards)
    }

    fn answer(&self, body: Value) {
        let path = format!("/approvals/{}", self.card()["id"]);
        self.served.request("POST", &path, Some(&body.to_string())).expect(200);
    }

    /// Returns the line's reply after answering its card with `answer`.
    fn reply(&self, line: &str, answer: Value) -> String {
        let message = self.served.send("s", &format!("$ {line}"));
        self.answer(answer);
        self.served.reply(message)
    }
}

#[test]
fn a_line_that_wants_a_host_is_rolled_back_and_runs_once_more_when_it_is_allowed() {
    let desk = Desk::new();
    let message = desk.served.send("s", "$ echo once >> log.txt; sh get.sh; cat log.txt got.txt");
    let card = desk.card();
    let effect = &card["effects"][0];
    assert_eq!(
        (&effect["tool"], &effect["access"][0]["hosts"][0]["methods"]),
        (&json!("network"), &json!(["GET", "HEAD", "OPTIONS"]))
    );
    assert!(desk.web.asked().is_empty(), "nothing was sent before");
    assert!(!desk.home.work("s").join("log.txt").exists(), "nothing of it remains");
    desk.answer(json!({ "accept": [1] }));
    let reply = desk.served.reply(message);
    assert!(reply.contains("once\n") && !reply.contains("once\nonce"), "{reply}");
    assert_eq!(desk.web.asked().len(), 1);
    // An acceptance for once applies once.
    let reply = desk.reply("sh get.sh", json!({ "accept": [] }));
    assert!(reply.contains("you refused it"), "{reply}");
    assert_eq!(desk.web.asked().len(), 1);
    // An answer for the conversation is not asked again, but hosts near this machine need an administrator's command.
    let reply = desk.reply("sh get.sh; echo ended", json!({ "accept": [1], "always": "session" }));
    assert!(reply.contains("ended"), "{reply}");
    desk.reply("sh get.sh", json!({ "accept": [] }));
    desk.home.kiso(&["network", "allow", &desk.web.address, "--private"]).ok();
    let before = desk.web.asked().len();
    let reply = desk.served.reply(desk.served.send("s", "$ sh get.sh; echo ended"));
    assert!(reply.contains("ended"), "{reply}");
    assert_eq!(desk.web.asked().len(), before + 1);
}

#[test]
fn an_address_of_the_users_own_message_needs_no_word_and_others_no_more_than_one() {
    let mut desk = Desk::new();
    let line = format!("$ curl -s {}", desk.web.url("b"));
    desk.served.reply(desk.served.send("s", &line));
    assert_eq!(desk.web.asked().len(), 1);
    // By hand nobody is asked: the message names the command that allows it, even if the failed command is silent.
    let ran = desk.home.kiso(&["shell", "-c", &format!("curl -s {}; echo $?", desk.web.url("c"))]);
    ran.ok().prints(&["7"]).says(&[&format!(
        "kiso: {} may not be reached; `kiso network allow {} --private` allows it",
        desk.web.address, desk.web.address
    )]);
    assert_eq!(desk.web.asked().len(), 1);
    // Another user cannot explore this machine's own network, whatever their messages contain.
    let token = desk.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    desk.served.token = Some(token["token"].as_str().unwrap().to_owned());
    let reply = desk.served.reply(desk.served.send("theirs", &line));
    assert!(reply.contains("may not be reached"), "{reply}");
    assert_eq!(desk.web.asked().len(), 1);
}

#[test]
fn a_line_that_has_changed_something_outside_is_not_run_again() {
    let desk = Desk::new();
    let changed = Web::start();
    desk.home.kiso(&["network", "allow", &changed.address, "--private", "--method", "POST"]).ok();
    let line = format!("$ curl -s -d sent {}; echo kept > log.txt; sh get.sh; echo ended", changed.url("change"));
    let reply = desk.served.reply(desk.served.send("s", &line));
    assert!(reply.contains("ended"), "{reply}");
    assert_eq!((changed.asked().len(), desk.web.asked().len()), (1, 0));
    assert!(desk.home.work("s").join("log.txt").exists(), "what it has changed stays");
    assert_eq!(desk.served.get("/approvals?session=s")["items"], json!([]));
}
