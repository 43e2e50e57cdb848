//! A model with retries and fallbacks.
//!
//! ```text
//! first choice ─ attempt, pause, attempt, … ─► first fallback ─ attempt, pause, … ─► … ─► an error that says what each said
//! ```
//!
//! - Only a retryable [`LlmError::Unavailable`] is tried again, after a pause that doubles and is partly random. A pause that the
//!   provider asks for is respected, up to a limit.
//! - The next fallback is used after a refusal, after an answer that the provider withheld, and for an endpoint that asks for a
//!   longer pause, does not answer, or has an open [`Breaker`].
//! - A tool call that is written as text becomes a call, or the model is asked again: see [`text_calls`].
//! - An error of a scripted model ends the call, because another model would not help.
//!
//! A [`Slot`](super::slots::Slot) is held during an attempt and never during a pause.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use super::breaker::{Breaker, LeftAlone};
use super::estimate::{Estimator, request_tokens};
use super::price::Price;
use super::slots::Slots;
use super::text_calls::{self, HeldText, TextReading};
use super::time::Time;
use super::{Completing, Completion, LlmError, Model, Request, Sink, Stop};
use kiso_plan::limits::Usage;

/// The pause after the first failure, without its random part.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The number of attempts, and the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Maximum attempts with one model, at least one.
    pub max_attempts: u32,
    /// The longest pause between two attempts.
    pub max_wait: Duration,
}

/// One model of a chain.
#[derive(Clone)]
pub struct Link {
    pub model: Arc<dyn Model>,
    /// Settings of a model behind a network; `None` for built-in ones, which need no slot.
    pub remote: Option<Remote>,
    /// Maximum tokens of its answers.
    pub max_output_tokens: u32,
}

/// The settings of a remote endpoint.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Shared by all chains that call this model. Other models of the provider have their own: they are likely fallbacks, and an
    /// overloaded model says nothing about them.
    pub breaker: Arc<Breaker>,
    pub price: Price,
}

/// Shared by the chains of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ChainContext {
    pub slots: Slots,
    pub estimator: Arc<Estimator>,
    pub time: Arc<dyn Time>,
    pub retries: Retries,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("model", &self.model.name()).field("remote", &self.remote).finish_non_exhaustive()
    }
}

/// A first choice and its fallbacks. It has the first choice's name.
#[derive(Debug, Clone)]
pub struct Chain {
    first: Link,
    fallbacks: Vec<Link>,
    shared: ChainContext,
}

impl Chain {
    pub fn new(first: Link, fallbacks: Vec<Link>, shared: ChainContext) -> Self {
        Self { first, fallbacks, shared }
    }

    /// Returns the models in the order in which they are called.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }

    async fn ask(&self, request: &Request, sink: &mut dyn Sink) -> Result<Completion, LlmError> {
        let mut sink = Heard { sink, any: false, price: Price::default(), lost: Usage::default(), held: None };
        let answer = self.ask_each(request, &mut sink).await;
        if answer.is_err() {
            sink.begin(Price::default(), false);
        }
        answer
    }

    async fn ask_each(&self, request: &Request, sink: &mut Heard<'_>) -> Result<Completion, LlmError> {
        let mut silent = Silent::default();
        for link in self.links() {
            match self.ask_one(link, request, sink).await {
                Ok(mut completion) => {
                    completion.usage += std::mem::take(&mut sink.lost);
                    return Ok(completion);
                }
                Err(Failed { error: error @ LlmError::Script(_), .. }) => return Err(error),
                Err(failed) => silent.0.push(failed),
            }
        }
        Err(silent.error())
    }

