//! The builtins about commands (`type`, `command`, `builtin`, `hash`, `alias`) and about the shell's process.

use super::{Builtin, KEYWORDS, failure, find, misuse};
use crate::options::Flag;
use crate::print;
use crate::search::{Program, command_of, is_command};
use crate::shell::{Outcome, Shell};

/// The meaning of a name as a command.
enum Meaning {
    Alias(String),
    Keyword,
    Function,
    Builtin,
    File(String),
}

impl Meaning {
    fn word(&self) -> &'static str {
        match self {
            Meaning::Alias(_) => "alias",
            Meaning::Keyword => "keyword",
            Meaning::Function => "function",
            Meaning::Builtin => "builtin",
            Meaning::File(_) => "file",
        }
    }
}

/// All that a name means, in the order in which the shell looks.
fn meanings(shell: &Shell, name: &str, functions: bool, standard: bool) -> Vec<Meaning> {
    let mut all = Vec::new();
    all.extend(shell.alias(name).map(Meaning::Alias));
    all.extend(KEYWORDS.contains(&name).then_some(Meaning::Keyword));
    all.extend((functions && shell.state.functions.contains_key(name)).then_some(Meaning::Function));
    all.extend(find(name).map(|_| Meaning::Builtin));
    all.extend(files(shell, name, standard).into_iter().map(Meaning::File));
    all
}

fn files(shell: &Shell, name: &str, standard: bool) -> Vec<String> {
    if !name.contains('/') {
        return shell.programs(name, standard).map(Program::path).collect();
    }
    let is_file = std::fs::metadata(shell.absolute(name)).is_ok_and(|file| file.is_file())
        || command_of(name).is_some_and(is_command);
    if is_file { vec![name.to_owned()] } else { Vec::new() }
}

fn describe(shell: &Shell, name: &str, meaning: &Meaning) -> String {
    match meaning {
        Meaning::Alias(text) => format!("{name} is aliased to `{text}'\n"),
        Meaning::Keyword => format!("{name} is a shell keyword\n"),
        Meaning::Builtin => format!("{name} is a shell builtin\n"),
        Meaning::File(path) => format!("{name} is {path}\n"),
        Meaning::Function => match shell.state.functions.get(name) {
            Some(body) => format!("{name} is a function\n{}", print::function(name, body)),
            None => String::new(),
        },
    }
}

/// `type`.
pub fn kind(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut word_only, mut path_only, mut search, mut all, mut functions) = (false, false, false, false, true);
    let mut names = &args[1..];
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        names = &names[1..];
        if flags == "-" {
            break;
        }
        for flag in flags.chars() {
            match flag {
                't' => word_only = true,
                'p' => path_only = true,
                'P' => (path_only, search) = (true, true),
                'a' => all = true,
                'f' => functions = false,
                flag => return misuse(shell, "type", &format!("-{flag}: invalid option")),
            }
        }
    }
    let mut text = String::new();
    let mut code = 0;
    for name in names {
        let mut found: Vec<Meaning> = match search {
            true => files(shell, name, false).into_iter().map(Meaning::File).collect(),
            false => meanings(shell, name, functions, false),
        };
        if found.is_empty() {
            if !word_only && !path_only {
                shell.complain(format_args!("type: {name}: not found"));
            }
            code = 1;
        }
        if !all {
            found.truncate(1);
        }
        for meaning in &found {
            match (meaning, word_only, path_only) {
                (meaning, true, _) => text.push_str(&format!("{}\n", meaning.word())),
                (Meaning::File(path), _, true) => text.push_str(&format!("{path}\n")),
                (_, _, true) => {}
                (meaning, ..) => text.push_str(&describe(shell, name, meaning)),
            }
        }
    }
    let printed = shell.print("type", text.as_bytes())?;
    Ok(code.max(printed))
}

pub fn command(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words = &args[1..];
    let (mut asks, mut standard) = (None, false);
    while let Some(flags) = words.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        words = &words[1..];
        if flags == "-" {
            break;
        }
        for flag in flags.chars() {
            match flag {
                'v' => asks = Some(false),
                'V' => asks = Some(true),
                'p' => standard = true,
                flag => return misuse(shell, "command", &format!("-{flag}: invalid option")),
            }
        }
    }
    let Some(at_length) = asks else { return run(shell, words, standard) };
    let mut text = String::new();
    let mut code = 1;
    for name in words {
        match meanings(shell, name, true, standard).first() {
            None if at_length => shell.complain(format_args!("command: {name}: not found")),
            None => continue,
            Some(meaning) => {
                code = 0;
                text.push_str(&match meaning {
                    meaning if at_length => describe(shell, name, meaning),
                    Meaning::File(path) => format!("{path}\n"),
                    Meaning::Alias(text) => format!("alias {name}={}\n", print::always_quote(text)),
                    _ => format!("{name}\n"),
                });
            }
        }
    }
    shell.print("command", text.as_bytes())?;
    Ok(if words.is_empty() { 0 } else { code })
}

