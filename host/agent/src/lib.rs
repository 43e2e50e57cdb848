//! From a message in a session to its finished work: [`session`] takes it in, [`drive`] performs the steps that the graph decides.

pub mod context;
pub mod drive;
pub mod mcp;
pub mod node;
pub mod schedule;
pub mod session;
pub mod tool;
