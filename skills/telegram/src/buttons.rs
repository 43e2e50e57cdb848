//! Buttons below a message, by which somebody chooses something, and what becomes of them.

use crate::format::{Formatted, MAX_UNITS};
use crate::incoming::press_of;
use crate::{Choice, Config, Failure, Letter, api, say};
use channel::bindings::kiso::skill::kv;
use channel::{forget, head, unavailable};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Letters whose buttons are remembered. kiso has at most a hundred cards that wait.
const KEPT: usize = 150;

/// How the keys begin under which the places of buttons are kept, each with its text. A number that grows follows, so that they are in
/// the order of their age: a list in one value would lose an entry where a letter is sent while the buttons of another one change.
const PLACES: &str = "places/";

/// Bytes of a button's data, and characters of the notice to the person who pressed it.
const MAX_DATA: usize = 64;
const MAX_SAID: usize = 190;

/// Buttons of a row that are as short as a number, and of others.
const SHORT_ROW: usize = 5;
const ROW: usize = 2;

/// The message below which the buttons of a letter stand.
#[derive(Serialize, Deserialize)]
struct ButtonMessage {
    message_id: i64,
    /// Markdown, below which it is said later what was decided.
    text: String,
}

/// Sends the part of a letter below which its buttons stand.
pub fn send(config: &Config, chat: i64, letter: &Letter, text: &str) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Sent {
        message_id: i64,
    }
    let sent = say(config, chat, text, Some(&keyboard(&letter.choices)))?;
    if let Ok(Sent { message_id }) = serde_json::from_str(sent.get()) {
        keep(chat, &letter.id, &ButtonMessage { message_id, text: text.to_owned() })?;
    }
    Ok(())
}

/// Gives a letter other buttons, or, where there are none any more, says what was decided.
pub fn change(config: &Config, chat: i64, letter: &str, note: Option<&str>, choices: &[Choice]) -> Result<(), Failure> {
    let known = kv::keys(PLACES).map_err(unavailable)?;
    let Some(key) = place(&known, chat, letter) else { return Ok(()) };
    let Some(ButtonMessage { message_id, text }) = read(key)? else { return Ok(()) };
    let of_message = json!({ "chat_id": chat, "message_id": message_id });
    let (method, request) = match note {
        Some(note) => {
            let mut request = noted(&text, note).request(chat);
            request["message_id"] = message_id.into();
            ("editMessageText", request)
        }
        None => ("editMessageReplyMarkup", of_message.clone()),
    };
    let with_buttons = |mut request: Value| {
        request["reply_markup"] = keyboard(choices);
        request
    };
    let changed = match api::call(config, method, &with_buttons(request)) {
        // The buttons go in any case.
        Err(failure) if failure.code == "failed" && note.is_some() && !is_as_it_was(&failure) => {
            api::call(config, "editMessageReplyMarkup", &with_buttons(of_message))
        }
        changed => changed,
    };
    match changed {
        Err(failure) if failure.code == "failed" && !is_as_it_was(&failure) => {
            // Somebody deleted the message, or it is too old to be changed.
            forget(key)?;
            return Err(Failure { code: "gone".to_owned(), ..failure });
        }
        Err(failure) if !is_as_it_was(&failure) => return Err(failure),
        _ => {}
    }
    if choices.is_empty() { forget(key) } else { Ok(()) }
}

/// Says to one who pressed a button what became of that. Telegram takes it for some seconds only; a later one changes nothing.
pub fn answer(config: &Config, message: &str, text: &str) -> Result<(), Failure> {
    let Some(press) = press_of(message) else { return Ok(()) };
    let text: String = text.chars().take(MAX_SAID).collect();
    let request = json!({ "callback_query_id": press, "text": text });
    match api::call(config, "answerCallbackQuery", &request) {
        Err(failure) if failure.code == "failed" => Ok(()),
        answered => answered.map(drop),
    }
}

/// A text with what was decided below it.
fn noted(text: &str, note: &str) -> Formatted {
    let whole = Formatted::from_markdown(&format!("{text}\n\n**{note}**"));
    if whole.fits() {
        return whole;
    }
    let room = MAX_UNITS.saturating_sub(note.len() + 8);
    Formatted { text: format!("{}\n\n{note}", head(text, room)), entities: Vec::new() }
}

