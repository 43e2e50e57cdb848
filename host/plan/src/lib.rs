//! Plans, the results of tasks, and the pieces of prompts: plain types that the host and the built-in model share. Nothing here
//! does I/O, waits, or uses another crate of kiso.

mod presentation;

pub mod approval;
pub mod attached;
pub mod block;
pub mod call;
pub mod clip;
pub mod code;
pub mod cues;
pub mod effort;
pub mod estimate;
pub mod label;
pub mod limits;
pub mod network;
pub mod picture;
pub mod pill;
pub mod plan;
pub mod prompt;
pub mod report;
pub mod sink;
pub mod tags;
pub mod verdict;
