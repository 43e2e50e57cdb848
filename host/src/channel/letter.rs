//! The content of deliveries.

use super::sink::{ChannelSink, WITHHELD};
use kiso_agent::drive::SEALED_RUN;
pub use kiso_gateway::Letter;
use kiso_gateway::{Message, whole_message};
use kiso_graph::step::Event;
use kiso_plan::block::Block;
use kiso_plan::label::Label;
use kiso_store::secret::Vault;
use kiso_store::store::{Delivery, LabelledRow, StoreError, View, WebhookEvent};

/// Maximum bytes of a message's text that are sent; the full text can be requested by the message's id. A receiver reads a
/// body before it knows who sent it.
const MAX_TEXT: usize = 1 << 20;

/// Removes all content of a letter, so that only its existence is reported.
fn withhold(letter: &mut Letter) {
    letter.withheld = true;
    if let Some(text) = &mut letter.text {
        WITHHELD.clone_into(text);
    }
    if let Some(message) = &mut letter.message {
        WITHHELD.clone_into(&mut message.text);
        message.tags.clear();
        if let Some(reply) = &mut message.reply {
            (reply.blocks, reply.files) = (Vec::new(), Vec::new());
        }
    }
}

/// Returns the content of a delivery's next attempt; `None` if its subject was deleted. Content that may not be sent to
/// `sink` is withheld.
pub(super) fn read(
    view: &View<'_>,
    vault: &Vault,
    delivery: &Delivery,
    sink: Option<&ChannelSink>,
) -> Result<Option<Letter>, StoreError> {
    let mut label = Label::default();
    let mut letter = Letter {
        id: delivery.key.clone(),
        event: delivery.event.as_str(),
        session: None,
        message: None,
        text: None,
        truncated: false,
        run: None,
        status: None,
        at_ms: delivery.at_ms,
        attempt: delivery.attempts + 1,
        withheld: false,
        epoch: None,
    };
    match delivery.event {
        WebhookEvent::Reply => {
            let Some(id) = delivery.message else { return Ok(None) };
            let Some((session, message)) = view.message(id)? else { return Ok(None) };
            let mut message = whole_message(view, vault, session.clone(), message)?;
            if let Some(run) = message.run.clone() {
                for seq in view.notified(&delivery.channel, &run)? {
                    let event = view.event(&run, seq)?;
                    if let Some(text) = event.and_then(|event| notification(vault, &event.body)) {
                        leave_out(&mut message, &text);
                    }
                }
            }
            letter.truncated = message.text.len() > MAX_TEXT;
            if let Some(reply) = message.reply.as_mut().filter(|_| letter.truncated) {
                reply.blocks.clear();
            }
            message.text.truncate(message.text.floor_char_boundary(MAX_TEXT));
            label = view.label(LabelledRow::Message, id)?;
            letter.run = message.run.clone();
            (letter.session, letter.message) = (Some(session), Some(message));
        }
        WebhookEvent::Notify => {
            let (Some(id), Some(seq)) = (&delivery.run, delivery.seq) else { return Ok(None) };
            let (Some(run), Some(event)) = (view.run_line(id)?, view.event(id, seq)?) else { return Ok(None) };
            let Some(mut text) = notification(vault, &event.body) else { return Ok(None) };
            label = delivery.label.clone().unwrap_or_default();
            letter.truncated = text.len() > MAX_TEXT;
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            (letter.session, letter.run, letter.text) = (Some(run.session), Some(run.id), Some(text));
        }
        WebhookEvent::Run => {
            let Some(id) = &delivery.run else { return Ok(None) };
            let Some(run) = view.run_line(id)? else { return Ok(None) };
            (letter.session, letter.run) = (Some(run.session), Some(run.id));
            letter.status = Some(run.status);
        }
    }
    if sink.is_some_and(|sink| !sink.admits(&label)) {
        withhold(&mut letter);
    }
    Ok(Some(letter))
}

/// Removes text that was already sent as a notification from the beginning of a reply, unless the reply has nothing else.
fn leave_out(message: &mut Message, told: &str) {
    let Some(rest) = message.text.strip_prefix(told).and_then(|rest| rest.strip_prefix("\n\n")) else { return };
    message.text = rest.to_owned();
    if let Some(reply) = &mut message.reply
        && matches!(reply.blocks.first(), Some(Block::Text { text }) if text == told)
    {
        reply.blocks.remove(0);
    } else if let Some(reply) = &mut message.reply
        && let Some(Block::Text { text }) = reply.blocks.first_mut()
        && let Some(rest) = text.strip_prefix(told).and_then(|rest| rest.strip_prefix("\n\n"))
    {
        *text = rest.to_owned();
    }
}

/// Returns the public text of an event in a run's log: the output of a task, or a notification for the user.
fn notification(vault: &Vault, body: &str) -> Option<String> {
    let body = vault.open_text(SEALED_RUN, body).ok()?;
    let event: Event = serde_json::from_str(&body).ok()?;
    event.notification().map(str::to_owned)
}
