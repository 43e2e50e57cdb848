//! Requests as models may see them.

use super::DriveError;
use crate::context;
use kiso_llm::{Request, Turn};
use kiso_store::secret::Secrets;

/// A request without any secret that is known by now.
pub(super) fn clean(secrets: &Secrets, request: Request, boundary: &str) -> Result<Request, DriveError> {
    if secrets.nothing_to_hide() {
        return Ok(request);
    }
    let pieces = secrets.redact_document(request.pieces)?;
    let turns = request.turns.into_iter().map(|turn| clean_turn(secrets, turn)).collect();
    // Not the text as it was: a cut through a secret would have left half of it.
    let user = context::render_beside(&pieces, request.apart, boundary, usize::MAX);
    Ok(Request { user, pieces, turns, ..request })
}

/// A turn without any secret that is known by now.
pub(super) fn clean_turn(secrets: &Secrets, turn: Turn) -> Turn {
    match turn {
        Turn::Assistant { text, mut calls } => {
            for call in &mut calls {
                call.args = secrets.redact_json_text(&call.args);
            }
            Turn::Assistant { text: secrets.redact(&text), calls }
        }
        Turn::Tool { id, name, text } => Turn::Tool { id, name, text: secrets.redact(&text) },
        Turn::User(text) => Turn::User(secrets.redact(&text)),
        Turn::Note(text) => Turn::Note(secrets.redact(&text)),
    }
}
