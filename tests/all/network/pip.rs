//! pip in kiso and the same pip in the host's Python, with one index on loopback.

use crate::harness::{Home, missing_tool, root};
use crate::{python, web};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Creates the wheels of the index, and writes the digest of each project's first wheel.
const WHEELS: &str = r#"
import hashlib, os, sys, zipfile
def wheel(name, version, requires=(), extra=(), python=None):
    info = f"{name}-{version}.dist-info"
    meta = [f"Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: The package {name}", "License: MIT"]
    meta += [f"Requires-Python: {python}"] if python else []
    meta += [f"Requires-Dist: {one}" for one in requires]
    meta += ["Provides-Extra: more"] + [f"Requires-Dist: {one} ; extra == 'more'" for one in extra] if extra else []
    files = {f"{name}.py": f"V = '{version}'\n", f"{info}/METADATA": "\n".join(meta) + "\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
    path = os.path.join(sys.argv[1], f"{name}-{version}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(zipfile.ZipInfo(inner, (2024, 1, 1, 0, 0, 0)), text)
    with open(path, "rb") as file, open(os.path.join(sys.argv[2], name), "w") as digest:
        digest.write(hashlib.sha256(file.read()).hexdigest())
wheel("alpha", "2.0"); wheel("alpha", "1.1"); wheel("alpha", "1.0")
wheel("gamma", "1.0"); wheel("beta", "1.0", ["alpha>=1"], ["gamma"]); wheel("clash", "1.0", ["alpha>=1.1"])
wheel("future", "1.0", python=">=3.99")
"#;

/// The index; the newest version of `alpha` is yanked.
fn index(wheels: std::path::PathBuf) -> String {
    web::serve(move |path| {
        let answer = |kind: &str, body: &[u8]| {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), body].concat()
        };
        if let Some(name) = path.strip_prefix("/files/") {
            return std::fs::read(wheels.join(name)).map_or_else(
                |_| b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
                |bytes| answer("application/octet-stream", &bytes),
            );
        }
        let project = path.trim_start_matches("/simple/").trim_end_matches('/');
        let mut names: Vec<String> = std::fs::read_dir(&wheels)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name.starts_with(&format!("{project}-")));
        names.sort();
        if names.is_empty() {
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
        }
        let link = |name: &String| {
            let more = match &name[..] {
                "alpha-2.0-py3-none-any.whl" => " data-yanked=\"it was broken\"",
                name if name.starts_with("future") => " data-requires-python=\"&gt;=3.99\"",
                _ => "",
            };
            format!("<a href=\"/files/{name}\"{more}>{name}</a>\n")
        };
        answer("text/html", names.iter().map(link).collect::<String>().as_bytes())
    })
}

/// The lines by name.
fn lines() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("tests/all/network/pip-lines.sh")).unwrap();
    let cases = text.split("\n## ").skip(1);
    cases
        .map(|case| case.split_once('\n').map(|(name, line)| (name.to_owned(), line.trim().to_owned())).unwrap())
        .collect()
}

/// The comparable part of two outputs: without paths, sizes, times, names of the Pythons, and notices about a newer pip.
fn plain(text: &str, places: &[&str]) -> String {
    let mut text = text.to_owned();
    for place in places {
        text = text.replace(place, "PLACE");
    }
    // In kiso, pip is a separate package; on the host, it is outside the environment.
    text = text.replace(", {\"name\": \"pip\", \"version\": \"26.3\"}", "");
    let words = |line: &str| {
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            let is_version = word.matches('.').count() == 2
                && word.starts_with("3.")
                && word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ';');
            words.push(if is_version { "PYTHON".to_owned() } else { word.to_owned() });
        }
        words.join(" ")
    };
    let is_about = |line: &&str| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let others = ["Downloading ", "Location: ", "kiso: ", "---"];
        !line.is_empty()
            && !line.contains("[notice]")
            && !others.iter().any(|begin| line.starts_with(begin))
            && !["pip 26.3", "pip==26.3"].contains(&line.as_str())
    };
    text.lines().filter(is_about).map(words).map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
