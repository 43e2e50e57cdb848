//! Installing skills: which permissions are requested and granted, and which an update may keep.

use crate::harness::{Home, guest, root};
use serde_json::json;

const FETCHING: &str = "[kiso]
type = \"skill\"
name = \"echo\"
version = \"0.1.0\"
description = \"Answers\"

[kiso.skill]
secrets = [\"token\"]

[kiso.skill.args]
text = { type = \"string\", required = true }

[kiso.skill.needs]
http = [{ host = \"api.example.org\", methods = [\"GET\"] }]
memory_mib = 96
";

fn add(home: &Home, manifest: &str, more: &[&str]) -> crate::harness::Ran {
    let file = home.file("kiso.toml", manifest);
    let echo = guest("echo");
    let mut args = vec!["skill", "add", echo.to_str().unwrap(), "--manifest", file.to_str().unwrap()];
    args.extend(more);
    home.kiso(&args)
}

#[test]
fn needs_are_shown_and_nothing_is_installed_without_an_answer() {
    let home = Home::new();
    let ran = add(&home, FETCHING, &[]);
    ran.exit(4).says(&[
        "reach api.example.org over HTTP (GET)",
        "secret `token`",
        "96 MiB",
        "--grant all or --grant none",
    ]);
    home.kiso(&["skill", "info", "echo"]).exit(2);
}

#[test]
fn a_grant_lies_apart_from_the_skill_and_none_means_none() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "none"]).ok();
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!(info["allowed"]["http"], json!([]));
    assert_eq!(info["allowed"]["secrets"], json!([]));
    assert_eq!(info["allowed"]["memory_mib"], 64);
    assert_eq!(info["allowed"]["workspace"], "none", "nothing is nothing");
    home.kiso(&["skill", "grant", "echo", "--all"]).ok().prints(&["api.example.org"]);
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!(info["allowed"]["http"][0]["host"], "api.example.org");
    assert_eq!(info["allowed"]["memory_mib"], 96);
    assert!(home.path().join("grants/echo.toml").exists());
}

#[test]
fn an_update_that_needs_more_asks_again_and_shows_only_the_difference() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "all"]).ok();
    // The same needs: no question, and the grant stays.
    add(&home, &FETCHING.replace("0.1.0", "0.1.1"), &[]).ok().says(&["replaces echo 0.1.0"]);
    let more = FETCHING.replace("0.1.0", "0.2.0").replace("http = [", "http = [{ host = \"*.tracker.net\" }, ");
    let ran = add(&home, &more, &[]);
    ran.exit(4).says(&["asks for what it was not granted", "*.tracker.net"]);
    assert!(!ran.stderr.contains("api.example.org"), "{}", ran.stderr);
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!(info["version"], "0.1.1", "the old version stays");
}

#[test]
fn memory_and_time_are_granted_apart_from_hosts() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "none"]).ok();
    let memory = |home: &Home| home.kiso(&["skill", "info", "echo", "--json"]).json()["allowed"]["memory_mib"].clone();
    assert_eq!(memory(&home), 64);
    home.kiso(&["skill", "grant", "echo", "--limits"]).ok().prints(&["memory_mib = 96"]);
    home.kiso(&["skill", "grant", "echo", "--host", "api.example.org"])
        .ok()
        .prints(&["memory_mib = 96", "api.example.org"]);
    assert_eq!(memory(&home), 96);
    home.kiso(&["skill", "grant", "echo", "--limits", "--none"]).exit(2);
    home.kiso(&["skill", "grant", "echo", "--none"]).ok();
    assert_eq!(memory(&home), 64);
}

#[test]
fn a_grant_for_what_was_never_asked_is_refused() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "none"]).ok();
    home.kiso(&["skill", "grant", "echo", "--host", "evil.net"]).exit(2).says(&["api.example.org", "evil.net"]);
    home.kiso(&["skill", "grant", "echo", "--secret", "password"]).exit(2).says(&["password"]);
    home.kiso(&["skill", "grant", "echo", "--host", "api.example.org"]).ok();
}

#[test]
fn removing_a_skill_takes_its_grant_along() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "all"]).ok();
    home.kiso(&["skill", "remove", "echo"]).ok();
    assert!(!home.path().join("grants/echo.toml").exists());
    home.kiso(&["skill", "remove", "echo"]).exit(2).says(&["no such skill"]);
    home.kiso(&["skill", "remove", "data"]).exit(2).says(&["bundled"]);
}

