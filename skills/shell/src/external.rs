//! Commands that are components, and scripts, which are run by another shell.

use std::fs;
use std::io::{ErrorKind, Read};

use crate::bindings::kiso::exec::spawn::{self, Process, Refusal};
use crate::builtin;
use crate::options;
use crate::search::{Program, command_of, is_command};
use crate::shell::{Shell, now};
use crate::state::{self, State, Work};
use crate::table::{self, End, HIGHEST, Table};

/// Something that runs beside this shell, or did not get that far.
pub enum Started {
    Process(Process),
    Ended(u8),
}

impl Started {
    pub fn wait(&mut self) -> u8 {
        match self {
            Started::Process(process) => process.wait(),
            Started::Ended(code) => *code,
        }
    }
}

impl Shell {
    pub fn start_external(&mut self, argv: Vec<String>, table: &Table) -> Started {
        self.start_along(argv, table, false)
    }

    /// `standard`: along the usual directories instead of `PATH`.
    pub fn start_along(&mut self, argv: Vec<String>, table: &Table, standard: bool) -> Started {
        let Some(name) = argv.first() else { return Started::Ended(0) };
        if name.contains('/') {
            let path = name.clone();
            return self.start_path(argv, path, table);
        }
        let program = self.programs(name, standard).next();
        match program {
            Some(Program::Script(path)) => {
                self.remember(&path);
                return self.start_path(argv, path, table);
            }
            Some(Program::Component(path)) => self.remember(&path),
            None if is_command(name) => {
                let path = self.scalar("PATH").unwrap_or_default();
                self.say(
                    table,
                    &format!("{name}: command not found; commands are in /usr/bin, and PATH is \"{path}\""),
                );
                return Started::Ended(127);
            }
            None => {}
        }
        self.start_component(argv, table)
    }

    /// For `hash`.
    fn remember(&mut self, path: &str) {
        *self.state.hashed.entry(path.to_owned()).or_default() += 1;
    }

    fn start_component(&mut self, argv: Vec<String>, table: &Table) -> Started {
        match argv[0].as_str() {
            "sh" | "bash" | "dash" => self.start_shell(&argv, table),
            "" => {
                self.say(table, ": command not found");
                Started::Ended(127)
            }
            _ => self.start_process(argv, None, table),
        }
    }

    /// Starts the command that the first word names, or the WebAssembly program at an absolute path.
    fn start_process(&mut self, argv: Vec<String>, program: Option<String>, table: &Table) -> Started {
        let name = &argv[0];
        let command = spawn::Command {
            argv: argv.clone(),
            program,
            env: self.state.exported(),
            cwd: self.state.cwd.clone(),
            channels: table.channels(3),
        };
        match spawn::start(&command) {
            Ok(process) => Started::Process(process),
            Err(Refusal::Unknown(hint)) => {
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.say(table, &format!("{name}: command not found{hint}"));
                Started::Ended(127)
            }
            Err(Refusal::Failed(reason)) => {
                self.say(table, &format!("{name}: {reason}"));
                Started::Ended(126)
            }
        }
    }

    fn say(&self, table: &Table, message: &str) {
        let _ = table.write(2, format!("sh: {message}\n").as_bytes());
    }

    /// `./script.sh`, a WebAssembly program, or `/usr/bin/env` and its like. Of a script, `path` is the name; a program has the first word.
    fn start_path(&mut self, mut argv: Vec<String>, path: String, table: &Table) -> Started {
        let place = self.absolute(&path);
        if is_wasm(&place) {
            return self.start_process(argv, Some(place), table);
        }
        argv[0].clone_from(&path);
        let source = match read(&place) {
            Ok(source) => source,
            Err((126, _)) if path.ends_with('/') => {
                self.say(table, &format!("{path}: Is a directory"));
                return Started::Ended(126);
            }
            Err((code, reason)) => {
                if let Some(name) = command_of(&path) {
                    argv[0] = name.to_owned();
                    return if builtin::find(name).is_some() && !is_command(name) {
                        self.start_builtin(argv, table)
                    } else {
                        self.start_component(argv, table)
                    };
                }
                self.say(table, &format!("{path}: {reason}"));
                return Started::Ended(code);
            }
        };
        let interpreter = interpreter(&source);
        match interpreter.split_first() {
            Some((name, arguments)) if !matches!(name.as_str(), "sh" | "bash" | "dash") => {
                let mut command = vec![name.clone()];
                command.extend(arguments.iter().cloned());
                command.extend(argv);
                self.start_along(command, table, true)
            }
            Some((_, arguments)) if !arguments.is_empty() => {
                let mut command = vec!["sh".to_owned()];
                command.extend(arguments.iter().cloned());
                command.extend(argv);
                self.start_shell(&command, table)
            }
            _ => {
                argv.remove(0);
                let mut state = self.fresh(path.clone(), argv);
                state.script = Some(path);
                self.start_image(state, source, table)
            }
        }
    }

    /// A builtin that is named by a path.
    fn start_builtin(&mut self, argv: Vec<String>, table: &Table) -> Started {
        let words: Vec<String> = argv.iter().map(|word| crate::print::quote(word)).collect();
        let state = self.fresh("sh".to_owned(), Vec::new());
        self.start_image(state, words.join(" "), table)
    }

