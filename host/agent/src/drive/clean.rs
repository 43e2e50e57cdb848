//! Requests as models may see them, and titles as everybody may.

use super::DriveError;
use crate::context;
use kiso_llm::{Request, Turn};
use kiso_store::secret::Secrets;
use kiso_store::secret::found::extract;

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
        Turn::Pictures(mut images) => {
            for image in &mut images {
                image.described = image.described.as_deref().map(|words| secrets.redact(words));
            }
            Turn::Pictures(images)
        }
    }
}

/// A title, which stands in clear wherever sessions are listed, without known secrets and without credentials by their form, whoever
/// wrote it.
pub fn clean_title(title: &str, secrets: &Secrets) -> String {
    extract(&secrets.redact(title.trim()), secrets).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_store::secret::SecretValue;

    #[test]
    fn a_title_keeps_neither_known_secrets_nor_credentials() {
        let mut secrets = Secrets::default();
        secrets.add_session("word".to_owned(), SecretValue::new("xyzzy-5531".to_owned()));
        let key = "sk-proj-Plover33Plover33Plover33Plover33Plover33";
        let title = clean_title(&format!(" Use {key} and xyzzy-5531 "), &secrets);
        assert!(title.starts_with("Use [secret ") && title.ends_with("and [secret word]"), "{title}");
        assert_eq!(clean_title("Rain in May", &secrets), "Rain in May");
    }
}
