//! Outcome of a message, and the text of its reply while it is written.

use serde_json::Value;

use super::message::whole_message;
use kiso_base::home::SessionName;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::effort::Effort;
use kiso_plan::limits::Usage;
use kiso_plan::plan::TaskKind;
use kiso_store::secret::Vault;
use kiso_store::store::{JobState, RunId, Scope, Store, StoreError};

/// Maximum size in bytes of text that is sent while a model writes it.
const MAX_WRITTEN: usize = 256 << 10;

/// The outcome of a message.
#[derive(Debug, Clone)]
pub struct TurnAnswer {
    pub text: String,
    pub state: JobState,
    pub usage: Usage,
    pub run: Option<RunId>,
}

impl TurnAnswer {
    /// Creates the outcome of a message that was answered without a run.
    pub fn at_once(text: String) -> TurnAnswer {
        TurnAnswer { text, state: JobState::Done, usage: Usage::default(), run: None }
    }
}

/// Returns the outcome of a message if it is answered, otherwise its state. `None` if the message does not exist or belongs to
/// another session.
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

/// Produces a reply in consecutive pieces, from the log and the live text of its run.
#[derive(Debug, Default)]
pub struct ReplyWriter {
    /// Final text of the run so far.
    said: String,
    /// The part of the reply that was sent.
    told: String,
    /// Text that the model has written in the current step, whose number is in `step`.
    written: String,
    step: Option<u64>,
    writing: Writing,
}

/// Which text can be sent early because it is certainly a prefix of the reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Writing {
    /// Only final text.
    #[default]
    Committed,
    /// Each word as the model writes it, because the run is pure conversation.
    Live,
    /// None until the reply is complete, because a part of it is unknown.
    Off,
}

impl ReplyWriter {
    /// Handles a step whose event cannot be read here: an event that is too large to be sent may contain a part of the reply.
    pub fn missed(&mut self, kind: &str) {
        if matches!(kind, "executed" | "conversed" | "reviewed") {
            self.writing = Writing::Off;
        }
    }

    /// Returns the next piece of the reply after an event of the run; may be empty.
    pub fn hear_event(&mut self, event: &Event) -> String {
        match &event.result {
            StepResult::Routed { routing, .. } if self.writing != Writing::Off => {
                let talks = routing.effort == Effort::Low;
                self.writing = if talks { Writing::Live } else { Writing::Committed };
                // Live text can arrive before the event of the previous step.
                self.live_piece()
            }
            StepResult::Conversed { .. } => self.say(event.say.as_deref()),
            StepResult::Executed { report, .. } if report.task.kind == TaskKind::Msg => self.say(event.say.as_deref()),
            _ => String::new(),
        }
    }

    /// Returns the next piece of the reply after an event `live`.
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
            // The whole text so far, which replaces missed pieces.
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

    /// Returns the rest of the reply.
    pub fn end(&mut self, reply: &str) -> String {
        if self.writing != Writing::Off && reply.starts_with(&self.told) {
            return self.up_to(reply);
        }
        let gap = if self.told.is_empty() { "" } else { "\n\n" };
        format!("{gap}{reply}")
    }

    /// Returns the next piece of the model's text if it is the reply, which has no surrounding white space.
    fn live_piece(&mut self) -> String {
        if self.writing != Writing::Live {
            return String::new();
        }
        let written = std::mem::take(&mut self.written);
        let piece = self.up_to(written.trim());
        self.written = written;
        piece
    }

    /// Adds final text. A reply consists of such texts, separated by empty lines.
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
