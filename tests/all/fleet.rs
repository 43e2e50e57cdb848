//! One home on several machines, and the properties of a real NATS server on which the members rely.

mod cable;
mod chaos;
mod labels;
mod members;
mod nats;
mod page;
mod seen;
mod sink;
mod steps;
mod takeover;
mod wire;

use crate::harness::wait_until;
use cable::Way;
use nats::Nats;
use serde_json::{Value, json};
use wire::Wire;

/// Creates a stream with one subject and file storage.
#[track_caller]
fn stream(wire: &mut Wire, name: &str, subject: &str) {
    let wanted = json!({ "name": name, "subjects": [subject], "storage": "file" });
    let made = wire.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &[], wanted.to_string().as_bytes());
    assert_eq!(made["config"]["storage"], "file", "{made}");
}

/// Appends after this sequence number, with an identity.
#[track_caller]
fn append(wire: &mut Wire, subject: &str, after: u64, id: &str, payload: &str) -> Value {
    let headers = [("Nats-Expected-Last-Sequence", after.to_string()), ("Nats-Msg-Id", id.to_owned())];
    wire.ask(subject, &headers, payload.as_bytes())
}

/// A message of a stream, as the server returns it.
#[track_caller]
fn message(wire: &mut Wire, stream: &str, sequence: u64) -> Value {
    let wanted = json!({ "seq": sequence }).to_string();
    wire.ask(&format!("$JS.API.STREAM.MSG.GET.{stream}"), &[], wanted.as_bytes())
}

fn decoded(base64: &Value) -> String {
    let bytes = data_encoding::BASE64.decode(base64.as_str().expect("it is text").as_bytes()).expect("it is base64");
    String::from_utf8(bytes).expect("it was text")
}

/// The server's error code for an append at a wrong sequence number.
const WRONG_PLACE: u64 = 10071;

#[test]
fn a_server_keeps_what_it_has_confirmed_over_kills() {
    let Some(mut nats) = Nats::start() else { return };
    let (url, mut wire) = (nats.url(), nats.connect());
    stream(&mut wire, "KEPT", "kept");
    for after in 0..3 {
        assert_eq!(append(&mut wire, "kept", after, &format!("m{after}"), "a message")["seq"], after + 1);
        nats.kill();
        assert!(Wire::open(&url, &nats.credentials()).is_err(), "it is gone");
        nats.restart();
        assert_eq!(nats.url(), url, "members find it where it was");
        wire = nats.connect();
    }
    for sequence in 1..=3 {
        assert_eq!(decoded(&message(&mut wire, "KEPT", sequence)["message"]["data"]), "a message");
    }
    let stranger = nats.dir().join("stranger");
    std::fs::write(&stranger, "kiso:wrong").expect("there is room");
    let refused = Wire::open(&url, &stranger).expect_err("only those with a password come in");
    assert!(refused.to_string().contains("Authorization Violation"), "{refused}");
}

#[test]
fn a_frozen_cable_keeps_bytes_of_both_directions_until_it_thaws() {
    let Some(nats) = Nats::start() else { return };
    let cable = nats.cable();
    let (mut direct, mut through) =
        (nats.connect(), Wire::open(&cable.url(), &nats.credentials()).expect("it leads there"));
    stream(&mut direct, "FROZEN", "frozen");
    assert_eq!(append(&mut through, "frozen", 0, "first", "before")["seq"], 1);
    through.subscribe("news").expect("it is connected");
    assert!(!through.has_more(), "nothing has come yet");

    cable.freeze();
    let request = through
        .begin("frozen", &[("Nats-Msg-Id", "second".to_owned())], b"while it is frozen")
        .expect("it is connected");
    wait_until("the request gets as far as the cable", || cable.holds(Way::Up));
    direct.publish("news", b"something").expect("it is connected");
    wait_until("the news get as far as the cable", || cable.holds(Way::Down));
    assert_eq!(message(&mut direct, "FROZEN", 2)["error"]["code"], 404, "nothing went up");
    assert!(!through.has_more(), "nothing came down");

    cable.thaw();
    let (news, answer) = (through.heard("news"), through.answer(&request));
    assert_eq!(news.expect("it comes").payload, b"something");
    let answer: Value = serde_json::from_slice(&answer.expect("it comes").payload).expect("it is JSON");
    assert_eq!(answer["seq"], 2, "{answer}");
    assert_eq!(decoded(&message(&mut direct, "FROZEN", 2)["message"]["data"]), "while it is frozen");
}

/// The assumptions of tests/fleet/model: a log accepts one record at each position, and a key can be changed only with its
/// current revision.
#[test]
fn the_server_refuses_what_comes_too_late() {
    let Some(nats) = Nats::start() else { return };
    let (mut owner, mut successor) = (nats.connect(), nats.connect());
    stream(&mut owner, "LOG", "log");
    assert_eq!(append(&mut owner, "log", 0, "1-1", "a commit of epoch 1")["seq"], 1);
    assert_eq!(append(&mut successor, "log", 1, "2-0", "epoch 2")["seq"], 2);
    let late = append(&mut owner, "log", 1, "1-2", "another commit of epoch 1");
    assert_eq!(late["error"]["err_code"], WRONG_PLACE, "{late}");

    // The position is checked before the identity: a repeated append is refused although the record exists, so a client that
    // missed the first answer has to look.
    let again = append(&mut owner, "log", 0, "1-1", "a commit of epoch 1");
    assert_eq!(again["error"]["err_code"], WRONG_PLACE, "{again}");
    let there = message(&mut owner, "LOG", 1);
    assert!(decoded(&there["message"]["hdrs"]).contains("Nats-Msg-Id: 1-1\r\n"), "{there}");
    assert_eq!(message(&mut owner, "LOG", 3)["error"]["code"], 404, "and nothing is there twice");
    // Without a position, the identity is checked.
    let again = owner.ask("log", &[("Nats-Msg-Id", "1-1".to_owned())], b"a commit of epoch 1");
    assert_eq!((&again["seq"], &again["duplicate"]), (&json!(1), &json!(true)), "{again}");

    stream(&mut owner, "KV_OWNERS", "$KV.OWNERS.*");
    let swap = |wire: &mut Wire, revision: u64, value: &str| {
        let headers = [("Nats-Expected-Last-Subject-Sequence", revision.to_string())];
        wire.ask("$KV.OWNERS.owner", &headers, value.as_bytes())
    };
    assert_eq!(swap(&mut owner, 0, "the owner, epoch 1")["seq"], 1);
    assert_eq!(swap(&mut successor, 1, "the successor, epoch 2")["seq"], 2);
    let beat = swap(&mut owner, 1, "the owner, epoch 1, again");
    assert_eq!(beat["error"]["err_code"], WRONG_PLACE, "{beat}");
}
