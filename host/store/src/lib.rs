//! All that kiso keeps: [`store::Store`] is the database with one writer, and the entry point; the others are made of it.

pub mod memory;
pub mod scratchpad;
pub mod secret;
pub mod store;
