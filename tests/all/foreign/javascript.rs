//! Projects in JavaScript and TypeScript, as `kiso skill new` creates them and as people extend them.

use super::{built, keep_compiled, left_out, tool, warm_home};
use crate::harness::{Home, missing_tool, root};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether the tools are available; prints the skipped test otherwise.
#[track_caller]
fn has_tools(what: &str) -> bool {
    let line = built().1.lines().find(|l| l.starts_with("SKIPPED js-skill:"));
    line.inspect(|line| left_out(what, line)).is_none()
}

/// A new project with the npm packages that the guests' build installed, so that nothing is fetched twice.
fn project(home: &Home, lang: &str, place: &str) -> PathBuf {
    let dir = home.dir.path().join(place);
    home.kiso(&["skill", "new", "hello", "--lang", lang, "--dir", dir.to_str().unwrap()]).ok();
    std::fs::create_dir(dir.join("node_modules")).unwrap();
    let tools = tool(&built().0, "qjs-").join("node_modules");
    for entry in std::fs::read_dir(tools).unwrap().flatten() {
        symlink(entry.path(), dir.join("node_modules").join(entry.file_name())).unwrap();
    }
    symlink("../vendor/kiso-sdk", dir.join("node_modules/kiso-sdk")).unwrap();
    dir
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[track_caller]
fn edit(path: PathBuf, old: &str, new: &str) {
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{text}");
    std::fs::write(path, text.replace(old, new)).unwrap();
}

#[test]
fn new_projects_build_test_and_install() {
    if !has_tools("kiso skill new --lang js") {
        return;
    }
    for lang in ["js", "ts"] {
        let home = warm_home();
        let dir = project(&home, lang, lang);
        let dir = dir.to_str().unwrap();
        home.kiso(&["skill", "test", "--dir", dir, "name=Ada"]).ok().prints(&["Hello, Ada!"]);
        keep_compiled(&home);
        home.kiso(&["skill", "add", &format!("{dir}/hello.wasm")]).ok().prints(&["loaded hello"]);
        let greeting = home.call("hello", &json!({ "name": "Ada", "loud": true }));
        assert_eq!(greeting["data"], json!({ "greeting": "HELLO, ADA!" }), "{greeting}");
        assert_eq!(greeting["log"][0]["message"], "greeting in session default", "{greeting}");
        home.kiso(&["skill", "run", "hello", "name= "]).exit(1).says(&["the name is blank"]);
    }
}

/// Each answer of this skill tests one feature that programs for the web and for npm expect.
const SKILL: &str = r#"
import { Failure, defineSkill, files, kv, reply } from "kiso-sdk";
import shout from "shout";
import { deep } from "./lib/deep";

console.log("the component is made", { at: new URL("https://example.org/a/../b?x=1").href });
const frozen = Math.random();

interface Args { name: string; loud: boolean }

export const skill = defineSkill<Args>(({ name }) => {
  switch (name) {
    case "throw": return reply(String(deep(2)));
    case "string": throw "only a string";
    case "promise": return Promise.resolve(reply("late")) as never;
    case "nothing": return undefined as never;
    case "failure": throw new Failure("not-today", "the moon", { retryable: true });
    case "missing": return reply(files.readText("missing.txt"));
    case "binary": return reply(files.readText("made/bytes.bin"));
  }
  console.warn("in the call", [1, new Map([["a", { b: 2 }]])]);
  files.writeText("/work/made/text.txt", "grüße 😀");
  files.writeBytes("made/bytes.bin", Uint8Array.from({ length: 3_000_000 }, (_, at) => at % 251));
  kv.set("key", "wört");
  const copy = structuredClone({ map: new Map([[1, new Date(0)]]) });
  return reply("done", {
    files: ["made/text.txt"],
    data: {
      package: shout("é"),
      text: files.readText("made/text.txt"),
      list: files.list("made"),
      exists: [files.exists("made"), files.exists("made/none.txt")],
      bytes: files.readBytes("made/bytes.bin").every((byte, at) => byte === at % 251),
      encoded: [...new TextEncoder().encode("é")],
      decoded: new TextDecoder("latin1").decode(Uint8Array.of(0xe9, 0x80)),
      uuid: crypto.randomUUID(),
      random: Math.random() !== frozen,
      values: new Set(crypto.getRandomValues(new Uint8Array(32))).size > 4,
      kv: [kv.get("key"), kv.get("none") ?? "none"],
      copy: copy.map.get(1)?.getTime(),
      query: String(new URLSearchParams({ a: "b c" })),
      base64: atob(btoa("x")),
    },
  });
});
"#;

#[test]
fn a_project_has_modules_packages_files_and_what_the_web_has() {
    if !has_tools("a bundle of JavaScript") {
        return;
    }
    let home = warm_home();
    let dir = project(&home, "ts", "project");
    write(&dir, "skill.ts", SKILL);
    let deep = "export function deep(n: number): number {\n  if (n === 0) throw new RangeError(\"\\x1b[31mtoo deep\", { cause: new TypeError(\"why\") });\n  return deep(n - 1) + 1;\n}\n";
    write(&dir, "lib/deep.ts", deep);
    // A typical npm package: CommonJS, several files, and checks for Node.js when it is loaded.
    write(
        &dir,
        "node_modules/shout/package.json",
        "{ \"name\": \"shout\", \"version\": \"1.0.0\", \"main\": \"index.js\" }",
    );
    let index = "const mode = process.env.NODE_ENV;\nglobal.loaded = true;\nmodule.exports = (text) => require(\"./lib/upper\")(text) + mode;\n";
    write(&dir, "node_modules/shout/index.js", index);
    write(&dir, "node_modules/shout/lib/upper.js", "module.exports = (text) => text.toUpperCase();\n");
    edit(dir.join("kiso.toml"), "workspace = \"none\"", "workspace = \"write\"");
    home.kiso(&["skill", "build", dir.to_str().unwrap()]).ok();
    home.kiso(&["skill", "add", dir.join("hello.wasm").to_str().unwrap(), "--grant", "all"]).ok();
    keep_compiled(&home);

    let call = |name: &str| home.call("hello", &json!({ "name": name }));
    let done = call("done");
    let data = &done["data"];
    let uuid = data["uuid"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
    let expected = json!({
        "package": "Éproduction",
        "text": "grüße 😀",
        "list": [{ "name": "bytes.bin", "isDirectory": false }, { "name": "text.txt", "isDirectory": false }],
        "exists": [true, false],
        "bytes": true,
        "encoded": [0xc3, 0xa9],
        "decoded": "é€",
        "uuid": uuid,
        "random": true,
        "values": true,
        "kv": ["wört", "none"],
        "copy": 0,
        "query": "a=b+c",
        "base64": "x",
    });
    assert_eq!(*data, expected);
    assert_eq!(done["files"][0]["path"], "made/text.txt", "{done}");
    assert_eq!(done["log"], json!([{ "level": "warn", "message": "in the call [1, Map { \"a\" => { b: 2 } }]" }]));
    assert_ne!(call("again")["data"]["uuid"], uuid);

    let error = |name: &str, code: &str| -> String {
        let Value::Object(error) = call(name)["error"].take() else { panic!("{name} is no error") };
        assert_eq!(error["code"], code, "{error:?}");
        error["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(error("failure", "not-today"), "the moon");
    assert_eq!(error("missing", "not-found"), "missing.txt: there is no such file");
    assert_eq!(error("binary", "bad-file"), "made/bytes.bin: is not UTF-8 text");
    // The location refers to the source, not to the bundle, and a control character does not reach a terminal.
    let thrown = error("throw", "trap");
    assert!(
        thrown.starts_with("it crashed: RangeError:  [31mtoo deep (TypeError: why), at deep (lib/deep.ts:2:"),
        "{thrown}"
    );
    assert_eq!(error("string", "trap"), "it crashed: it threw \"only a string\"");
    assert!(error("promise", "trap").contains("returned a promise, but nothing can be waited for"));
    assert!(error("nothing", "trap").contains("must return a reply, an object with a `text`; it returned undefined"));

    home.kiso(&["skill", "grant", "hello", "--none"]).ok();
    assert!(error("missing", "denied").contains("the skill has no workspace"));
}

/// A project whose module is generated by its own script, in two places.
#[test]
fn the_build_script_runs_first_and_builds_are_reproducible() {
    if !has_tools("reproducible builds of JavaScript") {
        return;
    }
    let home = Home::new();
    let places = ["one", "another place/b:c"].map(|place| {
        std::fs::create_dir_all(home.dir.path().join("another place")).unwrap();
        let dir = project(&home, "js", place);
        std::fs::rename(dir.join("skill.js"), dir.join("template.js")).unwrap();
        let script = "import { mkdirSync, readFileSync, writeFileSync } from \"node:fs\";\nmkdirSync(\"dist\", { recursive: true });\n\
                      writeFileSync(\"dist/skill.js\", readFileSync(\"template.js\", \"utf8\").replace(\"Hello\", \"Good day\"));\n";
        write(&dir, "make.mjs", script);
        edit(dir.join("package.json"), "\"type\":", "\"main\": \"dist/skill.js\", \"scripts\": { \"build\": \"node make.mjs\" }, \"type\":");
        dir
    });
    let build = |dir: &Path| {
        let ran = home.kiso(&["skill", "build", dir.to_str().unwrap()]);
        (ran.ok().stderr.clone(), std::fs::read(dir.join("hello.wasm")).unwrap())
    };
    let (said, one) = build(&places[0]);
    assert!(said.contains("Component written"), "{said}");
    let bundle = std::fs::read_to_string(places[0].join("target/js/bundle.js")).unwrap();
    assert!(bundle.contains("Good day"), "the module that the script made is the one that was built");
    assert!(one == build(&places[1]).1, "two builds of the same sources differ");
    // Unchanged files are not rebuilt.
    let (said, again) = build(&places[0]);
    assert!(!said.contains("Component written") && one == again, "{said}");
    edit(places[0].join("template.js"), "Hello", "Farewell, Hello");
    let (said, changed) = build(&places[0]);
    assert!(said.contains("Component written") && one != changed, "{said}");

    edit(places[0].join("package.json"), "node make.mjs", "exit 3");
    home.kiso(&["skill", "build", places[0].to_str().unwrap()]).exit(1).says(&["npm failed"]);
    edit(places[0].join("package.json"), "dist/skill.js", "dist/none.js");
    edit(places[0].join("package.json"), "exit 3", "exit 0");
    let ran = home.kiso(&["skill", "build", places[0].to_str().unwrap()]);
    ran.exit(2).says(&["\"dist/none.js\", but there is no such file, and its script `build` did not make it"]);
}

/// The error names the Node.js module that a package needs, and says what to do.
#[test]
fn a_package_for_node_is_refused_with_its_reason() {
    if !has_tools("a bundle of JavaScript") {
        return;
    }
    let home = Home::new();
    let dir = project(&home, "js", "project");
    edit(dir.join("skill.js"), "// Greets by name.", "import net from \"node:net\";\nnet.connect(1);\n");
    let ran = home.kiso(&["skill", "build", dir.to_str().unwrap()]);
    ran.exit(1).says(&["node:net", "packages that need Node.js's own modules"]);
}

/// Text encodings, compared with those of Node.js.
#[test]
fn text_is_encoded_and_decoded_as_in_node() {
    if Command::new("node").arg("--version").stdout(Stdio::null()).status().is_err() {
        return missing_tool("TextDecoder", "there is no node");
    }
    let script = root().join("tests/foreign/encodings.mjs");
    let text = root().join("host/src/cli/skill/build/js/text.js");
    let output = Command::new("node").arg(script).arg(text).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
