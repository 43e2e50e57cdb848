//! Memory by meaning, with a server for vectors: passages without a common word are found, and if vectors fail, words are still
//! found.

use crate::harness::Home;
use crate::model_server::{ModelServer, Seen};
use kiso_store::store::{Scope, Store};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const MEANINGS: &str = r#"
[[meaning]]
words = ["ships", "boats", "zebra-4711", "[secret pin]"]

[[meaning]]
words = ["lunch"]
"#;

const SHIPS: &str = "ships come in at dawn";

/// A home with these passages in its memory and a server for vectors. The built-in model answers messages.
fn home(server: &ModelServer, passages: &[&str], more: &str) -> Home {
    let home = Home::new();
    home.config(&config(server, "embed", more));
    let line =
        |text: &&str| json!({ "type": "passage", "text": text, "source": "note", "at_ms": 1 }).to_string() + "\n";
    import(&home, &passages.iter().map(line).collect::<String>());
    home
}

fn config(server: &ModelServer, model: &str, more: &str) -> String {
    // If the timeout is not tested, it is long enough for a busy machine.
    let patience = if more.contains("query_timeout_ms") { "" } else { "query_timeout_ms = 60000\n" };
    format!(
        "model = \"reflex\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\nkey_env = \"TEST_KEY\"\n\
         [memory]\nembedding_model = \"test:{model}\"\n{patience}{more}\n",
        server.base_url()
    )
}

