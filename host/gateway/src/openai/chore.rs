//! Auxiliary requests of chat clients: for a title, tags or follow-up questions. Clients send them as prompts to the model of the
//! chat, and each would cause a plan. kiso answers them from known data, without a model.

use serde_json::{Value, json};

use super::history::Line;

/// The kind of an auxiliary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chore {
    Title(Form),
    Tags,
    FollowUps,
    /// Queries for a search in the web or in documents, which the client would make before it sends the question.
    Queries,
    Completion,
    Emoji,
}

/// Format of the requested title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
}

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 60;

/// Prefix of Open WebUI's prompts, and the markers of the conversation in them.
const TASK: &str = "### Task:";
const HISTORY: (&str, &str) = ("<chat_history>", "</chat_history>");

/// Prefixes of LibreChat's prompts for titles.
const TITLES: [&str; 3] = [
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:",
    "Provide a concise, 5-word-or-less title for the conversation",
];

/// The JSON member that each of Open WebUI's prompts asks for.
const MEMBERS: [(&str, Chore); 5] = [
    ("\"follow_ups\"", Chore::FollowUps),
    ("\"title\"", Chore::Title(Form::Json)),
    ("\"tags\"", Chore::Tags),
    ("\"queries\"", Chore::Queries),
    ("\"text\"", Chore::Completion),
];

impl Chore {
    /// Detects an auxiliary request. It has a single message and no earlier ones.
    pub(super) fn detect(lines: &[Line]) -> Option<Chore> {
        let [Line { by_user: true, text }] = lines else { return None };
        let text = text.trim_start();
        if TITLES.iter().any(|begin| text.starts_with(begin)) {
            return Some(Chore::Title(Form::Text));
        }
        let prompt = text.strip_prefix(TASK)?;
        // The instructions come before the conversation, which may contain anything.
        let (asked, _) = prompt.split_once(HISTORY.0)?;
        if asked.contains("emoji that best represents") || asked.contains("single emoji") {
            return Some(Chore::Emoji);
        }
        MEMBERS.iter().find(|(member, _)| asked.contains(member)).map(|(_, chore)| *chore)
    }

    /// Returns the answer. `title` is the title of the session, if it has one.
    pub(super) fn answer(self, lines: &[Line], title: Option<String>) -> String {
        let said = || lines.first().map(|line| first_question(&line.text)).unwrap_or_default();
        let answer: Value = match self {
            Chore::Title(form) => {
                let title = title.unwrap_or_else(|| short(&said()));
                match form {
                    Form::Text => return title,
                    Form::Json => json!({ "title": title }),
                }
            }
            Chore::Tags => json!({ "tags": [] }),
            Chore::FollowUps => json!({ "follow_ups": [] }),
            Chore::Queries => json!({ "queries": [] }),
            Chore::Completion => json!({ "text": "" }),
            Chore::Emoji => return "💬".to_owned(),
        };
        answer.to_string()
    }
}

/// Returns the user's first message in the conversation that a prompt quotes.
fn first_question(prompt: &str) -> String {
    let quoted = prompt.split_once(HISTORY.0).map_or(prompt, |(_, rest)| rest);
    let quoted = quoted.split_once(HISTORY.1).map_or(quoted, |(inner, _)| inner);
    for mark in ["USER:", "User:"] {
        if let Some((_, rest)) = quoted.split_once(mark) {
            let end = ["\nASSISTANT:", "\nAI:", "\nAssistant:"].iter().filter_map(|next| rest.find(next)).min();
            return rest[..end.unwrap_or(rest.len())].trim().to_owned();
        }
    }
    String::new()
}

/// Returns the first words of a text, on one line.
fn short(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        if title.chars().count() + word.chars().count() >= MAX_TITLE {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    match title.is_empty() {
        true => text.chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect(),
        false => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Vec<Line> {
        vec![Line { by_user: true, text: text.to_owned() }]
    }

    const QUOTED: &str = "<chat_history>\nUSER: Plot the rain of \"May\"\nASSISTANT: {\"tags\": 1}\n</chat_history>";

    #[test]
    fn what_clients_ask_for_beside_the_conversation_is_known() {
        let prompt = |asked: &str| user(&format!("### Task:\n{asked}\n### Chat History:\n{QUOTED}"));
        for (asked, chore, answer) in [
            (
                "Generate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON format: { \"title\": \"your concise title here\" }",
                Chore::Title(Form::Json),
                r#"{"title":"Plot the rain of \"May\""}"#,
            ),
            ("Generate 1-3 broad tags\nJSON format: { \"tags\": [\"tag1\"] }", Chore::Tags, r#"{"tags":[]}"#),
            (
                "Suggest 3-5 relevant follow-up questions\nJSON format: { \"follow_ups\": [\"Question 1?\"] }",
                Chore::FollowUps,
                r#"{"follow_ups":[]}"#,
            ),
            ("Analyze the chat history\nrespond with { \"queries\": [] }", Chore::Queries, r#"{"queries":[]}"#),
        ] {
            let lines = prompt(asked);
            assert_eq!(Chore::detect(&lines), Some(chore), "{asked}");
            assert_eq!(chore.answer(&lines, None), answer);
        }
        let known = Chore::Title(Form::Json).answer(&prompt("x"), Some("Rain in May".to_owned()));
        assert_eq!(known, r#"{"title":"Rain in May"}"#);
        let libre = user(&format!("{}, using its same language.\n\nUser: Plot rain\nAI: Done", TITLES[0]));
        assert_eq!(Chore::detect(&libre).unwrap().answer(&libre, None), "Plot rain");
    }

    #[test]
    fn what_a_person_writes_is_a_message() {
        let mut lines = user(&format!("### Task:\nGenerate a {{ \"title\" }}\n{QUOTED}"));
        lines.insert(0, Line { by_user: false, text: "Hello".to_owned() });
        for lines in [
            lines,
            user("### Task:\nWrite a title for my book as { \"title\": … }"),
            user(&format!("Generate {{ \"title\": … }}\n{QUOTED}")),
            user(&format!("### Task:\nCompare\n{QUOTED}\n{{ \"title\": 1 }}")),
            user("Generate tags for these files"),
            Vec::new(),
        ] {
            assert_eq!(Chore::detect(&lines), None, "{lines:?}");
        }
    }

    #[test]
    fn a_title_is_short() {
        assert_eq!(short(&"word ".repeat(40)).len(), 59);
        assert_eq!(short(&"ü".repeat(100)).chars().count(), MAX_TITLE);
        assert_eq!(short(""), "");
    }
}
