//! The channel of Telegram, through a bot: what people write to it in private is a message, and answers go into the same chat.
//!
//! The Bot API has the bot's token in the path of every address. It never enters this component: `$TOKEN` stands in its place, and
//! kiso puts the token in.

mod api;
mod buttons;
mod format;
mod incoming;

use channel::{Attachment, Batch, Choice, Config, Failure, File, Guest, Letter, Sent, failure, parts};
use format::Formatted;
use incoming::Received;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Bytes of a part of a text. Telegram takes 4,096 characters.
const MAX_TEXT: usize = 3_900;

/// Updates of one batch.
const MAX_UPDATES: usize = 100;

/// Types of pictures that Telegram accepts and that a client shows in the chat.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

struct Telegram;

channel::bindings::export_channel!(Telegram with_types_in channel::bindings);

impl Guest for Telegram {
    fn poll(config: Config, cursor: Option<String>) -> Result<Batch, Failure> {
        let offset = cursor.as_deref().and_then(|cursor| cursor.parse::<i64>().ok());
        let received = match receive(&config, offset, MAX_UPDATES) {
            // One alone always fits.
            Err(failure) if failure.code == "too-large" => receive(&config, offset, 1),
            received => received,
        }?;
        // A first poll answers nothing that was written long ago.
        let since = if offset.is_none() { incoming::recently() } else { 0 };
        let next = received.iter().map(|received| received.update_id + 1).max();
        let messages = received.into_iter().filter_map(|received| incoming::message(received, since)).collect();
        Ok(Batch { messages, cursor: next.map(|next| next.to_string()) })
    }

    fn fetch(config: Config, attachment: String) -> Result<Vec<u8>, Failure> {
        api::download(&config, &attachment)
    }

    fn send(config: Config, recipient: String, letter: Letter) -> Result<(), Failure> {
        let chat = chat(&recipient)?;
        let mut sent = Sent::load(&recipient, &letter.id)?;
        let texts = parts(&letter.text, MAX_TEXT);
        for (index, text) in texts.iter().enumerate().skip(sent.parts) {
            match index + 1 == texts.len() && !letter.choices.is_empty() {
                true => buttons::send(&config, chat, &letter, text)?,
                false => say(&config, chat, text, None).map(drop)?,
            }
            sent.part()?;
        }
        for file in letter.files.iter().skip(sent.parts.saturating_sub(texts.len())) {
            give(&config, chat, file)?;
            sent.part()?;
        }
        Ok(())
    }

    fn offer(
        config: Config,
        recipient: String,
        letter: String,
        note: Option<String>,
        choices: Vec<Choice>,
    ) -> Result<(), Failure> {
        buttons::change(&config, chat(&recipient)?, &letter, note.as_deref(), &choices)
    }

    fn answer(config: Config, _: String, message: String, text: String) -> Result<(), Failure> {
        buttons::answer(&config, &message, &text)
    }

    fn typing(config: Config, recipient: String) -> Result<(), Failure> {
        let action = json!({ "chat_id": chat(&recipient)?, "action": "typing" });
        api::call(&config, "sendChatAction", &action).map(drop)
    }
}

/// The updates from this offset on. Telegram forgets those before it.
fn receive(config: &Config, offset: Option<i64>, limit: usize) -> Result<Vec<Received>, Failure> {
    // Edits are not asked for: what was answered is not answered again.
    let mut request = json!({ "limit": limit, "timeout": 0, "allowed_updates": ["message", "callback_query"] });
    if let Some(offset) = offset {
        request["offset"] = offset.into();
    }
    let result = api::call(config, "getUpdates", &request)?;
    incoming::read(result.get()).ok_or_else(|| failure("unavailable", "Telegram answers with no list of updates"))
}

/// A private chat has the number of the person.
fn chat(recipient: &str) -> Result<i64, Failure> {
    recipient.parse().map_err(|_| failure("gone", "the recipient is no chat of Telegram"))
}

/// Sends one part of a text, with what stands below it. Returns what Telegram says of the message.
fn say(config: &Config, chat: i64, text: &str, keyboard: Option<&Value>) -> Result<Box<RawValue>, Failure> {
    let request = |formatted: &Formatted| {
        let mut request = formatted.request(chat);
        if let Some(keyboard) = keyboard {
            request["reply_markup"] = keyboard.clone();
        }
        request
    };
    let formatted = Formatted::from_markdown(text);
    let plain = Formatted { text: text.to_owned(), entities: Vec::new() };
    let first = if formatted.fits() { formatted } else { plain.clone() };
    match api::call(config, "sendMessage", &request(&first)) {
        // A text arrives in any case.
        Err(failure) if failure.code == "failed" && !first.entities.is_empty() => {
            api::call(config, "sendMessage", &request(&plain))
        }
        sent => sent,
    }
    .map_err(never_again)
}

/// Sends a file, or says that Telegram does not take it.
fn give(config: &Config, chat: i64, file: &File) -> Result<(), Failure> {
    let is_refused = |failure: &Failure| matches!(failure.code.as_str(), "failed" | "too-large");
    if PICTURES.contains(&file.media_type.as_str()) {
        match api::upload(config, "sendPhoto", "photo", chat, file) {
            // Its sides may be too long for a picture.
            Err(failure) if is_refused(&failure) => {}
            sent => return sent,
        }
    }
    match api::upload(config, "sendDocument", "document", chat, file) {
        Err(failure) if is_refused(&failure) => {
            let text = format!("The file {} could not be sent: {}", file.name, failure.message);
            say(config, chat, &text, None).map(drop)
        }
        sent => sent,
    }
}

/// Telegram refuses an invalid request every time, so it is not tried again.
fn never_again(failure: Failure) -> Failure {
    match failure.code.as_str() {
        "failed" => Failure { code: "gone".to_owned(), ..failure },
        _ => failure,
    }
}
