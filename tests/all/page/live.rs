//! Two tabs, a lost connection, a restarted daemon: nothing is lost, and all tabs agree.

use super::browser::{css, role};
use super::script::{server, talk, title};
use super::stage::{MESSAGE, Stage, module, say};
use crate::served::Served;
use serde_json::json;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn two_tabs_agree() {
    let server = server(&[
        talk("One two three four five six.", "pieces = 6\nfault = \"stepped\""),
        title("Counting"),
        talk("And back.", ""),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let (one, two) = (&stage.tab, stage.tab.beside());
    stage.open("both");
    stage.show(&two, "both");
    say(one, "Count");
    two.wait_for(role("article", "You,"));
    one.wait("the model writes", || server.held() == 1);
    server.release_many(3);
    for tab in [one, &two] {
        tab.wait_of(css("[role=log] article[aria-label^=kiso]"), "it.textContent.includes('three')");
    }
    // A tab that is opened in the middle shows everything so far.
    let three = one.beside();
    stage.show(&three, "both");
    three.wait_of(
        css("[role=log] article:last-of-type"),
        "it.textContent.includes('One two') && it.textContent.includes('three')",
    );
    server.release_many(3);
    for tab in [one, &two, &three] {
        tab.shows("One two three four five six.");
        tab.wait_for(role("link", "Counting"));
    }
    say(&two, "And back?");
    one.shows("And back.");
    for tab in [one, &two, &three] {
        tab.wait("each message stands once", || {
            tab.count(role("article", "You,")) == 2 && tab.count(role("button", "Copy reply")) == 2
        });
    }
    super::script::finish(server);
}

/// A message that joins a run is shown between the earlier reply and its own.
#[test]
fn a_follow_up_stands_before_its_reply() {
    let server = server(&[
        talk("One two.", "pieces = 2\nfault = \"stepped\""),
        talk("Three four.", "pieces = 2\nfault = \"stepped\""),
        title("Counting"),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("more");
    say(tab, "Count");
    tab.wait_for(role("article", "You,"));
    tab.wait("the model writes", || server.held() == 1);
    say(tab, "and go on");
    tab.wait("both are said", || tab.count(role("article", "You,")) == 2);
    server.release_many(2);
    tab.wait("the model goes on", || server.held() == 1);
    server.release_many(2);
    tab.shows("Three four.");
    let order = "[...document.querySelectorAll('[role=log] article')].map((one) =>
        ['Count', 'One two.', 'and go on', 'Three four.'].find((text) => one.textContent.includes(text)))";
    let expected = json!(["Count", "One two.", "and go on", "Three four."]);
    tab.wait("each stands in its place", || tab.eval(order) == expected);
    tab.reload();
    tab.wait("and after a reload", || tab.eval(order) == expected);
    super::script::finish(server);
}

/// A message shows a sign of progress at once, and does not wait for another client's message.
#[test]
fn a_message_is_worked_on_at_once() {
    let server = server(&[talk("Here.", "fault = \"stepped\""), title("Now")]);
    let home = crate::harness::Home::new();
    // A message that waited would do so for longer than any test.
    let config = super::stage::scripted(&server).replace(super::stage::QUICK, "[daemon]\ndebounce_ms = 60000\n");
    let Some(stage) = Stage::with(home, &config) else { return };
    let tab = &stage.tab;
    stage.open("now");
    // From another client, and therefore first.
    let body = json!({ "session": "now", "text": "Before" }).to_string();
    stage.daemon.request("POST", "/msg", Some(&body)).expect(202);
    tab.shows("Before");
    tab.shows("Thinking…");
    say(tab, "Now");
    tab.wait("the model is asked", || server.held() == 1);
    let asked = server.requests().pop().expect("it was asked").prompt();
    let at = |text: &str| asked.find(text).unwrap_or_else(|| panic!("{text} is not in {asked}"));
    assert!(at("Before") < at("Now"), "{asked}");
    server.release_many(4);
    tab.shows("Here.");
    super::script::finish(server);
}

/// A connection between browser and daemon that the test can break.
struct Line {
    address: String,
    broken: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Line {
    fn to(daemon: &str) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (broken, open): (Arc<AtomicBool>, Arc<Mutex<Vec<TcpStream>>>) = Default::default();
        let (refuses, opened, daemon) = (broken.clone(), open.clone(), daemon.to_owned());
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                if refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(to) = TcpStream::connect(&daemon) else { continue };
                opened.lock().unwrap().extend([from.try_clone().unwrap(), to.try_clone().unwrap()]);
                for (mut from, mut to) in [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)] {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        Line { address, broken, open }
    }

    fn cut(&self) {
        self.broken.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.broken.store(false, Ordering::SeqCst);
    }
}

#[test]
fn a_lost_connection_is_shown_and_heals() {
    let server = server(&[
        talk("One two three four five six.", "pieces = 6\nfault = \"stepped\""),
        title("Back"),
        talk("You are back.", ""),
    ]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let line = Line::to(&stage.daemon.address);
    let tab = stage.tab.beside();
    tab.expects("net::ERR_");
    tab.goto(&format!("http://{}/#/s/away", line.address));
    tab.wait_for(MESSAGE);
    say(&tab, "Count");
    tab.wait("the model writes", || server.held() == 1);
    server.release_many(2);
    tab.wait_of(css("[role=log] article:last-of-type"), "it.textContent.includes('One')");
    line.cut();
    tab.shows("is offline");
    tab.audit("chat without a daemon");
    // Replies in the meantime are missed, and loaded afterwards.
    server.release_many(2);
    say(&tab, "Do you hear me?");
    tab.shows("Waiting for kiso");
    tab.focus(MESSAGE);
    tab.type_text("a draft");
    line.mend();
    tab.wait_until("!document.body.innerText.includes('is offline')");
    tab.wait_of(css("[role=log] article[aria-label^=kiso]"), "it.textContent.includes('One two')");
    server.release_many(2);
    tab.shows("One two three four five six.");
    tab.shows("You are back.");
    assert_eq!(tab.count(role("article", "You,")), 2, "each message was sent once\n{}", tab.describe());
    assert_eq!(tab.eval_on(MESSAGE, "it.value"), "a draft");
    // The page shows a reply while it is streamed; it is stored a moment later.
    let sent = || stage.daemon.get("/sessions/away/messages")["items"].as_array().unwrap().len();
    tab.wait("both replies are kept", || sent() >= 4);
    assert_eq!(sent(), 4);
    super::script::finish(server);
}

/// The daemon is killed in the middle of a reply and restarted on the same port; the run continues, and the draft is still there.
#[test]
fn a_restart_of_the_daemon_loses_neither_draft_nor_text() {
    let half = "The first half, and the second half.";
    let server = server(&[talk(half, "pieces = 6\nfault = \"stall_mid_stream\""), title("Halves")]);
    let Some(mut stage) = Stage::scripted(&server) else { return };
    stage
        .tab
        .expects("ERR_CONNECTION")
        .expects("ERR_INCOMPLETE")
        .expects("Failed to load resource")
        .expects("ERR_EMPTY");
    stage.open("restart");
    stage.say("Tell me of both halves");
    stage.tab.wait_of(css("[role=log] article:last-of-type"), "it.textContent.includes('The first')");
    stage.tab.focus(MESSAGE);
    stage.tab.type_text("a draft");
    let (port, token) = (stage.daemon.address.rsplit(':').next().unwrap().to_owned(), stage.daemon.token.clone());
    stage.daemon.signal(rustix::process::Signal::KILL);
    stage.daemon.ended();
    stage.tab.shows("is offline");
    assert!(stage.tab.text().contains("The first"), "what was said stays in view\n{}", stage.tab.describe());
    let again = server_again(half);
    let config = super::stage::scripted(&again);
    std::fs::write(stage.home.path().join("config.toml"), config).unwrap();
    let command = stage.home.command(&["--json", "serve", "--port", &port]);
    stage.daemon = Served::spawn(command);
    stage.daemon.token = token;
    stage.tab.shows(half);
    stage.tab.wait_gone(role("button", "Stop"));
    stage.tab.wait_until("!document.body.innerText.includes('is offline')");
    assert_eq!(stage.tab.eval_on(MESSAGE, "it.value"), "a draft");
    assert_eq!(stage.tab.count(role("article", "You,")), 1);
    stage.tab.reload();
    stage.tab.shows(half);
    stage.tab.wait_of(MESSAGE, "it.value === 'a draft'");
}

/// The remaining answers of the models after a restart.
fn server_again(text: &str) -> crate::model_server::ModelServer {
    server(&[super::script::reply("worker", text, ""), title("Halves")])
}

/// A session may be opened before the listing knows it: it looks new until the listing is updated.
#[test]
fn a_session_that_begins_as_it_is_opened_does_not_stay_empty() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    stage.daemon.reply(stage.daemon.send("chat-late", "$ echo hello"));
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("link", "$ echo hello"));
    let sessions = module("lib/sessions.js");
    tab.eval(&format!(
        "(async () => {{
          const {{ sessions }} = {sessions};
          const known = sessions.get();
          const unknown = () => sessions.get().items.length && sessions.set({{ ...known, items: [] }});
          // Also while another listing is loading.
          const waits = sessions.watch(unknown);
          globalThis.comes = () => {{ waits(); sessions.set(known); }};
          unknown();
          location.hash = '#/s/chat-late';
        }})()"
    ));
    tab.shows("What would you like to do?");
    tab.eval("comes()");
    tab.wait_of(role("log", ""), "it.innerText.includes('hello')");
}

