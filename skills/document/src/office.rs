//! Texts and slides of Office, new and old.

pub mod accept;
pub mod doc;
pub mod docx;
mod numbering;
pub mod ppt;
pub mod pptx;
mod properties;
mod summary;
pub mod table;

pub use properties::{attach, describe};
