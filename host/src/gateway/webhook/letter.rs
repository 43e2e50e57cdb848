//! What a receiver is told: the body of a request.

use serde::Serialize;

use crate::drive::SEALED_RUN;
use crate::gateway::api::whole_message;
use crate::gateway::wire::Message;
use crate::graph::step::Event;
use crate::home::SessionName;
use crate::secret::Vault;
use crate::store::{Delivery, StoreError, View, WebhookEvent};

/// The event of a test that a person asked for.
pub(super) const TEST: &str = "test";

/// Bytes of a message's text that are sent; the whole text can be asked for by the message's id. A receiver reads a body
/// before it knows who sent it.
const MAX_TEXT: usize = 1 << 20;

#[derive(Debug, Serialize)]
struct Letter<'a> {
    /// The same in every attempt.
    id: &'a str,
    event: &'static str,
    session: Option<SessionName>,
    /// The reply; null for other events.
    message: Option<Message>,
    /// What a run said on its way; absent in other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Whether the text was longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    run: Option<String>,
    /// How a run ended; absent in other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    at_ms: i64,
    /// From 1.
    attempt: u32,
}

impl Letter<'_> {
    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has a JSON form")
    }
}

/// The body of a delivery's next attempt; `None` where what it is about was deleted.
pub(super) fn of(view: &View<'_>, vault: &Vault, delivery: &Delivery) -> Result<Option<Vec<u8>>, StoreError> {
    let mut letter = Letter {
        id: &delivery.key,
        event: delivery.event.as_str(),
        session: None,
        message: None,
        text: None,
        truncated: false,
        run: None,
        status: None,
        at_ms: delivery.at_ms,
        attempt: delivery.attempts + 1,
    };
    match delivery.event {
        WebhookEvent::Reply => {
            let Some(id) = delivery.message else { return Ok(None) };
            let Some((session, message)) = view.message(id)? else { return Ok(None) };
            let mut message = whole_message(view, vault, session.clone(), message)?;
            letter.truncated = message.text.len() > MAX_TEXT;
            if let Some(reply) = message.reply.as_mut().filter(|_| letter.truncated) {
                reply.blocks.clear();
            }
            message.text.truncate(message.text.floor_char_boundary(MAX_TEXT));
            letter.run = message.run.clone();
            (letter.session, letter.message) = (Some(session), Some(message));
        }
        WebhookEvent::Notify => {
            let (Some(id), Some(seq)) = (&delivery.run, delivery.seq) else { return Ok(None) };
            let (Some(run), Some(event)) = (view.run_line(id)?, view.event(id, seq)?) else { return Ok(None) };
            let Some(mut text) = notification(vault, &event.body) else { return Ok(None) };
            letter.truncated = text.len() > MAX_TEXT;
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            (letter.session, letter.run, letter.text) = (Some(run.session), Some(run.id.to_string()), Some(text));
        }
        WebhookEvent::Run => {
            let Some(id) = &delivery.run else { return Ok(None) };
            let Some(run) = view.run_line(id)? else { return Ok(None) };
            (letter.session, letter.run) = (Some(run.session), Some(run.id.to_string()));
            letter.status = Some(run.status.as_str());
        }
    }
    Ok(Some(letter.bytes()))
}

/// What an event of a run's log says to everybody outside: the output of a task, or what the user is told of the way.
fn notification(vault: &Vault, body: &str) -> Option<String> {
    let body = vault.open_text(SEALED_RUN, body).ok()?;
    let event: Event = serde_json::from_str(&body).ok()?;
    event.notification().map(str::to_owned)
}

/// The body of a test.
pub(super) fn test(key: &str, now_ms: i64) -> Vec<u8> {
    let letter = Letter {
        id: key,
        event: TEST,
        session: None,
        message: None,
        text: None,
        truncated: false,
        run: None,
        status: None,
        at_ms: now_ms,
        attempt: 1,
    };
    letter.bytes()
}
