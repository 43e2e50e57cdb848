//! Rules for the code: dependencies between crates, lengths of files, and words that are not used.

mod circles;
mod names;
mod words;

use crate::harness::{Home, missing_tool, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The host's crates, from the outermost to the innermost; each may use only those after it, which the compiler enforces.
const HOST: &[&str] =
    &["kiso", "fleet", "gateway", "agent", "sandbox", "llm", "store", "graph", "base", "reflex", "plan"];

/// The directory of a crate of the host.
fn host_crate(name: &str) -> PathBuf {
    let host = root().join("host");
    if name == "kiso" { host } else { host.join(name) }
}

/// Sources of all host crates, with paths relative to the repository's root.
fn host_sources() -> Vec<(String, PathBuf)> {
    let all = HOST.iter().flat_map(|name| sources(&host_crate(name).join("src"), ".rs"));
    all.map(|path| (path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(), path)).collect()
}

/// The dependencies of a crate, without those of its build script and tests.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    table["dependencies"].as_table().unwrap().keys().cloned().collect()
}

fn sources(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())).flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" {
            found.extend(sources(&path, ending));
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Users of the heavy libraries: each further crate that uses one cannot be built and tested without it.
#[test]
fn heavy_libraries_are_used_where_their_subject_is() {
    for (library, users) in [
        ("wasmtime", &["sandbox"][..]),
        ("rusqlite", &["agent", "store"]),
        ("axum", &["kiso", "gateway"]),
        ("async-nats", &["fleet"]),
        ("tokio", &["kiso", "fleet", "gateway", "agent", "sandbox", "llm", "store", "base"]),
    ] {
        let found: Vec<_> = HOST
            .iter()
            .filter(|name| dependencies(&host_crate(name)).iter().any(|used| used == library))
            .copied()
            .collect();
        assert_eq!(found, users, "{library}");
    }
}

/// Code that depends on the operating system is in `system.rs`, so that a port to another system is easy to start. Exceptions are
/// two files that are about Linux as a whole.
#[test]
fn one_module_knows_the_operating_system() {
    const OF_LINUX: [&str; 4] = [
        "host/base/src/system.rs",
        "host/src/cli/unit.rs",
        "host/agent/src/mcp/confine.rs",
        "host/agent/src/mcp/confine/filter.rs",
    ];
    let mut found = Vec::new();
    for (name, path) in host_sources() {
        let code = circles::code(&std::fs::read_to_string(&path).unwrap());
        let signs = ["target_os", "target_vendor", "\"/proc/", "\"/sys/"];
        if signs.iter().any(|sign| code.contains(sign)) && !OF_LINUX.contains(&name.as_str()) {
            found.push(name);
        }
    }
    assert!(found.is_empty(), "move what they ask of the system to system.rs: {found:?}");
}

/// The rows of the first drawing in docs/architecture.md are the host's crates, each below its users; each has a README, and the
/// map of the program names it.
#[test]
fn the_architecture_page_draws_the_crates_as_they_are() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let map = std::fs::read_to_string(root().join("host/src/lib.rs")).unwrap();
    let drawing = page.split("```").nth(1).unwrap().lines().skip(1);
    let rows: Vec<&str> = drawing.filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!(rows, HOST);
    for (at, name) in HOST.iter().enumerate() {
        let dir = host_crate(name);
        for used in dependencies(&dir).iter().filter_map(|used| used.strip_prefix("kiso-")) {
            let Some(place) = HOST.iter().position(|other| *other == used) else { continue };
            assert!(place > at, "{name} uses {used}, which is drawn above it");
        }
        if *name != "kiso" {
            assert!(map.contains(&format!("(`host/{name}`)")), "the map in host/src/lib.rs does not name {name}");
            let readme = std::fs::read_to_string(dir.join("README.md")).unwrap_or_default();
            assert!(readme.contains("must never"), "host/{name}/README.md says what the crate must never do");
        }
    }
    // Paths on the page exist.
    for path in
        page.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && !word.contains(char::is_whitespace))
    {
        let inner = path.trim_end_matches('/');
        let of_a_home = inner.starts_with("sessions/") || inner == "cache";
        assert!(of_a_home || root().join(inner).exists(), "{path} is not there");
    }
}

