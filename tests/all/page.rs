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
mod reach;
mod screens;
mod script;
mod sessions;
mod skills;
mod stage;
mod trace;
mod vendor;
mod wire;
