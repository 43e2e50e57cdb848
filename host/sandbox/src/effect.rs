//! What work does beyond its answer: changes of files, which can be taken back, and effects outside of the sandbox, which cannot.
//!
//! [`label`] has labels as numbers, [`files`] those of a session's files, [`published`] those of Agent Skills, [`member`] is what a fleet adds,
//! [`network`] has what may be reached, [`sink`] decides where something leaves the sandbox, and [`undo`] keeps what was there before a run changes a file.

pub mod files;
pub mod label;
pub mod member;
pub mod network;
pub mod overlay;
pub mod published;
pub mod sink;
pub mod undo;
