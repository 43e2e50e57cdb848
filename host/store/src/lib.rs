//! Everything that kiso stores. The entry point is [`store::Store`], the database with its single writer; the other modules use
//! it.

pub mod memory;
pub mod scratchpad;
pub mod secret;
pub mod store;
