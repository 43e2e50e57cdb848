//! Git as a package: the same output as Git's own for the scripts of `tests/git`, and one repository format for both.

use crate::harness::{Home, missing_tool, root};
use crate::python::wheel;
use std::process::Command;
use std::sync::OnceLock;

/// A home with git. Each process has one, because the installation compiles for seconds.
pub(crate) fn home() -> Option<&'static Home> {
    static HOME: OnceLock<Home> = OnceLock::new();
    let (python, library) = (wheel("python")?, wheel("git")?);
    Some(HOME.get_or_init(|| {
        let home = Home::new();
        // A script is one command line that starts a hundred others.
        home.config("[exec]\ntimeout_s = 600\n");
        let [python, library] = [&python, &library].map(|path| path.to_str().unwrap());
        let alone = home.kiso(&["skill", "add", "git", "--from", python]);
        alone.exit(4).says(&["no file with the SHA-256 of git", "nothing was installed"]);
        let added = home.kiso(&["skill", "add", "git", "--from", python, "--from", library]);
        added.ok().prints(&["installed git 1.2.21+9: git in every command line"]);
        home
    }))
}

/// Names of the scripts.
fn scripts() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("tests/git")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| Some(name.strip_suffix(".sh")?.to_owned())).collect();
    names.sort();
    names
}

/// Runs a script in the directory `w` beside its own home, with the same time for all commits, as `tests/git/record` does. Its
/// output and exit code go to the file `out`.
const LINE: &str = "mkdir home w; export HOME=$PWD/home TZ=UTC LC_ALL=C.UTF-8 GIT_CONFIG_NOSYSTEM=1 TERM=dumb \
    GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'; \
    (cd w; sh ../script.sh > ../out 2>&1; echo \"exit $?\" >> ../out)";

/// The difference between the outputs of git and kiso, from the first differing line.
fn difference(expected: &str, found: &str) -> Option<String> {
    if expected == found {
        return None;
    }
    let same = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let rest = |text: &str| text.lines().skip(same.saturating_sub(2)).take(8).collect::<Vec<_>>().join("\n");
    Some(format!("line {}\ngit:\n{}\nkiso:\n{}", same + 1, rest(expected), rest(found)))
}

/// Whether a script runs in the ordinary tests: the others take long, and run in `.ci/long`.
fn is_short(name: &str) -> bool {
    name == "merge"
}

