//! The channel of ntfy: what is published to a topic is a message, and answers are published to the same topic or to another one.
//!
//! ntfy knows no senders, only topics: whoever may publish to a topic is its sender. What kiso publishes carries the tag `kiso`, by
//! which it is not taken for a message where both go through one topic.

use channel::bindings::kiso::skill::kv;
use channel::http::Method;
use channel::http::{Request, encoded};
use channel::{
    Attachment, Batch, Choice, Config, Failure, Guest, Letter, Message, Sent, failure, forget, head, option, parts,
    unavailable,
};
use serde_json::{Value, json};

/// The tag of what kiso publishes.
const TAG: &str = "kiso";

/// Bytes of a message. ntfy accepts 4,096 and turns a longer message into a file.
const MAX_TEXT: usize = 3_900;

/// Messages of one batch; the next poll goes on behind them.
const MAX_MESSAGES: usize = 100;

/// Bytes of an answer to a poll.
const MAX_POLL: usize = 8 << 20;

/// Bytes of an attachment.
const MAX_FILE: usize = 8 << 20;

/// Buttons of a message.
const MAX_ACTIONS: usize = 3;

/// Letters of which it is remembered where their choices stand. kiso has at most a hundred cards that wait.
const KEPT: usize = 150;

/// How the keys begin that say so. A number that grows follows, so that they are in the order of their age: a list in one value would
/// lose an entry where a letter is sent while what became of another one is shown.
const PLACES: &str = "places/";

/// The period of a first poll: long enough for messages that were written during setup, and too short for old ones.
const FIRST: &str = "10m";

struct Ntfy;

channel::bindings::export_channel!(Ntfy with_types_in channel::bindings);

impl Guest for Ntfy {
    fn poll(config: Config, cursor: Option<String>) -> Result<Batch, Failure> {
        let topics = topics(&config)?;
        let since = cursor.as_deref().unwrap_or(FIRST);
        let url = format!("{}/{}/json?poll=1&since={}", config.url, topics.join(","), encoded(since));
        let asked = Request { method: Method::Get, url: &url, headers: &[], body: &[], max_bytes: MAX_POLL };
        let body = asked.send()?.ok("ntfy")?;
        let text = String::from_utf8_lossy(&body);
        let mut batch = Batch { messages: Vec::new(), cursor: None };
        // Skips lines that are not JSON.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(id) = line["id"].as_str().filter(|_| line["event"] == "message") else { continue };
            if batch.messages.len() == MAX_MESSAGES {
                break;
            }
            batch.cursor = Some(id.to_owned());
            if let Some(message) = message(&line, id, &topics) {
                batch.messages.push(message);
            }
        }
        Ok(batch)
    }

    fn fetch(config: Config, attachment: String) -> Result<Vec<u8>, Failure> {
        if !attachment.strip_prefix(&config.url).is_some_and(|path| path.starts_with('/')) {
            return Err(failure("gone", "the file is at another host, which the channel may not reach"));
        }
        let asked = Request { method: Method::Get, url: &attachment, headers: &[], body: &[], max_bytes: MAX_FILE };
        asked.send()?.ok("ntfy")
    }

    fn send(config: Config, recipient: String, letter: Letter) -> Result<(), Failure> {
        let to = answers(&config, &recipient)?;
        let mut sent = Sent::load(&recipient, &letter.id)?;
        let texts = parts(&letter.text, MAX_TEXT);
        // Who reads the topic for answers need not know the one in which the owner writes.
        let actions = actions(&config, &recipient, &letter.choices).filter(|_| to == recipient);
        for (index, text) in texts.iter().enumerate().skip(sent.parts) {
            let offers = index + 1 == texts.len() && !letter.choices.is_empty();
            let url = format!("{}/{to}", config.url);
            let mut headers = vec![("x-markdown", "yes")];
            headers.extend(actions.as_deref().filter(|_| offers).map(|list| ("x-actions", list)));
            publish(&url, &letter.id, index, &headers, text.as_bytes())?;
            if offers {
                keep(&recipient, &letter.id, index)?;
            }
            sent.part()?;
        }
        for (index, file) in letter.files.iter().enumerate().skip(sent.parts.saturating_sub(texts.len())) {
            let url = format!("{}/{to}?filename={}", config.url, encoded(&file.name));
            publish(&url, &letter.id, texts.len() + index, &[], &file.content)?;
            sent.part()?;
        }
        Ok(())
    }

    /// Choices do not change. What was decided takes the place of the part that had them, with buttons or without.
    fn offer(
        config: Config,
        recipient: String,
        letter: String,
        note: Option<String>,
        _: Vec<Choice>,
    ) -> Result<(), Failure> {
        let to = answers(&config, &recipient)?;
        let known = kv::keys(PLACES).map_err(unavailable)?;
        let (Some(note), Some(place)) = (note, place(&known, &recipient, &letter)) else { return Ok(()) };
        if let Some(index) = part_of(place) {
            publish(&format!("{}/{to}", config.url), &letter, index, &[], note.as_bytes())?;
        }
        forget(place)
    }

    /// A choice arrives as the command that it stands for, and is answered like one.
    fn answer(_: Config, _: String, _: String, _: String) -> Result<(), Failure> {
        Ok(())
    }

    fn typing(_: Config, _: String) -> Result<(), Failure> {
        Ok(())
    }
}

