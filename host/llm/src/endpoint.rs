//! Where a model is reached and with what patience; `config.toml` made into what the wire formats need.

use std::time::Duration;

use kiso_store::secret::SecretValue;

/// One model of one provider.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's name in `config.toml`.
    pub provider: String,
    /// The model as the provider calls it.
    pub model: String,
    /// Such as `https://api.openai.com/v1`; without a slash at its end.
    pub base_url: String,
    /// Sent as the provider wants it; `None` for local servers.
    pub key: Option<SecretValue>,
    pub patience: Timeouts,
    /// Whether the provider enforces a JSON Schema.
    pub schema: Support,
    /// Whether the model calls tools in the format's own way.
    pub tools: Support,
    /// Whether the model takes pictures.
    pub vision: Support,
    /// Whether the model takes recordings.
    pub audio: bool,
    /// Bytes of an answer, stream and all, after which the call is given up.
    pub max_response: usize,
}

impl Endpoint {
    /// `provider:model`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }
}

/// How long a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// From the request to the first byte of the answer's content.
    pub first_token: Duration,
    /// From one piece of the stream to the next.
    pub next_token: Duration,
    /// For the whole call.
    pub total: Duration,
}

/// Whether something of the format can be used that not every model or server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Support {
    /// Tried with the first call that wants it; a refusal is remembered, and the call repeated without.
    #[default]
    Probe,
    Yes,
    No,
}
