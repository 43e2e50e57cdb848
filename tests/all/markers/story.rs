//! Four messages, the answers of the models, and the results: requests, outputs, and the home.

use crate::harness::{Home, Ran, guest, root};
use crate::model_server::{ModelServer, Seen};
use kiso_store::store::Store;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// A value without a known pattern: a model has to find it.
pub(super) const PIN: &str = "4711zebra0815";

/// A value after a label such as "password".
pub(super) const PASSWORD: &str = "Quagga-77-xyzzy";

/// A value that was mentioned before it could be recognized as a secret.
pub(super) const LATE: &str = "gnu-31-plover";

/// A message that is remembered, with a file; a reviewer learns a fact from it.
const FIRST: &str = r#"
[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "first aim", "durable": true}'

[[reply]]
role = "planner"
text = '''{"goal": "first goal", "tasks": [
  {"type": "exec", "detail": "echo one", "expect": "a word", "review": true},
  {"type": "msg", "detail": "Say one", "notify": true}]}'''

[[reply]]
role = "reviewer"
text = '{"status": "look", "file": "mkfile.txt"}'

[[reply]]
role = "reviewer"
text = '{"status": "ok", "learn": "the harbour opens at six in mkfact"}'

[[reply]]
role = "worker"
text = "It is mkreplied."

[[reply]]
role = "titler"
text = "A harbour"

[[reply]]
role = "summarizer"
expect_contains = "A turn to remember"
text = '{"facts": ["the word mkstated counts"], "outdated": []}'
"#;

/// A follow-up with a secret that the planner finds, in a plan that is refused. After it there are facts to consolidate and
/// messages to summarize.
const SECOND: &str = r#"
[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "second aim", "durable": false}'

[[reply]]
role = "planner"
expect_contains = "4711zebra0815"
text = '''{"goal": "second goal", "secrets": {"pin": "4711zebra0815"}, "tasks": [
  {"type": "exec", "detail": "echo two 4711zebra0815", "expect": "a word", "review": true},
  {"type": "msg", "detail": "Say two", "notify": true}]}'''

[[reply]]
role = "planner"
text = '''{"goal": "second goal", "tasks": [
  {"type": "exec", "detail": "echo two", "expect": "a word", "review": true},
  {"type": "msg", "detail": "Say two", "notify": true, "expect": "two", "review": true}]}'''

[[reply]]
role = "reviewer"
text = '{"status": "ok", "reason": "4711zebra0815 is right", "learn": "the ferry leaves with 4711zebra0815 at nine"}'

[[reply]]
role = "worker"
text = "The pin is 4711zebra0815, and gnu-31-plover a word."

[[reply]]
role = "reviewer"
text = '{"status": "ok"}'

[[reply]]
role = "summarizer"
expect_contains = "Messages to compress"
text = "They spoke of mksummary."

[[reply]]
role = "summarizer"
expect_contains = "Facts to consolidate"
text = '["the word mkstated counts", "the harbour opens at six and the ferry leaves at nine in mkmerged"]'
"#;

/// Each kind of failure happens once, and a plan is abandoned.
const THIRD: &str = r#"
[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "mkaim of the harbour", "durable": false}'

[[reply]]
role = "planner"
text = "mkunplanned"

[[reply]]
role = "planner"
text = '''I begin with mkchatter.
<FINAL_PRD>{"goal": "mkgoal", "tasks": [
  {"type": "skill", "skill": "mkskill", "args": {"text": "mkechoed"}},
  {"type": "act", "detail": "mkdetail", "expect": "mkexpected", "review": true},
  {"type": "exec", "detail": "echo mkremaining"},
  {"type": "act", "detail": "look later", "expect": "more"},
  {"type": "msg", "detail": "Say it", "notify": true}]}</FINAL_PRD>'''

[[reply]]
role = "reasoner"
text = "mkunbriefed"

