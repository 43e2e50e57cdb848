//! Authentication of events: verifies the signature or the secret itself, and the event's age.

use std::fmt;

use axum::http::HeaderMap;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use ring::digest::{SHA256, digest};
use ring::hmac;

use kiso_base::config::{HookAuth, HookSettings};
use kiso_base::home::Home;
use kiso_store::secret::{SecretValue, derived};

/// Separates these secrets from others that are derived from the home's key.
const INFO: &str = "kiso hook 1: events of ";

/// Minimum length in characters of a secret that a third party chose; shorter ones could be guessed.
const LEAST_KEY: usize = 16;

/// Maximum length in characters of a delivery's id.
const MAX_ID: usize = 200;

/// Maximum number of signatures in one header: during a change of the secret, a sender signs with both secrets.
const MAX_SIGNATURES: usize = 8;

/// Headers that may contain the id of a delivery.
const ID_HEADERS: [&str; 3] = ["idempotency-key", "x-github-delivery", "webhook-id"];

/// The secret of a hook.
pub struct HookKey(SecretValue);

impl fmt::Debug for HookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookKey(…)")
    }
}

/// Why a hook has no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    #[error("{variable}, the variable with the secret of [hooks.{hook}], is not set")]
    NotSet { hook: String, variable: String },
    #[error("{variable}, the variable with the secret of [hooks.{hook}], must have {LEAST_KEY} characters or more")]
    ShortKey { hook: String, variable: String },
}

/// Why an event is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the signature or token of the event is not valid")]
    Wrong,
    #[error("the event was signed {off_s} seconds away from this machine's time, and {max_s} are allowed")]
    Stale { off_s: u64, max_s: u64 },
    #[error("the id of a delivery has 1 to {MAX_ID} characters")]
    BadId,
}

/// Identifies repeated deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryMarks {
    id: Option<String>,
    /// The signature: equal signature bytes mean the same delivery, whatever its id, because the id may be unsigned.
    signature: Option<Vec<u8>>,
}

impl DeliveryMarks {
    /// Returns a digest for each mark.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let key = |kind: &[u8], bytes: &[u8]| digest(&SHA256, &[kind, b"\0", bytes].concat()).as_ref().to_vec();
        let id = self.id.as_deref().map(|id| key(b"id", id.as_bytes()));
        let signature = self.signature.as_deref().map(|signature| key(b"signature", signature));
        id.into_iter().chain(signature).collect()
    }
}

impl HookKey {
    /// Returns the secret of a hook. `environment` returns the value of a variable.
    pub fn open(
        home: &Home,
        hook: &HookSettings,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<HookKey, HookError> {
        let Some(variable) = &hook.secret_env else { return Ok(HookKey(derived(home, INFO, &hook.name))) };
        let named = || (hook.name.clone(), variable.clone());
        let secret = environment(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let secret = secret.ok_or_else(|| {
            let (hook, variable) = named();
            HookError::NotSet { hook, variable }
        })?;
        if secret.chars().count() < LEAST_KEY {
            let (hook, variable) = named();
            return Err(HookError::ShortKey { hook, variable });
        }
        Ok(HookKey(SecretValue::new(secret)))
    }

    /// Returns the secret in the form that the sender needs.
    pub fn secret(&self) -> &SecretValue {
        &self.0
    }

    /// Checks that the sender of the event has the secret, and that the event is recent if its signature contains a time.
    pub fn verify(
        &self,
        hook: &HookSettings,
        headers: &HeaderMap,
        body: &[u8],
        now_s: i64,
    ) -> Result<DeliveryMarks, Rejection> {
        let header = |name: &str| {
            let mut all = headers.get_all(name).iter();
            // Several headers are ambiguous.
            all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok()).map(str::trim)
        };
        let shown = header(hook.auth_header()).ok_or(Rejection::Wrong)?;
        let signature = match hook.auth {
            HookAuth::Token => {
                self.is_token(shown)?;
                None
            }
            HookAuth::Github => {
                let hex = shown.strip_prefix("sha256=").ok_or(Rejection::Wrong)?;
                Some(self.is_signed(self.key(), &[body], &[hex_of(hex)?])?)
            }
            HookAuth::Kiso => {
                let part = |name: &str| shown.split(',').find_map(|part| part.trim().strip_prefix(name));
                let sent = part("t=").ok_or(Rejection::Wrong)?;
                let code = hex_of(part("v1=").ok_or(Rejection::Wrong)?)?;
                let signature = self.is_signed(self.key(), &[sent.as_bytes(), b".", body], &[code])?;
                is_fresh(sent, now_s, hook.replay_s)?;
                Some(signature)
            }
            HookAuth::Standard => {
                let (id, sent) = (header("webhook-id"), header("webhook-timestamp"));
                let (id, sent) = (id.ok_or(Rejection::Wrong)?, sent.ok_or(Rejection::Wrong)?);
                let codes = shown.split(' ').filter_map(|one| BASE64.decode(one.strip_prefix("v1,")?.as_bytes()).ok());
                let codes: Vec<_> = codes.take(MAX_SIGNATURES).collect();
                let signed = [id.as_bytes(), b".", sent.as_bytes(), b".", body];
                let signature = self.is_signed(self.standard_key()?, &signed, &codes)?;
                is_fresh(sent, now_s, hook.replay_s)?;
                Some(signature)
            }
        };
        let id = match &hook.id_header {
            Some(name) => header(name),
            None => ID_HEADERS.into_iter().find_map(header),
        };
        if id.is_some_and(|id| id.is_empty() || id.chars().count() > MAX_ID) {
            return Err(Rejection::BadId);
        }
        Ok(DeliveryMarks { id: id.map(str::to_owned), signature })
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.expose().as_bytes())
    }

