//! What a llama.cpp server says of itself, and what it takes that others do not: it says who it is with every answer.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What a server calls itself in the header `server`.
pub(super) const NAME: &str = "llama.cpp";

/// Slots that are told apart; a server with more is asked as one with so many.
const MAX_SLOTS: u64 = 64;

/// A server that was asked about itself.
#[derive(Debug)]
pub(super) struct LlamaServer {
    /// Whether the template of its model shows tools. One that does not leaves them out without a word.
    pub tools: bool,
    /// Whether it shows its model pictures.
    pub vision: Option<bool>,
    slots: Mutex<SlotTable>,
}

impl LlamaServer {
    /// From its properties; `None` where it does not say them.
    pub(super) fn new(properties: Option<&Value>) -> Self {
        let of = |pointer: &str| properties.and_then(|properties| properties.pointer(pointer));
        let slots = of("/total_slots").and_then(Value::as_u64).unwrap_or(0).min(MAX_SLOTS);
        Self {
            tools: of("/chat_template_caps/supports_tools").and_then(Value::as_bool).unwrap_or(true),
            vision: of("/modalities/vision").and_then(Value::as_bool),
            slots: Mutex::new(SlotTable((0..slots).map(|slot| (slot, String::new())).collect())),
        }
    }

    /// The slot that requests with this key have, so that they find there what they had it read before.
    pub(super) fn slot(&self, key: &str) -> Option<u64> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).of(key)
    }
}

/// Which conversation has which slot; the one that was asked last stands at the end.
#[derive(Debug)]
struct SlotTable(Vec<(u64, String)>);

impl SlotTable {
    /// A new conversation gets the slot of the one that was asked the longest time ago.
    fn of(&mut self, key: &str) -> Option<u64> {
        if key.is_empty() || self.0.is_empty() {
            return None;
        }
        let place = self.0.iter().position(|(_, owner)| owner == key).unwrap_or(0);
        let (slot, _) = self.0.remove(place);
        self.0.push((slot, key.to_owned()));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_conversation_keeps_its_slot_until_it_is_the_oldest() {
        let server = LlamaServer::new(Some(&json!({ "total_slots": 2 })));
        let slots = ["a", "b", "a", "c", "a", "c", "b", ""].map(|key| server.slot(key));
        assert_eq!(slots, [Some(0), Some(1), Some(0), Some(1), Some(0), Some(1), Some(0), None]);
        assert!(server.tools);
    }

    #[test]
    fn a_server_that_says_nothing_of_itself_is_asked_as_any_other() {
        for properties in [None, Some(json!({ "total_slots": "two", "chat_template_caps": null })), Some(json!([]))] {
            let server = LlamaServer::new(properties.as_ref());
            assert_eq!((server.slot("a"), server.tools), (None, true));
        }
        assert!(!LlamaServer::new(Some(&json!({ "chat_template_caps": { "supports_tools": false } }))).tools);
    }
}
