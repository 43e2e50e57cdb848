//! Follows a message until its reply: progress, text, and outcome.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;
use tokio::time::Interval;

use super::conversation::Admission;
use crate::App;
use crate::auth::{self, Who};
use crate::count;
use crate::error::ApiError;
use crate::follow::{Following, Notification, Subscription};
use crate::progress;
use crate::reply::{self, ReplyWriter, TurnAnswer};
use kiso_base::home::SessionName;
use kiso_graph::step::Event;
use kiso_store::store::{ChatRequest, JobState, RunId};

/// How often to check whether the token is still valid.
const LOOK: Duration = Duration::from_secs(5);

/// Maximum size in bytes of the thoughts that are sent for one message.
const MAX_THOUGHTS: usize = 256 << 10;

/// A piece of the progress of a message.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Activity of the run.
    Thought(String),
    /// The next part of the reply.
    Text(String),
    /// The message is answered; this is the last piece.
    End(TurnAnswer),
    /// There will be no answer; this is the last piece.
    Failed(ApiError),
}

/// Returns the outcome of a message if it is answered, otherwise its state.
pub(crate) async fn standing(app: &App, request: &ChatRequest) -> Result<Result<TurnAnswer, JobState>, ApiError> {
    let Some(message) = request.message else {
        return Ok(Ok(TurnAnswer::at_once(request.answer.clone().unwrap_or_default())));
    };
    standing_of(app, message, request.session.as_ref()).await
}

async fn standing_of(
    app: &App,
    message: i64,
    session: Option<&SessionName>,
) -> Result<Result<TurnAnswer, JobState>, ApiError> {
    let standing = reply::standing(&app.0.drive.store, &app.0.drive.vault, message, session).await?;
    standing.ok_or_else(|| ApiError::not_found("the message was deleted with its session"))
}

/// A place among the requests that wait for an answer.
pub(crate) struct TurnSlot {
    _counted: Box<dyn Send>,
}

impl TurnSlot {
    /// Called before the message is accepted, because a lack of places cannot be reported afterwards.
    pub(crate) fn take(app: &App) -> Result<TurnSlot, ApiError> {
        let counted = count::counted(app, |counters| &counters.http_streams);
        let max = app.0.drive.newest_config().gateway.max_streams;
        if app.0.counters.http_streams.load(Ordering::Relaxed) > max {
            let message = format!("{max} requests are already waited for (gateway.max_streams)");
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message));
        }
        Ok(TurnSlot { _counted: Box::new(counted) })
    }
}

/// A message whose progress is followed.
pub(crate) struct Turn {
    app: App,
    who: Who,
    /// `None` for a command, which is answered at once.
    message: Option<i64>,
    following: Option<Following>,
    look: Interval,
    ready: VecDeque<Piece>,
    begun: bool,
    over: bool,
    /// The run that answers the message, once it has started.
    run: Option<RunId>,
    /// The activity that was sent last.
    busy: String,
    /// Remaining bytes of thoughts that may be sent.
    thoughts_left: usize,
    /// Produces the pieces of the reply.
    text: ReplyWriter,
    _slot: TurnSlot,
}

impl Turn {
    pub(crate) async fn new(
        app: &App,
        who: Who,
        admission: &Admission,
        live: bool,
        slot: TurnSlot,
    ) -> Result<Turn, ApiError> {
        let request = &admission.request;
        let Some(message) = request.message else {
            let answer = TurnAnswer::at_once(request.answer.clone().unwrap_or_default());
            let ready = VecDeque::from([Piece::Text(answer.text.clone()), Piece::End(answer)]);
            return Ok(Turn { ready, over: true, ..Turn::begin(app, who, slot) });
        };
        let wanted = Subscription { session: request.session.clone(), after: Some(admission.after), live, owner: None };
        Turn::of_message(app, who, message, wanted, slot).await
    }

    /// Follows a message that was accepted after the notice at which `wanted` begins.
    pub(crate) async fn of_message(
        app: &App,
        who: Who,
        message: i64,
        wanted: Subscription,
        slot: TurnSlot,
    ) -> Result<Turn, ApiError> {
        let following = Following::new(app.clone(), wanted).await?;
        Ok(Turn { message: Some(message), following: Some(following), ..Turn::begin(app, who, slot) })
    }

    fn begin(app: &App, who: Who, slot: TurnSlot) -> Turn {
        Turn {
            app: app.clone(),
            who,
            message: None,
            over: false,
            following: None,
            look: tokio::time::interval(LOOK),
            ready: VecDeque::new(),
            begun: false,
            run: None,
            busy: String::new(),
            thoughts_left: MAX_THOUGHTS,
            text: ReplyWriter::default(),
            _slot: slot,
        }
    }

