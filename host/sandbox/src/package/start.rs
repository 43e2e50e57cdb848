//! Turns a command of a package into arguments and environment of its component.

use super::MARK;
use super::spec::{OptionRules, PackageSpec, StartRule};

/// The variable with the path of the program as the command line had it.
const WRITTEN: &str = "KISO_ARGV0";

/// Changes arguments and environment of a command that was started in `cwd`. If it continues in the kept interpreter, returns the
/// arguments that start a new one.
pub(super) fn start(
    spec: &PackageSpec,
    argv: &mut Vec<String>,
    env: &mut Vec<(String, String)>,
    cwd: &str,
) -> Option<Vec<String>> {
    let name = argv.first().unwrap_or(&spec.commands[0]);
    let is_for = |rule: &&StartRule| rule.commands.is_empty() || rule.commands.contains(name);
    let rule = spec.start.iter().find(is_for)?;
    let mut kept = rule.kept && !env.iter().any(|(set, _)| rule.read_early.iter().any(|start| set.starts_with(start)));
    match rule.options {
        Some(OptionRules::Cpython) => kept &= cpython::read(argv, env, cwd),
        None => {}
    }
    for (name, value) in &rule.env {
        if !env.iter().any(|(set, _)| set == name) {
            env.push((name.clone(), value.clone()));
        }
    }
    let with = |words: &[String]| {
        let rest = if words.is_empty() { 0 } else { 1.min(argv.len()) };
        [words, &argv[rest..]].concat()
    };
    let unkept = with(if rule.unkept.is_empty() { &rule.words } else { &rule.unkept });
    if !kept {
        *argv = unkept;
        return None;
    }
    *argv = with(&rule.words);
    if let Some(name) = argv.first_mut() {
        name.insert(0, MARK);
    }
    Some(unkept)
}

/// The options of CPython.
mod cpython {
    use super::WRITTEN;

    /// Makes the path of the program absolute, because the interpreter takes it before it can be told where it was started;
    /// `sitecustomize` restores what the program sees of it, and goes to `PWD`. Returns whether the kept interpreter can respect all
    /// options and variables.
    pub(super) fn read(argv: &mut [String], env: &mut Vec<(String, String)>, cwd: &str) -> bool {
        let goes_on = has_usual_options(argv) && env.iter().all(is_usual_variable);
        if let Some(program) = program(argv)
            && !argv[program].starts_with('/')
        {
            let written = std::mem::take(&mut argv[program]);
            argv[program] = format!("{}/{written}", cwd.trim_end_matches('/'));
            env.push((WRITTEN.to_owned(), written));
        }
        goes_on
    }

    /// Whether `_kiso_started.py` respects all options.
    fn has_usual_options(argv: &[String]) -> bool {
        for (at, word) in argv.iter().enumerate().skip(1) {
            let Some(options) = word.strip_prefix('-').filter(|options| !options.is_empty()) else {
                // Compiled code is loaded in a different way.
                return !word.ends_with(".pyc");
            };
            match options.trim_start_matches(['u', 'B']) {
                "" => {}
                // The interpreter itself reports a missing argument.
                "c" | "m" => return argv.len() > at + 1,
                rest => return rest.starts_with(['c', 'm']),
            }
        }
        true
    }

    /// Whether the interpreter does not read the variable at its start, or `_kiso_started.py` respects it.
    fn is_usual_variable((name, value): &(String, String)) -> bool {
        match name.as_str() {
            "PYTHONDONTWRITEBYTECODE" => !value.is_empty(),
            "PYTHONPATH" | "PYTHONTZPATH" | "PYTHONUNBUFFERED" => true,
            name => !name.starts_with("PYTHON"),
        }
    }

