//! What a role was told already, so that its next request in a run has only what is new, behind all that was said.

use super::fence::{declaration, without_marks};
use super::render::write_section;
use super::text::{Body, body, correction_alone};
use kiso_plan::prompt::{Piece, Pieces, Row, TABLE};

/// What a role said itself stands in its conversation, and is not told to it again.
const OWN: [Piece; 2] = [Piece::PlannerLane, Piece::ReasoningLane];

/// Stands before what is new.
const NEW: &str = "What is new. A section that stood above already now reads as it does here; one that is continued has \
    these lines more.\n";

/// Behind the heading of a list that got longer.
const CONTINUED: &str = ", continued";

/// Stands for a piece that was told and is none any more.
const NOTHING: &str = "(nothing any more)";

/// The parts of each piece as it was told last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceHistory(Vec<(Piece, Vec<String>)>);

impl PieceHistory {
    pub fn new(pieces: &Pieces, boundary: &str) -> Self {
        let parts = TABLE.iter().filter_map(|row| Some((row.piece, parts(row, pieces, boundary)?.items)));
        Self(parts.collect())
    }

    /// What of `pieces` was not told yet, as text for the end of the conversation. Of a list that only got longer these are
    /// the new parts; whatever else is different is told whole.
    pub fn news(&self, pieces: &Pieces, boundary: &str) -> String {
        let mut out = NEW.to_owned();
        if self.0.iter().all(|(piece, _)| *piece == Piece::Caller) {
            out.push_str(&declaration(boundary));
        }
        for row in TABLE.iter().filter(|row| !OWN.contains(&row.piece)) {
            let before = self.0.iter().find(|(piece, _)| *piece == row.piece).map(|(_, items)| items.as_slice());
            let now = parts(row, pieces, boundary);
            let (mark, text) = match (before, now) {
                (None, None) => continue,
                (Some(before), Some(now)) if now.items == before => continue,
                // Its answer stands right above.
                (_, Some(now)) if row.piece == Piece::Correction => {
                    let alone = Body { items: correction_alone(&now.items), ..now };
                    ("", alone.fit(row.cap, row.cap, 1))
                }
                (Some(before), Some(mut now)) if !before.is_empty() && now.items.starts_with(before) => {
                    now.items.drain(..before.len());
                    (CONTINUED, now.fit(row.cap, row.cap, 1))
                }
                (_, Some(now)) => ("", now.fit(row.cap, row.cap, 1)),
                // It was about an answer that another one has followed.
                (Some(_), None) if row.piece == Piece::Correction => continue,
                (Some(_), None) => ("", NOTHING.to_owned()),
            };
            write_section(row, mark, &text, boundary, &mut out);
        }
        out
    }
}

fn parts(row: &Row, pieces: &Pieces, boundary: &str) -> Option<Body> {
    let mut body = body(row.piece, pieces)?;
    for item in &mut body.items {
        *item = without_marks(item, boundary);
    }
    Some(body)
}
