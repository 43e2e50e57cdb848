//! A package whose build script builds kiso's bundled components. It has no dependencies, so cargo builds them in parallel with
//! wasmtime.
