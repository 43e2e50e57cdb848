//! Guests that other toolchains built: JavaScript, Python, C, and rustc alone. Skipped with a message if a tool is missing.
//!
//! Guests and their compiled code are rebuilt only after a change: the guests are in `target/foreign`, and their code is in
//! `target/foreign/compiled` with the key that signs it. The homes of these tests share both.

mod javascript;

use crate::harness::{Home, missing_tool, root, skipped};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the guests once into target/foreign.
fn built() -> &'static (PathBuf, String) {
    static BUILT: OnceLock<(PathBuf, String)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/foreign");
        let output =
            Command::new("sh").arg(root().join("tests/foreign/build.sh")).arg(&out).output().expect("sh starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        eprintln!("{text}");
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        (out, text)
    })
}

/// The directory that keeps compiled code between test runs.
fn compiled() -> &'static PathBuf {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| {
        const MAX_BYTES: u64 = 512 << 20;
        let dir = built().0.join("compiled");
        std::fs::create_dir_all(&dir).unwrap();
        let bytes: u64 = std::fs::read_dir(&dir).unwrap().flatten().map(|e| e.metadata().unwrap().len()).sum();
        if bytes > MAX_BYTES {
            std::fs::remove_dir_all(&dir).unwrap();
            std::fs::create_dir_all(&dir).unwrap();
        }
        if !dir.join("key").exists() {
            let home = Home::new();
            home.kiso(&["skill", "list"]).ok();
            std::fs::copy(home.path().join("key"), dir.join("key")).unwrap();
        }
        dir
    })
}

/// A home with the compiled code of earlier runs.
fn warm_home() -> Home {
    let home = Home::new();
    let cache = home.path().join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    for path in std::fs::read_dir(compiled()).unwrap().flatten().map(|e| e.path()) {
        let to = if path.ends_with("key") { home.path() } else { cache.clone() };
        if path.extension().is_none_or(|e| e != "partial") {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
    home
}

/// Saves the home's compiled code for later runs.
fn keep_compiled(home: &Home) {
    for path in std::fs::read_dir(home.path().join("cache")).unwrap().flatten().map(|e| e.path()) {
        let to = compiled().join(path.file_name().unwrap());
        if path.extension().is_some_and(|e| e == "cwasm") && !to.exists() {
            // Other tests read the directory meanwhile.
            let partial = to.with_extension(format!("{}.partial", std::process::id()));
            std::fs::copy(&path, &partial).unwrap();
            std::fs::rename(&partial, &to).unwrap();
        }
    }
}

/// A home with the guest installed. Returns `None`, with a message, if the guest could not be built.
fn home_with(name: &str) -> Option<Home> {
    let (dir, report) = built();
    if let Some(line) = report.lines().find(|l| l.starts_with(&format!("SKIPPED {name}:"))) {
        left_out(name, line);
        return None;
    }
    let home = warm_home();
    let wasm = dir.join(format!("{name}.wasm"));
    let manifest = dir.join(format!("{name}.toml"));
    let mut args = vec!["skill", "add", wasm.to_str().unwrap(), "--name", name, "--grant", "all"];
    if manifest.exists() {
        args.extend(["--manifest", manifest.to_str().unwrap()]);
    }
    home.kiso(&args).ok().prints(&["loaded", name]);
    keep_compiled(&home);
    Some(home)
}

/// A missing tool is a failure in CI; one that cannot be fetched without network is not.
#[track_caller]
fn left_out(what: &str, line: &str) {
    if line.contains("cannot install") { skipped(what, line) } else { missing_tool(what, line) }
}

/// `exception` is what the user sees of an exception that is not a failure of the SDK.
fn kiso_world(name: &str, file: &str, exception: &str) {
    let Some(home) = home_with(name) else { return };
    let echo = home.call(name, &json!({ "text": "grüße" }));
    assert_eq!((&echo["text"], &echo["data"]["session"]), (&json!("grüße"), &json!("default")), "{echo}");
    for count in ["called 1 times", "called 2 times"] {
        home.kiso(&["skill", "run", name, "mode=count"]).ok().prints(&[count]);
    }
    let written = home.call(name, &json!({ "mode": "write", "text": "hi" }));
    assert_eq!(written["files"][0]["path"], file, "{written}");
    assert!(written["text"].as_str().unwrap().starts_with("/pub/"), "{written}");
    assert_eq!(std::fs::read_to_string(home.work("default").join(file)).unwrap(), "hi");
    let failure = home.call(name, &json!({ "mode": "failure" }));
    assert_eq!(
        (&failure["error"]["code"], &failure["error"]["retryable"]),
        (&json!("not-today"), &json!(true)),
        "{failure}"
    );
    let thrown = home.call(name, &json!({ "mode": "throw" }));
    assert_eq!(thrown["error"]["code"], "trap", "{thrown}");
    assert_eq!(thrown["error"]["message"], format!("it crashed: {exception}"), "{thrown}");
    let secret = home.call(name, &json!({ "mode": "secret" }));
    assert_eq!(secret["error"]["code"], "undeclared", "{secret}");
    home.kiso(&["skill", "run", name, "mode=allocate"]).exit(5).says(&["memory"]);
}

#[test]
fn javascript_in_the_world_of_kiso() {
    kiso_world("js-skill", "js.txt", "an exception that is no failure, at run (skill.js:38:19)");
}

#[test]
fn python_in_the_world_of_kiso() {
    kiso_world("py-skill", "py.txt", "ValueError: an exception that is no failure, at run (skill.py:34)");
}

#[test]
fn javascript_as_plain_functions() {
    let Some(home) = home_with("js-functions") else { return };
    let listed = home.kiso(&["skill", "info", "js-functions", "--json"]).json();
    let tools: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["js-functions.mean", "js-functions.clamp", "js-functions.words", "js-functions.turn"]);
    assert_eq!(home.call("js-functions.mean", &json!({ "values": [1, 2, 6] }))["data"], 3.0);
    let empty = home.call("js-functions.mean", &json!({ "values": [] }));
    assert_eq!(empty["error"]["message"], "there are no values", "{empty}");
    assert_eq!(home.call("js-functions.clamp", &json!({ "value": 9, "high": 5 }))["data"], 5);
    assert_eq!(home.call("js-functions.turn", &json!({ "text": "abc", "direction": "backward" }))["text"], "cba");
    let words = home.call("js-functions.words", &json!({ "text": "a b a" }));
    assert_eq!(words["data"], json!([{ "text": "a", "count": 2 }, { "text": "b", "count": 1 }]));
}

fn command(name: &str, text: &str) {
    let Some(home) = home_with(name) else { return };
    home.kiso(&["skill", "run", name, "text=abc"]).ok().prints(&[text]);
    home.kiso(&["skill", "run", name, "text=abc", "fail=true"]).exit(1).says(&["exit code"]);
    home.kiso(&["skill", "run", name]).exit(2).says(&["text: is required"]);
}

#[test]
fn javascript_as_a_command() {
    command("js-command", "cba");
}

#[test]
fn rustc_as_a_command() {
    command("rustc-command", "\"text\":\"abc\"");
}

#[test]
fn c_as_a_preview_1_module() {
    let Some(home) = home_with("c-preview1") else { return };
    home.kiso(&["skill", "info", "c-preview1"]).ok().prints(&["WASI command"]);
    home.kiso(&["skill", "run", "c-preview1", "text=abc"]).ok().prints(&["ABC"]);
    home.kiso(&["skill", "run", "c-preview1", "text=abc", "fail=true"]).exit(1).says(&["exit code 3", "asked to fail"]);
}

/// A C file gives the same component wherever it is compiled and packed.
#[test]
fn c_is_reproducible() {
    let (_, report) = built();
    if let Some(line) = report.lines().find(|l| l.starts_with("SKIPPED c-preview1:")) {
        return left_out("C", line);
    }
    let home = Home::new();
    let packed = ["one", "another/place"].map(|place| {
        let dir = home.dir.path().join(place);
        std::fs::create_dir_all(&dir).unwrap();
        for file in ["command.c", "kiso.toml"] {
            std::fs::copy(root().join("tests/foreign/c-preview1").join(file), dir.join(file)).unwrap();
        }
        let sysroot = format!("--sysroot={}", std::env::var("WASI_SYSROOT").unwrap_or_else(|_| "/usr".to_owned()));
        let mut clang = Command::new(std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned()));
        clang.args(["--target=wasm32-wasi", &sysroot, "-Os", "", "command.c", "-o", "out.wasm"]);
        assert!(clang.current_dir(&dir).status().unwrap().success());
        home.kiso(&["skill", "pack", dir.join("out.wasm").to_str().unwrap()]).ok().prints(&["packed c-preview1"]);
        std::fs::read(dir.join("out.wasm")).unwrap()
    });
    assert!(packed[0] == packed[1], "two builds of the same sources differ");
}

