//! Discovery of the login: the metadata of the server (RFC 9728), and of its authorization server (RFC 8414, OpenID Connect
//! Discovery).

use http::Uri;
use serde_json::Value;

use super::super::shown;
use super::OauthError;
use super::challenge::Challenge;
use super::fetch::{FetchBody, LoginReach};

/// The discovered metadata.
#[derive(Debug, Clone)]
pub(super) struct AuthorityMetadata {
    /// Identifier of the server in token requests.
    pub resource: String,
    /// All scopes of the server.
    pub scopes: Option<String>,
    pub issuer: String,
    pub authorization: Uri,
    pub token: Uri,
    pub registration: Option<Uri>,
    pub revocation: Option<Uri>,
    /// Whether its redirects contain the issuer.
    pub says_issuer: bool,
    /// Client authentication methods of the token endpoint; `None` if they are not stated.
    pub token_auth: Option<Vec<String>>,
    /// Whether it offers a scope for staying logged in.
    pub offline: bool,
}

/// Discovers the metadata from the server's refusal.
pub(super) async fn discover(
    reach: LoginReach,
    server: &Uri,
    challenge: &Challenge,
) -> Result<AuthorityMetadata, OauthError> {
    let (resource, issuer, scopes) = resource(reach, server, challenge).await?;
    let metadata = authorization_server(reach, &issuer).await?;
    let host = shown(&issuer);
    let methods = texts(&metadata, "code_challenge_methods_supported").unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return Err(OauthError::NoPkce(host));
    }
    let endpoint = |key: &str| match metadata.get(key).and_then(Value::as_str) {
        Some(text) => reach.address(text).map(Some),
        None => Ok(None),
    };
    let needed = |key: &str| {
        let missing = || OauthError::BadAnswer(host.clone(), format!("its metadata have no {key}"));
        endpoint(key)?.ok_or_else(missing)
    };
    let says_issuer = metadata.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true));
    let offline = texts(&metadata, "scopes_supported").is_some_and(|all| all.iter().any(|s| s == "offline_access"));
    Ok(AuthorityMetadata {
        resource,
        scopes,
        authorization: needed("authorization_endpoint")?,
        token: needed("token_endpoint")?,
        registration: endpoint("registration_endpoint")?,
        revocation: endpoint("revocation_endpoint")?,
        says_issuer,
        token_auth: texts(&metadata, "token_endpoint_auth_methods_supported"),
        offline,
        issuer,
    })
}

/// Returns the server's own metadata: its identifier, its authorization server, and its scopes.
async fn resource(
    reach: LoginReach,
    server: &Uri,
    challenge: &Challenge,
) -> Result<(String, String, Option<String>), OauthError> {
    let places = match &challenge.resource_metadata {
        Some(named) => {
            let named = reach.address(named)?;
            if origin(&named) != origin(server) {
                let why = "the server's metadata must be at the same host as the server";
                return Err(OauthError::Address(shown(&named.to_string()), why));
            }
            vec![named]
        }
        None => {
            let path = server.path().trim_end_matches('/');
            let mut paths = vec![format!("/.well-known/oauth-protected-resource{path}")];
            paths.extend((!path.is_empty()).then(|| "/.well-known/oauth-protected-resource".to_owned()));
            paths.iter().map(|path| with_path(server, path)).collect()
        }
    };
    let Some(metadata) = first(reach, &places).await? else { return Err(OauthError::NotAsked) };
    let host = shown(&origin(server));
    let wrong = |why: &str| OauthError::BadAnswer(host.clone(), why.to_owned());
    let name =
        metadata.get("resource").and_then(Value::as_str).ok_or_else(|| wrong("its metadata have no resource"))?;
    if !is_part(&reach.address(name)?, server) {
        return Err(wrong("its metadata are those of another resource"));
    }
    let issuers = texts(&metadata, "authorization_servers").unwrap_or_default();
    let issuer = issuers.first().ok_or_else(|| wrong("its metadata name no authorization server"))?;
    reach.address(issuer)?;
    let scopes = texts(&metadata, "scopes_supported").map(|scopes| scopes.join(" "));
    Ok((name.to_owned(), issuer.clone(), scopes.filter(|scopes| !scopes.is_empty())))
}

/// Returns the metadata of the issuer; tries the addresses in the order of the specification.
async fn authorization_server(reach: LoginReach, issuer: &str) -> Result<Value, OauthError> {
    let uri = reach.address(issuer)?;
    let path = uri.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    paths.extend((!path.is_empty()).then(|| format!("{path}/.well-known/openid-configuration")));
    let places: Vec<Uri> = paths.iter().map(|path| with_path(&uri, path)).collect();
    let none = || OauthError::BadAnswer(shown(issuer), "it has no metadata".to_owned());
    let metadata = first(reach, &places).await?.ok_or_else(none)?;
    // Compared exactly as written: a similar spelling is another issuer.
    let found = metadata.get("issuer").and_then(Value::as_str).unwrap_or_default();
    if found != issuer {
        return Err(OauthError::Issuer { expected: shown(issuer), found: shown(found) });
    }
    Ok(metadata)
}

/// Returns the document of the first of these addresses that has one.
async fn first(reach: LoginReach, places: &[Uri]) -> Result<Option<Value>, OauthError> {
    for place in places {
        let answer = reach.send(place, FetchBody::Nothing).await?;
        match answer.status {
            200 if answer.body.is_object() => return Ok(Some(answer.body)),
            200 => return Err(OauthError::BadAnswer(shown(&place.to_string()), "it is no JSON object".to_owned())),
            400..=499 => {}
            status => return Err(OauthError::Status(shown(&place.to_string()), status)),
        }
    }
    Ok(None)
}

/// Returns scheme, host and port.
fn origin(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    format!("{scheme}://{}:{port}", uri.host().unwrap_or_default().to_ascii_lowercase())
}

fn with_path(uri: &Uri, path: &str) -> Uri {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let text = format!("{}://{authority}{path}", uri.scheme_str().unwrap_or_default());
    text.parse().unwrap_or_default()
}

/// Returns whether a server's address is the resource or below it.
fn is_part(resource: &Uri, server: &Uri) -> bool {
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    origin(resource) == origin(server) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn texts(object: &Value, key: &str) -> Option<Vec<String>> {
    let all = object.get(key)?.as_array()?;
    Some(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_must_be_those_of_the_server() {
        for (resource, server, fits) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://A.example:443", "https://a.example/mcp", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example/mc", "https://a.example/mcp", false),
            ("https://b.example/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example:444/mcp", "https://a.example/mcp", false),
        ] {
            assert_eq!(is_part(&resource.parse().unwrap(), &server.parse().unwrap()), fits, "{resource} {server}");
        }
    }
}
