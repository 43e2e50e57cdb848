//! `cd`, `pwd`, `pushd`, `popd` and `dirs`.

use std::fs;

use super::failure;
use crate::expand::Env;
use crate::shell::{Outcome, Shell};

pub fn cd(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words = args[1..].iter().skip_while(|word| matches!(word.as_str(), "-L" | "-P" | "--"));
    let word = words.next().cloned();
    if words.next().is_some() {
        return failure(shell, "cd", "too many arguments");
    }
    let (target, shown) = match word.as_deref() {
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
    let code = change(shell, "cd", &target)?;
    if code == 0 && shown {
        return shell.print("cd", format!("{}\n", shell.state.cwd).as_bytes());
    }
    Ok(code)
}

/// Where `CDPATH` leads to, if it is another place than the name itself.
fn search(shell: &Shell, target: &str) -> Option<String> {
    let places = shell.scalar("CDPATH").filter(|_| !target.is_empty() && !target.starts_with(['/', '.']))?;
    let is_directory = |path: &str| fs::metadata(shell.absolute(path)).is_ok_and(|data| data.is_dir());
    let path = |place: &str| if place.is_empty() { target.to_owned() } else { format!("{place}/{target}") };
    let found = places.split(':').map(path).find(|path| is_directory(path))?;
    (found != target).then_some(found)
}

fn change(shell: &mut Shell, name: &str, target: &str) -> Outcome {
    if target.is_empty() {
        return Ok(0);
    }
    let path = resolve(&shell.absolute(target));
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return failure(shell, name, &format!("{target}: Not a directory")),
        Err(_) if is_outside(shell, &path) => {
            let root = format!("/{}", shell.state.cwd.split('/').nth(1).unwrap_or_default());
            return failure(shell, name, &format!("{target}: there is nothing outside of {root}"));
        }
        Err(error) => {
            let reason = match error.kind() {
                std::io::ErrorKind::NotADirectory => "Not a directory",
                std::io::ErrorKind::PermissionDenied => "Permission denied",
                _ => "No such file or directory",
            };
            return failure(shell, name, &format!("{target}: {reason}"));
        }
    }
    let old = std::mem::replace(&mut shell.state.cwd, path.clone());
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

/// Whether the first part of a path is no directory that there is.
fn is_outside(shell: &Shell, path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    shell.state.cwd != "/" && (first.is_empty() || fs::metadata(format!("/{first}")).is_err())
}

/// Without `.` and `..`, which go by the text: `cd link/..` stays where it was.
pub fn resolve(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

pub fn pwd(shell: &mut Shell, _: &[String]) -> Outcome {
    shell.print("pwd", format!("{}\n", shell.state.cwd).as_bytes())
}

pub fn pushd(shell: &mut Shell, args: &[String]) -> Outcome {
    let here = shell.state.cwd.clone();
    match args.get(1).map(String::as_str) {
        None => {
            let Some(top) = shell.state.directories.pop() else { return failure(shell, "pushd", "no other directory") };
            match change(shell, "pushd", &top)? {
                0 => shell.state.directories.push(here),
                code => {
                    shell.state.directories.push(top);
                    return Ok(code);
                }
            }
        }
        Some(target) => match change(shell, "pushd", target)? {
            0 => shell.state.directories.push(here),
            code => return Ok(code),
        },
    }
    dirs(shell, &[])
}

pub fn popd(shell: &mut Shell, _: &[String]) -> Outcome {
    let Some(top) = shell.state.directories.pop() else { return failure(shell, "popd", "directory stack empty") };
    match change(shell, "popd", &top)? {
        0 => dirs(shell, &[]),
        code => Ok(code),
    }
}

pub fn dirs(shell: &mut Shell, args: &[String]) -> Outcome {
    if args.get(1).is_some_and(|arg| arg == "-c") {
        shell.state.directories.clear();
        return Ok(0);
    }
    let all: Vec<&str> =
        std::iter::once(&shell.state.cwd).chain(shell.state.directories.iter().rev()).map(String::as_str).collect();
    let home = shell.scalar("HOME").filter(|home| home.len() > 1);
    let short = all.iter().map(|path| match home.as_deref().and_then(|home| path.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => (*path).to_owned(),
    });
    let lines = args.get(1).is_some_and(|arg| arg == "-p");
    let text = short.collect::<Vec<_>>().join(if lines { "\n" } else { " " });
    shell.print("dirs", format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_by_the_text() {
        assert_eq!(resolve("/work/a/../b/./c//"), "/work/b/c");
        assert_eq!(resolve("/work/../../x"), "/x");
        assert_eq!(resolve("/.."), "/");
    }
}
