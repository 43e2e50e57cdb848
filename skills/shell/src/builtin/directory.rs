//! `cd`, `pwd`, `pushd`, `popd` and `dirs`.

use std::fs;
use std::io::ErrorKind;

use super::{failure, misuse};
use crate::expand::Env;
use crate::options::Flag;
use crate::path;
use crate::shell::{Outcome, Shell};

pub fn cd(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut physical = shell.on(Flag::Physical);
    let mut words = &args[1..];
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        words = &words[1..];
        if flags == "-" {
            break;
        }
        for flag in flags.chars() {
            match flag {
                'L' => physical = false,
                'P' => physical = true,
                'e' | '@' => {}
                flag => return misuse(shell, "cd", &format!("-{flag}: invalid option")),
            }
        }
    }
    if words.len() > 1 {
        return failure(shell, "cd", "too many arguments");
    }
    let (target, shown) = match words.first().map(String::as_str) {
        None => match shell.scalar("HOME") {
            Some(home) => (home, false),
            None => return failure(shell, "cd", "HOME not set"),
        },
        Some("-") => match shell.scalar("OLDPWD") {
            Some(old) => (old, true),
            None => return failure(shell, "cd", "OLDPWD not set"),
        },
        Some(target) => search(shell, target).map_or((target.to_owned(), false), |found| (found, true)),
    };
    let code = change(shell, "cd", &target, physical)?;
    if code == 0 && shown {
        return shell.print("cd", format!("{}\n", shell.state.cwd).as_bytes());
    }
    Ok(code)
}

/// The directory that `CDPATH` leads to. `None` for the working directory, an empty entry: `cd` does not print it.
fn search(shell: &Shell, target: &str) -> Option<String> {
    let first = target.split('/').next().unwrap_or_default();
    let places = shell.scalar("CDPATH").filter(|_| !target.is_empty() && !matches!(first, "" | "." | ".."))?;
    let is_directory = |path: &str| fs::metadata(shell.absolute(path)).is_ok_and(|data| data.is_dir());
    let path = |place: &str| match place.trim_end_matches('/') {
        "" if place.is_empty() => target.to_owned(),
        place => format!("{place}/{target}"),
    };
    let found = places.split(':').map(path).find(|path| is_directory(path))?;
    (found != target).then_some(found)
}

fn change(shell: &mut Shell, name: &str, target: &str, physical: bool) -> Outcome {
    let there = shell.absolute(target);
    let reason = match fs::metadata(&there) {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some("Not a directory"),
        Err(error) => Some(match error.kind() {
            ErrorKind::NotADirectory => "Not a directory",
            ErrorKind::PermissionDenied => "Permission denied",
            _ => "No such file or directory",
        }),
    };
    if let Some(reason) = reason {
        return failure(shell, name, &format!("{target}: {reason}"));
    }
    let joined = format!("{}/{target}", shell.state.cwd);
    let logical = path::resolve(if target.starts_with('/') { target } else { &joined });
    let path = if physical { path::physical(&there).unwrap_or(logical) } else { logical };
    let old = shell.scalar("PWD").unwrap_or_else(|| shell.state.cwd.clone());
    shell.state.cwd.clone_from(&path);
    for (variable, value) in [("OLDPWD", old), ("PWD", path)] {
        if let Err(stop) = shell.set(variable, value) {
            shell.stopped(stop)?;
        }
        if let Some(variable) = shell.state.variables.get_mut(variable) {
            variable.exported = true;
        }
    }
    Ok(0)
}

pub fn pwd(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut physical = shell.on(Flag::Physical);
    for flag in args[1..].iter().map_while(|word| word.strip_prefix('-')).flat_map(str::chars) {
        match flag {
            'L' => physical = false,
            'P' => physical = true,
            '-' => {}
            flag => return misuse(shell, "pwd", &format!("-{flag}: invalid option")),
        }
    }
    let path = if physical { path::physical(&shell.state.cwd) } else { None };
    let path = path.unwrap_or_else(|| shell.state.cwd.clone());
    shell.print("pwd", format!("{path}\n").as_bytes())
}

/// The stack as `dirs` shows it: the working directory first.
fn stack(shell: &Shell) -> Vec<String> {
    std::iter::once(&shell.state.cwd).chain(shell.state.directories.iter().rev()).cloned().collect()
}

/// Keeps a stack, whose first is the working directory.
fn keep(shell: &mut Shell, stack: Vec<String>) {
    shell.state.directories = stack.into_iter().skip(1).rev().collect();
}

