//! The auxiliary roles: routing, summaries, titles. Without a language model they are simple.

use std::collections::HashSet;

use serde_json::json;

use kiso_plan::cues;
use kiso_plan::estimate::tokens;
use kiso_plan::prompt::{ChatMessage, Pieces};

/// Maximum words of a title.
const TITLE_WORDS: usize = 6;

/// Words that a title must not end with, because the words after them were cut off.
const OPEN: [&str; 20] = [
    "a", "an", "and", "as", "at", "by", "each", "every", "for", "from", "in", "into", "of", "on", "or", "over", "per",
    "the", "to", "with",
];

/// Maximum characters of a message in a summary.
const GIST: usize = 160;

/// Maximum tokens of a summary; the oldest lines are dropped first.
const SUMMARY_TOKENS: usize = 1_000;

/// Routes every message to a plan, because planning is the purpose of these rules.
pub fn route(pieces: &Pieces) -> String {
    let message = pieces.new_message.as_deref().unwrap_or_default();
    let goal: String = message.chars().take(400).collect();
    json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": goal, "durable": cues::durable(message) })
        .to_string()
}

/// Returns the first words of the user's message.
pub fn title(pieces: &Pieces) -> String {
    let messages = pieces.exchange.iter().flatten();
    let first = messages.into_iter().find(|message| message.from == "user").map_or("", |message| message.text.as_str());
    // Attached files are not part of its text.
    let said = first.rsplit_once("\n\nFiles: ").map_or(first, |(said, _)| said);
    let mut words: Vec<&str> = said.split_whitespace().take(TITLE_WORDS).collect();
    while words.len() > 1 && words.last().is_some_and(|word| OPEN.contains(&word.to_lowercase().as_str())) {
        words.pop();
    }
    words.join(" ")
}

/// Summarizes. For messages: the old summary, and the beginning of each message. For facts: the list without duplicates. For a
/// turn: the user's lasting sentences.
pub fn summarize(pieces: &Pieces) -> String {
    if let Some(facts) = &pieces.consolidate {
        let mut seen = HashSet::new();
        let mut kept: Vec<&String> = Vec::new();
        // Of several equal facts, the latest stays.
        for fact in facts.iter().rev() {
            let plain: String = fact.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
            if seen.insert(plain) {
                kept.push(fact);
            }
        }
        kept.reverse();
        return json!(kept).to_string();
    }
    if let Some(turn) = &pieces.turn {
        let said = turn.iter().filter(|message| message.from == "user");
        let facts: Vec<_> = said.flat_map(|message| cues::facts_in(&message.text)).collect();
        return json!({ "facts": facts, "outdated": [] }).to_string();
    }
    let old = pieces.summary.iter().flat_map(|summary| summary.lines()).map(str::to_owned);
    let new = pieces.compress.iter().flatten().map(gist);
    let lines: Vec<_> = old.chain(new).filter(|line| !line.trim().is_empty()).collect();
    // From the end, as many as fit, and the last one in any case.
    let mut used = 0;
    let fitting = lines.iter().rev().take_while(|line| {
        used += tokens(line) + 1;
        used <= SUMMARY_TOKENS
    });
    let kept = fitting.count().max(1).min(lines.len());
    lines[lines.len() - kept..].join("\n")
}

fn gist(message: &ChatMessage) -> String {
    let text = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = text.char_indices().nth(GIST).map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { "…" } else { "" };
    format!("{}: {}{more}", message.from, &text[..cut])
}

/// The answer if a language model is necessary.
pub fn cannot() -> String {
    "I am reflex, the built-in rules, and no language model: I cannot find out by myself which tools a step needs. Name \
     the skill or the command, or set a language model in config.toml (`kiso config preset` shows how)."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: &str, text: &str) -> ChatMessage {
        ChatMessage::new(from, text)
    }

    #[test]
    fn a_title_is_the_first_words_of_the_user() {
        let exchange =
            Some(vec![message("user", "plot the mean temperature of each month"), message("assistant", "x")]);
        assert_eq!(title(&Pieces { exchange, ..Pieces::default() }), "plot the mean temperature");
    }

    #[test]
    fn a_summary_keeps_the_latest_and_stays_small() {
        let compress = (0..500).map(|n| message("user", &format!("message {n} {}", "word ".repeat(100)))).collect();
        let pieces = Pieces { summary: Some("old".to_owned()), compress: Some(compress), ..Pieces::default() };
        let summary = summarize(&pieces);
        assert!(tokens(&summary) <= SUMMARY_TOKENS);
        assert!(summary.contains("message 499") && !summary.contains("old"));
    }

    #[test]
    fn what_lasts_of_a_turn_is_in_the_words_of_the_user() {
        let turn = vec![
            message("user", "Plan a dinner. My daughter is allergic to nuts! I like tea"),
            message("assistant", "I like soup"),
        ];
        let pieces = Pieces { turn: Some(turn), ..Pieces::default() };
        assert_eq!(
            summarize(&pieces),
            r#"{"facts":["The user said: My daughter is allergic to nuts!","The user said: I like tea"],"outdated":[]}"#
        );
    }

    #[test]
    fn facts_lose_their_doubles() {
        let facts = ["Likes tea.", "likes TEA", "Uses Rust"].map(str::to_owned).to_vec();
        let pieces = Pieces { consolidate: Some(facts), ..Pieces::default() };
        assert_eq!(summarize(&pieces), r#"["likes TEA","Uses Rust"]"#);
    }
}
