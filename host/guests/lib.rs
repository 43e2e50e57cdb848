//! A package whose build script builds the components that kiso contains. It depends on nothing, so they are built beside
//! wasmtime and not after it.
