//! Renders the pieces as text, within a budget.

use std::fmt::Write as _;

use super::fence::{declaration, without_marks};
use super::fit::NO_ROOM;
use super::text::{Body, body};
use kiso_llm::Request;
use kiso_llm::estimate::request_tokens;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::{Piece, Pieces, REST, Row, TABLE, shrinking};

/// Number of messages that a follow-up needs: the last question and its answer.
const LAST_MESSAGES: usize = 2;

/// The first round shortens each piece to this part of its cap, so that something remains of every piece.
const FLOOR: usize = 8;

/// Cap in that round, in tokens, for a piece that gets the remaining space.
const COMMON: usize = 4_000;

/// Tokens of the last messages that remain after the second round, which drops all other pieces: enough to understand a message
/// such as "and now as a chart".
const FOLLOW_UP: usize = 120;

/// The usable part of a context, in tenths; the rest allows for errors of the estimate.
const USABLE: usize = 9;

/// Part of a context that is reserved for the answer, as a divisor, if the answer may be longer than that.
const ANSWER: usize = 4;

/// Returns the maximum size in tokens of the user part of `request`: nine tenths of `context_budget` (the model's, in tokens)
/// minus the system prompt, the tools, the turns, the form of the answer and the answer.
pub fn room(context_budget: usize, request: &Request) -> usize {
    let beside = request_tokens(request) - tokens(&request.user);
    let taken = beside + answer(context_budget, request);
    (context_budget.saturating_mul(USABLE) / 10).saturating_sub(taken)
}

/// Returns the maximum size of the answer in tokens within `context_budget`: the requested size, up to the reserved part.
pub fn answer(context_budget: usize, request: &Request) -> usize {
    usize::try_from(request.max_tokens).unwrap_or(usize::MAX).min(context_budget / ANSWER)
}

/// Renders the pieces as the user part of a prompt; empty if there are none. `boundary` must be unpredictable for every text in
/// the prompt; 16 letters and digits are enough.
///
/// The result has at most `budget` estimated tokens, if these suffice for the headings and the pieces that are never cut; the
/// excess is removed from the pieces that are [`shrinking`]. With `usize::MAX`, each piece gets its cap.
pub fn render(pieces: &Pieces, boundary: &str, budget: usize) -> String {
    render_beside(pieces, &[], boundary, budget)
}

/// Like [`render`], without the pieces in `apart`, which are elsewhere in the request.
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

/// Returns one piece with its heading, limited by its cap; `None` if it is empty. The [declaration] of the fence must come before
/// it.
pub fn section(piece: Piece, pieces: &Pieces, boundary: &str) -> Option<String> {
    let row = TABLE.iter().find(|row| row.piece == piece)?;
    let mut out = String::new();
    Section::new(row, pieces, boundary)?.write(boundary, &mut out);
    Some(out)
}

/// A piece with its heading.
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

    /// Returns the minimum size of the piece in this round, counted from 0.
    fn floor(&self, round: usize) -> usize {
        match (round, self.row.piece) {
            (0, Piece::Messages) => self.body.last(LAST_MESSAGES, COMMON),
            (0, _) if self.row.cap == REST => COMMON / FLOOR,
            (0, _) => self.row.cap / FLOOR,
            (1, Piece::Messages | Piece::Tail) => FOLLOW_UP,
            _ => 0,
        }
    }

    /// Shortens the text by at least `excess` tokens, but not below `floor`.
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

/// Writes a piece with its heading, followed by `mark`. `text` does not contain the boundary.
pub(super) fn write_section(row: &Row, mark: &str, text: &str, boundary: &str, out: &mut String) {
    let title = row.title;
    let _ = match row.piece {
        // The only pieces that are the host's own text.
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