#[test]
fn a_failed_update_leaves_the_old_version() {
    let home = Home::new();
    home.add("echo");
    let unwell = guest("unwell");
    home.kiso(&["skill", "add", unwell.to_str().unwrap(), "--name", "echo", "--grant", "none"])
        .exit(1)
        .says(&["self-test failed"]);
    assert_eq!(home.kiso(&["skill", "run", "echo", "text=still"]).ok().stdout, "still\n");
}

#[test]
fn a_name_can_be_given_and_bundled_names_are_taken() {
    let home = Home::new();
    let echo = guest("echo");
    let echo = echo.to_str().unwrap();
    home.kiso(&["skill", "add", echo, "--name", "parrot"]).ok().prints(&["loaded parrot"]);
    assert_eq!(home.kiso(&["skill", "run", "parrot", "text=hi"]).ok().stdout, "hi\n");
    home.kiso(&["skill", "add", echo, "--name", "data"]).exit(2).says(&["bundled", "--name"]);
    home.kiso(&["skill", "add", echo, "--name", "../x"]).exit(2).says(&["../x"]);
    // A later kiso has a bundled skill of that name: only one is shown to models.
    let skills = home.path().join("skills");
    std::fs::rename(skills.join("parrot"), skills.join("data")).unwrap();
    let listed = home.kiso(&["--json", "skill", "list"]).ok().json_lines();
    let origins: Vec<_> =
        listed.iter().filter(|skill| skill["skill"] == "data").map(|skill| &skill["origin"]).collect();
    assert_eq!(origins, ["bundled"]);
}

#[test]
fn new_writes_a_rust_project_that_builds_tests_and_installs() {
    let home = Home::new();
    let dir = home.dir.path().join("hello");
    let dir = dir.to_str().unwrap();
    home.kiso(&["skill", "new", "hello", "--dir", dir]).ok().prints(&["kiso skill build"]);
    home.kiso(&["skill", "new", "hello", "--dir", dir]).exit(2).says(&["not empty"]);
    // Packages of the registry are compiled once for all runs of this test; SDK and skill are in a new place each time.
    let shared = root().join("target/foreign/cargo");
    let build = |args: &[&str]| {
        home.kiso_with(args, |kiso| {
            kiso.env("CARGO_TARGET_DIR", &shared);
        })
    };
    build(&["skill", "build", dir]).ok().prints(&["hello.wasm"]);
    build(&["skill", "test", "--dir", dir, "name=Ada"]).ok().prints(&["Ada"]);
    home.kiso(&["skill", "add", &format!("{dir}/hello.wasm")]).ok().prints(&["loaded hello"]);
    home.kiso(&["skill", "run", "hello", "name=Ada"]).ok().prints(&["Ada"]);
    home.kiso(&["skill", "info", "hello"]).ok().prints(&["rust 0.1.0"]);
    // The same project gives the same component in any directory.
    let elsewhere = home.dir.path().join("another place");
    let elsewhere = elsewhere.to_str().unwrap();
    home.kiso(&["skill", "new", "hello", "--dir", elsewhere]).ok();
    build(&["skill", "build", elsewhere]).ok();
    let built = |dir: &str| std::fs::read(format!("{dir}/hello.wasm")).unwrap();
    assert!(built(dir) == built(elsewhere), "two builds of the same sources differ");
}

#[test]
fn building_where_there_is_no_project_says_what_is_missing() {
    let home = Home::new();
    home.kiso(&["skill", "build", "."]).exit(2).says(&["kiso.toml", "kiso skill new"]);
    home.file("kiso.toml", FETCHING);
    home.kiso(&["skill", "build", "."]).exit(2).says(&["Cargo.toml, package.json or skill.py"]);
    home.file("skill.py", "");
    let ran = home.kiso_with(&["skill", "build", "."], |c| {
        c.env("PATH", "/nonexistent");
    });
    ran.exit(2).says(&["python3 was not found", "python3-venv"]);
    std::fs::remove_file(home.dir.path().join("skill.py")).unwrap();
    home.file("skill.js", "");
    home.file("package.json", "{}");
    let ran = home.kiso_with(&["skill", "build", "."], |c| {
        c.env("PATH", "/nonexistent");
    });
    ran.exit(2).says(&["npm", "Node.js"]);
}

