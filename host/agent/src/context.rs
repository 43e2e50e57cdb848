//! The prompt of a role: the pieces that it declares, and their form as text.
//!
//! A role gets the pieces of its column and nothing else. Everything that did not come from the administrator is declared as data
//! and fenced with an unguessable boundary. The boundary is replaced wherever a text contains it, so that no text can end its own
//! fence. It stays the same for a segment of a session: with a new one for each call, every model would have to read everything
//! again. Each piece has a maximum size, so that one huge text cannot displace the others; two pieces get the remaining space:
//! the window, and the transcript for the critic. The model's context sets the budget for all of them together.
//!
//! [`select`] (which pieces) → [`room`] (how much space) → [`render()`] (as text). The last messages of the session are read by
//! number; their size is limited here, so that one huge message does not displace its neighbours. In later requests of a run, a
//! role gets only what is [new](PieceHistory).

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