/// Crates that the host uses, and all dependencies of each. They are built before the host, so each dependency costs time.
const BELOW: [(&str, &[&str]); 3] = [
    ("host/plan", &["data-encoding", "ring", "schemars", "serde", "serde_json", "strum"]),
    ("host/reflex", &["kiso-plan", "serde_json", "strsim"]),
    ("skills/data/table", &["csv", "serde", "serde_json"]),
];

#[test]
fn crates_below_the_host_use_little_and_nothing_above_them() {
    for (dir, wanted) in BELOW {
        let manifest = std::fs::read_to_string(root().join(dir).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let is_optional =
            |dependency: &toml::Value| dependency.get("optional").is_some_and(|is| is.as_bool() == Some(true));
        let used =
            manifest["dependencies"].as_table().unwrap().iter().filter(|(_, dependency)| !is_optional(dependency));
        assert_eq!(used.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), wanted, "{dir}");
        assert_eq!(manifest.get("build-dependencies"), None, "{dir}");
    }
}

/// Files of the host that write directly to a terminal, each with its reason.
const WRITERS: &[(&str, &str)] = &[
    ("host/src/cli/out.rs", "the one way: every other file uses its macros"),
    ("host/src/cli/log.rs", "the log, which has one formatter for all that is said in it"),
    ("host/src/cli/show.rs", "the spinner, whose only text is made printable where it is set"),
    ("host/src/cli/shell.rs", "what commands print: a stream of bytes, filtered piece by piece"),
    ("host/src/cli/acp.rs", "messages of a protocol, in JSON, for the editor at the other end"),
    ("host/src/cli/mcp.rs", "messages of a protocol, in JSON, for the program at the other end"),
    ("host/sandbox/src/skill/compiler/child.rs", "a process of its own, whose parent reads what it says"),
    ("host/src/cli/skill/build.rs", "the compiler that a person starts has kiso's standard error"),
];

/// The part of the code that writes to standard output or standard error.
fn writes(code: &str) -> Option<&'static str> {
    // Only checks for a terminal, or for its width.
    let mut code = code.to_owned();
    for harmless in [
        "Show::stdout()",
        "std::io::stdout().is_terminal()",
        "std::io::stderr().is_terminal()",
        "tcgetwinsize(std::io::stdout())",
        "tcgetwinsize(std::io::stderr())",
    ] {
        code = code.replace(harmless, "");
    }
    let ways = [
        "println!",
        "print!",
        "eprintln!",
        "eprint!",
        "dbg!",
        "stdout()",
        "stderr()",
        "io::stdout",
        "io::stderr",
        "/dev/tty",
        "ProgressBar",
        "tracing_subscriber",
        "error.print()",
    ];
    let is_whole = |at: usize| !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    ways.into_iter().find(|way| code.match_indices(way).any(|(at, _)| is_whole(at)))
}

/// Text from others reaches a terminal through `cli/out.rs`, and the log through its formatter. Any other way could forget to
/// remove an escape sequence.
#[test]
fn nothing_writes_to_a_terminal_by_itself() {
    for around in
        ["    println!(\"{x}\");", "std::io::stdout().lock()", "io::stderr().flush()", "eprint!(\"a\")", "dbg!(x)"]
    {
        assert!(writes(around).is_some(), "{around}");
    }
    for fine in
        ["outln!(\"{x}\");", "errln!()", "Show::stdout().dim(x)", "std::io::stdout().is_terminal()", "err!(\"x\")"]
    {
        assert_eq!(writes(fine), None, "{fine}");
    }
    let mut found = Vec::new();
    let mut used = std::collections::BTreeSet::new();
    for (name, path) in host_sources() {
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = circles::code(&text);
        for line in code.lines() {
            let Some(way) = writes(line) else { continue };
            match WRITERS.iter().find(|(file, _)| *file == name) {
                Some((file, _)) => drop(used.insert(*file)),
                None => found.push(format!("{name}: {way} in {}", line.trim())),
            }
        }
    }
    assert!(found.is_empty(), "use out!, outln!, err! and errln! of cli/out.rs: {found:#?}");
    let idle: Vec<_> = WRITERS.iter().filter(|(file, _)| !used.contains(file)).collect();
    assert!(idle.is_empty(), "they write nothing any more: {idle:?}");
}

