//! Words that make a sentence hard to read. No file of the repository has one.

use super::sources;
use crate::harness::root;
use std::path::Path;

/// Names of functions that say nothing about what the function does.
const FUNCTIONS: [&str; 7] = ["of", "told", "said", "at", "among", "called", "given"];

/// Words that no text has.
const TEXTS: [&str; 6] = [" anew", "it is looked", "it is seen whether", "of what is", "which is none", "as it stands"];

#[test]
fn sentences_are_plain() {
    let mut found = Vec::new();
    for (dir, endings) in [
        ("host", &[".rs", ".toml", ".sql", ".js", ".css"][..]),
        ("skills", &[".rs", ".toml", ".md"]),
        ("packages", &[".py", ".toml"]),
        ("roles", &[".md"]),
        ("sdk", &[".rs", ".toml", ".md", ".js", ".ts", ".py"]),
        ("wit", &[".wit", ".md"]),
        ("tests", &[".rs", ".py", ".js", ".toml"]),
        ("fuzz", &[".rs", ".toml"]),
        ("build", &[".rs", ".py"]),
        ("docs", &[".md"]),
        ("README.md", &[]),
        ("CONTRIBUTING.md", &[]),
        ("CHANGELOG.md", &[]),
        ("SECURITY.md", &[]),
        (".ci", &[]),
    ] {
        let paths = match endings {
            [] if dir == ".ci" => vec![root().join(".ci/run"), root().join(".ci/long")],
            [] => vec![root().join(dir)],
            endings => endings.iter().flat_map(|ending| sources(&root().join(dir), ending)).collect(),
        };
        for path in paths {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            // A published text stays as it is, and so does code that is generated from it.
            if name.contains("since_v0_1")
                || name.contains("/migrations/")
                || name.contains("/vendor/")
                || name.ends_with("src/bindings.rs")
                || name.ends_with("house/words.rs")
            {
                continue;
            }
            found.extend(flagged(&path).into_iter().map(|(number, line)| format!("{name}:{number}: {line}")));
        }
    }
    assert!(found.is_empty(), "write subject, verb and object, with the field's term:\n{}", found.join("\n"));
}

/// The lines of a file with such words.
fn flagged(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let is_page = path.extension().is_some_and(|ending| ending == "md");
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let comment = comment(line);
        let sentence = comment.or(is_page.then_some(line));
        let begins = comment.is_some_and(|text| {
            ["What ", "Whether what ", "How long what "].iter().any(|words| text.starts_with(words))
        });
        let lower = line.to_lowercase();
        let has = TEXTS.iter().any(|words| lower.contains(words));
        let negates = sentence.is_some_and(|text| {
            [" is no ", " are no "].iter().any(|words| {
                text.match_indices(words).any(|(at, _)| {
                    let is_other = text[..at].to_lowercase().ends_with("there");
                    !is_other && !text[at + words.len()..].starts_with("longer")
                })
            })
        });
        let named = line.trim_start().trim_start_matches("pub ").split_once("fn ").is_some_and(|(before, rest)| {
            let name = rest.split(['(', '<']).next().unwrap_or("");
            !before.contains('"') && !before.contains("//") && FUNCTIONS.contains(&name)
        });
        if begins || has || negates || named {
            lines.push((number + 1, line.trim().to_owned()));
        }
    }
    lines
}

/// The text of a comment that has the line for itself.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "//", "--", "# ", "* ", "\"\"\""]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(str::trim_start)
}
