//! A turn as server-sent events, in the format of either endpoint.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;

use super::turn::{Piece, Turn};

/// Idle time after which a comment shows that the connection is alive.
const ALIVE: Duration = Duration::from_secs(15);

pub(super) type Events = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// Return type of the handlers.
pub(super) type Streamed = Sse<KeepAliveStream<Events>>;

/// Converts the pieces of a turn to the events of an endpoint.
pub(super) trait Form: Send + 'static {
    /// Returns the events before the first piece.
    fn begin(&mut self) -> Vec<Event>;

    fn say(&mut self, piece: Piece) -> Vec<Event>;
}

pub(super) fn stream(turn: Turn, form: impl Form) -> Streamed {
    let sending = Sending { turn, ready: VecDeque::new(), form, begun: false };
    let events: Events =
        Box::pin(unfold(sending, |mut sending| async move { Some((Ok(sending.next().await?), sending)) }));
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE))
}

struct Sending<F> {
    turn: Turn,
    ready: VecDeque<Event>,
    form: F,
    begun: bool,
}

impl<F: Form> Sending<F> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let events = match std::mem::replace(&mut self.begun, true) {
                false => self.form.begin(),
                true => self.form.say(self.turn.next().await?),
            };
            self.ready.extend(events);
        }
    }
}
