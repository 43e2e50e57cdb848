//! The vault: encrypts data that must not be stored in plain text.
//!
//! Values are encrypted with AES-256-GCM under a key that is derived (HKDF-SHA256) from the home's key. The home's key also signs
//! compiled code, and one key should not serve two purposes. Each sealed value is bound to its purpose, so that it cannot be
//! moved to another place in the store and decrypted there.

use std::borrow::Cow;
use std::fmt;

use data_encoding::HEXLOWER;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use super::SecretValue;
use crate::store::{Store, StoreError};
use kiso_base::home::{Home, SessionName};

/// The prefix of every sealed text. The rest of it is hexadecimal.
pub const SEALED: &str = crate::store::SEALED;

/// The purpose for the texts of runs, including their messages.
pub const SEALED_RUN: &str = "run";

/// Separates this key from everything else that is derived from the home's key.
const INFO: &[u8] = b"kiso vault 1: values at rest";

/// Seals and opens values. Cheap to clone; the key is not printed.
#[derive(Clone)]
pub struct Vault {
    key: std::sync::Arc<LessSafeKey>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// Why something was not sealed or opened. Never contains the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// Another home's key, another purpose, or changed bytes: these cannot be distinguished.
    #[error("what was sealed for {purpose:?} cannot be opened: it was changed, or sealed with the key of another home")]
    Closed { purpose: String },
    #[error("the system provides no random numbers")]
    NoRandom,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Vault {
    /// Opens the vault of a home.
    pub fn open(home: &Home) -> Vault {
        Vault::with_key(home.key().as_bytes())
    }

    #[expect(clippy::expect_used, reason = "HKDF gives 32 bytes")]
    fn with_key(master: &[u8; 32]) -> Vault {
        let derived = Salt::new(HKDF_SHA256, &[]).extract(master);
        let info = [INFO];
        // A key of this length is always valid for this algorithm.
        let key = derived.expand(&info, &AES_256_GCM).map(UnboundKey::from).expect("HKDF gives 32 bytes");
        Vault { key: std::sync::Arc::new(LessSafeKey::new(key)) }
    }

    /// Returns the nonce and the ciphertext. `purpose` is needed again to open it.
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        // 96 random bits: even after a billion values, the probability of an equal pair is less than one in a billion.
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| VaultError::NoRandom)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + plain.len() + MAX_TAG_LEN);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(purpose.as_bytes());
        let tag = self.key.seal_in_place_separate_tag(nonce, aad, &mut sealed[NONCE_LEN..]);
        // Only a value of 64 GiB would be refused.
        sealed.extend_from_slice(tag.map_err(|_| closed(purpose))?.as_ref());
        Ok(sealed)
    }

    /// Decrypts a value that was sealed for this purpose.
    pub fn unseal(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN).ok_or_else(|| closed(purpose))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| closed(purpose))?;
        let mut bytes = rest.to_vec();
        let plain = self.key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut bytes);
        let length = plain.map_err(|_| closed(purpose))?.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Seals a text for a text column: [`SEALED`] and hexadecimal digits.
    pub fn seal_text(&self, purpose: &str, text: &str) -> Result<String, VaultError> {
        let sealed = self.seal(purpose, text.as_bytes())?;
        let mut out = SEALED.to_owned();
        HEXLOWER.encode_append(&sealed, &mut out);
        Ok(out)
    }

    /// Seals a JSON document as a JSON string.
    pub fn seal_json(&self, purpose: &str, json: &str) -> Result<String, VaultError> {
        Ok(serde_json::Value::from(self.seal_text(purpose, json)?).to_string())
    }

    /// Returns the document that [`Vault::seal_json`] sealed, or one that is not sealed; `None` if this key does not open it.
    pub fn open_json(&self, purpose: &str, json: &str) -> Option<serde_json::Value> {
        match serde_json::from_str(json).ok()? {
            serde_json::Value::String(sealed) if is_sealed(&sealed) => {
                serde_json::from_str(&self.open_text(purpose, &sealed).ok()?).ok()
            }
            clear => Some(clear),
        }
    }

    /// Returns the text in the clear. A text that is not sealed is returned unchanged.
    pub fn open_text<'a>(&self, purpose: &str, text: &'a str) -> Result<Cow<'a, str>, VaultError> {
        let Some(sealed) = sealed_bytes(text) else { return Ok(Cow::Borrowed(text)) };
        let plain = self.unseal(purpose, &sealed)?;
        String::from_utf8(plain).map(Cow::Owned).map_err(|_| closed(purpose))
    }

    /// Stores the secrets of a session, so that a resumed run has them.
    pub async fn save(
        &self,
        store: &Store,
        session: &SessionName,
        secrets: &[(String, SecretValue)],
        at_ms: i64,
    ) -> Result<(), VaultError> {
        let sealed = secrets
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.seal(&of_session(session, name), value.expose().as_bytes())?)));
        let sealed = sealed.collect::<Result<Vec<_>, VaultError>>()?;
        let session = session.clone();
        let write = store
            .write(move |tx| sealed.iter().try_for_each(|(name, sealed)| tx.put_secret(&session, name, sealed, at_ms)));
        Ok(write.await?)
    }

    /// Returns the secrets of a session, by name. If one cannot be opened, all fail: a silently missing secret would cause an
    /// unrelated error later.
    pub async fn load(&self, store: &Store, session: &SessionName) -> Result<Vec<(String, SecretValue)>, VaultError> {
        let of = session.clone();
        let sealed = store.peek(move |view| view.secrets(&of)).await?;
        let open = |(name, sealed): (String, Vec<u8>)| {
            let purpose = of_session(session, &name);
            let value = String::from_utf8(self.unseal(&purpose, &sealed)?).map_err(|_| closed(&purpose))?;
            Ok((name, SecretValue::new(value)))
        };
        sealed.into_iter().map(open).collect()
    }
}

