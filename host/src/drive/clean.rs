//! Requests as models may see them.

use super::DriveError;
use crate::context;
use crate::llm::{Request, Turn};
use crate::secret::Secrets;

/// A request without any secret that is known by now.
pub(super) fn clean(secrets: &Secrets, request: Request, boundary: &str) -> Result<Request, DriveError> {
    let pieces = secrets.redact_document(&request.pieces)?;
    let turns = request.turns.into_iter().map(|turn| match turn {
        Turn::Assistant { text, mut calls } => {
            for call in &mut calls {
                call.args = secrets.redact_json_text(&call.args);
            }
            Turn::Assistant { text: secrets.redact(&text), calls }
        }
        Turn::Tool { id, name, text } => Turn::Tool { id, name, text: secrets.redact(&text) },
        Turn::Note(text) => Turn::Note(secrets.redact(&text)),
    });
    let turns = turns.collect();
    // Not the text as it was: a cut through a secret would have left half of it.
    let user = context::render(&pieces, boundary, usize::MAX);
    Ok(Request { user, pieces, turns, ..request })
}