/// Buttons in rows; those that are as short as a number stand together.
fn keyboard(choices: &[Choice]) -> Value {
    let is_short = |choice: &Choice| choice.label.chars().count() <= 5;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut last = None;
    for choice in choices.iter().filter(|choice| (1..=MAX_DATA).contains(&choice.id.len())) {
        let short = is_short(choice);
        let button = json!({ "text": choice.label, "callback_data": choice.id });
        match rows.last_mut().filter(|row| last == Some(short) && row.len() < if short { SHORT_ROW } else { ROW }) {
            Some(row) => row.push(button),
            None => rows.push(vec![button]),
        }
        last = Some(short);
    }
    json!({ "inline_keyboard": rows })
}

fn is_as_it_was(failure: &Failure) -> bool {
    failure.message.contains("message is not modified")
}

/// The key of the place of a letter's buttons.
fn place<'k>(known: &'k [String], chat: i64, letter: &str) -> Option<&'k String> {
    let of_letter = format!("/{chat}/{letter}");
    known.iter().rev().find(|key| key.ends_with(&of_letter))
}

/// The key for a further place, and those for which there is no room beside it.
fn newest<'k>(known: &'k [String], chat: i64, letter: &str) -> (String, &'k [String]) {
    let number = |key: &String| key.strip_prefix(PLACES)?.split('/').next()?.parse::<u64>().ok();
    let number = known.last().and_then(number).map_or(0, |last| last + 1);
    (format!("{PLACES}{number:016}/{chat}/{letter}"), &known[..known.len().saturating_sub(KEPT - 1)])
}

fn read(key: &str) -> Result<Option<ButtonMessage>, Failure> {
    let bytes = kv::get(key).map_err(unavailable)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Remembers where the buttons of a letter stand. Those of a chat that is gone are never forgotten otherwise, so the oldest go.
fn keep(chat: i64, letter: &str, at: &ButtonMessage) -> Result<(), Failure> {
    let known = kv::keys(PLACES).map_err(unavailable)?;
    let (key, oldest) = newest(&known, chat, letter);
    for old in oldest.iter().chain(place(&known, chat, letter)) {
        forget(old)?;
    }
    kv::set(&key, &serde_json::to_vec(at).unwrap_or_default()).map_err(unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(id: &str, label: &str) -> Choice {
        Choice { id: id.to_owned(), label: label.to_owned(), command: None }
    }

    #[test]
    fn numbers_stand_together_and_words_in_twos() {
        let mut choices = vec![choice("a", "Accept all"), choice("b", "Refuse")];
        choices.extend((1..=7).map(|n| choice(&format!("t{n}"), &format!("☐ {n}"))));
        choices.push(choice(&"x".repeat(65), "what Telegram would not take"));
        let rows = keyboard(&choices);
        let texts = |row: usize| {
            let row = rows["inline_keyboard"][row].as_array().unwrap();
            row.iter().map(|button| button["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(0), ["Accept all", "Refuse"]);
        assert_eq!(texts(1), ["☐ 1", "☐ 2", "☐ 3", "☐ 4", "☐ 5"]);
        assert_eq!(texts(2), ["☐ 6", "☐ 7"]);
        assert_eq!(rows["inline_keyboard"].as_array().unwrap().len(), 3);
        assert_eq!(rows["inline_keyboard"][0][1]["callback_data"], "b");
        assert_eq!(keyboard(&[]), json!({ "inline_keyboard": [] }));
    }

    #[test]
    fn the_oldest_places_go_whatever_they_are_called() {
        let mut known: Vec<String> = Vec::new();
        // Names whose order is not that of their age, and chats one of which ends as the other does.
        let (chat, letter) = (|n: usize| [17, 7, -7][n % 3], |n: usize| format!("letter-{}", (n * 7) % 1_000));
        for n in 0..400 {
            let (key, oldest) = newest(&known, chat(n), &letter(n));
            let oldest = oldest.to_vec();
            known.retain(|key| !oldest.contains(key));
            known.push(key);
            known.sort();
        }
        assert_eq!(known.len(), KEPT);
        for n in 0..400 {
            let found = place(&known, chat(n), &letter(n));
            assert_eq!(found.is_some(), n >= 400 - KEPT, "{n}");
            assert_eq!(place(&known, chat(n + 1), &letter(n)), None);
        }
    }

    #[test]
    fn what_was_decided_stands_below_whatever_the_text_is() {
        let shown = noted("Approval 12: this **needs** it.", "Approval 12: refused.");
        assert_eq!(shown.text, "Approval 12: this needs it.\n\nApproval 12: refused.");
        assert_eq!(shown.entities.len(), 2);
        let long = noted(&"ü".repeat(2_000), "Approval 12: refused.");
        assert!(long.fits() && long.text.ends_with("Approval 12: refused."));
        let longest = noted(&"a ".repeat(3_000), "Approval 12: refused.");
        assert!(longest.fits() && longest.text.ends_with("Approval 12: refused."));
    }
}
