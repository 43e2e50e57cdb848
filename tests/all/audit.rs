//! Audits: which of a skill's permissions its calls use, and the smallest grant that would have been enough.

use crate::harness::{Home, guest, root};
use crate::web;
use serde_json::{Value, json};

/// A server on loopback that answers every request with a short text.
fn serve() -> String {
    web::serve(|_| web::text("rain\n"))
}

fn audit(home: &Home, skill: &str) -> Value {
    home.kiso(&["--json", "skill", "audit", skill]).json()
}

/// The entries of an audit, as "capability how name".
fn things(audit: &Value) -> Vec<String> {
    let things = audit["used"]["things"].as_array().into_iter().flatten();
    let text = |thing: &Value, key: &str| thing[key].as_str().unwrap().to_owned();
    things.map(|t| format!("{} {} {}", text(t, "capability"), text(t, "how"), text(t, "name"))).collect()
}

#[test]
fn what_a_skill_reached_is_shown_and_the_rest_is_taken_away() {
    let home = Home::new();
    let (one, other) = (serve(), serve());
    home.kiso(&["skill", "grant", "fetch", "--host", &one, "--host", &other, "--private"]).ok();
    home.kiso(&["skill", "grant", "fetch", "--host", "example.org", "--write"]).ok();

    // Before the first call there is no record of use.
    let before = audit(&home, "fetch");
    assert_eq!((&before["used"], &before["least"], &before["narrower"]), (&json!(null), &json!(null), &json!([])));
    assert!(
        before["imports"].as_array().unwrap().iter().any(|i| i.as_str().unwrap().starts_with("wasi:http/outgoing"))
    );
    home.kiso(&["skill", "audit", "fetch", "--tighten"]).exit(2).says(&["no call of fetch", "was recorded"]);

    for _ in 0..2 {
        home.kiso(&["skill", "run", "fetch", &format!("url=http://{one}/")]).ok().prints(&["rain"]);
    }
    // A refused call does not count as use.
    home.kiso(&["skill", "run", "fetch", "url=http://127.0.0.1:1/"]).exit(4);
    let found = audit(&home, "fetch");
    assert_eq!((&found["used"]["calls"], &found["used"]["failed"]), (&json!(3), &json!(1)));
    assert_eq!(things(&found), [format!("http GET {one}"), format!("http private {one}")], "{found}");
    assert!(found["used"]["memory_bytes"].as_u64().unwrap() > 1 << 16, "{found}");
    assert_eq!(found["least"]["http"], json!([{ "host": one, "methods": ["GET"], "private": true }]));
    assert_eq!(found["least"]["workspace"], "none");
    home.kiso(&["skill", "audit", "fetch"]).ok().prints(&[
        "used in 3 calls",
        "1 of them failed",
        &format!("http: GET {one} (in 2)"),
        &format!("- reach {other} (GET, private addresses too)"),
        "- reach example.org (GET)",
        "+ workspace: none",
        "--tighten",
    ]);

    let tightened = home.kiso(&["skill", "audit", "fetch", "--tighten"]);
    tightened.ok().prints(&["is allowed less now", &format!("- reach {other}"), "+ workspace: none"]);
    home.kiso(&["skill", "run", "fetch", &format!("url=http://{one}/")]).ok().prints(&["rain"]);
    home.kiso(&["skill", "run", "fetch", &format!("url=http://{other}/")]).exit(4).says(&["may not be reached"]);
    // The second time there is nothing to remove, and nothing is returned.
    let again = home.kiso(&["--json", "skill", "audit", "fetch", "--tighten"]).json();
    assert_eq!(again, json!({ "type": "tightened", "skill": "fetch", "changes": [] }));
}

#[test]
fn files_and_secrets_are_recorded_by_their_names_alone() {
    let home = Home::new();
    home.add("hostile");
    home.kiso(&["skill", "grant", "hostile", "--secret", "api_key"]).ok();
    let run = |mode: &str, path: &str| {
        home.kiso_with(&["skill", "run", "hostile", &format!("mode={mode}"), &format!("path={path}")], |command| {
            command.env("KISO_SKILL_HOSTILE_API_KEY", "sk-very-secret-value-123");
        })
    };
    run("escape", "../../etc/passwd").ok();
    let found = audit(&home, "hostile");
    // A variable of the environment counts as received whether or not the skill reads it.
    assert!(things(&found).contains(&"secrets received api_key".to_owned()), "{found}");
    assert!(!found.to_string().contains("very-secret"), "{found}");
    home.kiso(&["skill", "run", "hostile", "mode=write", "amount=1"]).exit(5);
    let found = audit(&home, "hostile");
    assert!(things(&found).contains(&"workspace write /work".to_owned()), "{found}");
    assert!(found["used"]["written_bytes"].as_u64().unwrap() > 0, "{found}");

    // Another component under the same name starts a new record.
    let changed = home.file("next/hostile.wasm", {
        let mut bytes = std::fs::read(guest("hostile")).unwrap();
        // A custom section named "x" with no content.
        bytes.extend_from_slice(&[0, 2, 1, b'x']);
        bytes
    });
    let manifest = root().join("tests/guests/hostile/kiso.toml");
    let added = ["skill", "add", changed.to_str().unwrap(), "--manifest", manifest.to_str().unwrap(), "--grant", "all"];
    home.kiso(&added).ok();
    assert_eq!(audit(&home, "hostile")["used"], json!(null));
}

#[test]
fn a_skill_that_reads_does_not_keep_the_right_to_write() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let work = home.work("main");
    std::fs::create_dir_all(work.join("june/deep/down")).unwrap();
    std::fs::write(work.join("june/deep/down/rain.csv"), "day,rain\n1,3\n2,5\n").unwrap();
    let sum = ["skill", "run", "--session", "main", "data", "file=june/deep/down/rain.csv", "compute=sum(rain)"];
    home.kiso(&sum).ok().prints(&["8"]);
    let found = audit(&home, "data");
    assert!(things(&found).contains(&"workspace read /work/june/deep".to_owned()), "{found}");
    assert!(!things(&found).iter().any(|thing| thing.starts_with("workspace write")), "{found}");
    home.kiso(&["skill", "audit", "data", "--tighten"]).ok().prints(&["- workspace: write", "+ workspace: read"]);
    home.kiso(&sum).ok().prints(&["8"]);
    let mut saving = sum.to_vec();
    saving.push("save=sum.csv");
    assert_ne!(home.kiso(&saving).code, 0, "it may not write any more");
}

#[test]
fn commands_in_lines_are_recorded_as_well() {
    let home = Home::new();
    let file = guest("command");
    home.kiso(&["skill", "add", file.to_str().unwrap(), "--name", "told", "--grant", "none"]).ok();
    // Several calls at the same moment are written together, and none is lost.
    home.kiso(&["shell", "-c", "for n in 1 2 3; do echo '{}' | told; done"]).ok();
    home.kiso(&["shell", "-c", "echo no JSON | told"]).exit(134);
    let found = audit(&home, "told");
    assert_eq!((&found["used"]["calls"], &found["used"]["failed"]), (&json!(4), &json!(1)), "{found}");
    home.kiso(&["skill", "audit", "nothing"]).exit(2).says(&["no such skill"]);
}
