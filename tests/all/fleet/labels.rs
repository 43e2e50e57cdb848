//! Skills and sessions that require a machine with a label.

use super::members::{Machine, begun};
use super::nats::Nats;
use crate::harness::{Home, guest, root, wait_for, wait_until};
use crate::served::Served;
use serde_json::{Value, json};

/// The skill `echo`, which runs only on a machine with the label "gpu".
#[track_caller]
fn add_echo(home: &Home) {
    let manifest = std::fs::read_to_string(root().join("tests/guests/echo/kiso.toml")).expect("it is there");
    let manifest = manifest.replace("category = ", "runs_on = \"gpu\"\ncategory = ");
    let manifest = home.file("echo.toml", manifest);
    let (file, manifest) = (guest("echo"), manifest.to_str().expect("it is text").to_owned());
    home.kiso(&["skill", "add", file.to_str().expect("it is text"), "--manifest", &manifest, "--grant", "all"]).ok();
}

/// Asks a member until it answers, because the home may be moving.
#[track_caller]
fn ask(member: &Served, method: &str, path: &str, body: Option<&str>) -> Value {
    wait_for(&format!("{method} {path}"), || {
        let answer = member.ask(method, path, body).ok().filter(|answer| answer.status < 300)?;
        serde_json::from_str(&answer.body).ok()
    })
}

/// Sends this message once and waits for its reply.
#[track_caller]
fn reply(member: &Served, text: &str) -> String {
    let body = json!({ "session": "main", "text": text, "key": text }).to_string();
    let message = ask(member, "POST", "/msg", Some(&body))["message"].clone();
    wait_for(&format!("{text:?} is answered"), || {
        ask(member, "GET", &format!("/messages/{message}"), None)["reply"]["text"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_skill_runs_only_on_a_machine_with_its_label() {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    add_echo(&home);
    home.kiso(&["skill", "run", "echo", "--args", r#"{"text":"x"}"#])
        .says(&["only on a machine with the label gpu", "fleet.labels"]);
    let info = home.kiso(&["skill", "info", "echo"]);
    assert!(info.ok().stdout.contains("gpu"), "{info:?}");
    home.kiso(&["doctor", "--offline"]).ok().prints(&["skill echo", "label gpu, which this one has not"]);
    home.config("model = \"reflex\"\n[fleet]\nlabels = [\"any\"]\n");
    home.kiso(&["doctor", "--offline"]).exit(3).prints(&["fleet.labels: \"any\" is not a label"]);
    home.config("model = \"reflex\"\n[fleet]\nlabels = [\"big\", \"gpu\"]\n");
    assert_eq!(home.call("echo", &json!({ "text": "x" }))["ok"], true);
    home.config("model = \"reflex\"\n[fleet]\nurl = \"nats://127.0.0.1:1\"\nlabels = [\"GPU\"]\n");
    home.kiso(&["fleet", "status"]).exit(3).says(&["fleet.labels", "GPU", "a-z, 0-9 and -"]);
}

#[test]
fn the_home_goes_to_a_member_that_has_what_a_skill_asks_for() {
    let Some(nats) = Nats::start() else { return };
    let pi = Machine::new("pi", &nats, &nats.url(), "labels = [\"at-home\"]\n");
    let desk = Machine::new("desk", &nats, &nats.url(), "labels = [\"gpu\", \"big\"]\n");
    // The home moves only because somebody hands it over, also on a machine whose disk is busy for seconds.
    pi.leases(20);
    desk.leases(20);
    add_echo(&pi.home);
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    // No member has the label: the run says so, and the owner stays.
    let nobody = reply(&owner, "echo text=nobody");
    assert!(nobody.contains("label gpu") && nobody.contains("no standby member"), "{nobody}");
    assert_eq!(pi.owner().as_deref(), Some("pi"));

    let standby = desk.start();
    let labels = || {
        let lines = pi.home.kiso(&["--json", "fleet", "status"]).json_lines();
        lines.iter().find(|line| line["name"] == "desk").map(|line| line["labels"].clone())
    };
    wait_until("desk is there", || labels() == Some(json!(["gpu", "big"])));
    let told = pi.home.kiso(&["fleet", "status"]);
    assert!(told.ok().stdout.contains("gpu  big"), "{told:?}");
    // Earlier work of the same session is available on the other machine.
    reply(&owner, "$ echo kept > kept.txt");
    let answer = reply(&owner, "echo text=elsewhere");
    assert!(answer.contains("elsewhere"), "{answer}");
    assert_eq!(desk.owner().as_deref(), Some("desk"));
    assert!(reply(&standby, "$ cat kept.txt").contains("kept"));
    // The home stays where it is until something requires another machine.
    assert!(reply(&standby, "echo text=again").contains("again"));
    assert_eq!(desk.owner().as_deref(), Some("desk"));

    // A session prefers a machine, and works without it.
    let change =
        |runs_on: &str| ask(&standby, "PATCH", "/sessions/main", Some(&json!({ "runs_on": runs_on }).to_string()));
    assert_eq!(change("at-home")["runs_on"], "at-home");
    assert!(reply(&standby, "$ cat ./kept.txt").contains("kept"));
    assert_eq!(pi.owner().as_deref(), Some("pi"));
    assert_eq!(change("the-moon")["runs_on"], "the-moon");
    assert!(reply(&standby, "$ echo here").contains("here"));
    assert_eq!(change("any")["runs_on"], json!(null));
    let wrong = standby.ask("PATCH", "/sessions/main", Some(r#"{"runs_on":"The Moon"}"#)).expect("it answers");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let runs_on = |args: &[&str], told: &str| {
        let ran = pi.home.kiso(&[&["session", "runs-on", "main"], args].concat());
        assert!(ran.ok().stdout.contains(told), "{ran:?}");
    };
    runs_on(&["gpu"], "main runs on machines with the label gpu");
    runs_on(&[], "label gpu");
    pi.home.kiso(&["session", "runs-on", "main", "A GPU"]).exit(2).says(&["not a valid machine label"]);
    runs_on(&["any"], "any machine");
}
