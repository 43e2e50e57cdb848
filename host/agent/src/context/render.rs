//! The pieces as text, within a budget.

use std::fmt::Write as _;

use super::fence::{declaration, without_marks};
use super::fit::NO_ROOM;
use super::text::{Body, body};
use kiso_llm::Request;
use kiso_llm::estimate::request_tokens;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::{Piece, Pieces, REST, Row, TABLE, shrinking};

/// Messages that a follow-up cannot do without: what was asked last, and what was answered.
const LAST_MESSAGES: usize = 2;

/// A first round takes each piece down to this part of its cap, so that every one keeps something.
const FLOOR: usize = 8;

/// What counts as the cap in that round where a piece takes what the others leave, in tokens.
const COMMON: usize = 4_000;

/// What a second round leaves of the last messages, in tokens, while it takes all of the other pieces: enough to see
/// what a message such as "and now as a chart" follows up on.
const FOLLOW_UP: usize = 120;

/// The part of a context that may be used, in tenths; the rest is for what the estimate gets wrong.
const USABLE: usize = 9;

/// The part of a context that is kept free for the answer, as a divisor, when the answer may be longer than that.
const ANSWER: usize = 4;

/// Tokens that the user part of `request` may take: nine tenths of `context_budget` (the model's, in tokens) less the
/// system prompt, the tools, the turns, the form of the answer and the answer.
pub fn room(context_budget: usize, request: &Request) -> usize {
    let beside = request_tokens(request) - tokens(&request.user);
    let taken = beside + answer(context_budget, request);
    (context_budget.saturating_mul(USABLE) / 10).saturating_sub(taken)
}

/// Tokens that the answer may have within `context_budget`: what was asked for, but not all that there is.
pub fn answer(context_budget: usize, request: &Request) -> usize {
    usize::try_from(request.max_tokens).unwrap_or(usize::MAX).min(context_budget / ANSWER)
}

/// The pieces as the user part of a prompt; empty where there are none. `boundary` comes from a source that no text in the
/// prompt can know; 16 letters and digits are enough.
///
/// It takes at most `budget` estimated tokens, as long as these are enough for what is never cut and for the headings;
/// what is over is taken from the pieces that are [`shrinking`]. `usize::MAX` leaves each piece its cap.
pub fn render(pieces: &Pieces, boundary: &str, budget: usize) -> String {
    render_beside(pieces, &[], boundary, budget)
}

/// [`render`] without the pieces `apart`, which stand elsewhere in the request.
pub fn render_beside(pieces: &Pieces, apart: &[Piece], boundary: &str, budget: usize) -> String {
    let here = TABLE.iter().filter(|row| !apart.contains(&row.piece));
    let mut sections: Vec<_> = here.filter_map(|row| Section::new(row, pieces, boundary)).collect();
    if sections.is_empty() {
        return String::new();
    }
    let frame = declaration(boundary);
    shrink(&mut sections, budget.saturating_sub(tokens(&frame)));
    sections.iter().fold(frame, |mut out, section| {
        section.write(boundary, &mut out);
        out
    })
}

/// One piece with its heading, whole as far as its cap allows; `None` if there is nothing of it. The [declaration] of the fence
/// has to stand before it.
pub fn section(piece: Piece, pieces: &Pieces, boundary: &str) -> Option<String> {
    let row = TABLE.iter().find(|row| row.piece == piece)?;
    let mut out = String::new();
    Section::new(row, pieces, boundary)?.write(boundary, &mut out);
    Some(out)
}

/// A piece under its heading.
struct Section {
    row: &'static Row,
    body: Body,
    text: String,
    /// Tokens of the heading and the fence.
    around: usize,
}

impl Section {
    fn new(row: &'static Row, pieces: &Pieces, boundary: &str) -> Option<Self> {
        let mut body = body(row.piece, pieces)?;
        for item in &mut body.items {
            *item = without_marks(item, boundary);
        }
        let text = body.fit(row.cap, row.cap, least(row.piece));
        let mut section = Self { row, body, text: String::new(), around: 0 };
        let mut empty = String::new();
        section.write(boundary, &mut empty);
        (section.around, section.text) = (tokens(&empty), text);
        Some(section)
    }

    fn tokens(&self) -> usize {
        self.around + tokens(&self.text)
    }

    fn write(&self, boundary: &str, out: &mut String) {
        write_section(self.row, "", &self.text, boundary, out);
    }

    /// The size below which the piece does not go in this round, from 0.
    fn floor(&self, round: usize) -> usize {
        match (round, self.row.piece) {
            (0, Piece::Messages) => self.body.last(LAST_MESSAGES, COMMON),
            (0, _) if self.row.cap == REST => COMMON / FLOOR,
            (0, _) => self.row.cap / FLOOR,
            (1, Piece::Messages | Piece::Tail) => FOLLOW_UP,
            _ => 0,
        }
    }

    /// Takes at least `excess` tokens off, or as many as can be taken without going below `floor`.
    fn shorten(&mut self, excess: usize, floor: usize) {
        let size = tokens(&self.text);
        let cap = size.saturating_sub(excess).max(floor);
        if cap >= size || size <= tokens(NO_ROOM) {
            return;
        }
        let text = self.body.fit(cap, self.row.cap, least(self.row.piece));
        if tokens(&text) < size {
            self.text = text;
        }
    }
}

/// A piece under its heading, which `mark` follows. `text` is without the boundary.
pub(super) fn write_section(row: &Row, mark: &str, text: &str, boundary: &str, out: &mut String) {
    let title = row.title;
    let _ = match row.piece {
        // The host's own words, and the only pieces that are.
        Piece::Caller | Piece::Now => write!(out, "\n## {title}{mark}\n{text}\n"),
        _ => write!(out, "\n## {title}{mark}\n<<<{boundary}\n{text}\n{boundary}>>>\n"),
    };
}

fn least(piece: Piece) -> usize {
    if piece == Piece::Messages { LAST_MESSAGES } else { 1 }
}

fn shrink(sections: &mut [Section], budget: usize) {
    let mut total: usize = sections.iter().map(Section::tokens).sum();
    for round in 0..3 {
        for piece in shrinking() {
            let Some(excess) = total.checked_sub(budget).filter(|excess| *excess > 0) else { return };
            let Some(section) = sections.iter_mut().find(|section| section.row.piece == piece) else { continue };
            let before = section.tokens();
            section.shorten(excess, section.floor(round));
            total -= before - section.tokens();
        }
    }
}
