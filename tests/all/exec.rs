//! Exec from outside: what command lines may use and reach, and that none of them harms the host, the workspace or the next line.
//! Each case of bad input ends with its own error.

mod codes;
mod limits;
pub(crate) mod programs;
mod reach;

use crate::harness::{Home, Ran, root};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

impl Home {
    /// Runs `kiso shell -c LINE`.
    #[track_caller]
    fn shell(&self, line: &str) -> Ran {
        self.kiso(&["shell", "-c", line])
    }

    /// Runs it with `--json`.
    #[track_caller]
    fn shell_json(&self, line: &str) -> Value {
        self.kiso(&["--json", "shell", "-c", line]).json()
    }
}

/// Small limits, so that reaching them is quick, and a deadline in seconds.
fn limits(timeout_s: u32) -> String {
    format!("model = \"reflex\"\n[exec]\ntimeout_s = {timeout_s}\nmax_output_mib = 4\nwrite_mib = 2\n")
}

/// A home with small limits, and with a deadline that even a slow machine does not reach.
fn small() -> Home {
    let home = Home::new();
    home.config(&limits(60));
    home.shell("echo kept > kept.txt").ok();
    home
}

/// The same with a short deadline.
fn hasty() -> Home {
    let home = small();
    home.config(&limits(2));
    home
}

/// Checks that the host still works and the workspace is unchanged. Sets a long deadline first.
#[track_caller]
fn intact(home: &Home) {
    home.config(&limits(60));
    home.shell("cat kept.txt | tr a-z A-Z").ok().prints(&["KEPT"]);
}

#[test]
fn a_line_runs_in_the_workspace_and_its_exit_code_is_kisos() {
    let home = Home::new();
    let ran = home.shell("pwd; echo out; echo err >&2; (exit 255)");
    ran.exit(255).prints(&["/work\nout\n"]).says(&["err"]);
    for code in [0, 1, 2, 7, 126, 127, 128, 254] {
        home.shell(&format!("exit {code}")).exit(code);
        home.shell(&format!("timeout 5 sh -c 'exit {code}'")).exit(code);
    }
    home.shell("echo made > made.txt").ok();
    assert_eq!(std::fs::read_to_string(home.work("default").join("made.txt")).unwrap(), "made\n");
    home.kiso(&["shell", "-c", "echo $2-$1", "a", "b"]).ok().prints(&["b-a"]);
    home.kiso(&["shell", "a"]).exit(2);
}

#[test]
fn what_it_reads_is_kisos_standard_input() {
    let home = Home::new();
    let run = |args: &[&str], input: &[u8]| {
        let mut child = home.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.stdout, output.status.code())
    };
    assert_eq!(
        run(&["shell", "-c", "read a; echo first=$a; sort"], b"c\nb\na\n"),
        (b"first=c\na\nb\n".to_vec(), Some(0))
    );
    // Binary data passes unchanged.
    let binary: Vec<u8> = (0..=255).collect();
    assert_eq!(run(&["shell", "-c", "cat"], &binary), (binary.clone(), Some(0)));
    assert_eq!(run(&["shell", "-c", "wc -c | tr -d ' '"], &binary), (b"256\n".to_vec(), Some(0)));
    // Without -c, standard input is the script.
    assert_eq!(run(&["shell"], b"x=3\necho $((x * 2))\nexit 9\n"), (b"6\n".to_vec(), Some(9)));
}

#[test]
fn json_tells_all_that_is_known() {
    let home = Home::new();
    let told = home.shell_json("echo out; echo err >&2; seq 3 | cat | grep 9");
    assert_eq!(told["exit_code"], 1);
    assert_eq!((told["stdout"].as_str().unwrap(), told["stderr"].as_str().unwrap()), ("out\n", "err\n"));
    assert_eq!(told["failed"]["line"], 1);
    assert!(told["failed"]["command"].as_str().unwrap().contains("grep 9"), "{told}");
    assert_eq!(told["limit"], Value::Null);
    let used = &told["used"];
    assert!(used["processes"].as_u64().unwrap() >= 4 && used["processes_at_once"].as_u64().unwrap() >= 3, "{told}");
    assert!(used["memory_bytes"].as_u64().unwrap() > 1 << 20, "{told}");
    let told = home.shell_json("set -e\necho a\nls missing\necho b");
    assert_eq!(told["failed"], json!({ "command": "ls missing", "line": 3, "code": told["exit_code"] }));
}

