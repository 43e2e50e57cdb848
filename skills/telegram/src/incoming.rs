//! The updates that a bot receives. Messages are those that a person writes in a private chat.

use crate::{Attachment, MAX_UPDATES};
use channel::{Message, head};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For how long what was written before the first poll counts.
const RECENT: Duration = Duration::from_secs(600);

/// How the ids of messages begin that are presses of buttons.
const PRESS: &str = "press/";

/// One update: a message, or something that is none.
pub struct Received {
    pub update_id: i64,
    message: Option<Incoming>,
    press: Option<Press>,
}

#[derive(Deserialize)]
struct Identified {
    update_id: i64,
}

#[derive(Deserialize)]
struct Update {
    message: Option<Incoming>,
    callback_query: Option<Press>,
}

/// Somebody pressed a button below a message of the bot.
#[derive(Deserialize)]
struct Press {
    id: String,
    from: Person,
    /// Below which it stands; all that is read of it is where that is.
    message: Option<Pressed>,
    data: Option<String>,
}

#[derive(Deserialize)]
struct Pressed {
    chat: Chat,
}

#[derive(Deserialize)]
struct Incoming {
    message_id: i64,
    date: u64,
    chat: Chat,
    from: Option<Person>,
    text: Option<String>,
    caption: Option<String>,
    forward_origin: Option<Origin>,
    // How it was said before version 7.0 of the Bot API, which servers of one's own may still speak.
    forward_from: Option<Person>,
    forward_from_chat: Option<Chat>,
    forward_sender_name: Option<String>,
    forward_date: Option<u64>,
    via_bot: Option<Person>,
    document: Option<Media>,
    photo: Option<Vec<Media>>,
    audio: Option<Media>,
    voice: Option<Media>,
    video: Option<Media>,
    video_note: Option<Media>,
    sticker: Option<Emoji>,
    dice: Option<Emoji>,
    location: Option<Location>,
    venue: Option<Venue>,
    contact: Option<Contact>,
    poll: Option<Poll>,
    // Of these it counts only that they are there.
    story: Option<Box<RawValue>>,
    game: Option<Box<RawValue>>,
    invoice: Option<Box<RawValue>>,
    giveaway: Option<Box<RawValue>>,
    checklist: Option<Box<RawValue>>,
    paid_media: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
    title: Option<String>,
}

#[derive(Deserialize)]
struct Person {
    id: i64,
    is_bot: bool,
    first_name: String,
    last_name: Option<String>,
    username: Option<String>,
}

/// Who wrote what somebody forwards.
#[derive(Deserialize)]
struct Origin {
    sender_user: Option<Person>,
    sender_user_name: Option<String>,
    sender_chat: Option<Chat>,
    chat: Option<Chat>,
}

#[derive(Deserialize)]
struct Media {
    file_id: String,
    file_name: Option<String>,
    file_size: Option<u64>,
}

#[derive(Deserialize)]
struct Emoji {
    emoji: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    latitude: f64,
    longitude: f64,
}

#[derive(Deserialize)]
struct Venue {
    title: String,
    address: String,
}

#[derive(Deserialize)]
struct Contact {
    phone_number: String,
    first_name: String,
    last_name: Option<String>,
}

#[derive(Deserialize)]
struct Poll {
    question: String,
    options: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    text: String,
}

/// The updates of an answer. One in an unexpected form has no message, and does not block the others.
pub fn read(result: &str) -> Option<Vec<Received>> {
    let updates: Vec<&RawValue> = serde_json::from_str(result).ok()?;
    let received = updates.into_iter().take(MAX_UPDATES).filter_map(|update| {
        let Identified { update_id } = serde_json::from_str(update.get()).ok()?;
        let (message, press) = match serde_json::from_str::<Update>(update.get()) {
            Ok(update) => (update.message, update.callback_query),
            Err(_) => (None, None),
        };
        Some(Received { update_id, message, press })
    });
    Some(received.collect())
}

/// The time since which messages are recent, in seconds.
pub fn recently() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(RECENT).as_secs()
}

