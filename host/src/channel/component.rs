//! Channels that are components (`wit/channel`), one for each `[channels.NAME]`.
//!
//! ```text
//!  service ─▶ poll ─▶ known? ─▶ who is it? ─┬─ owner ──▶ intake, commands too
//!                                           ├─ allowed ▶ intake as an event from outside
//!                                           └─ stranger ▶ a pairing code, and nothing else
//!  outbox ─▶ deliver ─▶ send ─▶ service      what is said beside replies ─▶ notes ─▶ send
//!  a card has choices ─▶ a press ─▶ the owner's? ─▶ the card's answer ─▶ offer: the card shows it (`offer.rs`)
//! ```
//!
//! A component implements its service's protocol and decides nothing: this module checks who may write, how much, and what
//! is a duplicate. Received messages are on disk before the cursor is, and texts are on disk before they are sent, so a
//! daemon that is killed at any time loses nothing. It repeats only what it sent at the moment of the kill, with the same
//! id.

mod offer;
mod outgoing;
pub mod pairing;
mod receive;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::sink::ChannelSink;
use super::{Channel, Letter, NotDelivered, RetryPolicy, Trouble};
use kiso_agent::drive::RunExecutor;
use kiso_base::clock::now_ms;
use kiso_base::config::{ChannelSettings, Config};
use kiso_gateway::{App, HookMeter};
use kiso_sandbox::skill::channel::{ChannelComponent, ChannelFailure, ChannelSource, ChannelTrouble};
use kiso_store::secret::{SecretValue, log_redaction};
use kiso_store::store::{ApprovalLine, ApprovalState, SenderStanding, Subscription, WebhookEvent};

/// How long a channel pauses after the service has rejected its token: a person has to fix it, and must not wait for long
/// afterwards.
const UNAUTHORIZED_REST: Duration = Duration::from_secs(30);

/// Reasons why a channel of `config.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    #[error("{variable}, the variable with the token of [channels.{channel}], is not set")]
    NotSet { channel: String, variable: String },
    #[error(
        "there is no channel {component:?} for [channels.{channel}]; there is {known}, or name the path of a component",
        known = ChannelSource::names().collect::<Vec<_>>().join(" and ")
    )]
    Unknown { channel: String, component: String },
    #[error("[channels.{channel}]: {why}")]
    Unusable { channel: String, why: String },
}

/// A channel served by a component.
#[derive(Debug)]
pub(super) struct ComponentChannel {
    /// Its name in the outbox; contains a dot, unlike the name of any webhook.
    outbox_name: String,
    settings: ChannelSettings,
    drive: RunExecutor,
    guest: ChannelComponent,
    /// Counts each sender's messages. Only allowed senders are counted, so there are few.
    meter: HookMeter,
    /// End of the pause that the service asked for.
    rests_until: Mutex<Option<Instant>>,
    sink: ChannelSink,
}

