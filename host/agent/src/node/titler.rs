//! The titler: names a session after its first exchange.

use kiso_base::role::Role;
use kiso_llm::Request;
use kiso_plan::prompt::{ChatMessage, Pieces};

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 80;

/// Number of characters at the beginning of each message that are used for the title.
const MAX_READ: usize = 600;

/// Returns the titler's prompt.
pub fn request(system: &str, mut exchange: Vec<ChatMessage>, boundary: &str) -> Request {
    for message in &mut exchange {
        if let Some((end, _)) = message.text.char_indices().nth(MAX_READ) {
            message.text.truncate(end);
            message.text.push('…');
        }
    }
    let all = Pieces { exchange: Some(exchange), ..Pieces::default() };
    super::request(Role::Titler, system, &all, boundary)
}

/// Parses the answer: its first line, without the decoration that models like to add.
pub fn read(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_start_matches('#').trim();
    let line = line.strip_prefix("Title:").unwrap_or(line);
    let quotes = ['"', '\'', '“', '”', '«', '»', '*', '`', ' '];
    let title: String = line.trim_matches(quotes).trim_end_matches('.').chars().take(MAX_TITLE).collect();
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_made_of_the_beginnings() {
        let said = |from: &str, text: String| ChatMessage::new(from, text);
        let exchange = vec![said("user", "ä".repeat(700)), said("assistant", "short".to_owned())];
        let request = request("system", exchange, "b0");
        assert_eq!(request.user.matches('ä').count(), 600, "{}", request.user);
        assert!(request.user.contains("ä…\nassistant: short\n"), "{}", request.user);
    }

    #[test]
    fn a_title_is_bare() {
        for text in ["Rain in May", "\n# \"Rain in May.\"\nmore", "Title: **Rain in May**"] {
            assert_eq!(read(text).as_deref(), Some("Rain in May"), "{text}");
        }
        assert_eq!(read(" \n\"\" "), None);
        assert_eq!(read(&"x".repeat(500)).unwrap().len(), MAX_TITLE);
    }
}
