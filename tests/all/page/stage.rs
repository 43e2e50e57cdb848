//! A home, its daemon and a browser that is logged in: what a test of the page begins with.

#![allow(dead_code, reason = "the first screens use a part of it")]

use super::browser::{Browser, Tab};
use crate::harness::Home;
use crate::model_server::ModelServer;
use crate::served::Served;
use serde_json::json;
use std::process::Command;

/// Dropped in this order: what the tab still has to say is heard before its daemon is gone.
pub struct Stage {
    pub tab: Tab,
    pub daemon: Served,
    pub home: Home,
}

/// Messages are answered at once, and nothing is done in the background that a test has no script for.
const QUICK: &str = "[daemon]\ndebounce_ms = 1\n";

impl Stage {
    /// On the built-in model; none, loudly, where there is no browser.
    #[track_caller]
    pub fn reflex() -> Option<Stage> {
        Stage::with(Home::new(), QUICK)
    }

    /// On the scripted model.
    #[track_caller]
    pub fn scripted(server: &ModelServer) -> Option<Stage> {
        Stage::with(Home::new(), &scripted(server))
    }

    /// In this home, with this configuration.
    #[track_caller]
    pub fn with(home: Home, config: &str) -> Option<Stage> {
        Stage::prepared(home, config, |_| {})
    }

    /// The same with something done to the home when its store is there and nobody has it open.
    #[track_caller]
    pub fn prepared(home: Home, config: &str, prepare: impl FnOnce(&Home)) -> Option<Stage> {
        let browser = Browser::get()?;
        home.config(config);
        let token = home.kiso(&["--json", "token", "add", "suite", "--scope", "admin"]).json();
        prepare(&home);
        let mut daemon = Served::start_with(&home, &[], |_: &mut Command| {});
        daemon.token = Some(token["token"].as_str().expect("it is shown once").to_owned());
        let stage = Stage { tab: browser.tab(), daemon, home };
        stage.log_in(&stage.tab);
        Some(stage)
    }

    /// Where the page is, with what stands behind the `#`.
    pub fn url(&self, fragment: &str) -> String {
        format!("http://{}/{fragment}", self.daemon.address)
    }

    /// Logs a tab in with the token of the suite, and opens the page.
    #[track_caller]
    pub fn log_in(&self, tab: &Tab) {
        self.log_in_with(tab, self.daemon.token.as_deref().expect("there is one"));
    }

    #[track_caller]
    pub fn log_in_with(&self, tab: &Tab, token: &str) {
        // Any page of the daemon will do to ask from; the login itself has a test of its own.
        tab.goto(&self.url("health"));
        let status = tab.eval(&format!(
            "fetch('/login', {{ method: 'POST', headers: {{ 'content-type': 'application/json', 'x-kiso-page': '1' }},
              body: {} }}).then((answer) => answer.status)",
            json!(json!({ "token": token }).to_string())
        ));
        assert_eq!(status, 200, "the login failed\n{}", self.daemon.log());
        tab.goto(&self.url(""));
        tab.forget_requests();
    }
}

/// A configuration whose models are all the server's.
pub fn scripted(server: &ModelServer) -> String {
    format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         [routing]\nfast_path = false\n[llm]\nmax_retry_wait_s = 1\n{QUICK}",
        server.base_url()
    )
}
