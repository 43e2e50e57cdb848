//! `help`: what there is to type.

use super::{BUILTINS, KEYWORDS, failure, misuse};
use crate::search;
use crate::shell::{Outcome, Shell};

/// Columns of a list.
const WIDTH: usize = 78;

/// How a builtin or a keyword is written, and what it does.
const TOPICS: &[(&str, &str, &str)] = &[
    (".", ". FILE [ARG]...", "run the commands of a file in this shell"),
    (":", ": [ARG]...", "do nothing, successfully"),
    ("[", "[ EXPRESSION ]", "see `help test`"),
    ("[[", "[[ EXPRESSION ]]", "a condition; == and != match patterns, =~ a regular expression"),
    ("alias", "alias [NAME[=TEXT]]...", "keep an alias; in command lines it is not expanded, define a function"),
    ("bg", "bg [JOB]...", "go on with a job in the background"),
    ("break", "break [N]", "leave N loops"),
    ("builtin", "builtin NAME [ARG]...", "run a builtin, not a function of the same name"),
    ("case", "case WORD in PATTERN) COMMANDS ;; ... esac", "run what belongs to the first pattern that fits"),
    ("cd", "cd [-L | -P] [DIR | -]", "go to a directory"),
    ("command", "command [-v | -V | -p] NAME [ARG]...", "run a command, not a function; -v says what a name is"),
    ("continue", "continue [N]", "go on with the next round of the Nth loop"),
    ("declare", "declare [-aAirxlup] [NAME[=VALUE]]...", "make variables and arrays, or print them with -p"),
    ("dirs", "dirs [-clpv]", "print the directories that pushd keeps"),
    ("disown", "disown [JOB]...", "forget jobs"),
    ("echo", "echo [-neE] [TEXT]...", "print words; -n without a newline, -e with escapes"),
    ("eval", "eval [TEXT]...", "run words as a command line"),
    ("exec", "exec [COMMAND [ARG]...] [REDIRECTION]...", "run in place of the shell, or redirect for good"),
    ("exit", "exit [CODE]", "end the shell"),
    ("export", "export [-np] [NAME[=VALUE]]...", "give variables to commands"),
    ("false", "false", "fail with 1"),
    ("fg", "fg [JOB]", "wait for a job"),
    ("for", "for NAME in WORDS; do COMMANDS; done", "run commands for each word; also for ((i = 0; i < 3; i++))"),
    ("function", "function NAME { COMMANDS; }", "define a function; also NAME() { COMMANDS; }"),
    ("getopts", "getopts OPTIONS NAME [ARG]...", "take the next option from the arguments"),
    ("hash", "hash [-r] [NAME]...", "print the commands that were started"),
    ("help", "help [-ds] [NAME]...", "say what there is, or how something is used"),
    (
        "if",
        "if COMMANDS; then COMMANDS; [elif COMMANDS; then COMMANDS;]... [else COMMANDS;] fi",
        "run what a condition allows",
    ),
    ("jobs", "jobs [-lp]", "print what runs in the background"),
    ("kill", "kill [-SIGNAL] PID | %JOB ...", "end processes of this line"),
    ("let", "let EXPRESSION...", "calculate; also ((EXPRESSION)) and $((EXPRESSION))"),
    ("local", "local [NAME[=VALUE]]...", "make variables that end with the function"),
    ("mapfile", "mapfile [-t] [-d DELIM] [-n COUNT] [ARRAY]", "read lines into an array"),
    ("popd", "popd [+N | -N]", "go back to a directory that pushd kept"),
    ("printf", "printf [-v NAME] FORMAT [ARG]...", "print by a format"),
    ("pushd", "pushd [DIR | +N | -N]", "go to a directory and keep this one"),
    ("pwd", "pwd [-L | -P]", "print the directory"),
    ("read", "read [-r] [-a ARRAY] [-d DELIM] [-n COUNT] [NAME]...", "read a line into variables"),
    ("readarray", "readarray [-t] [-d DELIM] [-n COUNT] [ARRAY]", "see `help mapfile`"),
    ("readonly", "readonly [NAME[=VALUE]]...", "make variables that cannot be changed"),
    ("return", "return [CODE]", "leave a function"),
    ("select", "select NAME in WORDS; do COMMANDS; done", "ask for one of the words, again and again"),
    ("set", "set [-eufxCo OPTION] [--] [ARG]...", "set options and positional arguments"),
    ("shift", "shift [N]", "drop the first N arguments"),
    ("shopt", "shopt [-su] [OPTION]...", "set options such as nullglob, globstar and dotglob"),
    ("source", "source FILE [ARG]...", "see `help .`"),
    ("test", "test EXPRESSION", "-e -f -d -s FILE, -z -n TEXT, A = B, A -lt B, A -nt B, ! -a -o"),
    ("time", "time PIPELINE", "say how long a pipeline took"),
    ("times", "times", "print no times: the host counts them"),
    ("trap", "trap COMMANDS EXIT | ERR | SIGNAL ...", "run commands at the end or after an error"),
    ("true", "true", "succeed"),
    ("type", "type [-atpP] NAME...", "say what a name is"),
    ("typeset", "typeset [-aAirxlup] [NAME[=VALUE]]...", "see `help declare`"),
    ("ulimit", "ulimit", "the limits of a line are the host's"),
    ("umask", "umask [MODE]", "kept, and without effect: files have no permission bits"),
    ("unalias", "unalias [-a] NAME...", "forget aliases"),
    ("unset", "unset [-fv] NAME...", "forget variables and functions"),
    ("until", "until COMMANDS; do COMMANDS; done", "run commands until others succeed"),
    ("wait", "wait [PID | %JOB]...", "wait for what runs in the background"),
    ("while", "while COMMANDS; do COMMANDS; done", "run commands as long as others succeed"),
    ("{", "{ COMMANDS; }", "run commands as one; ( COMMANDS ) does so in a subshell"),
];

