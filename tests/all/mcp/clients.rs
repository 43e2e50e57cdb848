//! The official clients of the Model Context Protocol, its inspector and its conformance tests, against the real program.

use super::{CONFIG, MODERN, home};
use crate::harness::{Home, KISO, missing_tool, root};
use crate::served::Served;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where a package is; `None`, loudly, where it cannot be had.
fn official(name: &str) -> Option<PathBuf> {
    static FETCHED: OnceLock<String> = OnceLock::new();
    let report = FETCHED.get_or_init(|| {
        let out = root().join("target/mcp");
        let output = Command::new("sh").arg(root().join("tests/mcp/fetch.sh")).arg(out).output();
        let Ok(output) = output else { return "there is no sh".to_owned() };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    });
    if let Some(dir) = report.lines().find_map(|line| line.strip_prefix(&format!("READY {name} "))) {
        return Some(dir.into());
    }
    missing_tool(&format!("the client {name} of the Model Context Protocol"), report);
    None
}

/// A daemon with a token.
fn served(home: &Home) -> Served {
    let mut served = Served::start(home);
    served.token = Some(home.kiso(&["token", "add", "program"]).ok().stdout.trim().to_owned());
    served
}

/// Runs a client against `kiso mcp`, then against a daemon; each must have seen so many things.
#[track_caller]
fn run(command: impl Fn(&str) -> Command, seen: usize) {
    let check = |way: &str, output: Output, log: &str| {
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{way}: {said}{}\n{log}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), seen, "{way}: {said}");
    };
    let home = home();
    let output = command("stdio").env("KISO", KISO).env("KISO_HOME", home.path()).output().expect("it starts");
    check("stdio", output, "");
    let home = self::home();
    let served = served(&home);
    let url = format!("http://{}/mcp", served.address);
    let output = command("http").env("MCP_URL", url).env("MCP_TOKEN", served.token.as_deref().unwrap()).output();
    check("http", output.expect("it starts"), &served.log());
}

#[test]
fn the_official_client_for_python_is_served_in_both_eras() {
    let Some(dir) = official("python") else { return };
    for era in ["legacy", MODERN] {
        let command = |way: &str| {
            let mut command = Command::new(dir.join("bin/python"));
            command.arg(root().join("tests/mcp/client.py")).args([way, era]);
            command
        };
        run(command, 15);
    }
}

#[test]
fn the_official_clients_for_javascript_are_served_in_both_eras() {
    for (name, package, era) in [
        ("javascript", "@modelcontextprotocol/sdk", "legacy"),
        ("client", "@modelcontextprotocol/client", "legacy"),
        ("client", "@modelcontextprotocol/client", MODERN),
    ] {
        let Some(dir) = official(name) else { return };
        // Modules are looked for from where the program is.
        let script = dir.join(format!("{}-client.mjs", std::process::id()));
        std::fs::copy(root().join("tests/mcp/client.mjs"), &script).unwrap();
        let command = |way: &str| {
            let mut command = Command::new("node");
            command.arg(&script).args([way, package, era]);
            command
        };
        run(command, 13);
        std::fs::remove_file(&script).unwrap();
    }
}

/// The inspector's command line, as docs/mcp.md has it.
#[test]
fn the_inspector_is_served() {
    let Some(dir) = official("inspector") else { return };
    let home = home();
    let inspect = |args: &[&str]| -> Value {
        let mut command = Command::new("node");
        command.arg(dir.join("node_modules/.bin/mcp-inspector")).args(["--cli", KISO, "mcp"]).args(args);
        // What it keeps for itself goes where the test does.
        command.env("KISO_HOME", home.path()).env("HOME", home.dir.path());
        command.args(["-e", &format!("KISO_HOME={}", home.path().display())]);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert!(tools.to_string().contains("\"echo\""), "{tools}");
    let answer = inspect(&["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]);
    assert!(answer.to_string().contains("hello"), "{answer}");
    let prompts = inspect(&["--method", "prompts/list"]);
    assert!(prompts.to_string().contains("shout"), "{prompts}");
}

/// Checks of the conformance tests that kiso does not pass, and why.
const NOT_PASSED: [&str; 5] = [
    // Four need tools that were made for them.
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    // A web page of this machine needs a token too, and the tests cannot bring one.
    "localhost-host-valid-accepted",
];

/// The protocol's own tests, as far as they are about what a server has that was not made for them.
#[test]
fn the_conformance_tests_pass_in_both_eras() {
    let Some(dir) = official("conformance") else { return };
    let home = Home::new();
    home.config(CONFIG);
    let served = Served::start(&home);
    let url = format!("http://{}/mcp", served.address);
    for (version, scenarios) in [
        ("2025-11-25", &["server-initialize", "server-session-lifecycle", "ping"][..]),
        (MODERN, &["server-stateless", "caching", "http-header-validation", "sep-2164-resource-not-found"]),
    ] {
        let lists = ["tools-list", "resources-list", "prompts-list"];
        let transport = ["dns-rebinding-protection", "server-sse-multiple-streams"];
        for scenario in scenarios.iter().chain(&lists).chain(&transport) {
            let mut command = Command::new("node");
            command.arg(dir.join("node_modules/@modelcontextprotocol/conformance/dist/kiso.mjs"));
            command.args(["server", "--url", &url, "--scenario", scenario, "--spec-version", version]);
            let output = command.output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("SUCCESS"), "{scenario} of {version}: {output:?}");
            let failed = said.lines().filter(|line| line.contains("FAILURE"));
            let unexpected: Vec<_> =
                failed.filter(|line| !NOT_PASSED.iter().any(|known| line.contains(known))).collect();
            assert!(unexpected.is_empty(), "{scenario} of {version}: {unexpected:#?}\n{said}");
        }
    }
}
