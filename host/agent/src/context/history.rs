//! The pieces that a role has already received, so that its next request in a run adds only what is new.

use super::fence::{declaration, without_marks};
use super::render::write_section;
use super::text::{Body, body, correction_alone};
use kiso_plan::prompt::{Piece, Pieces, Row, TABLE};

/// A role's own output is in its conversation, and is not repeated.
const OWN: [Piece; 2] = [Piece::PlannerLane, Piece::ReasoningLane];

/// Heading of the new pieces.
const NEW: &str = "What is new. A section that stood above already now reads as it does here; one that is continued has \
    these lines more.\n";

/// Follows the heading of a list with additional entries.
const CONTINUED: &str = ", continued";

/// Replaces a piece that was shown and is empty now.
const NOTHING: &str = "(nothing any more)";

/// The parts of each piece, as last shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceHistory(Vec<(Piece, Vec<String>)>);

impl PieceHistory {
    pub fn new(pieces: &Pieces, boundary: &str) -> Self {
        let parts = TABLE.iter().filter_map(|row| Some((row.piece, parts(row, pieces, boundary)?.items)));
        Self(parts.collect())
    }

    /// Returns the new parts of `pieces` as text for the end of the conversation. For a list that has only grown, these are the
    /// new entries; any other changed piece is repeated as a whole.
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
                // Its answer is directly above.
                (_, Some(now)) if row.piece == Piece::Correction => {
                    let alone = Body { items: correction_alone(&now.items), ..now };
                    ("", alone.fit(row.cap, row.cap, 1))
                }
                (Some(before), Some(mut now)) if !before.is_empty() && now.items.starts_with(before) => {
                    now.items.drain(..before.len());
                    (CONTINUED, now.fit(row.cap, row.cap, 1))
                }
                (_, Some(now)) => ("", now.fit(row.cap, row.cap, 1)),
                // The correction concerned an answer that another one has followed.
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
