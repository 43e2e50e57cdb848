//! The credentials for registries: a name and password for a host, in the form in which Docker keeps them.

use super::OciError;
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// Names and passwords, by host.
#[derive(Default, Clone)]
pub struct RegistryCredentials(HashMap<String, String>);

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistryCredentials").field(&self.0.keys()).finish()
    }
}

/// `{"auths": {"ghcr.io": {"auth": "base64 of name:password"}}}`. Other fields are ignored.
#[derive(Deserialize)]
struct AuthFile {
    #[serde(default)]
    auths: HashMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl RegistryCredentials {
    /// Reads the text of such a file. Errors never repeat a part of it.
    pub fn read(text: &str) -> Result<Self, OciError> {
        let refuse = |why: &str| OciError::Credentials(why.to_owned());
        // `serde` would read a value that is not an object as one without fields.
        let file: serde_json::Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| refuse(&format!("they are no JSON object (line {})", error.line())))?;
        let file: AuthFile =
            serde_json::from_value(file.into()).map_err(|_| refuse("`auths` is not one entry for each host"))?;
        let mut all = HashMap::new();
        for (host, auth) in file.auths {
            let pair = match auth {
                Auth { auth: Some(auth), .. } if !auth.is_empty() => {
                    let bytes = BASE64.decode(auth.trim().as_bytes()).map_err(|_| refuse("`auth` is no base64"))?;
                    String::from_utf8(bytes).map_err(|_| refuse("`auth` is no text"))?
                }
                Auth { username: Some(name), password: Some(password), .. } => format!("{name}:{password}"),
                _ => continue,
            };
            if !pair.contains(':') || pair.chars().any(char::is_control) {
                return Err(refuse("a name and a password are written NAME:PASSWORD, without line breaks"));
            }
            let host = host.trim_start_matches("https://").trim_start_matches("http://");
            all.insert(host.split('/').next().unwrap_or_default().to_owned(), pair);
        }
        Ok(Self(all))
    }

    /// The value of `Authorization` for a host, for HTTP's Basic.
    pub(super) fn basic(&self, host: &str) -> Option<String> {
        Some(format!("Basic {}", BASE64.encode(self.0.get(host)?.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_for_one_host_and_never_shown() {
        let text = r#"{"auths": {"https://ghcr.io/v2/": {"auth": "YW5uOnMzY3JldA=="}, "h:5000": {"username": "a", "password": "b"},
                       "empty": {}}, "credsStore": "x"}"#;
        let read = RegistryCredentials::read(text).unwrap();
        assert_eq!(read.basic("ghcr.io").unwrap(), "Basic YW5uOnMzY3JldA==");
        assert!(read.basic("h:5000").is_some() && read.basic("h").is_none() && read.basic("empty").is_none());
        assert!(!format!("{read:?}").contains("s3cret"));
        for text in ["", "[]", r#"{"auths": {"h": {"auth": "!"}}}"#, r#"{"auths": {"h": {"auth": "czNjcmV0"}}}"#] {
            let error = RegistryCredentials::read(text).map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains("s3cret") && !error.contains("czNjcmV0"), "{error}");
        }
    }
}
