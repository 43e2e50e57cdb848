//! The patches of `tests/house`: each adds one feature as CONTRIBUTING.md describes, with no more files than its header allows.
//! `tests/house/run` builds and tests them; this test only checks that they apply, which takes no time.

use crate::harness::{missing_tool, root};
use std::path::PathBuf;
use std::process::Command;

/// The header of a patch, before its first file.
struct Header {
    /// `Files of code:`, the maximum number of code files.
    max_code: usize,
    /// `Tests:`, filters for the tests of the patch.
    tests: Vec<String>,
}

fn patches() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("tests/house")).expect("the folder is there").flatten();
    let mut found: Vec<_> = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "patch")).collect();
    found.sort();
    found
}

fn header(text: &str) -> Result<Header, &'static str> {
    let head = text.split("diff --git ").next().unwrap_or_default();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let max_code = field("Files of code:").and_then(|n| n.parse().ok()).ok_or("it has no line `Files of code: N`")?;
    let tests: Vec<_> = field("Tests:").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    if tests.is_empty() { Err("it has no line `Tests: FILTER...`") } else { Ok(Header { max_code, tests }) }
}

/// The files of a patch, from its `diff --git` lines.
fn files(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("diff --git a/")?.rsplit_once(" b/")).map(|(_, b)| b).collect()
}

/// Whether a file is code: neither a test nor a text for people. A role's prompt is a text for models.
fn is_code(file: &str) -> bool {
    !file.starts_with("tests/") && !file.starts_with("docs/") && !file.ends_with(".md")
}

#[test]
fn each_patch_applies_and_keeps_to_its_files() {
    let (patches, mut wrong) = (patches(), Vec::new());
    assert!(!patches.is_empty(), "there are patches in tests/house");
    for patch in patches {
        let name = patch.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&patch).unwrap();
        let header = match header(&text) {
            Ok(header) => header,
            Err(why) => {
                wrong.push(format!("{name}: {why}"));
                continue;
            }
        };
        let code: Vec<_> = files(&text).into_iter().filter(|file| is_code(file)).collect();
        if code.is_empty() || code.len() > header.max_code {
            wrong.push(format!("{name}: {} files of code, not 1 to {}: {code:?}", code.len(), header.max_code));
        }
        let written = |test: &String| text.contains(test.split("::").next().unwrap_or_default());
        if !header.tests.iter().any(written) {
            wrong.push(format!("{name}: brings none of the tests that it names: {:?}", header.tests));
        }
        let checked = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root()).output();
        match checked {
            Err(_) => return missing_tool("whether the patches of tests/house apply", "there is no git"),
            Ok(out) if out.status.success() => {}
            Ok(out) => wrong.push(format!("{name}: {}", String::from_utf8_lossy(&out.stderr).trim())),
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nwrite the change again by CONTRIBUTING.md and save it with `git diff`",
        wrong.join("\n")
    );
}

#[test]
fn a_patch_says_what_it_is() {
    assert!(header("diff --git a/x b/x\nTests: x\nFiles of code: 1\n").is_err(), "after the first file it is none");
    assert!(header("Files of code: 3\n").is_err());
    let fine = header("Adds a thing.\n\nFiles of code: 3\nTests: thing:: house::\n\ndiff --git a/x b/x\n").unwrap();
    assert_eq!((fine.max_code, fine.tests.len()), (3, 2));
    let text = "diff --git a/host/src/a.rs b/host/src/a.rs\ndiff --git a/docs/a.md b/docs/a.md\n";
    assert_eq!(files(text), ["host/src/a.rs", "docs/a.md"]);
    assert!(is_code("host/src/a.rs") && is_code("wit/draft/a.wit") && is_code("host/Cargo.toml"));
    assert!(!is_code("docs/a.md") && !is_code("tests/all/a.rs") && !is_code("roles/a.md"));
}