    /// Decodes the secret in the format of Standard Webhooks: base64 after `whsec_`.
    fn standard_key(&self) -> Result<hmac::Key, Rejection> {
        let text = self.0.expose();
        let bytes =
            BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text).as_bytes()).map_err(|_| Rejection::Wrong)?;
        Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    /// Compares in constant time, so that the duration does not reveal how much is correct.
    fn is_token(&self, shown: &str) -> Result<(), Rejection> {
        let token = match shown.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => shown,
        };
        let key = self.key();
        let own = hmac::sign(&key, self.0.expose().as_bytes());
        hmac::verify(&key, token.as_bytes(), own.as_ref()).map_err(|_| Rejection::Wrong)
    }

    /// Returns the code that is the valid signature of the data.
    fn is_signed(&self, key: hmac::Key, signed: &[&[u8]], codes: &[Vec<u8>]) -> Result<Vec<u8>, Rejection> {
        let mut context = hmac::Context::with_key(&key);
        signed.iter().for_each(|part| context.update(part));
        let right = context.sign();
        // Compares the MACs of both values, as ring does it, so that the comparison takes constant time.
        let right_mac = hmac::sign(&key, right.as_ref());
        let found = codes.iter().find(|code| hmac::verify(&key, code, right_mac.as_ref()).is_ok());
        found.cloned().ok_or(Rejection::Wrong)
    }
}

fn hex_of(text: &str) -> Result<Vec<u8>, Rejection> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| Rejection::Wrong)
}

