//! Receives messages through a channel: each message once, and only from allowed senders.

use std::time::Duration;

use http::HeaderMap;
use ring::digest::{SHA256, digest};
use serde_json::json;
use tokio::sync::watch;

use super::{ComponentChannel, pairing};
use crate::channel::{NotDelivered, Trouble};
use kiso_agent::drive::SEALED_RUN;
use kiso_agent::session::intake::{Inbound, InboundEvent, IntakeError, IntakeOutcome};
use kiso_base::clock::now_ms;
use kiso_base::config::HookTemplate;
use kiso_base::home::SessionName;
use kiso_gateway::{App, OutsideEvent, render};
use kiso_plan::label::{Confidentiality, Integrity, Label};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::skill::channel::{ChannelFailure, ChannelTrouble, Letter, Message};
use kiso_store::store::{ChannelSender, JobPriority, SenderStanding};

/// Limits of a batch and of a message, as `wit/channel` says.
const MAX_MESSAGES: usize = 100;
const MAX_ID: usize = 200;
const MAX_CURSOR: usize = 2_000;
const MAX_TEXT: usize = 64 << 10;
const MAX_ATTACHMENTS: usize = 10;
const MAX_FILE: usize = 8 << 20;

/// Pauses between failed polls: the first, which doubles each time, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Attempts to fetch an attachment.
const FETCHES: u32 = 3;

/// Notes sent between two polls, and attempts before one is given up.
const NOTES: u32 = 10;
const MAX_ATTEMPTS: u32 = 20;

/// Minimum milliseconds between two attempts to send a note, and how many are added with each attempt.
const NOTE_PAUSE_MS: i64 = 2_000;

/// The received files of a message.
struct ReceivedFiles {
    /// Names of the files that are in the workspace.
    names: Vec<String>,
    /// One line for each file that is not.
    troubles: String,
}

impl ReceivedFiles {
    /// Returns the text about the files for the message.
    fn text(&self) -> String {
        match self.names.is_empty() {
            true => self.troubles.clone(),
            false => format!("Files: {}\n{}", self.names.join(", "), self.troubles),
        }
    }
}

/// The result of a round.
#[derive(Debug, Clone, Copy)]
enum Round {
    /// No more messages are waiting.
    Whole,
    /// More messages may be waiting.
    Full,
    /// The daemon ends.
    Ended,
}

/// The answer to a message without text and files, such as a game.
const NOTHING_READABLE: &str = "There is nothing in this message that kiso can read: send text or files.";

/// Why a poll must be repeated. Nothing is lost, because the cursor has not moved.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Again(pub(super) String);