    /// Calls one model until it answers or its attempts are used up.
    async fn ask_one(&self, link: &Link, request: &Request, sink: &mut Heard<'_>) -> Result<Completion, Failed> {
        let (shorter, mut again);
        let mut request = if link.max_output_tokens < request.max_tokens {
            shorter = Request { max_tokens: link.max_output_tokens, ..request.clone() };
            &shorter
        } else {
            request
        };
        let Some(remote) = &link.remote else {
            sink.begin(Price::default(), false);
            return link.model.complete(request, sink).await.map_err(|error| Failed { error, attempts: 1, why: None });
        };
        let (mut last, mut misused) = (None, None);
        for attempt in 1.. {
            let error = match self.attempt(link, remote, request, sink).await {
                Ok(completion) => match text_calls::read(completion, request) {
                    TextReading::Plain(completion) => {
                        sink.let_go();
                        return Ok(completion);
                    }
                    TextReading::Calls(completion) => return Ok(completion),
                    TextReading::Misused(completion, misuse) => {
                        sink.lost += completion.usage;
                        if misused.is_some() {
                            let (model, message) = (completion.model, misuse.message().to_owned());
                            let error = LlmError::Unavailable { model, message, retryable: false, retry_after: None };
                            return Err(Failed { error, attempts: 1, why: None });
                        }
                        misused = Some(misuse);
                        again = text_calls::asked_again(request, &completion, misuse);
                        request = &again;
                        continue;
                    }
                },
                // The model's own error is more informative than the open breaker that it caused.
                Err(Tried::LeftAlone(alone)) => {
                    return Err(last.unwrap_or_else(|| Failed::left_alone(link.model.name(), alone)));
                }
                Err(Tried::Failed(error)) => error,
            };
            let mut failed = Failed { error, attempts: attempt, why: None };
            let LlmError::Unavailable { retryable: true, retry_after, .. } = failed.error else { return Err(failed) };
            if attempt >= self.shared.retries.max_attempts {
                return Err(failed);
            }
            let Some(pause) = self.pause(attempt, retry_after) else {
                failed.why = retry_after.map(|wait| format!("it asks to wait {} s", wait.as_secs()));
                return Err(failed);
            };
            last = Some(failed);
            self.shared.time.sleep(pause).await;
        }
        unreachable!("attempts are counted without end")
    }

    async fn attempt(
        &self,
        link: &Link,
        remote: &Remote,
        request: &Request,
        sink: &mut Heard<'_>,
    ) -> Result<Completion, Tried> {
        let ChainContext { slots, estimator, time, .. } = &self.shared;
        // Before the slot, so that no call waits in vain; again after it, because the wait took time.
        remote.breaker.check(time.now())?;
        let slot = slots.acquire(request.priority).await;
        let pass = remote.breaker.enter(time.now())?;
        sink.begin(remote.price, text_calls::is_text(request));
        let answer = link.model.complete(request, sink).await;
        match &answer {
            Err(LlmError::Unavailable { .. }) => pass.failed(time.now()),
            _ => pass.answered(),
        }
        drop(slot);
        let mut completion = answer?;
        // An estimated count teaches nothing, and each provider counts pictures differently.
        if completion.counted && request.images().next().is_none() {
            estimator.learn(link.model.name(), request_tokens(request), completion.usage.input_tokens);
        }
        if completion.stop == Stop::Filter {
            // Another provider may have other rules; this one would refuse again.
            sink.spent(completion.usage);
            let message = "it held the answer back (content filter)".to_owned();
            return Err(Tried::Failed(LlmError::Refused { model: completion.model, message }));
        }
        completion.usage = remote.price.charge(completion.usage);
        Ok(completion)
    }

    /// Returns the pause after this attempt; `None` if the provider asks for more than the maximum.
    fn pause(&self, attempt: u32, asked: Option<Duration>) -> Option<Duration> {
        let most = self.shared.retries.max_wait;
        let doubled = FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(16)).min(most);
        // Half of it is random, so that calls that failed together are not repeated together.
        let own = doubled.mul_f64(0.5 + self.shared.time.chance().clamp(0.0, 1.0) / 2.0);
        match asked {
            Some(asked) if asked > most => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }
}

impl Model for Chain {
    fn name(&self) -> &str {
        self.first.model.name()
    }

    fn sees(&self) -> Option<bool> {
        self.first.model.sees()
    }

    fn hears(&self) -> bool {
        self.first.model.hears()
    }

    fn learn_vision(&self, sees: bool) {
        self.first.model.learn_vision(sees);
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(self.ask(request, sink))
    }
}

/// A sink that knows whether it has received text since its last beginning, and the cost of answers that broke off. A call that
/// succeeds in the end includes that cost in its usage; otherwise it is reported to the inner sink.
struct Heard<'a> {
    sink: &'a mut dyn Sink,
    any: bool,
    /// The price of the called model.
    price: Price,
    lost: Usage,
    /// Holds back text of the answer that may be a call.
    held: Option<HeldText>,
}

