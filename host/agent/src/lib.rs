//! Turns a message of a session into finished work: [`session`] accepts messages, [`drive`] performs the steps that the graph
//! decides.

pub mod context;
pub mod drive;
pub mod mcp;
pub mod node;
pub mod schedule;
pub mod session;
pub mod tool;