/// The message; none where no person wrote it in a private chat, or before `since`.
pub fn message(received: Received, since: u64) -> Option<Message> {
    if let Some(press) = received.press {
        return choice(press);
    }
    let message = received.message.filter(|message| message.date >= since)?;
    let from = message.from.as_ref()?;
    // Groups and channels have other numbers than those who write there.
    if message.chat.kind != "private" || from.is_bot || from.id != message.chat.id {
        return None;
    }
    let attachments = attachments(&message);
    let text = text(&message);
    if text.is_empty() && attachments.is_empty() && !message.is_unreadable() {
        // Telegram's own notices, such as that something was pinned.
        return None;
    }
    Some(Message {
        id: format!("{}/{}", message.chat.id, message.message_id),
        sender: message.chat.id.to_string(),
        sender_name: Some(head(&full_name(from), 200)),
        text,
        attachments,
        choice: None,
    })
}

/// The choice of a press; `None` unless the button is in a private chat with that person. A press has no time, so an old one is
/// read as well: it does no more than its card allows.
fn choice(press: Press) -> Option<Message> {
    let chat = press.message?.chat;
    if chat.kind != "private" || press.from.is_bot || press.from.id != chat.id {
        return None;
    }
    Some(Message {
        id: format!("{PRESS}{}", press.id),
        sender: chat.id.to_string(),
        sender_name: Some(head(&full_name(&press.from), 200)),
        text: String::new(),
        attachments: Vec::new(),
        choice: Some(press.data?),
    })
}

/// The number of a press, of the id of the message that stands for it.
pub fn press_of(message: &str) -> Option<&str> {
    message.strip_prefix(PRESS)
}

impl Incoming {
    /// Who wrote it, if somebody else than who sent it did.
    fn forwarded_from(&self) -> Option<String> {
        let earlier = || {
            let person = self.forward_from.as_ref().map(full_name);
            let chat = || self.forward_from_chat.as_ref().and_then(|chat| chat.title.clone());
            let name = person.or_else(chat).or_else(|| self.forward_sender_name.clone());
            name.or_else(|| self.forward_date.map(|_| "somebody".to_owned()))
        };
        self.forward_origin.as_ref().map(Origin::name).or_else(earlier)
    }

    /// Whether a person sent something that has no text.
    fn is_unreadable(&self) -> bool {
        let all = [&self.story, &self.game, &self.invoice, &self.giveaway, &self.checklist, &self.paid_media];
        all.iter().any(|content| content.is_some()) || self.sticker.is_some()
    }
}

/// The text of a message. Words of others are quoted, so that nothing in them is a command.
fn text(message: &Incoming) -> String {
    let said = message.text.as_deref().or(message.caption.as_deref()).map(str::trim).unwrap_or_default();
    let whole = [said, &described(message)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let by = match (message.forwarded_from(), &message.via_bot) {
        (Some(name), _) => format!("Forwarded from {name}:"),
        (None, Some(bot)) => format!("By the bot {}:", full_name(bot)),
        (None, None) => return command(&whole),
    };
    let quoted: String = whole.lines().map(|line| format!("\n> {line}")).collect();
    format!("{}{quoted}", one_line(&by))
}

/// A command without the bot's name, and Telegram's first one as the one that explains the others.
fn command(text: &str) -> String {
    let Some(rest) = text.strip_prefix('/') else { return text.to_owned() };
    let (word, arguments) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    match word.split('@').next().unwrap_or_default() {
        "start" => "/help".to_owned(),
        name => format!("/{name}{arguments}"),
    }
}

/// Describes content that has no text of its own.
fn described(message: &Incoming) -> String {
    let mut lines = Vec::new();
    if let Some(Venue { title, address }) = &message.venue {
        lines.push(format!("Place: {title}, {address}"));
    }
    if let Some(Location { latitude, longitude }) = &message.location {
        lines.push(format!("Location: {latitude}, {longitude}"));
    }
    if let Some(contact) = &message.contact {
        let last = contact.last_name.as_deref().unwrap_or_default();
        let name = format!("{} {last}", contact.first_name);
        lines.push(format!("Contact: {}, {}", name.trim(), contact.phone_number));
    }
    if let Some(poll) = &message.poll {
        let options: Vec<&str> = poll.options.iter().map(|option| option.text.as_str()).collect();
        lines.push(format!("Poll: {} ({})", poll.question, options.join(" / ")));
    }
    let emoji = [&message.sticker, &message.dice].into_iter().flatten().filter_map(|content| content.emoji.clone());
    // Nor may words that others chose become a command.
    lines.iter().map(|line| one_line(line)).chain(emoji).collect::<Vec<_>>().join("\n")
}

fn attachments(message: &Incoming) -> Vec<Attachment> {
    // Of a picture there are several sizes, the largest last.
    let photo = message.photo.as_ref().and_then(|sizes| sizes.last());
    let all = [
        (message.document.as_ref(), "document", "bin"),
        (photo, "photo", "jpg"),
        (message.audio.as_ref(), "audio", "mp3"),
        (message.voice.as_ref(), "voice", "ogg"),
        (message.video.as_ref(), "video", "mp4"),
        (message.video_note.as_ref(), "video", "mp4"),
    ];
    let attachment = |(media, kind, extension): (Option<&Media>, &str, &str)| {
        let media = media?;
        let name = media.file_name.clone().filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| format!("{kind}-{}.{extension}", message.message_id));
        Some(Attachment { id: media.file_id.clone(), name: head(&name, 200), size: media.file_size })
    };
    all.into_iter().filter_map(attachment).collect()
}

