//! Mails, cards and calendars.

pub mod card;
pub mod mbox;
pub mod message;
pub mod outlook;
