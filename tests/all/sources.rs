//! Sources of skills: grants and stored values of a skill are only passed on to files from the same source.

use crate::harness::{Home, Ran, guest};
use crate::served::Served;
use kiso_sandbox::skill::pack;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "[kiso]
type = \"skill\"
name = \"hostile\"
version = \"1.1.0\"
description = \"Keeps values\"

[kiso.skill]
secrets = [\"token\"]

[kiso.skill.args]
mode = { type = \"string\", required = true }
amount = { type = \"int\" }

[kiso.skill.needs]
http = [{ host = \"api.example.org\", methods = [\"GET\"] }]
";

/// A file with a distinct digest: the same code, with another word in a comment of its manifest.
fn file(home: &Home, path: &str, version: &str, word: &str) -> PathBuf {
    let manifest = format!("# {word}\n{}", MANIFEST.replace("1.1.0", version));
    home.file(path, pack::pack(&std::fs::read(guest("hostile")).unwrap(), &manifest))
}

#[track_caller]
fn add(home: &Home, file: &Path, more: &[&str]) -> Ran {
    home.kiso(&[&["skill", "add", file.to_str().unwrap()], more].concat())
}

/// Numbers of granted secrets and hosts.
fn rights(home: &Home) -> (usize, usize) {
    let info = home.kiso(&["skill", "info", "hostile", "--json"]).json();
    let count = |what: &str| info["allowed"][what].as_array().unwrap().len();
    (count("secrets"), count("http"))
}

#[test]
fn a_file_from_elsewhere_inherits_nothing() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.1.0", "of one");
    add(&home, &first, &["--grant", "all"]).ok();
    assert_eq!(rights(&home), (1, 1));

    // Rebuilt at the same place: the grants stay without a question.
    file(&home, "a/skill.wasm", "1.1.0", "of one, again");
    add(&home, &first, &[]).ok();
    file(&home, "a/skill.wasm", "1.2.0", "of one, newer");
    add(&home, &first, &[]).ok();
    assert_eq!(rights(&home), (1, 1));

    // From another place, with a higher version: a question that names both places and the old grants.
    let other = file(&home, "b/skill.wasm", "1.3.0", "of another");
    let asked = add(&home, &other, &[]);
    asked.exit(4).says(&["another publisher's", "a/skill.wasm", "b/skill.wasm", "as the one before was allowed to"]);
    asked.says(&["api.example.org", "secret `token`", "--grant all or --grant none", "nothing was installed"]);
    assert_eq!(rights(&home), (1, 1), "nothing changed");
    assert_eq!(home.kiso(&["skill", "info", "hostile", "--json"]).json()["version"], "1.2.0");
    add(&home, &other, &["--grant", "none"]).ok().says(&["another publisher's"]);
    assert_eq!(rights(&home), (0, 0), "no secret and no host");
    let info = home.kiso(&["skill", "info", "hostile", "--json"]).json();
    let source = format!("file:{}", other.canonicalize().unwrap().display());
    assert_eq!((&info["version"], &info["source"]), (&json!("1.3.0"), &json!(source)));

    // Going back is another change of the source.
    add(&home, &first, &[]).exit(4).says(&["another publisher's"]);
    add(&home, &first, &["--grant", "all"]).ok();
    assert_eq!(rights(&home), (1, 1));
}

/// Other paths to the same file are the same source; the same bytes at another place are the same skill.
#[test]
fn the_same_file_is_the_same_by_any_path() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.1.0", "of one");
    add(&home, &first, &["--grant", "all"]).ok();
    let copy = home.dir.path().join("copy.wasm");
    std::fs::copy(&first, &copy).unwrap();
    add(&home, &copy, &[]).ok();
    assert_eq!(rights(&home), (1, 1));
    // The copy's place is not a trusted source because of that.
    file(&home, "copy.wasm", "1.1.0", "of another");
    add(&home, &copy, &[]).exit(4).says(&["another publisher's"]);
    let link = home.dir.path().join("link.wasm");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    file(&home, "a/skill.wasm", "1.1.0", "of one, again");
    add(&home, &link, &[]).ok();
    // A link that points to another file now is another source.
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&copy, &link).unwrap();
    add(&home, &link, &[]).exit(4).says(&["another publisher's"]);
}

#[test]
fn a_lower_version_is_asked_about() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.10.0", "of one");
    add(&home, &first, &["--grant", "all"]).ok();
    file(&home, "a/skill.wasm", "1.9.9", "an old one");
    add(&home, &first, &[]).exit(4).says(&["1.10.0 is installed", "1.9.9, which is lower", "api.example.org"]);
    assert_eq!(rights(&home), (1, 1));
    add(&home, &first, &["--grant", "none"]).ok();
    assert_eq!(rights(&home), (0, 0));
}

/// A skill without requests can still replace a trusted one.
#[test]
fn one_that_asks_for_nothing_is_asked_about_too() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.1.0", "of one");
    add(&home, &first, &["--grant", "all"]).ok();
    let plain = MANIFEST.split("[kiso.skill.needs]").next().unwrap().replace("secrets = [\"token\"]", "");
    let bytes = pack::pack(&std::fs::read(guest("hostile")).unwrap(), &plain);
    let other = home.file("b/skill.wasm", bytes);
    add(&home, &other, &[]).exit(4).says(&["asks for nothing beyond what every skill gets", "--grant none"]);
    add(&home, &other, &["--grant", "none"]).ok();
    let grant = std::fs::read_to_string(home.path().join("grants/hostile.toml")).unwrap();
    assert!(!grant.contains("token") && !grant.contains("api.example.org"), "{grant}");
}

