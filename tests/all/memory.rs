//! Memory, sessions and secrets on the command line, with and without a running daemon.

use crate::harness::{Home, Ran, root};
use crate::served::Served;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// Runs a command with this standard input.
#[track_caller]
fn fed(home: &Home, args: &[&str], input: &[u8]) -> Ran {
    let mut command = home.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("kiso starts");
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    Ran::new(args, child.wait_with_output().expect("it ends"))
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn line(record: Value) -> String {
    format!("{record}\n")
}

fn passage(text: &str) -> String {
    line(json!({ "type": "passage", "text": text, "source": "note", "session": null, "at_ms": 1_700_000_000_000_i64 }))
}

#[test]
fn facts_are_added_found_and_removed_beside_a_daemon() {
    let home = Home::new();
    home.config(QUICK);
    let served = Served::start(&home);
    home.kiso(&["memory", "fact", "list"]).ok().says(&["there are no facts yet"]);
    home.kiso(&["memory", "fact", "add", "The", "user", "lives in Oslo"]).ok().prints(&["added fact 1"]);
    home.kiso(&["memory", "fact", "add", "the user lives in Oslo"]).ok().prints(&["confirmed fact 1"]);
    home.kiso(&["memory", "fact", "add", "Tea is at five", "--confidence", "40"]).ok();
    assert!(served.command("main", "/memory").contains("- The user lives in Oslo"), "the daemon knows it at once");
    home.kiso(&["memory", "fact", "search", "where does the user live"]).ok().prints(&["The user lives in Oslo"]);
    home.kiso(&["memory", "fact", "show", "2"]).ok().prints(&["fact 2", "user  40 % sure", "Tea is at five"]);
    let facts = home.kiso(&["--json", "memory", "fact", "list", "--limit", "1"]).ok().json();
    assert_eq!((&facts["id"], &facts["confidence"], &facts["source"]), (&json!(2), &json!(40), &json!("user")));
    let before = home.kiso(&["--json", "memory", "fact", "list", "--before", "2"]).ok().json();
    assert_eq!(before["text"], "The user lives in Oslo");
    home.kiso(&["memory", "fact", "remove", "2", "77", "--yes"]).exit(2).says(&["there is no fact 77"]);
    home.kiso(&["memory", "fact", "remove", "2"]).exit(2).says(&["Permanently remove fact 2?", "--yes"]);
    home.kiso(&["memory", "fact", "show", "2"]).ok();
    home.kiso(&["memory", "fact", "remove", "2", "--yes"]).ok().prints(&["removed fact 2"]);
    home.kiso(&["memory", "fact", "show", "2"]).exit(2);
    assert_eq!(served.terminate(), 0);
    home.kiso(&["memory", "fact", "add", "  "]).exit(2).says(&["1 to 2000 bytes"]);
    home.kiso(&["memory", "fact", "add", &"x".repeat(2_001)]).exit(2).says(&["this one has 2001"]);
    home.kiso(&["memory", "fact", "list", "--before", "x"]).exit(2).says(&["--before \"x\" is not a position"]);
}

#[test]
fn a_secret_does_not_become_a_fact() {
    let home = Home::new();
    let refused = home.kiso(&["memory", "fact", "add", "my password: Quagga-77-xyzzy"]);
    refused.exit(4).says(&["it contains a secret", "[secret password]", "kiso secret set"]);
    assert!(!refused.stderr.contains("Quagga-77"), "{}", refused.stderr);
    let set = |command: &mut std::process::Command| {
        command.env("KISO_SKILL_SEARCH_API_KEY", "plain-word-42");
    };
    let refused = home.kiso_with(&["memory", "fact", "add", "call it plain-word-42"], set);
    refused.exit(4);
    assert!(!refused.stderr.contains("plain-word-42"), "{}", refused.stderr);
    home.kiso(&["memory", "fact", "list"]).ok().says(&["there are no facts"]);
}

#[test]
fn memory_moves_to_another_home_once() {
    let home = Home::new();
    let core = line(json!({ "type": "core", "document": { "user": { "city": "Oslo", "cat": "Kiso" } } }));
    let file = core + &(0..30).map(|n| passage(&format!("the ferry number {n} leaves at noon"))).collect::<String>();
    let path = home.file("memory.jsonl", &file);
    let path = path.to_str().unwrap();
    home.kiso(&["memory", "import", path])
        .ok()
        .prints(&["imported core memory, 0 facts and 30 passages; 0 already existed"]);
    fed(&home, &["memory", "import", "-"], file.as_bytes())
        .ok()
        .prints(&["0 facts and 0 passages; 30 already existed"]);
    home.kiso(&["memory", "fact", "add", "Ferries are late"]).ok();
    let exported = home.kiso(&["memory", "export"]).ok().stdout.clone();
    assert_eq!(exported.lines().count(), 1 + 1 + 30);

    let other = Home::new();
    let taken = fed(&other, &["--json", "memory", "import", "-"], exported.as_bytes()).json();
    assert_eq!(taken, json!({ "type": "imported", "core": true, "facts": 1, "passages": 30, "known": 0 }));
    let out = other.dir.path().join("out.jsonl");
    other.kiso(&["memory", "export", out.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), exported);
    other.kiso(&["memory", "export", out.to_str().unwrap()]).exit(1).says(&["it already exists"]);

    other.kiso(&["memory", "show"]).ok().prints(&["user.city: Oslo", "1 fact, 30 passages", "number 29"]);
    let shown = other.kiso(&["--json", "memory", "show", "--limit", "4"]).ok().json_lines();
    assert_eq!((&shown[0]["core"]["user"]["cat"], &shown[0]["passages"]), (&json!("Kiso"), &json!(30)));
    let ids: Vec<_> = of_type(&shown, "passage").iter().map(|passage| passage["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [30, 29, 28, 27]);
    let next = other.kiso(&["--json", "memory", "show", "--limit", "4", "--before", "27"]).ok().json_lines();
    assert_eq!(next[0]["id"], 26, "{next:?}");
    let found = other.kiso(&["--json", "memory", "search", "ferry 17"]).ok().json_lines();
    let id = of_type(&found, "passage")[0]["id"].to_string();
    assert!(of_type(&found, "passage")[0]["text"].as_str().unwrap().contains("number 17"), "{found:?}");
    other.kiso(&["memory", "show", &id]).ok().prints(&["the ferry number 17 leaves at noon"]);
    other.kiso(&["memory", "forget", &id, "999"]).exit(2).says(&["there is no passage 999"]);
    other.kiso(&["memory", "forget", &id]).exit(2).says(&["--yes"]);
    other.kiso(&["memory", "forget", &id, "--yes"]).ok().prints(&["forgot passage"]);
    other.kiso(&["memory", "show", &id]).exit(2);
    other.kiso(&["memory", "forget", "--core", "user.street", "--yes"]).exit(2).says(&["no entry \"user.street\""]);
    other.kiso(&["memory", "forget", "--core", "user.city", "--yes"]).ok().prints(&["forgot user.city"]);
    let shown = other.kiso(&["--json", "memory", "show"]).ok().json_lines();
    assert_eq!(shown[0]["core"], json!({ "user": { "cat": "Kiso" } }));
}

#[test]
fn an_import_with_a_bad_line_takes_nothing() {
    let home = Home::new();
    let file = home.file("bad.jsonl", passage("good") + "\n" + "{\"type\": \"passage\"}\n" + &passage("also good"));
    let refused = home.kiso(&["memory", "import", file.to_str().unwrap()]);
    refused.exit(1).says(&["bad.jsonl:3: missing field `text`", "nothing was imported"]);
    let shown = home.kiso(&["--json", "memory", "show"]).ok().json_lines();
    assert_eq!(shown[0]["passages"], 0);
    home.kiso(&["memory", "import", "nowhere.jsonl"]).exit(1).says(&["nowhere.jsonl cannot be read"]);
    home.kiso(&["memory", "import", "."]).exit(1).says(&["it is not a file"]);
    fed(&home, &["memory", "import", "-"], b"\xff\xfe\n").exit(1).says(&["standard input:1: "]);
    let secret = passage("my password: Quagga-77-xyzzy");
    fed(&home, &["memory", "import", "-"], secret.as_bytes()).ok();
    let shown = home.kiso(&["memory", "export"]).ok().stdout.clone();
    assert!(shown.contains("[secret password]") && !shown.contains("Quagga"), "{shown}");
}

#[test]
fn sessions_are_listed_shown_and_changed_beside_a_daemon() {
    let home = Home::new();
    home.config(&format!(
        "{QUICK}[providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [model_settings.\"lab:small\"]\ncontext_budget = 4000\n"
    ));
    home.kiso(&["session", "list"]).ok().says(&["there are no sessions yet"]);
    let served = Served::start(&home);
    for (session, text) in [("one", "$ echo first"), ("two", "$ echo second")] {
        served.reply(served.send(session, text));
    }
    let sessions = home.kiso(&["--json", "session", "list"]).ok().json_lines();
    let names: Vec<_> = sessions.iter().map(|session| session["session"].as_str().unwrap()).collect();
    assert_eq!(names, ["two", "one"]);
    let place = sessions[0]["place"].as_str().unwrap();
    assert_eq!(home.kiso(&["--json", "session", "list", "--before", place]).ok().json()["session"], "one");
    home.kiso(&["session", "list", "--before", "5"]).exit(2).says(&["is not a position in this list"]);

    home.kiso(&["session", "rename", "one", "The", "first one"]).ok().prints(&["titled The first one"]);
    home.kiso(&["session", "list"]).ok().prints(&["The first one"]);
    home.kiso(&["session", "rename", "one", &"x".repeat(201)]).exit(2).says(&["1 to 200 characters"]);
    home.kiso(&["session", "show", "one"]).ok().prints(&["The first one", "$ echo first", "the default"]);
    let shown = home.kiso(&["--json", "session", "show", "one"]).ok().json_lines();
    let roles: Vec<_> = of_type(&shown, "message").iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"]);
    let last = of_type(&shown, "message")[1]["id"].to_string();
    let before = home.kiso(&["--json", "session", "show", "one", "--before", &last]).ok().json_lines();
    assert_eq!((before.len(), &before[0]["text"]), (1, &json!("$ echo first")));

    home.kiso(&["session", "model", "one"]).ok().prints(&["the model of one is reflex (the default)"]);
    home.kiso(&["session", "model", "one", "nothing"]).exit(2).says(&["no model \"nothing\" is configured"]);
    home.kiso(&["session", "model", "one", "lab:small"]).ok();
    assert!(served.command("one", "/model").contains("lab:small"), "the daemon knows it at once");
    let model = home.kiso(&["--json", "session", "model", "one", "default"]).ok().json();
    assert_eq!((&model["model"], &model["default"]), (&json!("reflex"), &json!(true)), "{model}");
    assert_eq!(model["roles"]["worker"], "reflex", "{model}");

    let segment = home.kiso(&["--json", "session", "new", "one"]).ok().json();
    assert_eq!(segment["after"].to_string(), last);
    served.reply(served.send("one", "$ echo third"));
    assert_eq!(served.get("/status/one")["segment_start"].to_string(), last);
    home.kiso(&["session", "show", "one"]).ok().prints(&["── new segment ──\n\nuser"]);
    for args in [["show", "nowhere"], ["new", "nowhere"], ["model", "nowhere"]] {
        home.kiso(&["session", args[0], args[1]]).exit(2).says(&["there is no session \"nowhere\""]);
    }
    home.kiso(&["session", "show", "../etc"]).exit(2);
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_session_is_deleted_beside_a_daemon_that_goes_on() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 60000\n");
    let served = Served::start(&home);
    served.send("busy", "$ echo waits");
    home.kiso(&["session", "delete", "busy", "--yes"]).exit(1).says(&["a message waits", "busy"]);
    home.kiso(&["run", "--session", "other", "$ echo kept > file"]).ok();
    assert!(home.work("other").join("file").exists());
    home.kiso(&["session", "delete", "other"]).exit(2).says(&["Permanently delete", "--yes"]);
    let deleted = home.kiso(&["--json", "session", "delete", "other", "--yes"]).ok().json();
    assert_eq!(deleted, json!({ "type": "deleted", "session": "other" }));
    assert!(!home.work("other").exists());
    home.kiso(&["session", "show", "other"]).exit(2).says(&["there is no session"]);
    served.request("GET", "/status/other", None).refuses(404, "not_found");
    served.get("/status/busy");
    assert_eq!(served.terminate(), 0);
}

#[test]
fn secrets_go_in_and_never_come_out() {
    let home = Home::new();
    home.config(QUICK);
    let served = Served::start(&home);
    fed(&home, &["secret", "set", "pin", "--session", "main"], b"zebra-4711\n").ok().prints(&["pin is set"]);
    home.kiso(&["secret", "list", "--session", "main"]).ok().prints(&["pin"]);
    home.kiso(&["secret", "list"]).ok().says(&["the session default has no secrets"]);
    let listed = home.kiso(&["--json", "secret", "list", "--session", "main"]).ok().json();
    assert_eq!(listed, json!({ "type": "secret", "session": "main", "name": "pin" }));
    let reply = served.reply(served.send("main", "$ echo zebra-4711"));
    assert!(!reply.contains("zebra-4711") && reply.contains("[secret pin]"), "{reply}");
    // A new value; the old one stays hidden, too.
    fed(&home, &["secret", "set", "pin", "--session", "main"], b"giraffe-0815").ok();
    let reply = served.reply(served.send("main", "$ echo zebra-4711 giraffe-0815"));
    assert!(!reply.contains("zebra-4711") && !reply.contains("giraffe-0815"), "{reply}");
    assert_eq!(served.terminate(), 0);
    for (name, value, code, says) in [
        ("p-n", &b"zebra"[..], 2, "letters, digits and underscores"),
        ("pin", b"\n", 2, "the value is empty"),
        ("pin", b"\xff\xfe\xff\xfe", 2, "not UTF-8"),
        ("pin", &[b'x'; 20_000], 5, "longer than 16384 bytes"),
    ] {
        fed(&home, &["secret", "set", name], value).exit(code).says(&[says]);
    }
    home.kiso(&["secret", "set", "pin", "giraffe"]).exit(2);
    home.kiso(&["secret", "remove", "pon", "--session", "main"]).exit(2).says(&["no secret \"pon\""]);
    home.kiso(&["secret", "remove", "pin", "--session", "main"]).exit(2).says(&["--yes"]);
    home.kiso(&["secret", "remove", "pin", "--session", "main", "--yes"]).ok().prints(&["pin is removed"]);
    home.kiso(&["secret", "list", "--session", "main"]).ok().prints(&["pin_2"]);
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(home.path().join(file)).unwrap_or_default();
        for value in ["zebra-4711", "giraffe-0815"] {
            assert!(!bytes.windows(value.len()).any(|part| part == value.as_bytes()), "{value} stands in {file}");
        }
    }
}

/// Every number in the documentation of memory is the one in the code.
#[test]
fn the_pages_give_the_numbers_of_the_code() {
    let page = |name: &str| std::fs::read_to_string(root().join("docs/memory").join(name)).unwrap();
    let (works, recall) = (page("how-memory-works.md"), page("recall-memory.md"));
    let mut checked = 0;
    for key in kiso_base::config::KEYS {
        let value = key.default_value().replace('_', ",");
        // Numbers of four digits have a comma on a page, and none in the file.
        let value = if value.len() == 4 { format!("{},{}", &value[..1], &value[1..]) } else { value };
        for name in [format!("`{}` (", key.name), format!("`[{}] {}` (", key.section, key.name)] {
            for text in [&works, &recall] {
                for (at, _) in text.match_indices(&name) {
                    let found: String = text[at..].chars().take(120).collect();
                    assert!(found.starts_with(&format!("{name}{value})")), "{}: {found}", key.path());
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 7, "{checked} numbers were found");
    for said in [
        format!("at most {} KiB", kiso_store::memory::MAX_CORE_BYTES >> 10),
        format!("a text to save {} KiB", kiso_store::memory::MAX_TEXT >> 10),
        format!("at most {},000", kiso_store::store::MAX_CHUNKS / 1_000),
        format!("{},000 facts", kiso_store::store::MAX_FACTS / 1_000),
        format!("1 / ({} + its place)", kiso_store::memory::RANKS),
        format!(
            "up to {},{:03} numbers",
            kiso_store::store::MAX_DIMENSIONS / 1_000,
            kiso_store::store::MAX_DIMENSIONS % 1_000
        ),
    ] {
        let plain = works.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(&said), "{said} is not in how-memory-works.md");
    }
}
