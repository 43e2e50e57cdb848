//! Every command that README.md and the pages of docs/ show does what it says, or at least ends well: the `sh` blocks of a
//! page are run in their order, in a home of the page's own.
//!
//! Three things are understood beyond the shell's own: a line `kiso serve …` starts a daemon that lives until the page's
//! end, on a free port that stands in for 8333; a line that ends in `&` is waited for until its run is under way; and
//! `# exit code N` behind a command says how it ends.

use crate::harness::{Home, guest, missing_tool, root};
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a page's script begins with. `kiso` is the binary under test.
const PRELUDE: &str = r#"
set -euo pipefail
serve() {
  kiso --json serve --port 0 "$@" > served.json 2> serve.log &
  daemon=$!
  trap 'kill $daemon' EXIT
  until [ -s served.json ]; do kill -0 $daemon || { cat serve.log >&2; exit 1; }; sleep 0.05; done
  PORT=$(sed -E 's/.*:([0-9]+)".*/\1/' served.json)
}
under_way() {
  for _ in $(seq 600); do
    trace=$(kiso --json trace last 2>/dev/null || true)
    if grep -q '"status":"running"' <<< "$trace" && grep -q '"kind":"started"' <<< "$trace"; then return 0; fi
    sleep 0.05
  done
  echo 'no run got under way' >&2
  exit 1
}
"#;

/// How long a page may take before it counts as hanging.
const GUARD: Duration = Duration::from_secs(900);

/// The first two blocks of the README build and test everything: `.ci/run` runs them.
const OF_CI: usize = 2;

#[test]
fn every_command_of_every_page_runs() {
    if !there("bash") {
        return missing_tool("the commands of the documentation", "there is no bash");
    }
    let mut pages = Vec::new();
    collect(&root().join("docs"), &mut pages);
    pages.push(root().join("README.md"));
    let (mut failed, mut lines) = (String::new(), 0);
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        let is_readme = page.ends_with("README.md");
        let skip = if is_readme { OF_CI } else { 0 };
        let blocks: Vec<&str> = blocks(&text).skip(skip).collect();
        if blocks.is_empty() {
            continue;
        }
        if blocks.iter().any(|block| block.contains("curl ")) && !there("curl") {
            missing_tool(&page.display().to_string(), "there is no curl");
            continue;
        }
        lines += blocks.iter().map(|block| block.lines().count()).sum::<usize>();
        if let Err(said) = run(&blocks, is_readme.then_some(&text)) {
            writeln!(failed, "{}:\n{said}", page.display()).expect("a string takes any text");
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
    assert!(lines > 40, "{lines} commands were found");
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

/// The `sh` blocks of a page.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().expect("there is a first part"))
}

fn run(blocks: &[&str], readme: Option<&str>) -> Result<(), String> {
    let home = Home::new();
    // A stranger has an empty home and an empty directory; whatever a page works on, it makes.
    std::fs::create_dir_all(home.dir.path().join("here")).expect("there is room");
    if let Some(readme) = readme {
        cloned(&home, readme);
    }
    let script: String = blocks.iter().flat_map(|block| block.lines()).map(line).collect();
    let binaries = home.dir.path().join("bin");
    std::fs::create_dir(&binaries).expect("there is room");
    let kiso = home.command(&[]).get_program().to_owned();
    std::os::unix::fs::symlink(kiso, binaries.join("kiso")).expect("a link can be made");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{PRELUDE}{script}")]).current_dir(home.dir.path().join("here"));
    command.env("KISO_HOME", home.path()).env("PATH", format!("{}:{path}", binaries.display()));
    command.env_remove("KISO_LOG").stdin(std::process::Stdio::null());
    // Into a file: what is left running in the background must not hold the test up by holding a pipe.
    let log = home.dir.path().join("log");
    let file = std::fs::File::create(&log).expect("there is room");
    command.stdout(file.try_clone().expect("a file has room for two")).stderr(file).process_group(0);
    let mut child = command.spawn().expect("bash starts");
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().expect("it was started here") {
            Some(status) => break Some(status),
            None if began.elapsed() > GUARD => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let group = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
    match ended {
        Some(status) if status.success() => Ok(()),
        ended => {
            let said = String::from_utf8_lossy(&std::fs::read(&log).expect("it was written here")).into_owned();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(25)..].join("\n");
            Err(format!("{last}\n({})", ended.map_or("it did not end".to_owned(), |status| status.to_string())))
        }
    }
}

/// A line of a page as a line of the script.
fn line(line: &str) -> String {
    let line = line.replace("8333", "$PORT");
    let told = format!("echo '> {}' >&2\n", line.replace('\'', "'\\''"));
    if let Some(options) = line.strip_prefix("kiso serve") {
        return format!("{told}serve {}\n", options.replace("--port $PORT", ""));
    }
    if let Some((command, code)) = line.split_once("# exit code ") {
        return format!("{told}code=0; {command} || code=$?; [ $code = {code} ]\n");
    }
    let wait = match line.as_str() {
        line if line.ends_with(" &") => "begun=$!\nunder_way\n",
        // A person does not type the next line before it is gone.
        line if line.starts_with("kill ") || line.starts_with("kiso cancel") => {
            "[ -z \"${begun:-}\" ] || wait $begun || true\n"
        }
        _ => "",
    };
    // In the middle of a command that goes on, nothing may stand between.
    let told = if line.starts_with("kiso ") { told.as_str() } else { "" };
    format!("{told}{line}\n{wait}")
}

/// What lies beside a stranger who reads the README: the examples of the repository, and what its first command left.
fn cloned(home: &Home, readme: &str) {
    let examples = home.dir.path().join("here/examples");
    std::fs::create_dir_all(&examples).expect("there is room");
    for entry in std::fs::read_dir(root().join("examples")).expect("there are examples").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "csv") {
            std::fs::copy(entry.path(), examples.join(entry.file_name())).expect("it can be copied");
        }
    }
    let first = blocks(readme).next().expect("the README begins with a command");
    let message = first.rsplit('\'').nth(1).expect("it ends with a message");
    let file = examples.join("weather.csv");
    home.kiso(&["run", "--file", file.to_str().expect("a plain path"), message]).ok();
}

/// The manifest that docs/skills.md shows is one.
#[test]
fn the_manifest_of_the_page_can_be_packed_and_installed() {
    let home = Home::new();
    let page = std::fs::read_to_string(root().join("docs/skills.md")).expect("the page is there");
    let manifest = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it shows one");
    let toml = home.file("search.toml", manifest);
    let wasm = home.file("search.wasm", std::fs::read(guest("echo")).expect("it was built"));
    let [wasm, toml] = [&wasm, &toml].map(|path| path.to_str().expect("a plain path"));
    home.kiso(&["skill", "pack", wasm, "--manifest", toml]).ok();
    home.kiso(&["skill", "add", wasm, "--grant", "all"]).ok().prints(&["loaded search"]);
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

fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}