fn import(home: &Home, lines: &str) {
    let mut command = home.command(&["memory", "import", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("kiso starts");
    child.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
}

/// `kiso run` with a message for the built-in model, including work after the reply.
#[track_caller]
fn run(home: &Home) {
    home.kiso_with(&["run", "hello"], key).ok();
}

fn key(command: &mut std::process::Command) {
    command.env("TEST_KEY", "sk-plover-31");
}

#[track_caller]
fn search(home: &Home, question: &str) -> Vec<String> {
    let ran = home.kiso_with(&["--json", "memory", "search", question], key);
    let text = |line: &Value| line["text"].as_str().expect("it has a text").to_owned();
    ran.ok().json_lines().iter().map(text).collect()
}

fn sent(server: &ModelServer) -> Vec<Seen> {
    server.requests().into_iter().filter(|seen| seen.role() == "embedder").collect()
}

/// The texts of all requests.
fn texts(server: &ModelServer) -> Vec<String> {
    sent(server)
        .iter()
        .flat_map(|seen| seen.body["input"].as_array().unwrap().clone())
        .map(|text| text.as_str().expect("it is a text").to_owned())
        .collect()
}

#[test]
fn what_shares_no_word_is_found_by_its_meaning() {
    let server = ModelServer::toml(MEANINGS);
    let home = home(&server, &[SHIPS, "lunch is at noon", "the market closes at five"], "");
    assert_eq!(search(&home, "when do the boats arrive"), [""; 0], "nothing has a vector yet");
    run(&home);
    assert_eq!(search(&home, "when do the boats arrive"), [SHIPS]);
    assert_eq!(search(&home, "market ships")[0], SHIPS, "it has a word and the meaning");
    let by_words = home.kiso(&["--json", "memory", "search", "--words", "when do the boats arrive"]);
    assert_eq!(by_words.ok().stdout, "");
    // Each passage was sent once, in one request, with the key in its header.
    let batch = sent(&server).into_iter().find(|seen| seen.body["input"].as_array().unwrap().len() == 3);
    let batch = batch.expect("the passages were sent together");
    assert_eq!(batch.path, "/v1/embeddings");
    assert_eq!(batch.headers["authorization"], "Bearer sk-plover-31");
    assert_eq!(batch.body["model"], "embed");
    run(&home);
    assert_eq!(texts(&server).iter().filter(|text| *text == SHIPS).count(), 1);
    let doctor = home.kiso_with(&["doctor"], key);
    doctor.prints(&["embeddings of test:embed: vectors of 64 numbers"]);
    server.finish();
}

/// The planner receives it, and the actor finds it with its tool.
#[test]
fn models_are_told_what_is_near_in_meaning() {
    let script = r#"
[[reply]]
role = "router"
text = '{"effort": "medium", "categories": ["memory"], "tool_need": 1, "goal": "boats", "durable": false}'

[[reply]]
role = "actor"
calls = [{ name = "memory_search", args = { query = "arrival of boats" } }]

[[reply]]
role = "actor"
expect_contains = "note: ships come in at dawn"
text = "At dawn."

[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "boats", "durable": false}'

[[reply]]
role = "planner"
expect_contains = "ships come in at dawn"
text = '{"goal": "tell", "tasks": [{"type": "msg", "detail": "Say it", "notify": true}]}'

[[reply]]
role = "worker"
text = "At dawn, too."
"#;
    let server = ModelServer::toml(&format!("{script}{MEANINGS}"));
    let home = home(&server, &[SHIPS, "lunch is at noon"], "");
    run(&home);
    home.config(&config(&server, "embed", "[routing]\nfast_path = false").replace("\"reflex\"", "\"test:m\""));
    home.kiso_with(&["run", "look up when the boats arrive"], key).ok().prints(&["At dawn."]);
    home.kiso_with(&["run", "plan for when the boats arrive"], key).ok().prints(&["At dawn, too."]);
    server.finish();
}

#[test]
fn words_are_found_whatever_becomes_of_the_vectors() {
    let down = "[[reply]]\nrole = \"embedder\"\nfault = \"status_500\"\n";
    let odd =
        "[[reply]]\nrole = \"embedder\"\nraw = '{\"data\": []}'\nheaders = { content-type = \"application/json\" }\n";
    // The server answers only after a release, which never comes.
    let silent = "[[reply]]\nrole = \"embedder\"\nfault = \"slow_first_token\"\n";
    for (trouble, more) in [(down, ""), (odd, ""), (silent, "query_timeout_ms = 200")] {
        let server = ModelServer::toml(&format!("{trouble}{MEANINGS}"));
        let home = home(&server, &[SHIPS, "lunch is at noon"], more);
        // The question of a search takes the reply.
        assert_eq!(search(&home, "ships"), [SHIPS], "{trouble}");
        // On a busy machine, the timeout may be over before the request.
        if trouble != silent {
            server.finish();
        }
    }
    // Without any server, the run succeeds, and the passages wait.
    let server = ModelServer::toml(MEANINGS);
    let home = home(&server, &[SHIPS], "");
    let nowhere = config(&server, "embed", "").replace(&server.base_url(), "http://127.0.0.1:9/v1");
    home.config(&nowhere);
    run(&home);
    assert_eq!(search(&home, "ships"), [SHIPS]);
    home.config(&config(&server, "embed", ""));
    run(&home);
    assert_eq!(search(&home, "boats"), [SHIPS], "they had their turn");
}

#[test]
fn what_fails_is_tried_again_and_what_is_refused_is_not() {
    let script = "[[reply]]\nrole = \"embedder\"\nfault = \"status_500\"\n[[meaning]]\nwords = [\"forbidden\"]\nrefused = true\n";
    let server = ModelServer::toml(&format!("{script}{MEANINGS}"));
    let home = home(&server, &["a forbidden word", SHIPS, "lunch is at noon"], "");
    // The first request is the run's own question, which gets the fault; then the batch is refused because of one of its texts.
    run(&home);
    assert_eq!(search(&home, "boats"), [SHIPS]);
    assert_eq!(search(&home, "forbidden"), ["a forbidden word"], "by its word");
    let count = |server: &ModelServer| texts(server).iter().filter(|text| *text == "a forbidden word").count();
    let before = count(&server);
    run(&home);
    assert_eq!(count(&server), before, "it is not sent again");
    server.finish();
}

#[test]
fn another_model_embeds_everything_anew() {
    let server = ModelServer::toml(MEANINGS);
    let home = home(&server, &[SHIPS, "lunch is at noon"], "");
    run(&home);
    home.config(&config(&server, "other", "embedding_dimensions = 64"));
    assert_eq!(search(&home, "boats"), [""; 0], "vectors of two models are not compared");
    run(&home);
    assert_eq!(search(&home, "boats"), [SHIPS]);
    let last = sent(&server).pop().unwrap();
    assert_eq!((&last.body["model"], &last.body["dimensions"]), (&json!("other"), &json!(64)));
    server.finish();
}

#[test]
fn no_secret_is_sent_for_a_vector() {
    let server = ModelServer::toml(MEANINGS);
    let home = home(&server, &[], "");
    run(&home);
    // The passage was stored before its text was known to be a secret.
    let store = Store::open(&home.path().join("store.db")).unwrap();
    let session = kiso_base::home::SessionName::parse("default").unwrap();
    store.write_blocking(move |tx| tx.add_chunk("call it zebra-4711 at the door", "turn", Some(&session), 1)).unwrap();
    store.close();
    let mut command = home.command(&["secret", "set", "pin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"zebra-4711").unwrap();
    assert!(child.wait().unwrap().success());
    home.kiso_with(&["run", "$ echo zebra-4711 sk-plover-31"], key).ok();
    let texts = texts(&server);
    assert!(texts.contains(&"call it [secret pin] at the door".to_owned()), "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains("zebra-4711") && !text.contains("sk-plover-31")), "{texts:?}");
    server.finish();
}

#[test]
fn vectors_are_paid_for_and_capped() {
    let server = ModelServer::toml(MEANINGS);
    let prices = "[model_settings.\"test:embed\"]\ninput_price = 1000\n";
    let home = home(&server, &[SHIPS, "lunch is at noon"], prices);
    run(&home);
    let cost = |home: &Home| {
        let store = Store::open(&home.path().join("store.db")).unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let total = store.read_blocking(|view| view.usage_total(Scope::Day(i64::try_from(now).unwrap()))).unwrap();
        store.close();
        total.usage.cost_micros
    };
    // Ten tokens for a text, at 1,000 dollars for a million; the built-in model costs nothing.
    assert_eq!(texts(&server).len(), 3);
    assert_eq!(cost(&home), 3 * 10 * 1_000);
    let conn = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    let of_run = "SELECT model, input FROM usage WHERE role = 'embedder' AND run IS NOT NULL";
    let asked: (String, i64) = conn.query_row(of_run, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(asked, ("test:embed".to_owned(), 10), "the run's question");
    drop(conn);
    let before = sent(&server).len();
    home.config(&config(&server, "embed", &format!("{prices}[limits]\nmax_cost_cents_per_day = 1\n")));
    import(
        &home,
        &(json!({ "type": "passage", "text": "more boats", "source": "note", "at_ms": 1 }).to_string() + "\n"),
    );
    home.kiso_with(&["run", "$ echo done"], key).exit(5).prints(&["max_cost_cents_per_day"]);
    assert_eq!(sent(&server).len(), before, "the day's cap is reached");
    assert_eq!(search(&home, "more boats")[0], "more boats");
    server.finish();
}

#[test]
fn a_model_without_vectors_is_a_mistake_of_the_configuration() {
    let home = Home::new();
    home.config(
        "model = \"reflex\"\n[providers.claude]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\n\
         [memory]\nembedding_model = \"claude:opus\"\n",
    );
    home.kiso(&["run", "$ echo x"])
        .exit(3)
        .says(&["config.toml:6:19: memory.embedding_model: [providers.claude] is of a kind"]);
    let server = ModelServer::toml("");
    home.config(&config(&server, "embed", ""));
    home.kiso(&["run", "$ echo x"]).exit(3).says(&["the model \"test:embed\" of the role embedder", "TEST_KEY"]);
    home.kiso(&["memory", "fact", "list"]).ok();
}

/// Rule: "docs are indexed semantically — natural language queries work well".
#[test]
fn the_documentation_is_searched_by_meaning() {
    let script = r#"
[[reply]]
role = "router"
text = '{"effort": "medium", "categories": ["docs"], "tool_need": 1, "goal": "storage", "durable": false}'

[[reply]]
role = "actor"
calls = [{ name = "docs_search", args = { query = "couchpotatoes" } }]

[[reply]]
role = "actor"
expect_contains = "backup.md: SD cards"
text = "It is there."

[[reply]]
role = "router"
text = '{"effort": "medium", "categories": ["docs"], "tool_need": 1, "goal": "storage", "durable": false}'

[[reply]]
role = "actor"
calls = [{ name = "docs_search", args = { query = "couchpotatoes", limit = 1 } }, { name = "docs_search", args = { query = "debounce_ms" } }]

[[reply]]
role = "actor"
expect_contains = ["backup.md: SD cards", "debounce_ms"]
text = "It is still there."

[[meaning]]
words = ["couchpotatoes", "backup.md: SD cards"]
"#;
    let server = ModelServer::toml(script);
    let home = Home::new();
    let more = "embedding_batch = 100\n[routing]\nfast_path = false\n[models]\ntitler = \"reflex\"";
    home.config(&config(&server, "embed", more).replace("model = \"reflex\"", "model = \"test:m\""));
    let ask =
        |text: &str| home.kiso_with(&["run", "--session", text, "how long do the cards of the storage live"], key);
    ask("one").ok().prints(&["It is there."]);
    let sections = || texts(&server).into_iter().filter(|text| text.contains(".md: ")).count();
    let first = sections();
    assert!(first > 100, "each section was sent: {first}");
    // The vectors are kept.
    ask("two").ok().prints(&["It is still there."]);
    assert_eq!(sections(), first);
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    let kept: i64 =
        store.query_row("SELECT count(*) FROM doc_vectors WHERE vector IS NOT NULL", (), |row| row.get(0)).unwrap();
    assert!(kept > 100 && kept <= first as i64, "{kept}");
    server.finish();
}