#[test]
fn a_new_project_in_python_builds() {
    let (dir, report) = built();
    if let Some(line) = report.lines().find(|l| l.starts_with("SKIPPED py-skill:")) {
        return left_out("kiso skill new --lang python", line);
    }
    let home = Home::new();
    let project = home.dir.path().join("python");
    home.kiso(&["skill", "new", "hello", "--lang", "python", "--dir", project.to_str().unwrap()]).ok();
    // Uses the tool that built the guest, so that nothing is fetched twice.
    std::os::unix::fs::symlink(tool(dir, "py-"), project.join(".venv")).unwrap();
    import_late(&project.join("skill.py"));
    home.kiso(&["skill", "build", project.to_str().unwrap()]).ok().prints(&["hello.wasm"]);
    let first = std::fs::read(project.join("hello.wasm")).unwrap();
    // Builds it again. The build must find no change: a rebuild would give other bytes.
    home.kiso(&["skill", "test", "--dir", project.to_str().unwrap(), "name=Ada"]).ok().prints(&["Ada"]);
    assert!(first == std::fs::read(project.join("hello.wasm")).unwrap(), "an unchanged project was built again");
}

/// The directory of a tool that `build.sh` installed.
fn tool(built: &Path, prefix: &str) -> PathBuf {
    let mut tools = std::fs::read_dir(built.join("tools")).unwrap().flatten().map(|e| e.path());
    tools.find(|p| p.is_dir() && p.file_name().unwrap().to_str().unwrap().starts_with(prefix)).unwrap()
}

/// Makes the skill import modules inside a function, as people write Python: the component has no files to import from.
fn import_late(skill: &std::path::Path) {
    let text = std::fs::read_to_string(skill).unwrap();
    let line = "        greeting = f\"Hello, {name}!\"\n";
    assert!(text.contains(line), "{text}");
    let late = "        import heapq, statistics, decimal, csv, zipfile\n        from datetime import datetime\n        \
                assert datetime.strptime(\"2024-05-01\", \"%Y-%m-%d\").year == 2024\n        \
                assert heapq.nsmallest(1, [3, 1]) == [1] and statistics.mean([1, 3]) == 2\n        \
                assert \"é\".encode(\"latin-1\") == b\"\\xe9\" and \"é\".encode(\"cp1252\") == b\"\\xe9\"\n";
    std::fs::write(skill, text.replace(line, &format!("{late}{line}"))).unwrap();
}
