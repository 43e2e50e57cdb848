//! Pairing codes: how a stranger who writes shows the owner who it is.

use ring::rand::{SecureRandom, SystemRandom};

/// Letters and digits that nobody takes for another one.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Characters of a code: 40 bits, which nobody guesses within the hour that it holds, as only the owner can try one.
const LENGTH: usize = 8;

/// A new code; none where the system has no random numbers.
pub(super) fn code() -> Option<String> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

/// A code as a person typed it, in the form that it was made in.
pub fn normal(typed: &str) -> String {
    typed.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect()
}

/// What a stranger is told.
pub(super) fn invitation(channel: &str, code: &str) -> String {
    format!(
        "This is kiso, and it does not know you. Its owner can let you in within an hour:\n\n`kiso connect channel allow {channel} {code}`\n\n\
         Then send your message again."
    )
}

/// What somebody is told who was let in.
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
