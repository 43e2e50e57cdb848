//! The ordinary guests: each shape that can be installed, called through the command line.

use crate::harness::{Home, guest};
use serde_json::{Value, json};

macro_rules! tested {
    ($name:ident) => {
        const _: fn() = $name;
    };
}
// A guest without a test of its name does not compile.
kiso_tests::foreach_guest!(tested);

#[test]
fn guest_echo() {
    let home = Home::new();
    home.add("echo");
    let ran = home.kiso(&["skill", "run", "echo", "text=hello there"]);
    assert_eq!(ran.ok().stdout, "hello there\n");
}

#[test]
fn guest_pair() {
    // The scenario parallel_tools covers two concurrent calls of it.
    let home = Home::new();
    home.add("pair");
    let ran = home.kiso(&["skill", "run", "pair", "me=left", "other=left"]);
    assert_eq!(ran.ok().stdout, "left met left\n");
}

#[test]
fn guest_oracle() {
    // mcp/component.rs tests each mode. This test checks that it is a server, and as a skill only a command that does not block.
    let home = Home::new();
    home.config(&format!("[mcp.oracle]\ncomponent = \"{}\"\n", guest("oracle").display()));
    home.kiso(&["mcp", "list"]).ok().prints(&["oracle.ask  off, not in allow", "runs in the sandbox"]);
}

#[test]
fn guest_hostile() {
    // modes.rs tests each mode. This test checks that the command line says what happened and exits with 5.
    let home = Home::new();
    home.add("hostile");
    let ran = home.kiso(&["skill", "run", "hostile", "mode=write"]);
    ran.exit(5).says(&["hostile 0.1.0", "64 MiB", "[engine] write_mib"]);
    let ran = home.kiso(&["skill", "run", "hostile", "mode=failure"]);
    ran.exit(1).says(&["try tomorrow"]);
    let object = home.call("hostile", &json!({ "mode": "write" }));
    assert_eq!(object["ok"], false);
    assert_eq!(object["error"]["limit"]["limit"], "call-writes");
}

#[test]
fn guest_unwell() {
    let home = Home::new();
    let file = guest("unwell");
    let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
    ran.exit(1).says(&["self-test failed", "the table of numbers is missing"]);
    let ran = home.kiso(&["skill", "run", "unwell"]);
    ran.exit(2).says(&["no such skill"]);
}

#[test]
fn guest_command() {
    let home = Home::new();
    home.add("command");
    let text = home.kiso(&["skill", "run", "command", "text=hi"]).ok().stdout.clone();
    let given: Value = serde_json::from_str(&text).expect("it prints what it read");
    assert_eq!(given["args"], json!({ "mode": "echo", "text": "hi" }), "defaults are filled in");
    assert_eq!(given["workspace"], "/work");
    home.kiso(&["skill", "run", "command", "mode=exit3"]).exit(1).says(&["exit code", "before the exit"]);
    home.kiso(&["skill", "run", "command", "mode=complain"]).ok().prints(&["done"]);
    home.kiso(&["skill", "run", "command", "mode=panic"]).exit(1).says(&["the command gave up, on purpose"]);
    home.kiso(&["skill", "run", "command", "mode=print"]).exit(5).says(&["256 KiB", "output_kib"]);
}