    /// `sh -c 'commands' name arguments…`, `sh file arguments…`, `sh -s arguments…`.
    fn start_shell(&mut self, argv: &[String], table: &Table) -> Started {
        let name = self.called.take().unwrap_or_else(|| argv[0].clone());
        let mut state = self.fresh(name, Vec::new());
        let mut words = argv[1..].iter().cloned().peekable();
        let (mut command, mut standard_input) = (false, false);
        while let Some(word) = words.next_if(|word| word.len() > 1 && word.starts_with(['-', '+'])) {
            if word == "--" {
                break;
            }
            if matches!(word.as_str(), "--norc" | "--noprofile" | "--posix" | "--login" | "--noediting") {
                continue;
            }
            if matches!(word.as_str(), "--rcfile" | "--init-file") {
                words.next();
                continue;
            }
            if word.starts_with("--") {
                return self.about_itself(&argv[0], &word, table);
            }
            let on = word.starts_with('-');
            for letter in word[1..].chars() {
                match letter {
                    'c' => command = true,
                    's' => standard_input = true,
                    'o' | 'O' => {
                        let name = words.next().unwrap_or_default();
                        let Some(flag) = options::named(&name, letter == 'O') else {
                            self.say(table, &format!("sh: {name}: invalid option name"));
                            return Started::Ended(2);
                        };
                        state.options.switch(flag, on);
                    }
                    'l' => {}
                    'i' => state.started.push('i'),
                    letter => {
                        let Some(flag) = options::lettered(letter) else {
                            self.say(table, &format!("sh: -{letter}: invalid option"));
                            return Started::Ended(2);
                        };
                        state.options.switch(flag, on);
                    }
                }
            }
        }
        if command {
            let Some(source) = words.next() else {
                self.say(table, "sh: -c: option requires an argument");
                return Started::Ended(2);
            };
            if let Some(name) = words.next() {
                state.name = name;
            }
            state.positional = words.collect();
            state.started.push('c');
            return self.start_image(state, source, table);
        }
        if standard_input || words.peek().is_none() {
            let source = match table.get(0).map(|end| &**end) {
                Some(End::Channel(channel)) => table::drain(channel).unwrap_or_default(),
                _ => Vec::new(),
            };
            state.positional = words.collect();
            state.started.push('s');
            return self.start_image(state, String::from_utf8_lossy(&source).into_owned(), table);
        }
        let path = words.next().unwrap_or_default();
        match read(&self.absolute(&path)) {
            Ok(source) => {
                state.name.clone_from(&path);
                state.script = Some(path);
                state.positional = words.collect();
                self.start_image(state, source, table)
            }
            Err((code, reason)) => {
                self.say(table, &format!("{path}: {reason}"));
                Started::Ended(code)
            }
        }
    }

    /// `--version` and `--help`; another long option is an error.
    fn about_itself(&self, name: &str, option: &str, table: &Table) -> Started {
        let told = match option {
            "--version" => VERSION,
            "--help" => HELP,
            _ => {
                self.say(table, &format!("{name}: {option}: invalid option"));
                return Started::Ended(2);
            }
        };
        Started::Ended(table.write(1, told.as_bytes()).map_or(1, |_| 0))
    }

    fn fresh(&self, name: String, positional: Vec<String>) -> State {
        let mut state = State::fresh(self.state.cwd.clone(), self.state.exported(), positional, now());
        state.name = name;
        state
    }

    fn start_image(&self, state: State, source: String, table: &Table) -> Started {
        let image = state::encode(&state, &Some(Work::Source(source)));
        Started::Process(spawn::fork(&image, &table.channels(HIGHEST + 1)))
    }
}

/// A script that asks for a version looks for the number behind this word.
const VERSION: &str = "kiso's shell, which behaves as GNU bash, version 5.2\n";

const HELP: &str = "Usage: bash [OPTION]... [FILE [ARGUMENT]...]
       bash [OPTION]... -c COMMANDS [NAME [ARGUMENT]...]
  -c            run COMMANDS
  -s            read commands from standard input
  -o, +o NAME   switch an option of `set` on or off; so do its letters, such as -e, -u and -x
  -O, +O NAME   switch an option of `shopt` on or off
  --version     print which version of bash it behaves as
`help` lists the builtins.
";

/// The text of a script, or the code and the reason why there is none.
pub fn read(path: &str) -> Result<String, (u8, String)> {
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => (127, "No such file or directory".to_owned()),
        ErrorKind::IsADirectory => (126, "Is a directory".to_owned()),
        ErrorKind::PermissionDenied => (126, "Permission denied".to_owned()),
        _ if fs::metadata(path).is_ok_and(|file| file.is_dir()) => (126, "Is a directory".to_owned()),
        _ => (126, error.to_string()),
    })?;
    if bytes.iter().take(512).any(|&byte| byte == 0) {
        return Err((126, "cannot execute binary file".to_owned()));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned()))
}

/// Whether the file begins as WebAssembly modules and components do.
fn is_wasm(path: &str) -> bool {
    let mut head = [0; 4];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"\0asm"
}

/// The command that a `#!` line names, by its name alone, and its arguments. Empty without such a line.
fn interpreter(source: &str) -> Vec<String> {
    let Some(line) = source.lines().next().and_then(|line| line.strip_prefix("#!")) else { return Vec::new() };
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    if words.first().is_some_and(|first| name(first) == "env") {
        words.remove(0);
        if words.first().is_some_and(|word| word == "-S") {
            words.remove(0);
        }
    }
    if let Some(first) = words.first_mut() {
        *first = name(first);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_interpreter_line() {
        assert_eq!(interpreter("#!/usr/bin/env js\n1"), ["js"]);
        assert_eq!(interpreter("#!/bin/bash -e\n"), ["bash", "-e"]);
        assert_eq!(interpreter("#! /usr/bin/env -S awk -f\n"), ["awk", "-f"]);
        assert!(interpreter("echo\n#!/bin/sh").is_empty());
    }
}