/// Runs a builtin or a component, no function.
fn run(shell: &mut Shell, words: &[String], standard: bool) -> Outcome {
    let Some(name) = words.first() else { return Ok(0) };
    match find(name) {
        Some(Builtin::Plain(run)) => run(shell, words),
        Some(Builtin::Declaring(run)) => run(shell, words.iter().cloned().map(crate::simple::Operand::Text).collect()),
        None => {
            let table = shell.table.clone();
            Ok(shell.start_along(words.to_vec(), &table, standard).wait())
        }
    }
}

pub fn builtin(shell: &mut Shell, args: &[String]) -> Outcome {
    let skipped = usize::from(args.get(1).is_some_and(|word| word == "--"));
    let args = &args[skipped..];
    match args.get(1) {
        Some(name) if find(name).is_none() => failure(shell, "builtin", &format!("{name}: not a shell builtin")),
        _ => run(shell, &args[1..], false),
    }
}

/// The programs that were started from here. Nothing depends on it: each command is searched for again.
pub fn hash(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut names = &args[1..];
    let (mut target, mut shown) = (false, names.is_empty());
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        names = &names[1..];
        match flags {
            "-" => break,
            "r" | "d" => shell.state.hashed.clear(),
            "t" => target = true,
            "l" => shown = true,
            flags => return misuse(shell, "hash", &format!("-{flags}: invalid option")),
        }
    }
    let mut text = String::new();
    let mut code = 0;
    for name in names {
        let path = shell.programs(name, false).next().map(Program::path);
        match path {
            Some(path) if target => text.push_str(&format!("{path}\n")),
            Some(path) => drop(shell.state.hashed.insert(path, 0)),
            None if find(name).is_some() || name.contains('/') => {}
            None => code = failure(shell, "hash", &format!("{name}: not found"))?,
        }
    }
    if shown && shell.state.hashed.is_empty() {
        text.push_str("hash: hash table empty\n");
    } else if shown {
        text.push_str("hits\tcommand\n");
        shell.state.hashed.iter().for_each(|(path, hits)| text.push_str(&format!("{hits:>4}\t{path}\n")));
    }
    let printed = shell.print("hash", text.as_bytes())?;
    Ok(code.max(printed))
}

pub fn alias(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut names = &args[1..];
    while let Some(flag) = names.first().filter(|word| word.len() > 1 && word.starts_with('-')) {
        names = &names[1..];
        match flag.as_str() {
            "--" => break,
            "-p" => {}
            flag => return misuse(shell, "alias", &format!("{flag}: invalid option")),
        }
    }
    let line = |name: &str, text: &str| format!("alias {name}={}\n", print::always_quote(text));
    let mut text = String::new();
    let mut code = 0;
    if names.is_empty() {
        text.extend(shell.state.aliases.iter().map(|(name, text)| line(name, text)));
    }
    for name in names {
        match name.split_once('=').filter(|(name, _)| !name.is_empty()) {
            Some((name, value)) => {
                if name.contains(['/', '$', '`', '\'', '"', '\\', ' ', '\t', '\n', '|', '&', ';', '(', ')', '<', '>']) {
                    code = failure(shell, "alias", &format!("`{name}': invalid alias name"))?;
                    continue;
                }
                shell.state.aliases.insert(name.to_owned(), value.to_owned());
                if !shell.on(Flag::ExpandAliases) {
                    // As in a script of bash, a definition is not an error, but no command uses it.
                    shell.complain(format_args!("alias: {name} is not expanded in scripts; define a function"));
                }
            }
            None => match shell.state.aliases.get(name) {
                Some(value) => text.push_str(&line(name, value)),
                None => code = failure(shell, "alias", &format!("{name}: not found"))?,
            },
        }
    }
    let printed = shell.print("alias", text.as_bytes())?;
    Ok(code.max(printed))
}

