//! Pinning, archiving and deleting sessions, on the command line and over HTTP.

use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};

fn home() -> Home {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 1\n");
    home
}

/// The names of a listing, sorted.
fn names(items: &[Value], key: &str) -> Vec<String> {
    let mut names: Vec<String> = items.iter().map(|one| one[key].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_session_stands_where_it_was_put() {
    let home = home();
    for session in ["a", "b", "c"] {
        home.kiso(&["run", "-s", session, "$ echo here"]).ok();
    }
    let listed = |args: &[&str]| {
        names(&home.kiso(&[&["--json", "session", "list"], args].concat()).ok().json_lines(), "session")
    };
    home.kiso(&["session", "pin", "b"]).ok().prints(&["b is pinned"]);
    let archived = home.kiso(&["--json", "session", "archive", "a", "c", "a"]).ok().json_lines();
    assert_eq!(archived[1], json!({ "type": "placed", "session": "c", "placement": "archived" }));
    assert_eq!(archived.len(), 2, "each once: {archived:?}");
    assert_eq!((listed(&[]), listed(&["--archived"])), (vec!["b".to_owned()], vec!["a".to_owned(), "c".to_owned()]));
    home.kiso(&["session", "list"]).ok().prints(&["[pinned]"]);
    assert_eq!(home.kiso(&["--json", "session", "list"]).ok().json()["placement"], "pinned");
    // If one of several names is wrong, nothing is done.
    home.kiso(&["session", "unarchive", "a", "nobody"]).exit(2).says(&["there is no session \"nobody\""]);
    assert_eq!(listed(&["--archived"]).len(), 2);
    // An archived session works and stays archived, and removing a missing pin changes nothing.
    home.kiso(&["run", "-s", "a", "$ echo again"]).ok().prints(&["again"]);
    home.kiso(&["session", "unpin", "a"]).ok().prints(&["a is archived"]);
    home.kiso(&["session", "unarchive", "a", "b"]).ok().prints(&["a is listed", "b is pinned"]);
    assert_eq!(listed(&[]), ["a", "b"]);

    let served = Served::start(&home);
    let over = |query: &str| names(served.get(&format!("/sessions{query}"))["items"].as_array().unwrap(), "name");
    assert_eq!(over(""), ["a", "b", "c"], "who asks for none gets all");
    assert_eq!((over("?placement=pinned"), over("?placement=archived")), (vec!["b".to_owned()], vec!["c".to_owned()]));
    assert_eq!(over("?placement=listed,archived&limit=1").len(), 1);
    served.request("GET", "/sessions?placement=pined", None).refuses(400, "bad_request");
    let mut events = served.follow("", None);
    let patch = |body: Value| served.request("PATCH", "/sessions/c", Some(&body.to_string()));
    let changed = patch(json!({ "placement": "pinned", "title": "Three" })).expect(200);
    assert_eq!((&changed["placement"], &changed["title"]), (&json!("pinned"), &json!("Three")));
    let told = loop {
        let heard = events.next(&["session"]);
        if heard.data["placement"] == "pinned" {
            break heard.data;
        }
    };
    assert_eq!(told["name"], "c", "who watches is told");
    assert_eq!(served.get("/status/c")["placement"], "pinned");
    patch(json!({})).refuses(400, "bad_request");
    patch(json!({ "placement": "lost" })).refuses(400, "bad_request");
    served.request("PATCH", "/sessions/nobody", Some(r#"{"placement": "pinned"}"#)).refuses(404, "not_found");
}

#[test]
fn several_sessions_are_deleted_with_one_question() {
    let home = home();
    for session in ["a", "b", "c"] {
        home.kiso(&["run", "-s", session, "$ echo here"]).ok();
    }
    home.kiso(&["session", "delete", "a", "nobody", "--yes"]).exit(2).says(&["there is no session \"nobody\""]);
    // Without a terminal, nobody can be asked.
    home.kiso(&["session", "delete", "a", "b"]).exit(2).says(&["Permanently delete these 2 sessions", "--yes"]);
    assert_eq!(home.kiso(&["--json", "session", "list"]).ok().json_lines().len(), 3);
    home.kiso(&["session", "delete", "a", "b", "--yes"]).ok().prints(&["deleted a", "deleted b"]);
    assert_eq!(names(&home.kiso(&["--json", "session", "list"]).ok().json_lines(), "session"), ["c"]);
}
