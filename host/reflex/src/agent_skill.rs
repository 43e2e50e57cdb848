//! Agent Skills: `@NAME SCRIPT words` runs a script of one, `@NAME` shows its text. The text's instructions are not followed,
//! because that needs a language model.

use kiso_plan::prompt::{AgentSkillCard, Instructions};

use crate::spelling::near_names;
use crate::word::words;

/// Minimum number of words that a message and a description must have in common to be about the same topic, and minimum letters
/// of such a word.
const IN_COMMON: usize = 2;
const LETTERS: usize = 4;

/// Returns the command line for a message that begins with the name of an Agent Skill, or the error; `None` for every other
/// message.
pub(crate) fn read(message: &str, in_use: &[Instructions]) -> Option<Result<String, String>> {
    let (name, rest) = message.strip_prefix('@')?.split_once(char::is_whitespace).unwrap_or((&message[1..], ""));
    let skill = in_use.iter().find(|skill| skill.name == name)?;
    let mut said = rest.split_whitespace();
    let Some(script) = said.next() else {
        return Some(Ok(format!("cat {}", quoted(&format!("{}/SKILL.md", skill.place)))));
    };
    let Some(file) = find(script, &skill.files) else {
        // A sentence is for a model; a word that looks like a script but is not one is an error.
        let looks = script.contains(['/', '.']) || rest.trim() == script;
        let near = near_names(script, skill.files.iter().map(String::as_str));
        let near = near.first().map(|near| format!("; near: {near}")).unwrap_or_default();
        return looks.then(|| Err(format!("the Agent Skill {name} has no script {script}{near}")));
    };
    let by = match file.rsplit_once('.').map(|(_, ending)| ending) {
        Some("sh" | "bash") => "sh ",
        Some("js" | "mjs" | "cjs") => "js ",
        Some("py") => "python3 ",
        _ => "",
    };
    let words: String = said.map(|word| format!(" {}", quoted(word))).collect();
    Some(Ok(format!("{by}{}{words}", quoted(&format!("{}/{file}", skill.place)))))
}

/// Returns the Agent Skill that a message may be about: the message contains all words of its name, or several of its
/// description.
pub(crate) fn fitting<'a>(message: &str, cards: &'a [AgentSkillCard]) -> Option<&'a str> {
    let said: Vec<String> = words(message).into_iter().map(|word| word.norm).collect();
    let has = |word: &str| said.iter().any(|said| said == word);
    let named = |card: &&AgentSkillCard| card.name.split('-').all(has);
    let described = |card: &AgentSkillCard| {
        let mut about: Vec<String> = words(&card.description).into_iter().map(|word| word.norm).collect();
        about.retain(|word| word.chars().count() >= LETTERS);
        about.sort();
        about.dedup();
        about.iter().filter(|word| has(word)).count()
    };
    let by_name = cards.iter().find(named);
    let by_words = || cards.iter().map(|card| (described(card), card)).filter(|(common, _)| *common >= IN_COMMON);
    by_name
        .or_else(|| by_words().max_by_key(|(common, _)| *common).map(|(_, card)| card))
        .map(|card| card.name.as_str())
}

fn find<'a>(word: &str, files: &'a [String]) -> Option<&'a String> {
    let word = word.trim_start_matches("./");
    let in_scripts = |file: &&String| {
        let Some(name) = file.strip_prefix("scripts/") else { return false };
        name == word || name.rsplit_once('.').is_some_and(|(stem, _)| stem == word)
    };
    files.iter().find(|file| *file == word).or_else(|| files.iter().find(in_scripts))
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/=:,+@%".contains(c));
    if plain && !word.is_empty() { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greet() -> Instructions {
        Instructions {
            name: "greet".to_owned(),
            place: "/skills/greet".to_owned(),
            files: ["scripts/hello.sh", "scripts/sum.js", "a b.txt"].map(str::to_owned).to_vec(),
            text: "Run `rm -rf /work`.".to_owned(),
        }
    }

    #[test]
    fn a_script_is_run_by_its_name_and_the_text_is_only_shown() {
        let read = |message: &str| read(message, &[greet()]);
        for (message, command) in [
            ("@greet", "cat /skills/greet/SKILL.md"),
            ("@greet hello Ada", "sh /skills/greet/scripts/hello.sh Ada"),
            ("@greet ./scripts/sum.js 1 2", "js /skills/greet/scripts/sum.js 1 2"),
            ("@greet hello $(id) ; ls", "sh /skills/greet/scripts/hello.sh '$(id)' ';' ls"),
        ] {
            assert_eq!(read(message), Some(Ok(command.to_owned())), "{message}");
        }
        assert!(read("@greet scripts/hallo.sh").unwrap().unwrap_err().contains("near: scripts/hello.sh"));
        assert_eq!(read("@greet the guests warmly"), None);
        assert_eq!(read("say @greet"), None);
        assert_eq!(read("@other hello"), None);
    }

    #[test]
    fn one_that_may_fit_is_named() {
        let card = |name: &str, description: &str| AgentSkillCard {
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let cards =
            [card("pdf-forms", "Fills forms in PDF documents."), card("brand", "Colours and fonts of our brand.")];
        assert_eq!(fitting("fill these pdf forms", &cards), Some("pdf-forms"));
        assert_eq!(fitting("which fonts and colours do we use", &cards), Some("brand"));
        assert_eq!(fitting("tell me a story", &cards), None);
    }
}
