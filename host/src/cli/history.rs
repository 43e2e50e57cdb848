//! History of lines typed into the chat or `kiso shell`, kept in the home. Lines that contain a credential are not kept.

use kiso_base::home::Home;
use kiso_store::secret::{Secrets, found};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum lines that are kept.
pub(super) const LINES: usize = 1_000;

/// Maximum bytes of the file; then its older half is dropped. A line that is longer than a sixteenth of it is not kept.
const MAX_FILE: usize = 256 << 10;

/// The file of a history. Several chats may append to it.
#[derive(Debug)]
pub(super) struct InputHistory {
    home: Home,
    path: PathBuf,
    /// Secrets from the environment.
    secrets: Secrets,
}

impl InputHistory {
    pub(super) fn of_chat(home: &Home, secrets: Secrets) -> InputHistory {
        InputHistory { home: home.clone(), path: home.path().join("chat_history"), secrets }
    }

    pub(super) fn of_shell(home: &Home, secrets: Secrets) -> InputHistory {
        let history = InputHistory { home: home.clone(), path: home.path().join("shell_history"), secrets };
        history.take_over(&home.path().join("history"));
        history
    }

    /// Imports the history of an earlier version, which did not check for credentials.
    fn take_over(&self, before: &Path) {
        let Ok(text) = std::fs::read_to_string(before) else { return };
        for line in text.lines().skip(text.lines().count().saturating_sub(LINES)) {
            self.add(line);
        }
        let _ = std::fs::remove_file(before);
    }

    /// Returns the kept lines, oldest first.
    pub(super) fn load(&self) -> Vec<String> {
        let mut text = String::new();
        let limit = 2 * MAX_FILE as u64;
        // The chat also begins if the history is missing or damaged.
        let read = std::fs::File::open(&self.path).and_then(|file| file.take(limit).read_to_string(&mut text));
        if read.is_err() {
            return Vec::new();
        }
        let mut room = if text.len() > MAX_FILE { MAX_FILE / 2 } else { MAX_FILE };
        let fits = |line: &&str| {
            let left = room.checked_sub(line.len() + 1);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let mut kept: Vec<&str> = text.lines().rev().take(LINES).take_while(fits).collect();
        kept.reverse();
        let whole: String = kept.iter().flat_map(|line| [line, "\n"]).collect();
        if whole.len() < text.len() {
            // If this fails, the file is only larger than necessary.
            let _ = self.home.write_atomic(&self.path, whole.as_bytes());
        }
        kept.into_iter().map(unescaped).collect()
    }

    /// Appends a line to the file. Returns whether it was accepted.
    pub(super) fn add(&self, line: &str) -> bool {
        if line.trim().is_empty() || line.len() > MAX_FILE / 16 {
            return false;
        }
        if !found::find(line).is_empty() || self.secrets.redact(line) != line {
            return false;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        // A full disk must not interrupt the conversation.
        let _ = file.and_then(|mut file| file.write_all(format!("{}\n", escaped(line)).as_bytes()));
        true
    }
}

/// Encodes a text of several lines as one line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                other => text.extend(other),
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_are_kept_and_secrets_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let secrets = Secrets::from_environment([("KISO_SKILL_X_KEY".into(), "of-the-environment-1".into())]);
        let history = InputHistory::of_chat(&home, secrets);
        assert_eq!(history.load(), [""; 0]);
        assert!(history.add("one\\n") && history.add("two\nlines"));
        for line in ["", " ", "my password: hunter2hunter2", "use of-the-environment-1", &"x".repeat(MAX_FILE)] {
            assert!(!history.add(line), "{line}");
        }
        assert_eq!(history.load(), ["one\\n", "two\nlines"]);
        let mode = std::fs::metadata(&history.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_an_earlier_shell_kept_is_looked_through() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let before = home.path().join("history");
        let token = ["gh", "p_a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8"].concat();
        std::fs::write(&before, format!("ls | grep '\\.md$'\ncurl -H 'Authorization: Bearer {token}'\n")).unwrap();
        let history = InputHistory::of_shell(&home, Secrets::default());
        assert_eq!(history.load(), ["ls | grep '\\.md$'"]);
        assert!(!before.exists());
        assert_eq!(InputHistory::of_shell(&home, Secrets::default()).load().len(), 1);
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let history = InputHistory::of_chat(&home, Secrets::default());
        (0..2 * LINES).for_each(|n| assert!(history.add(&format!("line {n}"))));
        let lines = history.load();
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LINES, Some("line 1999")));
        let long = "x".repeat(MAX_FILE / 20);
        (0..24).for_each(|_| assert!(history.add(&long)));
        history.load();
        assert!(std::fs::metadata(&history.path).unwrap().len() < MAX_FILE as u64);
        std::fs::write(&history.path, [0xff, b'\n']).unwrap();
        assert_eq!(history.load(), [""; 0]);
    }
}
