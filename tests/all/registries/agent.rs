//! Agent Skills in registries: folders are pushed and pulled unchanged, by tag, digest and lockfile; and a lying registry is
//! detected.

use super::{Answers, DebianRegistry, LyingRegistry, artifact, path, sha256};
use crate::attacks::archive::{Entry, gzip, tar, zip};
use crate::harness::{Home, missing_tool};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

const ARTIFACT: &str = "application/vnd.agentskills.skill.v1";
const CONFIG: &str = "application/vnd.agentskills.skill.config.v1+json";
const LAYER: &str = "application/vnd.agentskills.skill.content.v1.tar+gzip";

/// The files of an Agent Skill in this version, one with a path that is too long for the header of a tar entry.
fn files(version: &str) -> [(String, String); 3] {
    let skill = format!(
        "---\nname: greet\ndescription: Writes greetings.\nlicense: MIT\nmetadata:\n  version: \"{version}\"\n---\nRun `scripts/hello.sh`.\n"
    );
    [
        ("SKILL.md".to_owned(), skill),
        (format!("references/{}.md", "ä".repeat(60)), "Be warm.\n".to_owned()),
        ("scripts/hello.sh".to_owned(), "#!/bin/sh\necho \"Hello, $1!\"\n".to_owned()),
    ]
}

/// The folder with these files.
fn greet(home: &Home, version: &str) -> PathBuf {
    for (name, text) in files(version) {
        home.file(&format!("greet/{name}"), text);
    }
    home.file("greet/.git/config", "left out");
    home.dir.path().join("greet")
}

fn entry(name: &str, text: &str) -> Entry {
    Entry { name: name.to_owned(), text: text.to_owned(), link: None, hard: None, kind: None, size: None, mode: 0o644 }
}

fn as_it_is(text: &str) -> String {
    text.to_owned()
}

/// A registry's content at a path.
fn stored(registry: &DebianRegistry, at: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(&registry.address).unwrap();
    let accept = "application/vnd.oci.image.manifest.v1+json";
    write!(stream, "GET /v2/{at} HTTP/1.0\r\nhost: {}\r\naccept: {accept}\r\n\r\n", registry.address).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    answer.split_off(head + 4)
}

fn digest(home: &Home) -> Value {
    home.kiso(&["--json", "skill", "info", "greet"]).json()["digest"].clone()
}

