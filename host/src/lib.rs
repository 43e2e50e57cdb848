//! kiso: an agent daemon whose skills and commands all run as WASI components.

pub mod context;
pub mod graph;
pub mod llm;
pub mod node;