impl Heard<'_> {
    /// Called before each attempt, and after the last one if it failed: discards the text of an earlier attempt.
    fn begin(&mut self, price: Price, holds: bool) {
        self.price = price;
        self.held = holds.then(HeldText::default);
        if std::mem::take(&mut self.any) {
            self.sink.restart();
        }
    }
}

impl Heard<'_> {
    /// Passes on the text that was held back: it is not a call.
    fn let_go(&mut self) {
        let rest = self.held.take().map(|mut held| held.rest()).unwrap_or_default();
        self.tell(&rest);
    }

    fn tell(&mut self, text: &str) {
        if !text.is_empty() {
            self.any = true;
            self.sink.text(text);
        }
    }
}

impl Sink for Heard<'_> {
    fn text(&mut self, piece: &str) {
        match &mut self.held {
            Some(held) => {
                let shown = held.push(piece);
                self.tell(&shown);
            }
            None => self.tell(piece),
        }
    }

    fn thought(&mut self, piece: &str) {
        self.sink.thought(piece);
    }

    fn restart(&mut self) {
        self.held = self.held.take().map(|_| HeldText::default());
        self.any = false;
        self.sink.restart();
    }

    fn spent(&mut self, usage: Usage) {
        self.lost += self.price.charge(usage);
    }
}

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        if self.lost != Usage::default() {
            self.sink.spent(self.lost);
        }
    }
}

/// The failure of one attempt.
enum Tried {
    Failed(LlmError),
    LeftAlone(LeftAlone),
}

impl From<LlmError> for Tried {
    fn from(error: LlmError) -> Self {
        Self::Failed(error)
    }
}

impl From<LeftAlone> for Tried {
    fn from(alone: LeftAlone) -> Self {
        Self::LeftAlone(alone)
    }
}

/// A model that did not answer.
struct Failed {
    error: LlmError,
    attempts: u32,
    /// Why it was not called again, if that is not obvious.
    why: Option<String>,
}

impl Failed {
    fn left_alone(model: &str, alone: LeftAlone) -> Self {
        let LeftAlone { failures, left } = alone;
        let rest = match left.as_secs_f64().ceil() as u64 {
            0 => "another call is trying it".to_owned(),
            seconds => format!("it is left alone for {seconds} s more"),
        };
        let message = format!("it failed {failures} times in a row, and {rest}");
        let error =
            LlmError::Unavailable { model: model.to_owned(), message, retryable: true, retry_after: Some(left) };
        Self { error, attempts: 0, why: None }
    }

    /// Returns its error, with the number of attempts.
    fn message(&self) -> String {
        let mut text = match &self.error {
            LlmError::Unavailable { message, .. }
            | LlmError::Refused { message, .. }
            | LlmError::Unready { message, .. } => message.clone(),
            other => other.to_string(),
        };
        if self.attempts > 1 {
            let _ = write!(text, " ({} attempts)", self.attempts);
        }
        if let Some(why) = &self.why {
            let _ = write!(text, " ({why})");
        }
        text
    }
}

/// Every model of a chain that did not answer, in order.
#[derive(Default)]
struct Silent(Vec<Failed>);

impl Silent {
    /// Combines them into one error: a refusal if each refused, otherwise the first model's failure.
    fn error(mut self) -> LlmError {
        if let [Failed { error: LlmError::Unready { .. }, .. }] = self.0.as_slice() {
            return self.0.remove(0).error;
        }
        let mut model = String::new();
        let mut message = String::new();
        let (mut refused, mut again, mut wait) = (true, false, None);
        for failed in &self.0 {
            let said = failed.message();
            let (name, how) = match &failed.error {
                LlmError::Unavailable { model, retryable, retry_after, .. } => {
                    again |= retryable;
                    wait = [wait, *retry_after].into_iter().flatten().min();
                    refused = false;
                    (model, "did not answer")
                }
                LlmError::Refused { model, .. } => (model, "refused"),
                LlmError::Unready { model, .. } => (model, "cannot be called"),
                // This error has ended the call.
                LlmError::Script(_) => continue,
            };
            if model.is_empty() {
                model.clone_from(name);
                message = said;
            } else {
                let _ = write!(message, "; the fallback {name} {how}: {said}");
            }
        }
        if refused {
            LlmError::Refused { model, message }
        } else {
            LlmError::Unavailable { model, message, retryable: again, retry_after: wait }
        }
    }
}

#[cfg(test)]
mod tests;
