//! Runs the `sh` blocks of README.md and of each page in docs/, in order, in a separate home for each page. `tests/first-minutes`
//! plays them; on its own it plays all in one home, with some inputs of a stranger besides.

use crate::harness::{Home, guest, missing_tool, root};
use std::path::Path;
use std::process::Command;

#[test]
fn every_command_of_every_page_runs() {
    for tool in ["bash", "curl", "python3"] {
        if !there(tool) {
            return missing_tool("the commands of the documentation", &format!("there is no {tool}"));
        }
    }
    let mut pages = Vec::new();
    collect(&root().join("docs"), &mut pages);
    pages.push(root().join("README.md"));
    // Pages with an example in C are left out if C components cannot be built here.
    let with_c = builds_c();
    let (pages, left_out): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| with_c || !shows_c(page));
    for page in left_out {
        missing_tool(
            &page.display().to_string(),
            "clang cannot link for wasm32-wasi (Debian: clang lld wasi-libc libclang-rt-14-dev-wasm32)",
        );
    }
    let kiso = Home::new().command(&[]).get_program().to_owned();
    let mut command = Command::new("python3");
    command.arg(root().join("tests/first-minutes")).arg("--kiso").arg(kiso).args(&pages);
    let ran = command.stdin(std::process::Stdio::null()).output().expect("python3 starts");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let played = said.lines().filter(|line| line.starts_with("ok   docs/")).count();
    assert!(played > 12, "commands of {played} pages were played:\n{said}");
}

#[test]
fn every_link_leads_to_a_page() {
    let mut pages = Vec::new();
    collect(&root().join("docs"), &mut pages);
    pages.extend([root().join("README.md"), root().join("CONTRIBUTING.md")]);
    let (mut broken, mut seen) = (Vec::new(), 0);
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().expect("there is a first part");
            if file.is_empty() || file.contains("://") {
                continue;
            }
            seen += 1;
            if !page.parent().expect("it lies in a directory").join(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(seen > 20, "{seen} links were found");
}

/// A compilation that takes minutes shows its progress: the first commands of README.md and of the guide do not hide cargo's
/// output.
#[test]
fn the_first_commands_are_not_silent() {
    for page in ["README.md", "docs/getting-started.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
        let commands: Vec<_> = text.lines().filter(|line| line.contains("cargo ")).collect();
        assert!(page != "README.md" || commands.len() > 1, "{page} has commands of cargo");
        let silent = commands.iter().find(|line| line.contains("--quiet") || line.split(' ').any(|word| word == "-q"));
        assert_eq!(silent, None, "{page}");
    }
}

/// The manifest shown in docs/skills.md is valid.
#[test]
fn the_manifest_of_the_page_can_be_packed_and_installed() {
    let home = Home::new();
    let page = std::fs::read_to_string(root().join("docs/skills.md")).expect("the page is there");
    let manifest = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it shows one");
    let toml = home.file("news.toml", manifest);
    let wasm = home.file("news.wasm", std::fs::read(guest("echo")).expect("it was built"));
    let [wasm, toml] = [&wasm, &toml].map(|path| path.to_str().expect("a plain path"));
    home.kiso(&["skill", "pack", wasm, "--manifest", toml]).ok();
    home.kiso(&["skill", "add", wasm, "--grant", "all"]).ok().prints(&["loaded news"]);
}

fn collect(dir: &Path, pages: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("docs/ is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
}

fn shows_c(page: &Path) -> bool {
    std::fs::read_to_string(page).expect("a page can be read").contains("\nclang ")
}

fn builds_c() -> bool {
    let dir = tempfile::tempdir().expect("there is room");
    let source = dir.path().join("probe.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("there is room");
    let mut clang = Command::new("clang");
    clang.arg("--target=wasm32-wasi").arg(&source).arg("-o").arg(dir.path().join("probe.wasm"));
    clang.output().is_ok_and(|output| output.status.success())
}

fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}