/// The topic that explains a word of the language.
fn topic(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let name = match name {
        "then" | "elif" | "else" | "fi" => "if",
        "do" | "done" | "in" => "for",
        "esac" => "case",
        "((" => "let",
        "]]" => "[[",
        "}" | "(" => "{",
        name => name,
    };
    TOPICS.iter().find(|(topic, ..)| *topic == name)
}

/// `help`.
pub fn help(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut short, mut usage) = (false, false);
    let mut names = &args[1..];
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        names = &names[1..];
        match flags {
            "-" => break,
            "d" => short = true,
            "s" => usage = true,
            "m" => {}
            "-help" => return explain(shell, "help", false, false),
            flags => return misuse(shell, "help", &format!("-{flags}: invalid option")),
        }
    }
    if names.is_empty() {
        return shell.print("help", overview().as_bytes());
    }
    let mut code = 0;
    for name in names {
        code = explain(shell, name, short, usage)?;
    }
    Ok(code)
}

fn explain(shell: &mut Shell, name: &str, short: bool, usage: bool) -> Outcome {
    if let Some((_, written, does)) = topic(name) {
        let text = match (short, usage) {
            (true, _) => format!("{name} - {does}\n"),
            (false, true) => format!("{name}: {written}\n"),
            (false, false) => format!("{name}: {written}\n    {does}\n"),
        };
        return shell.print("help", text.as_bytes());
    }
    if search::is_command(name) {
        // The command says it itself.
        let table = shell.table.clone();
        return Ok(shell.start_along(vec![name.to_owned(), "--help".to_owned()], &table, true).wait());
    }
    failure(shell, "help", &format!("no help topics match `{name}'; `help` lists what there is"))
}

fn overview() -> String {
    let mut text = String::from(
        "The language is that of bash. `help NAME` says more of a builtin, a keyword or a command.\n\nKeywords and builtins:\n",
    );
    let mut names: Vec<String> =
        KEYWORDS.iter().chain(BUILTINS.iter().map(|(name, _)| name)).map(|n| (*n).into()).collect();
    names.sort();
    names.dedup();
    text.push_str(&lines(&names));
    text.push_str("\nCommands:\n");
    text.push_str(&lines(&search::commands()));
    text
}

/// Words in lines that fit a screen.
fn lines(words: &[String]) -> String {
    let mut text = String::new();
    let mut line = String::from(" ");
    for word in words {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_built_in_is_explained() {
        assert!(TOPICS.iter().map(|(name, ..)| name).is_sorted());
        let known = |name: &&str| super::super::find(name).is_some() || KEYWORDS.contains(name);
        assert!(TOPICS.iter().all(|(name, ..)| known(name)));
        let silent: Vec<_> =
            BUILTINS.iter().map(|(name, _)| *name).chain(KEYWORDS).filter(|name| topic(name).is_none()).collect();
        assert_eq!(silent, ["!", "coproc"]);
    }

    #[test]
    fn lists_fit_a_screen() {
        let words: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
        let text = lines(&words);
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 100);
    }
}
