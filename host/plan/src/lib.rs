//! What a plan is, what a task leaves behind, and what a model is told: plain types, which the host and the built-in model
//! share. Nothing here does I/O, waits, or uses another crate of kiso.

pub mod block;
pub mod clip;
pub mod cues;
pub mod estimate;
pub mod label;
pub mod plan;
mod presentation;
pub mod prompt;
pub mod report;
pub mod sink;
pub mod verdict;
