//! Code that the commands of this crate share: help, errors, and reading a file or standard input.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Ends the command with a message and the code that [`run`] was given.
pub type Error = Box<dyn std::error::Error>;

/// A command's work: its exit code, or why it cannot be done.
pub type Outcome = Result<i32, Error>;

/// Runs a command that ends with `code` if it is used wrongly or fails, and answers `--help` with `usage`.
pub fn run(arguments: Vec<String>, usage: &str, code: i32, work: impl FnOnce(lexopt::Parser) -> Outcome) -> i32 {
    let name = name(&arguments);
    if arguments.get(1).is_some_and(|first| first == "--help") {
        print!("{usage}");
        return 0;
    }
    if arguments.get(1).is_some_and(|first| first == "--version") {
        println!("{name} (kiso) {}", env!("CARGO_PKG_VERSION"));
        return 0;
    }
    work(lexopt::Parser::from_iter(arguments)).unwrap_or_else(|e| {
        eprintln!("{name}: {}", explain(e.as_ref()));
        code
    })
}

/// The command's name without a directory.
pub fn name(arguments: &[String]) -> String {
    arguments.first().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// The error as a sentence, without the number that Rust adds to the system's.
fn explain(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref::<io::Error>() {
        Some(e) => reason(e),
        None => error.to_string(),
    }
}

/// The system's message without its number.
pub fn reason(error: &io::Error) -> String {
    uucore::error::strip_errno(error)
}

/// Prefixes an error with the path, as GNU's tools do: `path: reason`.
pub fn with_path(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    move |e| format!("{}: {}", path.as_ref().display(), reason(&e)).into()
}

/// A file, or standard input for `-`.
pub fn open(path: &str) -> io::Result<Box<dyn Read>> {
    if path == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    if Path::new(path).is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(Box::new(File::open(path)?))
}

/// All bytes of a file, or of standard input for `-`.
pub fn read(path: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(with_path(path))?;
    Ok(bytes)
}

/// Says on standard error what went wrong with one of several files.
pub fn complain(name: &str, path: impl AsRef<Path>, error: &io::Error) {
    let _ = writeln!(io::stderr(), "{name}: {}: {}", path.as_ref().display(), reason(error));
}

/// The operands that are left over, or `-` if there are none.
pub fn files_or_stdin(mut files: Vec<String>) -> Vec<String> {
    if files.is_empty() {
        files.push("-".into());
    }
    files
}

/// The value of an option as text.
pub fn value(parser: &mut lexopt::Parser) -> Result<String, Error> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

/// The value of an option as a number.
pub fn number<T: std::str::FromStr>(parser: &mut lexopt::Parser) -> Result<T, Error> {
    let text = value(parser)?;
    text.parse().map_err(|_| format!("invalid number '{text}'").into())
}

/// Options that commands of others take and do nothing for, with the letters behind which the rest of a word is a value.
const WITHOUT_EFFECT: &[(&[&str], &[&str], &str)] = &[
    (&["dir", "ls", "vdir"], &["-i", "--inode"], "ITw"),
    (&["ptx"], &["-F", "--flag-truncation", "-R", "--right-side-refs"], "gwbio"),
];

/// The first option among the arguments that the command does nothing for.
pub fn without_effect(name: &str, arguments: &[OsString]) -> Option<String> {
    let (_, options, values) = WITHOUT_EFFECT.iter().find(|(names, ..)| names.contains(&name))?;
    let words = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).take_while(|word| *word != "--");
    words.filter(|word| word.starts_with('-')).find_map(|word| {
        let found = match word.strip_prefix("--") {
            Some(long) => options.iter().find(|option| option.strip_prefix("--") == long.split('=').next()).copied(),
            None => {
                let letters = word[1..].chars().take_while(|letter| !values.contains(*letter));
                let letters = letters.collect::<String>();
                options.iter().find(|option| option.len() == 2 && letters.contains(&option[1..])).copied()
            }
        };
        found.map(str::to_owned)
    })
}

/// The short options whose value may begin with `=`, which both lexopt and clap would take away as in `-o=value`. The
/// letters of the third column may stand in front.
const SEPARATORS: &[(&str, &str, &str)] = &[
    ("column", "so", "t"),
    ("grep", "e", ""),
    ("join", "te", ""),
    ("nl", "sdb", ""),
    ("numfmt", "d", "z"),
    ("paste", "d", "sz"),
    ("pr", "sS", ""),
    ("sort", "t", "bdfghinMRrVsuz"),
    ("split", "t", ""),
    ("tac", "s", "b"),
    ("xargs", "dI", "0rt"),
];

/// Doubles the `=` at which the value of a short option begins.
pub fn keep_equals(name: &str, arguments: &mut [OsString]) {
    let Some((_, options, before)) = SEPARATORS.iter().find(|entry| entry.0 == name) else { return };
    for argument in arguments.iter_mut().skip(1) {
        let Some(text) = argument.to_str() else { continue };
        if text == "--" {
            return;
        }
        let Some((head, value)) = text.split_once('=') else { continue };
        let Some((flags, option)) =
            head.strip_prefix('-').and_then(|head| head.split_at_checked(head.len().max(1) - 1))
        else {
            continue;
        };
        if !option.is_empty() && options.contains(option) && flags.chars().all(|flag| before.contains(flag)) {
            *argument = format!("{head}=={value}").into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_without_effect_is_found() {
        let found = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            without_effect(line.split(' ').next().unwrap(), &arguments)
        };
        assert_eq!(found("ls -li a"), Some("-i".to_owned()));
        assert_eq!(found("ls --inode"), Some("--inode".to_owned()));
        assert_eq!(found("ptx --flag-truncation=x"), Some("--flag-truncation".to_owned()));
        assert!(
            ["ls -Ii", "ls -l -- -i", "ls -l i", "sort -i", "ls --ignore=i"].iter().all(|line| found(line).is_none())
        );
    }

    #[test]
    fn an_equals_sign_may_separate() {
        let kept = |line: &str| {
            let mut arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            keep_equals(line.split(' ').next().unwrap(), &mut arguments);
            arguments.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(kept("join -t= a=b -a=c"), "join -t== a=b -a=c");
        assert_eq!(kept("paste -sd=, -"), "paste -sd==, -");
        assert_eq!(kept("sort -- -t= --key=1"), "sort -- -t= --key=1");
        assert_eq!(kept("cut -d= -f1"), "cut -d= -f1");
    }
}