/// A skill from an older kiso has no recorded source: the next installation asks once.
#[test]
fn a_skill_of_an_unknown_source_is_asked_about_once() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.1.0", "of one");
    add(&home, &first, &["--grant", "all"]).ok();
    let record = home.path().join("skills/hostile/installed.json");
    let mut without: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    without.as_object_mut().unwrap().remove("source").expect("it is noted");
    std::fs::write(&record, without.to_string()).unwrap();
    assert_eq!(rights(&home), (1, 1), "what is there goes on");
    file(&home, "a/skill.wasm", "1.1.0", "of one, again");
    add(&home, &first, &[]).exit(4).says(&["installed from an unknown place"]);
    add(&home, &first, &["--grant", "all"]).ok();
    file(&home, "a/skill.wasm", "1.1.0", "of one, once more");
    add(&home, &first, &[]).ok();
}

/// Stored values belong to name and source: another skill of that name reads nothing, and the same one gets them back.
#[test]
fn stored_values_are_not_inherited() {
    let home = Home::new();
    let first = file(&home, "a/skill.wasm", "1.1.0", "of one");
    // It counts its failures, and reports the number.
    let times = |home: &Home, times: u32| {
        let ended = home.call("hostile", &json!({ "mode": "flaky", "amount": 100 }));
        let message = ended["error"]["message"].as_str().unwrap_or_else(|| panic!("{ended}"));
        assert_eq!(message, format!("failed {times} of 100 times"));
    };
    add(&home, &first, &["--grant", "none"]).ok();
    times(&home, 1);
    times(&home, 2);
    let other = file(&home, "b/skill.wasm", "1.2.0", "of another");
    add(&home, &other, &["--grant", "all"]).ok();
    // It replaced the other one.
    times(&home, 1);
    home.kiso(&["skill", "remove", "hostile"]).ok();
    let third = file(&home, "c/skill.wasm", "1.2.0", "of a third");
    add(&home, &third, &["--grant", "none"]).ok();
    // It was installed after the other was removed.
    times(&home, 1);
    home.kiso(&["skill", "remove", "hostile"]).ok();
    add(&home, &first, &["--grant", "none"]).ok();
    times(&home, 3);
}

fn upload(daemon: &Served, file: &Path, query: &str) -> (u16, Value) {
    use std::io::{Read, Write};
    let bytes = std::fs::read(file).unwrap();
    let mut stream = std::net::TcpStream::connect(&daemon.address).unwrap();
    let (length, token) = (bytes.len(), daemon.token.as_deref().unwrap());
    let head = format!(
        "POST /skills{query} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n",
        daemon.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8(answer).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}")))
}

/// An upload has no source: every other file counts as another source, whoever sends it.
#[test]
fn uploads_inherit_nothing_either() {
    let home = Home::new();
    let first = file(&home, "a.wasm", "1.1.0", "of one");
    let other = file(&home, "b.wasm", "1.2.0", "of another");
    let token = home.kiso(&["--json", "token", "add", "t", "--scope", "admin"]).json();
    let start = || {
        let mut daemon = Served::start(&home);
        daemon.token = token["token"].as_str().map(str::to_owned);
        daemon
    };
    let daemon = start();
    assert_eq!(upload(&daemon, &first, "?grant=all").0, 201);
    assert_eq!(upload(&daemon, &first, "").0, 201, "the very same file");
    let granted = |what: &str| daemon.get("/skills/hostile")["grant"][what].as_array().unwrap().len();
    assert_eq!((granted("secrets"), granted("http")), (1, 1));
    let (status, refused) = upload(&daemon, &other, "");
    let error = &refused["error"];
    assert_eq!(
        (status, &error["code"], &error["skill"]),
        (409, &json!("grant_needed"), &json!("hostile")),
        "{refused}"
    );
    assert!(error["doubt"].as_str().unwrap().contains("was installed from an upload"), "{refused}");
    assert!(error["message"].as_str().unwrap().contains("as the one before was allowed to"), "{refused}");
    assert_eq!(error["asks"]["http"][0]["host"], "api.example.org", "everything must be granted again: {refused}");
    assert_eq!((granted("secrets"), granted("http")), (1, 1), "nothing changed");
    assert_eq!(upload(&daemon, &other, "?grant=none").0, 201);
    assert_eq!((granted("secrets"), granted("http")), (0, 0));
    // An upload does not replace a file from this machine either.
    assert_eq!(daemon.terminate(), 0);
    add(&home, &first, &[]).exit(4).says(&["installed from an upload", "another publisher's"]);
    add(&home, &first, &["--grant", "all"]).ok();
    let daemon = start();
    let third = file(&home, "c.wasm", "1.3.0", "of a third");
    assert_eq!(upload(&daemon, &third, "").0, 409);
}
