//! Texts that are marked up, and plain ones.

pub mod epub;
pub mod html;
pub mod plain;
pub mod rtf;
