//! `kiso run` prints an answer while the model writes it, and only the answer.
//!
//! The server holds its stream until a release, so that text on standard output before that must have been streamed. Nothing here
//! sleeps: a read waits for data.

use crate::harness::Home;
use crate::model_server::ModelServer;
use kiso_agent::drive::{Cancel, Listener, RunExecutor};
use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use serde_json::json;
use std::io::Read;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

const KINDS: [&str; 2] = ["openai", "anthropic"];

/// The router's answer to a message that needs no tools.
const TALK: &str = r#"{"effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false}"#;

/// The router's answer to a message that needs a plan.
const PLAN: &str = r#"{"effort": "high", "categories": [], "tool_need": 1, "goal": "an answer", "durable": false}"#;

/// A home with the server's model for all roles.
fn home(server: &ModelServer, kind: &str) -> Home {
    let home = Home::new();
    home.config(&format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"{kind}\"\nbase_url = \"{}\"\n\
         [routing]\nfast_path = false\n[llm]\nmax_retry_wait_s = 1\n",
        server.base_url()
    ));
    home
}

/// A reply of the script.
fn reply(role: &str, text: &str, more: &str) -> String {
    format!("[[reply]]\nrole = \"{role}\"\ntext = {text:?}\n{more}\n")
}

fn start(home: &Home, args: &[&str]) -> (Child, ChildStdout) {
    let mut child = home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
    let stdout = child.stdout.take().expect("it is a pipe");
    (child, stdout)
}

/// Reads until the text contains `part`. Returns the text so far; panics at the end of the stream.
#[track_caller]
fn read_until(stream: &mut impl Read, part: &str) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 256]);
    loop {
        let read = stream.read(&mut buffer).expect("a pipe can be read");
        assert!(read > 0, "it ended without {part:?}: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if text.contains(part) {
            return text.into_owned();
        }
    }
}

fn rest(stream: &mut impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("kiso prints UTF-8");
    text
}

#[test]
fn the_first_piece_is_printed_while_the_rest_is_still_to_come() {
    for kind in KINDS {
        let script = [
            reply("router", TALK, ""),
            reply("worker", "The first half and the second half", "pieces = 8\nfault = \"stall_mid_stream\""),
            reply("titler", "Halves", ""),
        ];
        let server = ModelServer::toml(&script.concat());
        let home = home(&server, kind);
        let (mut child, mut stdout) = start(&home, &["run", "tell me of both halves"]);
        let first = read_until(&mut stdout, "The");
        assert!(!first.contains("second half"), "{kind}: the server has not sent it yet: {first}");
        server.release();
        let text = first + &rest(&mut stdout);
        assert_eq!(text, "The first half and the second half\n", "{kind}");
        assert!(child.wait().unwrap().success());
        server.finish();
    }
}

