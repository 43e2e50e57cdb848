//! Pictures: read, shown to models, converted, described. The skill `image` and the commands that people know for it are thin layers above.
//!
//! Everything here may be given a file that somebody made to do harm: sizes are checked before memory is taken (`limits`), a format is
//! what the first bytes say (`kind`), and each refusal is one sentence.

pub mod call;
pub mod color;
pub mod command;
pub mod encode;
mod frames;
pub mod geometry;
pub mod kind;
mod limits;
pub mod look;
pub mod metadata;
pub mod operation;
pub mod picture;
#[cfg(test)]
mod samples;
pub mod scale;
pub mod source;
mod strip;
mod tiff_page;
pub mod tone;
