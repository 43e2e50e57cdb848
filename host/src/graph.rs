//! The graph that a run goes through. Pure: nothing here does I/O, waits, or knows a model.

pub mod limits;
pub mod plan;
pub mod report;
pub mod verdict;
