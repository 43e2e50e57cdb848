//! The kept interpreter snapshot, compared with an interpreter that starts normally.

use super::{copy_of, home};
use crate::harness::Home;

/// A variable that the interpreter reads at its start, so that it cannot use the snapshot. The value is the default.
const WITHOUT_SNAPSHOT: &str = "PYTHONINTMAXSTRDIGITS=4300";

/// Prefix of the last line that each of them prints, before its exit code.
const END: &str = "--- ended: ";

/// Lines with `python3`, run in a directory with the files below.
const LINES: &[&str] = &[
    "python3 -c pass",
    "python3 -c 'import sys; print(sys.argv, sys.orig_argv, sys.path, sys.executable, sys.prefix)' a '' 'b c' ä",
    "python3 -c 'import sys; print(sys.flags, sys.warnoptions, sys.getrecursionlimit(), sys.implementation.name)'",
    "python3 -c 'print(sorted(globals()), __name__, __doc__, __package__, __spec__, __loader__, __annotations__)'",
    "python3 -c 'import sys; print([s.encoding + s.errors + str(s.line_buffering) + s.name for s in (sys.stdin, sys.stdout, sys.stderr)])'",
    "python3 -c 'import sys; print([name in sys.modules for name in (\"json\", \"re\", \"random\", \"os\", \"site\", \"threading\")])'",
    "python3 -c 'import json, re; print(json.__spec__, type(json.__loader__).__name__, json.__file__, re.__package__, json.decoder.__name__)'",
    "python3 -c 'import os; print(sorted(os.environ), os.getcwd(), os.getenv(\"A\"))'",
    "A='ä b=c' python3 -c 'import os; print(os.environ[\"A\"], os.environb[b\"A\"]); os.environ[\"B\"] = \"2\"; print(os.getenv(\"B\"))'",
    "TZ=Europe/Berlin python3 -c 'import time; print(time.tzname)'",
    "python3 words.py one two",
    "cd deep; python3 ../words.py; python3 ./../words.py; cat ../words.py | python3 - three; python3 < ../words.py",
    "python3 -u words.py; python3 -B words.py; python3 -uB -c 'print(1)'; python3 -uc 'print(2)'",
    "python3 -m words x; python3 -m package; python3 -m package.other; python3 -m nowhere",
    "python3 package; python3 archive.zip y; python3 deep; python3 nowhere.py",
    "python3 -m json.tool < data.json; python3 -m json.tool data.json; python3 -m base64 -e data.json",
    "python3 -c 'import random, words; print(random.OWN)'; python3 shadow.py",
    "PYTHONPATH=/work/deep:/nowhere python3 -c 'import inner, sys; print(inner.__file__, sys.path[:3])'",
    "python3 -c '1/0'; echo $?; python3 -c '1 +'; echo $?; python3 bad.py; echo $?; python3 broken.py; echo $?; python3 < bad.py",
    "python3 -c 'import bad'; echo $?; python3 -m bad; echo $?",
    "for code in None 0 1 3 255 256 -1 True '\"words\"' '(1, 2)'; do python3 -c \"import sys; sys.exit($code)\"; echo $?; done",
    "python3 -c 'f = open(\"made\", \"w\"); f.write(\"unflushed\")'; cat made",
    "python3 -c 'import sys; sys.stdout.write(\"no line\")'; python3 -c 'import os; os.write(1, b\"x\"); print(\"y\", end=\"\")'",
    "python3 ends.py; echo $?",
    "python3 -c 'import atexit; atexit.register(lambda: 1/0)' 2>&1 | tail -n 2; echo $?",
    "python3 -c 'raise KeyboardInterrupt' 2> /dev/null; echo $?; python3 -c 'import os; print(1, flush=True); os._exit(4)'; echo $?",
    "python3 -c 'import sys; sys.excepthook = lambda *a: print(\"hooked\", a[1]); 1/0'; echo $?",
    "python3 -c 'raise ExceptionGroup(\"g\", [ValueError(1), TypeError(2)])'; python3 -c 'try: 1/0\nexcept Exception as e: raise OSError(\"x\") from e'",
    "python3 -c 'def f(n): return f(n + 1)\nf(0)' 2>&1 | tail -n 1",
    "python3 -W error -c 'import warnings; warnings.warn(\"w\")'; python3 -O -c 'assert False; print(__debug__)'; python3 -I -c 'print(1)'",
    "python3 -c 'import warnings; warnings.warn(\"w\")'; python3 -c 'import logging; logging.warning(\"%s\", 1)'",
    "python3 -c 'import pickle, collections; P = collections.namedtuple(\"P\", \"a\"); print(pickle.loads(pickle.dumps(P(1))))'",
    "python3 -c 'import dataclasses, typing\n@dataclasses.dataclass\nclass A:\n  x: int = 1\nprint(A(), typing.get_type_hints(A))'",
    "python3 -c 'import asyncio\nasync def f(): await asyncio.sleep(0); return 5\nprint(asyncio.run(f()))'",
    "python3 -c 'import inspect, json, importlib; print(len(inspect.getsource(json.dumps)) > 100, importlib.reload(json).loads(\"[1]\"))'",
    "python3 -c 'import importlib.util, sys; del sys.modules[\"os\"]; import os; print(importlib.util.find_spec(\"re\"))'",
    "python3 -m unittest -q test_words 2>&1 | grep -v Ran; python3 -m timeit -n 1 -r 1 pass > /dev/null; echo $?",
    "python3 -c 'import sqlite3, decimal, datetime, zoneinfo; print(decimal.Decimal(1) / 3, datetime.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo(\"Asia/Tokyo\")))'",
    "python3 -c \"$(cat long.py)\" | tail -n 1",
];

