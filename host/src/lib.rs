pub mod config;
pub mod home;
pub mod secret;
pub mod store;