/// `+2` counts from the start, `-2` from the end.
fn place(shell: &Shell, name: &str, word: &str, count: usize) -> Result<usize, Outcome> {
    let from_end = word.starts_with('-');
    let Ok(number) = word[1..].parse::<usize>() else {
        return Err(misuse(shell, name, &format!("{word}: invalid number")));
    };
    let at = if from_end { count.checked_sub(number + 1) } else { Some(number).filter(|&at| at < count) };
    at.ok_or_else(|| match count {
        1 => failure(shell, name, "directory stack empty"),
        _ => failure(shell, name, &format!("{word}: directory stack index out of range")),
    })
}

fn is_place(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['+', '-']) && word[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// The operands, and whether `-n` said to stay.
fn operands<'a>(shell: &Shell, args: &'a [String]) -> Result<(&'a [String], bool), Outcome> {
    let mut words = &args[1..];
    let mut stays = false;
    while let Some(word) = words.first().filter(|word| word.len() > 1 && word.starts_with('-') && !is_place(word)) {
        words = &words[1..];
        match word.as_str() {
            "--" => break,
            "-n" => stays = true,
            flag => return Err(misuse(shell, &args[0], &format!("{flag}: invalid option"))),
        }
    }
    Ok((words, stays))
}

pub fn pushd(shell: &mut Shell, args: &[String]) -> Outcome {
    let (words, stays) = match operands(shell, args) {
        Ok(operands) => operands,
        Err(refused) => return refused,
    };
    if words.len() > 1 {
        return failure(shell, "pushd", "too many arguments");
    }
    let mut stack = stack(shell);
    match words.first().map(String::as_str) {
        None if stack.len() < 2 => return failure(shell, "pushd", "no other directory"),
        None => stack.swap(0, 1),
        Some(word) if is_place(word) => match place(shell, "pushd", word, stack.len()) {
            Ok(at) => stack.rotate_left(at),
            Err(refused) => return refused,
        },
        Some(word) if stays => stack.insert(1, word.to_owned()),
        Some(word) => {
            let target = if word == "-" { shell.scalar("OLDPWD").unwrap_or_default() } else { word.to_owned() };
            stack.insert(0, target);
        }
    }
    if !stays {
        let code = change(shell, "pushd", &stack[0], shell.on(Flag::Physical))?;
        if code != 0 {
            return Ok(code);
        }
    }
    keep(shell, stack);
    dirs(shell, &["dirs".to_owned()])
}

pub fn popd(shell: &mut Shell, args: &[String]) -> Outcome {
    let (words, stays) = match operands(shell, args) {
        Ok(operands) => operands,
        Err(refused) => return refused,
    };
    let mut stack = stack(shell);
    let at = match words.first() {
        None => usize::from(stays),
        Some(word) if is_place(word) => match place(shell, "popd", word, stack.len()) {
            Ok(at) => at,
            Err(refused) => return refused,
        },
        Some(word) => return misuse(shell, "popd", &format!("{word}: invalid argument")),
    };
    if stack.len() < 2 {
        return failure(shell, "popd", "directory stack empty");
    }
    stack.remove(at);
    if at == 0 && !stays {
        let code = change(shell, "popd", &stack[0], shell.on(Flag::Physical))?;
        if code != 0 {
            return Ok(code);
        }
    }
    keep(shell, stack);
    dirs(shell, &["dirs".to_owned()])
}

pub fn dirs(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut lines, mut numbered, mut long, mut clear, mut only) = (false, false, false, false, None);
    for word in &args[1..] {
        if is_place(word) {
            only = Some(word);
            continue;
        }
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return misuse(shell, "dirs", &format!("{word}: invalid option"));
        };
        for flag in flags.chars() {
            match flag {
                'c' => clear = true,
                'l' => long = true,
                'p' => lines = true,
                'v' => numbered = true,
                flag => return misuse(shell, "dirs", &format!("-{flag}: invalid option")),
            }
        }
    }
    if clear {
        shell.state.directories.clear();
        return Ok(0);
    }
    let home = shell.scalar("HOME").filter(|home| home.len() > 1 && !long);
    let short = |path: &String| match home.as_deref().and_then(|home| path.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => path.clone(),
    };
    let mut shown: Vec<(usize, String)> = stack(shell).iter().map(short).enumerate().collect();
    if let Some(word) = only {
        match place(shell, "dirs", word, shown.len()) {
            Ok(at) => shown = vec![shown.swap_remove(at)],
            Err(refused) => return refused,
        }
    }
    let line = |(at, path): (usize, String)| if numbered { format!("{at:>2}  {path}") } else { path };
    let text: Vec<String> = shown.into_iter().map(line).collect();
    let text = text.join(if lines || numbered { "\n" } else { " " });
    shell.print("dirs", format!("{text}\n").as_bytes())
}
