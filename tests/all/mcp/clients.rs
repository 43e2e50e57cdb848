//! The official clients of the Model Context Protocol, its inspector and its conformance tests, against the real program.

pub(super) use crate::client_page::{blocks, section};

use super::{CONFIG, MODERN, home};
use crate::client_page::OfficialClients;
use crate::harness::{Home, KISO, own_port, root};
use crate::served::Served;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The directory of a package.
pub(super) fn official(name: &str) -> Option<PathBuf> {
    static CLIENTS: OfficialClients = OfficialClients::new("mcp");
    CLIENTS.dir(name, &format!("the client {name} of the Model Context Protocol"))
}

/// A daemon with a token.
pub(super) fn served(home: &Home) -> Served {
    let mut served = Served::start_on(own_port(), home, &[], |_| {});
    served.token = Some(home.kiso(&["token", "add", "program"]).ok().stdout.trim().to_owned());
    served
}

/// Runs a client against `kiso mcp`, then against a daemon. Each run must report `seen` successful checks. With the daemon, the
/// client prints "restart", and the daemon is killed and another one started on its port.
#[track_caller]
fn run(command: impl Fn(&str) -> Command, seen: usize) {
    let check = |way: &str, said: &str, seen: usize| {
        assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), seen, "{way}: {said}");
    };
    let home = home();
    let output = command("stdio").env("KISO", KISO).env("KISO_HOME", home.path()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    check("stdio", &String::from_utf8_lossy(&output.stdout), seen);

    let home = self::home();
    let mut served = served(&home);
    let (url, port) = (format!("http://{}/mcp", served.address), served.address.rsplit(':').next().unwrap().to_owned());
    let mut command = command("http");
    command.env("MCP_URL", url).env("MCP_TOKEN", served.token.as_deref().unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut said = String::new();
    for line in output.lines().map_while(Result::ok) {
        if line == "restart" {
            served.kill();
            served = Served::spawn(home.command(&["--json", "serve", "--port", &port]));
            writeln!(input).expect("it reads");
        }
        said += &format!("{line}\n");
    }
    assert!(child.wait().expect("it ends").success(), "{said}\n{}", served.log());
    check("http", &said, seen + 1);
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
        let Some(dir) = official(name) else { continue };
        // Node resolves modules from the program's directory.
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

/// A `PATH` value with a directory that contains `kiso`.
pub(super) fn with_kiso(home: &Home) -> String {
    let dir = home.dir.path().join("bin");
    std::fs::create_dir_all(&dir).unwrap();
    let link = dir.join("kiso");
    if !link.exists() {
        std::os::unix::fs::symlink(KISO, link).unwrap();
    }
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default())
}

/// The programs in docs/clients.md run unchanged, except for the port: with their own kiso, and with a daemon.
#[test]
fn the_programs_of_the_page_run_as_written() {
    let home = home();
    let served = served(&home);
    for (name, heading, fence, file) in
        [("python", "MCP in Python", "python", "page.py"), ("client", "MCP in JavaScript", "js", "page.mjs")]
    {
        let Some(dir) = official(name) else { continue };
        let text = section(heading);
        let programs = blocks(&text, fence);
        assert_eq!(programs.len(), 2, "{heading}");
        for program in programs {
            let script = dir.join(format!("{}-{file}", std::process::id()));
            std::fs::write(&script, program.replace("127.0.0.1:8333", &served.address)).unwrap();
            let mut command = match fence {
                "python" => Command::new(dir.join("bin/python")),
                _ => Command::new("node"),
            };
            command.arg(&script).env("PATH", with_kiso(&home)).env("HOME", home.dir.path());
            command.env_remove("KISO_HOME").env("KISO_TOKEN", served.token.as_deref().unwrap());
            let output = command.output().expect("it starts");
            std::fs::remove_file(&script).unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "12", "{program}\n{output:?}");
        }
    }
}

/// The inspector's command line from docs/clients.md, with its own kiso and with a daemon.
#[test]
fn the_inspector_is_served() {
    let Some(dir) = official("inspector") else { return };
    let home = home();
    let served = served(&home);
    // It passes few variables to the programs that it starts, and not the one with the home's path.
    std::os::unix::fs::symlink(home.path(), home.dir.path().join(".kiso")).unwrap();
    let inspect = |words: &[&str]| {
        let mut command = Command::new("node");
        command.arg(dir.join("node_modules/.bin/mcp-inspector")).args(words);
        // It keeps its own files in the test's directory.
        command.env("PATH", with_kiso(&home)).env_remove("KISO_HOME").env("HOME", home.dir.path());
        command.output().expect("it starts")
    };
    let told = |words: &[&str]| -> Value {
        let output = inspect(words);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let text = section("MCP inspector");
    let lines: Vec<&str> = blocks(&text, "text")[0].lines().collect();
    let lists = ["--method", "tools/list"];
    for line in &lines {
        let words = line.strip_prefix("npx @modelcontextprotocol/inspector ").unwrap();
        // The arguments of the line, one of which is quoted.
        let quoted: Vec<&str> = words.split('"').collect();
        let mut words: Vec<String> = Vec::new();
        for (at, part) in quoted.iter().enumerate() {
            match at % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(format!("Authorization: Bearer {}", served.token.as_deref().unwrap())),
            }
        }
        words.iter_mut().for_each(|word| *word = word.replace("127.0.0.1:8333", &served.address));
        let listed = words.iter().map(String::as_str).collect::<Vec<_>>();
        assert!(told(&listed).to_string().contains("\"echo\""), "{line}");
        // The same connection, with other methods.
        let way = listed.strip_suffix(&lists).unwrap_or_else(|| panic!("{line} lists tools"));
        let call = ["--method", "tools/call", "--tool-name"];
        let answer = told(&[way, &call, &["echo", "--tool-arg", "text=hello"]].concat());
        assert!(answer.to_string().contains("hello") && answer["isError"] != true, "{line}: {answer}");
        let failed = inspect(&[way, &call, &["echo", "--tool-arg", "wrong=hello"]].concat());
        assert!(String::from_utf8_lossy(&failed.stdout).contains("isError"), "{line}: {failed:?}");
        let unknown = inspect(&[way, &call, &["none"]].concat());
        assert!(!unknown.status.success(), "{line}: {unknown:?}");
        let prompts = told(&[way, &["--method", "prompts/list"]].concat());
        assert!(prompts.to_string().contains("shout"), "{line}: {prompts}");
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
}

/// Checks of the conformance tests that kiso does not pass, and why.
const NOT_PASSED: [&str; 5] = [
    // Four checks need tools that exist only for the tests.
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    // A web page on this machine needs a token, too, and the tests cannot send one.
    "localhost-host-valid-accepted",
];

/// The protocol's conformance tests, except those that need special tools on the server.
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