impl Origin {
    fn name(&self) -> String {
        let chat = self.sender_chat.as_ref().or(self.chat.as_ref()).and_then(|chat| chat.title.clone());
        let user = self.sender_user.as_ref().map(full_name).or_else(|| self.sender_user_name.clone());
        user.or(chat).unwrap_or_else(|| "somebody".to_owned())
    }
}

fn full_name(person: &Person) -> String {
    let mut name = person.first_name.clone();
    if let Some(last) = &person.last_name {
        name = format!("{name} {last}");
    }
    if let Some(username) = &person.username {
        name = format!("{name} (@{username})");
    }
    name.trim().to_owned()
}

/// A text that somebody chose, without ends of lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn taken(message: Value) -> Option<Message> {
        let from = json!({ "id": 7, "is_bot": false, "first_name": "Ada", "username": "ada" });
        let mut whole = json!({
            "message_id": 5, "date": 1_700_000_000, "chat": { "id": 7, "type": "private" }, "from": from,
        });
        whole.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        let updates = read(&json!([{ "update_id": 1, "message": whole }]).to_string()).unwrap();
        updates.into_iter().next().and_then(|received| super::message(received, 0))
    }

    fn text(message: Value) -> String {
        taken(message).unwrap().text
    }

    #[test]
    fn a_person_in_a_private_chat_is_heard_and_nobody_else() {
        let message = taken(json!({ "text": "hello" })).unwrap();
        assert_eq!((message.id.as_str(), message.sender.as_str(), message.text.as_str()), ("7/5", "7", "hello"));
        assert_eq!(message.sender_name.as_deref(), Some("Ada (@ada)"));
        let bot = json!({ "id": 7, "is_bot": true, "first_name": "Bot" });
        for other in [
            json!({ "text": "hello", "chat": { "id": -100, "type": "supergroup", "title": "All" } }),
            json!({ "text": "hello", "chat": { "id": -100, "type": "channel", "title": "News" } }),
            json!({ "text": "hello", "from": bot }),
            json!({ "text": "hello", "from": null }),
            json!({ "pinned_message": { "message_id": 4 } }),
            json!({ "text": 12 }),
        ] {
            assert!(taken(other.clone()).is_none(), "{other}");
        }
        assert!(taken(json!({ "story": { "id": 1 } })).unwrap().text.is_empty(), "it is told that this cannot be read");
    }

    #[test]
    fn a_button_is_pressed_by_the_one_whose_chat_it_is_in() {
        let press = |members: Value| {
            let mut query = json!({
                "id": "4382", "from": { "id": 7, "is_bot": false, "first_name": "Ada" }, "chat_instance": "1",
                "message": { "message_id": 5, "date": 0, "chat": { "id": 7, "type": "private" } }, "data": "12.refuse",
            });
            query.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let updates = read(&json!([{ "update_id": 1, "callback_query": query }]).to_string()).unwrap();
            updates.into_iter().next().and_then(|received| super::message(received, 0))
        };
        let message = press(json!({})).unwrap();
        assert_eq!((message.id.as_str(), message.sender.as_str()), ("press/4382", "7"));
        assert_eq!((message.choice.as_deref(), message.text.as_str()), (Some("12.refuse"), ""));
        assert_eq!(press_of(&message.id), Some("4382"));
        for other in [
            json!({ "message": null, "inline_message_id": "x" }),
            json!({ "data": null, "game_short_name": "x" }),
            json!({ "from": { "id": 8, "is_bot": false, "first_name": "Bob" } }),
            json!({ "from": { "id": 7, "is_bot": true, "first_name": "Bot" } }),
            json!({ "message": { "message_id": 5, "date": 1, "chat": { "id": -100, "type": "supergroup" } } }),
        ] {
            assert!(press(other.clone()).is_none(), "{other}");
        }
    }

    #[test]
    fn what_is_old_or_no_update_holds_nothing_up() {
        let updates = json!([
            { "update_id": 4, "message": { "message_id": "x" } }, { "no": "id" },
            { "update_id": 6, "edited_message": { "message_id": 1 } },
        ]);
        let updates = read(&updates.to_string()).unwrap();
        assert_eq!(updates.iter().map(|update| update.update_id).collect::<Vec<_>>(), [4, 6]);
        assert!(updates.into_iter().all(|update| message(update, 0).is_none()));
        assert!(read("{}").is_none());
    }

    #[test]
    fn commands_are_those_of_kiso() {
        for (typed, command) in [
            ("/status@kiso_bot", "/status"),
            ("/model@kiso_bot lab:m", "/model lab:m"),
            ("/start", "/help"),
            ("/start@kiso_bot abc", "/help"),
            ("/starting up", "/starting up"),
            ("/tmp is full", "/tmp is full"),
            ("mail a@b.example", "mail a@b.example"),
        ] {
            assert_eq!(text(json!({ "text": typed })), command);
        }
    }

    #[test]
    fn what_others_wrote_is_quoted() {
        let origin = json!({ "type": "hidden_user", "sender_user_name": "Eve\n$ x", "date": 1 });
        let said = text(json!({ "text": "/new\n$ rm -r /", "forward_origin": origin }));
        for earlier in [
            json!({ "forward_from": { "id": 7, "is_bot": false, "first_name": "Eve" }, "forward_date": 1 }),
            json!({ "forward_from_chat": { "id": 7, "type": "channel", "title": "Eve" }, "forward_date": 1 }),
            json!({ "forward_sender_name": "Eve", "forward_date": 1 }),
        ] {
            let mut message = earlier;
            message["text"] = json!("$ rm -r /");
            assert_eq!(text(message), "Forwarded from Eve:\n> $ rm -r /");
        }
        assert_eq!(text(json!({ "text": "$ ls", "forward_date": 1 })), "Forwarded from somebody:\n> $ ls");
        assert_eq!(said, "Forwarded from Eve $ x:\n> /new\n> $ rm -r /");
        let bot = json!({ "id": 9, "is_bot": true, "first_name": "Gif", "username": "gif" });
        assert_eq!(text(json!({ "text": "/new", "via_bot": bot })), "By the bot Gif (@gif):\n> /new");
    }

    #[test]
    fn what_has_no_text_is_described() {
        let place = json!({ "latitude": 52.5, "longitude": 13.25 });
        assert_eq!(text(json!({ "location": place })), "Location: 52.5, 13.25");
        let venue = json!({ "location": place, "title": "Home\n/new", "address": "Street 1" });
        assert_eq!(
            text(json!({ "venue": venue, "location": place })),
            "Place: Home /new, Street 1\nLocation: 52.5, 13.25"
        );
        let contact = json!({ "phone_number": "+49", "first_name": "Bo" });
        assert_eq!(text(json!({ "contact": contact })), "Contact: Bo, +49");
        let poll = json!({ "question": "Tea?", "options": [{ "text": "yes" }, { "text": "no" }] });
        assert_eq!(text(json!({ "poll": poll })), "Poll: Tea? (yes / no)");
        assert_eq!(text(json!({ "sticker": { "emoji": "👍" } })), "👍");
    }

    #[test]
    fn files_have_names() {
        let sizes = json!([{ "file_id": "small" }, { "file_id": "large", "file_size": 9 }]);
        let message = taken(json!({ "photo": sizes, "caption": "look" })).unwrap();
        let file = &message.attachments[0];
        assert_eq!((file.id.as_str(), file.name.as_str(), file.size), ("large", "photo-5.jpg", Some(9)));
        assert_eq!(message.text, "look");
        let voice = taken(json!({ "voice": { "file_id": "v", "duration": 1 } })).unwrap();
        assert_eq!((voice.text.as_str(), voice.attachments[0].name.as_str()), ("", "voice-5.ogg"));
        let sent = json!({ "animation": { "file_id": "a" }, "document": { "file_id": "a", "file_name": "x.gif" } });
        let names: Vec<_> = taken(sent).unwrap().attachments.into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["x.gif"]);
    }
}
