//! The network access of a command line or of a call of a bundled skill, and the hosts that it wanted to reach and nobody has
//! allowed yet.
//!
//! [`kiso_plan::network`] has the rules. This is the state of one piece of work: clones share the wanted hosts.

use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::network::{NetworkDecision, NetworkRequest, NetworkRules, split_port};
use kiso_plan::plan::CallerScope;
use kiso_store::store::{Store, StoreError};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of hosts that one piece of work can request. Requests for more hosts are refused.
const MAX_WANTED: usize = 20;

/// The hosts that may be reached. The default allows none, and asks nobody.
#[derive(Debug, Clone, Default)]
pub struct Network(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: NetworkRules,
    role: CallerScope,
    /// Whether a person can be asked.
    asks: bool,
    wanted: Mutex<Vec<WantedHost>>,
    /// Hosts whose refusal was reported.
    told: Mutex<BTreeSet<String>>,
    rolled_back: AtomicBool,
}

impl Default for Inner {
    fn default() -> Self {
        let (wanted, told, rolled_back) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self { rules: NetworkRules::default(), role: CallerScope::User, asks: false, wanted, told, rolled_back }
    }
}

/// A host that work wanted to reach, and that somebody has to allow first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedHost {
    /// With its port, unless that is the scheme's default.
    pub host: String,
    /// In upper case.
    pub method: String,
    pub reads: bool,
    /// The reason, if the rules of labels need the approval.
    pub because: Option<String>,
}

impl Network {
    /// With `asks`, work that wants an undecided host is stopped, so that a person is asked.
    pub fn new(rules: NetworkRules, role: CallerScope, asks: bool) -> Self {
        Self(Arc::new(Inner { rules, role, asks, ..Inner::default() }))
    }

    /// For work by hand, with the rules of its session. Nobody is asked.
    pub async fn by_hand(
        store: &Store,
        config: &Config,
        session: &SessionName,
        role: CallerScope,
    ) -> Result<Self, StoreError> {
        Ok(Self::new(rules_of(store, config, session).await?, role, false))
    }

    /// Returns the decision of the rules about a request.
    pub fn decide(&self, host: &str, (method, reads): (&str, bool), label: &Label) -> NetworkDecision {
        let (name, port) = split_port(host);
        let request = NetworkRequest { host: name, port, method, reads, role: self.0.role, label };
        self.0.rules.decide(&request)
    }

    /// Notes a host that somebody has to allow first. Returns whether a person can be asked.
    pub fn want(&self, wanted: WantedHost) -> bool {
        // Only an administrator can allow hosts near this machine, so others are not asked.
        if !self.0.asks || is_near(&wanted.host) && self.0.role != CallerScope::Admin {
            return false;
        }
        let mut all = lock(&self.0.wanted);
        if !all.contains(&wanted) {
            if all.len() >= MAX_WANTED {
                return false;
            }
            all.push(wanted);
        }
        true
    }

    /// The hosts that were wanted.
    pub fn wanted(&self) -> Vec<WantedHost> {
        lock(&self.0.wanted).clone()
    }

    /// Whether it wanted a host that a person is asked about.
    pub fn is_wanting(&self) -> bool {
        !lock(&self.0.wanted).is_empty()
    }

    /// Notes that the work was rolled back, so that it can be repeated after the answer.
    pub fn set_rolled_back(&self) {
        self.0.rolled_back.store(true, Relaxed);
    }

    /// Whether the work was rolled back.
    pub fn is_rolled_back(&self) -> bool {
        self.0.rolled_back.load(Relaxed)
    }

    /// Whether this is the first report about this host.
    pub fn tell(&self, host: &str) -> bool {
        let mut told = lock(&self.0.told);
        told.len() < MAX_WANTED && told.insert(host.to_owned())
    }
}

/// The rules for the command lines of a session, apart from any run.
pub async fn rules_of(store: &Store, config: &Config, session: &SessionName) -> Result<NetworkRules, StoreError> {
    let of = session.clone();
    let remembered = store.read(move |view| view.network_rules(&of)).await?;
    let (configured, default) = (config.network_rules.clone(), config.network_default());
    Ok(NetworkRules { configured, remembered, default, ..NetworkRules::default() })
}

/// Whether the name alone shows that a host is in a local network: an address outside of the public internet, or a name that only
/// a local network has. Nothing is looked up.
pub fn is_near(host: &str) -> bool {
    let (name, _) = split_port(host);
    if let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return !kiso_base::net::is_public(ip);
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let local = ["localhost", "local", "lan", "internal", "intranet", "home", "corp", "private"];
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || local.contains(&last) || name.ends_with(".home.arpa")
}

/// The command that would allow a request, for the message of its refusal.
pub fn command_to_allow(host: &str, method: &str, reads: bool, private: bool) -> String {
    let method = if reads { String::new() } else { format!(" --method {method}") };
    let private = if private { " --private" } else { "" };
    format!("kiso network allow {host}{method}{private}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_the_own_network_is_known_by_its_name() {
        for (host, near) in [
            ("127.0.0.1", true),
            ("127.0.0.1:8080", true),
            ("[::1]:80", true),
            ("192.168.1.1", true),
            ("localhost:3000", true),
            ("LOCALHOST.", true),
            ("printer", true),
            ("nas.local", true),
            ("a.home.arpa", true),
            ("example.org", false),
            ("1.1.1.1", false),
            ("local.example.org", false),
        ] {
            assert_eq!(is_near(host), near, "{host}");
        }
    }

    #[test]
    fn nothing_near_is_asked_for_by_others() {
        let want = |role, host: &str| {
            let network = Network::new(NetworkRules::default(), role, true);
            let (host, method) = (host.to_owned(), "GET".to_owned());
            network.want(WantedHost { host, method, reads: true, because: None })
        };
        assert!(want(CallerScope::User, "example.org") && want(CallerScope::Admin, "127.0.0.1"));
        assert!(!want(CallerScope::User, "127.0.0.1"));
        let host = || WantedHost { host: "a.example".into(), method: "GET".into(), reads: true, because: None };
        assert!(!Network::default().want(host()));
    }
}
