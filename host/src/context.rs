//! What a role is told: a table as data, and how the pieces become text.
//!
//! A role gets the pieces of its column and nothing else. Everything that did not come from the administrator is
//! fenced with a boundary that is drawn anew for each call, so that no text can end its own fence, and is declared
//! to be data. Each piece has a size that it may not exceed, so that one huge text cannot push out the others; two take
//! what the others leave: the window, and the transcript that the critic judges by. All of them together have a budget,
//! which the model's context sets.
//!
//! [`select`] (which pieces) → [`room`] (how much they may take) → [`render()`] (as text). The last messages
//! of the session are read by their number; what they may take is cut here, so that one huge message leaves its neighbours.

mod fit;
mod render;
mod table;
mod text;

pub use self::fit::fit_text;
pub use self::render::{SHRINK, answer, render, room};
pub use self::table::{Cell, Piece, REST, Row, TABLE, markdown, select};
pub use crate::graph::estimate::tokens;

#[cfg(test)]
mod tests;
