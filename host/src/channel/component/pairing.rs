//! Pairing codes: they let the owner recognize a stranger who writes.

use ring::rand::{SecureRandom, SystemRandom};

/// Letters and digits that are not mistaken for each other.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Characters of a code: 40 bits, which nobody guesses within the hour that it is valid, as only the owner can try one.
const LENGTH: usize = 8;

/// Returns a new code; `None` if the system has no random numbers.
pub(super) fn code() -> Option<String> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

/// Normalizes a code that a person typed.
pub fn normal(typed: &str) -> String {
    typed.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect()
}

/// The text for a stranger.
pub(super) fn invitation(channel: &str, code: &str) -> String {
    format!(
        "This is kiso, and it does not know you. Its owner can let you in within an hour:\n\n`kiso connect channel allow {channel} {code}`\n\n\
         Then send your message again."
    )
}

/// The text for a newly accepted sender.
pub fn welcome() -> &'static str {
    "You can write to kiso now."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_are_known_however_they_are_typed() {
        let (one, other) = (code().unwrap(), code().unwrap());
        assert!(one.len() == LENGTH && one != other);
        let typed = format!(" {}-{} ", one[..4].to_lowercase(), &one[4..]);
        assert_eq!(normal(&typed), one);
        assert!(invitation("phone", &one).contains(&format!("kiso connect channel allow phone {one}")));
    }
}
