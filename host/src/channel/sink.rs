//! What channels may be sent: a reply leaves the machine by them, and what may not leave it stays.

use kiso_base::config::Config;
use kiso_plan::label::Label;
use kiso_sandbox::effect::sink::Enforcement;

/// Stands in the place of what may not be sent.
pub(super) const WITHHELD: &str =
    "This holds what may not be sent here. Read it in kiso itself: on its page, or with `kiso chat`.";

/// A place that replies go to.
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

    /// Whether something with this label may be sent there. What is not sent stands in the log.
    pub fn admits(&self, label: &Label) -> bool {
        if self.enforcement == Enforcement::Off || label.may_flow_to(&self.destination) {
            return true;
        }
        let sent = !self.enforcement.refuses();
        tracing::warn!(destination = self.destination, sent, "a reply holds what may not be sent there: {label}");
        sent
    }
}
