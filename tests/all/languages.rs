//! Perl, Ruby and resvg as packages, each described by one file. Lines of Perl and Ruby are compared with the host's programs,
//! and pictures by size and pixels.

use crate::harness::{Home, Ran, missing_tool, root, skipped};
use crate::python::wheel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// An archive from npm, or `None` if it cannot be fetched.
fn archive(package: &str) -> Option<PathBuf> {
    static FETCHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let script = root().join("tests/npm/fetch.sh");
    let output = Command::new("sh").arg(script).arg(root().join("target/npm")).arg(package).output();
    let said = output.map_or_else(|e| e.to_string(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let file = said.trim().strip_prefix("READY ").map(PathBuf::from);
    if file.is_none() {
        missing_tool("a package of npm", &said);
    }
    file
}

fn shell(home: &Home, line: &str) -> Ran {
    home.kiso(&["shell", "--session", "pictures", "-c", line])
}

/// Pixels of a picture in `convert`'s PPM format: width, height, and red, green and blue of each.
fn pixels(ppm: &[u8]) -> (usize, usize, &[[u8; 3]]) {
    let mut fields = ppm.splitn(4, |byte| byte.is_ascii_whitespace());
    let mut field = || std::str::from_utf8(fields.next().unwrap()).unwrap().to_owned();
    let (kind, width, height) = (field(), field().parse().unwrap(), field().parse().unwrap());
    assert_eq!(kind, "P6");
    let rest = fields.next().unwrap().strip_prefix(b"255\n").unwrap();
    (width, height, rest.as_chunks().0)
}

#[test]
fn pictures_are_rendered() {
    let (Some(wheel), Some(fonts)) = (wheel("resvg"), archive("dejavu-fonts-ttf@2.37.3")) else { return };
    let home = Home::new();
    let [wheel, fonts] = [&wheel, &fonts].map(|path| path.to_str().unwrap());
    shell(&home, "rsvg-convert a.svg").exit(127).says(&["`kiso skill add resvg`"]);
    home.kiso(&["skill", "add", "resvg", "--from", wheel]).exit(4).says(&["no file with the SHA-256 of resvg"]);
    let added = home.kiso(&["skill", "add", "resvg", "--from", wheel, "--from", fonts]);
    added.ok().prints(&["installed resvg 0.31.0: resvg in every command line"]);
    let work = home.work("pictures");
    std::fs::create_dir_all(work.join("d")).unwrap();
    let write = |name: &str, inner: &str| {
        let svg = format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40">{inner}</svg>"#);
        std::fs::write(work.join(name), svg).unwrap();
    };
    write(
        "rect.svg",
        r##"<rect width="60" height="40" fill="#fff"/><rect x="10" y="10" width="20" height="10" fill="#f00"/>"##,
    );
    write(
        "text.svg",
        r##"<rect width="60" height="40" fill="#fff"/><text x="5" y="30" font-size="24" font-family="Arial, sans-serif">Hi</text>"##,
    );
    write(
        "d/fade.svg",
        r##"<defs><linearGradient id="g"><stop stop-color="#000"/><stop offset="1" stop-color="#fff"/></linearGradient></defs><rect width="60" height="40" fill="url(#g)"/>"##,
    );
    let line = "resvg rect.svg rect.png && resvg -w 120 rect.svg big.png && resvg text.svg text.png && \
        (cd d && resvg fade.svg fade.png && mv fade.png ..) && cat rect.svg | resvg --resources-dir . - -c > pipe.png && cmp pipe.png rect.png && \
        for i in rect big text fade; do convert $i.png $i.ppm; done";
    shell(&home, line).ok();
    let read = |name: &str| std::fs::read(work.join(name)).unwrap();
    let (rect, big, text, fade) = (read("rect.ppm"), read("big.ppm"), read("text.ppm"), read("fade.ppm"));
    let (width, height, rect) = pixels(&rect);
    assert_eq!((width, height), (60, 40));
    let at = |x: usize, y: usize| rect[y * width + x];
    assert_eq!([at(0, 0), at(10, 10), at(29, 19), at(30, 20)], [[255; 3], [255, 0, 0], [255, 0, 0], [255; 3]]);
    let (width, height, big) = pixels(&big);
    assert_eq!((width, height, big[30 * width + 40]), (120, 80, [255, 0, 0]));
    // Letters are drawn in both halves of the text's area, and nowhere else.
    let (width, _, text) = pixels(&text);
    let dark = |columns: std::ops::Range<usize>| {
        text.iter().enumerate().filter(|(at, pixel)| columns.contains(&(at % width)) && pixel[0] < 100).count()
    };
    assert!(dark(5..20) > 20 && dark(20..40) > 10 && dark(40..60) == 0, "{} {}", dark(5..20), dark(20..40));
    let (width, _, fade) = pixels(&fade);
    assert!(fade[0][0] < 10 && fade[width - 1][0] > 245 && fade[30][0].abs_diff(128) < 8, "{:?}", fade[30]);
    shell(&home, "resvg none.svg a.png").exit(1).says(&["failed to open"]);
    shell(&home, "echo '<svg' > bad.svg; resvg bad.svg a.png").exit(1);
}

/// The lines of a file by name.
fn lines(language: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(format!("tests/all/languages/{language}-lines.sh"))).unwrap();
    let cases = text.split("\n## ").skip(1);
    cases
        .map(|case| case.split_once('\n').map(|(name, line)| (name.to_owned(), line.trim().to_owned())).unwrap())
        .collect()
}

/// Runs a line in an empty directory on the host.
fn on_host(line: &str) -> Result<String, std::io::Error> {
    let dir = tempfile::tempdir()?;
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(dir.path()).stdin(Stdio::null());
    let output = command.env("LC_ALL", "C.UTF-8").env("HOME", dir.path()).output()?;
    let code = output.status.code().unwrap_or(-1);
    Ok(format!("{}= {code}\n", String::from_utf8_lossy(&output.stdout)))
}

/// Lines with different results are exactly those listed under the heading in the documentation.
fn compare(home: &Home, language: &str, heading: &str) {
    let mut differences = BTreeMap::new();
    let lines = lines(language);
    assert!(lines.len() >= 50, "{} lines", lines.len());
    for (at, (name, line)) in lines.iter().enumerate() {
        let in_empty = format!("mkdir empty; cd empty; {line}");
        let ran = home.kiso(&["shell", "--session", &format!("{language}-{at}"), "-c", &in_empty]);
        let (ours, theirs) = (format!("{}= {}\n", ran.stdout, ran.code), on_host(line).unwrap());
        if ours != theirs {
            differences
                .insert(name, format!("## {name}\n$ {line}\non the host:\n{theirs}kiso:\n{ours}{}\n", ran.stderr));
        }
    }
    let page = std::fs::read_to_string(root().join("docs/languages.md")).unwrap();
    let known = page.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let unknown: Vec<_> = differences.iter().filter(|(name, _)| !known.contains(&format!("`{name}`"))).collect();
    assert!(unknown.is_empty(), "{}", unknown.into_iter().map(|(_, text)| text.as_str()).collect::<String>());
    for (name, _) in &lines {
        let is_listed = known.contains(&format!("`{name}`"));
        assert!(differences.contains_key(name) || !is_listed, "`{name}` is the same by now");
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok_and(|output| output.status.success());
    if !found {
        skipped(&format!("lines of {program} on the host"), &format!("there is no {program}"));
    }
    found
}

fn add(home: &Home, name: &str, from: &Path) {
    let added = home.kiso(&["skill", "add", name, "--from", from.to_str().unwrap()]);
    added.ok().prints(&[&format!("installed {name} ")]);
}

#[test]
#[ignore = "compiles for a minute and starts perl a hundred times"]
fn lines_are_those_of_perl() {
    let Some(from) = archive("@6over3/zeroperl-ts@1.0.10") else { return };
    if has("perl") {
        let home = Home::new();
        add(&home, "perl", &from);
        compare(&home, "perl", "## Differences from Perl");
    }
}

#[test]
#[ignore = "compiles for minutes and starts ruby a hundred times"]
fn lines_are_those_of_ruby() {
    let Some(from) = archive("@ruby/4.0-wasm-wasi@2.10.1") else { return };
    if has("ruby") {
        let home = Home::new();
        home.config("[engine]\ncompile_memory_mib = 2048\ncompile_timeout_s = 600\n");
        add(&home, "ruby", &from);
        compare(&home, "ruby", "## Differences from Ruby");
    }
}
