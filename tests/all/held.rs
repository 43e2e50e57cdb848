//! A run that brought the daemon down twice waits for a person, every interface says how to continue it, and other messages are
//! answered. And a message that would have frozen the daemon.

use crate::crash;
use crate::harness::{Home, wait_until};
use crate::model_server::ModelServer;
use crate::served::Served;
use serde_json::{Value, json};
use std::time::Instant;

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

fn stalls() -> (&'static str, Value) {
    ("worker", json!({ "text": "never", "fault": "slow_first_token" }))
}

/// Kills a daemon twice while its run waits for a model, the second time after the resumed run's request. Returns the message.
fn killed_twice(home: &Home, model: &ModelServer) -> i64 {
    let served = Served::start(home);
    let message = served.send("main", "what is a tide?");
    wait_until("the model to be asked", || model.requests().len() == 1);
    served.kill();
    let served = Served::start(home);
    wait_until("the model to be asked again", || model.requests().len() == 2);
    assert_eq!(served.get(&format!("/messages/{message}"))["status"], "running", "once may be anybody's fault");
    served.kill();
    message
}

#[test]
fn a_run_that_brought_the_daemon_down_twice_waits_and_is_tried_again_when_somebody_says_so() {
    let home = Home::new();
    let replies = [stalls(), stalls(), says("A ball of ice."), says("The sea.")];
    let model = crash::serve(&home, &replies, QUICK);
    let message = killed_twice(&home, &model);
    let served = Served::start(&home);
    wait_until("the message to be held", || served.get(&format!("/messages/{message}"))["status"] == "held");
    let run = served.get(&format!("/messages/{message}"))["run"].as_str().unwrap().to_owned();
    assert_eq!(served.get(&format!("/runs/{run}"))["run"]["status"], "held");
    assert_eq!(served.get("/status/main")["running"], Value::Null);
    let messages = served.get("/sessions/main/messages");
    let text = messages["items"][1]["text"].as_str().unwrap();
    for part in [
        "kiso was cut off twice while it worked on this message".to_owned(),
        format!("kiso run --resume {run}"),
        format!("POST /runs/{run}/retry"),
        format!("kiso cancel {run}"),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    home.kiso(&["doctor", "--offline"]).prints(&["held runs", &run, "kiso run --resume RUN"]);
    let warnings = served.get("/health/details")["warnings"].to_string();
    assert!(warnings.contains(&format!("cut off twice while it worked on run {run}")), "{warnings}");
    // The session continues, and another start changes nothing.
    assert_eq!(served.reply(served.send("main", "what is a comet?")), "A ball of ice.");
    assert_eq!(served.terminate(), 0);
    let served = Served::start(&home);
    assert_eq!(served.get(&format!("/runs/{run}"))["run"]["status"], "held");

    served.request("POST", "/runs/zzzzzzzzzzzzzz/retry", Some("")).refuses(404, "not_found");
    assert_eq!(served.request("POST", &format!("/runs/{run}/retry"), Some("")).expect(200)["status"], "running");
    assert_eq!(served.reply(message), "The sea.");
    assert_eq!(served.get(&format!("/messages/{message}"))["status"], "done");
    served.request("POST", &format!("/runs/{run}/retry"), Some("")).refuses(409, "ended");
    assert_eq!(model.problems(), Vec::<String>::new());
}

#[test]
fn how_often_it_was_cut_off_is_said_as_it_was() {
    let home = Home::new();
    let model = crash::serve(&home, &[stalls()], &format!("{QUICK}hold_after = 1\n"));
    let served = Served::start(&home);
    let message = served.send("main", "what is a tide?");
    wait_until("the model to be asked", || model.requests().len() == 1);
    served.kill();
    let served = Served::start(&home);
    wait_until("the message to be held", || served.get(&format!("/messages/{message}"))["status"] == "held");
    let messages = served.get("/sessions/main/messages");
    let text = messages["items"][1]["text"].as_str().unwrap();
    assert!(text.contains("kiso was cut off once while it worked on this message"), "{text}");
    let warnings = served.get("/health/details")["warnings"].to_string();
    assert!(warnings.contains("kiso was cut off once while it worked on run"), "{warnings}");
    let trace = served.command("main", "/trace");
    assert!(trace.contains("was cut off once, and waits"), "{trace}");
}

#[test]
fn a_run_that_is_held_can_be_given_up() {
    let home = Home::new();
    let model = crash::serve(&home, &[stalls(), stalls()], QUICK);
    let message = killed_twice(&home, &model);
    let served = Served::start(&home);
    wait_until("the message to be held", || served.get(&format!("/messages/{message}"))["status"] == "held");
    let run = served.get(&format!("/messages/{message}"))["run"].as_str().unwrap().to_owned();
    served.request("POST", &format!("/runs/{run}/cancel"), Some("")).expect(200);
    wait_until("the message to be cancelled", || served.get(&format!("/messages/{message}"))["status"] == "cancelled");
    assert_eq!(served.get(&format!("/runs/{run}"))["run"]["status"], "cancelled");
}

/// A file of 60 kB whose column has a name of 60 kB used to take more than a minute, and four of them froze the daemon.
#[test]
fn a_long_name_of_a_column_holds_nobody_up() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    let table = format!("[{{\"{}\":1}}]", "k".repeat(60_000));
    let file = home.file("d.json", &table);
    let began = Instant::now();
    home.kiso(&["run", "--file", file.to_str().unwrap(), "hello"]).ok().prints(&["I am reflex"]);
    println!("kiso run: {} ms", began.elapsed().as_millis());
    let served = Served::start(&home);
    let sessions = ["a", "b", "c", "d"];
    let messages = sessions.map(|session| {
        served.request("PUT", &format!("/sessions/{session}/files/d.json"), Some(&table)).expect(201);
        served.send(session, "plot the temperature by month and the mean rain of each city")
    });
    served.get("/health");
    for message in messages {
        assert!(!served.reply(message).is_empty());
    }
    assert_eq!(served.terminate(), 0);
}
