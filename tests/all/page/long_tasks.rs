//! While a long answer streams, the page's main thread stays free for typing and scrolling.

use super::browser::role;
use super::script::{server, talk, title};
use super::stage::Stage;
use std::time::{Duration, Instant};

/// Tokens of a long answer, and tokens for each second.
const TOKENS: u32 = 20_000;
const EACH_SECOND: u32 = 200;

/// Minimum duration of a long task (W3C Long Tasks).
const LONG: Duration = Duration::from_millis(50);

/// The main thread stays free during any answer. Runs alone: other tabs of the browser count as well.
#[test]
#[ignore = "it takes two minutes, and nothing else may run"]
fn a_long_answer_makes_no_long_task() {
    let part = "## A part of it\n\nSome **words** about `it`, with [a link](https://example.org/), *and* more words that go on for a while.\n\n\
        - one thing\n- another, with **weight**\n  - and one below it\n\n```rust\nfn main() {\n    println!(\"42\");\n}\n```\n\n\
        | city | people |\n|---|---:|\n| Oslo | 709037 |\n\n$$\\sum_{i=1}^{n} i^2 = \\frac{n(n+1)(2n+1)}{6}$$\n\n";
    let mut text: String = part.chars().cycle().take(TOKENS as usize * 4).collect();
    text.push_str("\n\nThat is the end.");
    let server = server(&[talk(&text, &format!("pieces = {TOKENS}\nfault = \"stepped\"")), title("A long answer")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("long");
    stage.say("Tell me everything");
    tab.wait("the model is asked", || server.held() == 1);
    let stretch = TOKENS / 10;
    for done in (0..TOKENS).step_by(stretch as usize) {
        let tasks = tab.tasks_during(|| {
            let began = Instant::now();
            for n in 1..=stretch {
                let due = began + Duration::from_secs(1) * n / EACH_SECOND;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                server.release();
            }
            if done + stretch == TOKENS {
                tab.wait_for(role("button", "Copy reply"));
            }
        });
        let longest = tasks.iter().max().copied().unwrap_or_default();
        assert!(longest < LONG, "a task took {longest:?} after {done} tokens");
    }
    super::script::finish(server);
}
