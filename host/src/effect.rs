//! What work does beyond its answer: changes of files, which can be taken back, and effects outside of the sandbox, which cannot.
//!
//! [`undo`] keeps what was there before a run changes a file.

pub mod undo;
