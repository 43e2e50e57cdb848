//! The operations of a registry, by the distribution specification.

use super::artifact::{Descriptor, MANIFEST};
use super::reference::is_tag;
use super::request::{RegistryAnswer, RegistryRequest, send};
use super::{OciError, OciReference, RegistryCredentials, sha256};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION, WWW_AUTHENTICATE};
use http::uri::{Scheme, Uri};
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Redirects of one request: to the store of the blobs, and perhaps from there.
const MAX_REDIRECTS: usize = 3;

/// Bytes of a response with an error or a token.
const MAX_SAID: u64 = 64 << 10;

/// Tags of a name that are read.
const MAX_TAGS: usize = 1_000;

/// Characters of a registry's message that are repeated.
const SAID: usize = 200;

/// The access to request from a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegistryAction {
    Pull,
    Push,
}

pub(super) struct Registry<'a> {
    at: &'a OciReference,
    who: &'a RegistryCredentials,
    scope: RegistryAction,
    /// The value of `Authorization`, once the registry has asked for it.
    authorization: Option<String>,
}

impl<'a> Registry<'a> {
    pub(super) fn new(at: &'a OciReference, who: &'a RegistryCredentials, scope: RegistryAction) -> Self {
        Self { at, who, scope, authorization: None }
    }

    /// The text of the manifest.
    pub(super) async fn manifest(&mut self, max: u64) -> Result<Vec<u8>, OciError> {
        let path = format!("manifests/{}", self.at.wanted());
        let answer = self.ask(Method::GET, &path, &[(ACCEPT, MANIFEST)], Bytes::new(), "the manifest", max).await?;
        Ok(self.expect(answer, &[StatusCode::OK], "the manifest")?.body)
    }