    /// Finds the word that is the path of the program. `None` if the program is given with `-c` or `-m`, or comes from standard
    /// input.
    pub(super) fn program(argv: &[String]) -> Option<usize> {
        let mut at = 1;
        while let Some(word) = argv.get(at) {
            if word == "--check-hash-based-pycs" {
                at += 2;
                continue;
            }
            if word == "-" || word == "--" {
                return None;
            }
            let Some(options) = word.strip_prefix('-') else { return Some(at) };
            if options.starts_with('-') {
                at += 1;
                continue;
            }
            // The first option with a value takes the rest of the word, or the next word.
            match options.char_indices().find(|(_, option)| "cmWX".contains(*option)) {
                Some((_, 'c' | 'm')) => return None,
                Some((index, _)) if index + 1 == options.len() => at += 2,
                _ => at += 1,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::find;

    const SITE_PACKAGES: &str = "/usr/local/lib/python3.12/site-packages";

    /// Arguments, environment, and whether the command continues in the kept interpreter.
    fn started(package: &str, line: &str, env: &[(&str, &str)]) -> (Vec<String>, Vec<(String, String)>, bool) {
        let mut argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let goes_on = start(&find(package).unwrap().package.spec, &mut argv, &mut env, "/work/a").is_some();
        (argv, env, goes_on)
    }

    #[test]
    fn the_program_is_found_behind_options() {
        let table: &[(&str, Option<&str>)] = &[
            ("python3", None),
            ("python3 a.py b.py", Some("a.py")),
            ("python3 -u -O a.py", Some("a.py")),
            ("python3 -W error a.py", Some("a.py")),
            ("python3 -Werror a.py", Some("a.py")),
            ("python3 -X utf8 -bb a.py", Some("a.py")),
            ("python3 -uX utf8 a.py", Some("a.py")),
            ("python3 --check-hash-based-pycs never a.py", Some("a.py")),
            ("python3 -c a.py", None),
            ("python3 -uc a.py", None),
            ("python3 -m a.py b", None),
            ("python3 - a.py", None),
            ("python3 -V", None),
        ];
        for (line, expected) in table {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(cpython::program(&argv).map(|at| argv[at].as_str()), *expected, "{line}");
        }
    }

    #[test]
    fn a_relative_program_becomes_absolute_and_the_rest_stays() {
        let (argv, env, goes_on) = started("python", "python3 -u b.py c.py", &[("PYTHONTZPATH", "/x")]);
        assert!(goes_on);
        assert_eq!(argv, ["+python3", "-u", "/work/a/b.py", "c.py"]);
        assert!(env.contains(&("KISO_ARGV0".to_owned(), "b.py".to_owned())));
        assert_eq!(env.iter().filter(|(name, _)| name == "PYTHONTZPATH").count(), 1, "what a line sets is its own");
    }

    #[test]
    fn further_commands_are_programs_of_the_interpreter() {
        let program = |name: &str| format!("{SITE_PACKAGES}/{name}");
        let (argv, env, goes_on) = started("python", "sqlite3 a.db select", &[]);
        assert_eq!(argv, ["+python3", "-I", &program("_sqlite_shell.py"), "a.db", "select"]);
        assert!(env.is_empty() && goes_on);
        let (argv, ..) = started("python", "pip3 list", &[]);
        assert_eq!(argv, ["+python3", "-I", "-m", "pip", "list"]);
        let (argv, ..) = started("git", "git log -3", &[]);
        assert_eq!(argv, ["+python3", "-I", &program("_git.py"), "log", "-3"]);
    }

    #[test]
    fn a_new_interpreter_has_words_of_its_own() {
        let (argv, env, goes_on) = started("python-sci", "python3 -u b.py c", &[]);
        assert!(goes_on && env.contains(&("PYTHONTZPATH".to_owned(), String::new())));
        assert_eq!(argv, ["+python3", "-u", "/work/a/b.py", "c"]);
        let is_new = |argv: &[String]| {
            let at_front =
                argv[..2] == ["python3", "-c"] && argv[2].contains("/usr/local/lib/python3.15/site-packages");
            at_front && argv[3..] == ["-u", "/work/a/b.py", "c"]
        };
        // One that another directory has begun with.
        let mut argv = ["python3", "-u", "b.py", "c"].map(str::to_owned).to_vec();
        let unkept = start(&find("python-sci").unwrap().package.spec, &mut argv, &mut Vec::new(), "/work/a").unwrap();
        assert!(is_new(&unkept), "{unkept:?}");
        for name in ["SKLEARN_WORKING_MEMORY", "SCIPY_ARRAY_API"] {
            let (argv, _, goes_on) = started("python-sci", "python3 -u b.py c", &[(name, "1")]);
            assert!(!goes_on && is_new(&argv), "{name}: {argv:?}");
        }
        assert!(started("python-sci", "python3 b.py", &[("MPLBACKEND", "svg")]).2);
        let (argv, _, goes_on) = started("python-sci", "python3-sci -V", &[]);
        assert!(!goes_on && argv[3] == "-V", "{argv:?}");
    }

    #[test]
    fn what_the_interpreter_reads_at_its_start_lets_it_start() {
        let table: &[(&str, bool)] = &[
            ("python3", true),
            ("python3 -", true),
            ("python3 a.py -O", true),
            ("python3 -uB a.py", true),
            ("python3 -c pass", true),
            ("python3 -ucpass", true),
            ("python3 -m a.b", true),
            ("python3 -c", false),
            ("python3 -O a.py", false),
            ("python3 -uW error a.py", false),
            ("python3 -I a.py", false),
            ("python3 --version", false),
            ("python3 -- a.py", false),
            ("python3 a.pyc", false),
        ];
        for (line, expected) in table {
            let (argv, _, goes_on) = started("python", line, &[]);
            assert_eq!((goes_on, argv[0].starts_with(MARK)), (*expected, *expected), "{line}");
        }
        for (name, value, expected) in [
            ("PYTHONPATH", "/work", true),
            ("PYTHONHASHSEED", "0", false),
            ("PYTHONDONTWRITEBYTECODE", "", false),
            ("LANG", "C", true),
        ] {
            assert_eq!(started("python", "python3 a.py", &[(name, value)]).2, expected, "{name}");
        }
    }
}