pub fn unalias(shell: &mut Shell, args: &[String]) -> Outcome {
    let names = args[1..].strip_prefix(&["--".to_owned()]).unwrap_or(&args[1..]);
    match names.first().map(String::as_str) {
        None => return misuse(shell, "unalias", "usage: unalias [-a] name [name ...]"),
        Some("-a") => {
            shell.state.aliases.clear();
            return Ok(0);
        }
        Some(flag) if flag.len() > 1 && flag.starts_with('-') => {
            return misuse(shell, "unalias", &format!("{flag}: invalid option"));
        }
        Some(_) => {}
    }
    let mut code = 0;
    for name in names {
        if shell.state.aliases.remove(name).is_none() {
            code = failure(shell, "unalias", &format!("{name}: not found"))?;
        }
    }
    Ok(code)
}

/// The host counts what a task uses, not the shell.
pub fn times(shell: &mut Shell, _: &[String]) -> Outcome {
    shell.print("times", b"0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
}

pub fn limits(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.len() {
        1 => shell.print("ulimit", b"unlimited\n"),
        2 if is_letters(args[1].trim_start_matches('-'), "HScdefilmnpqrstuvxPRT") && args[1].starts_with('-') => {
            shell.print("ulimit", b"unlimited\n")
        }
        _ => failure(shell, "ulimit", "the limits of a task are the host's to set"),
    }
}

/// Files have no permissions here; the mask is kept for those that ask.
pub fn umask(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut symbolic, mut reusable) = (false, false);
    let mut words = &args[1..];
    while let Some(flags) =
        words.first().and_then(|word| word.strip_prefix('-')).filter(|flags| is_letters(flags, "Sp-"))
    {
        words = &words[1..];
        symbolic |= flags.contains('S');
        reusable |= flags.contains('p');
    }
    let mask = shell.state.umask;
    if let Some(flag) = words.first().filter(|word| word.len() > 1 && word.starts_with('-')) {
        return misuse(shell, "umask", &format!("{flag}: invalid option"));
    }
    let Some(wanted) = words.first() else {
        let text = match symbolic {
            true => format!("u={},g={},o={}", letters(mask >> 6), letters(mask >> 3), letters(mask)),
            false => format!("{mask:04o}"),
        };
        let flags = if symbolic { " -S" } else { "" };
        let text = if reusable { format!("umask{flags} {text}\n") } else { format!("{text}\n") };
        return shell.print("umask", text.as_bytes());
    };
    if wanted.starts_with(|c: char| c.is_ascii_digit()) {
        return match u32::from_str_radix(wanted, 8) {
            Ok(mask) if mask <= 0o777 => {
                shell.state.umask = mask;
                Ok(0)
            }
            _ => failure(shell, "umask", &format!("{wanted}: octal number out of range")),
        };
    }
    let mut allowed = !mask & 0o777;
    for clause in wanted.split(',') {
        match changed(allowed, clause) {
            Some(after) => allowed = after,
            None => return failure(shell, "umask", &format!("`{clause}': invalid symbolic mode operator")),
        }
    }
    shell.state.umask = !allowed & 0o777;
    Ok(0)
}

fn is_letters(flags: &str, known: &str) -> bool {
    !flags.is_empty() && flags.chars().all(|flag| known.contains(flag))
}

/// The permissions that a mask leaves to a class.
fn letters(mask: u32) -> String {
    [('r', 4), ('w', 2), ('x', 1)].into_iter().filter(|(_, bit)| mask & bit == 0).map(|(letter, _)| letter).collect()
}

/// One part of a mode such as `u=rw,g-w,+x`.
fn changed(mut allowed: u32, clause: &str) -> Option<u32> {
    let who = clause.len() - clause.trim_start_matches(['u', 'g', 'o', 'a']).len();
    let mut classes = 0;
    for class in clause[..who].chars() {
        classes |= match class {
            'u' => 0o700,
            'g' => 0o070,
            'o' => 0o007,
            _ => 0o777,
        };
    }
    let classes = if classes == 0 { 0o777 } else { classes };
    let mut letters = clause[who..].chars();
    let operator = letters.next()?;
    let mut bits = 0;
    for letter in letters {
        bits |= match letter {
            'r' => 0o444,
            'w' => 0o222,
            'x' => 0o111,
            _ => return None,
        };
    }
    let bits = bits & classes;
    allowed = match operator {
        '+' => allowed | bits,
        '-' => allowed & !bits,
        '=' => allowed & !classes | bits,
        _ => return None,
    };
    Some(allowed)
}
