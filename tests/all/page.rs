//! The page in a real Chromium, against a real daemon.
//!
//! Where there is no Chromium the tests say so loudly and test nothing.

mod browser;
mod chat;
mod compose;
mod driver;
mod fill;
mod hostile;
mod live;
mod login;
mod plan;
mod script;
mod sessions;
mod stage;
mod vendor;
mod wire;
