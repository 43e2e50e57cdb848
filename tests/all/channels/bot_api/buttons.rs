//! Buttons of the Bot API: shown below messages, pressed, answered within some seconds, and changed with their message.

use super::{Asked, BotApi, Reply, Sent, State, now, ok};
use serde_json::{Value, json};

impl BotApi {
    /// Presses the button with this label. Returns the press's id.
    pub(crate) fn press(&self, person: i64, label: &str) -> String {
        let has = |sent: &&Sent| sent.chat == person && sent.buttons().iter().any(|(text, _)| text == label);
        let found = self.shown().iter().rev().find(has).cloned().unwrap_or_else(|| panic!("no button {label:?}"));
        let data = found.buttons().into_iter().find(|(text, _)| text == label).unwrap().1;
        self.press_data(person, person, found.id, &data)
    }

    /// Sends a press with this data for a message of a chat, whether or not such a button exists.
    pub(crate) fn press_data(&self, person: i64, chat: i64, message: i64, data: &str) -> String {
        self.with(|state| {
            state.count += 1;
            let id = format!("438200{:08}", state.count);
            state.presses.insert(id.clone());
            let kind = if chat > 0 { "private" } else { "supergroup" };
            state.update(json!({ "callback_query": {
                "id": id, "from": { "id": person, "is_bot": false, "first_name": format!("Person{person}") },
                "message": { "message_id": message, "date": now(), "chat": { "id": chat, "type": kind },
                    "from": { "id": 110_201_543, "is_bot": true, "first_name": "kiso" }, "text": "…" },
                "chat_instance": "-4571", "data": data,
            } }));
            id
        })
    }

    /// Refuses later answers to this press, as Telegram does after some time.
    pub(crate) fn forget_press(&self, id: &str) {
        self.with(|state| state.presses.remove(id));
    }

    /// The answer to a press.
    pub(crate) fn answer_to(&self, id: &str) -> Option<String> {
        self.with(|state| state.answers.iter().find(|(press, _)| press == id).map(|(_, text)| text.clone()))
    }

    /// Deletes a message.
    pub(crate) fn delete(&self, message: i64) {
        self.with(|state| state.shown.retain(|sent| sent.id != message));
    }
}

impl Sent {
    /// Label and data of each button below the message.
    pub(crate) fn buttons(&self) -> Vec<(String, String)> {
        let rows = self.arguments["reply_markup"]["inline_keyboard"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let of_row = |row: Value| row.as_array().unwrap().clone();
        rows.into_iter().flat_map(of_row).map(|b| (text(&b["text"]), text(&b["callback_data"]))).collect()
    }
}

impl State {
    /// Edits a message. An edit without a change is an error.
    pub(super) fn edit(&mut self, asked: &Asked, arguments: &Value) -> Reply {
        let (chat, id) = (arguments["chat_id"].as_i64().unwrap(), arguments["message_id"].as_i64().unwrap());
        check(arguments);
        let Some(at) = self.shown.iter().position(|sent| sent.chat == chat && sent.id == id) else {
            return self.refused(asked, 400, "Bad Request: message to edit not found", None);
        };
        let mut changed = self.shown[at].clone();
        if let Some(text) = arguments["text"].as_str() {
            text.clone_into(&mut changed.text);
            changed.arguments["entities"] = arguments["entities"].clone();
        }
        changed.arguments["reply_markup"] = arguments["reply_markup"].clone();
        if (changed.text == self.shown[at].text) && changed.buttons() == self.shown[at].buttons() {
            let why = "Bad Request: message is not modified: specified new message content and reply markup are exactly the \
                       same as a current content and reply markup of the message";
            return self.refused(asked, 400, why, None);
        }
        self.shown[at] = changed;
        ok(&json!({ "message_id": id, "date": now(), "edit_date": now(), "chat": { "id": chat, "type": "private" } }))
    }

    pub(super) fn answer(&mut self, asked: &Asked, arguments: &Value) -> Reply {
        let id = arguments["callback_query_id"].as_str().unwrap();
        let text = arguments["text"].as_str().unwrap_or_default();
        assert!(text.chars().count() <= 200, "{text}");
        if !self.presses.remove(id) {
            let why = "Bad Request: query is too old and response timeout expired or query ID is invalid";
            return self.refused(asked, 400, why, None);
        }
        self.answers.push((id.to_owned(), text.to_owned()));
        ok(&json!(true))
    }
}

/// Checks Telegram's rules for entities and buttons.
pub(super) fn check(arguments: &Value) {
    let text = arguments["text"].as_str().unwrap_or_default();
    let units = text.encode_utf16().count() as u64;
    for entity in arguments["entities"].as_array().into_iter().flatten() {
        let end = entity["offset"].as_u64().unwrap() + entity["length"].as_u64().unwrap();
        assert!(end <= units, "{entity} does not stand in {text:?}");
    }
    for button in arguments["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten() {
        for button in button.as_array().unwrap() {
            let data = button["callback_data"].as_str().unwrap();
            assert!((1..=64).contains(&data.len()) && !button["text"].as_str().unwrap().is_empty(), "{button}");
        }
    }
}
