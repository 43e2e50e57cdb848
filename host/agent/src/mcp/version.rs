//! The versions of the protocol, and the keys of `_meta` with which requests of the newest one state their version.

/// The version in which each request contains all metadata.
pub const MODERN: &str = "2026-07-28";

/// Versions that begin with `initialize`, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Error code for an unsupported version of a request.
pub const UNSUPPORTED_VERSION: i64 = -32_022;

pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
