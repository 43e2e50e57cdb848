//! The list of capabilities in the documentation, in `kiso doctor` and for components.

use crate::harness::{Home, root};
use kiso_sandbox::skill::grant::Capabilities;

/// The table of docs/skills.md is generated from the list. `KISO_WRITE_DOCS=1` with this test writes it.
#[test]
fn the_documentation_has_a_row_for_each_capability() {
    let file = root().join("docs/skills.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (begin, end) = ("<!-- capabilities -->\n", "<!-- end of capabilities -->");
    let (before, rest) = page.split_once(begin).expect("it says where the table begins");
    let (found, after) = rest.split_once(end).expect("it says where the table ends");
    let table = Capabilities::table();
    assert!(table.lines().count() > 8, "{table}");
    if std::env::var_os("KISO_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "KISO_WRITE_DOCS=1 with this test rewrites the table");
    }
}

#[test]
fn doctor_says_who_was_granted_what() {
    let home = Home::new();
    let grants = |home: &Home| {
        let lines = home.kiso(&["--json", "doctor", "--offline"]).ok().json_lines();
        let line =
            lines.into_iter().find(|line| line["what"] == "capability http").expect("a line for each capability");
        line["detail"].as_str().unwrap().to_owned()
    };
    let before = grants(&home);
    assert!(before.contains("certificate authorities") && !before.contains("fetch"), "{before}");
    home.kiso(&["skill", "grant", "fetch", "--host", "example.org"]).ok();
    let after = grants(&home);
    assert!(after.contains("fetch: reach example.org (GET"), "{after}");
}

/// A skill for the draft that calls the log interface of both versions.
const OF_TWO_VERSIONS: &str = r#"
(component
  (import "kiso:skill/types@0.1.0" (instance $types
    (type $call' (record (field "tool" string) (field "args" string) (field "session" string) (field "locale" string)))
    (export "call" (type $call (eq $call')))
    (type $file' (record (field "path" string) (field "media-type" (option string)) (field "title" (option string))))
    (export "file" (type $file (eq $file')))
    (type $reply' (record (field "text" string) (field "data" (option string)) (field "files" (list $file))))
    (export "reply" (type $reply (eq $reply')))
    (type $failure' (record (field "code" string) (field "message" string) (field "retryable" bool)))
    (export "failure" (type $failure (eq $failure')))
  ))
  (alias export $types "call" (type $call))
  (alias export $types "reply" (type $reply))
  (alias export $types "failure" (type $failure))
  (import "kiso:skill/log@0.1.0" (instance $old
    (export "write" (func (param "level" string) (param "message" string)))))
  (import "kiso:skill/log@0.2.0-draft" (instance $new
    (export "write" (func (param "level" string) (param "message" string) (param "fields" (list (tuple string string)))))))

  (core module $memory
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
    (data (i32.const 0x08) "\00\00\00\00\40\00\00\00\04\00\00\00") ;; ok, text: 4 bytes at 0x40
    (data (i32.const 0x40) "done" "info" "first" "second" "town" "Oslo")
    (data (i32.const 0x80) "\53\00\00\00\04\00\00\00\57\00\00\00\04\00\00\00") ;; [("town", "Oslo")]
  )
  (core instance $m (instantiate $memory))
  (alias core export $m "memory" (core memory $mem))
  (alias core export $m "realloc" (core func $realloc))
  (core func $old' (canon lower (func $old "write") (memory $mem)))
  (core func $new' (canon lower (func $new "write") (memory $mem)))
  (core module $core
    (import "host" "old" (func $old (param i32 i32 i32 i32)))
    (import "host" "new" (func $new (param i32 i32 i32 i32 i32 i32)))
    (func (export "run") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $old (i32.const 0x44) (i32.const 4) (i32.const 0x48) (i32.const 5))
      (call $new (i32.const 0x44) (i32.const 4) (i32.const 0x4d) (i32.const 6) (i32.const 0x80) (i32.const 1))
      (i32.const 0x08)))
  (core instance $i (instantiate $core
    (with "host" (instance (export "old" (func $old')) (export "new" (func $new'))))))
  (alias core export $i "run" (core func $run'))
  (func $run (param "call" $call) (result (result $reply (error $failure)))
    (canon lift (core func $run') (memory $mem) (realloc $realloc)))
  (instance $skill
    (export "call" (type $call)) (export "reply" (type $reply)) (export "failure" (type $failure))
    (export "run" (func $run)))
  (export "kiso:skill/skill@0.2.0-draft" (instance $skill))
)"#;

#[test]
fn two_versions_of_an_interface_stand_side_by_side() {
    let home = Home::new();
    let file = home.file("two.wasm", wat::parse_str(OF_TWO_VERSIONS).expect("the text is right"));
    let manifest = root().join("tests/guests/wat/kiso.toml");
    let (file, manifest) = (file.to_str().unwrap(), manifest.to_str().unwrap());
    let ran = home.kiso(&["skill", "add", file, "--manifest", manifest, "--name", "two", "--grant", "none"]);
    if !cfg!(debug_assertions) {
        ran.exit(2).says(&["the draft 0.2.0-draft of kiso:skill", "released builds of kiso do not load"]);
        return;
    }
    ran.ok();
    let ended = home.call("two", &serde_json::json!({}));
    assert_eq!(ended["text"], "done", "{ended}");
    let lines: Vec<_> = ended["log"].as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(lines, ["first", "second town=Oslo"]);
    // A component that was built for 0.1 still works.
    home.add("echo");
}
