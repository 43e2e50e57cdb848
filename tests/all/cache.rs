//! The cache of compiled code is trusted only with this home's signature.

use crate::harness::Home;
use std::path::PathBuf;

fn entry(home: &Home) -> PathBuf {
    let entries = std::fs::read_dir(home.path().join("cache")).expect("the cache is there");
    let mut found: Vec<_> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "cwasm")).collect();
    assert_eq!(found.len(), 1, "one skill was compiled: {found:?}");
    found.remove(0)
}

fn echoes(home: &Home) -> String {
    let ran = home.kiso(&["skill", "run", "echo", "text=alive"]);
    assert_eq!(ran.ok().stdout, "alive\n");
    ran.stderr
}

#[test]
fn a_second_start_compiles_nothing() {
    let home = Home::new();
    home.add("echo");
    assert!(!echoes(&home).contains("compiling"));
    std::fs::remove_file(entry(&home)).unwrap();
    assert!(echoes(&home).contains("compiling echo"));
}

#[test]
fn a_tampered_entry_is_thrown_away_and_built_again() {
    let home = Home::new();
    home.add("echo");
    let path = entry(&home);
    let good = std::fs::read(&path).unwrap();
    for tamper in [good.len() / 2, 0, good.len() - 1] {
        let mut bad = good.clone();
        bad[tamper] ^= 1;
        std::fs::write(&path, bad).unwrap();
        assert!(echoes(&home).contains("discarded"));
        assert_eq!(std::fs::read(&path).unwrap(), good, "compiling is deterministic, so the same entry is there again");
    }
    std::fs::write(&path, b"short").unwrap();
    assert!(echoes(&home).contains("discarded"));
}

/// Compiled code from another home has that home's signature.
#[test]
fn a_foreign_entry_is_never_loaded() {
    let (home, other) = (Home::new(), Home::new());
    home.add("echo");
    other.add("echo");
    std::fs::copy(entry(&other), entry(&home)).unwrap();
    assert!(echoes(&home).contains("not signed by this home"));
}

#[test]
fn a_component_that_changed_on_disk_is_not_run() {
    let home = Home::new();
    home.add("echo");
    let wasm = home.path().join("skills/echo/skill.wasm");
    std::fs::copy(crate::harness::guest("command"), &wasm).unwrap();
    home.kiso(&["skill", "run", "echo", "text=x"])
        .exit(1)
        .says(&["not the file that was installed", "add the skill again"]);
}
