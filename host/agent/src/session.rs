//! Sessions: messages are accepted, wait for their turn, and are answered one run at a time.
//!
//! ```text
//! message ──▶ intake ──▶ command? answered at once
//!                │
//!                ▼ one transaction: message and job; from here on it is never lost
//!             queue: debounce ──▶ one run per session, so many at once ──▶ reply, job done
//! ```

mod approval_command;
mod branches;
pub mod command;
pub mod export;
mod folder_command;
pub mod import;
pub mod intake;
pub mod live;
pub mod local_file;
pub mod queue;
pub mod removal;
pub mod search;
pub mod turns;
pub mod version;
pub mod wake;
pub mod workspace;
