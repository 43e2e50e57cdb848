//! What a role is told: the pieces that it declares, and how they become text.
//!
//! A role gets the pieces of its column and nothing else. Everything that did not come from the administrator is
//! fenced with a boundary that nobody can guess, is replaced wherever a text contains it, so that no text can end its own
//! fence, and is declared to be data. The boundary is one for a segment of a session: a new one for each call would have
//! every model read everything anew. Each piece has a size that it may not exceed, so that one huge text cannot push out
//! the others; two take what the others leave: the window, and the transcript that the critic judges by. All of them
//! together have a budget, which the model's context sets.
//!
//! [`select`] (which pieces) → [`room`] (how much they may take) → [`render()`] (as text). The last messages
//! of the session are read by their number; what they may take is cut here, so that one huge message leaves its neighbours.
//! What a role is told again in a run is only what is [new](PieceHistory).

mod fence;
mod fit;
mod history;
mod render;
mod signature;
mod table;
mod text;

pub use self::fence::{declaration, fenced, opening, without_marks};
pub use self::fit::fit_text;
pub use self::history::PieceHistory;
pub use self::render::{answer, render, render_beside, room, section};
pub use self::table::{markdown, select};
pub use self::text::has;

#[cfg(test)]
mod tests;
