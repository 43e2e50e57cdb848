//! The prompts of the roles: `kiso role` from outside, the effect of an override on a run, and the page that says which role sees
//! which text.

use crate::harness::{Home, Ran, root};
use kiso_agent::node::built_in_prompt;
use kiso_base::role::Role;
use std::path::PathBuf;

/// The path of a role's override, as printed by the command.
#[track_caller]
fn path(home: &Home, role: &str) -> PathBuf {
    PathBuf::from(home.kiso(&["role", "path", role]).ok().stdout.trim_end())
}

#[track_caller]
fn write(home: &Home, role: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(path(home, role), bytes).expect("the home can be written");
}

fn run(home: &Home) -> Ran {
    home.kiso(&["run", "$ echo hello"])
}

#[test]
fn the_prompt_in_force_is_shown() {
    let home = Home::new();
    for role in Role::ALL {
        let built_in = home.kiso(&["role", "show", role.name()]);
        assert_eq!(built_in.ok().stdout, built_in_prompt(role));
        assert!(built_in.stderr.is_empty(), "{}", built_in.stderr);
    }
    write(&home, "worker", "Answer in one word.");
    let shown = home.kiso(&["role", "show", "worker"]);
    assert_eq!(shown.ok().stdout, "Answer in one word.\n");
    shown.says(&["overridden by", "roles/worker.md"]);
    assert_eq!(home.kiso(&["role", "show", "worker", "--builtin"]).ok().stdout, built_in_prompt(Role::Worker));
    let object = home.kiso(&["role", "show", "worker", "--json"]).json();
    assert_eq!((object["source"].as_str(), object["text"].as_str()), (Some("override"), Some("Answer in one word.")));
    let object = home.kiso(&["role", "show", "actor", "--json"]).json();
    assert_eq!((object["source"].as_str(), object["path"].as_str()), (Some("built-in"), None));
}

#[test]
fn the_list_says_what_is_overridden() {
    let home = Home::new();
    write(&home, "titler", "Name it.\n");
    let listed = home.kiso(&["role", "list"]);
    assert_eq!(listed.ok().stdout.lines().count(), Role::ALL.len());
    listed.prints(&["titler       override   about 3 tokens", "planner      built-in"]);
    let objects = home.kiso(&["role", "list", "--json"]).json_lines();
    let names: Vec<_> = objects.iter().map(|o| o["role"].as_str().unwrap()).collect();
    assert_eq!(names, Role::ALL.map(Role::name));
    let overridden: Vec<_> = objects.iter().filter(|o| o["source"] == "override").map(|o| &o["role"]).collect();
    assert_eq!(overridden, ["titler"]);
}

#[test]
fn the_difference_to_what_is_built_in_is_shown() {
    let home = Home::new();
    let none = home.kiso(&["role", "diff", "planner"]);
    assert_eq!(none.ok().says(&["planner is not overridden", "roles/planner.md"]).stdout, "");
    write(&home, "planner", built_in_prompt(Role::Planner));
    assert_eq!(home.kiso(&["role", "diff", "planner"]).ok().says(&["is identical to the built-in prompt"]).stdout, "");
    let changed = built_in_prompt(Role::Planner).replace("a short plan", "a very short plan");
    write(&home, "planner", &changed);
    let diff = home.kiso(&["role", "diff", "planner"]);
    diff.ok().prints(&[
        "--- planner (built-in)\n+++ /",
        "roles/planner.md\n@@ -1,",
        "\n-You are the planner",
        "\n+You are the planner",
    ]);
    assert_eq!(diff.stdout.lines().filter(|line| line.starts_with('+')).count(), 2, "{}", diff.stdout);
    let object = home.kiso(&["role", "diff", "planner", "--json"]).json();
    assert!(object["overridden"] == true && object["diff"].as_str().unwrap().contains("a very short plan"));
}

