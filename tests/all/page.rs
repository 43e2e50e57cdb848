//! The page in a real Chromium, against a real daemon.
//!
//! Where there is no Chromium the tests say so loudly and test nothing.

mod browser;
mod driver;
mod stage;
mod vendor;