/// A planner's text beside its plan is streamed to standard error, and its pieces stay one text.
#[test]
fn the_planners_talk_is_shown_as_it_comes() {
    let plan = json!({ "goal": "greet", "tasks": [{ "type": "msg", "detail": "greet", "notify": true }] });
    let said = format!("First I think about it for a while. <FINAL_PRD>{plan}</FINAL_PRD>");
    let script = [
        reply("router", PLAN, ""),
        reply("planner", &said, "pieces = 40\nfault = \"stall_mid_stream\""),
        reply("worker", "Hello.", ""),
        reply("titler", "Greeting", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server, "openai");
    let (mut child, mut stdout) = start(&home, &["run", "greet me after some thought"]);
    let mut stderr = child.stderr.take().unwrap();
    let first = read_until(&mut stderr, "First I think about it");
    assert!(!first.contains("Plan:"), "{first}");
    server.release();
    let errors = first + &rest(&mut stderr);
    assert!(errors.contains("First I think about it for a while.\n"), "{errors}");
    assert!(!errors.contains("FINAL_PRD") && !errors.contains("\"tasks\""), "{errors}");
    assert_eq!(rest(&mut stdout), "Hello.\n");
    assert!(child.wait().unwrap().success());
    server.finish();
}

/// All text that a listener receives.
#[derive(Default)]
struct Heard {
    planner: String,
    others: String,
}

impl Listener for Heard {
    fn token(&mut self, role: Role, text: &str) {
        match role {
            Role::Planner => self.planner.push_str(text),
            _ => self.others.push_str(text),
        }
    }
}

fn drive(home: &Home) -> RunExecutor {
    let home = kiso_base::home::Home::open(&home.path()).unwrap();
    let config = Config::load(&home).unwrap();
    let store = Store::open(&home.store_path()).unwrap();
    let skills = Skills::new(home.clone(), config.clone(), store.clone(), Arc::new(Quiet));
    let exec = Exec::new(home.clone(), config.clone(), skills.clone());
    RunExecutor::open(skills, exec, store, |_| None).unwrap()
}

/// Runs in this process, once for each way to split an answer into pieces of equal length.
#[tokio::test]
async fn neither_plan_nor_secret_is_heard_however_an_answer_is_cut() {
    const SECRET: &str = "hunter2-Zx81";
    let tasks = json!([{ "type": "msg", "detail": "answer", "notify": true }]);
    let plan = json!({ "goal": "answer", "secrets": { "pin": SECRET }, "tasks": tasks });
    let planned = format!("I <b>do.\n<FINAL_PRD>{plan}</FINAL_PRD> Done.");
    let answer = format!("Not {SECRET}, hunter2.");
    let cuts: Vec<usize> = (1..=planned.len()).collect();
    let script: String = cuts
        .iter()
        .flat_map(|pieces| {
            let more = format!("pieces = {pieces}");
            [reply("router", PLAN, ""), reply("planner", &planned, &more), reply("worker", &answer, &more)]
        })
        .collect();
    let server = ModelServer::toml(&script);
    let home = home(&server, "openai");
    let (drive, cancel) = (drive(&home), Cancel::new());
    for pieces in cuts {
        // Each run has its own session, so that none knows a secret from the one before.
        let session = SessionName::parse(&format!("cut-{pieces}")).unwrap();
        drive.home.create_session(&session).unwrap();
        let mut heard = Heard::default();
        // A value that no user wrote is not a user's secret.
        let message = format!("answer me with {SECRET}");
        let ran = drive.run(&session, &message, CallerScope::Admin, Secrets::default(), &cancel, &mut heard).await;
        let (_, outcome) = ran.unwrap();
        assert_eq!(heard.planner.split_whitespace().collect::<Vec<_>>(), ["I", "<b>do.", "Done."], "{pieces} pieces");
        assert_eq!(heard.others, "Not [secret pin], hunter2.", "{pieces} pieces");
        assert_eq!(outcome.reply, heard.others, "{pieces} pieces");
    }
    server.finish();
}

/// The same on the terminal, where the model repeats a secret of the message one letter at a time.
#[test]
fn a_secret_in_pieces_is_not_printed() {
    const SECRET: &str = "correct-horse-41";
    let text = format!("The password {SECRET} is safe.");
    for args in [&["run"][..], &["--json", "run"]] {
        let script =
            [reply("router", TALK, ""), reply("worker", &text, "pieces = 1000"), reply("titler", "A word", "")];
        let server = ModelServer::toml(&script.concat());
        let home = home(&server, "openai");
        let message = format!("keep my password: {SECRET}");
        let args: Vec<_> = args.iter().copied().chain([message.as_str()]).collect();
        let ran = home.kiso(&args);
        ran.ok().prints(&["The password [secret ", "] is safe."]);
        // With --json, each piece is a separate object; together they must not form the value either.
        let tokens: String = ran
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|object| object["text"].as_str().map(str::to_owned))
            .collect();
        for shown in [&ran.stdout, &ran.stderr, &tokens] {
            assert!(!shown.contains(SECRET), "{ran:?}");
        }
        server.finish();
    }
}

#[test]
fn an_answer_that_breaks_off_is_begun_anew_and_stands_whole_at_the_end() {
    for kind in KINDS {
        let script = [
            reply("router", TALK, ""),
            reply("worker", "Half of an answer that breaks off", "pieces = 8\nfault = \"cut_connection\""),
            reply("worker", "The whole answer.", ""),
            reply("titler", "Whole", ""),
        ];
        let server = ModelServer::toml(&script.concat());
        let home = home(&server, kind);
        let ran = home.kiso(&["run", "answer me"]);
        ran.ok().says(&["the text so far is not the answer"]);
        let (broken, whole) = ran.stdout.split_once("\n\n").expect("they are apart");
        assert!("Half of an answer that breaks off".starts_with(broken) && !broken.is_empty(), "{kind}: {broken:?}");
        assert_eq!(whole, "The whole answer.\n", "{kind}: it stands there once");
        // Text of the failed attempt is in no record of the run.
        home.kiso(&["trace", "last"]).ok().prints(&["The whole answer."]);
        assert!(!home.kiso(&["trace", "last"]).stdout.contains("Half of"), "{kind}");
        server.finish();
    }
}

/// `kiso run … | head -1`.
#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let script = [
        reply("router", TALK, ""),
        reply("worker", "one\ntwo\nthree\nfour\nfive\nsix\n", "pieces = 100\nfault = \"stall_mid_stream\""),
        // The run continues to its end, and its session gets a title.
        reply("titler", "Counting", ""),
    ];
    let server = ModelServer::toml(&script.concat());
    let home = home(&server, "openai");
    let (mut child, mut stdout) = start(&home, &["run", "count for me"]);
    let mut stderr = child.stderr.take().unwrap();
    read_until(&mut stdout, "one\n");
    drop(stdout);
    server.release();
    let errors = rest(&mut stderr);
    assert!(child.wait().unwrap().success(), "{errors}");
    assert!(!errors.contains("panicked") && !errors.to_lowercase().contains("error"), "{errors}");
    server.finish();
}
