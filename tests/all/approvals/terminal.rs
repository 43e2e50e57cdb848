//! Cards in real terminals: `kiso run` and the chat.

use super::{Web, asking, plan, planned, says};
use crate::chat::{Terminal, piped};
use crate::harness::{Home, wait_until};
use serde_json::json;

/// `kiso run` at a terminal.
fn run(home: &Home, text: &str) -> Terminal {
    let mut terminal = Terminal::open(home, &["run", text], &[]);
    terminal.prompts("for a [m]onth:");
    terminal
}

#[test]
fn a_run_in_a_terminal_asks_there() {
    let web = Web::start();
    let home = asking(&web);
    let mut terminal = run(&home, &format!("fetch url={}", web.url("a")));
    terminal.shows(&format!("1. fetch (task 1): GET to {}", web.address));
    terminal.keys("perhaps\n");
    terminal.shows("answer with y (all), n (none)");
    terminal.keys("7\n");
    terminal.shows("has the numbers 1 to 1, and not 7");
    assert_eq!(web.asked(), [""; 0]);
    terminal.keys("y\n");
    terminal.shows("Rain in Oslo");
    assert_eq!((terminal.code(), web.asked()), (0, vec!["/a".to_owned()]));

    let mut terminal = run(&home, &format!("fetch url={}", web.url("b")));
    terminal.keys("n\n");
    terminal.shows("refused by the user");
    assert_ne!(terminal.code(), 0);

    // Accepted for the whole session: the next call does not ask.
    let mut terminal = run(&home, &format!("fetch url={}", web.url("c")));
    terminal.keys("s\n");
    terminal.shows("Rain in Oslo");
    assert_eq!(terminal.code(), 0);
    home.kiso(&["run", &format!("fetch url={}", web.url("d"))]).ok().prints(&["Rain in Oslo"]);
    assert_eq!(web.asked(), ["/a", "/c", "/d"]);

    // Ctrl-C while the card is pending.
    home.kiso(&["approval", "forget", "1"]).ok();
    let mut terminal = run(&home, &format!("fetch url={}", web.url("e")));
    terminal.keys("\x03");
    assert_ne!(terminal.code(), 0);
    assert_eq!(web.asked().len(), 3);
}

#[test]
fn some_of_a_card_are_accepted_by_their_numbers() {
    let web = Web::start();
    let fetch = |path: &str| json!({ "type": "skill", "skill": "fetch", "args": { "url": web.url(path) } });
    let (home, _model) =
        planned(&web, &[plan(&[fetch("a"), fetch("b"), fetch("c")]), plan(&[]), says("Two of three.")]);
    let mut terminal = Terminal::open(&home, &["run", "what is the weather?"], &[]);
    terminal.prompts("for a [m]onth, or numbers:");
    terminal.keys("1, 2\n");
    terminal.shows("Two of three.");
    terminal.code();
    let mut asked = web.asked();
    asked.sort();
    assert_eq!(asked, ["/a", "/b"]);
}

#[test]
fn a_chat_asks_above_its_prompt() {
    let web = Web::start();
    let home = asking(&web);
    let mut terminal = Terminal::open(&home, &[], &[]);
    terminal.prompts("default>");
    // An answer without a pending card is an ordinary message.
    terminal.keys("y\r");
    terminal.shows("\"y\" was not understood");
    terminal.keys(&format!("fetch url={}\r", web.url("a")));
    terminal.shows("approval 1: y accepts, n refuses");
    terminal.shows(&format!("GET to {}", web.address));
    // Other messages are answered meanwhile.
    terminal.keys("$ echo mean-$((1 + 1))while\r");
    terminal.shows("mean-2while");
    assert_eq!(web.asked(), [""; 0]);
    terminal.keys("y\r");
    terminal.shows("Approved 1 of approval 1");
    terminal.shows("Rain in Oslo");
    assert_eq!(web.asked(), ["/a"]);
    terminal.keys(&format!("fetch url={}\r", web.url("b")));
    terminal.shows("approval 2: y accepts");
    terminal.keys("no\r");
    terminal.shows("Refused approval 2");
    terminal.shows("refused by the user");
    // Ctrl-C stops the run that waits.
    terminal.keys(&format!("fetch url={}\r", web.url("c")));
    terminal.shows("approval 3: y accepts");
    terminal.keys("\x03");
    terminal.shows("stopping the run");
    wait_until("nothing to wait for", || home.kiso(&["--json", "approval", "list"]).ok().json_lines().is_empty());
    terminal.keys("\x04");
    terminal.code();
    assert_eq!(web.asked(), ["/a"]);
}

/// A chat whose lines come from a file answers a card by the command, and continues.
#[test]
fn a_chat_without_a_terminal_answers_by_its_next_line() {
    let web = Web::start();
    let home = asking(&web);
    let lines = format!("fetch url={}\n/approve 1\n$ echo then\n", web.url("a"));
    let ran = piped(&home, &["chat"], &lines);
    ran.ok().prints(&["/approve 1", "Approved 1 of approval 1", "Rain in Oslo", "then"]);
    assert_eq!(web.asked(), ["/a"]);
}
