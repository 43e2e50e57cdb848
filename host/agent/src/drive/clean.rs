//! Removes secrets from requests for models, and from titles.

use super::DriveError;
use crate::context;
use kiso_llm::{Request, Turn};
use kiso_store::secret::Secrets;
use kiso_store::secret::found::extract;

/// Returns a request without any secret that is known by now.
pub(super) fn clean(secrets: &Secrets, request: Request, boundary: &str) -> Result<Request, DriveError> {
    if secrets.nothing_to_hide() {
        return Ok(request);
    }
    let pieces = secrets.redact_document(request.pieces)?;
    let turns = request.turns.into_iter().map(|turn| clean_turn(secrets, turn)).collect();
    // Rendered again, because the original text may have been cut in the middle of a secret.
    let user = context::render_beside(&pieces, request.apart, boundary, usize::MAX);
    Ok(Request { user, pieces, turns, ..request })
}

/// Returns a turn without any secret that is known by now.
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

/// Returns a title without known secrets and without anything that looks like a credential, whoever wrote it: titles appear in
/// plain text in lists of sessions.
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
