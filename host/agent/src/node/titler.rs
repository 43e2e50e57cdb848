//! The titler: names a session after its first exchange.

use kiso_base::role::Role;
use kiso_llm::Request;
use kiso_plan::prompt::{ChatMessage, Pieces};

/// Characters of a title.
const MAX_TITLE: usize = 80;

/// The titler's prompt.
pub fn request(system: &str, exchange: Vec<ChatMessage>, boundary: &str) -> Request {
    let all = Pieces { exchange: Some(exchange), ..Pieces::default() };
    super::request(Role::Titler, system, &all, boundary)
}

/// Reads the answer: its first line, without what models like to put around a title.
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
    fn a_title_is_bare() {
        for text in ["Rain in May", "\n# \"Rain in May.\"\nmore", "Title: **Rain in May**"] {
            assert_eq!(read(text).as_deref(), Some("Rain in May"), "{text}");
        }
        assert_eq!(read(" \n\"\" "), None);
        assert_eq!(read(&"x".repeat(500)).unwrap().len(), MAX_TITLE);
    }
}
