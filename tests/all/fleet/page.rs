//! The Health screen of a home in a fleet.

use super::members::{Machine, begun};
use super::nats::Nats;
use crate::harness::root;
use crate::page::browser::{Browser, Tab, role};
use crate::page::stage::{Stage, manage};
use crate::page::themes::audit_in_both;
use serde_json::{Value, json};

/// The cells of the table of members, row by row.
#[track_caller]
fn members(tab: &Tab) -> Value {
    tab.eval("[...document.querySelectorAll('.health-fleet tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))")
}

#[test]
fn health_shows_who_is_in_the_fleet() {
    let (Some(nats), Some(browser)) = (Nats::start(), Browser::get()) else { return };
    let (pi, desk) = (
        Machine::new("pi", &nats, &nats.url(), ""),
        Machine::new("desk", &nats, &nats.url(), "labels = [\"gpu\", \"big\"]\n"),
    );
    let token = |scope: &str| {
        let made = pi.home.kiso(&["--json", "token", "add", scope, "--scope", scope]).json();
        made["token"].as_str().expect("it is shown once").to_owned()
    };
    let (admin, guest) = (token("admin"), token("chat"));
    begun(&pi);
    let mut daemon = pi.start();
    pi.owns();
    let _standby = desk.start();
    daemon.token = Some(admin);
    let stage = Stage { tab: browser.tab(), daemon, home: pi.home };
    stage.log_in(&stage.tab);
    let tab = &stage.tab;
    manage(tab, "Health");
    tab.wait_for(role("region", "Fleet"));
    // Changes of another machine appear without a reload.
    let version = env!("CARGO_PKG_VERSION");
    let both = json!([
        ["desk", "Stands by", "gpu, big", "just now", version],
        ["pi", "Owns the home", "", "just now", version],
    ]);
    tab.wait("both are there", || members(tab) == both);
    let epoch = stage.daemon.get("/fleet")["epoch"].as_u64().unwrap();
    tab.wait_of(role("region", "Fleet"), &format!("it.innerText.includes('pi owns the home (epoch {epoch})')"));
    audit_in_both(tab, "health of a fleet");
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        tab.eval("document.querySelector('.health-fleet').scrollIntoView({ block: 'end' })");
        let folder = root().join("target/page");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("fleet.png"), tab.screenshot()).unwrap();
    }
    tab.check();

    // A user who is not an administrator sees no machines, and the page does not request them.
    let tab = browser.tab();
    stage.log_in_with(&tab, &guest);
    manage(&tab, "Health");
    tab.wait_for(role("region", "Machine"));
    assert!(!tab.has(role("region", "Fleet")) && tab.requests_to("/fleet").is_empty());
    tab.check();
}
