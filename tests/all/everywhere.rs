//! Runs tests that do not use a fleet with each home in one; `tests/fleet/everywhere` does this.

use super::Home;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of a NATS server. If it is set, each served home is in a fleet.
const TEST_FLEET: &str = "KISO_TEST_FLEET";

/// The first and last line of the part of `config.toml` that this module writes.
const MARKS: [&str; 2] = ["\n# In a fleet, as all are.\n", "# Until here.\n"];

/// Whether each served home is in a fleet.
pub(crate) fn is_so() -> bool {
    std::env::var_os(TEST_FLEET).is_some()
}

/// Makes the home a fleet of its own on that server, with its daemon as the only member. Does nothing without a server.
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

/// The configuration to write: while the daemon runs, it keeps the fleet's part.
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

/// Makes the home independent again for a command after its daemon ended, because a fleet's home refuses commands then.
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