    /// Waits for the next piece; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.over = true;
                self.ready.push_back(Piece::Failed(ApiError { accepted: true, ..error }));
            }
        }
    }

    /// Waits for the answer; returns the thoughts and the answer.
    pub(crate) async fn whole(&mut self) -> Result<(Option<String>, TurnAnswer), ApiError> {
        let mut thoughts = String::new();
        loop {
            match self.next().await {
                Some(Piece::Thought(text)) => thoughts.push_str(&text),
                Some(Piece::Text(_)) => {}
                Some(Piece::End(answer)) => return Ok((Some(thoughts).filter(|text| !text.is_empty()), answer)),
                Some(Piece::Failed(error)) => return Err(error),
                None => return Err(ApiError::internal(&"a turn ended without an end")),
            }
        }
    }

    async fn advance(&mut self) -> Result<(), ApiError> {
        // The message may have been answered before this began to listen.
        if !std::mem::replace(&mut self.begun, true) {
            return self.settle().await;
        }
        let Some(following) = &mut self.following else { return Ok(()) };
        let told = tokio::select! {
            _ = self.look.tick() => None,
            told = following.next() => Some(told),
        };
        match told {
            None => match auth::still_may(&self.app, &self.who).await? {
                true => Ok(()),
                false => Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "the token was revoked")),
            },
            Some(None) => Err(ApiError::internal(&"the feed ended")),
            Some(Some(told)) => self.hear(told).await,
        }
    }

    async fn hear(&mut self, told: Notification) -> Result<(), ApiError> {
        let Notification { name, data, answers, .. } = told;
        match name {
            "message" if self.message.is_some_and(|message| answers.contains(&message)) => self.settle().await,
            "gap" => self.settle().await,
            "deleted" => Err(ApiError::not_found("the session was deleted")),
            "shutdown" => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting_down",
                "kiso is shutting down; the message is kept, and answered when it is back",
            )),
            "run" if self.is_own(&data["id"]).await? => self.settle().await,
            "event" if self.is_own(&data["run"]).await? => {
                self.hear_event(data);
                Ok(())
            }
            "live" if self.is_own(&data["run"]).await? => {
                self.hear_live(&data);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether this is the run that answers the message. An active run can take up the message later.
    async fn is_own(&mut self, run: &Value) -> Result<bool, ApiError> {
        if self.run.is_none()
            && let Some(message) = self.message
        {
            self.run = self.app.0.drive.store.read(move |view| view.job(message)).await?.and_then(|job| job.run);
        }
        Ok(self.run.as_ref().is_some_and(|own| run.as_str() == Some(own.as_str())))
    }

    /// Ends if the message is answered, or waits for a person.
    async fn settle(&mut self) -> Result<(), ApiError> {
        let Some(message) = self.message else { return Ok(()) };
        match standing_of(&self.app, message, None).await? {
            Ok(answer) => {
                self.over = true;
                // A run can finish before anybody listens.
                if self.thoughts_left == MAX_THOUGHTS
                    && let Some(text) = thoughts(&self.app, answer.run.as_ref()).await?
                {
                    self.think(text);
                }
                let text = self.text.end(&answer.text);
                self.write(text);
                self.ready.push_back(Piece::End(answer));
                Ok(())
            }
            Err(JobState::Waiting) => Err(ApiError::new(
                StatusCode::CONFLICT,
                "waiting",
                "the run waits until a person accepts or refuses what it would do",
            )
            .hint("answer it in the page, or with `kiso approval`; the reply is in the session then")),
            Err(JobState::Held) => Err(ApiError::new(
                StatusCode::CONFLICT,
                "held",
                "the run was cut off too often and is waiting for a person to retry it",
            )
            .hint("POST /runs/RUN/retry, or the page, goes on with it")),
            Err(_) => Ok(()),
        }
    }

    fn hear_event(&mut self, mut data: Value) {
        let kind = data["kind"].as_str().unwrap_or_default().to_owned();
        let Ok(event) = serde_json::from_value::<Event>(data["body"].take()) else {
            self.text.missed(&kind);
            return;
        };
        if let Some(text) = progress::describe(&event) {
            self.think(text);
        }
        let text = self.text.hear_event(&event);
        self.write(text);
    }

    fn hear_live(&mut self, data: &Value) {
        let text = data["text"].as_str().unwrap_or_default();
        match data["type"].as_str() {
            Some("thought") if text != self.busy => {
                text.clone_into(&mut self.busy);
                self.think(format!("{text}\n"));
            }
            _ => {
                let text = self.text.hear_live(data);
                self.write(text);
            }
        }
    }

    fn write(&mut self, text: String) {
        if !text.is_empty() {
            self.ready.push_back(Piece::Text(text));
        }
    }

    fn think(&mut self, text: String) {
        if let Some(left) = self.thoughts_left.checked_sub(text.len()) {
            self.thoughts_left = left;
            self.ready.push_back(Piece::Thought(text));
        }
    }
}

/// Returns the activity of a run that has ended, from its log.
pub(crate) async fn thoughts(app: &App, run: Option<&RunId>) -> Result<Option<String>, ApiError> {
    /// Events with text for a reader.
    const KINDS: [&str; 5] = ["planned", "executed", "called", "reviewed", "told"];
    const MAX_EVENTS: u32 = 200;
    let Some(run) = run.cloned() else { return Ok(None) };
    let read = app.0.drive.store.read(move |view| view.last_events(&run, &KINDS, MAX_EVENTS));
    let mut text = String::new();
    // The newest events come first.
    for event in read.await?.into_iter().rev() {
        let said = serde_json::from_str::<Event>(&event.body).ok().and_then(|event| progress::describe(&event));
        match said {
            Some(said) if text.len() + said.len() <= MAX_THOUGHTS => text.push_str(&said),
            _ => {}
        }
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}
