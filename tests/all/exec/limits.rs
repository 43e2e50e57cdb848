//! Command lines that use too much: each ends with an error that names the limit.

use super::*;

#[test]
fn a_fork_bomb_is_a_clear_error() {
    let home = small();
    home.shell(":(){ :|:& };:").exit(137).says(&["more processes at once than its 64", "[exec] max_processes"]);
    home.shell("f() { f & f & wait; }; f").exit(137).says(&["processes"]);
    // A process is killed while it starts.
    for _ in 0..8 {
        let line = "g() { while :; do sleep 1000 & done; }; for i in 1 2 3 4 5 6; do g & done; wait";
        home.shell(line).exit(137).says(&["processes"]);
    }
    intact(&home);
}

#[test]
fn a_loop_without_end_meets_its_deadline() {
    let home = hasty();
    for line in [
        "while :; do :; done",
        "while :; do :; done &",
        "sleep 1000",
        "yes > /dev/null",
        "cat | cat < /dev/zero > /dev/null",
        "trap 'while :; do :; done' EXIT; exit 3",
        // A chain of processes that each start one and end: no ended process may be kept.
        "f() { f & }; f & sleep 1000",
    ] {
        home.shell(line).exit(137).says(&["deadline of 2 s", "[exec] timeout_s"]);
    }
    let told = home.shell_json("echo before; sleep 1000");
    assert_eq!((told["exit_code"].as_u64(), told["limit"]["limit"].as_str()), (Some(137), Some("time")), "{told}");
    assert_eq!(told["stdout"], "before\n", "what was written before the limit is kept: {told}");
    assert_eq!(told["failed"]["command"], "sleep 1000");
    intact(&home);
}

/// The message names the busy command, not the last one started.
#[test]
fn a_deadline_blames_the_command_that_works() {
    let home = hasty();
    for (line, culprit) in [
        ("yes > /dev/null & sleep 1000", "yes"),
        ("sleep 1000 & yes > /dev/null", "yes"),
        ("sleep 999 & while :; do :; done", "sh"),
        // No command is busy; all wait for the last one.
        ("cat | sleep 1000", "sleep 1000"),
    ] {
        let told = home.shell_json(line);
        assert_eq!(told["failed"]["command"], culprit, "{line}: {told}");
    }
}

#[test]
fn a_file_without_end_meets_the_quota() {
    let home = small();
    home.shell("yes > f").exit(137).says(&["more to files", "2 MiB", "[exec] write_mib"]);
    let length = std::fs::metadata(home.work("default").join("f")).unwrap().len();
    assert!(length <= 2 << 20, "{length}");
    home.shell("rm f; cat kept.txt > f; cat f >> f; wc -l < f").exit(137 * i32::from(false));
    intact(&home);
}

#[test]
fn memory_without_end_is_a_limit_of_the_whole_line() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 60\nmemory_mib = 48\n");
    home.shell("echo kept > kept.txt").ok();
    for line in ["s=x; while :; do s=$s$s; done", "x=$(yes)", "yes | tac > /dev/null"] {
        home.shell(line).exit(137).says(&["more memory than its 48 MiB", "[exec] memory_mib"]);
    }
    for line in ["cat /dev/zero | sort", "cat < /dev/zero | sort"] {
        let ran = home.shell(line);
        ran.exit(137).says(&["stopped: it", "the setting is [exec]"]);
    }
    intact(&home);
}

#[test]
fn output_without_end_is_cut_and_then_ended() {
    let home = small();
    let told = home.shell_json("seq 1 100000");
    let stdout = told["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("99999\n100000\n"), "head and tail are kept");
    assert!(stdout.contains("bytes left out"), "and the gap is told");
    assert!(stdout.len() < 300 << 10, "{}", stdout.len());
    let told = home.shell_json("yes");
    assert_eq!((told["exit_code"].as_u64(), told["limit"]["limit"].as_str()), (Some(137), Some("output")), "{told}");
    assert!(told["limit"]["setting"].as_str().unwrap().contains("[exec] max_output_mib"), "{told}");
    intact(&home);
}

#[test]
fn an_enormous_line_is_refused_at_once() {
    let home = small();
    let script = home.file("long.sh", "echo x; ".repeat(10 << 17));
    let output = home.command(&["shell"]).stdin(std::fs::File::open(script).unwrap()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("more than 1048576"), "{said}");
    for nested in ["(", "$(", "${a:-", "{ "] {
        let deep = format!("echo {}", nested.repeat(20_000));
        assert_ne!(home.shell(&deep).code, 0);
    }
    intact(&home);
}

/// A command that cannot start for lack of descriptors fails the pipeline: otherwise the next command would count an empty input.
#[test]
fn a_pipeline_without_free_descriptors_fails_as_a_whole() {
    let home = small();
    home.shell("seq 5 | wc -l").ok();
    for files in 24..64 {
        let kiso = crate::harness::KISO;
        let script = format!("ulimit -n {files}; exec {kiso} shell -c 'seq 5 | wc -l'");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).env("KISO_HOME", home.path()).env("RUST_BACKTRACE", "0");
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.success(), said.trim() == "5", "{files} descriptors: {output:?}");
    }
}
