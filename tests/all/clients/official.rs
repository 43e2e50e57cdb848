//! The official `openai` packages for Python and JavaScript against a daemon, and the programs of docs/clients.md.

use super::served;
use crate::client_page::{OfficialClients, blocks, section};
use crate::harness::{Home, root};
use crate::served::Served;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory of a language's official client.
fn official(language: &str) -> Option<PathBuf> {
    static CLIENTS: OfficialClients = OfficialClients::new("openai");
    CLIENTS.dir(language, &format!("the openai package for {language}"))
}

/// Runs a program with the official client of its language. When it prints "restart", the daemon is killed and another one
/// started, whose address the program reads.
#[track_caller]
fn run(home: &Home, mut served: Served, other: &str, language: &str, script: &Path) -> Option<(String, Served)> {
    let dir = official(language)?;
    let mut command = match language {
        "python" => Command::new(dir.join("bin/python")),
        _ => Command::new("node"),
    };
    // Node resolves modules from the program's directory.
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

/// The programs in docs/clients.md run unchanged.
#[test]
fn the_programs_of_the_page_run_as_written() {
    let home = Home::new();
    let (mut served, other) = served(&home);
    for (heading, language, fence, file) in
        [("Python", "python", "python", "page.py"), ("JavaScript", "javascript", "js", "page.mjs")]
    {
        let text = section(heading);
        let programs = blocks(&text, fence);
        assert!(!programs.is_empty(), "the page shows none in {heading}");
        if official(language).is_none() {
            continue;
        }
        for program in programs {
            let script = home.file(file, program);
            let (said, still) = run(&home, served, &other, language, &script).expect("it is there");
            assert!(said.contains("12"), "{program}\nprinted {said}");
            served = still;
        }
    }
}