/// `b` gets its first line while `a` still writes: no stage waits for the end of another.
#[test]
fn stages_run_at_the_same_time() {
    let home = Home::new();
    home.shell("yes | head -2").ok().prints(&["y\ny\n"]);
    home.shell("{ echo first; cat go; echo second; } | { read a; echo $a > go; cat; }").ok();
    // A reader that answers its writer: possible only while both run.
    let talk =
        "mkfifo() { :; }; { read x; echo \"got $x\" >&2; while read y; do echo \"$y\"; done; } < words.txt | tail -1";
    home.shell(&format!("printf 'a\\nb\\nc\\n' > words.txt; {talk}")).ok().prints(&["c"]).says(&["got a"]);
    // The first command runs until the last has started.
    let told = home.shell_json("{ until [ -e /tmp/go ]; do :; done; } | cat | cat | { : > /tmp/go; read -r x; }");
    assert_eq!(told["used"]["processes_at_once"], 5, "the shell and four stages: {told}");
    // Much more than the pipe can buffer, through four stages.
    home.shell("seq 1 200000 | cat | cat | tail -1").ok().prints(&["200000"]);
}

#[test]
fn a_large_sort_stays_within_its_memory_or_says_that_it_does_not() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 300\nmemory_mib = 64\n");
    let ran = home.shell("seq 1 1000000 | sort -n | tail -1");
    match ran.code {
        0 => ran.prints(&["1000000"]),
        _ => ran.exit(137).says(&["memory", "64 MiB", "[exec] memory_mib"]),
    };
}

#[test]
fn syntax_errors_name_their_place_and_run_nothing() {
    let home = small();
    for (line, said) in [
        ("touch ran; if true; then echo a", "line 1"),
        ("touch ran; echo 'open", "line 1"),
        ("touch ran\necho a )", "line 2"),
        ("touch ran; for in do", "line 1"),
        ("touch ran; cat <<EOF\nnever closed", "line"),
    ] {
        home.shell(line).exit(2).says(&["sh:", said, "syntax error"]);
    }
    home.shell("ls ran").exit(2);
    intact(&home);
}

#[test]
fn unknown_commands_and_missing_files_are_named() {
    let home = small();
    home.shell("sotr kept.txt").exit(127).says(&["sotr: command not found", "sort"]);
    home.shell("aria2c https://example.org/x").exit(127).says(&["aria2c: command not found", "`curl`"]);
    home.shell("git clone https://example.org/x").exit(127).says(&["git: command not found", "`diff -ru`"]);
    home.shell("pnpm install x").exit(127).says(&["pnpm: command not found", "`npm"]);
    home.shell("pip install numpy").exit(127).says(&["pip: command not found", "`kiso skill add python-sci`"]);
    home.shell("echo a.py | xargs python3").exit(127).says(&["python3: command not found", "`js`"]);
    home.shell("/opt/tool").exit(127).says(&["/opt/tool"]);
    home.shell("cat missing.txt").exit(1).says(&["missing.txt", "No such file"]);
    home.shell("cat < missing.txt").exit(1).says(&["missing.txt", "No such file"]);
    home.shell("echo x > no/such/dir").exit(1).says(&["no/such/dir", "No such file"]);
    intact(&home);
}

