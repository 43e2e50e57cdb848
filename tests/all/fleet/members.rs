//! Members of a fleet: machines that share one home, each a process with its own directory.

use super::cable::Cable;
use super::nats::Nats;
use crate::harness::{Home, own_port, wait_until};
use crate::served::Served;
use std::os::unix::fs::OpenOptionsExt;

/// Lease in seconds in tests: the minimum that can be configured.
const LEASE_S: u64 = 3;

/// A machine of a fleet.
pub(super) struct Machine {
    pub home: Home,
    pub name: &'static str,
    port: u16,
}

impl Machine {
    /// A machine with this fleet's key that connects to NATS at `url`.
    pub(super) fn new(name: &'static str, nats: &Nats, url: &str, more: &str) -> Machine {
        let home = Home::new();
        std::fs::create_dir_all(home.path()).expect("there is room");
        let key = home.path().join("key");
        let mut options = std::fs::OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(key);
        made.and_then(|mut file| std::io::Write::write_all(&mut file, &[7; 32])).expect("there is room");
        home.config(&format!(
            "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[fleet]\nurl = \"{url}\"\ncredentials = \"{}\"\nmember = \"{name}\"\nlease_s = {LEASE_S}\n{more}",
            nats.credentials().display()
        ));
        // The port stays the same after the process has replaced itself.
        Machine { home, name, port: own_port() }
    }

    /// A machine behind a link that can be frozen.
    pub(super) fn behind(name: &'static str, nats: &Nats, cable: &Cable, more: &str) -> Machine {
        Machine::new(name, nats, &cable.url(), more)
    }

    /// Sets the duration of a lease in seconds.
    pub(super) fn leases(&self, seconds: u64) {
        let config = self.home.path().join("config.toml");
        let text = std::fs::read_to_string(&config).expect("it has a configuration");
        let before = format!("lease_s = {LEASE_S}\n");
        assert!(text.contains(&before), "{text}");
        std::fs::write(&config, text.replace(&before, &format!("lease_s = {seconds}\n"))).expect("there is room");
    }

    /// Starts its daemon.
    #[track_caller]
    pub(super) fn start(&self) -> Served {
        let mut command = self.home.command(&["--json", "serve", "--port", &self.port.to_string()]);
        command.env_remove("KISO_FLEET_DRAINED");
        Served::spawn(command)
    }

    /// The owner of the home as this machine sees it.
    pub(super) fn owner(&self) -> Option<String> {
        let lines = self.home.kiso(&["--json", "fleet", "status"]).json_lines();
        lines[0]["owner"].as_str().map(str::to_owned)
    }

    /// Waits until this machine owns the home.
    #[track_caller]
    pub(super) fn owns(&self) {
        wait_until(&format!("{} owns the home", self.name), || self.owner().as_deref() == Some(self.name));
    }
}

/// Starts a fleet with the contents of the first machine's home.
#[track_caller]
pub(super) fn begun(first: &Machine) {
    first.home.kiso(&["fleet", "begin"]).ok();
}
