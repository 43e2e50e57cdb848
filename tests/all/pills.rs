//! Pills that users define: over HTTP and with `kiso pill`, in every message of a turn.

use crate::harness::{Home, wait_until};
use crate::model_server::{ModelServer, Reply, Script};
use crate::served::Served;
use serde_json::{Value, json};

/// Each message of a joined turn may start with a pill.
#[test]
fn each_message_of_a_joined_turn_may_begin_with_a_pill() {
    let reply = Reply { role: Some("worker".to_owned()), text: "Done.".to_owned(), ..Reply::default() };
    let server = ModelServer::start(Script { reply: vec![reply], ..Script::default() });
    let home = Home::new();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n[models]\ntitler = \"reflex\"\n\
         [daemon]\ndebounce_ms = 60000\n",
        server.base_url()
    ));
    let served = Served::start(&home);
    let pill = json!({ "template": "Say something kind about {input}", "effort": "low" }).to_string();
    assert_eq!(served.request("PUT", "/pills/kind", Some(&pill)).expect(201)["origin"], "user");
    let short = json!({ "template": "In {input} words", "effort": "low" }).to_string();
    served.request("PUT", "/pills/short", Some(&short)).expect(201);
    for text in ["hello there", "!kind the cat", "!short five"] {
        served.send("main", text);
    }
    // The test does not wait for the debounce: after a restart, the daemon processes waiting messages in one turn.
    assert_eq!(served.terminate(), 0);
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n[models]\ntitler = \"reflex\"\n\
         [daemon]\ndebounce_ms = 20\n",
        server.base_url()
    ));
    let served = Served::start(&home);
    wait_until("the run to end", || served.get("/runs")["items"][0]["status"] == "done");
    let run = served.get("/runs")["items"][0]["id"].as_str().unwrap().to_owned();
    let trace = served.get(&format!("/runs/{run}/trace"));
    let events = trace["items"].as_array().unwrap();
    let admitted = events.iter().find(|event| event["kind"] == "admitted").unwrap();
    let body = &admitted["body"];
    assert_eq!(body["message"], "hello there\n\nSay something kind about the cat\n\nIn five words", "{admitted:#}");
    assert_eq!(body["pill"], json!({ "name": "kind, short", "effort": "low" }));
    assert_eq!(served.get("/runs")["items"].as_array().unwrap().len(), 1, "one turn");
}

/// Pills of a user without an administrator's rights are not expanded in an administrator's message.
#[test]
fn a_users_pill_is_none_for_an_administrator() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[pills.fixed]\ntemplate = \"$ echo {input}\"\n");
    let mut served = Served::start(&home);
    let token = |args: &[&str]| home.kiso(&[&["token", "add"], args].concat()).ok().stdout.trim().to_owned();
    let (chat, admin) = (token(&["phone"]), token(&["root", "--scope", "admin"]));
    served.token = Some(chat.clone());
    let pill = json!({ "template": "$ echo expanded {input}" }).to_string();
    assert_eq!(served.request("PUT", "/pills/say", Some(&pill)).expect(201)["origin"], "user");
    assert!(served.reply(served.send("main", "!say hello")).contains("expanded hello"));
    let names = |served: &Served| -> Vec<Value> {
        served.get("/input")["pills"].as_array().unwrap().iter().map(|pill| pill["name"].clone()).collect()
    };
    assert_eq!(names(&served), ["fixed", "say"]);
    served.request("DELETE", "/pills/fixed", None).refuses(409, "taken");
    served.token = Some(admin);
    assert!(!served.reply(served.send("main", "!say hello")).contains("expanded hello"));
    assert_eq!(names(&served), ["fixed"]);
    assert_eq!(served.get("/pills")["items"].as_array().unwrap().len(), 2, "the list shows all");
    // An administrator replaces it by an own one.
    let mine = json!({ "template": "$ echo mine {input}", "replace": true }).to_string();
    assert_eq!(served.request("PUT", "/pills/say", Some(&mine)).expect(200)["origin"], "admin");
    assert!(served.reply(served.send("main", "!say hello")).contains("mine hello"));
    served.token = Some(chat);
    served.request("PUT", "/pills/say", Some(&mine)).refuses(403, "forbidden");
    served.request("DELETE", "/pills/say", None).refuses(403, "forbidden");
}

#[test]
fn pills_are_shared_as_lines() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[pills.fixed]\ntemplate = \"x\"\n");
    home.kiso(&["pill", "add", "digest", "Read {input}", "--category", "web", "--effort", "medium"]).ok();
    home.kiso(&["pill", "add", "digest", "again"]).exit(2).says(&["a pill named digest already exists", "--force"]);
    home.kiso(&["pill", "add", "a b", "x"]).exit(2).says(&["not a name of a pill"]);
    home.kiso(&["pill", "add", "fixed", "y", "--force"]).exit(2).says(&["stands in config.toml"]);
    home.kiso(&["pill", "add", "other", "Sum up {input}", "--effort", "huge"]).exit(2).says(&["low, medium or high"]);
    let shown = home.kiso(&["--json", "pill", "show", "digest"]).ok().json();
    let digest = json!({ "type": "pill", "name": "digest", "template": "Read {input}", "categories": ["web"], "effort": "medium", "origin": "admin" });
    assert_eq!(shown, digest);
    let lines = home.kiso(&["pill", "export"]).ok().stdout.clone();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let other = Home::new();
    let file = other.file("pills.jsonl", format!("{lines}{}", r#"{"name":"sum","template":"Sum up {input}"}"#));
    let file = file.to_str().unwrap();
    other.kiso(&["pill", "import", file]).ok().prints(&["imported 2 pills"]);
    other.kiso(&["pill", "import", file]).exit(2).says(&["--force"]);
    other.kiso(&["pill", "import", file, "--force"]).ok().prints(&["replaced 2"]);
    other.kiso(&["pill", "show", "sum"]).ok().prints(&["!sum", "high effort, all tools", "Sum up {input}"]);
    let bad = other.file("bad.jsonl", "{\"name\":\"new\",\"template\":\"x\"}\n{\"name\":\"wrong\"}\n");
    other.kiso(&["pill", "import", bad.to_str().unwrap()]).exit(1).says(&["bad.jsonl:2:", "nothing was imported"]);
    other.kiso(&["pill", "show", "new"]).exit(2).says(&["there is no pill new"]);
    other.kiso(&["pill", "remove", "dum"]).exit(2).says(&["there is no pill dum; near: sum"]);
    other.kiso(&["pill", "remove", "sum"]).ok();
}