#[test]
fn an_agent_skill_goes_into_a_registry_and_comes_out_the_same() {
    let home = Home::new();
    let Some(registry) = DebianRegistry::start(&home, "") else {
        return missing_tool("Agent Skills in a registry", "there is no docker-registry (Debian: docker-registry)");
    };
    let (dir, place) = (greet(&home, "1.0"), format!("oci://{}/ada/greet", registry.address));
    let key = home.file("keys/x", "").with_file_name("ada");
    home.kiso(&["skill", "trust", "new", path(&key)]).ok();
    home.kiso(&["skill", "sign", path(&dir), "--key", path(&key)]).ok();
    let public = format!("{}.pub", key.display());
    home.kiso(&["skill", "trust", "add", &public, "--label", "ada"]).ok();
    let push = |from: &str, tag: &str| home.kiso(&["--json", "skill", "push", from, &format!("{place}:{tag}")]).json();
    let pushed = push(path(&dir), "1.0");
    let (at, manifest) = (pushed["place"].as_str().unwrap(), pushed["digest"].as_str().unwrap());
    assert_eq!(at, format!("{place}:1.0@{manifest}"));
    // The same files give the same artifact: written a second time, and from an archive.
    greet(&home, "1.0");
    assert_eq!(push(path(&dir), "again")["digest"], pushed["digest"]);
    let zipped = files("1.0").map(|(name, text)| entry(&format!("greet/{name}"), &text));
    let zipped = home.file("packed/greet.zip", zip(&zipped, &as_it_is));
    std::fs::copy(dir.with_file_name("greet.minisig"), zipped.with_file_name("greet.zip.minisig")).unwrap();
    assert_eq!(push(path(&zipped), "zip")["digest"], pushed["digest"]);

    // It has the media types that other programs know, and they can read it.
    let manifest: Value = serde_json::from_slice(&stored(&registry, "ada/greet/manifests/1.0")).unwrap();
    assert_eq!(manifest["artifactType"], ARTIFACT);
    let (config, layer) = (&manifest["config"], &manifest["layers"][0]);
    assert_eq!((&config["mediaType"], &layer["mediaType"]), (&json!(CONFIG), &json!(LAYER)));
    let said = [("title", "greet"), ("version", "1.0"), ("description", "Writes greetings."), ("licenses", "MIT")];
    for (key, value) in said {
        assert_eq!(manifest["annotations"][format!("org.opencontainers.image.{key}")], value, "{key}");
    }
    let blob = |of: &Value| stored(&registry, &format!("ada/greet/blobs/{}", of["digest"].as_str().unwrap()));
    let config: Value = serde_json::from_slice(&blob(config)).unwrap();
    assert_eq!((&config["name"], &config["version"]), (&json!("greet"), &json!("1.0")));
    let file = home.file("layer.tar.gz", blob(layer));
    let listed = Command::new("tar").arg("-tvzf").arg(&file).env("LC_ALL", "C").output().expect("tar starts");
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let script = listed.lines().find(|line| line.ends_with(" greet/scripts/hello.sh")).unwrap();
    assert!(script.starts_with("-rwxr-xr-x"), "{listed}");

    let of_folder = home.kiso(&["skill", "statement", path(&dir)]).ok().stdout.clone();
    let ran = home.kiso(&["skill", "add", &format!("{place}:1.0")]);
    ran.ok().prints(&["loaded greet 1.0 (Agent Skill, 3 files in /skills/greet)"]);
    home.kiso(&["skill", "info", "greet"]).ok().prints(&["signed by ada", &format!("from {place}\n")]);
    home.kiso(&["skill", "run", "greet", "hello", "Ada"]).ok().prints(&["Hello, Ada!"]);
    assert!(of_folder.contains(&format!("sha256 {}\n", digest(&home).as_str().unwrap())), "{of_folder}");
    // In another home by lockfile; in a third by digest.
    let lock = home.path().join("skills.lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    assert!(text.contains(at) && text.contains(digest(&home).as_str().unwrap()), "{text}");
    let other = Home::new();
    other.kiso(&["skill", "sync", path(&lock)]).exit(1).says(&["no signature of that key counts here"]);
    other.kiso(&["skill", "trust", "add", &public]).ok();
    other.kiso(&["skill", "sync", path(&lock)]).ok().prints(&["installed greet"]);
    let third = Home::new();
    let by_digest = format!("{place}@{}", pushed["digest"].as_str().unwrap());
    third.kiso(&["skill", "add", &by_digest]).ok().says(&["is not trusted"]);
    assert_eq!((digest(&other), digest(&third)), (digest(&home), digest(&home)));
    third.kiso(&["skill", "add", &format!("{place}@sha256:{}", "0".repeat(64))]).exit(2);
    // No pulled file is left behind.
    let left = std::fs::read_dir(home.path()).unwrap().flatten().filter(|e| e.path().join("greet.skill").exists());
    assert_eq!(left.count(), 0);

    // A folder that could not be installed from a registry is not pushed.
    let none = home.file("none/README.md", "nothing");
    let none = path(none.parent().unwrap());
    home.kiso(&["skill", "push", none, &format!("{place}:2.0")]).exit(2).says(&["there is no SKILL.md in it"]);
    home.file("greet/Scripts/HELLO.sh", "echo no\n");
    let ran = home.kiso(&["skill", "push", path(&dir), &format!("{place}:2.0")]);
    ran.exit(2).says(&["two of its files are"]);
    home.kiso(&["skill", "add", &format!("{place}:2.0")]).exit(2).says(&["has no manifest of ada/greet:2.0"]);
}

#[test]
fn an_agent_skill_is_updated_by_its_tags() {
    let home = Home::new();
    let Some(registry) = DebianRegistry::start(&home, "") else {
        return missing_tool("updating from a registry", "there is no docker-registry (Debian: docker-registry)");
    };
    let place = format!("oci://{}/ada/greet", registry.address);
    let push = |version: &str, tag: &str| {
        let dir = greet(&home, version);
        home.kiso(&["skill", "push", path(&dir), &format!("{place}:{tag}")]).ok();
    };
    push("1.9.0", "1.9.0");
    home.kiso(&["skill", "add", &format!("{place}:1.9.0")]).ok();
    home.kiso(&["skill", "outdated"]).ok().prints(&["current  greet 1.9.0"]);
    let other = Home::new();
    other.kiso(&["skill", "sync", path(&home.path().join("skills.lock"))]).ok().prints(&["installed greet"]);
    push("1.10.0", "v1.10.0");
    home.kiso(&["skill", "outdated"]).ok().prints(&["outdated greet 1.9.0 → 1.10.0", ":v1.10.0"]);
    let found = home.kiso(&["--json", "skill", "search", "--registry", &place, "greet"]).json_lines();
    let found: Vec<_> = found.iter().map(|line| (&line["kind"], &line["name"], &line["version"])).collect();
    let (kind, name) = (json!("agent-skill"), json!("greet"));
    assert_eq!(found, [(&kind, &name, &json!("1.10.0")), (&kind, &name, &json!("1.9.0"))]);
    home.kiso(&["skill", "search", "--registry", &place]).ok().prints(&["1.10.0     agent"]);
    home.kiso(&["skill", "update", "--grant", "keep"]).ok().prints(&["loaded greet 1.10.0"]);
    home.kiso(&["skill", "outdated"]).ok().prints(&["current  greet 1.10.0"]);
    other.kiso(&["skill", "sync", path(&home.path().join("skills.lock"))]).ok().prints(&["replaced greet"]);
    assert_eq!(digest(&other), digest(&home));
    // A lower version needs a confirmation.
    home.kiso(&["skill", "add", &format!("{place}:1.9.0")]).exit(4).says(&["which is lower"]);
    assert_eq!(digest(&other), digest(&home));
}

/// An Agent Skill without a version has that of its tag.
#[test]
fn an_agent_skill_without_a_version_is_updated_by_its_tags() {
    let home = Home::new();
    let Some(registry) = DebianRegistry::start(&home, "") else {
        return missing_tool("updating from a registry", "there is no docker-registry (Debian: docker-registry)");
    };
    let place = format!("oci://{}/ada/plain", registry.address);
    let push = |text: &str, tag: &str| {
        let file = home.file("plain/SKILL.md", format!("---\nname: plain\ndescription: Plain.\n---\n{text}\n"));
        home.kiso(&["skill", "push", path(file.parent().unwrap()), &format!("{place}:{tag}")]).ok();
    };
    push("One.", "1.0");
    home.kiso(&["skill", "add", &format!("{place}:1.0")]).ok();
    push("Two.", "1.1");
    // It was pushed last, but is not newer.
    push("None.", "0.9");
    let outdated = home.kiso(&["--json", "skill", "outdated", "plain"]).json();
    assert_eq!((&outdated["status"], &outdated["version"]), (&json!("outdated"), &json!("1.1")));
    home.kiso(&["skill", "update", "plain", "--grant", "keep"]).ok().prints(&["loaded plain"]);
    home.kiso(&["skill", "run", "plain"]).ok().prints(&["Two."]);
    home.kiso(&["skill", "update", "plain"]).ok().prints(&["current  plain"]);
    // From then on it has its own version.
    let text = "---\nname: plain\ndescription: Plain.\nmetadata:\n  version: \"1.2\"\n---\nThree.\n";
    let file = home.file("plain/SKILL.md", text);
    home.kiso(&["skill", "push", path(file.parent().unwrap()), &format!("{place}:1.2")]).ok();
    home.kiso(&["skill", "update", "plain", "--grant", "keep"]).ok().prints(&["loaded plain 1.2"]);
}

#[test]
fn an_artifact_that_is_no_agent_skill_leaves_nothing() {
    let home = Home::new();
    let skill = || entry("greet/SKILL.md", &files("1.0")[0].1);
    let pack = |more: Entry| gzip(&tar(&[skill(), more], &as_it_is));
    let good = pack(entry("greet/tone.md", "Be warm.\n"));
    let blob = format!("/v2/a/blobs/{}", sha256(&good));
    let refused = |layer: &[u8], code: i32, says: &str, change: &dyn Fn(&mut Answers, &mut Value)| {
        let (mut answers, mut manifest) = artifact((CONFIG, &json!({ "name": "greet" })), (LAYER, layer));
        change(&mut answers, &mut manifest);
        answers.get_mut("/v2/a/manifests/1").unwrap().2 = manifest.to_string().into_bytes();
        let registry = LyingRegistry::start(|_| answers);
        let place = format!("oci://{}/a:1", registry.address);
        home.kiso(&["skill", "add", &place, "--grant", "all"]).exit(code).says(&[says]);
        home.kiso(&["skill", "info", "greet"]).exit(2);
        assert!(!home.path().join("agent-skills/folders/greet").exists(), "{says}");
        registry.heard()
    };
    // A changed layer, one that is longer than in the manifest, and one whose declared size is too large.
    refused(&good, 4, "the layer has the digest sha256:", &|answers, _| answers.get_mut(&blob).unwrap().2[20] ^= 1);
    refused(&good, 2, "the layer has more than", &|answers, _| answers.get_mut(&blob).unwrap().2.push(0));
    let heard = refused(&good, 2, "the layer has more than the 33554432 bytes", &|_, manifest| {
        manifest["layers"][0]["size"] = json!((32_u64 << 20) + 1);
    });
    assert!(heard.iter().all(|head| !head.contains(&blob)), "{heard:?}");
    // Artifacts of another kind.
    for (pointer, value, says) in [
        ("/config/mediaType", json!("application/vnd.oci.image.config.v1+json"), "its configuration is"),
        ("/layers/0/mediaType", json!("application/zip"), "its layer is"),
        ("/layers", json!([]), "it has 0 layers"),
    ] {
        refused(&good, 2, says, &|_, manifest| *manifest.pointer_mut(pointer).unwrap() = value.clone());
    }
    let other = json!("application/vnd.agentskills.collection.v1");
    refused(&good, 2, "its type is", &|_, manifest| manifest["artifactType"] = other.clone());
    // Archives that match the manifest, but are not skills.
    let as_said = |_: &mut Answers, _: &mut Value| {};
    let bomb = pack(entry("greet/zeros", &"\0".repeat(40 << 20)));
    let linked = pack(Entry { link: Some("/etc/passwd".to_owned()), ..entry("greet/passwd", "") });
    for (layer, says) in [
        (bomb, "its files have more than 32 MiB in all"),
        (linked, "is a link or a special file"),
        (pack(entry("greet/../../x", "x")), "is not a path inside the skill"),
        (gzip(&tar(&[entry("greet/tone.md", "Be warm.\n")], &as_it_is)), "there is no SKILL.md in it"),
        (gzip(b"no tar"), "the archive cannot be read"),
        (b"no archive".to_vec(), "the archive cannot be read"),
    ] {
        refused(&layer, 2, says, &as_said);
    }
    let registry = LyingRegistry::start(|_| artifact((CONFIG, &json!(["greet"])), (LAYER, &good)).0);
    let ran = home.kiso(&["skill", "add", &format!("oci://{}/a:1", registry.address)]);
    ran.exit(2).says(&["its configuration is no object"]);
    // An honest registry is accepted.
    let registry = LyingRegistry::start(|_| artifact((CONFIG, &json!({ "name": "greet" })), (LAYER, &good)).0);
    home.kiso(&["skill", "add", &format!("oci://{}/a:1", registry.address)]).ok().prints(&["loaded greet 1.0"]);
}
