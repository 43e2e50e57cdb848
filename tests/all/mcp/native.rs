//! Servers that are programs of this machine, outside the sandbox: their restrictions, and how they start and end. The server is
//! written in Python.

use super::runs::{allowed, ask, plan, run, run_with, run_without, say};
use crate::harness::{Home, KISO, Ran, missing_tool, root, skipped, wait_until};
use crate::served::Served;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python, and the directory with its libraries.
struct Python {
    program: PathBuf,
    prefix: String,
}

/// The kernel's Landlock version, queried without kiso.
const VERSION: &str = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))";

impl Python {
    /// Returns `None` if this machine cannot run these tests.
    fn find(what: &str) -> Option<Python> {
        let said = |code: &str| {
            let output = Command::new("python3").args(["-c", code]).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let Some(program) = said("import os, sys; print(os.path.realpath(sys.executable))") else {
            missing_tool(what, "there is no python3");
            return None;
        };
        if said(VERSION).and_then(|version| version.parse().ok()).is_none_or(|version: i32| version < 4) {
            skipped(what, "this kernel has no Landlock, or an old one");
            return None;
        }
        Some(Python { program: program.into(), prefix: said("import sys; print(sys.base_prefix)")? })
    }

    /// The server's table for these arguments, with more lines.
    fn server(&self, args: &[&str], more: &str) -> String {
        self.server_that_reads(args, &[], more)
    }

    fn server_that_reads(&self, args: &[&str], read: &[&Path], more: &str) -> String {
        let script = root().join("tests/mcp/native_server.py");
        let command = json!([&[self.program.to_str().unwrap(), script.to_str().unwrap()], args].concat());
        let own = [Path::new(&self.prefix), &script];
        let read: Vec<_> = own.iter().chain(read).map(|path| path.to_str().unwrap()).collect();
        format!(
            "[mcp.oracle]\ncommand = {command}\noutside_the_sandbox = true\nread = {}\nallow = [\"ask\"]\n{more}",
            json!(read)
        )
    }
}

/// The text after `what=` in the trace of the last run.
fn came_of(home: &Home, what: &str) -> String {
    let trace = home.kiso(&["trace", "last"]).ok().stdout.clone();
    let rest = trace.split(&format!("{what}=")).nth(1).unwrap_or_else(|| panic!("{what}: {trace}"));
    rest.split([';', '\n', '"']).next().unwrap_or_default().trim().to_owned()
}

/// Runs one call that does these things.
#[track_caller]
fn does(home: &Home, tables: &str, things: &[&str]) -> Ran {
    run_with(home, tables, &things.join("; "), "[from outside: MCP server oracle]")
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_program_is_a_server_in_both_eras_and_goes_on_between_calls() {
    let Some(python) = Python::find("an MCP server outside the sandbox") else { return };
    for era in ["modern", "legacy"] {
        let tables = python.server(&[era], "");
        let home = allowed(&tables);
        let two = [ask(&json!({ "text": "pid" })), ask(&json!({ "text": "child" })), say()];
        let calls = [("planner", "oracle.ask", plan(&two)), ("worker", "call 2: child=", "It is 42.".to_owned())];
        run(&home, &tables, &calls).ok().prints(&["It is 42."]);
        // The server and the processes that it started end with kiso.
        for process in ["pid", "child"] {
            let pid = came_of(&home, process);
            wait_until("the server is ended", || !is_alive(&pid));
        }
    }
}

#[test]
fn it_reaches_neither_kiso_nor_any_other_local_service() {
    let Some(python) = Python::find("what a server outside the sandbox reaches") else { return };
    let tables = python.server(&[], "");
    let home = allowed(&tables);
    let daemon = Served::start(&home);
    let socket = home.path().join("kiso.sock");
    UnixStream::connect(&socket).expect("from outside, it can be connected to");
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = open.local_addr().unwrap().port();
    let things = [
        format!("connect {}", socket.display()),
        format!("pair {}", socket.display()),
        format!("tcp {port}"),
        format!("signal {}", daemon.pid()),
        format!("limit {}", daemon.pid()),
    ];
    let kinds = ["listen", "udp", "udp6", "raw", "packet", "netlink", "vsock", "setsid"];
    // io_uring_setup, which has the same number on every processor.
    let all: Vec<&str> = things.iter().map(String::as_str).chain(kinds).chain(["syscall 425"]).collect();
    does(&home, &tables, &all);
    for what in
        ["connect", "tcp", "signal", "limit", "listen", "udp", "udp6", "raw", "packet", "netlink", "vsock", "setsid"]
    {
        assert_eq!(came_of(&home, what), "PermissionError", "{what}");
    }
    assert_eq!(came_of(&home, "pair"), "refused");
    assert_eq!(came_of(&home, "syscall"), "Operation not permitted");
    drop(daemon);
}

/// System calls that Landlock does not cover: on other processes of the same user, and on files that the server cannot read.
#[test]
fn it_changes_and_learns_nothing_past_landlock() {
    let Some(python) = Python::find("system calls of a server outside the sandbox") else { return };
    let dir = Home::new();
    let other = dir.file("other.txt", "not its own");
    let tables = python.server(&[], "");
    let home = allowed(&tables);
    let refused = "Operation not permitted";
    let of = |what: &str| format!("{what} {}", other.display());
    for (thing, expected) in [
        ("niceuser".to_owned(), "PermissionError"),
        ("nice".to_owned(), "set"),
        // All processes of the user: ioprio_set has a different number on each processor.
        (if cfg!(target_arch = "x86_64") { "syscall 251 3 0 0" } else { "syscall 30 3 0 0" }.to_owned(), refused),
        ("library msgsnd 1 0 0 0".to_owned(), refused),
        ("library msgrcv 1 0 0 0 0".to_owned(), refused),
        ("library msgctl 1 2 0".to_owned(), refused),
        ("library semop 1 0 0".to_owned(), refused),
        ("library semctl 1 0 0".to_owned(), refused),
        ("library shmctl 1 2 0".to_owned(), refused),
        ("library inotify_init1 0".to_owned(), refused),
        (of("xattr"), "PermissionError"),
        (of("xattrs"), "PermissionError"),
        ("sibling".to_owned(), refused),
        // statmount and listmount.
        ("syscall 457".to_owned(), refused),
        ("syscall 458".to_owned(), refused),
        // openat2, whose mode a filter cannot see.
        ("syscall 437".to_owned(), "Function not implemented"),
        ("make plain 0640".to_owned(), "0o100640"),
        ("make setuid 4755".to_owned(), "PermissionError"),
        ("make setgid 2755".to_owned(), "PermissionError"),
        ("make both 6777".to_owned(), "PermissionError"),
    ] {
        does(&home, &tables, &[&thing]);
        assert_eq!(came_of(&home, thing.split(' ').next().unwrap()), expected, "{thing}");
    }
    let made = home.path().join("mcp/oracle");
    assert!(made.join("plain").exists() && !made.join("setuid").exists() && !made.join("both").exists());
}

#[test]
fn it_sees_no_files_and_no_environment_but_its_own() {
    let Some(python) = Python::find("what a server outside the sandbox sees") else { return };
    let dir = Home::new();
    let secret = dir.file("secret.txt", "hunter2");
    let listed = dir.file("listed/notes.txt", "a note");
    let program = dir.file("listed/tool", "#!/bin/sh\necho ran\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tables = python.server_that_reads(&[], &[listed.parent().unwrap()], "env = [\"LANG = C.UTF-8\"]\n");
    let home = allowed(&tables);
    let key = home.path().join("key");
    let of = |what: &str, path: &Path| format!("{what} {}", path.display());
    for (thing, expected) in [
        (of("read", &secret), "PermissionError"),
        (of("write", &secret), "PermissionError"),
        (of("truncate", &secret), "PermissionError"),
        (of("chmod", &secret), "PermissionError"),
        (of("remove", &secret), "PermissionError"),
        (of("list", secret.parent().unwrap()), "PermissionError"),
        (of("read", &key), "PermissionError"),
        (of("list", &home.path()), "PermissionError"),
        (of("read", &listed), "a note"),
        (of("write", &listed), "PermissionError"),
        (of("chmod", &listed), "PermissionError"),
        (of("run", &program), "ran"),
        ("read /proc/1/environ".to_owned(), "PermissionError"),
        ("list /proc".to_owned(), "PermissionError"),
        ("write /tmp/of-the-oracle".to_owned(), "PermissionError"),
        ("write own.txt".to_owned(), "written"),
        ("env".to_owned(), "LANG"),
        ("fds".to_owned(), "none"),
    ] {
        does(&home, &tables, &[&thing]);
        assert_eq!(came_of(&home, thing.split(' ').next().unwrap()), expected, "{thing}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hunter2");
    assert_eq!(std::fs::read_to_string(home.path().join("mcp/oracle/own.txt")).unwrap(), "here");
}

#[test]
fn it_connects_to_the_ports_of_its_table() {
    let Some(python) = Python::find("the ports of a server outside the sandbox") else { return };
    let (listed, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let tables = python.server(&[], &format!("connect_ports = [{}]\n", port(&listed)));
    let home = allowed(&tables);
    for (thing, expected) in [
        (format!("tcp {}", port(&listed)), "connected"),
        (format!("tcp {}", port(&other)), "PermissionError"),
        ("udp".to_owned(), "PermissionError"),
        ("raw".to_owned(), "PermissionError"),
        ("mptcp".to_owned(), "PermissionError"),
        ("netlink".to_owned(), "PermissionError"),
        ("listen".to_owned(), "PermissionError"),
        (format!("connect {}", home.path().join("kiso.sock").display()), "PermissionError"),
    ] {
        does(&home, &tables, &[&thing]);
        assert_eq!(came_of(&home, thing.split(' ').next().unwrap()), expected, "{thing}");
    }
    home.kiso(&["mcp", "list"]).ok().prints(&["OUTSIDE THE SANDBOX", "of every host", "ports limit no host"]);
    home.kiso(&["doctor", "--offline"]).ok().prints(&[
        "warn MCP server oracle",
        "OUTSIDE THE SANDBOX",
        "ports limit no host",
    ]);
    home.config(&(python.server(&[], "connect_ports = [7777]\n") + "[gateway]\nport = 7777\n"));
    home.kiso(&["config", "check"]).exit(3).says(&["[mcp.oracle] connect_ports names 7777, which is kiso's own port"]);
    home.config(&python.server_that_reads(&[], &[home.dir.path()], ""));
    home.kiso(&["config", "check"]).exit(3).says(&["has kiso's own home in it"]);
}

/// With `--port`, the daemon listens on another port than the one in `config.toml`.
#[test]
fn it_never_connects_to_the_port_that_the_daemon_listens_on() {
    let Some(python) = Python::find("a server outside the sandbox and kiso's own port") else { return };
    let home = Home::new();
    let port = crate::harness::own_port();
    home.config(&python.server(&[], &format!("connect_ports = [{port}]\n")));
    home.kiso(&["config", "check"]).ok();
    let said = format!("names {port}, which is kiso's own port");
    home.kiso(&["serve", "--port", &port.to_string()]).exit(3).says(&["[mcp.oracle]", &said]);
    // A daemon that was there first keeps a server from starting, in its own process and in every other one.
    home.config("");
    let daemon = Served::start(&home);
    let port: u16 = daemon.address.rsplit(':').next().unwrap().parse().unwrap();
    let said = format!("connect_ports names {port}, which is kiso's own port");
    home.config(&python.server(&[], &format!("connect_ports = [{port}]\n")));
    home.kiso(&["mcp", "list"]).exit(1).says(&[&said]);
    drop(daemon);
    home.kiso(&["mcp", "list"]).ok();
}

#[test]
fn one_that_misbehaves_fails_the_call_and_not_the_run() {
    let Some(python) = Python::find("servers outside the sandbox that misbehave") else { return };
    for (era, mode, told) in [
        ("modern", "flood", "its answer is longer than 64 KiB"),
        ("legacy", "flood", "its answer is longer than 64 KiB"),
        ("modern", "huge", "its answer is longer than 64 KiB"),
        ("legacy", "huge", "its answer is longer than 64 KiB"),
        (
            "modern",
            "not-json",
            "no answer within 15 s (timeout_s); a line of its standard output is no message: \"Welcome to the oracle!",
        ),
        ("modern", "unable", "it cannot be started: it ended with exit status: 1: there is no oracle here"),
    ] {
        let tables = |mode: &str| python.server(&[era, mode], "max_result_kib = 64\ntimeout_s = 15\n");
        // A server with other arguments is another server.
        let home = if mode == "unable" { Home::new() } else { allowed(&tables(mode)) };
        if mode == "unable" {
            home.config(&tables(mode));
            home.kiso(&["mcp", "allow", "oracle"]).exit(1).says(&[told]);
            continue;
        }
        run_without(&home, &tables(mode), told);
    }
    for era in ["modern", "legacy"] {
        let tables = python.server(&[era, "twice"], "");
        run_with(&allowed(&tables), &tables, "env", "call 1: env=none");
        // The same program that gives another list later.
        for (mode, told) in [("many-tools", "it lists more than 1000 tools"), ("turncoat", "kiso mcp list")] {
            let home = allowed(&python.server(&[era], ""));
            run_without(&home, &python.server(&[era], &format!("env = [\"MODE = {mode}\"]\n")), told);
        }
    }
}

/// A banner, a log and other values on its standard output, before the start and beside each message; and null for the missing
/// fields of a message.
#[test]
fn what_is_no_message_is_skipped() {
    let Some(python) = Python::find("servers outside the sandbox that write a log") else { return };
    for era in ["modern", "legacy"] {
        let tables = python.server(&[era, "noise"], "");
        run_with(&allowed(&tables), &tables, "env", "call 1: env=none");
    }
}

#[test]
fn a_tool_that_is_described_badly_does_not_take_the_others_away() {
    let Some(python) = Python::find("servers outside the sandbox with bad descriptions") else { return };
    let all = "allow = [\"ask\", \"bare\", \"null\", \"pattern\"]";
    let tables = python.server(&["legacy", "sparse"], "").replace("allow = [\"ask\"]", all);
    let home = Home::new();
    home.config(&tables);
    let allowed = home.kiso(&["mcp", "allow", "oracle"]);
    allowed.ok().says(&["oracle.pattern: its arguments are not checked against the pattern [z-a]"]);
    let names = ["ask", "bare", "null", "pattern"].map(|tool| format!("oracle.{tool} is allowed as it is now"));
    home.kiso(&["mcp", "list"]).ok().prints(&[
        "oracle.ask  allowed",
        "oracle.bare  allowed",
        "oracle.pattern  allowed",
    ]);
    assert!(names.iter().all(|name| allowed.stdout.contains(name)), "{}", allowed.stdout);
    run_with(&home, &tables, "env", "call 1: env=none");
}

/// A server that died or hangs is replaced at the next call.
#[test]
fn one_that_has_ended_is_started_anew() {
    let Some(python) = Python::find("a server outside the sandbox that dies") else { return };
    let key = "hunter2-of-the-oracle";
    for (mode, told) in [
        ("die", "it ended with exit status: 3: the oracle fell, on purpose; its key was [secret KEY]"),
        ("hang", "no answer within 15 s (timeout_s)"),
    ] {
        let tables = python.server(&["modern", mode], "env_from = [\"KEY = ORACLE_KEY\"]\ntimeout_s = 15\n");
        // The question is repeated after the server's text, which may come from anybody.
        let tables = format!("{tables}[mcp.oracle.effects]\nask = \"read\"\n");
        let home = Home::new();
        home.config(&tables);
        let with_key = |args: &[&str]| {
            home.kiso_with(args, |command| {
                command.env("ORACLE_KEY", key);
            })
        };
        with_key(&["mcp", "allow", "oracle"]).ok();
        let call = plan(&[ask(&json!({ "text": "env" })), say()]);
        let lines = [
            json!({ "role": "planner", "reply": call }),
            json!({ "role": "planner", "expect_contains": told, "reply": call }),
            json!({ "role": "worker", "expect_contains": "call 1: env=KEY", "reply": "It is 42." }),
        ];
        let script = home.file("script.jsonl", lines.map(|line| line.to_string() + "\n").concat());
        home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
        with_key(&["run", "what is the answer?"]).ok().prints(&["It is 42."]);
    }
}

#[test]
fn it_ends_with_kiso_however_that_ends() {
    let Some(python) = Python::find("the end of a server outside the sandbox") else { return };
    let tables = python.server(&["modern", "hang"], "");
    let home = allowed(&tables);
    let own = home.path().join("mcp/oracle");
    let lines = [json!({ "role": "planner", "reply": plan(&[ask(&json!({ "text": "env" })), say()]) })];
    let script = home.file("script.jsonl", lines.map(|line| line.to_string() + "\n").concat());
    home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
    let mut kiso = home.command(&["run", "what is the answer?"]).spawn().expect("kiso starts");
    wait_until("the server hangs", || own.join("hung").exists());
    let pid = std::fs::read_to_string(own.join("pid")).unwrap();
    assert!(is_alive(&pid));
    kiso.kill().unwrap();
    kiso.wait().unwrap();
    wait_until("it has ended with kiso", || !is_alive(&pid));
}

/// On such a machine the server has no restrictions, so it is started only if the configuration allows that; it can then do all
/// of the above.
#[test]
fn where_nothing_can_confine_it_the_file_must_say_so() {
    let Some(python) = Python::find("a kernel without Landlock") else { return };
    let without = |home: &Home, args: &[&str]| {
        let mut command = Command::new(&python.program);
        command.arg(root().join("tests/mcp/without.py")).arg("444").arg(KISO).args(args);
        command.env("KISO_HOME", home.path()).env_remove("KISO_LOG").current_dir(home.dir.path());
        Ran::new(args, command.output().expect("python3 starts"))
    };
    let home = allowed(&python.server(&[], ""));
    let refused = without(&home, &["--json", "mcp", "list"]);
    let listed = refused.exit(1).json();
    assert_eq!(listed["error"]["code"], "unconfined", "{listed}");
    assert!(listed["error"]["message"].as_str().unwrap().contains("the kernel has no Landlock"), "{listed}");
    without(&home, &["doctor", "--offline"]).exit(1).prints(&["FAIL MCP server oracle", "unconfined = true"]);
    let tables = python.server(&[], "unconfined = true\n");
    home.config(&tables);
    without(&home, &["mcp", "list"]).ok().prints(&["UNCONFINED", "oracle.ask  allowed"]);
    without(&home, &["doctor", "--offline"]).ok().prints(&["warn MCP server oracle", "UNCONFINED"]);
    let daemon = Served::start(&home);
    let things = [format!("connect {}", home.path().join("kiso.sock").display()), "udp".to_owned()].join("; ");
    let calls = [
        json!({ "role": "planner", "reply": plan(&[ask(&json!({ "text": things })), say()]) }),
        json!({ "role": "worker", "expect_contains": "connect=connected; udp=made", "reply": "It is 42." }),
    ];
    let script = home.file("script.jsonl", calls.map(|line| line.to_string() + "\n").concat());
    home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
    without(&home, &["run", "what is the answer?"]).ok().prints(&["It is 42."]);
    drop(daemon);
    // If the kernel can confine it, it is confined anyway.
    does(&home, &tables, &["udp"]);
    assert_eq!(came_of(&home, "udp"), "PermissionError");
}

#[test]
fn health_tells_which_servers_are_outside_the_sandbox() {
    let Some(python) = Python::find("servers outside the sandbox in the health of the daemon") else { return };
    let home = Home::new();
    home.config(
        &(python.server(&[], "connect_ports = [443]\n") + "[mcp.far]\nurl = \"https://mcp.example.org/mcp\"\n"),
    );
    let daemon = Served::start(&home);
    let servers = daemon.get("/health/details")["mcp_servers"].clone();
    let found: Vec<_> =
        servers.as_array().unwrap().iter().map(|server| (&server["name"], &server["outside_the_sandbox"])).collect();
    assert_eq!(found, [(&json!("oracle"), &json!(true)), (&json!("far"), &Value::from(false))], "{servers}");
    let place = servers[0]["place"].as_str().unwrap();
    for words in ["outside the sandbox", "TCP port 443 of any host"] {
        assert!(place.contains(words), "{servers}");
    }
}
