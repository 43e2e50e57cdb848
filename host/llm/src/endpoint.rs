//! The address, key and timeouts of a model: `config.toml` in the form that the wire formats need.

use std::time::Duration;

use kiso_store::secret::SecretValue;

/// One model of one provider.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's name in `config.toml`.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Such as `https://api.openai.com/v1`, without a trailing slash.
    pub base_url: String,
    /// Sent in the provider's way; `None` for local servers.
    pub key: Option<SecretValue>,
    pub patience: Timeouts,
    /// Whether the provider enforces a JSON Schema.
    pub schema: Support,
    /// Whether the model supports the format's own tool calls.
    pub tools: Support,
    /// Whether the model accepts pictures.
    pub vision: Support,
    /// Whether the model accepts recordings.
    pub audio: bool,
    /// Maximum bytes of a response, including the stream's format.
    pub max_response: usize,
}

impl Endpoint {
    /// `provider:model`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }
}

/// The timeouts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection.
    pub connect: Duration,
    /// From the request to the first byte of content.
    pub first_token: Duration,
    /// From one piece of the stream to the next.
    pub next_token: Duration,
    /// Of the whole call.
    pub total: Duration,
}

/// Whether to use a feature of the format that not every model or server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Support {
    /// Tried with the first call that needs it; after a refusal, the call is repeated without it, and it is not tried again.
    #[default]
    Probe,
    Yes,
    No,
}
