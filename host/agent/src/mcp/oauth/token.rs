//! Requests to the authorization server: registration of a client, tokens, and their revocation.

use data_encoding::BASE64;
use http::{HeaderValue, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::shown;
use super::OauthError;
use super::discovery::AuthorityMetadata;
use super::fetch::{FetchAnswer, FetchBody, LoginReach};
use kiso_store::secret::SecretValue;

/// Maximum size of a token in bytes. Signed tokens have a few thousand.
const MAX_TOKEN: usize = 16 << 10;

/// Characters without a special meaning stay unencoded, because some servers do not decode `Authorization`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A client's identity at an authorization server.
#[derive(Debug, Clone)]
pub(super) struct OauthClient {
    pub id: String,
    pub secret: Option<SecretValue>,
    /// The authentication method from the registration.
    pub auth: Option<String>,
}

/// Tokens from a token endpoint.
#[derive(Debug)]
pub(super) struct Tokens {
    pub access: SecretValue,
    pub refresh: Option<SecretValue>,
    pub expires_s: Option<u64>,
    pub scope: Option<String>,
}

/// A client in its stored form.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptClient {
    pub id: String,
    pub secret: Option<String>,
    pub auth: Option<String>,
}

/// Encodes pairs as a form.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

/// Registers a client for one redirect URI (RFC 7591).
pub(super) async fn register(
    reach: LoginReach,
    at: &AuthorityMetadata,
    redirect: &str,
    scope: Option<&str>,
) -> Result<OauthClient, OauthError> {
    let Some(place) = &at.registration else { return Err(OauthError::NoClient(shown(&at.issuer))) };
    let mut asked = json!({
        "client_name": "kiso", "redirect_uris": [redirect], "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "token_endpoint_auth_method": "none", "application_type": "native",
    });
    if let Some(scope) = scope {
        asked["scope"] = scope.into();
    }
    let answer = reach.send(place, FetchBody::Json(asked)).await?;
    let body = accepted(place, answer)?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| text.len() <= MAX_TOKEN);
    let Some(id) = text("client_id") else {
        return Err(OauthError::BadAnswer(host(place), "a registration has no client_id".to_owned()));
    };
    let secret = text("client_secret").map(|secret| SecretValue::new(secret.to_owned()));
    // The default if the registration states none (RFC 7591, section 2).
    let auth = text("token_endpoint_auth_method").unwrap_or("client_secret_basic");
    Ok(OauthClient { id: id.to_owned(), secret, auth: Some(auth.to_owned()) })
}

/// Requests tokens.
pub(super) async fn tokens(
    reach: LoginReach,
    at: &AuthorityMetadata,
    client: &OauthClient,
    grant: &[(&str, &str)],
) -> Result<Tokens, OauthError> {
    let sent = authenticated(at, client, grant)?;
    let body = accepted(&at.token, reach.send(&at.token, sent).await?)?;
    let wrong = |why: &str| OauthError::BadAnswer(host(&at.token), why.to_owned());
    if !body.get("token_type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(wrong("its token is of another type than Bearer"));
    }
    let is_token = |text: &&str| (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let token = |key: &str| text(key).filter(is_token).map(|text| SecretValue::new(text.to_owned()));
    Ok(Tokens {
        access: token("access_token").ok_or_else(|| wrong("it gives no token"))?,
        refresh: token("refresh_token"),
        expires_s: body.get("expires_in").and_then(Value::as_u64),
        scope: text("scope").map(str::to_owned),
    })
}

/// Revokes a token (RFC 7009).
pub(super) async fn revoke(
    reach: LoginReach,
    at: &AuthorityMetadata,
    client: &OauthClient,
    token: &SecretValue,
) -> Result<(), OauthError> {
    let Some(place) = &at.revocation else { return Ok(()) };
    let answer = reach.send(place, authenticated(at, client, &[("token", token.expose())])?).await?;
    if answer.status == 200 { Ok(()) } else { Err(OauthError::Status(host(place), answer.status)) }
}

/// Adds the client's authentication to a form.
#[expect(clippy::expect_used, reason = "base64 is visible ASCII")]
fn authenticated(
    at: &AuthorityMetadata,
    client: &OauthClient,
    pairs: &[(&str, &str)],
) -> Result<FetchBody, OauthError> {
    let mut pairs = pairs.to_vec();
    let Some(secret) = client.secret.as_ref().filter(|_| client.auth.as_deref() != Some("none")) else {
        pairs.push(("client_id", &client.id));
        return Ok(FetchBody::Form(form(&pairs), None));
    };
    let offers = |method: &str| match (&client.auth, &at.token_auth) {
        (Some(said), _) => said == method,
        (None, Some(offered)) => offered.iter().any(|offered| offered == method),
        // The default if no method is stated.
        (None, None) => method == "client_secret_basic",
    };
    if offers("client_secret_basic") {
        let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let both = format!("{}:{}", encoded(&client.id), encoded(secret.expose()));
        let value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(both.as_bytes())));
        let mut value = value.expect("base64 is visible ASCII");
        value.set_sensitive(true);
        return Ok(FetchBody::Form(form(&pairs), Some(value)));
    }
    if !offers("client_secret_post") {
        let why = "it takes a client's secret in no way that kiso knows (client_secret_basic, client_secret_post)";
        return Err(OauthError::BadAnswer(shown(&at.issuer), why.to_owned()));
    }
    pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret.expose())]);
    Ok(FetchBody::Form(form(&pairs), None))
}

/// Returns the body of a successful answer.
fn accepted(place: &Uri, answer: FetchAnswer) -> Result<Value, OauthError> {
    if matches!(answer.status, 200 | 201) {
        return Ok(answer.body);
    }
    // A failure of the server itself does not concern the login, whatever the answer contains.
    match answer.body.get("error").and_then(Value::as_str).filter(|_| answer.status < 500) {
        Some(code) => Err(refused(host(place), code, answer.body.get("error_description").and_then(Value::as_str))),
        None => Err(OauthError::Status(host(place), answer.status)),
    }
}

/// Returns a refusal in the words of the authorization server.
pub(super) fn refused(server: String, code: &str, description: Option<&str>) -> OauthError {
    let description = description.map(|text| format!(": {}", shown(text))).unwrap_or_default();
    OauthError::Refused { server, code: shown(code), description }
}

fn host(uri: &Uri) -> String {
    shown(uri.authority().map_or("", |authority| authority.as_str()))
}
