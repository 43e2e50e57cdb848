//! The official `openai` packages for Python and JavaScript against a daemon, and the programs of docs/clients.md.

use super::served;
use crate::harness::{Home, missing_tool, root};
use crate::served::Served;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where the official client of a language is; `None`, loudly, where it cannot be had.
fn official(language: &str) -> Option<PathBuf> {
    static FETCHED: OnceLock<String> = OnceLock::new();
    let report = FETCHED.get_or_init(|| {
        let out = root().join("target/openai");
        let output = Command::new("sh").arg(root().join("tests/openai/fetch.sh")).arg(out).output();
        let Ok(output) = output else { return "there is no sh".to_owned() };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    });
    if let Some(dir) = report.lines().find_map(|line| line.strip_prefix(&format!("READY {language} "))) {
        return Some(dir.into());
    }
    missing_tool(&format!("the openai package for {language}"), report);
    None
}

/// Runs a program with the official client of its language. Where it prints "restart", the daemon is killed and another one started,
/// whose address it reads.
#[track_caller]
fn run(home: &Home, mut served: Served, other: &str, language: &str, script: &Path) -> Option<(String, Served)> {
    let dir = official(language)?;
    let mut command = match language {
        "python" => Command::new(dir.join("bin/python")),
        _ => Command::new("node"),
    };
    // Modules are looked for from where the program is.
    let place = match language {
        "python" => script.to_owned(),
        _ => dir.join(format!("{}-{}", std::process::id(), script.file_name().unwrap().to_str().unwrap())),
    };
    if place != script {
        std::fs::copy(script, &place).unwrap();
    }
    let base = |served: &Served| format!("http://{}/v1", served.address);
    command.arg(&place).env("OPENAI_BASE_URL", base(&served)).env("OTHER_KEY", other);
    command.env("OPENAI_API_KEY", served.token.as_deref().unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut errors = child.stderr.take().unwrap();
    let wrong = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    });
    let mut said = String::new();
    for line in output.lines().map_while(Result::ok) {
        if line == "restart" {
            let token = served.token.clone();
            served.kill();
            served = Served::start(home);
            served.token = token;
            writeln!(input, "{}", base(&served)).unwrap();
        }
        said += &format!("{line}\n");
    }
    let status = child.wait().unwrap();
    if place != script {
        std::fs::remove_file(&place).unwrap();
    }
    assert!(status.success(), "{said}{}\n{}", wrong.join().unwrap(), served.log());
    Some((said, served))
}

#[test]
fn the_official_client_for_python_is_answered() {
    if official("python").is_none() {
        return;
    }
    let home = Home::new();
    let (served, other) = served(&home);
    let ran = run(&home, served, &other, "python", &root().join("tests/openai/client.py"));
    let Some((said, _)) = ran else { return };
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 15, "{said}");
}

#[test]
fn the_official_client_for_javascript_is_answered() {
    if official("javascript").is_none() {
        return;
    }
    let home = Home::new();
    let (served, other) = served(&home);
    let ran = run(&home, served, &other, "javascript", &root().join("tests/openai/client.mjs"));
    let Some((said, _)) = ran else { return };
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 9, "{said}");
}

/// The programs that docs/clients.md shows run as they stand there.
#[test]
fn the_programs_of_the_page_run_as_written() {
    let page = std::fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let home = Home::new();
    let (served, other) = served(&home);
    let section = |heading: &str| {
        let rest = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
        rest.split("\n## ").next().unwrap_or_default()
    };
    let mut served = served;
    for (language, fence, file) in [("Python", "```python\n", "page.py"), ("JavaScript", "```js\n", "page.mjs")] {
        let blocks = section(language).split(fence).skip(1);
        let programs: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
        assert!(!programs.is_empty(), "the page shows none in {language}");
        for program in programs {
            let script = home.file(file, program);
            if official(&language.to_lowercase()).is_none() {
                continue;
            }
            let (said, still) = run(&home, served, &other, &language.to_lowercase(), &script).expect("it is there");
            assert!(said.contains("12"), "{program}\nprinted {said}");
            served = still;
        }
    }
}
