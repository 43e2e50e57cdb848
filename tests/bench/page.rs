//! Tasks of the page's main thread while a long answer streams in: a real Chromium, a daemon, and the tests' model server, which
//! sends 200 tokens a second up to 20,000.

#[path = "../all/page/browser.rs"]
mod browser;

use super::run::model_server::{Fault, ModelServer, Reply, Script};
use super::show;
use browser::{Browser, css, role};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Variable for the tokens of the answer, so that a short run can use fewer.
const TOKENS: &str = "KISO_BENCH_TOKENS";

/// Tokens for each second.
const EACH_SECOND: u32 = 200;

/// Tokens in each traced stretch: fetching a trace of the whole answer would take minutes.
const STRETCH: usize = 2_000;

/// Shorter tasks are normal browser activity, and would only improve the distribution.
const COUNTED: Duration = Duration::from_millis(1);

/// Minimum duration of a long task (W3C Long Tasks).
const LONG: Duration = Duration::from_millis(50);

const TALK: &str = r#"{"effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false}"#;

pub(crate) fn rows() {
    let Some(browser) = Browser::get() else { return };
    let tokens = std::env::var(TOKENS).ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let text = answer(tokens);
    let reply =
        |role: &str, text: &str| Reply { role: Some(role.to_owned()), text: text.to_owned(), ..Reply::default() };
    let streamed = Reply { pieces: Some(tokens), fault: Some(Fault::Stepped), ..reply("worker", &text) };
    let script =
        Script { reply: vec![reply("router", TALK), streamed, reply("titler", "A long answer")], ..Script::default() };
    let server = ModelServer::start(script);
    let home = TempDir::new().expect("there is room");
    let config = format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n[routing]\nfast_path = false\n[daemon]\n\
         debounce_ms = 1\n",
        server.base_url()
    );
    let kiso = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiso"));
        command.args(args).env("KISO_HOME", home.path()).stderr(Stdio::null());
        command
    };
    kiso(&["skill", "list"]).output().expect("kiso starts");
    std::fs::write(home.path().join("config.toml"), config).expect("there is room");
    let mut daemon = kiso(&["--json", "serve", "--port", "0"]).stdout(Stdio::piped()).spawn().expect("kiso starts");
    let mut said = String::new();
    BufReader::new(daemon.stdout.take().expect("it is a pipe")).read_line(&mut said).expect("it says where it listens");
    let link = kiso(&["open", "--print"]).output().expect("kiso starts").stdout;

    let tab = browser.tab();
    tab.expects("answer: 404");
    tab.goto(String::from_utf8(link).expect("it is text").trim());
    tab.focus(role("textbox", "Message"));
    tab.insert_text("Tell me everything");
    tab.press("Enter");
    tab.wait("the model is asked", || server.held() == 1);
    let mut tasks = Vec::new();
    for done in (0..tokens).step_by(STRETCH) {
        let stretch = STRETCH.min(tokens - done);
        tasks.extend(tab.tasks_during(|| {
            let began = Instant::now();
            for n in 1..=stretch as u32 {
                let due = began + Duration::from_secs(1) * n / EACH_SECOND;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                server.release();
            }
            if done + stretch == tokens {
                // The end: the reply has replaced the draft. Evaluations during the measurement would cost time on the page.
                tab.wait_for(css("[role=log] article:last-of-type [aria-label='Copy reply']"));
                tab.wait_until("document.querySelector('[role=log] article:last-of-type .chat-text').textContent.trimEnd().endsWith('That is the end.')");
            }
        }));
    }
    print(tokens, tasks);
    let _ = daemon.kill();
    let _ = daemon.wait();
}

/// Alternating paragraphs, lists, tables and code, with four characters for a token.
fn answer(tokens: usize) -> String {
    const PART: &str = "## A part of it\n\nSome **words** about `it`, with [a link](https://example.org/), *and* more words that go on \
        for a while, so that the paragraph has several lines before the next thing comes.\n\n- one thing\n- another thing, with **weight**\n  \
        - and one below it\n\n```rust\nfn main() {\n    let answer = 42;\n    println!(\"{answer}\");\n}\n```\n\n| city | people |\n|---|---:|\n\
        | Oslo | 709037 |\n| Rome | 2748109 |\n\n$$\\sum_{i=1}^{n} i^2 = \\frac{n(n+1)(2n+1)}{6}$$\n\n";
    const END: &str = "\n\nThat is the end.";
    let mut text: String = PART.chars().cycle().take(tokens * 4 - END.len()).collect();
    text.push_str(END);
    text
}

fn print(tokens: usize, mut tasks: Vec<Duration>) {
    tasks.retain(|task| *task >= COUNTED);
    tasks.sort();
    let at = |part: f64| tasks[((tasks.len() - 1) as f64 * part) as usize];
    let long = tasks.iter().filter(|task| **task >= LONG).count();
    println!(
        "| page: tasks of the main thread while {tokens} tokens come at {EACH_SECOND} a second (of 1 ms and more: {}) | median {} | p95 {} | \
         longest {}, {long} of 50 ms and more |",
        tasks.len(),
        show(at(0.5)),
        show(at(0.95)),
        show(at(1.0))
    );
}