/// Checks that a time in seconds since 1970 is recent enough. Called only after the signature was verified, so that nobody else
/// learns the clock.
fn is_fresh(sent: &str, now_s: i64, max_s: u64) -> Result<(), Rejection> {
    let sent: i64 = sent.parse().map_err(|_| Rejection::Wrong)?;
    let off_s = now_s.abs_diff(sent);
    if off_s > max_s { Err(Rejection::Stale { off_s, max_s }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;

    const NOW: i64 = 1_700_000_000;

    fn verified(auth: &str, secret: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<DeliveryMarks, Rejection> {
        let toml = format!("[hooks.a]\nauth = \"{auth}\"\ntemplate = \"x\"\nsecret_env = \"S\"\n");
        let config = Config::parse(toml.as_bytes()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let key = HookKey::open(&home, &config.hooks[0], |_| Some(secret.to_owned())).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        key.verify(&config.hooks[0], &map, body, NOW)
    }

    /// The example of GitHub's documentation.
    #[test]
    fn a_signature_of_github() {
        let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let secret = "It's a Secret to Everybody";
        let ok = verified("github", secret, &[("X-Hub-Signature-256", header)], b"Hello, World!").unwrap();
        assert_eq!(ok.keys().len(), 1, "what was signed");
        let with_id = [("X-Hub-Signature-256", header), ("X-GitHub-Delivery", "abc")];
        assert_eq!(verified("github", secret, &with_id, b"Hello, World!").unwrap().keys().len(), 2);
        for (headers, body) in [
            (&[("X-Hub-Signature-256", header)][..], &b"Hello, World"[..]),
            (&[("X-Hub-Signature-256", &header[7..])], b"Hello, World!"),
            (&[("X-Hub-Signature-256", "sha256=")], b"Hello, World!"),
            (&[("X-Hub-Signature-256", "sha256=zz")], b"Hello, World!"),
            (&[("X-Hub-Signature-256", header), ("X-Hub-Signature-256", header)], b"Hello, World!"),
            (&[], b"Hello, World!"),
        ] {
            assert_eq!(verified("github", secret, headers, body), Err(Rejection::Wrong), "{headers:?}");
        }
        let long = "x".repeat(201);
        let with_id = [("X-Hub-Signature-256", header), ("X-GitHub-Delivery", long.as_str())];
        assert_eq!(verified("github", secret, &with_id, b"Hello, World!"), Err(Rejection::BadId));
    }

    /// Made with openssl: printf 'msg_1.1700000000.{}' | openssl dgst -sha256 -hmac KEY -binary | base64
    #[test]
    fn a_signature_of_standard_webhooks() {
        let secret = format!("whsec_{}", BASE64.encode(b"0123456789abcdef01234567"));
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef01234567");
        let sign = |text: &str| format!("v1,{}", BASE64.encode(hmac::sign(&key, text.as_bytes()).as_ref()));
        let right = sign("msg_1.1700000000.{}");
        let both = format!("v1,AAAA {right}");
        let ask = |signature: &str, sent: &str| {
            let headers = [("webhook-id", "msg_1"), ("webhook-timestamp", sent), ("webhook-signature", signature)];
            verified("standard", &secret, &headers, b"{}")
        };
        assert_eq!(ask(&both, "1700000000").unwrap().id.as_deref(), Some("msg_1"));
        assert_eq!(ask(&right, "1700000001"), Err(Rejection::Wrong), "the time is signed");
        let old = sign("msg_1.1699999000.{}");
        assert_eq!(ask(&old, "1699999000"), Err(Rejection::Stale { off_s: 1_000, max_s: 300 }));
        assert_eq!(ask("v1,AAAA", "1699999000"), Err(Rejection::Wrong), "a stranger learns nothing of the clock");
    }

    /// The example of the signature of webhooks, which docs/webhooks.md describes.
    #[test]
    fn a_signature_of_kiso() {
        let header = "t=1700000000,v1=80e8d098018f757aa814ab1abb924f35d304affa1d93d29611a54696207eb7c3";
        let secret = "whsec_test_____________";
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let code = hmac::sign(&key, b"1700000000.{\"id\":\"x\"}");
        let right = format!("t=1700000000,v1={}", HEXLOWER_PERMISSIVE.encode(code.as_ref()));
        assert!(verified("kiso", secret, &[("Kiso-Signature", &right)], b"{\"id\":\"x\"}").is_ok());
        assert_eq!(verified("kiso", secret, &[("Kiso-Signature", header)], b"{\"id\":\"x\"}"), Err(Rejection::Wrong));
        let late = hmac::sign(&key, b"1700000400.{}");
        let late = format!("v1={},t=1700000400", HEXLOWER_PERMISSIVE.encode(late.as_ref()));
        let told = verified("kiso", secret, &[("Kiso-Signature", &late)], b"{}").unwrap_err();
        assert_eq!(told, Rejection::Stale { off_s: 400, max_s: 300 }, "from the future as from the past");
    }

    #[test]
    fn a_token_is_the_secret_itself() {
        let secret = "0123456789abcdef";
        for right in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef", "0123456789abcdef"] {
            assert_eq!(verified("token", secret, &[("Authorization", right)], b"").unwrap().keys().len(), 0);
        }
        for wrong in ["Bearer 0123456789abcde", "Bearer ", "", "Basic 0123456789abcdef"] {
            assert_eq!(verified("token", secret, &[("Authorization", wrong)], b""), Err(Rejection::Wrong), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_derived_or_long_enough() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let config = |more: &str| {
            Config::parse(format!("[hooks.a]\nauth = \"token\"\ntemplate = \"x\"\n{more}").as_bytes()).unwrap()
        };
        let own = HookKey::open(&home, &config("").hooks[0], |_| None).unwrap();
        assert!(own.secret().expose().starts_with("whsec_") && !format!("{own:?}").contains("whsec_"));
        let with = config("secret_env = \"S\"\n");
        let told =
            |value: Option<&str>| HookKey::open(&home, &with.hooks[0], |_| value.map(str::to_owned)).unwrap_err();
        assert_eq!(told(None).to_string(), "S, the variable with the secret of [hooks.a], is not set");
        assert!(told(Some("hidden")).to_string().ends_with("must have 16 characters or more"));
    }
}
