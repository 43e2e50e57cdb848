//! Information about a fleet in `kiso doctor`, `kiso fleet status` and over HTTP.

use super::members::{Machine, begun};
use super::nats::Nats;
use super::wire::Wire;
use crate::harness::{Home, Ran, root, wait_until};
use serde_json::{Value, json};

/// Results of `kiso doctor` with the name of each check.
#[track_caller]
fn checks(home: &Home) -> Vec<(String, Value)> {
    let lines = home.kiso(&["--json", "doctor"]).json_lines();
    lines.into_iter().map(|line| (line["what"].as_str().unwrap_or_default().to_owned(), line)).collect()
}

/// The result of one check, which must exist.
#[track_caller]
fn check(home: &Home, what: &str) -> Value {
    let all = checks(home);
    let found = all.iter().find(|(name, _)| name == what);
    found.unwrap_or_else(|| panic!("nothing is said of {what}: {all:?}")).1.clone()
}

fn names(home: &Home) -> Vec<String> {
    checks(home).into_iter().map(|(name, _)| name).filter(|name| name.starts_with("fleet")).collect()
}

/// Number of streams of the account.
fn streams(wire: &mut Wire) -> Value {
    wire.ask("$JS.API.STREAM.NAMES", &[], b"")["total"].clone()
}

fn machine(name: &'static str, nats: &Nats) -> Machine {
    Machine::new(name, nats, &nats.url(), "")
}

/// Replaces a line of the configuration.
#[track_caller]
fn configured(machine: &Machine, from: &str, to: &str) {
    let path = machine.home.path().join("config.toml");
    let config = std::fs::read_to_string(&path).expect("it is there");
    assert!(config.contains(from), "{config}");
    std::fs::write(path, config.replace(from, to)).expect("there is room");
}

fn doctor(machine: &Machine) -> Ran {
    machine.home.kiso(&["doctor"])
}

#[test]
fn doctor_looks_at_the_fleet_and_makes_nothing() {
    let Some(nats) = Nats::start() else { return };
    let alone = Home::new();
    alone.config("model = \"reflex\"\n");
    assert!(!alone.kiso(&["doctor"]).ok().stdout.contains("fleet"), "a home on one machine has none");

    let (pi, desk) = (machine("pi", &nats), machine("desk", &nats));
    pi.home.kiso(&["session", "list"]).ok();
    doctor(&pi).exit(1).prints(&["FAIL fleet streams: there is nothing in this fleet yet", "kiso fleet begin"]);
    assert_eq!(streams(&mut nats.connect()), 0, "looking makes nothing");
    begun(&pi);
    doctor(&pi).ok().prints(&["warn fleet owner: nobody owns the home", "warn fleet members: none is there"]);
    doctor(&desk).ok().prints(&["ok   store: none yet"]);
    assert!(!desk.home.path().join("store.db").exists(), "looking makes no store either");

    let _owner = pi.start();
    pi.owns();
    let _standby = desk.start();
    let both = "desk stands by, pi owns the home";
    wait_until("both are seen", || check(&pi.home, "fleet members")["detail"] == both);
    let said = format!("ok   fleet: pi is a member of kiso; NATS {} answers at {}", nats.version(), nats.url());
    doctor(&pi).ok().prints(&[
        &said,
        "ok   fleet streams: in files, one copy",
        "ok   fleet sync: NATS does not say whether",
        "ok   fleet owner: pi owns the home, epoch ",
        "ok   fleet members: desk stands by, pi owns the home",
        "ok   fleet log: ",
    ]);
    doctor(&desk).ok().prints(&["ok   fleet owner: pi owns the home", "ok   store: none yet"]);
    assert_eq!(pi.home.kiso(&["doctor", "--offline"]).ok().stdout.matches("fleet").count(), 1);
    pi.home.kiso(&["doctor", "--offline"]).ok().prints(&["ok   fleet: NATS is not asked"]);
}

#[test]
fn doctor_says_why_a_fleet_cannot_be_reached_or_read() {
    let Some(mut nats) = Nats::start() else { return };
    let pi = machine("pi", &nats);
    begun(&pi);
    let stranger = machine("stranger", &nats);
    std::fs::write(stranger.home.path().join("key"), [8; 32]).unwrap();
    doctor(&stranger).exit(3).prints(&["FAIL fleet owner: what is in this fleet was sealed with another key", "`key`"]);

    let credentials = nats.credentials().display().to_string();
    let wrong = pi.home.file("wrong", "kiso:wrong");
    configured(&pi, &credentials, &wrong.display().to_string());
    doctor(&pi).exit(3).prints(&["FAIL fleet: fleet.url = ", "NATS refuses what fleet.credentials says"]);
    configured(&pi, &wrong.display().to_string(), &credentials);

    configured(&pi, "nats://", "nats://kiso:open-sesame@");
    let ran = doctor(&pi);
    ran.exit(3).prints(&["FAIL fleet: fleet.url must have no password in it", "fleet.credentials"]);
    assert!(!ran.stdout.contains("open-sesame") && !ran.stderr.contains("open-sesame"), "it is told to nobody");
    configured(&pi, "nats://kiso:open-sesame@", "nats://");
    // One reachable address is enough.
    configured(&pi, &nats.url(), &format!("nats://127.0.0.1:9,{}", nats.url()));
    doctor(&pi).ok().prints(&["ok   fleet: pi is a member of kiso"]);
    assert_eq!(names(&pi.home).len(), 6, "{:?}", names(&pi.home));
    nats.kill();
    doctor(&pi).exit(1).prints(&["FAIL fleet: fleet.url = ", "NATS cannot be reached"]);
    assert_eq!(names(&pi.home), ["fleet"], "nothing else can be said");
}

