//! `kiso shell` compared with the host's bash: every line of `shell/lines.sh` runs in both with the same files, and standard
//! output and exit code must be equal. docs/shell.md lists the allowed differences with their reasons.
//!
//! `KISO_LINES=substring cargo test --test all shell::` runs only the lines whose name contains the substring.

mod options;

use crate::harness::{Home, missing_tool, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for a loaded machine; only a hanging line reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

const THREADS: usize = 4;

/// One block of `lines.sh`.
struct Line {
    name: String,
    /// A command that the host's bash needs for this line.
    needs: Option<String>,
    text: String,
}

/// Result of a command line.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Exit code as a shell reports it: 128 + n after a signal. `None` if the process had to be stopped.
    pub code: Option<i32>,
}

#[test]
fn lines_answer_as_in_bash() {
    assert_bash();
    let wanted = std::env::var("KISO_LINES").unwrap_or_default();
    let lines: Vec<Line> = corpus().into_iter().filter(|line| line.name.contains(&wanted)).collect();
    let listed = differences();
    let (next, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let reports = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let home = Home::new();
                home.kiso(&["skill", "list"]).ok();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(at) else { break };
                    if let Some(needs) = line.needs.as_deref().filter(|needs| !host_has(needs)) {
                        missing_tool(&line.name, &format!("this host has no {needs}"));
                        continue;
                    }
                    compared.fetch_add(1, Ordering::Relaxed);
                    let (bash, kiso) = (in_bash(&line.text), in_kiso(&home, &format!("line-{at}"), &line.text));
                    let equal = bash.code == kiso.code && bash.stdout == kiso.stdout;
                    let report = match (equal, listed.contains_key(&line.name)) {
                        (true, false) | (false, true) => continue,
                        (false, false) => difference(line, &bash, &kiso),
                        (true, true) => {
                            format!("### {}\nis listed in docs/shell.md as different and is not any more\n", line.name)
                        }
                    };
                    reports.lock().expect("no thread panicked").insert(at, report);
                }
            });
        }
    });
    let (reports, compared) = (reports.into_inner().expect("no thread panicked"), compared.into_inner());
    let text: Vec<String> = reports.into_values().collect();
    assert!(text.is_empty(), "{} of {compared} lines:\n\n{}", text.len(), text.join("\n"));
    assert!(compared >= 250 || !wanted.is_empty(), "only {compared} lines could be compared on this host");
}

#[test]
fn the_lines_are_many_and_few_may_differ() {
    let lines = corpus();
    assert!(lines.len() >= 250, "{} lines", lines.len());
    let names: BTreeSet<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names.len(), lines.len(), "two lines have the same name");
    let listed = differences();
    let unknown: Vec<_> = listed.keys().filter(|name| !names.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "docs/shell.md lists differences of lines that there are not: {unknown:?}");
    let silent: Vec<_> = listed.iter().filter(|(_, reason)| reason.len() < 10).collect();
    assert!(silent.is_empty(), "docs/shell.md gives no reason: {silent:?}");
    assert!(listed.len() * 100 <= lines.len() * 3, "{} of {} lines are listed as different", listed.len(), lines.len());
}

/// The blocks of `lines.sh`: `### name` or `### name (needs command)`, then the command line.
fn corpus() -> Vec<Line> {
    let path = root().join("tests/all/shell/lines.sh");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = Vec::<Line>::new();
    let mut inside = false;
    for text in source.lines() {
        if let Some(title) = text.strip_prefix("### ") {
            let (name, needs) = match title.strip_suffix(')').and_then(|title| title.split_once(" (needs ")) {
                Some((name, needs)) => (name, Some(needs.to_owned())),
                None => (title, None),
            };
            lines.push(Line { name: name.to_owned(), needs, text: String::new() });
            inside = true;
        } else if text.starts_with("## ") {
            inside = false;
        } else if inside {
            let line = lines.last_mut().expect("a block began");
            line.text.push_str(text);
            line.text.push('\n');
        }
    }
    for line in &mut lines {
        line.text.truncate(line.text.trim_end_matches('\n').len());
        assert!(!line.text.is_empty(), "{} has no command line", line.name);
    }
    lines
}

/// The list under "Differences from bash" in docs/shell.md: items "- `name of the line`: reason".
fn differences() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("docs/shell.md")).expect("docs/shell.md is there");
    let (_, section) = text.split_once("\n## Differences from bash\n").expect("docs/shell.md has the section");
    let section = section.split("\n## ").next().expect("split yields one");
    let mut listed = BTreeMap::new();
    for item in section.split("\n- ").skip(1) {
        let (name, reason) = item
            .strip_prefix('`')
            .and_then(|item| item.split_once("`: "))
            .unwrap_or_else(|| panic!("not of the form \"- `name of the line`: reason\": {item}"));
        let reason = reason.split("\n\n").next().expect("split yields one").trim();
        assert!(listed.insert(name.to_owned(), reason.to_owned()).is_none(), "{name} is listed twice");
    }
    listed
}

