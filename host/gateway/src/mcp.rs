//! The Model Context Protocol, for every program that uses tools of others: over standard streams (`kiso mcp`) and over HTTP
//! (`/mcp` of the daemon); docs/mcp.md describes it.
//!
//! ```text
//!  stdio ─┐                                      ┌─ tools/call ──▶ the tools that plans call, under the same limits
//!         ├─▶ message ─▶ era ─▶ server ─▶ method ┤
//!   HTTP ─┘                                      └─ the tool run ─▶ intake and queue, or the run itself without a daemon
//! ```
//!
//! Both eras of the protocol are spoken on the same door. A client of the older one says `initialize` first, and over HTTP gets an
//! `Mcp-Session-Id`; one of the newer one says with each request which version it speaks, and nothing is kept between two of them.
//!
//! The layer of JSON-RPC is written here, because what stands in front of a sandbox has to bound what it reads before it is
//! parsed, and to speak two eras at once; the protocol's own crate does neither, and brings twenty others along.

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
