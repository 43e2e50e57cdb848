//! Two tabs, a lost connection, a daemon that is started anew: nothing is lost, and all agree.

use super::browser::{css, role};
use super::script::{server, talk, title};
use super::stage::{MESSAGE, Stage, say};
use crate::served::Served;

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
        tab.wait_of(css("[role=log] article:last-of-type"), "it.textContent.includes('three')");
    }
    // Who comes in the middle has all that was said.
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
    server.finish();
}

#[test]
fn a_lost_connection_is_shown_and_heals() {
    let server = server(&[talk("You are back.", ""), title("Back")]);
    let Some(stage) = Stage::scripted(&server) else { return };
    let tab = &stage.tab;
    stage.open("away");
    tab.wait_until("performance.getEntriesByType('resource').some((it) => it.name.includes('/events'))");
    tab.expects("ERR_INTERNET_DISCONNECTED").expects("ERR_NETWORK_CHANGED").expects("Failed to load resource");
    tab.set_offline(true);
    say(tab, "Do you hear me?");
    tab.shows("is away");
    tab.shows("waiting for the daemon");
    tab.audit("chat without a daemon");
    // What is not sent yet survives a reload of the page, once there is a network to load it from.
    tab.set_offline(false);
    tab.shows("You are back.");
    tab.wait_until("!document.body.innerText.includes('is away')");
    assert_eq!(tab.count(role("article", "You,")), 1, "it was sent once");
    server.finish();
}

/// The daemon is killed in the middle of a reply and started anew on the same port; the run goes on where it was, and the
/// draft is still there.
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
    stage.tab.shows("is away");
    assert!(stage.tab.text().contains("The first"), "what was said stays in view\n{}", stage.tab.describe());
    let again = server_again(half);
    let config = super::stage::scripted(&again);
    std::fs::write(stage.home.path().join("config.toml"), config).unwrap();
    let command = stage.home.command(&["--json", "serve", "--port", &port]);
    stage.daemon = Served::spawn(command);
    stage.daemon.token = token;
    stage.tab.shows(half);
    stage.tab.wait_gone(role("button", "Stop"));
    stage.tab.wait_until("!document.body.innerText.includes('is away')");
    assert_eq!(stage.tab.of(MESSAGE, "it.value"), "a draft");
    assert_eq!(stage.tab.count(role("article", "You,")), 1);
    stage.tab.reload();
    stage.tab.shows(half);
    stage.tab.wait_of(MESSAGE, "it.value === 'a draft'");
}

/// What the models still have to say after a restart.
fn server_again(text: &str) -> crate::model_server::ModelServer {
    server(&[super::script::reply("worker", text, ""), title("Halves")])
}