#[test]
fn a_reset_puts_the_override_aside_and_loses_none() {
    let home = Home::new();
    home.kiso(&["role", "reset", "router"]).ok().says(&["router is not overridden"]);
    for (content, kept) in [("one", "router.md.old"), ("two", "router.md.old2"), ("three", "router.md.old3")] {
        write(&home, "router", content);
        home.kiso(&["role", "reset", "router"]).ok().says(&["uses its built-in prompt again", kept]);
        let kept = path(&home, "router").with_file_name(kept);
        assert_eq!(std::fs::read_to_string(kept).unwrap(), content);
        assert_eq!(home.kiso(&["role", "show", "router"]).ok().stdout, built_in_prompt(Role::Router));
    }
    write(&home, "router", [0xff, 0xfe]);
    let object = home.kiso(&["role", "reset", "router", "--json"]).json();
    assert!(object["kept"].as_str().unwrap().ends_with("router.md.old4"), "{object}");
    assert!(home.kiso(&["role", "reset", "router", "--json"]).json()["kept"].is_null());
}

/// An invalid override of any role stops a run before anything happens.
#[test]
fn an_override_that_cannot_be_used_is_an_error() {
    for (role, bytes, why) in [
        ("planner", b"\n \n".to_vec(), "is empty"),
        ("titler", b"\xff\xfe".to_vec(), "is not UTF-8 text"),
        ("worker", vec![b'x'; (64 << 10) + 1], "more than 65536 bytes"),
    ] {
        let home = Home::new();
        write(&home, role, bytes);
        let file = format!("roles/{role}.md");
        let reset = format!("kiso role reset {role}");
        run(&home).exit(3).says(&[&file, why, &reset]);
        assert_eq!(home.kiso(&["trace", "--json"]).ok().stdout, "", "a run was begun");
        home.kiso(&["role", "show", role]).exit(3).says(&[&file, why]);
        home.kiso(&["role", "diff", role]).exit(3).says(&[&file, why]);
        home.kiso(&["role", "list"]).exit(3).says(&[&file, why]);
        home.kiso(&["role", "show", role, "--builtin"]).ok();
        home.kiso(&["doctor"]).exit(3).prints(&[&format!("FAIL role {role}"), why]);
        home.kiso(&["role", "reset", role]).ok();
        run(&home).ok();
    }
}

#[test]
fn doctor_names_overrides_and_files_that_override_nothing() {
    let home = Home::new();
    write(&home, "actor", "Call tools.");
    home.kiso(&["doctor"]).ok().prints(&["ok   role actor", "roles/actor.md overrides the built-in prompt"]);
    std::fs::write(home.path().join("roles/planer.md"), "Plan.").unwrap();
    home.kiso(&["doctor"]).exit(3).prints(&["FAIL roles", "roles/planer.md overrides nothing", "near: planner"]);
    home.kiso(&["role", "list"]).exit(3).says(&["roles/planer.md overrides nothing", "near: planner"]);
}

#[test]
fn a_role_that_is_none_is_wrong_use() {
    let home = Home::new();
    home.kiso(&["role", "show", "boss"]).exit(2).says(&["boss", "planner, reviewer, worker, summarizer"]);
    home.kiso(&["role", "reset", "../key"]).exit(2);
    home.kiso(&["role"]).exit(2);
}

/// The commands of the page work as written.
#[test]
fn the_commands_of_the_page_work() {
    let home = Home::new();
    let page = std::fs::read_to_string(root().join("docs/how-it-works.md")).unwrap();
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("kiso role ")).collect();
    assert_eq!(lines.len(), 5);
    let bin = PathBuf::from(home.command(&[]).get_program()).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for line in lines {
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-ec", line]).env("PATH", &path).env("KISO_HOME", home.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let kept = home.path().join("roles/planner.md.old");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), built_in_prompt(Role::Planner));
}

/// The documented table is generated from the program's table.
#[test]
fn the_page_has_the_table_of_who_is_told_what() {
    let page = std::fs::read_to_string(root().join("docs/how-it-works.md")).unwrap();
    let section = page.split_once("\n## What each role sees\n").expect("the page has the heading").1;
    let section = section.split("\n## ").next().unwrap();
    let table = kiso_agent::context::markdown();
    assert!(section.contains(&table), "docs/how-it-works.md should have this table:\n{table}");
}
