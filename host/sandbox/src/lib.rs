//! Where foreign code runs: [`skill::Skills`] for skills and [`exec`] for command lines, each as WASI components, with what they
//! may reach and what is kept before they change a file.

pub mod effect;
pub mod engine;
pub mod exec;
pub mod package;
pub mod skill;
