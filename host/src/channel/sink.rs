//! Checks labels before channels send: a reply leaves the machine, and data that must not leave it is withheld.

use kiso_base::config::Config;
use kiso_plan::label::Label;
use kiso_sandbox::effect::sink::Enforcement;

/// Replaces withheld text.
pub(super) const WITHHELD: &str =
    "This holds what may not be sent here. Read it in kiso itself: on its page, or with `kiso chat`.";

/// A destination of replies.
#[derive(Debug, Clone)]
pub struct ChannelSink {
    /// Such as "host:example.org" and "channel:telegram".
    destination: String,
    enforcement: Enforcement,
}

impl ChannelSink {
    pub fn new(config: &Config, destination: String) -> Self {
        Self { destination, enforcement: Enforcement::named(&config.policy.effects) }
    }

    /// Returns whether data with this label may be sent there. Logs data that may not.
    pub fn admits(&self, label: &Label) -> bool {
        if self.enforcement == Enforcement::Off || label.may_flow_to(&self.destination) {
            return true;
        }
        let sent = !self.enforcement.refuses();
        tracing::warn!(destination = self.destination, sent, "a reply holds what may not be sent there: {label}");
        sent
    }
}
