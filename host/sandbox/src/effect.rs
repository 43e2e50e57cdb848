//! The effects of work beyond its answer: changes of files, which can be undone, and effects outside of the sandbox, which
//! cannot.
//!
//! [`label`] has labels as numbers, [`files`] those of a session's files, [`published`] those of Agent Skills, [`member`] has the
//! interface to a fleet, [`network`] has the hosts that may be reached, [`sink`] decides whether data may leave the sandbox, and
//! [`undo`] keeps the old state before a run changes a file.

pub mod files;
pub mod label;
pub mod member;
pub mod network;
pub mod overlay;
pub mod published;
pub mod sink;
pub mod undo;