impl ComponentChannel {
    pub(super) fn open_all(
        drive: &RunExecutor,
        config: &Config,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<ComponentChannel>, ComponentError> {
        config.channels.iter().map(|settings| ComponentChannel::open(drive, config, settings, &environment)).collect()
    }

    fn open(
        drive: &RunExecutor,
        config: &Config,
        settings: &ChannelSettings,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<ComponentChannel, ComponentError> {
        let name = &settings.name;
        let token = token(settings, environment)?;
        let source = ChannelSource::parse(&settings.component)
            .ok_or_else(|| ComponentError::Unknown { channel: name.clone(), component: settings.component.clone() })?;
        let guest = drive
            .tools
            .skills()
            .channel(source, settings, token)
            .map_err(|why| ComponentError::Unusable { channel: name.clone(), why })?;
        Ok(ComponentChannel {
            outbox_name: settings.own_session().to_string(),
            settings: settings.clone(),
            drive: drive.clone(),
            guest,
            meter: HookMeter::default(),
            rests_until: Mutex::default(),
            sink: ChannelSink::new(config, format!("channel:{name}")),
        })
    }

    /// Returns the rest of the pause that the service asked for.
    fn rest(&self) -> Option<Duration> {
        let until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.and_then(|until| until.checked_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Remembers the pause that a failure asks for.
    fn heed(&self, failure: &ChannelFailure) {
        let rest = match failure.trouble {
            ChannelTrouble::Unauthorized => Some(UNAUTHORIZED_REST),
            _ => failure.rest,
        };
        if let Some(rest) = rest {
            *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + rest);
        }
    }

    /// Returns the card that a letter shows, if it can still be answered.
    async fn card_of(&self, letter: &Letter) -> Result<Option<ApprovalLine>, NotDelivered> {
        let Some(message) = letter.message.as_ref().map(|message| message.id) else { return Ok(None) };
        let card = self.drive.store.read(move |view| view.approval_in_message(message)).await;
        let card = card.map_err(|error| NotDelivered::passing(error.to_string()))?;
        Ok(card.filter(|card| card.state == ApprovalState::Pending && card.card.expires_ms > now_ms()))
    }

    /// Records that a letter offers choices, so that it can show the outcome later.
    async fn note_offer(
        &self,
        recipient: &str,
        letter: &Letter,
        card: Option<&ApprovalLine>,
    ) -> Result<(), NotDelivered> {
        let Some(card) = card.map(|card| card.id) else { return Ok(()) };
        let (channel, recipient, letter) = (self.settings.name.clone(), recipient.to_owned(), letter.id.clone());
        let noted = self.drive.store.write(move |tx| tx.offer_card(&channel, &recipient, &letter, card)).await;
        noted.map_err(|error| NotDelivered::passing(error.to_string()))
    }

    /// Makes one attempt to send a letter.
    async fn send(&self, recipient: &str, letter: &kiso_sandbox::skill::channel::Letter) -> Result<(), NotDelivered> {
        if let Some(rest) = self.rest() {
            return Err(NotDelivered {
                wait: Some(rest),
                ..NotDelivered::passing("the service wants to be left alone")
            });
        }
        self.guest.send(recipient, letter).await.map_err(|failure| {
            self.heed(&failure);
            let trouble = match failure.trouble {
                ChannelTrouble::Gone | ChannelTrouble::TooLarge => Trouble::Gone,
                _ => Trouble::Passing,
            };
            NotDelivered { trouble, wait: self.rest(), ..NotDelivered::passing(failure.message) }
        })
    }
}

/// Returns the token from the environment.
pub fn token(
    settings: &ChannelSettings,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<SecretValue>, ComponentError> {
    let Some(variable) = &settings.token_env else { return Ok(None) };
    let value = environment(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let not_set = || ComponentError::NotSet { channel: settings.name.clone(), variable: variable.clone() };
    let token = value.map(SecretValue::new).ok_or_else(not_set)?;
    log_redaction::keep(variable, &token);
    Ok(Some(token))
}

impl Channel for ComponentChannel {
    fn name(&self) -> &str {
        &self.outbox_name
    }

    fn place(&self) -> String {
        self.settings.url.clone()
    }

    fn serve(self: Arc<Self>, app: App, ending: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.receive(app, ending).await })
    }

    fn subscription(&self) -> Option<Subscription> {
        let own = self.settings.own_session();
        let sessions = vec![own.to_string(), format!("{own}.*")];
        let events = vec![WebhookEvent::Reply, WebhookEvent::Notify];
        Some(Subscription { channel: self.outbox_name.clone(), sessions, events })
    }

    fn sink(&self) -> Option<&ChannelSink> {
        Some(&self.sink)
    }

    /// Retries for three days, at most half a minute apart, because a person may be waiting. The channel itself tracks how
    /// long the service asks to wait.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy { max_attempts: u32::MAX, max_age_ms: 72 * 3_600_000, base_ms: 1_000, max_ms: 30_000 }
    }

    fn deliver<'a>(&'a self, letter: &'a Letter, _: i64) -> BoxFuture<'a, Result<(), NotDelivered>> {
        Box::pin(async move {
            let gone = |why: &str| NotDelivered { trouble: Trouble::Gone, ..NotDelivered::passing(why) };
            let session = letter.session.as_ref().ok_or_else(|| gone("it is of no session"))?;
            let channel = self.settings.name.clone();
            let senders = self.drive.store.read(move |view| view.channel_senders(&channel)).await;
            let senders = senders.map_err(|error| NotDelivered::passing(error.to_string()))?;
            let recipients: Vec<_> = senders
                .into_iter()
                .filter(|sender| match sender.standing {
                    SenderStanding::Owner => *session == self.settings.own_session(),
                    SenderStanding::Allowed => *session == self.settings.session_of(sender.number),
                    SenderStanding::Waiting => false,
                })
                .collect();
            let mut outgoing = outgoing::prepare(&self.drive.home, session, letter, &self.sink).await;
            if outgoing.text.is_empty() && outgoing.files.is_empty() {
                return Ok(());
            }
            // Nobody can accept what is not shown to them.
            let card = if letter.withheld { None } else { self.card_of(letter).await? };
            let mut end = Err(gone("nobody of its session may write any more"));
            for recipient in recipients {
                let offered = card.as_ref().filter(|_| recipient.standing == SenderStanding::Owner);
                outgoing.choices = offered.map_or_else(Vec::new, |card| offer::choices(card, offer::Ticks::default()));
                self.note_offer(&recipient.sender, letter, offered).await?;
                match self.send(&recipient.sender, &outgoing).await {
                    Ok(()) => {
                        end = Ok(());
                        // The card may have been decided, and its outcome shown, before this letter was recorded.
                        self.note_offer(&recipient.sender, letter, offered).await?;
                    }
                    // A recipient who is gone does not affect the others.
                    Err(failed) if failed.trouble == Trouble::Gone => end = end.or(Err(failed)),
                    Err(failed) => return Err(failed),
                }
            }
            end
        })
    }
}
