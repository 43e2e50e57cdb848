//! The lowest layer of the host, which uses no other crate of kiso except for `kiso-plan`. Its entry point is [`home::Home`], the
//! directory that a program works in, with [`config::Config`] read from it.

pub mod clock;
pub mod compute;
pub mod config;
pub mod home;
pub mod json;
pub mod net;
pub mod role;
pub mod rpc;
pub mod system;
