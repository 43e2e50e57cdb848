//! Model Context Protocol server, for programs that use external tools: over standard streams (`kiso mcp`) and over HTTP (`/mcp`
//! of the daemon); docs/mcp.md describes it.
//!
//! ```text
//!  stdio ─┐                                      ┌─ tools/call ──▶ the tools that plans call, under the same limits
//!         ├─▶ message ─▶ era ─▶ server ─▶ method ┤
//!   HTTP ─┘                                      └─ the tool run ─▶ intake and queue, or the run itself without a daemon
//! ```
//!
//! Both eras of the protocol use the same endpoint. A client of the older era begins with `initialize`, and over HTTP gets an
//! `Mcp-Session-Id`. A client of the newer era names its version in each request, and no state is kept between requests.
//!
//! JSON-RPC is implemented here, because a server in front of a sandbox must limit its input before parsing it, and must support
//! two eras at once. The protocol's own crate does neither, and adds twenty dependencies.

mod admission;
mod catalog;
mod changes;
mod door;
mod era;
mod headers;
mod hold;
mod http_session;
mod local;
mod method;
mod progress;
mod prompts;
mod queued;
mod resources;
mod roots;
mod server;
pub mod stdio;
mod tools;

pub(crate) use self::door::ROUTES;
pub(crate) use self::http_session::HttpSessions;
pub use self::server::{Server, session_for_folder};
