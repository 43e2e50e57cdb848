//! Logins at servers that require one: OAuth 2.1 as in the protocol's authorization specification.
//!
//! ```text
//!  401 ─ challenge ─▶ discovery: resource metadata ─▶ metadata of its authorization server
//!                                                           │
//!  kiso mcp login ─▶ flow: registration, PKCE, browser ─▶ redirect (loopback) ─▶ token ─▶ account (vault)
//! ```
//!
//! Neither server is trusted: each of their addresses, sizes and times is checked here, and their redirects are not followed.

mod account;
mod challenge;
mod discovery;
mod fetch;
mod flow;
mod redirect;
mod token;

pub use account::LoginState;
pub(super) use account::{Account, AccountSetup};
pub(super) use challenge::Challenge;

/// Why a login failed. Texts of servers are shortened and contain no control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OauthError {
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, String),
    #[error("{0} does not answer within {1} s (timeout_s)")]
    Timeout(String, u64),
    #[error("the answer of {0} is longer than {1} KiB")]
    TooLarge(String, usize),
    #[error("{0} answers with status {1}")]
    Status(String, u16),
    #[error("{0} redirects, which is not followed at a login")]
    Redirect(String),
    #[error("{0:?} cannot be used for a login: {1}")]
    Address(String, &'static str),
    #[error("the answer of {0} does not follow the specification: {1}")]
    BadAnswer(String, String),
    #[error("the server does not ask for a login: it answers without one, or does not say where to log in")]
    NotAsked,
    #[error("the authorization server {0} does not offer PKCE with S256, without which a code can be stolen")]
    NoPkce(String),
    #[error("the answer is from the issuer {found:?} and not from {expected:?}; somebody may be mixing up two servers")]
    Issuer { expected: String, found: String },
    #[error("the redirect belongs to another login")]
    State,
    #[error("what was pasted is not the address that the browser was sent to, http://127.0.0.1:…/callback?…")]
    Pasted,
    #[error("the authorization server {server} refuses: {code}{description}")]
    Refused { server: String, code: String, description: String },
    #[error(
        "the authorization server {0} registers no clients by itself; register kiso there, with the redirect URI \
         http://127.0.0.1/callback, and write client_id in its table of config.toml"
    )]
    NoClient(String),
    #[error("the variable {0} is not set")]
    Variable(String),
    #[error("the browser did not come back within {0} minutes")]
    Deadline(u64),
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(String),
    #[error("the login cannot be stored or read: {0}")]
    Kept(String),
    #[error("not logged in; run `kiso mcp login {0}`")]
    None(String),
    #[error("the login has ended ({1}); run `kiso mcp login {0}`")]
    Over(String, String),
}