    /// The tags of the name.
    pub(super) async fn tags(&mut self, max: u64) -> Result<Vec<String>, OciError> {
        let path = format!("tags/list?n={MAX_TAGS}");
        let answer = self.ask(Method::GET, &path, &[], Bytes::new(), "the tags", max).await?;
        let answer = self.expect(answer, &[StatusCode::OK], "the tags")?;
        let list: Value = kiso_base::json::parse(&answer.body).unwrap_or_default();
        let tags = list["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(tags.filter(|tag| is_tag(tag)).take(MAX_TAGS).map(str::to_owned).collect())
    }

    /// A blob. It must have the length and digest of its descriptor.
    pub(super) async fn blob(&mut self, of: &Descriptor, what: &str, max: u64) -> Result<Vec<u8>, OciError> {
        if of.size > max {
            return Err(OciError::TooLarge { what: what.to_owned(), max });
        }
        let path = format!("blobs/{}", of.digest);
        // At most as many bytes as the manifest says.
        let answer = self.ask(Method::GET, &path, &[], Bytes::new(), what, of.size).await?;
        let answer = self.expect(answer, &[StatusCode::OK], what)?;
        let is = sha256(&answer.body);
        if is != of.digest {
            return Err(OciError::Digest { what: what.to_owned(), wanted: of.digest.clone(), is });
        }
        Ok(answer.body)
    }

    /// Uploads a blob, unless the registry has it.
    pub(super) async fn put_blob(&mut self, bytes: &[u8], what: &str) -> Result<(), OciError> {
        let digest = sha256(bytes);
        let path = format!("blobs/{digest}");
        if self.ask(Method::HEAD, &path, &[], Bytes::new(), what, 0).await?.status == StatusCode::OK {
            return Ok(());
        }
        let begun = self.ask(Method::POST, "blobs/uploads/", &[], Bytes::new(), what, MAX_SAID).await?;
        let begun = self.expect(begun, &[StatusCode::ACCEPTED], what)?;
        let place = begun.header(LOCATION.as_str()).unwrap_or_default();
        let place = self.resolve(&self.uri("")?, place)?;
        // Only to the same host: the content and the credentials are for the registry.
        if place.authority().map(|there| there.as_str()) != Some(self.at.host()) {
            return Err(self.redirect(&place, "an upload stays with its registry"));
        }
        let separator = if place.query().is_some() { '&' } else { '?' };
        let place = format!("{place}{separator}digest={}", utf8_percent_encode(&digest, NON_ALPHANUMERIC));
        let place: Uri = place.parse().map_err(|_| self.no_address())?;
        let headers = [(CONTENT_TYPE, "application/octet-stream")];
        let body = Bytes::copy_from_slice(bytes);
        let done = self.ask_at(Method::PUT, place, &headers, body, what, MAX_SAID).await?;
        self.expect(done, &[StatusCode::CREATED], what).map(drop)
    }

    /// Uploads a manifest under the tag.
    pub(super) async fn put_manifest(&mut self, text: &[u8]) -> Result<(), OciError> {
        let path = format!("manifests/{}", self.at.tag());
        let body = Bytes::copy_from_slice(text);
        let done = self.ask(Method::PUT, &path, &[(CONTENT_TYPE, MANIFEST)], body, "the manifest", MAX_SAID).await?;
        self.expect(done, &[StatusCode::CREATED], "the manifest").map(drop)
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
        what: &str,
        max: u64,
    ) -> Result<RegistryAnswer, OciError> {
        let uri = self.uri(path)?;
        self.ask_at(method, uri, headers, body, what, max).await
    }

    /// Sends a request, authorizes if the registry requires it, and follows redirects.
    async fn ask_at(
        &mut self,
        method: Method,
        mut uri: Uri,
        headers: &[(HeaderName, &str)],
        body: Bytes,
        what: &str,
        max: u64,
    ) -> Result<RegistryAnswer, OciError> {
        let (mut redirects, mut told) = (0, false);
        loop {
            let is_registry = uri.authority().map(|there| there.as_str()) == Some(self.at.host());
            let mut headers: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), (*value).to_owned())).collect();
            // The store of the blobs does not get the credentials.
            if let Some(authorization) = self.authorization.as_ref().filter(|_| is_registry) {
                headers.push((AUTHORIZATION, authorization.clone()));
            }
            let asked = RegistryRequest {
                method: method.clone(),
                uri: uri.clone(),
                headers,
                body: body.clone(),
                private: is_registry,
            };
            let answer = match send(asked, what, max.max(MAX_SAID)).await {
                Err(OciError::Unreachable { host, why }) if !is_registry => {
                    return Err(OciError::Redirect {
                        host: self.at.host().to_owned(),
                        to: format!("{host} ({why})"),
                        why: "it cannot be reached",
                    });
                }
                answer => answer?,
            };
            if answer.status.is_success() && answer.body.len() as u64 > max {
                return Err(OciError::TooLarge { what: what.to_owned(), max });
            }
            if answer.status == StatusCode::UNAUTHORIZED && is_registry && !told {
                told = true;
                let wants = answer.header(WWW_AUTHENTICATE.as_str()).unwrap_or_default().to_owned();
                self.authorization = self.authorize(&wants).await?;
                if self.authorization.is_some() {
                    continue;
                }
            }
            let moved = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !moved {
                return Ok(answer);
            }
            let to = self.resolve(&uri, answer.header(LOCATION.as_str()).unwrap_or_default())?;
            redirects += 1;
            if redirects > MAX_REDIRECTS {
                return Err(self.redirect(&to, "it was sent on too often"));
            }
            if method != Method::GET && method != Method::HEAD {
                return Err(self.redirect(&to, "what is sent stays with its registry"));
            }
            let leaves = to.authority() != uri.authority();
            if leaves && to.scheme() != Some(&Scheme::HTTPS) {
                return Err(self.redirect(&to, "it is not encrypted"));
            }
            uri = to;
        }
    }

    /// The value of the `Authorization` header: a token, or name and password; `None` without credentials.
    async fn authorize(&self, wants: &str) -> Result<Option<String>, OciError> {
        let basic = self.who.basic(self.at.host());
        let (scheme, rest) = wants.split_once(' ').unwrap_or((wants, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Ok(basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(None);
        }
        let fields = challenge(rest);
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let Some(realm) = field("realm") else { return Ok(None) };
        let realm: Uri = realm.parse().map_err(|_| self.no_address())?;
        let same = realm.authority().map(|there| there.as_str()) == Some(self.at.host());
        if !same && realm.scheme() != Some(&Scheme::HTTPS) {
            return Err(self.redirect(&realm, "tokens come over encrypted connections"));
        }
        let actions = if self.scope == RegistryAction::Push { "pull,push" } else { "pull" };
        let scope = format!("repository:{}:{actions}", self.at.name());
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let service = field("service").map(|service| format!("service={}&", encoded(service))).unwrap_or_default();
        let separator = if realm.query().is_some() { '&' } else { '?' };
        let uri = format!("{realm}{separator}{service}scope={}", encoded(&scope));
        let uri: Uri = uri.parse().map_err(|_| self.no_address())?;
        let headers = basic.map(|basic| vec![(AUTHORIZATION, basic)]).unwrap_or_default();
        let asked = RegistryRequest { method: Method::GET, uri, headers, body: Bytes::new(), private: same };
        let answer = send(asked, "the token", MAX_SAID).await?;
        if !answer.status.is_success() {
            return Err(OciError::Denied { host: self.at.host().to_owned(), status: answer.status.as_u16() });
        }
        let token: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = token["token"].as_str().or_else(|| token["access_token"].as_str());
        Ok(token.map(|token| format!("Bearer {token}")))
    }

    fn expect(&self, answer: RegistryAnswer, wanted: &[StatusCode], what: &str) -> Result<RegistryAnswer, OciError> {
        let host = self.at.host().to_owned();
        match answer.status {
            status if wanted.contains(&status) => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(OciError::Denied { host, status: answer.status.as_u16() })
            }
            StatusCode::NOT_FOUND => Err(OciError::Missing {
                host,
                what: format!("{} of {}:{}", what.trim_start_matches("the "), self.at.name(), self.at.tag()),
            }),
            status => {
                let said = String::from_utf8_lossy(&answer.body);
                let said: String = said.chars().filter(|c| !c.is_control()).take(SAID).collect();
                let said = if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
                Err(OciError::Status { host, status: status.as_u16(), what: what.to_owned(), said })
            }
        }
    }

    /// An address of the registry. Without encryption only for this machine, which is checked when there is a connection.
    fn uri(&self, path: &str) -> Result<Uri, OciError> {
        let name = self.at.host().rsplit_once(':').map_or(self.at.host(), |(name, _)| name);
        let is_here = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
        let scheme = if is_here { "http" } else { "https" };
        let uri = format!("{scheme}://{}/v2/{}/{path}", self.at.host(), self.at.name());
        uri.parse().map_err(|_| self.no_address())
    }

    /// The target of a `Location`.
    fn resolve(&self, from: &Uri, location: &str) -> Result<Uri, OciError> {
        let there: Uri = location.parse().map_err(|_| self.no_address())?;
        if there.authority().is_some() && there.scheme().is_some() {
            return Ok(there);
        }
        let (scheme, authority) =
            (from.scheme_str().unwrap_or("https"), from.authority().map_or("", |there| there.as_str()));
        let path = there.path_and_query().map(|path| path.as_str()).filter(|path| path.starts_with('/'));
        let path = path.ok_or_else(|| self.no_address())?;
        format!("{scheme}://{authority}{path}").parse().map_err(|_| self.no_address())
    }

    fn redirect(&self, to: &Uri, why: &'static str) -> OciError {
        // The query may contain a signature of the store, so it is left out.
        let to = format!("{}{}", to.authority().map_or("", |there| there.as_str()), to.path());
        OciError::Redirect { host: self.at.host().to_owned(), to: to.chars().take(SAID).collect(), why }
    }

    fn no_address(&self) -> OciError {
        let host = self.at.host().to_owned();
        OciError::Status {
            host,
            status: 0,
            what: "a request".to_owned(),
            said: ": it names an address that is none".to_owned(),
        }
    }
}

/// `realm="https://…",service="…"`.
fn challenge(text: &str) -> Vec<(String, String)> {
    let (mut fields, mut rest) = (Vec::new(), text);
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_matches([',', ' ']).to_ascii_lowercase();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        fields.push((key, value.trim().to_owned()));
        rest = left;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read() {
        let read = challenge(r#"realm="https://auth.example/token?x=1",service="reg, one",scope=pull"#);
        let read: Vec<_> = read.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(read, [("realm", "https://auth.example/token?x=1"), ("service", "reg, one"), ("scope", "pull")]);
        assert_eq!(challenge("garbage"), []);
    }
}
