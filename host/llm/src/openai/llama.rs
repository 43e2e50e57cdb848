//! Properties of a llama.cpp server, and its special features. Each answer names the server.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The server's name in the header `server`.
pub(super) const NAME: &str = "llama.cpp";

/// Maximum slots that are used; further ones of a server are ignored.
const MAX_SLOTS: u64 = 64;

/// A server whose properties were requested.
#[derive(Debug)]
pub(super) struct LlamaServer {
    /// Whether the template of its model includes tools. Other templates ignore them without an error.
    pub tools: bool,
    /// Whether its model gets pictures.
    pub vision: Option<bool>,
    slots: Mutex<SlotTable>,
}

impl LlamaServer {
    /// Reads the properties; `None` if the server does not return them.
    pub(super) fn new(properties: Option<&Value>) -> Self {
        let of = |pointer: &str| properties.and_then(|properties| properties.pointer(pointer));
        let slots = of("/total_slots").and_then(Value::as_u64).unwrap_or(0).min(MAX_SLOTS);
        Self {
            tools: of("/chat_template_caps/supports_tools").and_then(Value::as_bool).unwrap_or(true),
            vision: of("/modalities/vision").and_then(Value::as_bool),
            slots: Mutex::new(SlotTable((0..slots).map(|slot| (slot, String::new())).collect())),
        }
    }

    /// Returns the slot for requests with this key, so that they find their cached prompt there.
    pub(super) fn slot(&self, key: &str) -> Option<u64> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).slot_for(key)
    }
}

/// The key of each slot's conversation; the most recently used slot is the last one.
#[derive(Debug)]
struct SlotTable(Vec<(u64, String)>);

impl SlotTable {
    /// A new conversation gets the least recently used slot.
    fn slot_for(&mut self, key: &str) -> Option<u64> {
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
