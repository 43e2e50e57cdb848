//! Office Open XML: texts and slides.

pub mod docx;
mod numbering;
pub mod pptx;
mod properties;
pub mod table;

pub use properties::{attach, describe};