[[reply]]
role = "reasoner"
text = '''{"goal": "mkbrief", "required": [], "delta": "all", "success": ["seen"], "context": {"discovery": [], "credentials": [], "artifacts": [], "blockers": []}, "action": "mkaction"}'''

[[reply]]
role = "actor"
calls = [{ name = "scratchpad", args = { action = "save", key = "k", text = "mktool and Quagga-77-xyzzy" } }]

[[reply]]
role = "actor"
text = "mkacted with 4711zebra0815"

[[reply]]
role = "reviewer"
text = "mkunreviewed Quagga-77-xyzzy"

[[reply]]
role = "reviewer"
text = '''{"status": "needs_fix", "reason": "mkfix of 4711zebra0815", "inject": [
  {"type": "act", "detail": "mkinjected", "expect": "mkagain", "review": true}]}'''

[[reply]]
role = "reasoner"
text = '''{"goal": "mkother", "required": [], "delta": "all", "success": ["seen"], "context": {"discovery": [], "credentials": [], "artifacts": [], "blockers": []}, "action": "look"}'''

[[reply]]
role = "actor"
text = "nothing"

[[reply]]
role = "reviewer"
text = '{"status": "replan", "reason": "mkreason"}'

[[reply]]
role = "planner"
text = '''{"goal": "mknext", "tasks": [
  {"type": "exec", "detail": "echo mkstep"},
  {"type": "msg", "detail": "mkwritten", "expect": "mkpolite", "notify": true}]}'''

[[reply]]
role = "worker"
text = "Done with Quagga-77-xyzzy and 4711zebra0815."
pieces = 12
fault = "stall_mid_stream"

[[reply]]
role = "summarizer"
text = "They spoke of much."
"#;

/// Conversation, followed by a plan in the same turn.
const FOURTH: &str = r#"
[[reply]]
role = "router"
text = '{"effort": "low", "categories": [], "tool_need": 0, "goal": "to talk", "durable": true}'

[[reply]]
role = "worker"
text = "That is mkearly."

[[reply]]
role = "router"
text = '{"effort": "high", "categories": [], "tool_need": 1, "goal": "fourth aim", "durable": false}'

[[reply]]
role = "planner"
text = '''{"goal": "fourth goal", "tasks": [
  {"type": "act", "detail": "look there", "expect": "a sight"},
  {"type": "act", "detail": "look on", "expect": "a sight", "brief": "it is far", "review": true},
  {"type": "exec", "detail": "true"},
  {"type": "msg", "detail": "Say four", "notify": true}]}'''

[[reply]]
role = "reasoner"
text = '''{"goal": "fourth", "required": [], "delta": "all", "success": ["seen"], "context": {"discovery": [], "credentials": [], "artifacts": [], "blockers": []}, "action": "look"}'''

[[reply]]
role = "actor"
text = "seen"

[[reply]]
role = "actor"
text = "seen on"

[[reply]]
role = "reviewer"
text = '{"status": "ok"}'

[[reply]]
role = "worker"
text = "Four."

[[reply]]
role = "summarizer"
text = "They spoke of everything."

[[reply]]
role = "summarizer"
expect_contains = "A turn to remember"
text = '{"facts": [], "outdated": []}'
"#;

/// Results of the story.
pub(super) struct Told {
    pub(super) home: Home,
    /// Results of each message.
    pub(super) ran: Vec<Ran>,
    pub(super) requests: Vec<Vec<Seen>>,
    /// Files of the home that contained a secret before the last run ended.
    pub(super) meanwhile: Vec<PathBuf>,
}

