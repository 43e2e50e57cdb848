//! Signatures: they prove to a receiver that a request is from this home, and when it was made.

use data_encoding::HEXLOWER;
use ring::hmac;

use kiso_base::home::Home;
use kiso_store::secret::{self, SecretValue};

/// Separates these keys from all others that are derived from the home's key.
const INFO: &str = "kiso webhook 1: signatures of ";

/// Returns the key of a webhook without a configured one. It depends on the name, so that one receiver cannot sign for
/// another.
pub(super) fn derived_key(home: &Home, name: &str) -> SecretValue {
    secret::derived(home, INFO, name)
}

/// Returns the header: the time in seconds since 1970, and HMAC-SHA256 over that time, a dot and the body. The key is used
/// as printed text.
pub(super) fn signature(key: &SecretValue, at_s: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes()));
    context.update(format!("{at_s}.").as_bytes());
    context.update(body);
    format!("t={at_s},v1={}", HEXLOWER.encode(context.sign().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_time_and_body() {
        let key = SecretValue::new("whsec_test".to_owned());
        // printf '1700000000.{"id":"x"}' | openssl dgst -sha256 -hmac whsec_test
        assert_eq!(
            signature(&key, 1_700_000_000, b"{\"id\":\"x\"}"),
            "t=1700000000,v1=80e8d098018f757aa814ab1abb924f35d304affa1d93d29611a54696207eb7c3"
        );
        assert_ne!(signature(&key, 1_700_000_000, b"a"), signature(&key, 1_700_000_000, b"b"));
        assert_ne!(signature(&key, 1_700_000_000, b"a")[13..], signature(&key, 1_700_000_001, b"a")[13..]);
    }

    #[test]
    fn every_name_and_every_home_has_a_key_of_its_own() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = dirs.each_ref().map(|dir| Home::open(&dir.path().join("home")).unwrap());
        let key = |home, name| derived_key(home, name).expose().to_owned();
        assert_eq!(key(&one, "a"), key(&one, "a"));
        assert_eq!(key(&one, "a").len(), "whsec_".len() + 64);
        assert_ne!(key(&one, "a"), key(&one, "b"));
        assert_ne!(key(&one, "a"), key(&other, "a"));
    }
}
