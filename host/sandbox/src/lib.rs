//! Runs foreign code: [`skill::Skills`] for skills and [`exec`] for command lines, each as WASI components with limited access.
//! Files are kept before they are changed.

pub mod effect;
pub mod engine;
pub mod exec;
pub mod package;
pub mod skill;