pub(super) fn tell() -> Told {
    let server = ModelServer::toml(&[FIRST, SECOND, THIRD, FOURTH].concat());
    let home = Home::new();
    home.config(&format!(
        "model = \"test:m\"\n[policy]\ntrusted_skills = [\"mkagent\"]\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n[routing]\nfast_path = false\n\
         [context]\nsummarize_threshold = 2\nknowledge_max_facts = 1\n",
        server.base_url()
    ));
    let manifest = std::fs::read_to_string(root().join("tests/guests/echo/kiso.toml")).expect("the guest has one");
    let manifest = manifest
        .replace("name = \"echo\"", "name = \"mkskill\"")
        .replace("summary = \"Answers", "summary = \"Answers in mkcard")
        .replace("category = \"test\"", "category = \"mkcategory\"");
    let guidance = home.file("AGENTS.md", "Call it mkguide.\n");
    let paths = [guest("echo"), home.file("mkskill.toml", manifest), guidance];
    let [echo, manifest, guidance] = paths.each_ref().map(|path| path.to_str().expect("a plain path"));
    home.kiso(&["skill", "add", echo, "--manifest", manifest, "--grant", "all"]).ok();
    let agent =
        home.file("mkagent/SKILL.md", "---\nname: mkagent\ndescription: Knows mklisted.\n---\nHeed mktaught.\n");
    home.kiso(&["skill", "add", agent.parent().and_then(Path::to_str).expect("a plain path")]).ok();
    // A file in the workspace that no message mentions.
    home.kiso(&["shell", "--session", "main", "-c", "echo a file > mkfile.txt"]).ok();
    let store = Store::open(&home.path().join("store.db")).expect("the store opens");
    store.write_blocking(|tx| tx.set_core_memory(r#"{"home": "mkcore"}"#, 1)).expect("it is written");
    store.close();
    let messages = [
        "I want to know of the harbour by @mkagent, and call it mkasked".to_owned(),
        format!("and the same once more by @mkagent with {PIN}, please"),
        format!("now the harbour by @mkagent in mknew; my password: {PASSWORD}, my token: {LATE}"),
        "tell me of the weather there by @mkagent".to_owned(),
    ];
    let mut told = Told { home, ran: Vec::new(), requests: Vec::new(), meanwhile: Vec::new() };
    for message in &messages {
        if std::ptr::eq(message, &messages[3]) {
            // The message arrives while the previous one is answered, and belongs to its turn.
            let store = rusqlite::Connection::open(told.home.path().join("store.db")).expect("there is a store");
            let more =
                "INSERT INTO messages (session, role, text, at_ms) VALUES (1, 'user', 'and look what it does', 0)";
            store.execute(more, ()).expect("a message can be added");
        }
        let before = server.requests().len();
        let args = ["run", "--session", "main", "--file", guidance, message.as_str()];
        // To a file, because the full log is larger than a pipe's buffer.
        let errors = told.home.file("stderr", "");
        let mut command = told.home.command(&args);
        command.env("KISO_LOG", "trace").stdout(Stdio::piped()).stderr(File::create(&errors).expect("there is room"));
        let mut child = command.spawn().expect("kiso starts");
        let mut stdout = child.stdout.take().expect("it is a pipe");
        let mut printed = vec![0; 4];
        // The last answer waits after its first word.
        let spoke = stdout.read_exact(&mut printed).is_ok();
        if spoke && std::ptr::eq(message, &messages[2]) {
            told.meanwhile = holding(&told.home.path(), &[PASSWORD, PIN]);
            assert!(told.home.path().join("store.db-wal").exists(), "the store is in use");
            server.release();
        }
        stdout.read_to_end(&mut printed).expect("a pipe can be read");
        let status = child.wait().expect("it ends");
        let stderr = std::fs::read(&errors).expect("it was written");
        told.ran.push(Ran::new(&args, Output { status, stdout: printed, stderr }));
        told.requests.push(server.requests().split_off(before));
    }
    assert!(server.problems().is_empty(), "{:#?}\n{:#?}", server.problems(), told.ran);
    for ran in &told.ran {
        ran.ok();
    }
    told
}

/// The files under `dir` that contain one of the texts.
pub(super) fn holding(dir: &Path, texts: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a home can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, texts));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let holds = |text: &&str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            found.extend(texts.iter().any(holds).then_some(path));
        }
    }
    found
}
