//! MCP servers whose tools plans may use; docs/mcp.md describes this. The other side, kiso's own tools for other programs, is in
//! `gateway`.
//!
//! ```text
//! tool ─▶ servers ─▶ allowed by an administrator (store) ─▶ client ─▶ transport ─┬─ http ─────────────▶ server
//!                                     ▲                       │                  │         ┌ component: in the sandbox
//!                                     └── changed definition ─┘ disables it      └─ stdio ─┴ native: a program, confined
//! ```
//!
//! A server over HTTP may require a login (`oauth`); `authorized` adds its token to each message.
//!
//! Text of a server never gives it or its tools any rights: models get only definitions that an administrator has reviewed,
//! arguments are checked against these, and each size and count that a server can choose is limited here.

mod authorized;
mod client;
mod component;
pub mod confine;
mod definition;
mod http;
mod native;
mod oauth;
mod outcome;
mod servers;
mod stdio;
mod summary;
mod transport;
pub mod version;

pub use definition::ToolDefinition;
pub use oauth::{LoginState, OauthError};
pub use outcome::McpOutcome;
pub use servers::{AllowedTool, McpServers, ToolState};
pub use summary::{ServerKind, ServerSummary};

use kiso_plan::code::ErrorCode;
use kiso_sandbox::skill::LimitHit;

/// Why a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server}: {fault}")]
pub struct McpError {
    pub server: String,
    pub fault: McpFault,
}

/// The kind of failure. Texts of the server are shortened and contain no control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpFault {
    #[error("the variable {0} is not set, or has characters that cannot be passed on")]
    Variable(String),
    #[error("it cannot be started: {0}")]
    Start(String),
    #[error(
        "it is a program that runs outside the sandbox, and this machine cannot confine it: {0}; unconfined = true in its table of \
         config.toml starts it all the same"
    )]
    Unconfined(String),
    /// A limit of the sandbox.
    #[error("{0}")]
    Limit(LimitHit),
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("no answer within {0} s (timeout_s)")]
    Timeout(u64),
    /// It sends output, but no line of it is a message.
    #[error("no answer within {0} s (timeout_s); a line of its standard output is no message: {1:?}")]
    Noise(u64, String),
    #[error("the connection ended before the answer did; whether the call was done is not known: {0}")]
    Broken(String),
    #[error("it refuses with status {0}; what headers_env names may be wrong or expired")]
    Refused(u16),
    /// A refusal with the server's requirements. No call ends with it.
    #[error("it refuses with status {0}")]
    Challenged(u16, oauth::Challenge),
    #[error("{0}")]
    Login(OauthError),
    #[error("the login lacks rights that this needs ({scope}); run `kiso mcp login {server}`")]
    Scope { server: String, scope: String },
    #[error("it answers with status {0}")]
    Status(u16),
    /// The session with the server has expired. It is started again.
    #[error("it has ended the session")]
    SessionGone,
    #[error("it redirects to {0}, which is not followed; url in config.toml must be its own address")]
    Redirect(String),
    #[error("it answers as {0:?}, and neither as application/json nor as text/event-stream")]
    ContentType(String),
    #[error("its answer is longer than {0} KiB")]
    TooLarge(u64),
    #[error("it lists more than {0} tools")]
    TooManyTools(usize),
    #[error("it sends more than {0} messages before its answer")]
    TooManyMessages(usize),
    #[error("its answer is not what the protocol says: {0}")]
    BadAnswer(String),
    #[error("error {code}: {message}")]
    Rpc { code: i64, message: String },
    #[error("it speaks no version of the protocol that kiso speaks")]
    Version,
    #[error("it has no tool {0:?} any more")]
    Gone(String),
    #[error(
        "the description or schema of {0:?} is another one than was allowed, so it is off; `kiso mcp list` shows the difference and \
         `kiso mcp allow` accepts it"
    )]
    Changed(String),
    #[error("the store: {0}")]
    Store(String),
}

impl McpFault {
    /// Returns a stable, short identifier.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Variable(_) | Self::Start(_) | Self::Unreachable(_) | Self::Store(_) => ErrorCode::Unavailable,
            Self::Unconfined(_) => ErrorCode::Unconfined,
            Self::Limit(_) => ErrorCode::Limit,
            Self::Timeout(_) | Self::Noise(..) => ErrorCode::Timeout,
            Self::Broken(_) => ErrorCode::Broken,
            Self::Refused(_) | Self::Challenged(..) => ErrorCode::Refused,
            Self::Login(_) => ErrorCode::Login,
            Self::Scope { .. } => ErrorCode::InsufficientScope,
            Self::Status(_) | Self::SessionGone => ErrorCode::Status,
            Self::Redirect(_) => ErrorCode::Redirect,
            Self::ContentType(_) | Self::BadAnswer(_) | Self::Version => ErrorCode::BadAnswer,
            Self::TooLarge(_) | Self::TooManyTools(_) | Self::TooManyMessages(_) => ErrorCode::TooLarge,
            Self::Rpc { .. } => ErrorCode::Failed,
            Self::Gone(_) => ErrorCode::NotFound,
            Self::Changed(_) => ErrorCode::Changed,
        }
    }

    /// Returns whether the same call may succeed later. False if it may already have taken effect.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::SessionGone | Self::Status(429 | 502..=504) => true,
            Self::Login(error) => {
                matches!(error, OauthError::Unreachable(..) | OauthError::Timeout(..) | OauthError::Status(_, 500..))
            }
            _ => false,
        }
    }

    /// Returns whether the administrator's settings are the reason.
    pub fn is_policy(&self) -> bool {
        matches!(self, Self::Changed(_) | Self::Unconfined(_))
    }
}

/// Maximum length in characters of a server's text in an error.
const MAX_SHOWN: usize = 300;

/// Prepares a text of a server for an error.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(MAX_SHOWN).map(plain).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