/// A listing requested before a change does not undo it, and neither does one that overlaps with it.
#[test]
fn an_older_listing_undoes_nothing() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(role("link", "Runs"));
    let (sessions, events) = (module("lib/sessions.js"), module("lib/events.js"));
    tab.eval(&format!("(async () => {{ globalThis.lib = {{ ...{sessions}, ...{events} }}; }})()"));
    tab.eval(
        "(() => {
          const [fetched, held] = [globalThis.fetched = globalThis.fetch, []];
          globalThis.held = held;
          globalThis.fetch = async (...args) => {
            const answer = await fetched(...args);
            if (held && String(args[0]).includes('placement=listed')) await new Promise((go) => held.push(go));
            return answer;
          };
          lib.on('session', (data) => { if (data.title === 'A better name') globalThis.renamed = true; });
          lib.on('deleted', ({ name }) => { if (name === 'chat-gone') globalThis.deleted = true; });
        })()",
    );
    for session in ["chat-late", "chat-gone"] {
        stage.daemon.reply(stage.daemon.send(session, "$ echo hello"));
    }
    // An event makes the page load the listing; the response is delayed.
    tab.wait_until("held.length > 0");
    let title = json!({ "title": "A better name" }).to_string();
    stage.daemon.request("PATCH", "/sessions/chat-late", Some(&title)).expect(200);
    stage.daemon.request("DELETE", "/sessions/chat-gone", None).expect(200);
    tab.wait_until("globalThis.renamed && globalThis.deleted");
    tab.eval("lib.loadSessions(), 0");
    tab.eval("held.forEach((go) => go()), held.length = 0");
    tab.wait_until("held.length > 0");
    tab.eval("held.forEach((go) => go()), held.length = 0, globalThis.fetch = fetched");
    tab.wait_until("lib.sessions.get().items.map((one) => one.title).join() === 'A better name'");
}

