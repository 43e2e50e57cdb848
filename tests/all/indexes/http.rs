//! The search of indexes over HTTP.

use super::{Hosted, echo, path};
use crate::harness::{Home, own_port, wait_until};
use crate::served::{Answer, Served};
use serde_json::{Value, json};

/// The daemon of a home, with an administrator's token.
fn served(home: &Home) -> Served {
    let token = home.kiso(&["--json", "token", "add", "suite", "--scope", "admin"]).json();
    let mut daemon = Served::start(home);
    daemon.token = Some(token["token"].as_str().unwrap().to_owned());
    daemon
}

fn search(daemon: &Served, query: &str) -> Answer {
    daemon.request("GET", &format!("/indexed_skills{query}"), None)
}

/// The results from indexes. kiso's own packages follow them in every home.
fn of_indexes(found: &Value) -> Vec<&Value> {
    let items = found["items"].as_array().unwrap().iter();
    items.filter(|item| item["index"]["at"] != "built-in").collect()
}

#[track_caller]
fn problem(daemon: &Served, code: &str, said: &str) {
    let found = search(daemon, "").expect(200);
    assert_eq!((of_indexes(&found), &found["more"]), (Vec::<&Value>::new(), &json!(0)), "nothing of it is shown");
    assert_eq!(found["problems"][0]["code"], code, "{found}");
    assert!(found["problems"][0]["message"].as_str().unwrap().contains(said), "{found}");
}

#[test]
fn what_indexes_have_is_found_over_http_and_nothing_of_one_that_is_not_as_signed() {
    let hosted = Hosted::new();
    let home = &hosted.sign_greet().home;
    let daemon = served(home);
    let found = search(&daemon, "").expect(200);
    let names: Vec<&Value> = of_indexes(&found).into_iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["echo", "greet"]);
    assert_eq!((&found["problems"], &found["more"]), (&json!([]), &json!(0)));
    let at = found["indexes"][0].as_str().unwrap();
    assert!(hosted.config.contains(&format!("\"{at}#")), "{at}");
    let greet = search(&daemon, "?q=GREETINGS%20writes").expect(200)["items"][0].clone();
    for (key, value) in [
        ("name", json!("greet")),
        ("version", json!("1.0")),
        ("kind", json!("agent-skill")),
        ("summary", json!("Writes greetings.")),
        ("license", json!("MIT")),
        ("place", json!("greet.zip")),
        ("command", json!("kiso skill add greet")),
        ("installed", Value::Null),
    ] {
        assert_eq!(greet[key], value, "{greet}");
    }
    assert_eq!((&greet["publisher"]["trusted"], &greet["publisher"]["label"]), (&json!(true), &json!("ada")));
    assert_eq!((greet["index"]["at"].as_str(), &greet["index"]["name"]), (Some(at), &json!("skills")));
    assert_eq!(found["items"][0]["publisher"], Value::Null, "nobody has signed it");
    // The command in the response works.
    home.kiso(&["skill", "add", "greet"]).ok();
    home.kiso(&["skill", "add", "echo", "--grant", "all"]).ok();
    let found = search(&daemon, "").expect(200);
    assert_eq!((&found["items"][0]["installed"], &found["items"][1]["installed"]), (&json!("1.0.0"), &json!("1.0")));
    assert_eq!(search(&daemon, "?q=none%20of%20these").expect(200)["items"], json!([]));
    // If several indexes have a skill, the command names the index.
    let other = home.file("my$other/x", "").with_file_name("");
    let file = echo(home, "my$other/echo-2.0.0.wasm", "2.0.0", "");
    let (secret, public) = super::key(home, "other");
    home.kiso(&["skill", "index", path(file.parent().unwrap()), "--key", &secret, "--name", "other"]).ok();
    let place = format!("{}/index.json", path(&other).trim_end_matches('/'));
    let two = hosted.config.replace("[\"", &format!("[\"{place}#{public}\", \""));
    home.config(&two);
    daemon.signal(rustix::process::Signal::HUP);
    wait_until("both indexes", || search(&daemon, "").expect(200)["indexes"].as_array().unwrap().len() == 2);
    let found = search(&daemon, "?q=echo").expect(200);
    let commands: Vec<&str> =
        found["items"].as_array().unwrap().iter().map(|item| item["command"].as_str().unwrap()).collect();
    assert!(commands.contains(&&*format!("kiso skill add echo --index '{place}'")), "{commands:?}");
    assert!(commands.contains(&&*format!("kiso skill add echo --index {at}")), "{commands:?}");
    home.config(&hosted.config);
    daemon.signal(rustix::process::Signal::HUP);
    wait_until("the one index", || search(&daemon, "").expect(200)["indexes"].as_array().unwrap().len() == 1);

    let file = hosted.dir.join("index.json");
    let (good, signature) = (std::fs::read(&file).unwrap(), hosted.dir.join("index.json.minisig"));
    let signed = std::fs::read(&signature).unwrap();
    std::fs::write(&file, String::from_utf8(good.clone()).unwrap().replace("greet", "groot")).unwrap();
    problem(&daemon, "bad-signature", "somebody changed it");
    std::fs::remove_file(&signature).unwrap();
    problem(&daemon, "unsigned-index", "has no signature beside it");
    std::fs::remove_file(&file).unwrap();
    problem(&daemon, "unreachable", "404");
    std::fs::write(&file, &good).unwrap();
    std::fs::write(&signature, &signed).unwrap();
    hosted.change(|index| index["serial"] = json!(1));
    problem(&daemon, "stale-index", "was seen before");
    hosted.change(|index| (index["serial"], index["expires"]) = (json!(9), json!("2020-01-01T00:00:00Z")));
    problem(&daemon, "expired-index", "was good until 2020-01-01");
}

#[test]
fn a_search_without_an_index_or_the_right_says_so() {
    let home = Home::new();
    let daemon = served(&home);
    let found = search(&daemon, "?q=sqlite3").expect(200);
    assert_eq!((&found["indexes"], &found["problems"]), (&json!([]), &json!([])));
    let python = &found["items"][0];
    assert_eq!((&python["name"], &python["kind"]), (&json!("python"), &json!("package")));
    assert_eq!((&python["command"], &python["license"]), (&json!("kiso skill add python"), &json!("PSF-2.0")));
    assert_eq!((&python["index"]["at"], &python["index"]["key"]), (&json!("built-in"), &Value::Null));
    assert!(python["commands"].as_array().unwrap().contains(&json!("python3")), "{python}");
    let nothing = json!({ "indexes": [], "items": [], "more": 0, "problems": [] });
    assert_eq!(search(&daemon, "?q=none%20of%20these").expect(200), nothing);
    search(&daemon, &format!("?q={}", "x".repeat(201))).refuses(400, "bad_request");
    search(&daemon, "?words=x").refuses(400, "bad_request");
    let chat = home.kiso(&["--json", "token", "add", "phone"]).json();
    let refused = daemon.ask_with(chat["token"].as_str().unwrap(), "/indexed_skills");
    assert!(refused.contains("403") && refused.contains("forbidden"), "{refused}");
    // Nobody listens at the index's address.
    let address = format!("127.0.0.1:{}", own_port());
    let (_, public) = super::key(&home, "index");
    home.config(&format!("[skills]\nindex = [\"http://{address}/index.json#{public}\"]\n"));
    daemon.signal(rustix::process::Signal::HUP);
    wait_until("the index", || search(&daemon, "").expect(200)["indexes"] != json!([]));
    problem(&daemon, "unreachable", &format!("the index http://{address}/index.json cannot be read"));
}
