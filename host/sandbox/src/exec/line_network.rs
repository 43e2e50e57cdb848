//! Network access of the processes of a line.

use crate::effect::network::Network;
use crate::skill::HttpRules;
use kiso_base::config::Network as NetworkConfig;
use std::sync::Arc;
use std::time::Duration;

/// The hosts that all processes of a line may reach, and the limits of the responses.
#[derive(Debug)]
pub(super) struct LineNetwork {
    pub network: Network,
    pub rules: Arc<HttpRules>,
}

impl LineNetwork {
    pub(super) fn new(network: Network, config: &NetworkConfig) -> Self {
        let rules = HttpRules {
            rules: Vec::new(),
            max_response: usize::try_from(config.max_response_mib << 20).unwrap_or(usize::MAX),
            connect_timeout: Duration::from_secs(config.connect_timeout_s),
        };
        Self { network, rules: Arc::new(rules) }
    }
}
