//! The setup for tests of the page: a home, its daemon, and a browser that is logged in.

#![allow(dead_code, reason = "the first screens use a part of it")]

use super::browser::{Browser, Find, Tab, role};
use crate::harness::{Home, own_port};
use crate::model_server::ModelServer;
use crate::served::Served;
use serde_json::json;
use std::io::{Read, Write};
use std::process::Command;

/// Fields are dropped in this order: the tab's last events arrive before its daemon ends.
pub(crate) struct Stage {
    pub tab: Tab,
    pub daemon: Served,
    pub home: Home,
}

/// The composer's text field.
pub(crate) const MESSAGE: Find<'_> = Find::Role("textbox", "Message");

/// The account menu, which is only visible after logging in.
pub(crate) const ACCOUNT: Find<'_> = Find::Role("button", "Account and theme");

/// Messages are processed at once, and no unscripted work runs in the background.
pub(crate) const QUICK: &str = "[daemon]\ndebounce_ms = 1\n";

impl Stage {
    /// A stage with the built-in model. Returns `None`, with a message, if there is no browser.
    #[track_caller]
    pub(crate) fn reflex() -> Option<Stage> {
        Stage::with(Home::new(), QUICK)
    }

    /// A stage with the scripted model.
    #[track_caller]
    pub(crate) fn scripted(server: &ModelServer) -> Option<Stage> {
        Stage::with(Home::new(), &scripted(server))
    }

    /// A stage with this home and configuration.
    #[track_caller]
    pub(crate) fn with(home: Home, config: &str) -> Option<Stage> {
        Stage::prepared(home, config, |_| {})
    }

    /// The same; `prepare` changes the home after its store was created and before the daemon starts.
    #[track_caller]
    pub(crate) fn prepared(home: Home, config: &str, prepare: impl FnOnce(&Home)) -> Option<Stage> {
        let browser = Browser::get()?;
        home.config(config);
        let token = home.kiso(&["--json", "token", "add", "suite", "--scope", "admin"]).json();
        prepare(&home);
        let mut daemon = Served::start_on(own_port(), &home, &[], |_: &mut Command| {});
        daemon.token = Some(token["token"].as_str().expect("it is shown once").to_owned());
        let stage = Stage { tab: browser.tab(), daemon, home };
        stage.log_in(&stage.tab);
        Some(stage)
    }

    /// The page's URL with this fragment after the `#`.
    pub(crate) fn url(&self, fragment: &str) -> String {
        format!("http://{}/{fragment}", self.daemon.address)
    }

    /// Opens a session, and waits for its composer.
    #[track_caller]
    pub(crate) fn open(&self, session: &str) {
        self.show(&self.tab, session);
    }

    #[track_caller]
    pub(crate) fn show(&self, tab: &Tab, session: &str) {
        tab.goto(&self.url(&format!("#/s/{session}")));
        tab.wait_for(MESSAGE);
    }

    /// Scrolls the conversation up by one turn of the wheel.
    #[track_caller]
    pub(crate) fn scroll_up(&self) {
        self.tab.scroll(role("log", "Messages"), -1_500);
    }

    /// Writes a message and sends it by keyboard.
    #[track_caller]
    pub(crate) fn say(&self, text: &str) {
        say(&self.tab, text);
    }

    /// Logs a tab in with the suite's token, and opens the page.
    #[track_caller]
    pub(crate) fn log_in(&self, tab: &Tab) {
        self.log_in_with(tab, self.daemon.token.as_deref().expect("there is one"));
    }

    #[track_caller]
    pub(crate) fn log_in_with(&self, tab: &Tab, token: &str) {
        let (name, value) = self.cookie(token);
        tab.set_cookie(&self.url(""), &name, &value);
        expects_new_sessions(tab);
        tab.goto(&self.url(""));
        tab.wait_for(ACCOUNT);
        // Without a fragment, the page opens the last session.
        tab.wait_until("location.hash !== ''");
    }
}

/// Opens a screen under "Manage".
#[track_caller]
pub(crate) fn manage(tab: &Tab, screen: &str) {
    unfold(tab);
    tab.click(role("link", screen));
}

/// Unfolds "Manage" if it is folded.
#[track_caller]
pub(crate) fn unfold(tab: &Tab) {
    tab.wait_for(role("button", "Manage"));
    if tab.eval_on(role("button", "Manage"), "it.getAttribute('aria-expanded')") == "false" {
        tab.click(role("button", "Manage"));
    }
}

impl Stage {
    /// Logs in with a token and returns the cookie.
    #[track_caller]
    fn cookie(&self, token: &str) -> (String, String) {
        let body = json!({ "token": token }).to_string();
        let mut stream = self.daemon.connect();
        write!(
            stream,
            "POST /login HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.daemon.address,
            body.len()
        )
        .expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let cookie =
            answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next()?.split_once('='));
        let (name, value) = cookie.unwrap_or_else(|| panic!("no cookie: {answer}"));
        (name.to_owned(), value.to_owned())
    }
}

/// An expression for the exports of a page module, as in `module("lib/ui.js")`.
pub(crate) fn module(name: &str) -> String {
    let scope = name.trim_end_matches(".js").replace(['/', '-'], "_");
    format!("(await import(new URL('app.js', document.querySelector('script[type=module]').src))).${scope}")
}

/// Opening a session without messages requests things that do not exist yet, and the browser reports that on the console.
pub(crate) fn expects_new_sessions(tab: &Tab) {
    tab.expects("answer: 404 /sessions/").expects("answer: 404 /status/");
}

#[track_caller]
pub(crate) fn log_out(tab: &Tab) {
    tab.click(ACCOUNT);
    tab.click(role("menuitem", "Log out"));
    // The dialog says how to log in again.
    tab.wait_for(role("dialog", "Log out?"));
    tab.click(role("button", "Log out"));
}

/// Writes a message in a tab and sends it.
#[track_caller]
pub(crate) fn say(tab: &Tab, text: &str) {
    tab.focus(MESSAGE);
    tab.insert_text(text);
    tab.press("Enter");
}

/// A configuration with the server's model for all roles.
pub(crate) fn scripted(server: &ModelServer) -> String {
    format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [routing]\nfast_path = false\n[llm]\nmax_retry_wait_s = 1\n{QUICK}",
        server.base_url()
    )
}