/// Runs the scripts one after the other, each in its own session.
fn compare(is_meant: impl Fn(&str) -> bool) {
    let Some(home) = home() else { return };
    let names = scripts();
    assert!(names.len() >= 30, "{} scripts", names.len());
    let mut different = Vec::new();
    for name in names.iter().filter(|name| is_meant(name)) {
        let session = name.replace('_', "-");
        let (work, scripts) = (home.work(&session), root().join("tests/git"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::copy(scripts.join(format!("{name}.sh")), work.join("script.sh")).unwrap();
        home.kiso(&["shell", "--session", &session, "-c", LINE]).ok();
        let printed = std::fs::read(work.join("out")).unwrap();
        let recorded = std::fs::read_to_string(scripts.join(format!("expected/{name}.txt"))).unwrap();
        let difference = difference(&recorded, &String::from_utf8_lossy(&printed));
        different.extend(difference.map(|how| format!("### {name}, {how}")));
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn it_prints_what_git_prints() {
    compare(is_short);
}

#[test]
#[ignore = "starts git a thousand times"]
fn it_prints_what_git_prints_in_every_other_script() {
    compare(|name| !is_short(name));
}

#[test]
fn a_repository_is_one_for_both() {
    let Some(home) = home() else { return };
    let work = home.work("shared");
    std::fs::create_dir_all(&work).unwrap();
    let host = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Bob", "-c", "user.email=bob@example.com", "-c", "core.fileMode=false"]);
        match git.args(words).current_dir(&work).output() {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(error) => {
                missing_tool("a repository of the host's git", &error.to_string());
                None
            }
        }
    };
    let kiso = |line: &str| home.kiso(&["shell", "--session", "shared", "-c", line]);
    std::fs::write(work.join("a.txt"), "of the host\n").unwrap();
    if host(&["init", "-q", "-b", "main"]).is_none() {
        return;
    }
    host(&["add", "a.txt"]);
    host(&["commit", "-qm", "By the host"]);
    host(&["gc", "-q"]);
    kiso("git log --format='%an: %s' && git status --short").ok().prints(&["Bob: By the host\n"]);
    kiso("git config user.name Ada && git config user.email ada@example.com && echo more >> a.txt && git commit -qam 'By kiso'")
        .ok();
    assert_eq!(host(&["log", "--format=%an: %s"]).unwrap(), "Ada: By kiso\nBob: By the host\n");
    assert_eq!(host(&["status", "--short"]).unwrap(), "");
    let checked = Command::new("git").args(["fsck", "--strict"]).current_dir(&work).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_repository_of_an_attacker_stays_in_its_directory() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "hostile", "-c", line]);
    run("git init -q -b main r && cd r && git config user.name A && git config user.email a@b && echo x > a && git add a && git commit -qm a")
        .ok();
    // A tree with a name that leads outside, which no git command would write.
    let repository = home.work("hostile").join("r");
    let host = |words: &[&str]| {
        let mut git = Command::new("git");
        let output =
            git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(words).current_dir(&repository).output();
        let output = output.expect("there is a git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let blob = data_encoding::HEXLOWER.decode(host(&["rev-parse", "HEAD:a"]).as_bytes()).unwrap();
    for name in ["../out", ".git/hooks/x", ".git", ".GIT", "/work/out", ".."] {
        let entry = [b"100644 ", name.as_bytes(), b"\0", &blob[..]].concat();
        std::fs::write(repository.join("t"), entry).unwrap();
        let tree = host(&["hash-object", "-w", "--literally", "-t", "tree", "t"]);
        std::fs::remove_file(repository.join("t")).unwrap();
        let commit = host(&["commit-tree", "-m", "bad", &tree]);
        run(&format!("cd r && ! git checkout -q {commit}")).ok().says(&["invalid path"]);
        run("test ! -e out && test ! -e /work/out && test ! -e r/.git/hooks/x && cat r/a").ok().prints(&["x"]);
    }
    run("git clone git@example.com:x.git").exit(128).says(&["speak https only"]);
    run("cd r && git config alias.x '!echo from the alias' && git x").ok().prints(&["from the alias"]);
    run("git -C r show 0000000000000000000000000000000000000001").exit(128).says(&["fatal: "]);
    run("printf 'junk' > r/.git/index && git -C r status").says(&["fatal: "]);
    run("rm r/.git/index && printf junk > r/.git/HEAD && git -C r status").exit(128).says(&["fatal: "]);
}

/// The commands in `docs/git.md` under "What you can do with it".
#[test]
fn the_commands_of_its_page_run() {
    let Some(home) = home() else { return };
    let page = std::fs::read_to_string(root().join("docs/git.md")).unwrap();
    let shown = page.split("## What you can do with it").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap();
    let lines: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("kiso ")).collect();
    assert!(lines.len() > 2, "{shown}");
    let mut printed = String::new();
    for line in lines {
        let (words, rest) = line.split_once(" '").unwrap();
        let words: Vec<_> = words.split(' ').chain([rest.strip_suffix('\'').unwrap()]).collect();
        printed += &home.kiso(&words).ok().stdout;
    }
    for text in ["On branch master", "First version", "index.md | 1 +", "site-fix"] {
        assert!(printed.contains(text), "no {text:?} in: {printed}");
    }
}

#[test]
fn what_is_missing_is_told() {
    let home = Home::new();
    home.kiso(&["shell", "-c", "git status"]).exit(127).says(&["kiso skill add git"]);
    let found = home.kiso(&["--json", "skill", "search", "dulwich"]).json();
    assert_eq!((&found["version"], &found["installed"]), (&"1.2.21+9".into(), &serde_json::Value::Null));
    home.kiso(&["skill", "add", "git", "--from", "/nowhere"]).exit(2).says(&["cannot read /nowhere"]);
}