/// A grant for a host covers its methods and its secret; an update cannot extend them.
#[test]
fn an_update_does_not_widen_what_a_host_was_granted_for() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "all"]).ok();
    let wider = [
        ("methods = [\"GET\"]", "methods = [\"GET\", \"DELETE\"]", "DELETE"),
        (
            "methods = [\"GET\"]",
            "methods = [\"GET\"], inject = { header = \"X\", secret = \"token\" }",
            "adding the header X",
        ),
        ("memory_mib = 96", "memory_mib = 96\nworkspace = \"write\"", "write files"),
    ];
    for (old, new, asked) in wider {
        add(&home, &FETCHING.replace("0.1.0", "0.2.0").replace(old, new), &[]).exit(4).says(&[asked]);
    }
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!(info["version"], "0.1.0");
}

/// The grant of a removed skill does not apply to the next skill of that name.
#[test]
fn a_grant_left_behind_is_not_inherited() {
    let home = Home::new();
    add(&home, FETCHING, &["--grant", "all"]).ok();
    std::fs::remove_dir_all(home.path().join("skills/echo")).unwrap();
    add(&home, FETCHING, &[]).exit(4).says(&["api.example.org"]);
    let plain = FETCHING.split("[kiso.skill.needs]").next().unwrap().replace("secrets = [\"token\"]\n", "");
    add(&home, &plain, &[]).ok();
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!((&info["allowed"]["http"], &info["allowed"]["secrets"]), (&json!([]), &json!([])));
}

#[test]
fn a_manifest_cannot_make_every_start_slow() {
    let home = Home::new();
    let many: String = (0..65).map(|i| format!("a{i} = {{ type = \"string\" }}\n")).collect();
    add(&home, &FETCHING.replace("text = {", &format!("{many}text = {{")), &["--grant", "none"])
        .exit(2)
        .says(&["64 arguments"]);
    let heavy = FETCHING.replace("required = true", "pattern = '\\w{200}\\pL{200}'");
    add(&home, &heavy, &["--grant", "none"]).exit(2).says(&["text"]);
    let none = FETCHING.replace("methods = [\"GET\"]", "methods = []");
    add(&home, &none, &["--grant", "none"]).exit(2).says(&["at least one method"]);
}

/// Types that double on each of fourteen levels: a small component with 32,768 parts of schema.
#[test]
fn a_type_that_explodes_is_refused() {
    let home = Home::new();
    let levels: String = (1..=14).map(|i| format!("(type $t{i} (tuple $t{} $t{}))\n", i - 1, i - 1)).collect();
    let text = format!(
        "(component
            (core module $m
                (memory (export \"memory\") 1)
                (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                (func (export \"f\") (param i32 i32)))
            (core instance $i (instantiate $m))
            (alias core export $i \"memory\" (core memory $memory))
            (alias core export $i \"realloc\" (core func $realloc))
            (alias core export $i \"f\" (core func $f'))
            (type $t0 (tuple u8 u8)) {levels}
            (func $f (param \"x\" (list $t14)) (canon lift (core func $f') (memory $memory) (realloc $realloc)))
            (export \"f\" (func $f)))"
    );
    let file = home.file("bomb.wasm", wat::parse_str(text).unwrap());
    home.kiso(&["skill", "add", file.to_str().unwrap()]).exit(1).says(&["4,000 parts"]);
}

/// A grant of nothing stays empty, also for an update that requests write access.
#[test]
fn to_grant_nothing_gives_nothing() {
    let home = Home::new();
    let workspace =
        |home: &Home| home.kiso(&["skill", "info", "echo", "--json"]).json()["allowed"]["workspace"].clone();
    let asking =
        |version: &str, workspace: &str| format!("{}workspace = \"{workspace}\"\n", FETCHING.replace("0.1.0", version));
    add(&home, &asking("0.1.0", "read"), &["--grant", "none"]).ok();
    assert_eq!(workspace(&home), "none");
    home.kiso(&["skill", "grant", "echo", "--write"]).exit(2).says(&["does not ask to write to /work"]);
    home.kiso(&["skill", "grant", "echo", "--read"]).ok();
    assert_eq!(workspace(&home), "read");
    add(&home, &asking("0.2.0", "write"), &["--grant", "none"]).ok();
    assert_eq!(workspace(&home), "none");
    home.kiso(&["skill", "grant", "echo", "--write"]).ok();
    assert_eq!(workspace(&home), "write");
    home.kiso(&["skill", "grant", "echo", "--none"]).ok();
    assert_eq!(workspace(&home), "none");
    home.kiso(&["skill", "grant", "echo", "--all"]).ok();
    assert_eq!(workspace(&home), "write");
}
