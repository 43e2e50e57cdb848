//! `kiso completions`: scripts that let a shell ask kiso for commands, options, and the names of sessions and skills.

use super::{Exit, Failure};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use kiso_base::home::Home;
use kiso_sandbox::skill::bundled_names;
use std::path::{Path, PathBuf};

/// Variable through which a script sends the line to complete.
const VARIABLE: &str = "KISO_COMPLETE";

/// Maximum names offered at once. Longer lists are of no use.
const MAX_NAMES: usize = 200;

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell to generate completions for
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub(super) fn execute(&self, kiso: &clap::Command) -> Result<Exit, Failure> {
        let failed = |error| Failure::new(Exit::Failed, format!("the script cannot be made: {error}"));
        let name = self.shell.to_string();
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(|| failed(format!("there is none for {name}")))?;
        let mut script = Vec::new();
        shell
            .write_registration(VARIABLE, kiso.get_name(), "kiso", "kiso", &mut script)
            .map_err(|error| failed(error.to_string()))?;
        out!("{}", String::from_utf8_lossy(&script));
        Ok(Exit::Done)
    }
}

/// Answers a completion script, if one is asking.
pub(super) fn answer(kiso: impl Fn() -> clap::Command) {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(|| with_names(kiso(), false)).var(VARIABLE).complete();
    }
}

/// Completes names of this home wherever a session or a skill is named.
fn with_names(command: clap::Command, is_skill: bool) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "session" | "sessions" => arg.add(ArgValueCandidates::new(sessions)),
        "name" if is_skill => arg.add(ArgValueCandidates::new(skills)),
        _ => arg,
    });
    let is_skill = command.get_name() == "skill";
    command.mut_subcommands(|sub| {
        // `new` takes the name of a skill that does not exist yet.
        let is_skill = is_skill && sub.get_name() != "new";
        with_names(sub, is_skill)
    })
}

fn sessions() -> Vec<CompletionCandidate> {
    candidates(names_in("sessions"))
}

fn skills() -> Vec<CompletionCandidate> {
    candidates(names_in("skills").into_iter().chain(bundled_names().map(str::to_owned)))
}

fn candidates(names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_NAMES);
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the directories in a folder of the home. Pressing Tab neither creates a home nor waits for the store.
fn names_in(folder: &str) -> Vec<String> {
    let Some(home) = home(std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned())) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(home.join(folder)) else { return Vec::new() };
    let dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = dirs.filter_map(|entry| entry.file_name().into_string().ok());
    // Names that kiso writes have no special meaning in a shell; other entries might.
    names.filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))).collect()
}

/// Returns the home that the line names, else the default one.
fn home(words: impl IntoIterator<Item = String>) -> Option<PathBuf> {
    let words: Vec<_> = words.into_iter().collect();
    let named = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--home=") {
        Some(dir) => Some(dir.to_owned()),
        None if word == "--home" => words.get(at + 1).cloned(),
        None => None,
    });
    let named = named.map(PathBuf::from).or_else(|| std::env::var_os("KISO_HOME").map(PathBuf::from));
    Home::locate(named.as_deref().map(Path::new)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_the_line_counts() {
        let home = |line: &str| home(line.split(' ').map(str::to_owned)).unwrap();
        assert_eq!(home("-- kiso --home /a session show"), Path::new("/a"));
        assert_eq!(home("-- kiso --home=/b session show"), Path::new("/b"));
    }
}