/// The topics in which people write.
fn topics(config: &Config) -> Result<Vec<&str>, Failure> {
    let named = option(config, "topic").unwrap_or_default();
    let topics: Vec<&str> = named.split(',').map(str::trim).filter(|topic| !topic.is_empty()).collect();
    let reply = option(config, "reply_topic");
    let fits = |topic: &str| {
        (1..=64).contains(&topic.len()) && topic.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if topics.is_empty() || !topics.iter().copied().chain(reply).all(fits) {
        let message =
            "the option topic names the topic, of letters, digits, - and _; several stand with commas between them";
        return Err(failure("bad-config", message));
    }
    Ok(topics)
}

/// The topic for answers to one in which somebody wrote.
fn answers<'a>(config: &'a Config, recipient: &'a str) -> Result<&'a str, Failure> {
    let topics = topics(config)?;
    if !topics.contains(&recipient) {
        return Err(failure("gone", "the topic is not in the channel's options any more"));
    }
    // With several topics, each has its own answers.
    Ok(option(config, "reply_topic").filter(|_| topics.len() == 1).unwrap_or(recipient))
}

/// Buttons that publish the command of a choice to the topic. The app sends what a button says and nothing of its own, so where a
/// token is needed it would have to stand in the message, for everybody who reads the topic: there are no buttons then.
fn actions(config: &Config, topic: &str, choices: &[Choice]) -> Option<String> {
    let action = |choice: &Choice| {
        let command = choice.command.as_deref()?;
        let url = format!("{}/{topic}", config.url);
        Some(json!({
            "action": "http", "label": choice.label, "url": url, "method": "POST", "body": command, "clear": true,
        }))
    };
    let actions: Vec<Value> = choices.iter().filter_map(action).take(MAX_ACTIONS).collect();
    // A header has ASCII alone.
    let list = Value::from(actions).to_string();
    (!config.has_token && !choices.is_empty() && list.is_ascii()).then_some(list)
}

/// The message of a line; `None` for kiso's own messages and for other topics.
fn message(line: &Value, id: &str, topics: &[&str]) -> Option<Message> {
    let sender = line["topic"].as_str().filter(|topic| topics.contains(topic))?;
    if line["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == TAG)) {
        return None;
    }
    // An edit has the name of what it changes here, so it is known already.
    let id = line["sequence_id"].as_str().filter(|of| (1..=100).contains(&of.len())).unwrap_or(id);
    let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let file = &line["attachment"];
    let attachments = file["url"].as_str().map(|url| Attachment {
        id: url.to_owned(),
        name: head(file["name"].as_str().unwrap_or("attachment"), 200),
        size: file["size"].as_u64(),
    });
    // ntfy's own text for a file without a text.
    let says_nothing = |said: &String| attachments.is_some() && said.starts_with("You received a file");
    let said = text(&line["message"]).filter(|said| !says_nothing(said));
    let whole: Vec<String> = [text(&line["title"]), said].into_iter().flatten().collect();
    Some(Message {
        id: format!("{sender}/{id}"),
        sender: sender.to_owned(),
        sender_name: None,
        text: head(&whole.join("\n"), 64 << 10),
        attachments: attachments.into_iter().collect(),
        choice: None,
    })
}

/// Publishes one part. It has an id of its own: where it comes twice, a client shows it once.
fn publish(url: &str, letter: &str, index: usize, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Failure> {
    // ntfy takes 64 characters.
    let part = format!("{}-{}", &letter[letter.len().saturating_sub(56)..], index + 1);
    let all = [&[("x-tags", TAG), ("x-sequence-id", part.as_str())], headers].concat();
    let asked = Request { method: Method::Post, url, headers: &all, body, max_bytes: 64 << 10 };
    asked.send()?.ok("ntfy").map(drop)
}

/// Remembers which part of a letter has its choices. Those of a topic that nobody uses any more are not forgotten otherwise, so the
/// oldest go.
fn keep(topic: &str, letter: &str, index: usize) -> Result<(), Failure> {
    let known = kv::keys(PLACES).map_err(unavailable)?;
    let (key, oldest) = newest(&known, topic, letter, index);
    for old in oldest.iter().chain(place(&known, topic, letter)) {
        forget(old)?;
    }
    kv::set(&key, b"").map_err(unavailable)
}

/// The key of the part of a letter that has its choices.
fn place<'k>(known: &'k [String], topic: &str, letter: &str) -> Option<&'k String> {
    let of_letter = format!("/{topic}/{letter}/");
    known.iter().rev().find(|key| key.contains(&of_letter))
}

/// The key for a further place, and those for which there is no room beside it.
fn newest<'k>(known: &'k [String], topic: &str, letter: &str, index: usize) -> (String, &'k [String]) {
    let number = |key: &String| key.strip_prefix(PLACES)?.split('/').next()?.parse::<u64>().ok();
    let number = known.last().and_then(number).map_or(0, |last| last + 1);
    let key = format!("{PLACES}{number:016}/{topic}/{letter}/{index}");
    (key, &known[..known.len().saturating_sub(KEPT - 1)])
}

fn part_of(place: &str) -> Option<usize> {
    place.rsplit('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_places_go_whatever_they_are_called() {
        let mut known: Vec<String> = Vec::new();
        // Names whose order is not that of their age.
        let (topic, letter) = (|n: usize| ["z", "a", "m"][n % 3], |n: usize| format!("letter-{}", (n * 7) % 1_000));
        for n in 0..400 {
            let (key, oldest) = newest(&known, topic(n), &letter(n), n % 5);
            let oldest = oldest.to_vec();
            known.retain(|key| !oldest.contains(key));
            known.push(key);
            known.sort();
        }
        assert_eq!(known.len(), KEPT);
        for n in 0..400 {
            let part = place(&known, topic(n), &letter(n)).and_then(|place| part_of(place));
            assert_eq!(part, (n >= 400 - KEPT).then_some(n % 5), "{n}");
        }
        assert_eq!(place(&known, "z", "letter-"), None);
    }
}