/// The words of `df`'s output, below its header.
#[track_caller]
fn df(home: &Home, options: &str) -> Vec<Vec<String>> {
    let ran = home.shell(&format!("df {options}"));
    ran.ok().stdout.lines().skip(1).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn df_shows_what_the_workspace_holds_and_may_hold() {
    let home = Home::new();
    let books = tempfile::tempdir().unwrap();
    let mounts = format!("[exec.mounts]\n\"/books\" = \"{}\"\n", books.path().display());
    home.config(&format!("model = \"reflex\"\n[engine]\nworkspace_mib = 2\nmax_files = 20\n{mounts}"));
    let number = |text: &String| text.parse::<u64>().unwrap();
    let before = df(&home, "-B1 /work").remove(0);
    assert_eq!((before[0].as_str(), number(&before[1]), before[5].as_str()), ("workspace", 2 << 20, "/work"));
    let files = df(&home, "-i .").remove(0);
    assert_eq!(number(&files[1]), 20);
    home.shell("head -c 100000 /dev/zero > f").ok();
    let after = df(&home, "-B1 /work").remove(0);
    assert_eq!(number(&after[2]), number(&before[2]) + 100_000 + 4096);
    assert_eq!(number(&after[2]) + number(&after[3]), 2 << 20);
    assert_eq!(number(&df(&home, "-i .")[0][2]), number(&files[2]) + 1);
    // Exactly as much fits as `df` reports.
    let left = number(&after[3]);
    home.shell(&format!("head -c {} /dev/zero > rest", left + 1)).exit(137).says(&["2 MiB"]);
    home.shell(&format!("head -c {} /dev/zero > rest", left - (64 << 10))).ok();
    home.shell("rm rest f").ok();
    assert_eq!(df(&home, "-B1 /work").remove(0), before);
    let all = df(&home, "");
    let places: Vec<&str> = all.iter().map(|row| row[5].as_str()).collect();
    assert_eq!(places, ["/work", "/tmp", "/books", "/shared"]);
    assert_eq!(all[2][1..5], ["-", "-", "-", "-"]);
    home.shell("df none").exit(1).says(&["df: none: No such file"]);
    home.shell("df --output=nonsense").exit(1).says(&["'nonsense' unknown"]);
}

#[test]
fn help_names_everything_and_says_how_it_is_used() {
    let home = Home::new();
    home.shell("help").ok().prints(&["Keywords and builtins:", "mapfile", "Commands:", "jq"]);
    home.shell("help cd; help -d cd; help -s cd").ok().prints(&["cd: cd [-L", "cd - go to a directory"]);
    home.shell("for name in bc df file iconv openssl patch rg xz jq ls js; do help $name | head -n 1; done")
        .ok()
        .prints(&[
            "Usage: bc",
            "Usage: df",
            "Usage: file",
            "Usage: iconv",
            "Usage: openssl",
            "Usage: patch",
            "Usage: rg",
        ]);
    home.shell("help nothing-of-this-name").exit(1).says(&["no help topics match `nothing-of-this-name'"]);
}

#[test]
fn rg_searches_its_input_or_else_the_workspace() {
    let home = Home::new();
    home.shell(
        "mkdir -p d/.hidden; echo 'a needle' > d/one.txt; echo needle > d/.hidden/two; printf 'needle\\0' > d/three",
    )
    .ok();
    assert_eq!(home.shell("rg needle").ok().stdout, "d/one.txt:a needle\n");
    assert_eq!(home.shell("echo 'my needle' | rg -o needle").ok().stdout, "needle\n");
    home.shell("printf '' | rg needle").exit(1);
    home.shell("rg -uu -l needle | sort").ok().prints(&["d/.hidden/two", "d/one.txt"]);
    home.shell("echo '*.txt' > .ignore; rg needle").exit(1);
    home.shell("rg --no-ignore -n -r nail '(n)eedle' d/one.txt").ok().prints(&["1:a nail"]);
    home.shell("rg needle d/three none").exit(2).prints(&["binary file matches"]).says(&["none"]);
    home.shell("rg --files -g '*.txt' --no-ignore").ok().prints(&["d/one.txt"]);
    home.shell("rg -P x").exit(2).says(&["grep -P"]);
}

#[test]
fn a_thousand_stages_are_a_clear_error() {
    let home = small();
    let line = vec!["cat"; 1_000].join(" | ");
    home.shell(&format!("echo x | {line}")).exit(137).says(&["more processes at once than its 64"]);
    intact(&home);
}

#[test]
fn a_limit_in_the_middle_of_a_pipeline_ends_all_of_it() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 60\nmemory_mib = 48\n");
    home.shell("echo kept > kept.txt").ok();
    // The last command of the pipeline runs before the first starts: a late one could be the one that reaches the limit.
    let line = "{ until [ -e /tmp/go ]; do :; done; yes; } | sort | { : > /tmp/go; read -r first; echo $first; }";
    let told = home.shell_json(&format!("echo start >&2; {line}; echo never"));
    assert_eq!(told["exit_code"], 137, "{told}");
    assert_eq!(told["limit"]["limit"], "memory", "{told}");
    assert_eq!(told["failed"]["command"], "sort", "the one that reached it: {told}");
    assert_eq!((told["stdout"].as_str(), told["stderr"].as_str()), (Some(""), Some("start\n")));
    intact(&home);
}

