//! A login: from the address for the browser to the tokens.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::super::shown;
use super::OauthError;
use super::discovery::AuthorityMetadata;
use super::fetch::LoginReach;
use super::redirect::{self, Redirect, RedirectAnswer};
use super::token::{self, OauthClient, Tokens};

/// Minutes that a person has for the login.
const MINUTES: u64 = 10;

/// Starts a login by a person. `told` receives the address for the browser; `pasted` is the result that was pasted instead of a
/// redirect, if there is one.
pub(super) async fn log_in(
    reach: LoginReach,
    at: &AuthorityMetadata,
    client: Option<OauthClient>,
    scope: Option<&str>,
    told: impl FnOnce(&str),
    pasted: impl Future<Output = String>,
) -> Result<(OauthClient, Tokens), OauthError> {
    let redirect = Redirect::listen().await?;
    let scope = scope.map(|scope| with_offline(scope, at.offline));
    let client = match client {
        Some(client) => client,
        None => token::register(reach, at, &redirect.uri, scope.as_deref()).await?,
    };
    let (state, verifier) = (random()?, random()?);
    let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref());
    let mut asked = vec![
        ("response_type", "code"),
        ("client_id", &client.id),
        ("redirect_uri", &redirect.uri),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("resource", &at.resource),
    ];
    asked.extend(scope.as_deref().map(|scope| ("scope", scope)));
    let place = at.authorization.to_string();
    let separator = if place.contains('?') { '&' } else { '?' };
    told(&format!("{place}{separator}{}", token::form(&asked)));
    let returned = async {
        tokio::select! {
            found = redirect.wait(&state) => Ok(found),
            text = pasted => {
                let found = redirect::parse(text.trim()).ok_or(OauthError::Pasted)?;
                if found.state.as_deref() == Some(&state) { Ok(found) } else { Err(OauthError::State) }
            }
        }
    };
    let returned = tokio::time::timeout(Duration::from_secs(MINUTES * 60), returned).await;
    let code = code(at, returned.map_err(|_| OauthError::Deadline(MINUTES))??)?;
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect.uri),
        ("code_verifier", &verifier),
        ("resource", &at.resource),
    ];
    let mut tokens = token::tokens(reach, at, &client, &grant).await?;
    // If the scope is not stated, the requested scope was granted.
    tokens.scope = tokens.scope.or(scope);
    Ok((client, tokens))
}

/// Returns the code of an answer, after checking that it comes from the right server.
fn code(at: &AuthorityMetadata, returned: RedirectAnswer) -> Result<String, OauthError> {
    let expected = || shown(&at.issuer);
    match returned.issuer {
        Some(issuer) if issuer != at.issuer => {
            return Err(OauthError::Issuer { expected: expected(), found: shown(&issuer) });
        }
        None if at.says_issuer => return Err(OauthError::Issuer { expected: expected(), found: String::new() }),
        _ => {}
    }
    if let Some(code) = returned.error {
        return Err(token::refused(expected(), &code, returned.description.as_deref()));
    }
    let missing = || OauthError::BadAnswer(expected(), "its redirect has no code".to_owned());
    returned.code.filter(|code| !code.is_empty()).ok_or_else(missing)
}

/// Returns the union of all these scopes.
pub(super) fn union(scopes: &[Option<&str>]) -> Option<String> {
    let all: BTreeSet<&str> = scopes.iter().flatten().flat_map(|scope| scope.split_ascii_whitespace()).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" "))
}

fn with_offline(scope: &str, offline: bool) -> String {
    union(&[Some(scope), offline.then_some("offline_access")]).unwrap_or_default()
}

/// Returns 256 random bits.
fn random() -> Result<String, OauthError> {
    let mut bytes = [0; 32];
    let failed = |_| OauthError::Kept("the system provides no random numbers".to_owned());
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}