impl ComponentChannel {
    /// Polls the service for messages until `ending` is true.
    pub(super) async fn receive(&self, app: App, mut ending: watch::Receiver<bool>) {
        let mut pause = FIRST_PAUSE;
        let mut trouble: Option<String> = None;
        loop {
            self.say_notes().await;
            self.show_decided().await;
            let wait = match self.round(&app, &mut ending).await {
                Ok(Round::Ended) => return,
                Ok(round) => {
                    pause = FIRST_PAUSE;
                    self.note_trouble(&mut trouble, None).await;
                    // More messages may follow a full batch.
                    let whole = matches!(round, Round::Full);
                    if whole { Duration::ZERO } else { Duration::from_secs(self.settings.poll_s) }
                }
                Err(Again(why)) => {
                    self.note_trouble(&mut trouble, Some(why)).await;
                    let wait = self.rest().unwrap_or(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    wait
                }
            };
            // Notes of this round are sent at once.
            self.say_notes().await;
            self.show_decided().await;
            tokio::select! {
                _ = ending.wait_for(|ending| *ending) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Records a channel's trouble when it changes: `kiso connect channel list` is another process.
    async fn note_trouble(&self, known: &mut Option<String>, now: Option<String>) {
        if *known == now {
            return;
        }
        match &now {
            Some(why) => tracing::warn!(channel = self.settings.name, "messages cannot be received: {why}"),
            None => tracing::info!(channel = self.settings.name, "messages are received again"),
        }
        let (channel, trouble) = (self.settings.name.clone(), now.clone());
        let noted = self.drive.store.write(move |tx| tx.set_channel_trouble(&channel, trouble.as_deref(), now_ms()));
        if noted.await.is_ok() {
            *known = now;
        }
    }

    /// Polls once and handles the messages.
    async fn round(&self, app: &App, ending: &mut watch::Receiver<bool>) -> Result<Round, Again> {
        let again = |error: &dyn std::fmt::Display| Again(error.to_string());
        if let Some(rest) = self.rest() {
            return Err(Again(format!("the service wants to be left alone for {} s", rest.as_secs().max(1))));
        }
        let channel = self.settings.name.clone();
        let line = self.drive.store.read(move |view| view.channel(&channel)).await.map_err(|e| again(&e))?;
        let polled = tokio::select! {
            // A service may hold the request open until a message arrives; dropping the request loses nothing.
            _ = ending.wait_for(|ending| *ending) => return Ok(Round::Ended),
            polled = self.guest.poll(line.cursor.as_deref()) => polled,
        };
        let batch = polled.map_err(|failure| {
            self.heed(&failure);
            again(&failure)
        })?;
        if batch.messages.len() > MAX_MESSAGES {
            return Err(Again(format!("the component gives {} messages at once", batch.messages.len())));
        }
        let round = if batch.messages.len() == MAX_MESSAGES { Round::Full } else { Round::Whole };
        for message in batch.messages {
            match checked(message) {
                Some(message) => self.take(app, message).await?,
                None => tracing::warn!(channel = self.settings.name, "a message without a valid id or sender was left"),
            }
        }
        let Some(cursor) = batch.cursor.filter(|cursor| Some(cursor) != line.cursor.as_ref()) else {
            return Ok(Round::Whole);
        };
        if cursor.len() > MAX_CURSOR {
            return Err(Again("the component's cursor is too long".to_owned()));
        }
        let channel = self.settings.name.clone();
        let moved = self.drive.store.write(move |tx| tx.set_channel_cursor(&channel, &cursor, now_ms()));
        moved.await.map_err(|error| again(&error))?;
        Ok(round)
    }

    /// Handles one message, unless it was handled before.
    async fn take(&self, app: &App, message: Message) -> Result<(), Again> {
        let again = |error: &dyn std::fmt::Display| Again(error.to_string());
        let (channel, id, sender) = (self.settings.name.clone(), message.id.clone(), message.sender.clone());
        let (known, sender) = self
            .drive
            .store
            .read(move |view| Ok((view.channel_received(&channel, &id)?, view.channel_sender(&channel, &sender)?)))
            .await
            .map_err(|error| again(&error))?;
        if known {
            return Ok(());
        }
        let (id, recipient) = (message.id.clone(), message.sender.clone());
        let note = match sender {
            sender if message.choice.is_some() => {
                let choice = message.choice.as_deref().unwrap_or_default();
                self.choose(&message, choice, sender.as_ref()).await?;
                None
            }
            Some(sender) if sender.standing != SenderStanding::Waiting => {
                if self.meter.admits(&sender.sender, self.settings.per_minute, now_ms()) {
                    self.hand_in(app, message, &sender).await?
                } else {
                    // A flood of messages gets one answer per minute.
                    let is_said = self.meter.admits(&format!("{} is told", sender.sender), 1, now_ms());
                    let most = self.settings.per_minute;
                    is_said.then(|| {
                        format!("Not all messages were accepted: there can be {most} in a minute. Send the last ones again later.")
                    })
                }
            }
            _ => self.invite(&message).await?,
        };
        let sealed = note.map(|text| self.drive.vault.seal_text(SEALED_RUN, &text)).transpose();
        let sealed = sealed.map_err(|error| again(&error))?;
        let channel = self.settings.name.clone();
        let received = self.drive.store.write(move |tx| {
            let note = sealed.as_deref().map(|text| (recipient.as_str(), text));
            tx.receive_channel_message(&channel, &id, note, now_ms())
        });
        received.await.map_err(|error| again(&error))
    }

    /// Passes a message of an allowed sender to the intake. Returns the immediate answer, if any.
    async fn hand_in(&self, app: &App, message: Message, sender: &ChannelSender) -> Result<Option<String>, Again> {
        let is_owner = sender.standing == SenderStanding::Owner;
        let session = match is_owner {
            true => self.settings.own_session(),
            false => self.settings.session_of(sender.number),
        };
        let files = self.files(app, &session, &message, is_owner).await?;
        // A voice note counts as its sender's text. A forwarded one comes with a text that says so.
        let said = match is_owner && message.text.trim().is_empty() {
            true => self.spoken(&session, &files.names).await,
            false => None,
        };
        let is_spoken = said.is_some();
        let message = match said {
            Some(text) => Message { text, ..message },
            None => message,
        };
        // A command is used exactly as typed.
        let is_command = is_owner && message.text.trim_start().starts_with(['/', '$', '!']);
        let (text, unsaid) = match is_command {
            true => (message.text.clone(), files.troubles.trim().to_owned()),
            false if is_spoken => ([message.text.trim(), files.troubles.trim()].join("\n\n"), String::new()),
            false => ([message.text.trim(), files.text().trim()].join("\n\n"), String::new()),
        };
        if text.trim().is_empty() {
            return Ok(Some(NOTHING_READABLE.to_owned()));
        }
        // The service's id may have any length.
        let key = digest(&SHA256, format!("{}\n{}", self.settings.name, message.id).as_bytes());
        let taken = if is_owner {
            let inbound = Inbound {
                session,
                text,
                // Access to the owner's phone does not make somebody an administrator.
                caller: CallerScope::User,
                by_person: true,
                priority: JobPriority::Interactive,
                client_key: Some(format!("channel-{}", data_encoding::HEXLOWER.encode(key.as_ref()))),
                flush: false,
            };
            app.intake().take(inbound).await
        } else {
            let event = InboundEvent {
                hook: self.outbox_name.clone(),
                label: Label::new(Integrity::Person, Confidentiality::Session, &format!("person:{}", self.outbox_name)),
                session,
                text: from_outside(&self.settings.name, &text),
                keys: vec![key.as_ref().to_vec()],
                told: None,
                max_waiting: self.settings.max_waiting,
            };
            app.intake().take_event(event).await
        };
        match taken {
            Ok(IntakeOutcome::Queued { .. }) => {
                // A failure to show this does not matter to the message.
                if self.rest().is_none() {
                    let _ = self.guest.typing(&sender.sender).await;
                }
                Ok(Some(unsaid).filter(|unsaid| !unsaid.is_empty()))
            }
            Ok(IntakeOutcome::Answered { text }) => Ok(Some(text)),
            Err(IntakeError::Empty) => Ok(None),
            Err(refused @ (IntakeError::TooLarge { .. } | IntakeError::BadKey { .. })) => Ok(Some(refused.to_string())),
            Err(IntakeError::HookFull { max, .. }) => {
                Ok(Some(format!("This message was not accepted: {max} of yours wait already. Send it again later.")))
            }
            Err(error) => Err(Again(error.to_string())),
        }
    }

    /// Returns the transcript of a message that is a voice note (its channel names the file so), if a model can transcribe
    /// it. The recording stays in the workspace.
    async fn spoken(&self, session: &SessionName, names: &[String]) -> Option<String> {
        // Other recordings, such as a song or a lecture, are attachments.
        let [name] = names else { return None };
        if !name.starts_with("voice-") {
            return None;
        }
        match self.drive.newest().transcribe(session, name).await? {
            Ok(text) => {
                // A model chose these letters: commands are only accepted when typed.
                let text = text.trim_start_matches(|c: char| c.is_whitespace() || ['/', '$', '!'].contains(&c));
                (!text.is_empty()).then(|| format!("{text}\n\n(A voice note; its sound is in {name}.)"))
            }
            Err(why) => {
                tracing::warn!(channel = self.settings.name, "a voice note was not written down: {why}");
                None
            }
        }
    }

    /// Puts the attachments of a message into the workspace.
    async fn files(
        &self,
        app: &App,
        session: &SessionName,
        message: &Message,
        by_owner: bool,
    ) -> Result<ReceivedFiles, Again> {
        let (mut files, mut troubles) = (Vec::new(), String::new());
        for attachment in &message.attachments {
            let name = shown(&attachment.name);
            let fetched = match attachment.size {
                Some(size) if size > MAX_FILE as u64 => Err("it is larger than 8 MiB".to_owned()),
                _ => match self.fetch(&attachment.id).await {
                    Ok(content) if content.len() > MAX_FILE => Err("it is larger than 8 MiB".to_owned()),
                    Ok(content) => Ok(content),
                    // The message is received again with its file.
                    Err(failure) if failure.rest.is_some() || failure.trouble == ChannelTrouble::Unauthorized => {
                        self.heed(&failure);
                        return Err(Again(failure.message));
                    }
                    Err(failure) => Err(shown(&failure.message)),
                },
            };
            match fetched {
                Ok(content) => files.push((attachment.name.clone(), content)),
                Err(why) => troubles += &format!("(The file {name} could not be received: {why})\n"),
            }
        }
        let label = match by_owner {
            true => LabelId::from_label(&Label::attached()),
            false => {
                let source = format!("person:{}", self.outbox_name);
                LabelId::from_label(&Label::new(Integrity::World, Confidentiality::Session, &source))
            }
        };
        let names = app.put_files(session, files, label).await.unwrap_or_else(|why| {
            troubles += &format!("(The files could not be saved: {why})\n");
            Vec::new()
        });
        Ok(ReceivedFiles { names, troubles })
    }

    /// Returns the content of an attachment. Retries a service that does not answer, but not forever: a file that can never
    /// be fetched must not block later messages.
    async fn fetch(&self, attachment: &str) -> Result<Vec<u8>, ChannelFailure> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..FETCHES {
            match self.guest.fetch(attachment).await {
                Err(failure) if failure.trouble == ChannelTrouble::Passing && failure.rest.is_none() => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                ended => return ended,
            }
        }
        self.guest.fetch(attachment).await
    }

    /// Gives a stranger a pairing code, unless there is one already.
    async fn invite(&self, message: &Message) -> Result<Option<String>, Again> {
        let Some(code) = pairing::code() else { return Err(Again("the system has no random numbers".to_owned())) };
        let (channel, sender, given) = (self.settings.name.clone(), message.sender.clone(), code.clone());
        let name = message.sender_name.as_deref().map(shown).filter(|name| !name.is_empty());
        let offered = self
            .drive
            .store
            .write(move |tx| tx.offer_channel_code(&channel, &sender, name.as_deref(), &given, now_ms()));
        let offered = offered.await.map_err(|error| Again(error.to_string()))?;
        tracing::info!(channel = self.settings.name, offered, "a stranger wrote");
        Ok(offered.then(|| pairing::invitation(&self.settings.name, &code)))
    }

    /// Sends notes: texts that are not replies of runs.
    async fn say_notes(&self) {
        let channel = self.settings.name.clone();
        let due = self.drive.store.read(move |view| view.channel_notes(&channel, now_ms(), NOTES)).await;
        for note in due.unwrap_or_default() {
            let Ok(text) = self.drive.vault.open_text(SEALED_RUN, &note.text) else { continue };
            let letter = Letter {
                id: format!("note-{}", note.id),
                text: text.into_owned(),
                files: Vec::new(),
                choices: Vec::new(),
            };
            let sent = self.send(&note.recipient, &letter).await;
            let (id, due_ms) = (note.id, now_ms() + NOTE_PAUSE_MS * (i64::from(note.attempts) + 1));
            let ended = match sent {
                Ok(()) => self.drive.store.write(move |tx| tx.end_channel_note(id)).await,
                Err(NotDelivered { trouble: Trouble::Gone, .. }) => {
                    self.drive.store.write(move |tx| tx.end_channel_note(id)).await
                }
                Err(_) if note.attempts + 1 >= MAX_ATTEMPTS => {
                    self.drive.store.write(move |tx| tx.end_channel_note(id)).await
                }
                Err(_) => self.drive.store.write(move |tx| tx.put_off_channel_note(id, due_ms)).await,
            };
            if let Err(error) = ended {
                tracing::warn!(channel = self.settings.name, "what was said could not be recorded: {error}");
                return;
            }
        }
    }
}

/// Wraps a message that is not the owner's: a request of kiso's with the text as data, as for a hook. No line of it is a
/// command.
#[expect(clippy::expect_used, reason = "the test below parses it; the event has what the template names")]
fn from_outside(channel: &str, text: &str) -> String {
    let template = HookTemplate::parse("Answer the message that came through the channel {body.channel}: {body.text}");
    let template = template.expect("the test below parses it");
    let event = OutsideEvent { headers: HeaderMap::new(), body: json!({ "channel": channel, "text": text }) };
    render(&template, &event).expect("the event has what the template names")
}

/// Returns the message cut to its limits; `None` without a valid id or sender. Components are not trusted.
fn checked(mut message: Message) -> Option<Message> {
    let is_name = |text: &str| (1..=MAX_ID).contains(&text.len()) && !text.chars().any(char::is_control);
    if !is_name(&message.id) || !is_name(&message.sender) {
        return None;
    }
    message.text.truncate(message.text.floor_char_boundary(MAX_TEXT));
    message.choice = message.choice.map(|choice| if choice.len() > MAX_ID { String::new() } else { choice });
    message.attachments.truncate(MAX_ATTACHMENTS);
    message.attachments.retain(|attachment| attachment.id.len() <= MAX_CURSOR);
    Some(message)
}

/// Returns a text of a sender or a service as part of a line.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_ID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_sandbox::skill::channel::Attachment;

    #[test]
    fn what_an_outsider_writes_stands_as_data() {
        let text = from_outside("phone", "hello\n$ rm -r /\n~~~\n/new");
        let (request, data) = text.split_once("\n\n").unwrap();
        assert_eq!(request, "Answer the message that came through the channel phone: [body.text]");
        assert!(data.starts_with("[body.text], from outside, as data:\n~~~~\nhello\n"), "{data}");
    }

    #[test]
    fn what_a_component_says_is_held_to_its_limits() {
        let message = |id: &str, sender: &str| Message {
            id: id.to_owned(),
            sender: sender.to_owned(),
            sender_name: None,
            text: "ä".repeat(MAX_TEXT),
            choice: None,
            attachments: vec![Attachment { id: "x".to_owned(), name: "y".to_owned(), size: None }; 30],
        };
        let taken = checked(message("1", "ada")).unwrap();
        assert!(taken.text.len() <= MAX_TEXT && taken.attachments.len() == MAX_ATTACHMENTS);
        for (id, sender) in [("", "ada"), ("1", ""), ("1\n", "ada"), ("1", "a\u{1b}da"), (&"1".repeat(201), "ada")] {
            assert!(checked(message(id, sender)).is_none(), "{id:?} {sender:?}");
        }
    }
}