#[test]
fn there_is_no_terminal_to_read_from() {
    let home = small();
    home.shell("read answer; echo code=$?").ok().prints(&["code=1"]);
    home.shell("cat").ok();
    home.shell("[ -t 0 ] || echo none").ok().prints(&["none"]);
    home.shell("cat < /dev/tty").exit(1).says(&["/dev/tty"]);
    intact(&home);
}

#[test]
fn directories_are_nested_no_deeper_than_can_be_removed() {
    let home = Home::new();
    let told = "nested deeper than its 64 levels";
    home.shell("mkdir -p $(printf 'd/%.0s' {1..5000})").exit(137).says(&[told]);
    home.shell("rm -r d; mkdir -p $(printf 'd/%.0s' {1..64}); find . | wc -l; rm -r d").ok();
    let nest = "mkdir -p $(printf 'd/%.0s' {1..40}); mkdir -p $(printf 'e/%.0s' {1..40});";
    let below = format!("e{}/", "/e".repeat(39));
    home.shell(&format!("{nest} mv d {below}")).exit(137).says(&[told]);
    home.shell("ls d e").ok();
    home.shell(&format!("ln -s {below} l; mkdir -p l/$(printf 'x/%.0s' {{1..30}})")).exit(137).says(&[told]);
    home.shell(&format!("cd {below}; mkdir -p $(printf 'y/%.0s' {{1..30}})")).exit(137).says(&[told]);
    home.shell(&format!("mkdir -p /tmp/$(printf 't/%.0s' {{1..40}}); mv /tmp/t {below}")).exit(137).says(&[told]);
    // In /tmp, where the command ran: nothing of it is left.
    let nest = "mkdir x; for i in $(seq 200); do mkdir n; mv x n/x; mv n x; done";
    home.shell(&format!("cd /tmp; {nest}")).exit(137).says(&[told]);
    let left = std::fs::read_dir(home.path().join("sessions/default/tmp")).unwrap().count();
    assert_eq!(left, 0);
    home.shell("rm -rf d e l").ok();
    // The error names a deep tree that was created from outside.
    let mut deep = home.work("default").join("made");
    (0..150).for_each(|_| deep.push("d"));
    std::fs::create_dir_all(&deep).unwrap();
    home.shell("echo x > new").exit(137).says(&[told]);
    home.shell("rm -r made").exit(137).says(&["listed more directories at once", "nested deeper"]);
}