/// Older versions give other results for some lines.
fn assert_bash() {
    let probe = Command::new("bash")
        .args(["-c", "echo $((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1])); sed --version | head -n 1"])
        .output();
    let probe = probe.unwrap_or_else(|e| panic!("this test compares with the host's bash, which does not start: {e}"));
    let text = String::from_utf8_lossy(&probe.stdout).into_owned();
    let (version, sed) = text.split_once('\n').unwrap_or_default();
    let recent = version.parse().is_ok_and(|version: u32| version >= 502);
    assert!(
        recent && sed.contains("GNU"),
        "this test needs bash 5.2 (502) or later and GNU commands, but found {version} and {sed:?}"
    );
}

fn host_has(command: &str) -> bool {
    let found = Command::new("bash").args(["-c", "type -P \"$1\"", "bash", command]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Copies the files that the lines use, and creates the directory that every workspace has.
pub(crate) fn fixtures(into: &Path) {
    copy(&root().join("tests/all/shell/files"), into);
    std::fs::create_dir_all(into.join("pub")).expect("there is room");
}

fn copy(from: &Path, into: &Path) {
    std::fs::create_dir_all(into).expect("there is room");
    for entry in std::fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let entry = entry.expect("the files can be listed");
        let to = into.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            let bytes = std::fs::read(entry.path()).expect("the file can be read");
            std::fs::write(to, bytes).expect("there is room for a file");
        }
    }
}

fn in_bash(text: &str) -> Outcome {
    let dir = TempDir::new().expect("there is room");
    let (work, temp) = (dir.path().join("work"), dir.path().join("tmp"));
    fixtures(&work);
    std::fs::create_dir(&temp).expect("there is room");
    // Signals that nohup or a background job disabled for this process must not affect the comparison.
    let mut command = Command::new("env");
    command.args(["--default-signal", "bash", "-c", text]).current_dir(&work).env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("LC_ALL", "C").env("TZ", "UTC").env("HOME", &work).env("TMPDIR", &temp);
    run(command)
}

/// Runs a command line in a new session of this home, with the same files.
fn in_kiso(home: &Home, session: &str, text: &str) -> Outcome {
    fixtures(&home.work(session));
    in_session(home, session, text)
}

/// Runs a command line in an existing session of this home.
pub(crate) fn in_session(home: &Home, session: &str, text: &str) -> Outcome {
    let mut command = home.command(&["shell", "--session", session, "-c", text]);
    command.env("LC_ALL", "C");
    run(command)
}

/// Runs a process until it ends, or stops it after the time limit.
fn run(mut command: Command) -> Outcome {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let stdout = collect(child.stdout.take().expect("it is a pipe"));
    let stderr = collect(child.stderr.take().expect("it is a pipe"));
    // Standard output ends when the last process that has it open ends.
    let Ok(stdout) = stdout.recv_timeout(PATIENCE) else {
        child.kill().expect("it can be stopped");
        child.wait().expect("it was stopped");
        let stderr = format!("it did not end within {PATIENCE:?}").into_bytes();
        return Outcome { stdout: Vec::new(), stderr, code: None };
    };
    let status = child.wait().expect("it ends");
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status.code().or(signal.map(|signal| 128 + signal));
    Outcome { stdout, stderr: stderr.recv_timeout(PATIENCE).unwrap_or_default(), code }
}

fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is compared, too.
        let _ = from.read_to_end(&mut bytes);
        // Nobody receives it after the time limit.
        let _ = send.send(bytes);
    });
    receive
}

/// A readable difference: the line, then both outputs.
fn difference(line: &Line, bash: &Outcome, kiso: &Outcome) -> String {
    let mut report = format!("### {}\n{}\n", line.name, line.text);
    for (who, outcome) in [("bash", bash), ("kiso", kiso)] {
        let code = outcome.code.map_or("stopped".to_owned(), |code| format!("exit code {code}"));
        writeln!(report, "  {who}: {code}\n{}", quoted(&outcome.stdout)).expect("a string takes any text");
    }
    writeln!(report, "  kiso on standard error:\n{}", quoted(&kiso.stderr)).expect("a string takes any text");
    report
}

/// At most twenty lines, with special characters escaped.
fn quoted(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "    (nothing)".to_owned();
    }
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text
        .split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("    | {}", visible(line)),
            None => format!("    | {} (no newline)", visible(line)),
        })
        .collect();
    if lines.len() > 20 {
        let more = lines.len() - 20;
        lines.truncate(20);
        lines.push(format!("    … {more} more lines"));
    }
    lines.join("\n")
}

fn visible(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}