/// Failed requests are repeated after a reconnect, and a text written meanwhile stays visible.
#[test]
fn what_could_not_be_loaded_comes_when_the_daemon_is_back() {
    let Some(stage) = Stage::reflex() else { return };
    stage.daemon.reply(stage.daemon.send("first", "$ echo one"));
    stage.daemon.reply(stage.daemon.send("second", "$ echo two"));
    let line = Line::to(&stage.daemon.address);
    let tab = stage.tab.beside();
    tab.expects("net::ERR_");
    tab.goto(&format!("http://{}/#/usage", line.address));
    tab.wait_for(role("heading", "Models"));
    tab.goto(&format!("http://{}/#/s/first", line.address));
    tab.wait_of(role("log", ""), "it.innerText.includes('one')");
    line.cut();
    tab.shows("is offline");
    tab.eval("location.hash = '#/s/second', 0");
    tab.shows("kiso isn’t responding");
    say(&tab, "am I lost?");
    tab.wait_for(role("article", "You, sending"));
    tab.shows("am I lost?");
    tab.audit("a conversation that could not be loaded");
    line.mend();
    tab.wait_of(role("log", ""), "it.innerText.includes('two') && it.innerText.includes('am I lost?')");
    tab.wait_until("!document.body.innerText.includes('isn’t responding')");
    line.cut();
    tab.shows("is offline");
    tab.eval("location.hash = '#/usage', 0");
    tab.shows("kiso isn’t responding");
    line.mend();
    tab.wait_for(role("region", "Today"));
    tab.wait_until("!document.body.innerText.includes('isn’t responding')");
    assert_eq!(tab.count(role("alert", "")), 0, "{}", tab.describe());
}
