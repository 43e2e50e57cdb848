//! The part of CSS that documents use. The rest is passed over, as browsers pass over what they do not know.

pub mod apply;
pub mod border;
pub mod cascade;
pub mod flex;
pub mod hints;
pub mod select;
pub mod sheet;
pub mod style;
pub mod value;
