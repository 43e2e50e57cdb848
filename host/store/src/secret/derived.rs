//! Secrets derived from the home's key: constant over restarts, and different for each use and name.

use data_encoding::HEXLOWER;
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use super::SecretValue;
use kiso_base::home::Home;

/// The prefix of every secret that kiso creates for a webhook or a hook, so that a secret published by mistake can be found.
const PREFIX: &str = "whsec_";

/// Returns the secret of something without its own. `info` separates it from all other derived secrets.
#[expect(clippy::expect_used, reason = "HKDF gives 32 bytes")]
pub fn derived(home: &Home, info: &str, name: &str) -> SecretValue {
    struct Bytes;
    impl KeyType for Bytes {
        fn len(&self) -> usize {
            32
        }
    }
    let salt = Salt::new(HKDF_SHA256, &[]).extract(home.key().as_bytes());
    let info = [info.as_bytes(), name.as_bytes()];
    let mut bytes = [0; 32];
    // HKDF-SHA256 returns up to 8,160 bytes.
    salt.expand(&info, Bytes).and_then(|key| key.fill(&mut bytes)).expect("HKDF gives 32 bytes");
    SecretValue::new(PREFIX.to_owned() + &HEXLOWER.encode(&bytes))
}
