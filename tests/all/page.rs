//! The page in a real Chromium, against a real daemon.
//!
//! Without Chromium, the tests print a message and test nothing.

mod approve;
pub(crate) mod browser;
mod calls;
mod chat;
mod compose;
mod connect;
mod driver;
mod files;
mod fill;
mod folders;
mod formulas;
mod health;
mod hostile;
mod listed_folders;
mod live;
mod login;
mod long_tasks;
mod memory;
mod panel;
mod pictures;
mod pills;
mod plan;
mod reach;
mod reply;
mod schedule;
mod script;
mod sessions;
mod shifts;
mod skills;
pub(crate) mod stage;
pub(crate) mod themes;
mod trace;
mod undo;
mod usage;
mod vendor;
mod wire;
