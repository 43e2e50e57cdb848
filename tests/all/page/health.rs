//! The daemon's state as shown by the page.

use super::browser::{Browser, Tab, css, role};
use super::stage::{Stage, manage};
use super::themes::audit_in_both;
use crate::harness::{Home, everywhere};
use serde_json::Value;

/// The figures of all groups, by name.
#[track_caller]
fn figures(tab: &Tab) -> Value {
    tab.eval("Object.fromEntries([...document.querySelectorAll('.health-groups dl > div')].map((row) => [...row.children].map((cell) => cell.innerText.trim())))")
}

#[test]
fn health_says_what_the_daemon_says() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    manage(tab, "Health");
    tab.wait_for(role("region", "Stored data"));
    let details = stage.daemon.get("/health/details");
    let warnings = details["warnings"].as_array().unwrap();
    let state = match warnings.len() {
        0 => "Healthy".to_owned(),
        1 => "Healthy, with 1 warning".to_owned(),
        many => format!("Healthy, with {many} warnings"),
    };
    tab.wait_of(
        role("region", "State"),
        &format!(
            "it.innerText.includes({:?}) && it.innerText.includes({:?})",
            state,
            details["version"].as_str().unwrap()
        ),
    );
    for warning in warnings {
        tab.shows(warning.as_str().unwrap());
    }
    tab.wait("its own stream is counted", || figures(tab)["Event streams"] == "1");
    let before = figures(tab);
    let shown = [
        ("Active runs", "running"),
        ("Queued messages", "queued"),
        ("Chats", "sessions"),
        ("Messages", "messages"),
        ("Runs", "runs"),
    ];
    for (name, key) in shown {
        assert_eq!(before[name], details[key].to_string(), "{name}: {before} {details}");
    }
    assert_eq!(before["Free model slots"], details["model_slots"]["free"].to_string());
    for name in ["Store", "Free on disk", "Memory"] {
        assert!(before[name].as_str().unwrap().ends_with('B'), "{name}: {before}");
    }
    let is_asked = !tab.requests_to("/fleet").is_empty();
    assert_eq!((tab.has(role("region", "Fleet")), is_asked), (everywhere::is_so(), everywhere::is_so()));
    // Figures are updated without a reload.
    stage.daemon.reply(stage.daemon.send("main", "$ echo hello"));
    tab.wait("the figures are new", || {
        let now = figures(tab);
        now["Chats"] == "1" && now["Messages"] == "2" && now["Runs"] == "1"
    });
    audit_in_both(tab, "health");

    // The configuration is folded, loaded when it is opened, and searchable.
    assert_eq!(tab.requests_to("/config").len(), 0);
    tab.click(css(".health-config > summary"));
    tab.wait_for(role("table", "Configuration"));
    tab.wait_of(role("table", "Configuration"), "it.tBodies[0].rows.length > 50");
    tab.focus(role("searchbox", "Search configuration"));
    tab.insert_text("debounce_ms");
    tab.wait_of(
        role("table", "Configuration"),
        "it.tBodies[0].rows.length === 1 && it.tBodies[0].innerText.trim().split(/\\s+/).join() === 'daemon.debounce_ms,1'",
    );
    audit_in_both(tab, "configuration");
    tab.insert_text("_that_is_not_there");
    tab.shows("No matching keys");
}

#[test]
fn health_names_servers_outside_the_sandbox() {
    let native =
        "[mcp.notes]\ncommand = [\"/bin/cat\"]\noutside_the_sandbox = true\nunconfined = true\nconnect_ports = [443]\n";
    let config = format!("{native}[mcp.units]\ncomponent = \"/srv/units.wasm\"\n");
    let Some(stage) = Stage::with(Home::new(), &config) else { return };
    let tab = &stage.tab;
    manage(tab, "Health");
    tab.wait_for(role("region", "MCP servers"));
    let shown = figures(tab);
    let notes = shown["notes"].as_str().unwrap();
    assert!(notes.starts_with("runs outside the sandbox, "), "{shown}");
    assert!(notes.contains("TCP port 443 of any host") || notes.contains("unconfined"), "{shown}");
    assert_eq!(shown["units"], "runs in the sandbox; cannot be used", "there is no such file: {shown}");
    audit_in_both(tab, "health with servers");
}

/// A stopped daemon is not shown as healthy.
#[test]
fn health_of_a_daemon_that_is_gone() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/health"));
    tab.shows("Healthy");
    tab.expects("ERR_INTERNET_DISCONNECTED").expects("ERR_NETWORK_CHANGED").expects("Failed to load resource");
    tab.set_offline(true);
    tab.click(role("button", "Refresh"));
    tab.shows("kiso isn’t responding");
    audit_in_both(tab, "health without a daemon");
    tab.set_offline(false);
    tab.shows("Healthy");
}

#[test]
fn a_guest_sees_the_state_and_no_configuration() {
    let Some(stage) = Stage::reflex() else { return };
    let token = stage.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let tab = Browser::get().expect("it is there").tab();
    stage.log_in_with(&tab, token["token"].as_str().unwrap());
    manage(&tab, "Health");
    tab.shows("Healthy");
    tab.wait_for(role("region", "Machine"));
    assert!(!tab.has(css(".health-config")) && !tab.text().contains("Configuration"));
    tab.check();
}
