//! Compiling a stranger's component: within limits of time and memory, in a process that ends when nobody waits for it.

use crate::harness::{Home, wait_for};
use crate::served::Served;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A program whose one function changes each of its variables in the innermost of many loops. Every loop passes every variable
/// on, so the compiler's work grows with the product.
fn bomb(variables: usize, loops: usize) -> Vec<u8> {
    let mut text = String::from("(module (memory (export \"memory\") 1) (func (export \"_start\") (local ");
    text += &"i32 ".repeat(variables);
    text += ")\n";
    text += &"(loop ".repeat(loops);
    for n in 0..variables {
        writeln!(text, "(local.set {n} (i32.add (local.get {n}) (i32.load (i32.const {n}))))").unwrap();
    }
    for n in 0..loops {
        write!(text, "(br_if 0 (local.get {})))", n % variables).unwrap();
    }
    wat::parse_str(text + "))").unwrap_or_else(|e| panic!("{e}"))
}

/// Large enough to keep a compiler busy for long.
fn large_bomb(home: &Home) -> PathBuf {
    let wasm = bomb(4_000, 4_000);
    assert!(wasm.len() < 100_000, "a small file: {}", wasm.len());
    home.file("bomb.wasm", wasm)
}

fn files_in_cache(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.path().join("cache")).into_iter().flatten().flatten();
    // The cache also contains the empty `/` of command lines.
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn time_is_limited() {
    let home = Home::new();
    home.config("[engine]\ncompile_timeout_s = 1\ncompile_memory_mib = 8_000\n");
    let file = large_bomb(&home);
    let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
    ran.exit(5).says(&[
        "compiling bomb",
        "took more processor time than 1 s",
        "[engine] compile_timeout_s in config.toml",
    ]);
    home.kiso(&["skill", "info", "bomb"]).exit(2);
    assert_eq!(files_in_cache(&home), [""; 0], "nothing is left");
    let ran = home.kiso(&["--json", "skill", "add", file.to_str().unwrap()]);
    assert_eq!(ran.exit(5).json()["code"], "limit");
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_limited() {
    let home = Home::new();
    home.config("[engine]\ncompile_memory_mib = 64\n");
    let file = large_bomb(&home);
    let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
    ran.exit(5).says(&["took more memory than 64 MiB", "[engine] compile_memory_mib in config.toml"]);
    home.kiso(&["skill", "info", "bomb"]).exit(2);
    assert_eq!(files_in_cache(&home), [""; 0], "nothing is left");
}

/// The limits also apply when a skill is compiled again because the cache is empty.
#[test]
fn the_first_load_is_limited_too() {
    let home = Home::new();
    let file = home.file("heavy.wasm", bomb(200, 200));
    home.kiso(&["skill", "add", file.to_str().unwrap()]).ok();
    for entry in std::fs::read_dir(home.path().join("cache")).unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
    home.config("[engine]\ncompile_timeout_s = 1\n");
    home.kiso(&["skill", "run", "heavy"]).exit(5).says(&["compiling heavy", "heavy 0.0.0", "compile_timeout_s"]);
    home.kiso(&["shell", "-c", "heavy"]).exit(137).says(&["compile_timeout_s"]);
    assert_eq!(files_in_cache(&home), [""; 0], "nothing is kept of what was not finished");
}

/// The compiler process that this one started, and its environment.
#[cfg(target_os = "linux")]
fn compiler_of(parent: u32) -> Option<(u32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let mut pids: Vec<u32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    if pids.is_empty() {
        // Some kernels do not list the children of a task.
        let all =
            std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids = all.filter(|pid| parent_of(*pid) == Some(parent)).collect();
    }
    pids.into_iter().find_map(|pid| {
        let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let environment = std::fs::read_to_string(format!("/proc/{pid}/environ")).ok()?;
        arguments.contains("compile-component").then_some((pid, environment))
    })
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(target_os = "linux")]
fn is_running(pid: u32) -> bool {
    // A zombie has ended as well.
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:") && line.contains('Z')))
}

#[cfg(target_os = "linux")]
fn adding(home: &Home) -> (Child, u32, String) {
    let file = large_bomb(home);
    let mut command = home.command(&["skill", "add", file.to_str().unwrap()]);
    command.env("KISO_SKILL_BOMB_KEY", "a-secret").stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let (compiler, environment) = wait_for("the compiler", || compiler_of(child.id()));
    (child, compiler, environment)
}

#[test]
#[cfg(target_os = "linux")]
fn the_compiler_ends_with_whoever_waits_for_it() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let home = Home::new();
        let (mut child, compiler, environment) = adding(&home);
        assert!(!environment.contains("a-secret"), "it needs no environment: {environment}");
        kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
        child.wait().unwrap();
        wait_for("the end of the compiler", || (!is_running(compiler)).then_some(()));
        assert_eq!(files_in_cache(&home), [""; 0], "{signal:?}: nothing is left");
        // The next installation does not have to wait.
        home.add("echo");
    }
}

/// A daemon answers requests while it compiles, and stops compiling when the client disconnects.
#[test]
#[cfg(target_os = "linux")]
fn a_daemon_serves_while_it_compiles() {
    use std::io::Write as _;
    let home = Home::new();
    let wasm = bomb(4_000, 4_000);
    let token = home.kiso(&["--json", "token", "add", "t", "--scope", "admin"]).json();
    let mut daemon = Served::start(&home);
    daemon.token = token["token"].as_str().map(str::to_owned);
    let token = daemon.token.as_deref().unwrap();
    let mut client = std::net::TcpStream::connect(&daemon.address).unwrap();
    let head = format!(
        "POST /skills?name=bomb HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        daemon.address,
        wasm.len()
    );
    client.write_all(head.as_bytes()).unwrap();
    client.write_all(&wasm).unwrap();
    let (compiler, _) = wait_for("the compiler", || compiler_of(daemon.pid()));
    assert_eq!(daemon.request("GET", "/health", None).status, 200);
    assert!(daemon.get("/skills")["items"].is_array());
    assert!(is_running(compiler), "all that happened while it compiled");
    drop(client);
    wait_for("the end of the compiler", || (!is_running(compiler)).then_some(()));
    assert_eq!(daemon.request("GET", "/skills/bomb", None).status, 404);
    assert_eq!(daemon.terminate(), 0);
    assert_eq!(files_in_cache(&home), [""; 0], "nothing is left");
}

/// The hidden command on its own: it refuses a file that is not a component with a reason, and ends when its output is closed.
#[test]
fn the_compiler_says_what_it_cannot_compile() {
    use std::io::Write as _;
    let home = Home::new();
    let args = ["compile-component", "--reservation-mib=512", "--seconds=10", "--memory-mib=1024"];
    let mut child =
        home.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&4u64.to_le_bytes()).unwrap();
    stdin.write_all(b"\0asm").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(65), 0));
    assert!(!output.stderr.is_empty());
    drop(stdin);
    assert!(!home.kiso(&["--help"]).ok().stdout.contains("compile-component"), "it is nobody's to type");
}