#[ignore = "starts pip sixty times"]
fn lines_are_those_of_pip() {
    let Some(home) = python::home() else { return };
    let there = tempfile::tempdir().unwrap();
    let [wheels, digests, host] = ["wheels", "digests", "host"].map(|name| there.path().join(name));
    [&wheels, &digests, &host].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let made = Command::new("python3").args(["-c", WHEELS]).args([&wheels, &digests]).status();
    if !made.is_ok_and(|status| status.success()) {
        return missing_tool("pip on the host", "there is no python3");
    }
    let pip = root().join("target/python/pip-26.3-py3-none-any.whl");
    let address = index(wheels);
    home.kiso(&["network", "allow", &address, "--private"]).ok();
    // A line starts pip several times.
    home.config("[exec]\ntimeout_s = 600\n");
    let settings = format!(
        "export U=http://{address} PIP_INDEX_URL=http://{address}/simple PIP_TRUSTED_HOST=127.0.0.1 PIP_DISABLE_PIP_VERSION_CHECK=1; "
    );
    let mut differences = BTreeMap::new();
    for (at, (name, line)) in lines().into_iter().enumerate() {
        let session = format!("pip-{at}");
        let work = home.work(&session);
        std::fs::create_dir_all(work.join(".digests")).unwrap();
        for entry in std::fs::read_dir(&digests).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), work.join(".digests").join(entry.file_name())).unwrap();
        }
        let ours = in_kiso(home, &session, &format!("{settings}export H=.digests; {line}"));
        let theirs = on_host(&host.join(&session), &pip, &format!("{settings}export H={}; {line}", digests.display()));
        if ours != theirs {
            differences.insert(name, format!("$ {line}\npip:\n{theirs}kiso:\n{ours}"));
        }
    }
    let page = std::fs::read_to_string(root().join("docs/python.md")).unwrap();
    let unknown: Vec<_> = differences.iter().filter(|(name, _)| !page.contains(&format!("`{name}`"))).collect();
    assert!(
        unknown.is_empty(),
        "{}",
        unknown.iter().map(|(name, text)| format!("## {name}\n{text}\n")).collect::<String>()
    );
    let known = page.split("Differences from pip").nth(1).unwrap().split("\n## ").next().unwrap();
    for (name, _) in lines() {
        assert!(
            differences.contains_key(&name) || !known.contains(&format!("`{name}`")),
            "`{name}` is the same by now"
        );
    }
}

fn in_kiso(home: &Home, session: &str, line: &str) -> String {
    let ran = home.kiso(&["shell", "--session", session, "-c", line]);
    let places = ["/work/.python/site-packages", "./.python/site-packages", "/work/"];
    format!("{}{}= {}\n", plain(&ran.stdout, &places), plain(&ran.stderr, &places), ran.code)
}

fn on_host(dir: &Path, pip: &Path, line: &str) -> String {
    std::fs::create_dir_all(dir.join("bin")).unwrap();
    let environment = dir.join("env");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&environment).status().unwrap();
    assert!(made.success());
    // The environment's python, and the pip of kiso.
    let script = format!("#!/bin/sh\nexec {}/bin/python {}/pip \"$@\"\n", environment.display(), pip.display());
    std::fs::write(dir.join("bin/pip"), script).unwrap();
    let work = dir.join("work");
    std::fs::create_dir(&work).unwrap();
    let path = format!("{}/bin:{}/bin:{}", dir.display(), environment.display(), std::env::var("PATH").unwrap());
    let words = format!("chmod +x ../bin/pip; {line}");
    let output = Command::new("bash")
        .args(["-c", &words])
        .current_dir(&work)
        .env("PATH", path)
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env_remove("PIP_FIND_LINKS")
        .env_remove("PIP_EXTRA_INDEX_URL")
        .env("HOME", dir)
        .output()
        .unwrap();
    let lib = std::fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap().path();
    let places = [format!("{}/site-packages", lib.display()), format!("{}/", work.display())];
    let places = [places[0].as_str(), places[1].as_str()];
    let code = output.status.code().unwrap_or(-1);
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| plain(&String::from_utf8_lossy(bytes), &places));
    format!("{out}{err}= {code}\n")
}
