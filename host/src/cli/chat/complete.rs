//! Completion with Tab: commands, models, pills, skills and their arguments, tags.

use super::LEAVING;
use kiso_agent::session::command::COMMANDS;
use kiso_base::config::Config;
use kiso_sandbox::skill::Skills;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum entries of a directory to search for a file's name.
const MAX_FILES: usize = 2_000;

/// The known names.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub models: Vec<String>,
    pub pills: Vec<String>,
    /// Categories of tools, which tags can name.
    pub tags: Vec<String>,
    /// Tools of skills, with the names of their arguments.
    pub tools: BTreeMap<String, Vec<String>>,
}

impl Names {
    pub(super) fn new(config: &Config, skills: &Skills, pills: Vec<String>) -> Names {
        let mut names = Names {
            models: config.model_strings().into_iter().map(str::to_owned).collect(),
            pills,
            ..Names::default()
        };
        // `kiso skill list` reports skills that cannot be read.
        for installed in skills.list().into_iter().flatten() {
            names.tags.push(installed.manifest.category.clone());
            for tool in &installed.tools {
                let schema = tool.args.schema();
                let args = schema["properties"].as_object().map(|args| args.keys().cloned().collect());
                names.tools.insert(tool.name.clone(), args.unwrap_or_default());
            }
        }
        for skill in skills.agent_skills().into_iter().flatten() {
            names.tools.insert(skill.name.to_string(), Vec::new());
        }
        names.tags.sort();
        names.tags.dedup();
        names
    }

    /// Returns the start of the word before `at`, and its completions.
    pub(super) fn complete(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = &line[..at];
        let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let word = &before[start..];
        let mut words = before[..start].split_whitespace();
        let (first, others) = (words.next(), words.count());
        let mut found: Vec<String> = match (first, word.chars().next()) {
            (None, Some('/')) => {
                let leaving = LEAVING.iter().map(|name| format!("{name} "));
                COMMANDS.iter().map(|(name, _, _)| format!("/{name} ")).chain(leaving).collect()
            }
            (None, Some('!')) => self.pills.iter().map(|pill| format!("!{pill} ")).collect(),
            (_, Some('@')) => self.tools.keys().map(|tool| format!("@{tool} ")).chain(list_files(&word[1..])).collect(),
            (_, Some('#')) => self.tags.iter().map(|tag| format!("#{tag} ")).collect(),
            (Some("/model"), _) if others == 0 => {
                self.models.iter().map(String::as_str).chain(["default"]).map(|model| format!("{model} ")).collect()
            }
            (None, _) => self.tools.keys().map(|tool| format!("{tool} ")).collect(),
            (Some(tool), _) => self
                .tools
                .get(tool.strip_prefix('@').unwrap_or(tool))
                .into_iter()
                .flatten()
                .map(|argument| format!("{argument}="))
                .collect(),
        };
        found.retain(|name| name.starts_with(word));
        (start, found)
    }
}

/// Returns the files and directories whose path begins like this, with the `@` that attaches a file.
fn list_files(begun: &str) -> Vec<String> {
    let (folder, name) = begun.rsplit_once('/').map_or(("", begun), |(folder, name)| (&begun[..=folder.len()], name));
    let place = match folder.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().map(|own| own.join(rest)),
        None => Some(Path::new(if folder.is_empty() { "." } else { folder }).to_owned()),
    };
    let entries = place.and_then(|place| std::fs::read_dir(place).ok()).into_iter().flatten().flatten().take(MAX_FILES);
    let path = |entry: std::fs::DirEntry| {
        let found = entry.file_name().into_string().ok()?;
        // Names with spaces are not offered: a path in a message ends at a space.
        let is_meant = found.starts_with(name) && (name.starts_with('.') || !found.starts_with('.'));
        if !is_meant || found.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        Some(format!("@{folder}{found}{}", if entry.path().is_dir() { "/" } else { " " }))
    };
    let mut found: Vec<String> = entries.filter_map(path).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        let tools = [("data", ["file", "group"]), ("dates", ["day", "zone"])];
        let names = Names {
            models: vec!["ollama:qwen".to_owned(), "reflex".to_owned()],
            pills: vec!["digest".to_owned()],
            tags: vec!["data".to_owned(), "web".to_owned()],
            tools: tools.map(|(tool, args)| (tool.to_owned(), args.map(str::to_owned).to_vec())).into(),
        };
        let (start, found) = names.complete(line, line.len());
        found.into_iter().map(|name| format!("{}{name}", &line[..start])).collect()
    }

    #[test]
    fn each_word_has_its_names() {
        assert_eq!(completed("/mo"), ["/model ", "/models "]);
        assert_eq!(completed("/model re"), ["/model reflex "]);
        assert_eq!(completed("/model d"), ["/model default "]);
        assert_eq!(completed("!d"), ["!digest "]);
        assert_eq!(completed("what is #w"), ["what is #web "]);
        assert_eq!(completed("#"), ["#data ", "#web "]);
        assert_eq!(completed("da"), ["data ", "dates "]);
        assert_eq!(completed("data f"), ["data file="]);
        assert_eq!(completed("sum up @dat"), ["sum up @data ", "sum up @dates "]);
        assert_eq!(completed("@data f"), ["@data file="]);
        for line in ["/model reflex d", "a /mo", "ask !d", "what d", "data file=x"] {
            assert_eq!(completed(line), [""; 0], "{line}");
        }
    }
    #[test]
    fn an_at_sign_also_completes_paths() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        for name in ["date.csv", ".hidden", "two words.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let path = folder.path().display();
        let begun = |rest: &str| completed(&format!("read @{path}/{rest}"));
        assert_eq!(begun("da"), [format!("read @{path}/data/"), format!("read @{path}/date.csv ")]);
        assert_eq!(begun("").len(), 2);
        assert_eq!(begun(".h"), [format!("read @{path}/.hidden ")]);
        assert_eq!(begun("none/x"), [""; 0]);
    }
}