#[test]
fn guest_calc() {
    let home = Home::new();
    let file = guest("calc");
    let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
    ran.ok().prints(&["loaded calc", "plain functions", "calc.add"]);
    let cases = [
        ("calc.add", json!({ "a": 2, "b": 40 }), json!(42)),
        ("calc.mean", json!({ "values": [1, 2, 6] }), json!(3.0)),
        ("calc.mean", json!({ "values": [] }), json!(null)),
        ("calc.greet", json!({ "person": { "name": "Ada", "age": 36 } }), Value::Null),
        ("calc.divide", json!({ "a": 1, "b": 8 }), json!(0.125)),
        ("calc.swap", json!({ "pair": ["x", 18446744073709551615u64] }), json!([18446744073709551615u64, "x"])),
        ("calc.initial", json!({ "name": "Ödön" }), json!("Ö")),
        ("calc.bytes", json!({ "text": "é" }), json!([195, 169])),
        ("calc.negate", json!({ "value": true }), json!(false)),
        ("calc.convert", json!({ "degrees": 100, "from": "celsius", "to": "kelvin" }), json!(373.15)),
        ("calc.open-on", json!({ "on": ["monday", "friday"] }), json!([2, ["monday", "friday"]])),
        ("calc.area", json!({ "of": { "rectangle": [2, 3] } }), json!(6.0)),
        ("calc.area", json!({ "of": "point" }), json!(0.0)),
        ("calc.cover", json!({ "spans": [{ "start": -5, "end": 2 }, { "start": 0, "end": 9 }] }), Value::Null),
    ];
    for (tool, args, expected) in cases {
        let object = home.call(tool, &args);
        assert_eq!(object["ok"], true, "{tool} {args}: {object}");
        if tool == "calc.greet" {
            assert!(object["text"].as_str().unwrap().contains("Ada"), "{object}");
        } else if tool == "calc.cover" {
            assert_eq!((&object["data"]["start"], &object["data"]["end"]), (&json!(-5), &json!(9)), "{object}");
        } else {
            assert_eq!(object["data"], expected, "{tool} {args}");
        }
    }
    let bad = home.call("calc.divide", &json!({ "a": 1, "b": 0 }));
    assert_eq!((&bad["ok"], &bad["error"]["code"]), (&json!(false), &json!("failed")), "{bad}");
    home.kiso(&["skill", "run", "calc.add", "a=1"]).exit(2).says(&["b: is required"]);
    home.kiso(&["skill", "run", "calc.add", "a=1", "b=5000000000"])
        .exit(2)
        .says(&["b: 5000000000 is greater than the maximum"]);
    home.kiso(&["skill", "run", "calc", "a=1"]).exit(2).says(&["calc.add"]);
    home.kiso(&["skill", "run", "calc.convert", "degrees=1", "from=celsius", "to=reaumur"])
        .exit(2)
        .says(&["to: ", "kelvin"]);
}

#[test]
fn guest_hostile3() {
    // wasi_0_3.rs tests each mode. This test checks that the command line takes it as any other command.
    let home = Home::new();
    home.add("hostile3");
    let text = home.kiso(&["skill", "run", "hostile3", "text=hi"]).ok().stdout.clone();
    let given: Value = serde_json::from_str(&text).expect("it prints what it read");
    assert_eq!((&given["args"]["text"], &given["workspace"]), (&json!("hi"), &json!("/work")));
    home.kiso(&["skill", "run", "hostile3", "mode=exit7"]).exit(1).says(&["exit code 7"]);
    home.kiso(&["skill", "run", "hostile3", "mode=print"]).exit(5).says(&["256 KiB", "output_kib"]);
}

#[test]
fn guest_flow() {
    let home = Home::new();
    let file = guest("flow");
    home.kiso(&["skill", "add", file.to_str().unwrap()]).ok().prints(&["loaded flow", "plain functions", "flow.later"]);
    for (tool, args, expected) in [
        ("flow.add", json!({ "a": 2, "b": 40 }), json!(42)),
        ("flow.later", json!({ "text": "now" }), json!("now, later")),
        ("flow.divide", json!({ "a": 1, "b": 8 }), json!(0.125)),
        ("flow.spell", json!({ "text": "é", "times": 3 }), json!("ééé")),
        ("flow.rows", json!({ "count": 2 }), json!(["row 0", "row 1"])),
        ("flow.value", json!({ "text": "a value" }), json!("a value")),
        ("flow.ended", json!({ "fails": false }), json!(["the only row"])),
    ] {
        let object = home.call(tool, &args);
        assert_eq!((&object["ok"], &object["data"]), (&json!(true), &expected), "{tool} {args}: {object}");
    }
    for (tool, args, why) in [
        ("flow.divide", json!({ "a": 1, "b": 0 }), "divided by zero"),
        ("flow.ended", json!({ "fails": true }), "the source dried up"),
    ] {
        let object = home.call(tool, &args);
        assert_eq!((&object["ok"], &object["error"]["code"]), (&json!(false), &json!("failed")), "{object}");
        assert!(object["error"]["message"].as_str().unwrap().contains(why), "{object}");
    }
    assert_eq!(home.call("flow.endless", &json!({}))["error"]["limit"]["limit"], "output");
}

