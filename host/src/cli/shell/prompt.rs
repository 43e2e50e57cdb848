//! `kiso shell` at a terminal: reads and runs lines, with history and completion.

use super::Hand;
use crate::cli::history::{InputHistory, LINES};
use crate::cli::show::{is_active, printable_line};
use crate::cli::{Exit, Failure};
use cap_std::fs::Dir;
use kiso_base::home::Home;
use kiso_sandbox::exec::Channel;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

/// Reads and runs lines until Ctrl-D or `exit`.
pub(super) fn run(
    shell: &Hand,
    runtime: &tokio::runtime::Runtime,
    history: InputHistory,
    home: &Home,
) -> Result<Exit, Failure> {
    let config = Config::builder()
        .auto_add_history(false)
        .max_history_size(LINES)
        .map_err(broken)?
        .completion_type(rustyline::CompletionType::List)
        .build();
    let lines = MemHistory::with_config(&config);
    let mut editor = Editor::<Names, MemHistory>::with_history(config, lines).map_err(broken)?;
    for line in history.load() {
        let _ = editor.add_history_entry(line);
    }
    editor.set_helper(Some(Names {
        commands: shell.exec.commands(),
        work: home.open_work(&shell.session)?,
        cwd: "/work".to_owned(),
    }));
    errln!("/work is the workspace of the session {}; Ctrl-D exits; see docs/shell.md", shell.session);
    answer(shell, runtime, &history, &mut editor)
}

fn answer(
    shell: &Hand,
    runtime: &tokio::runtime::Runtime,
    history: &InputHistory,
    editor: &mut Editor<Names, MemHistory>,
) -> Result<Exit, Failure> {
    let (mut source, mut state, mut code) = (String::new(), Vec::new(), 0);
    loop {
        let cwd = editor.helper().map(|names| names.cwd.clone()).unwrap_or_default();
        // Directories may have any name.
        let prompt = match source.is_empty() {
            true => format!("{}:{}$ ", shell.session, printable_line(&cwd)),
            false => "> ".to_owned(),
        };
        match editor.readline(&prompt) {
            Ok(line) => source.push_str(&line),
            Err(ReadlineError::Interrupted) => {
                source.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(Exit::Command(code)),
            Err(error) => return Err(broken(error)),
        }
        if source.trim().is_empty() {
            source.clear();
            continue;
        }
        let done = runtime.block_on(async {
            tokio::select! {
                done = shell.run(&source, Vec::new(), state.clone(), Channel::Null, true) => done.map(Some),
                _ = tokio::signal::ctrl_c() => Ok(None),
            }
        })?;
        let Some(done) = done else {
            errln!("^C");
            source.clear();
            continue;
        };
        if done.incomplete {
            source.push('\n');
            continue;
        }
        let line = source.trim_end();
        if history.add(line) {
            let _ = editor.add_history_entry(line);
        }
        source.clear();
        shell.tell(&done);
        code = done.code;
        // A line that a limit ended leaves the shell's state unchanged.
        if !done.state.is_empty() {
            state = done.state;
            if let Some(names) = editor.helper_mut() {
                names.cwd = done.cwd;
            }
        }
        if done.exited {
            return Ok(Exit::Command(code));
        }
    }
}

fn broken(error: ReadlineError) -> Failure {
    Failure::new(Exit::Failed, format!("the terminal cannot be read: {error}"))
}

/// Completes commands and files of the workspace.
struct Names {
    commands: Vec<String>,
    work: Dir,
    cwd: String,
}

impl Helper for Names {}
impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Validator for Names {}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let start =
            line[..at].rfind([' ', '\t', '|', ';', '&', '(', '<', '>', '=', '"', '\'', '`']).map_or(0, |i| i + 1);
        let word = &line[start..at];
        let before = line[..start].trim_end();
        let is_command = before.is_empty() || before.ends_with(['|', ';', '&', '(', '`']);
        let mut found = self.files(word);
        if is_command && !word.contains('/') {
            let commands = self.commands.iter().filter(|name| name.starts_with(word));
            found.extend(commands.map(|name| Pair { display: name.clone(), replacement: format!("{name} ") }));
        }
        Ok((start, found))
    }
}

impl Names {
    /// Returns files whose path begins with the word. A directory ends with a slash.
    fn files(&self, word: &str) -> Vec<Pair> {
        let (parent, name) = word.rfind('/').map_or(("", word), |slash| word.split_at(slash + 1));
        let whole = if parent.starts_with('/') { parent.to_owned() } else { format!("{}/{parent}", self.cwd) };
        let Some(below) = whole.strip_prefix("/work") else { return Vec::new() };
        let below = below.trim_matches('/');
        // Opened through the workspace, so a link never leads out of it.
        let Ok(dir) = self.work.open_dir(if below.is_empty() { "." } else { below }) else { return Vec::new() };
        let entries = dir.entries().into_iter().flatten().flatten();
        let mut found: Vec<Pair> = entries
            .filter_map(|entry| {
                let entry_name = entry.file_name().into_string().ok()?;
                let hidden = entry_name.starts_with('.') && !name.starts_with('.');
                if hidden || !entry_name.starts_with(name) || entry_name.contains(is_active) {
                    return None;
                }
                let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { " " };
                Some(Pair { display: entry_name.clone(), replacement: format!("{parent}{}{end}", quoted(&entry_name)) })
            })
            .collect();
        found.sort_by(|a, b| a.display.cmp(&b.display));
        found
    }
}

/// Quotes a name for a shell.
fn quoted(name: &str) -> String {
    let special = |c: char| !(c.is_alphanumeric() || "._-+,:@%/".contains(c));
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
