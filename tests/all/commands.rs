//! The commands beside runs and skills: what they print, and that their help names what they take.

use crate::harness::Home;

#[test]
fn doctor_looks_at_everything() {
    let home = Home::new();
    home.add("echo");
    let ran = home.kiso(&["doctor"]);
    ran.ok().prints(&[
        "ok   home",
        "ok   config",
        "ok   disk",
        "ok   clock",
        "ok   store",
        "ok   models",
        "ok   exec: the shell and",
        "ok   skill data",
        "ok   skill echo",
    ]);
    std::fs::write(home.path().join("skills/echo/kiso.toml"), "nonsense").unwrap();
    home.kiso(&["doctor"]).exit(1).prints(&["FAIL skill", "add it again"]);
    let objects = home.kiso(&["--json", "doctor"]).json_lines();
    assert!(objects.iter().any(|o| o["ok"] == false && o["detail"].as_str().unwrap().contains("echo")));
}

#[test]
fn doctor_says_when_the_store_is_no_database() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    std::fs::write(home.path().join("store.db"), vec![7u8; 8192]).unwrap();
    let ran = home.kiso(&["doctor"]);
    assert_ne!(ran.code, 0);
    ran.prints(&["FAIL store"]);
}

#[test]
fn completions_are_printed_for_each_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        home.kiso(&["completions", shell]).ok().prints(&["kiso", "skill"]);
    }
    home.kiso(&["completions", "tcl"]).exit(2);
}

#[test]
fn help_names_exit_codes_and_every_command() {
    let home = Home::new();
    home.kiso(&["--help"]).ok().prints(&[
        "Exit codes: 0 done",
        "run",
        "skill",
        "trace",
        "config",
        "doctor",
        "completions",
        "chat",
        "--home",
        "KISO_HOME",
    ]);
    home.kiso(&["skill", "--help"])
        .ok()
        .prints(&["add", "list", "info", "run", "grant", "remove", "new", "build", "test", "pack"]);
    home.kiso(&["config", "--help"]).ok().prints(&["show", "check", "preset"]);
    home.kiso(&["nonsense"]).exit(2).says(&["nonsense"]);
}

#[test]
fn listings_have_a_json_form() {
    let home = Home::new();
    let skills = home.kiso(&["skill", "list", "--json"]).json_lines();
    let names: Vec<&str> = skills.iter().map(|s| s["skill"].as_str().unwrap()).collect();
    assert_eq!(names, ["chart", "data", "feed", "fetch"]);
    let error = home.kiso(&["skill", "info", "nothing", "--json"]).json();
    assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some("error"), Some("usage")));
}

/// A guest's words on a terminal are words only.
#[test]
fn control_characters_of_a_guest_do_not_reach_the_terminal() {
    let home = Home::new();
    home.add("echo");
    let ran = home.kiso(&["skill", "run", "echo", "text=a\u{1b}[31mred\u{7}"]);
    assert!(!ran.ok().stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{:?}", ran.stdout);
}