/// Whether [`Vault::open_text`] would try to open it.
pub fn is_sealed(text: &str) -> bool {
    sealed_bytes(text).is_some()
}

/// Names of sessions contain no '/', so no two pairs have the same purpose.
fn of_session(session: &SessionName, name: &str) -> String {
    format!("secret/{session}/{name}")
}

fn closed(purpose: &str) -> VaultError {
    VaultError::Closed { purpose: purpose.to_owned() }
}

fn sealed_bytes(text: &str) -> Option<Vec<u8>> {
    let bytes = HEXLOWER.decode(text.strip_prefix(SEALED)?.as_bytes()).ok()?;
    (bytes.len() >= NONCE_LEN + MAX_TAG_LEN).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vault(byte: u8) -> Vault {
        Vault::with_key(&[byte; 32])
    }

    #[test]
    fn what_is_sealed_opens_for_its_purpose_only() {
        let vault = vault(1);
        let sealed = vault.seal_text("message", "my password is hunter22").unwrap();
        assert!(sealed.starts_with(SEALED) && is_sealed(&sealed));
        assert!(!sealed.contains("hunter"));
        assert_eq!(vault.open_text("message", &sealed).unwrap(), "my password is hunter22");
        assert_ne!(sealed, vault.seal_text("message", "my password is hunter22").unwrap());
        for (purpose, other) in [("event", vault.clone()), ("message", super::tests::vault(2))] {
            let error = other.open_text(purpose, &sealed).unwrap_err();
            assert!(!error.to_string().contains("hunter"), "{error}");
        }
        assert_eq!(format!("{vault:?}"), "Vault(…)");
    }

    #[test]
    fn the_key_of_the_home_is_not_used_itself() {
        let sealed = vault(1).seal("p", b"text").unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).unwrap());
        let nonce = Nonce::try_assume_unique_for_key(&sealed[..NONCE_LEN]).unwrap();
        assert!(key.open_in_place(nonce, Aad::from(b"p"), &mut sealed[NONCE_LEN..].to_vec()).is_err());
    }

    #[test]
    fn texts_that_only_look_sealed_come_back() {
        let vault = vault(1);
        let forged = format!("{SEALED}{}", "0".repeat(80));
        assert!(vault.open_text("m", &forged).is_err());
        for text in ["", "hello", SEALED, "sealed:1:xyz", "sealed:1:00", &format!("{SEALED}{}é", "0".repeat(79))] {
            assert_eq!(vault.open_text("m", text).unwrap(), text);
        }
    }

    #[tokio::test]
    async fn secrets_of_a_session_come_back_and_cannot_be_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let session = SessionName::parse("s").unwrap();
        let secrets = [("token", "ghp_12345678"), ("password", "päss \0 word")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), SecretValue::new(value.to_owned())));
        let vault = vault(1);
        vault.save(&store, &session, &secrets, 1).await.unwrap();
        let mut loaded = vault.load(&store, &session).await.unwrap();
        loaded.reverse();
        assert!(loaded == secrets);
        assert!(vault.load(&store, &SessionName::parse("t").unwrap()).await.unwrap().is_empty());

        let of = session.clone();
        let swapped = store.write(move |tx| {
            let token = tx.secret(&of, "token")?.unwrap_or_default();
            tx.put_secret(&of, "password", &token, 2)
        });
        swapped.await.unwrap();
        let error = vault.load(&store, &session).await.unwrap_err();
        assert_eq!(error, VaultError::Closed { purpose: "secret/s/password".to_owned() });
        store.close();
    }

    proptest! {
        #[test]
        fn any_change_is_noticed(text in "\\PC{0,40}", at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let vault = vault(3);
            let mut sealed = vault.seal("p", text.as_bytes()).unwrap();
            prop_assert_eq!(vault.unseal("p", &sealed).unwrap(), text.as_bytes());
            let at = at.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert!(vault.unseal("p", &sealed).is_err());
            prop_assert!(vault.unseal("p", &sealed[..at]).is_err());
        }
    }
}
