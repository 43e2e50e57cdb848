//! Tests that know nothing of a fleet, with each home in one: `tests/fleet/everywhere` runs them so.

use super::Home;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of a NATS server: each home that is served is in a fleet then.
const TEST_FLEET: &str = "KISO_TEST_FLEET";

/// What begins the part of `config.toml` that is written here, and ends it.
const MARKS: [&str; 2] = ["\n# In a fleet, as all are.\n", "# Until here.\n"];

/// Whether each home that is served is in a fleet.
pub(crate) fn is_so() -> bool {
    std::env::var_os(TEST_FLEET).is_some()
}

/// Has a home in a fleet of its own on that server, whose only member is its daemon. Without a server, it stays what it is.
pub(crate) fn join(home: &Home) {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    let Ok(url) = std::env::var(TEST_FLEET) else { return };
    if !home.path().exists() {
        home.kiso(&["skill", "list"]).ok();
    }
    let path = home.path().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap_or_default();
    if config.contains("[fleet]") {
        return;
    }
    let name = format!("{}-{}", std::process::id(), BEGUN.fetch_add(1, Ordering::Relaxed));
    let [from, to] = MARKS;
    let fleet = format!("{from}[fleet]\nurl = \"{url}\"\nname = \"{name}\"\nmember = \"only\"\nlease_s = 3\n{to}");
    std::fs::write(&path, config + &fleet).expect("there is room");
    home.kiso(&["fleet", "begin"]).ok();
}

/// A configuration as it is written: while the daemon runs, the part that is written here stays.
pub(crate) fn with_fleet(home: &Home, text: &str) -> String {
    let before = std::fs::read_to_string(home.path().join("config.toml")).unwrap_or_default();
    match before.split_once(MARKS[0]) {
        Some((_, fleet)) if is_so() && is_served(home) => {
            let fleet = fleet.split_once(MARKS[1]).map_or(fleet, |(fleet, _)| fleet);
            format!("{text}{}{fleet}{}", MARKS[0], MARKS[1])
        }
        _ => text.to_owned(),
    }
}

fn is_served(home: &Home) -> bool {
    UnixStream::connect(home.path().join("kiso.sock")).is_ok()
}

/// Takes it back to one machine for a command, where its daemon has ended: of a fleet's home, commands are refused then.
pub(crate) fn leave(home: &Home, args: &[&str]) {
    if !is_so() || args.iter().any(|arg| ["fleet", "serve"].contains(arg)) {
        return;
    }
    let path = home.path().join("config.toml");
    let Ok(config) = std::fs::read_to_string(&path) else { return };
    let [from, to] = MARKS;
    let Some((before, rest)) = config.split_once(from) else { return };
    if is_served(home) {
        return;
    }
    let after = rest.split_once(to).map_or("", |(_, after)| after);
    std::fs::write(&path, format!("{before}{after}")).expect("there is room");
}
