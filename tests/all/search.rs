//! `GET /search`: messages by words and tags, with an index, page by page.

use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

/// A store with messages from before there was an index, and a sealed one.
#[test]
fn an_old_message_among_many_is_on_the_first_page() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    home.kiso(&["run", "--session", "trip", "$ echo the gondola is #blue"]).ok();
    let mut store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    let tx = store.transaction().unwrap();
    for n in 0..12_000 {
        let text = format!("number {n} of many");
        let insert = "INSERT INTO messages (session, role, text, at_ms, grams) VALUES (1, 'assistant', ?1, 1, '')";
        tx.prepare_cached(insert).unwrap().execute([text]).unwrap();
    }
    tx.commit().unwrap();
    drop(store);
    let served = Served::start(&home);
    // One request, where it once took three that searched 5,000 messages each.
    let page = served.get("/search?q=gondola");
    assert_eq!(texts(&page).last(), Some(&"$ echo the gondola is #blue"), "{page}");
    assert_eq!(page["next"], Value::Null);
    assert_eq!(texts(&served.get("/search?q=%23blue"))[..], ["$ echo the gondola is #blue"]);
    assert_eq!(texts(&served.get("/search?q=%23is+gondola")), [""; 0]);
    assert_eq!(texts(&served.get("/search?q=NUMB+11999")), ["number 11999 of many"]);
    // Page by page, from the newest, without repetitions or gaps.
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("/search?q=number&session=trip&limit=500{before}"));
        seen.extend(texts(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        before = format!("&before={next}");
    }
    let all: Vec<String> = (0..12_000).rev().map(|n| format!("number {n} of many")).collect();
    assert_eq!(seen, all);
    // The owner also finds messages that no model has processed.
    let id = served.send("trip", "an errand: the zeppelin");
    assert!(served.get("/search?q=zeppelin")["items"].as_array().unwrap().iter().any(|one| one["id"] == json!(id)));
    served.reply(id);
    // Deleting a session removes its words.
    home.kiso(&["session", "delete", "trip", "--yes"]).ok();
    assert_eq!(texts(&served.get("/search?q=number")), [""; 0]);
}
