//! Bindings, one module for each frozen version of `kiso:skill`.

pub mod since_v0_1;
