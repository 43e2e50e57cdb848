//! A message on its way to its reply: what it has come to, and what can be told of the reply while it is written.

use serde_json::Value;

use super::message::whole_message;
use kiso_base::home::SessionName;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::effort::Effort;
use kiso_plan::limits::Usage;
use kiso_plan::plan::TaskKind;
use kiso_store::secret::Vault;
use kiso_store::store::{JobState, RunId, Scope, Store, StoreError};

/// Bytes of what a model writes that are told while it does.
const MAX_WRITTEN: usize = 256 << 10;

/// What a message came to.
#[derive(Debug, Clone)]
pub struct TurnAnswer {
    pub text: String,
    pub state: JobState,
    pub usage: Usage,
    pub run: Option<RunId>,
}

impl TurnAnswer {
    /// Of what was answered without a run.
    pub fn at_once(text: String) -> TurnAnswer {
        TurnAnswer { text, state: JobState::Done, usage: Usage::default(), run: None }
    }
}

/// What a message has come to, if it is answered; how it stands otherwise. `None` where it is not, or of another session.
pub async fn standing(
    store: &Store,
    vault: &Vault,
    message: i64,
    session: Option<&SessionName>,
) -> Result<Option<Result<TurnAnswer, JobState>>, StoreError> {
    let (vault, of) = (vault.clone(), session.cloned());
    let read = store.read(move |view| {
        let Some(job) = view.job(message)?.filter(|job| of.is_none_or(|of| of == job.session)) else { return Ok(None) };
        if job.state.is_open() {
            return Ok(Some(Err(job.state)));
        }
        let reply = job.reply.map(|reply| view.message(reply)).transpose()?.flatten();
        let reply = reply.map(|(session, reply)| whole_message(view, &vault, session, reply)).transpose()?;
        let usage = job.run.as_ref().map(|run| view.usage_total(Scope::Run(run))).transpose()?.unwrap_or_default();
        let text = reply.map(|reply| reply.text).unwrap_or_default();
        Ok(Some(Ok(TurnAnswer { text, state: job.state, usage: usage.usage, run: job.run })))
    });
    read.await
}

/// Tells a reply in pieces that are its beginning, from the log and the live text of its run.
#[derive(Debug, Default)]
pub struct ReplyWriter {
    /// What the run has said for good.
    said: String,
    /// What of the reply was told.
    told: String,
    /// What the model has written in the step that the run is at, and the number of that.
    written: String,
    step: Option<u64>,
    writing: Writing,
}

/// Whether what is told of the reply is its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Writing {
    /// What is said for good.
    #[default]
    Committed,
    /// Each word, as the model writes it: the run does nothing but talk.
    Live,
    /// No more until the reply stands, because something of it is not known.
    Off,
}

impl ReplyWriter {
    /// A step whose event cannot be read here: what is too large to be sent along may be a part of the reply.
    pub fn missed(&mut self, kind: &str) {
        if matches!(kind, "executed" | "conversed" | "reviewed") {
            self.writing = Writing::Off;
        }
    }

    /// The next piece of the reply that an event of the run brings; may be empty.
    pub fn hear_event(&mut self, event: &Event) -> String {
        match &event.result {
            StepResult::Routed { routing, .. } if self.writing != Writing::Off => {
                let talks = routing.effort == Effort::Low;
                self.writing = if talks { Writing::Live } else { Writing::Committed };
                // Words overtake what the log says of the step before.
                self.live_piece()
            }
            StepResult::Conversed { .. } => self.say(event.say.as_deref()),
            StepResult::Executed { report, .. } if report.task.kind == TaskKind::Msg => self.say(event.say.as_deref()),
            _ => String::new(),
        }
    }

    /// The next piece that live text brings, as it comes with the event `live`.
    pub fn hear_live(&mut self, data: &Value) -> String {
        let text = data["text"].as_str().unwrap_or_default();
        match data["type"].as_str() {
            Some("token") => {
                if self.step != data["seq"].as_u64() {
                    self.step = data["seq"].as_u64();
                    self.written.clear();
                }
                if self.written.len() + text.len() <= MAX_WRITTEN {
                    self.written.push_str(text);
                    return self.live_piece();
                }
            }
            // All of it so far, in the place of what was missed.
            Some("text") if data["cut"].as_bool() != Some(true) => {
                self.step = data["seq"].as_u64();
                text.clone_into(&mut self.written);
                return self.live_piece();
            }
            Some("restart") => {
                self.written.clear();
                if self.writing == Writing::Live && !self.told.is_empty() {
                    self.writing = Writing::Off;
                }
            }
            _ => {}
        }
        String::new()
    }

    /// What is left to tell of the whole reply.
    pub fn end(&mut self, reply: &str) -> String {
        if self.writing != Writing::Off && reply.starts_with(&self.told) {
            return self.up_to(reply);
        }
        let gap = if self.told.is_empty() { "" } else { "\n\n" };
        format!("{gap}{reply}")
    }

    /// What the model has written, where it is the reply. That has no white space around it.
    fn live_piece(&mut self) -> String {
        if self.writing != Writing::Live {
            return String::new();
        }
        let written = std::mem::take(&mut self.written);
        let piece = self.up_to(written.trim());
        self.written = written;
        piece
    }

    /// What the run has said for good: the reply is made of these, with an empty line between.
    fn say(&mut self, say: Option<&str>) -> String {
        let Some(say) = say else { return String::new() };
        if !self.said.is_empty() {
            self.said.push_str("\n\n");
        }
        self.said.push_str(say);
        if self.writing == Writing::Off {
            return String::new();
        }
        if !self.said.starts_with(&self.told) {
            self.writing = Writing::Off;
            return String::new();
        }
        self.up_to(&self.said.clone())
    }

    fn up_to(&mut self, text: &str) -> String {
        let piece = text.strip_prefix(self.told.as_str()).unwrap_or_default().to_owned();
        self.told.push_str(&piece);
        piece
    }
}