const FORBIDDEN: &[&str] = &["helper", "util", "utils", "common", "misc"];

#[test]
fn nothing_is_called_by_a_word_that_says_nothing() {
    let mut found = Vec::new();
    for dir in ["host", "sdk/src", "skills", "tests/all"] {
        for path in sources(&root().join(dir), ".rs") {
            let stem = path.file_stem().unwrap().to_string_lossy().to_lowercase();
            if FORBIDDEN.contains(&stem.as_str()) {
                found.push(path.display().to_string());
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let mut words = line.split_whitespace().skip_while(|w| w.starts_with("pub"));
                let (Some(keyword), Some(name)) = (words.next(), words.next()) else { continue };
                if !["struct", "enum", "trait", "mod", "fn", "type"].contains(&keyword) {
                    continue;
                }
                let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                // These tests have the names by which the engine's rules are known.
                let given = path.ends_with("engine_rules.rs") && keyword == "mod";
                if !given && parts(&name).iter().any(|part| FORBIDDEN.contains(&part.as_str())) {
                    found.push(format!("{}: {keyword} {name}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// "PathHelper" and "path_helper" as "path", "helper".
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        if c != '_' {
            parts.last_mut().unwrap().extend(c.to_lowercase());
        }
    }
    parts
}

/// Files of more than 500 lines, each with the reason.
const LONG: &[(&str, &str)] =
    &[("skills/coreutils/src/sed/run.rs", "the commands of a script, one after the other as POSIX lists them")];

/// Reports sizes; a file of more than 500 lines has more than one subject. Tests at the end of a file and generated files do not
/// count; test files do.
#[test]
fn files_are_short() {
    let mut sizes = BTreeMap::new();
    for dir in ["host", "sdk", "skills", "tests", "fuzz"] {
        for path in sources(&root().join(dir), ".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.starts_with("// Made by ") {
                continue;
            }
            let lines = text.lines().take_while(|l| *l != "#[cfg(test)]").count();
            sizes.insert(path.strip_prefix(root()).unwrap().display().to_string(), lines);
        }
    }
    let mut lines: Vec<usize> = sizes.values().copied().collect();
    lines.sort_unstable();
    println!("{} files, median {} lines, longest {}", lines.len(), lines[lines.len() / 2], lines.last().unwrap());
    let is_listed = |file: &str| LONG.iter().any(|(long, _)| *long == file);
    let long: Vec<_> = sizes.iter().filter(|(file, n)| **n > 500 && !is_listed(file)).collect();
    assert!(long.is_empty(), "divide each by what it is about: {long:?}");
    let gone: Vec<_> = LONG.iter().filter(|(file, _)| sizes.get(*file).is_none_or(|n| *n <= 500)).collect();
    assert!(gone.is_empty(), "they are short by now: {gone:?}");
}

/// The `kiso` commands in README.md and docs/ exist: the binary knows each `kiso WORD` of a shell block.
#[test]
fn documented_commands_exist() {
    let home = Home::new();
    let mut files = sources(&root().join("docs"), ".md");
    files.push(root().join("README.md"));
    let mut seen = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for block in text.split("```sh\n").skip(1).map(|b| b.split("```").next().unwrap()) {
            for line in block.lines().map(str::trim).filter(|l| l.starts_with("kiso ")) {
                let words: Vec<&str> = line
                    .split_whitespace()
                    .skip(1)
                    .take_while(|w| w.chars().all(|c| c.is_ascii_lowercase()))
                    .take(2)
                    .collect();
                let Some(first) = words.first() else { continue };
                let mut args = vec![*first];
                if *first == "skill" {
                    args.push(words.get(1).unwrap_or_else(|| panic!("{}: {line}", file.display())));
                }
                args.push("--help");
                let ran = home.kiso(&args);
                assert_eq!(ran.code, 0, "{}: `{line}` is not a command of kiso", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen} commands were found in the documentation");
}

/// A frozen interface never changes, because components built today must load in later versions.
#[test]
fn the_frozen_interface_is_as_it_was() {
    let mut files: Vec<_> = sources(&root().join("wit/since_v0_1"), ".wit");
    files.sort();
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let found: String = digest.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    let frozen = std::fs::read_to_string(root().join("wit/since_v0_1/DIGEST")).unwrap();
    assert_eq!(
        found,
        frozen.trim(),
        "kiso:skill@0.1.0 changed; before its first release the digest may follow, after it never"
    );
}

/// Comments refer only to documents in the repository: others do not help a reader.
#[test]
fn nothing_refers_to_what_is_not_here() {
    let absent = ["seed 0", "seeds 0", "seed_0", "design §", "design.md"];
    let mut found = Vec::new();
    for dir in ["host", "sdk", "skills", "wit", "tests", "fuzz", "docs", "roles", "build"] {
        for ending in [".rs", ".toml", ".md", ".js", ".wit", ".py"] {
            for path in sources(&root().join(dir), ending) {
                if path.ends_with("all/house.rs") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
                for (number, line) in text.lines().enumerate() {
                    if absent.iter().any(|name| line.contains(name)) {
                        found.push(format!("{}:{}: {line}", path.display(), number + 1));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "documents that are not in the repository:\n{}", found.join("\n"));
}

/// The files at the top of the repository. A newcomer reads them first, so each additional file needs an entry here.
const TOP: [&str; 21] = [
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "build",
    "clippy.toml",
    "deny.toml",
    "docs",
    "examples",
    "fuzz",
    "host",
    "justfile",
    "packages",
    "roles",
    "rust-toolchain.toml",
    "rustfmt.toml",
];

/// The other directories at the top, each a workspace or a crate.
const CRATES: [&str; 4] = ["sdk", "skills", "tests", "wit"];

#[test]
fn nothing_else_stands_at_the_top() {
    let git = std::process::Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let Some(listed) = git.ok().filter(|listed| listed.status.success()) else {
        return missing_tool("what stands at the top level", "there is no git, or no repository of it");
    };
    let listed = String::from_utf8(listed.stdout).unwrap();
    let found: BTreeSet<&str> = listed.lines().map(|path| path.split('/').next().unwrap()).collect();
    let known: BTreeSet<&str> = TOP.into_iter().chain(CRATES).collect();
    assert_eq!(found, known);
}

/// A test whose tool is missing passes with a message when run by hand, and fails where `CI=true` promises the tool.
#[test]
fn a_missing_tool_is_a_failure_in_ci() {
    let alone = |test: &str, ci: bool| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env("PATH", "/nonexistent");
        command.env_remove("CI").env_remove("KISO_CHROMIUM");
        if ci {
            command.env("CI", "true");
        }
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for test in [
        "socket::the_documented_client_works",
        "webhooks::documented::the_documented_receiver_works",
        "life::systemd_finds_nothing_wrong_with_the_units",
        "page::chat::a_command_is_answered_beside_the_conversation",
        "docs::every_command_of_every_page_runs",
        "clients::official::the_official_client_for_python_is_answered",
        "fleet::a_server_keeps_what_it_has_confirmed_over_kills",
    ] {
        let (passed, said) = alone(test, false);
        assert!(passed && said.contains("!!! SKIPPED"), "{test}: {said}");
        let (passed, said) = alone(test, true);
        assert!(!passed && said.contains("cannot be left out with CI=true"), "{test}: {said}");
    }
}