const FILES: &str = r#"
    mkdir -p deep package
    printf 'import os, sys\nprint(__name__, "__file__" in globals() and __file__, sys.argv, os.path.realpath(sys.path[0] or "."), os.getcwd())\n' > words.py
    printf 'import os, sys\nprint("package", __package__, __spec__ and __spec__.name, os.path.realpath(sys.path[0]), sys.argv)\n' > package/__main__.py
    cp package/__main__.py package/other.py; touch package/__init__.py
    python3 -m zipfile -c archive.zip package/__main__.py && (cd package && python3 -m zipfile -c ../archive.zip __main__.py)
    echo '{"a": [1, "ä"]}' > data.json
    echo 'OWN = "of the directory"' > random.py
    printf 'import random\nprint(random.OWN, random.__file__)\n' > shadow.py
    echo 'print("inner")' > deep/inner.py
    printf 'def f(x):\n    return x / 0\n\nf(1)\n' > bad.py
    printf 'def f(:\n' > broken.py
    printf 'import atexit\nclass A:\n    def __init__(self, name): self.name = name\n    def __del__(self): print("gone", self.name)\n' > ends.py
    printf 'a = A("global")\nb = [A("inside")]\nb.append(b)\natexit.register(print, "at exit")\ndef f(): local = A("local")\nf()\n' >> ends.py
    printf 'import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n' > test_words.py
    for i in $(seq 3000); do echo "x$i = $i  # a line that makes the program longer than what fits a page"; done > long.py
    echo 'print(x3000)' >> long.py
"#;

#[test]
fn a_program_cannot_tell_whether_its_interpreter_was_kept() {
    let Some(home) = home() else { return };
    let different = different_when_started(home, ".", LINES);
    assert!(different.is_empty(), "{different}");
}

/// Runs lines in the directory with the files above or in one below it, in the kept interpreter and in one that starts normally.
/// Returns the lines that differ.
pub(crate) fn different_when_started(home: &Home, dir: &str, lines: &[&str]) -> String {
    let run = |line: &str| home.kiso(&["shell", "--session", "kept", "-c", line]);
    run(FILES).ok();
    // Several at once, because each start of kiso takes longer than most of them.
    let said = |lines: &[&str], first: &str| -> Vec<String> {
        let script: Vec<_> = lines.iter().map(|line| format!("({line}) 2>&1; printf '\\n{END}%s\\n' $?\n")).collect();
        let stdout = run(&format!("mkdir -p {dir}; cd {dir}; {first}\n{}", script.concat())).ok().stdout.clone();
        // The only allowed difference.
        let stdout = stdout.replace(&format!("'{}', ", WITHOUT_SNAPSHOT.split('=').next().unwrap()), "");
        stdout.split_inclusive('\n').fold(vec![String::new()], |mut all, line| {
            all.last_mut().unwrap().push_str(line);
            if line.starts_with(END) {
                all.push(String::new());
            }
            all
        })
    };
    let mut different = String::new();
    for lines in lines.chunks(5) {
        let (kept, started) = (said(lines, ""), said(lines, &format!("export {WITHOUT_SNAPSHOT}")));
        assert_eq!((kept.len(), started.len()), (lines.len() + 1, lines.len() + 1), "{kept:?}\n{started:?}");
        for ((line, kept), started) in
            lines.iter().zip(kept).zip(started).filter(|((_, kept), started)| kept != started)
        {
            different += &format!("### {line}\nkept:\n{kept}\nstarted:\n{started}\n");
        }
    }
    different
}

#[test]
fn what_must_not_be_kept_is_not() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "kept-2", "-c", line]);
    let two = |code: &str| {
        let line = format!("for i in 1 2; do python3 -c '{code}'; done");
        let lines: Vec<_> = run(&line).ok().stdout.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        lines
    };
    for code in [
        "import random; print(random.random())",
        "import secrets; print(secrets.token_hex())",
        "import uuid; print(uuid.uuid4())",
        "import tempfile; print(tempfile.mkdtemp())",
        "import logging; print(logging._startTime)",
    ] {
        let lines = two(code);
        assert_ne!(lines[0], lines[1], "{code}");
    }
    // A chosen hash seed applies to every interpreter; otherwise each home has its own.
    let seeded = "PYTHONHASHSEED=1 python3 -c 'print(hash(\"kiso\"))'";
    let of = |line: &str| run(line).ok().stdout.clone();
    let chosen = of(seeded);
    assert_eq!(chosen, of(seeded));
    assert_ne!(of("python3 -c 'print(hash(\"kiso\"))'"), chosen);
}

