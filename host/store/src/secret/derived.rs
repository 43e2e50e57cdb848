//! Secrets that are derived from the home's key: the same after every restart, and another one for each use and name.

use data_encoding::HEXLOWER;
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use super::SecretValue;
use kiso_base::home::Home;

/// What begins every secret that kiso made for a webhook or a hook, so that one that was published by mistake can be found.
const PREFIX: &str = "whsec_";

/// The secret of something that has none of its own. `info` keeps it apart from everything else that is derived.
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
    // HKDF-SHA256 gives up to 8,160 bytes.
    salt.expand(&info, Bytes).and_then(|key| key.fill(&mut bytes)).expect("HKDF gives 32 bytes");
    SecretValue::new(PREFIX.to_owned() + &HEXLOWER.encode(&bytes))
}