#[test]
fn doctor_says_what_nats_would_lose() {
    let Some(nats) = Nats::start() else { return };
    let mut wire = nats.connect();
    let mut made = |name: &str, more: Value| {
        let mut wanted = json!({ "name": name, "storage": "file" });
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = wire.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &[], wanted.to_string().as_bytes());
        assert!(made.get("error").is_none(), "{made}");
    };
    made("KISO_kiso_LOG", json!({ "subjects": ["kiso.kiso.log"], "storage": "memory" }));
    let day = 86_400_000_000_000_u64;
    made("KISO_kiso_CHUNKS", json!({ "subjects": ["kiso.kiso.chunk.*"], "max_msgs_per_subject": 1, "max_age": day }));
    let pi = machine("pi", &nats);
    begun(&pi);
    doctor(&pi).exit(1).prints(&[
        "FAIL fleet streams: KISO_kiso_LOG is in memory",
        "KISO_kiso_CHUNKS forgets messages by age or number",
    ]);
    let deleted = wire.ask("$JS.API.STREAM.DELETE.KV_KISO_kiso", &[], b"");
    assert_eq!(deleted["success"], true, "{deleted}");
    doctor(&pi).exit(1).prints(&["FAIL fleet streams: KV_KISO_kiso is missing"]);
    assert_eq!(streams(&mut wire), 2, "doctor did not create it again");
    for name in ["KISO_kiso_LOG", "KISO_kiso_CHUNKS"] {
        assert_eq!(wire.ask(&format!("$JS.API.STREAM.DELETE.{name}"), &[], b"")["success"], true);
    }
    begun(&pi);
    doctor(&pi).ok().prints(&["ok   fleet streams: in files, one copy"]);
    configured(&pi, "lease_s = 3", "lease_s = 3\nreplicas = 3");
    doctor(&pi).ok().prints(&["warn fleet streams: KISO_kiso_LOG has one copy and not fleet.replicas = 3"]);
}

/// The configuration in docs/fleet.md lets members read these settings, and doctor reports them correctly.
#[test]
fn doctor_says_whether_nats_writes_before_it_confirms() {
    let page = std::fs::read_to_string(root().join("docs/fleet.md")).unwrap();
    let block = page.split("```").find(|block| block.contains("# nats.conf")).expect("it has a configuration");
    let config = block.trim_start_matches("text\n").replace("port: 4222", "");
    let config = config.replace("/var/lib/nats", "STORE").replace("a long random password", "a password");
    let late = config.replace(", sync_interval: always", "");
    assert_ne!(config, late);
    for (config, said) in [
        (&config, "ok   fleet sync: NATS writes commits to the disk before it confirms them"),
        (&late, "warn fleet sync: NATS confirms commits before they are on the disk"),
    ] {
        let Some(nats) = Nats::with(config) else { return };
        let pi = machine("pi", &nats);
        begun(&pi);
        doctor(&pi).ok().prints(&[said]);
    }
}

#[test]
fn the_fleet_is_told_over_http() {
    let Some(mut nats) = Nats::start() else { return };
    let (pi, desk) = (machine("pi", &nats), machine("desk", &nats));
    // Longer than the test, so that the owner keeps waiting for NATS.
    configured(&pi, "lease_s = 3", "lease_s = 600");
    let token = |name: &str| pi.home.kiso(&["token", "add", name, "--scope", name]).ok().stdout.trim().to_owned();
    let (admin, chat) = (token("admin"), token("chat"));
    begun(&pi);
    let mut owner = pi.start();
    pi.owns();
    let mut standby = desk.start();
    owner.token = Some(chat);
    assert_eq!(owner.get("/health/details")["fleet"], "kiso");
    owner.request("GET", "/fleet", None).refuses(403, "forbidden");
    owner.token = Some(admin.clone());
    wait_until("both are seen", || owner.get("/fleet")["members"].as_array().is_some_and(|all| all.len() == 2));
    // The owner answers, whichever machine receives the request.
    standby.token = Some(admin);
    let (document, fleet) = (owner.get("/openapi.json"), standby.get("/fleet"));
    let schema = &document["paths"]["/fleet"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&fleet).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}: {fleet}");
    assert_eq!((&fleet["fleet"], &fleet["owner"], &fleet["begun"]), (&json!("kiso"), &json!("pi"), &json!(true)));
    let does = |at: usize| {
        let member = &fleet["members"][at];
        (member["name"].clone(), member["owns"].clone(), member["stands_by"].clone())
    };
    assert_eq!(does(0), (json!("desk"), json!(false), json!(true)));
    assert_eq!(does(1), (json!("pi"), json!(true), json!(true)));
    for member in fleet["members"].as_array().unwrap() {
        assert!(member["ago_ms"].as_u64().unwrap() < 30_000, "{member}");
        assert!(member["ahead_ms"].as_i64().unwrap().abs() < 10_000, "the clock is the same: {member}");
    }
    // The command reports the same; only changing values may differ.
    let lines = pi.home.kiso(&["--json", "fleet", "status"]).json_lines();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["owner"], &lines[0]["epoch"]),
        (&json!("fleet"), &json!("pi"), &fleet["epoch"])
    );
    assert_eq!(lines.iter().skip(1).map(|line| &line["name"]).collect::<Vec<_>>(), ["desk", "pi"]);
    let (keys, told) = (|value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), &lines[1]);
    assert_eq!(keys(told)[1..], keys(&fleet["members"][0])[..], "{told}");

    let before = owner.get("/fleet")["log_messages"].as_u64().unwrap();
    owner.reply(owner.send("main", "$ echo hello"));
    assert!(owner.get("/fleet")["log_messages"].as_u64().unwrap() > before, "what was committed is in the log");
    nats.kill();
    owner.request("GET", "/fleet", None).refuses(503, "no_nats");
}