/// A snapshot contains the interpreter's files, so it is not used with those of another version.
#[test]
fn files_of_another_version_are_not_used() {
    let Some(home) = home() else { return };
    let older = copy_of(home);
    let manifest = older.path().join("skills/python/kiso.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("3.12.0+11", "3.12.0+6")).unwrap();
    older.kiso(&["shell", "-c", "python3 -V"]).exit(126).says(&["`kiso skill add python` writes them again"]);
    older.kiso(&["skill", "search", "sqlite3"]).ok().prints(&["3.12.0+11", "3.12.0+6 is installed"]);
    older.kiso(&["skill", "outdated", "python"]).ok().prints(&["outdated python 3.12.0+6 → 3.12.0+11"]);
}

/// An open folder is a known directory only at its usual place.
#[test]
fn it_goes_on_in_a_folder_as_it_does_in_the_workspace() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    home.config("model = \"reflex\"\n");
    home.file("desk/sub/a.txt", "from the folder\n");
    let folder = home.file("desk/module.py", "NAME = 'its own'\n").parent().unwrap().to_owned();
    let lines = [
        "python3 -c 'import os; print(os.getcwd(), sorted(os.listdir()), open(\"sub/a.txt\").read())'",
        "cd sub; python3 -c 'import os; print(os.getcwd(), os.listdir(), open(\"../sub/a.txt\").read())'",
        "python3 -c 'import module; print(module.NAME, module.__file__)'",
        "python3 -c 'open(\"new\", \"w\").write(\"x\"); import os; os.rename(\"sub/a.txt\", \"b.txt\"); print(os.path.exists(\"sub/a.txt\"))'; cat new b.txt",
        "python3 -c 'import os; os.makedirs(\"p/q\"); os.remove(\"module.py\"); print(sorted(os.listdir(\"/project\")), os.listdir(\"/work\"))'; rm -r p",
        "cd /work; python3 -c 'import os; print(os.getcwd(), os.path.exists(\"/project/new\"))'",
    ];
    for (at, is_kept) in [("/project", true), ("/app", false)] {
        let session = at.trim_start_matches('/');
        let run = |line: &str| {
            let args =
                ["run", "--session", session, "--dir", folder.to_str().unwrap(), "--at", at, &format!("$ {line}")];
            // The output without the line itself.
            home.kiso(&args).ok().stdout.split_once('\n').unwrap().1.to_owned()
        };
        // A kept interpreter has the same seed each time.
        let hash = "python3 -c 'print(hash(\"kiso\"))'";
        let (one, other) = (run(hash), run(hash));
        assert_eq!(one == other, is_kept, "{at}: {one} {other}");
        if is_kept {
            for line in lines {
                // Includes the files that it leaves in the folder.
                let [kept, cold] = [line.to_owned(), format!("export {WITHOUT_SNAPSHOT}; {line}")].map(|line| {
                    let said = run(&line);
                    let changes = home.kiso(&["--json", "diff", "--session", session]).stdout.clone();
                    home.kiso(&["diff", "--session", session, "--discard"]);
                    (said, changes)
                });
                assert_eq!(kept, cold, "{line}");
            }
        }
    }
}

/// If the workspace was removed, an interpreter from the snapshot lacks its directories.
#[test]
fn without_its_directories_it_starts_anew() {
    let Some(home) = home() else { return };
    let apart = copy_of(home);
    apart.kiso(&["skill", "grant", "python", "--none"]).ok();
    apart
        .kiso(&["shell", "-c", "python3 -c 'import os; print(os.path.exists(\"/work\"), 6 * 7)'"])
        .ok()
        .prints(&["False 42"]);
}

/// Its label is that of the data it has read, as with every other command.
#[test]
fn what_it_reads_of_a_skill_is_its_publishers() {
    let Some(home) = home() else { return };
    let home = copy_of(home);
    home.config("model = \"reflex\"\n");
    let file =
        home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets people.\n---\nRun scripts/hello.py.\n");
    home.file("greet/scripts/hello.py", "print('Hello!')\n");
    home.kiso(&["skill", "add", file.parent().unwrap().to_str().unwrap()]).ok();
    for (line, whose) in [
        ("python3 -c 'import os; print(os.listdir(\"/skills\"), 6 * 7)'", "user"),
        ("python3 /skills/greet/scripts/hello.py", "publisher"),
        ("python3 -c 'print(open(\"/skills/greet/SKILL.md\").read())'", "publisher"),
        ("python3 -c 'import os; print(os.listdir(\"/skills/greet\"))'", "publisher"),
        ("python3 -I -c 'print(open(\"/skills/greet/SKILL.md\").read())'", "publisher"),
    ] {
        home.kiso(&["run", &format!("$ {line}")]).ok();
        assert_eq!(crate::labels::integrity(&home), whose, "{line}");
    }
}