#[test]
fn nobody_waits_for_a_slow_reader_or_one_that_went() {
    let home = hasty();
    let mut slow = home.command(&["shell", "-c", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(slow.wait().unwrap().code(), Some(137), "its deadline holds though nobody reads");
    let mut gone = home.command(&["shell", "-c", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(gone.stdout.take());
    assert_eq!(gone.wait().unwrap().code(), Some(141));
    intact(&home);
}

#[test]
fn large_variables_are_no_error() {
    let home = Home::new();
    home.shell("x=$(head -c 40000000 < /dev/zero | tr '\\0' a); echo ${#x}").ok().prints(&["40000000"]);
    home.shell("export x=$(head -c 3000000 < /dev/zero | tr '\\0' a); sleep 0")
        .exit(126)
        .says(&["Argument list too long"]);
    home.shell("cat 99999999999< x").exit(2).says(&["channel's number"]);
}

/// Skills that wait for each other in a pipeline occupy `max_calls` slots; more skills than slots must not wait for ever. Whether
/// they succeed depends on which of them start first.
#[test]
fn a_pipeline_of_more_skills_than_places_ends() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[engine]\nmax_calls = 2\n").add("command");
    let call = "printf '{\"args\":{\"mode\":\"echo\"}}'";
    home.shell(&format!("{call} | env command | env command")).ok().prints(&["echo"]);
    let stages = " | env command".repeat(4);
    let ran = home.shell(&format!("{call}{stages}"));
    let through = ran.code == 0 && ran.stdout.contains("echo");
    assert!(through || ran.stderr.contains("[engine] max_calls"), "{ran:?}");
}

#[test]
fn a_deep_recursion_is_an_error_and_not_the_end() {
    let home = small();
    let ran = home.shell("f() { f; }; f; echo after=$?");
    assert!(ran.stderr.contains("deep"), "{ran:?}");
    intact(&home);
}

/// Programs of `awk` that use too much: each ends with its own error, never with a trap.
#[test]
fn awk_ends_what_is_too_much() {
    let home = small();
    let line = |program: &str| format!("awk '{program}'");
    home.shell(&line("function f(n) { return 1 + f(n + 1) } BEGIN { f(1) }"))
        .exit(2)
        .says(&["`f` calls itself too deep"]);
    let nested =
        format!("function f(n) {{ return {}f(n + 1){} }} BEGIN {{ f(1) }}", "(1 + ".repeat(60), ")".repeat(60));
    home.shell(&line(&nested)).exit(2).says(&["`f` calls itself too deep"]);
    home.shell(&line("function f(n) { return n ? 1 + f(n - 1) : 0 } BEGIN { print f(1000) }"))
        .exit(0)
        .prints(&["1000"]);
    let deep = format!("BEGIN {{ print {}1{} }}", "(".repeat(5000), ")".repeat(5000));
    home.shell(&line(&deep)).exit(2).says(&["nested deeper than 200 levels"]);
    home.shell(&line("BEGIN { printf \"%999999999d\", 1 }")).exit(2).says(&["too large"]);
    home.shell(&line("BEGIN { $1000000000 = 1 }")).exit(2).says(&["out of range field"]);
    home.shell(&line("/((a{1000}){1000}){1000}/")).exit(2).says(&["too large"]);
    home.shell(&line("BEGIN { print 1 |& \"cat\" }")).exit(2).says(&["`|&` is not supported"]);
    home.shell(&line("BEGIN { system(\"nothing-of-this-name\"); print \"on\" }"))
        .exit(0)
        .prints(&["on"])
        .says(&["not found"]);
}

#[test]
fn mounts_are_what_the_administrator_wrote() {
    let home = Home::new();
    let books = home.file("books/a.txt", "a book\n");
    let scans = home.file("scans/b.txt", "a scan\n");
    let (books, scans) = (books.parent().unwrap().display(), scans.parent().unwrap().display());
    home.config(&format!(
        "model = \"reflex\"\n[exec.mounts]\n\"/books\" = \"{books}\"\n\"/scans\" = {{ path = \"{scans}\", write = true }}\n"
    ));
    home.shell("cat /books/a.txt; cd /scans; cat b.txt < /books/a.txt").ok().prints(&["a book\na scan\n"]);
    for line in ["echo x > /books/new", "touch /books/new", "rm /books/a.txt", "cat /books/../secret"] {
        assert_ne!(home.shell(line).code, 0, "{line}");
    }
    home.shell("echo more >> /scans/b.txt; cat /scans/b.txt").ok().prints(&["a scan\nmore\n"]);
    // Only the administrator can repair a missing directory, and the message says so.
    home.config("model = \"reflex\"\n[exec.mounts]\n\"/gone\" = \"/no/such/place\"\n");
    home.shell("true").exit(1).says(&["/no/such/place", "/gone"]);
}

#[test]
fn a_skill_of_the_command_shape_is_a_command() {
    let home = Home::new();
    home.add("command");
    // With `env`, because the shell has a builtin of the same name.
    let call = |mode: &str| format!("printf '{{\"args\":{{\"mode\":\"{mode}\"}}}}' | env command a 'b c'");
    home.shell("touch seen").ok();
    let listed = home.shell(&format!("{} | cat", call("list")));
    listed.ok().prints(&["[\"command\", \"a\", \"b c\"]", "seen"]);
    home.shell(&format!("{} | head -c 100 | wc -c | tr -d ' '", call("print"))).ok().prints(&["100"]);
    home.shell(&call("complain")).ok().prints(&["done"]).says(&["this is a warning"]);
    // A crash ends as in a bundled command; the program's own output comes first.
    let crashed = home.shell(&call("panic"));
    crashed.exit(134).says(&["gave up, on purpose", "\ncommand: crashed: it gave up\n"]);
    assert!(!crashed.stderr.contains("wasm"), "{}", crashed.stderr);
}

#[test]
fn what_is_deleted_meanwhile_ends_no_line() {
    let home = Home::new();
    let churn = "for i in $(seq 60); do mkdir -p d/a/b; echo x > d/a/b/f; rm -rf d; done";
    let write = |name: &str| format!("for i in $(seq 60); do echo $i > {name}; done");
    home.shell(&format!("({churn}) & ({}) & ({}) & wait", write("f"), write("g"))).ok();
}

#[test]
fn scratch_files_are_gone_with_the_task() {
    let home = Home::new();
    home.shell("echo x > /tmp/a; f=$(mktemp); echo y > $f; cat /tmp/a $f").ok().prints(&["x\ny\n"]);
    home.shell("ls /tmp/a").exit(2);
    let left = std::fs::read_dir(home.path().join("sessions/default/tmp")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_run_takes_a_command_line_as_given() {
    let home = Home::new();
    let csv = root().join("examples/weather.csv");
    let ran = home.kiso(&[
        "run",
        "--file",
        csv.to_str().unwrap(),
        "$ cut -d, -f2 weather.csv | sort | uniq -c\n$ wc -l < weather.csv",
    ]);
    ran.ok()
        .says(&["1. $ cut -d, -f2 weather.csv | sort | uniq -c", "2. $ wc -l", "review ok"])
        .prints(&["Lisbon", "Oslo"]);
    let trace = home.kiso(&["trace", "last"]);
    trace.ok().prints(&["processes"]);
    // A failure names the command that caused it.
    home.kiso(&["run", "$ echo fine; ls missing | cat; false"]).exit(1).says(&["exit code 1", "false"]);
    let home = hasty();
    home.kiso(&["run", "$ while :; do :; done"]).exit(5).says(&["deadline of 2 s"]);
    home.config(&limits(60));
    // No secret is left in the environment.
    let ran = home.kiso_with(&["run", "$ printenv; env"], |c| {
        c.env("KISO_SKILL_WEB_API_KEY", "sk-very-secret-value-1");
    });
    assert!(!ran.stdout.contains("sk-very-secret"), "{ran:?}");
}

/// `kiso shell FILE` runs a script with its arguments, standard input and exit code.
#[test]
fn a_script_of_ones_own_runs_with_its_words() {
    let home = Home::new();
    let script = home.file("say.sh", "echo \"$# $1 $2\"\nread line && echo \"read $line\"\nexit 3\n");
    let mut child = home
        .command(&["shell", script.to_str().unwrap(), "--one", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    let ran = Ran::new(&["shell", "say.sh"], child.wait_with_output().unwrap());
    ran.exit(3).prints(&["2 --one -c\nread a line\n"]);
    home.kiso(&["shell", "--session", "s", "missing.sh"]).exit(2).says(&["missing.sh", "-c"]);
    home.kiso(&["shell", "."]).exit(2).says(&["not a file"]);
    home.kiso(&["shell", "-c", "echo $1", "word"]).ok().prints(&["word"]);
}
