pub mod config;
pub mod home;
