//! `env`, `nohup` and `nice`: another command in another environment.

use command::process::{self, Input};
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: env [-i] [-0] [-u NAME]... [-C DIR] [-S STRING] [NAME=VALUE]... [COMMAND [ARG]...]
Print the environment, or run COMMAND in another one.

  -i           begin with an empty environment
  -u NAME      without this variable
  -0           end each line with NUL
  -C DIR       in this directory
  -S STRING    split STRING into arguments
";

/// The exit code of GNU's `env`, `nohup` and `nice` when they fail themselves.
const FAILED: i32 = 125;

pub fn main(arguments: Vec<String>) -> i32 {
    let arguments = split_option(arguments);
    cli::run(arguments, USAGE, FAILED, |mut parser| {
        let mut env = process::environment();
        let mut zero = false;
        let mut argv = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('i') | Long("ignore-environment") => env.clear(),
                Short('u') | Long("unset") => {
                    let name = cli::value(&mut parser)?;
                    env.retain(|(n, _)| *n != name);
                }
                Short('0') | Long("null") => zero = true,
                Short('C') | Long("chdir") => {
                    let directory = cli::value(&mut parser)?;
                    std::env::set_current_dir(&directory).map_err(cli::with_path(&directory))?;
                }
                Value(value) => {
                    let value = value.to_string_lossy().into_owned();
                    if value == "-" {
                        env.clear();
                        continue;
                    }
                    match value.split_once('=') {
                        Some((name, text)) => set(&mut env, name, text),
                        None => {
                            argv.push(value);
                            argv.extend(parser.raw_args()?.map(|a| a.to_string_lossy().into_owned()));
                            break;
                        }
                    }
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if argv.is_empty() {
            for (name, value) in env {
                print!("{name}={value}{}", if zero { '\0' } else { '\n' });
            }
            return Ok(0);
        }
        Ok(run("env", &argv, env))
    })
}

fn set(env: &mut Vec<(String, String)>, name: &str, value: &str) {
    match env.iter_mut().find(|(n, _)| n == name) {
        Some(entry) => entry.1 = value.to_owned(),
        None => env.push((name.to_owned(), value.to_owned())),
    }
}

fn run(name: &str, argv: &[String], env: Vec<(String, String)>) -> i32 {
    match process::start(argv, env, Input::Inherited) {
        Ok(process) => process.wait(),
        Err(refused) => {
            eprintln!("{name}: {}", refused.message);
            refused.code
        }
    }
}

/// Puts what `-S` holds in its place, split at blanks outside of quotes.
fn split_option(mut arguments: Vec<String>) -> Vec<String> {
    let Some(first) = arguments.get(1).cloned() else { return arguments };
    let text = match first.strip_prefix("--split-string=").or_else(|| first.strip_prefix("-S")) {
        Some("") if arguments.len() > 2 => arguments.remove(2),
        Some(text) => text.to_owned(),
        None => return arguments,
    };
    arguments.splice(1..2, words(&text));
    arguments
}

/// The words of a text, with quotes and backslashes as `xargs` and `env -S` know them.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|inner| *inner != c));
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

const NOHUP: &str = "Usage: nohup COMMAND [ARG]...\nRun COMMAND. There are no hangups here, so this changes nothing.\n";

pub fn nohup(arguments: Vec<String>) -> i32 {
    cli::run(arguments, NOHUP, FAILED, |mut parser| {
        let argv = rest(&mut parser)?;
        Ok(run("nohup", &argv, process::environment()))
    })
}

const NICE: &str = "Usage: nice [-n ADJUSTMENT] COMMAND [ARG]...
Run COMMAND. All commands have one priority here, so this changes nothing.
";

pub fn nice(arguments: Vec<String>) -> i32 {
    cli::run(arguments, NICE, FAILED, |mut parser| {
        let mut argv = rest(&mut parser)?;
        while argv.first().is_some_and(|first| first.starts_with('-')) {
            let option = argv.remove(0);
            if option == "-n" && !argv.is_empty() {
                argv.remove(0);
            }
        }
        if argv.is_empty() {
            println!("0");
            return Ok(0);
        }
        Ok(run("nice", &argv, process::environment()))
    })
}

fn rest(parser: &mut lexopt::Parser) -> Result<Vec<String>, Error> {
    Ok(parser.raw_args()?.map(|argument| argument.to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn words_keep_what_is_quoted() {
        assert_eq!(words(r#"a  'b c' d"e f"\ g "#), strings(&["a", "b c", "de f g"]));
        assert_eq!(words("''"), strings(&[""]));
    }

    #[test]
    fn a_split_option_becomes_arguments() {
        assert_eq!(split_option(strings(&["env", "-S", "A=1 ls -l", "x"])), strings(&["env", "A=1", "ls", "-l", "x"]));
        assert_eq!(split_option(strings(&["env", "-Sls"])), strings(&["env", "ls"]));
        assert_eq!(split_option(strings(&["env", "ls", "-S"])), strings(&["env", "ls", "-S"]));
    }
}
