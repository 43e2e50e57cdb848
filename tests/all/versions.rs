//! Versions of turns: replaced messages are in no later prompt, and none of them is lost.

use crate::crash;
use crate::harness::Home;
use crate::model_server::ModelServer;
use crate::served::Served;
use serde_json::{Value, json};

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

/// The texts of a session's messages.
fn texts(served: &Served, session: &str) -> Vec<String> {
    let page = served.get(&format!("/sessions/{session}/messages"));
    page["items"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

fn replace(served: &Served, message: i64, body: Value) -> i64 {
    let path = format!("/messages/{message}/replace");
    served.request("POST", &path, Some(&body.to_string())).expect(202)["message"].as_i64().unwrap()
}

fn prompt(model: &ModelServer) -> String {
    let requests = model.requests();
    requests.iter().rfind(|seen| seen.role() == "worker").expect("it was asked").prompt()
}

/// Checks that the last prompt contains these texts and none of the others.
#[track_caller]
fn knows(model: &ModelServer, there: &[&str], gone: &[&str]) {
    let prompt = prompt(model);
    for text in there {
        assert!(prompt.contains(text), "{text:?} is not in\n{prompt}");
    }
    for text in gone {
        assert!(!prompt.contains(text), "{text:?} is in\n{prompt}");
    }
}

#[test]
fn what_is_replaced_leaves_the_context_and_comes_back_with_its_branch() {
    let home = Home::new();
    let replies = ["Strings.", "Fingers.", "Sticks.", "Brass.", "Metal.", "Bronze.", "Wood."];
    let model = crash::serve(&home, &replies.map(says), QUICK);
    let served = Served::start(&home);
    let ask = |text: &str| {
        let message = served.send("main", text);
        (message, served.reply(message))
    };
    ask("what is a harp?");
    let (second, _) = ask("what is a lute?");
    ask("what is a drum?");
    knows(&model, &["Strings.", "Fingers.", "a lute?"], &[]);

    // Edited: the following messages leave the prompt, too.
    let edited = replace(&served, second, json!({ "text": "what is a horn?" }));
    assert_eq!(served.reply(edited), "Brass.");
    knows(&model, &["a harp?", "Strings."], &["a lute?", "Fingers.", "a drum?", "Sticks."]);
    assert_eq!(texts(&served, "main"), ["what is a harp?", "Strings.", "what is a horn?", "Brass."]);
    let page = served.get("/sessions/main/messages");
    assert_eq!(page["items"][2]["versions"], json!([second, edited]));
    assert_eq!(served.get("/status/main")["branch"], edited);
    // By a reply: the same message once more.
    let reply = page["items"][3]["id"].as_i64().unwrap();
    let again = replace(&served, reply, json!({}));
    assert_eq!(served.reply(again), "Metal.");
    knows(&model, &["Strings.", "a horn?"], &["Brass.", "a lute?"]);
    assert_eq!(served.get("/sessions/main/messages")["items"][2]["versions"], json!([second, edited, again]));

    // A replaced message is found, and shown with its following messages; the next prompt uses that branch.
    let found = served.get("/search?q=drum")["items"][0].clone();
    let id = found["id"].as_i64().unwrap();
    let shown = served.request("POST", &format!("/messages/{id}/show"), None).expect(200);
    assert_eq!(shown["session"], "main");
    assert_eq!(texts(&served, "main").len(), 6);
    ask("what is a gong?");
    knows(&model, &["Fingers.", "Sticks."], &["a horn?", "Brass.", "Metal."]);

    // The commands of the terminal.
    let retried = served.send("main", "/retry");
    assert_eq!(served.reply(retried), "Wood.");
    knows(&model, &["a gong?", "Sticks."], &["Bronze."]);
    assert!(served.command("main", "/edit").contains("takes the new text"));
    assert!(served.command("nobody", "/retry").contains("No message of this session"));
    assert!(served.command("main", "/help").contains("- /edit TEXT: replace the last message"));

    // An export has all branches, and so has an imported session.
    let lines = home.kiso(&["session", "export", "main"]).ok().stdout.clone();
    assert_eq!(lines.lines().filter(|line| line.contains("\"type\":\"branch\"")).count(), 3, "{lines}");
    let file = home.file("main.jsonl", &lines);
    home.kiso(&["session", "import", file.to_str().unwrap(), "--as", "copy"]).ok();
    assert_eq!(texts(&served, "copy"), texts(&served, "main"));
    let found = served.get("/search?q=horn&session=copy")["items"].as_array().unwrap().clone();
    assert_eq!(found.len(), 2, "both are there");
    let id = found[0]["id"].as_i64().unwrap();
    served.request("POST", &format!("/messages/{id}/show"), None).expect(200);
    let last = texts(&served, "copy");
    assert_eq!(last, ["what is a harp?", "Strings.", "what is a horn?", "Metal."]);
    let broken = lines.replace("\"type\":\"branch\"", "\"type\":\"branch\",\"more\":1");
    let file = home.file("broken.jsonl", broken);
    home.kiso(&["session", "import", file.to_str().unwrap(), "--as", "broken"]).exit(1).says(&["nothing was"]);
    model.finish();
}

#[test]
fn a_turn_is_not_replaced_under_a_run_and_nothing_that_waits_is_lost() {
    let home = Home::new();
    let held = ("worker", json!({ "text": "Slow.", "fault": "stall_mid_stream" }));
    let model = crash::serve(&home, &[held, says("Other."), says("Later.")], QUICK);
    let served = Served::start(&home);
    let first = served.send("main", "what is a cloud?");
    crate::harness::wait_until("the model is asked", || model.held() == 1);
    let waits = served.send("main", "what is hail?");
    let path = format!("/messages/{first}/replace");
    let refused = served.request("POST", &path, Some("{}")).expect(409);
    assert_eq!(refused["error"]["code"], "at_work", "{refused}");
    let refused = served.request("POST", &format!("/messages/{waits}/replace"), Some("{}")).expect(409);
    assert_eq!(refused["error"]["code"], "unanswered", "{refused}");
    served.request("POST", "/messages/99999/replace", Some("{}")).expect(404);
    served.request("POST", &path, Some("{\"text\": \" \"}")).expect(400);
    assert!(served.command("main", "/retry").contains("/cancel"));
    assert_eq!(served.get(&format!("/messages/{first}/turn"))["at_work"], true);
    let other = replace(&served, first, json!({ "text": "what is rain?", "cancel": true, "key": "k" }));
    assert_eq!(replace(&served, first, json!({ "text": "what is rain?", "key": "k" })), other, "once");
    assert_eq!((served.reply(other), served.reply(waits)), ("Other.".to_owned(), "Later.".to_owned()));
    knows(&model, &["what is rain?", "hail"], &["a cloud?", "Slow."]);
    assert_eq!(served.get(&format!("/messages/{first}"))["status"], "cancelled");
    model.finish();
}

#[test]
fn files_of_a_replaced_turn_are_restored_on_request() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let served = Served::start(&home);
    let ask = |text: &str| {
        let message = served.send("main", text);
        served.reply(message);
        message
    };
    let file = || std::fs::read_to_string(home.path().join("sessions/main/work/a.txt")).ok();
    let first = ask("$ echo one > a.txt");
    ask("$ echo two > a.txt; echo b > b.txt");
    let turn = served.get(&format!("/messages/{first}/turn"));
    assert_eq!(
        (turn["changes"].as_array().unwrap().len(), turn["conflicts"].as_array().unwrap().len()),
        (2, 0),
        "{turn}"
    );
    assert_eq!(turn["runs"].as_array().unwrap().len(), 2);
    // Nothing is undone without a request.
    let kept = replace(&served, first, json!({ "text": "$ cat a.txt" }));
    assert!(served.reply(kept).contains("two"));
    served.request("POST", &format!("/messages/{first}/show"), None).expect(200);
    let gone = replace(&served, first, json!({ "text": "$ cat a.txt || echo nothing", "undo": true }));
    assert!(served.reply(gone).contains("nothing"));
    assert_eq!(file(), None);
    // Files that were changed since are named first.
    let third = ask("$ echo three > a.txt");
    std::fs::write(home.path().join("sessions/main/work/a.txt"), "mine").unwrap();
    let turn = served.get(&format!("/messages/{third}/turn"));
    assert_eq!(turn["conflicts"].as_array().unwrap().len(), 1, "{turn}");
}
