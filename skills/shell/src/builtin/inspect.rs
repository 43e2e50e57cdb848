//! What the shell knows of commands: `type`, `command`, `builtin`, `hash`, `alias`; and of its process.

use super::{Builtin, KEYWORDS, failure, find, misuse};
use crate::bindings::kiso::exec::spawn;
use crate::print;
use crate::shell::{Outcome, Shell};

/// What a name means as a command.
enum Meaning {
    Keyword,
    Function,
    Builtin,
    File(String),
}

fn meaning(shell: &Shell, name: &str) -> Option<Meaning> {
    if KEYWORDS.contains(&name) {
        return Some(Meaning::Keyword);
    }
    if shell.state.functions.contains_key(name) {
        return Some(Meaning::Function);
    }
    if find(name).is_some() {
        return Some(Meaning::Builtin);
    }
    if name.contains('/') {
        let is_file = std::fs::metadata(shell.absolute(name)).is_ok_and(|file| file.is_file());
        return is_file.then(|| Meaning::File(name.to_owned()));
    }
    // There are no paths of commands, but scripts ask for one.
    (spawn::exists(name) || matches!(name, "sh" | "bash")).then(|| Meaning::File(format!("/usr/bin/{name}")))
}

pub fn kind(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut word_only, mut path_only) = (false, false);
    let mut names = &args[1..];
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')) {
        word_only |= flags.contains('t');
        path_only |= flags.contains(['p', 'P']);
        names = &names[1..];
    }
    let mut text = String::new();
    let mut code = 0;
    for name in names {
        let Some(meaning) = meaning(shell, name) else {
            if !word_only && !path_only {
                shell.complain(format_args!("type: {name}: not found"));
            }
            code = 1;
            continue;
        };
        let line = match (&meaning, word_only, path_only) {
            (Meaning::File(path), false, true) => format!("{path}\n"),
            (_, false, true) => String::new(),
            (Meaning::Keyword, true, _) => "keyword\n".to_owned(),
            (Meaning::Function, true, _) => "function\n".to_owned(),
            (Meaning::Builtin, true, _) => "builtin\n".to_owned(),
            (Meaning::File(_), true, _) => "file\n".to_owned(),
            (Meaning::Keyword, ..) => format!("{name} is a shell keyword\n"),
            (Meaning::Builtin, ..) => format!("{name} is a shell builtin\n"),
            (Meaning::File(path), ..) => format!("{name} is {path}\n"),
            (Meaning::Function, ..) => {
                let body = &shell.state.functions[name];
                format!("{name} is a function\n{}", print::function(name, body))
            }
        };
        text.push_str(&line);
    }
    let printed = shell.print("type", text.as_bytes())?;
    Ok(code.max(printed))
}

pub fn command(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words = &args[1..];
    let mut asks = None;
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')) {
        words = &words[1..];
        match flags {
            "v" | "V" | "pv" | "pV" => asks = Some(flags.ends_with('V')),
            "p" => {}
            "-" => break,
            _ => return misuse(shell, "command", &format!("-{flags}: invalid option")),
        }
    }
    match asks {
        None => run(shell, words),
        Some(true) => {
            let mut asked = vec!["type".to_owned()];
            asked.extend_from_slice(words);
            kind(shell, &asked)
        }
        Some(false) => {
            let mut text = String::new();
            let mut code = 1;
            for name in words {
                if let Some(meaning) = meaning(shell, name) {
                    let shown = if let Meaning::File(path) = meaning { path } else { name.clone() };
                    text.push_str(&format!("{shown}\n"));
                    code = 0;
                }
            }
            shell.print("command", text.as_bytes())?;
            Ok(code)
        }
    }
}

/// Runs a builtin or a component, no function.
fn run(shell: &mut Shell, words: &[String]) -> Outcome {
    let Some(name) = words.first() else { return Ok(0) };
    match find(name) {
        Some(Builtin::Plain(run)) => run(shell, words),
        Some(Builtin::Declaring(run)) => run(shell, words.iter().cloned().map(crate::simple::Operand::Text).collect()),
        None => {
            let table = shell.table.clone();
            Ok(shell.start_external(words.to_vec(), &table).wait())
        }
    }
}

pub fn builtin(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.get(1) {
        Some(name) if find(name).is_none() => failure(shell, "builtin", &format!("{name}: not a shell builtin")),
        _ => run(shell, &args[1..]),
    }
}

/// There is no table of paths to keep, so this only answers whether the commands are there.
pub fn hash(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut code = 0;
    for name in args[1..].iter().filter(|name| !name.starts_with('-')) {
        if meaning(shell, name).is_none() {
            code = failure(shell, "hash", &format!("{name}: not found"))?;
        }
    }
    Ok(code)
}

/// `alias` and `unalias`.
pub fn alias(shell: &mut Shell, args: &[String]) -> Outcome {
    if args.len() < 2 {
        return Ok(0);
    }
    // As in a script of bash, a definition is no error and no command uses it.
    shell.complain(format_args!("{}: aliases are not expanded; define a function", args[0]));
    Ok(0)
}

/// The host counts what a task uses, not the shell.
pub fn times(shell: &mut Shell, _: &[String]) -> Outcome {
    shell.print("times", b"0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
}

pub fn limits(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.len() {
        1 => shell.print("ulimit", b"unlimited\n"),
        _ => failure(shell, "ulimit", "the limits of a task are the host's to set"),
    }
}

/// Files have no permissions here; the mask is kept for those that ask.
pub fn umask(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.get(1).map(String::as_str) {
        None => shell.print("umask", format!("{:04o}\n", shell.state.umask).as_bytes()),
        Some("-S") => {
            let class = |shift: u32| {
                let allowed = !(shell.state.umask >> shift) & 7;
                ["r", "w", "x"]
                    .into_iter()
                    .zip([4, 2, 1])
                    .filter(|(_, bit)| allowed & bit != 0)
                    .map(|(c, _)| c)
                    .collect::<String>()
            };
            let text = format!("u={},g={},o={}\n", class(6), class(3), class(0));
            shell.print("umask", text.as_bytes())
        }
        Some(mask) => match u32::from_str_radix(mask, 8) {
            Ok(mask) if mask <= 0o777 => {
                shell.state.umask = mask;
                Ok(0)
            }
            _ => failure(shell, "umask", &format!("{mask}: octal number out of range")),
        },
    }
}
