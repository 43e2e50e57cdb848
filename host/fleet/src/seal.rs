//! Encrypts and authenticates everything that goes through NATS, with a key derived from the home's key, which every member has.

use std::fmt;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use kiso_base::home::HomeKey;

/// Encrypts and decrypts payloads. The subject is authenticated, too, so a payload is not valid under another subject.
pub struct Seal {
    key: LessSafeKey,
    random: SystemRandom,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// Length of a key in bytes.
struct KeyBytes;

impl KeyType for KeyBytes {
    fn len(&self) -> usize {
        CHACHA20_POLY1305.key_len()
    }
}

impl Seal {
    /// Derives the key for a fleet of this name.
    #[expect(clippy::expect_used, reason = "the key has the right length")]
    pub fn derive(key: &HomeKey, fleet: &str) -> Seal {
        let salt = Salt::new(HKDF_SHA256, b"kiso fleet 1 payload");
        let mut bytes = [0; 32];
        let extracted = salt.extract(key.as_bytes());
        let expanded = extracted.expand(&[fleet.as_bytes()], KeyBytes).and_then(|okm| {
            okm.fill(&mut bytes)?;
            UnboundKey::new(&CHACHA20_POLY1305, &bytes)
        });
        Seal { key: LessSafeKey::new(expanded.expect("the key has the right length")), random: SystemRandom::new() }
    }

    /// Returns the nonce, the ciphertext and the tag.
    #[expect(clippy::expect_used, reason = "the system has random numbers; a payload is not that large")]
    pub fn seal(&self, subject: &str, plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).expect("the system has random numbers");
        let mut sealed = Vec::with_capacity(NONCE_LEN + plain.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend(nonce);
        sealed.extend(plain);
        let aad = Aad::from(subject.as_bytes());
        let tag =
            self.key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed[NONCE_LEN..]);
        sealed.extend(tag.expect("a payload is not that large").as_ref());
        sealed
    }

    /// Returns the decrypted payload; `None` if it was not encrypted with this key for this subject.
    pub fn open(&self, subject: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = rest.to_vec();
        let aad = Aad::from(subject.as_bytes());
        let length = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut bytes).ok()?.len();
        bytes.truncate(length);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(name: &str, fleet: &str) -> Seal {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home");
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::OpenOptionsExt::mode(std::fs::OpenOptions::new().write(true).create_new(true), 0o600)
            .open(path.join("key"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, &[name.len() as u8; 32]))
            .unwrap();
        Seal::derive(kiso_base::home::Home::open(&path).unwrap().key(), fleet)
    }

    #[test]
    fn only_who_has_the_key_opens_it_and_only_where_it_belongs() {
        let ours = seal("a", "kiso");
        let sealed = ours.seal("kiso.log", b"words");
        assert_eq!(seal("a", "kiso").open("kiso.log", &sealed).as_deref(), Some(b"words".as_slice()));
        assert_eq!(ours.open("kiso.chunk", &sealed), None, "another subject");
        assert_eq!(seal("a", "other").open("kiso.log", &sealed), None, "another fleet");
        assert_eq!(seal("ab", "kiso").open("kiso.log", &sealed), None, "another key");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(ours.open("kiso.log", &damaged), None, "{at}");
            assert_eq!(ours.open("kiso.log", &sealed[..at]), None, "{at}");
        }
        assert_ne!(sealed, ours.seal("kiso.log", b"words"), "the same words look the same");
    }
}
