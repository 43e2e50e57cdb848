//! Earlier messages of a program's request: compared with those of a session, and quoted if the session does not know them.

use ring::hmac;

/// Maximum size in bytes of a quoted conversation; its end is kept.
const MAX_QUOTE: usize = 16 << 10;

/// A message of the user or the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub by_user: bool,
    pub text: String,
}

/// Computes digests of messages. They are keyed, so that a short secret in a message cannot be guessed from the store.
#[derive(Debug, Clone)]
pub(super) struct Digester(hmac::Key);

/// Separates these digests from other uses of the home's key.
const INFO: &[u8] = b"kiso chat 1: what was said";

impl Digester {
    /// Creates it from the home's key.
    pub(super) fn new(key: &[u8]) -> Digester {
        let own = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), INFO);
        Digester(hmac::Key::new(hmac::HMAC_SHA256, own.as_ref()))
    }

    /// Returns the digest of all messages, as normalized by [`content`].
    pub(super) fn lines(&self, lines: &[Line]) -> Vec<u8> {
        let mut all = hmac::Context::with_key(&self.0);
        for line in lines {
            let content = content(&line.text);
            all.update(&[u8::from(line.by_user)]);
            all.update(&(content.len() as u64).to_le_bytes());
            all.update(content.as_bytes());
        }
        all.sign().as_ref().to_vec()
    }

    /// Returns the digest of one text.
    pub(super) fn text(&self, text: &str) -> Vec<u8> {
        self.lines(&[Line { by_user: false, text: text.to_owned() }])
    }
}

/// Returns whether two texts have the same content.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    content(one) == content(other)
}

/// Normalizes a text: removes what programs change when they send it back, which is white space and displayed thoughts.
fn content(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = rest.find(THOUGHTS) {
        let Some(length) = rest[at..].find(THOUGHTS_END) else { break };
        kept.push_str(&rest[..at]);
        rest = &rest[at + length + THOUGHTS_END.len()..];
    }
    kept.push_str(rest);
    kept.retain(|c| !c.is_whitespace());
    kept
}

/// Prefix of the element in which Open WebUI stores thoughts.
const THOUGHTS: &str = "<details type=\"reasoning\"";
const THOUGHTS_END: &str = "</details>";

/// Quotes the end of a conversation, for a model that has not seen it.
pub(super) fn quote(lines: &[Line]) -> Option<String> {
    let mut quoted = Vec::new();
    let mut left = MAX_QUOTE;
    for line in lines.iter().rev() {
        let who = if line.by_user { "User" } else { "Assistant" };
        let text = line.text.trim();
        let from = text.ceil_char_boundary(text.len().saturating_sub(left));
        let cut = if from > 0 { "[…] " } else { "" };
        quoted.push(format!("{who}: {cut}{}", &text[from..]));
        left = left.saturating_sub(text.len());
        if left == 0 {
            break;
        }
    }
    quoted.reverse();
    (!quoted.is_empty()).then(|| format!("Earlier in this conversation:\n\n{}", quoted.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(by_user: bool, text: &str) -> Line {
        Line { by_user, text: text.to_owned() }
    }

    #[test]
    fn a_conversation_is_the_same_whatever_a_program_does_to_its_spaces_and_thoughts() {
        let said = [line(true, "hi"), line(false, "Hello,\n\n  you")];
        let sent = [
            line(true, " hi\n"),
            line(false, "<details type=\"reasoning\" done=\"true\">\n> planning\n</details>\nHello, you"),
        ];
        let digest = |lines: &[Line]| Digester::new(b"key").lines(lines);
        assert_eq!(digest(&said), digest(&sent));
        assert_ne!(digest(&said), Digester::new(b"other").lines(&said));
        assert!(is_same(&said[1].text, &sent[1].text));
        for other in [
            vec![line(true, "hi")],
            vec![line(true, "hi"), line(true, "Hello, you")],
            vec![line(true, "hiHello,you")],
            vec![line(true, "h"), line(false, "iHello, you")],
            vec![line(true, "hi"), line(false, "Hello, you all")],
            vec![line(true, "hi"), line(false, "<details type=\"reasoning\">Hello, you")],
        ] {
            assert_ne!(digest(&said), digest(&other), "{other:?}");
        }
    }

    #[test]
    fn a_long_conversation_is_quoted_by_its_end() {
        assert_eq!(quote(&[]), None);
        assert_eq!(
            quote(&[line(true, "a"), line(false, "b ")]).unwrap(),
            "Earlier in this conversation:\n\nUser: a\n\nAssistant: b"
        );
        let long = quote(&[line(true, "first"), line(false, &"ü".repeat(MAX_QUOTE)), line(true, "last")]).unwrap();
        assert!(long.len() < MAX_QUOTE + 100 && long.ends_with("ü\n\nUser: last") && !long.contains("first"));
    }
}
