//! Third-party files of the tests.

use kiso_tests::root;
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vendored {
    file: String,
    name: String,
    version: String,
    license: String,
    source: String,
    sha256: String,
}

/// The files are exactly those of the manifest.
#[test]
fn what_the_tests_carry_along_is_what_the_manifest_says() {
    let dir = root().join("tests/vendor");
    let manifest = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let listed: Vec<Vendored> = serde_json::from_str(&manifest).unwrap();
    for one in &listed {
        let digest = ring::digest::digest(&ring::digest::SHA256, &std::fs::read(dir.join(&one.file)).unwrap());
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, one.sha256, "{} is not what {} {} is", one.file, one.name, one.version);
        assert!(!one.license.is_empty() && one.source.starts_with("https://"), "{}", one.file);
    }
    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> = entries.filter(|name| name != "manifest.json").collect();
    assert_eq!(found, listed.into_iter().map(|one| one.file).collect());
}