/// A component without a manifest can be granted its imports; before that, it may read `/work` and reaches no host.
#[test]
fn guest_probe() {
    let home = Home::new();
    let file = guest("probe");
    let add = |grant: &[&str]| home.kiso(&[&["skill", "add", file.to_str().unwrap()][..], grant].concat());
    let allowed = || home.kiso(&["skill", "info", "probe", "--json"]).json()["allowed"].clone();
    let shell = |line: &str| home.kiso(&["shell", "-c", line]);
    add(&[]).ok();
    assert_eq!((&allowed()["workspace"], &allowed()["http"]), (&json!("read"), &json!([])));
    shell("echo there > a.txt; probe read a.txt").ok().prints(&["there"]);
    shell("probe write b.txt no").exit(1).says(&["b.txt"]);
    // A second time: permissions that were not granted before are not granted now.
    add(&[]).ok();
    assert_eq!(allowed()["workspace"], "read");

    home.kiso(&["skill", "grant", "probe", "--write"]).ok().prints(&["workspace = \"write\""]);
    shell("probe write b.txt yes && cat b.txt").ok().prints(&["yes"]);
    home.kiso(&["skill", "grant", "probe", "--read"]).ok();
    shell("probe write b.txt no").exit(1);

    // A command gets the line's working directory, /tmp and environment.
    home.kiso(&["skill", "grant", "probe", "--write"]).ok();
    let line = "mkdir -p deep/er && cd deep/er && probe write here.txt ok && cat /work/deep/er/here.txt";
    shell(line).ok().prints(&["ok"]);
    shell("echo scratch > /tmp/t && probe read /tmp/t").ok().prints(&["scratch"]);
    shell("cd /tmp && probe write t2 ok && cat /tmp/t2").ok().prints(&["ok"]);
    shell("export COLOR=blue; probe env COLOR; SIZE=9 probe env SIZE; probe env HOME")
        .ok()
        .prints(&["blue\n9\n/work\n"]);
    // A link that leads outside is not a working directory.
    shell("ln -s /etc out; cd out 2>/dev/null; probe read passwd").exit(1);

    // A grant of nothing gives nothing.
    add(&["--grant", "none"]).ok();
    assert_eq!(allowed()["workspace"], "none");
    for line in ["probe read a.txt", "probe read /work/a.txt", "echo x > /tmp/x; probe read /tmp/x"] {
        shell(line).exit(1);
    }
    home.kiso(&["skill", "grant", "probe", "--read"]).ok();
    shell("probe read a.txt").ok();
    add(&["--grant", "all"]).ok();
    assert_eq!((&allowed()["workspace"], &allowed()["http"][0]["host"]), (&json!("write"), &json!("*")));
    home.kiso(&["skill", "grant", "probe", "--none"]).ok();
    assert_eq!(allowed()["workspace"], "none");
}

/// Secrets that the host knows are removed from the environment that a command gets.
#[test]
fn a_command_gets_the_lines_environment_without_secrets() {
    let home = Home::new();
    home.kiso(&["skill", "add", guest("probe").to_str().unwrap()]).ok();
    let line = "export KEPT=plain STOLEN=x-hunter2hunter2-x; probe env KEPT; probe env STOLEN";
    let ran = home.kiso_with(&["shell", "-c", line], |command| {
        command.env("KISO_SKILL_OTHER_TOKEN", "hunter2hunter2");
    });
    ran.ok().prints(&["plain\nunset\n"]);
}
