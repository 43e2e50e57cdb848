//! How much of a letter was sent already, so that an attempt after a failure goes on where the one before it ended.

use crate::bindings::kiso::skill::kv;
use crate::{Failure, failure};
use serde_json::{Value, json};

/// Letters that are remembered. The host has at most four attempts at once, and asks again for what is due first.
const KEPT: usize = 100;

const KEY: &str = "sent";

/// The progress of one letter.
pub struct Sent {
    id: String,
    /// Parts that the service has.
    pub parts: usize,
}

impl Sent {
    /// Loads the progress of the letter with this id for this recipient.
    pub fn load(recipient: &str, letter: &str) -> Result<Sent, Failure> {
        let id = format!("{letter} {recipient}");
        let known = read()?.iter().find(|entry| entry[0] == id.as_str()).and_then(|entry| entry[1].as_u64());
        Ok(Sent { parts: known.and_then(|parts| usize::try_from(parts).ok()).unwrap_or(0), id })
    }

    /// The service has one part more.
    pub fn part(&mut self) -> Result<(), Failure> {
        self.parts += 1;
        // Read again: another letter may have been sent meanwhile.
        let mut all = read()?;
        all.retain(|entry| entry[0] != self.id.as_str());
        all.push(json!([self.id, self.parts]));
        let from = all.len().saturating_sub(KEPT);
        let text = Value::from(all.split_off(from)).to_string();
        kv::set(KEY, text.as_bytes()).map_err(|error| failure("unavailable", error.message))
    }
}

fn read() -> Result<Vec<Value>, Failure> {
    let bytes = kv::get(KEY).map_err(|error| failure("unavailable", error.message))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}
