//! Limits on the bytes and names that are stored and shown of a component: a stranger's file must not damage the home of a person
//! who tries it, nor runs that do not use it.

use crate::harness::{Home, guest};
use serde_json::json;
use std::fmt::Write as _;

/// A component that exports functions of plain values: `types` come first, `params` are the parameters of each function, and
/// `core` are those of its core function.
pub(crate) fn functions(types: &str, names: &[&str], params: &str, core: &str) -> Vec<u8> {
    let mut text = format!(
        "(component
            (core module $m
                (memory (export \"memory\") 1)
                (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                (func (export \"f\") (param {core})))
            (core instance $i (instantiate $m))
            (alias core export $i \"memory\" (core memory $memory))
            (alias core export $i \"realloc\" (core func $realloc))
            (alias core export $i \"f\" (core func $f'))
            {types}\n"
    );
    for (n, name) in names.iter().enumerate() {
        let lift = "(canon lift (core func $f') (memory $memory) (realloc $realloc))";
        writeln!(text, "(func $f{n} {params} {lift}) (export \"{name}\" (func $f{n}))").unwrap();
    }
    wat::parse_str(text + ")").unwrap_or_else(|e| panic!("{e}"))
}

/// Functions that take a list of bytes.
fn of_bytes(names: &[&str]) -> Vec<u8> {
    functions("", names, "(param \"x\" (list u8))", "i32 i32")
}

/// `count` distinct names of this length.
fn names(count: usize, length: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n}{}", "x".repeat(length))).collect()
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\" ")).collect()
}

/// A type with long names that is used many times: a file of 100 kB that would take hundreds of megabytes written out.
#[test]
fn long_names_in_types_are_bounded_wherever_they_stand() {
    let many = names(500, 180);
    let fields: String = many.iter().map(|name| format!("(field \"{name}\" u8) ")).collect();
    let cases: String = many.iter().map(|name| format!("(case \"{name}\" u8) ")).collect();
    let plain_cases: String = many.iter().map(|name| format!("(case \"{name}\") ")).collect();
    let flags: String = names(32, 3_000).iter().map(|name| format!("\"{name}\" ")).collect();
    let kinds = [
        ("enum", format!("(enum {})", quoted(&many))),
        ("record", format!("(record {fields})")),
        ("variant", format!("(variant {cases})")),
        ("variant of nothing", format!("(variant {plain_cases})")),
        ("flags", format!("(flags {flags})")),
    ];
    let home = Home::new();
    for (kind, ty) in kinds {
        // Each level contains the one before twice: 2^10 times the names at the top.
        let levels: String = (1..=10).map(|i| format!("(type $t{i} (tuple $t{} $t{}))\n", i - 1, i - 1)).collect();
        let types = format!("(type $named {ty}) (export $t0 \"named\" (type $named)) {levels}");
        let wasm = functions(&types, &["f"], "(param \"x\" (list $t10))", "i32 i32");
        assert!(wasm.len() < 200_000, "{kind}: a small file, {} bytes", wasm.len());
        let file = home.file("bomb.wasm", wasm);
        let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
        ran.exit(1).says(&["function f", "32768 bytes", "limit"]);
        assert!(ran.stderr.len() < 2_000, "{kind}: an error is for people: {}", ran.stderr.len());
        home.kiso(&["skill", "info", "bomb"]).exit(2);
    }
    assert!(!home.path().join("skills/bomb").exists());
}

/// The texts of all functions and parameters together have one limit.
#[test]
fn what_is_told_of_all_functions_together_is_bounded() {
    let home = Home::new();
    let tools = names(60, 20);
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    // More than sixteen flat parameters are passed through a pointer.
    let params: String = names(15, 20).iter().map(|name| format!("(param \"{name}\" (list u8)) ")).collect();
    let file = home.file("many.wasm", functions("", &tools, &params, "i32"));
    home.kiso(&["skill", "add", file.to_str().unwrap()]).exit(1).says(&["32768"]);
    let file = home.file("few.wasm", functions("", &tools[..4], &params, "i32"));
    home.kiso(&["skill", "add", file.to_str().unwrap()]).ok();
}

#[test]
fn names_that_a_provider_refuses_are_refused_here() {
    let home = Home::new();
    let add = |name: &str, wasm: Vec<u8>| {
        let file = home.file(&format!("{name}.wasm"), wasm);
        home.kiso(&["skill", "add", file.to_str().unwrap()])
    };
    add("exec", of_bytes(&["f"])).exit(2).says(&["`exec` is the name of a built-in tool", "--name"]);
    let long = format!("f{}", "x".repeat(90));
    let ran = add("calc", of_bytes(&["g", &long]));
    ran.exit(1).says(&["calc__fxxx", "97 characters", "they take 64", "--name"]);
    // A skill with only one function is called by the skill's name.
    add("calc", of_bytes(&[&long])).ok();
    let most = format!("f{}", "x".repeat(51));
    let name = "abcdefghij";
    add(name, of_bytes(&["g", &most])).ok().prints(&[&format!("{name}.{most}")]);
    add("abcdefghijk", of_bytes(&["g", &most])).exit(1).says(&["65 characters"]);
}

/// An error repeats only a few of the names in a file, and only their beginnings.
#[test]
fn errors_about_a_file_are_for_people() {
    let home = Home::new();
    let imports: String =
        (0..500).map(|n| format!("(import \"a:b/c{n}{}\" (instance))\n", "x".repeat(2_000))).collect();
    let wasm = wat::parse_str(format!("(component {imports})")).unwrap();
    let file = home.file("imports.wasm", wasm);
    let ran = home.kiso(&["skill", "add", file.to_str().unwrap()]);
    ran.exit(2).says(&["a:b/c0", "and 490 more", "kiso offers"]);
    assert!(ran.stderr.len() < 3_000, "{}", ran.stderr.len());
}

const MANIFEST: &str = "[kiso]
type = \"skill\"
name = \"echo\"
version = \"0.1.0\"
description = \"Answers\"

[kiso.skill]
category = \"test\"

[kiso.skill.args]
text = { type = \"string\", required = true, description = \"what to say\" }
";

#[test]
fn texts_of_a_manifest_are_bounded() {
    let home = Home::new();
    let wasm = guest("echo");
    let table = [
        ("what to say".to_owned(), "y".repeat(58_000), "the description of `text` has 58000 bytes; at most 1000"),
        ("Answers".to_owned(), "y".repeat(5_000), "`description` has 5000 bytes; at most 4000"),
        ("\"test\"".to_owned(), format!("\"{}\"", "t".repeat(33)), "`category`"),
        ("\"test\"".to_owned(), "\"a, b: c\"".to_owned(), "`category`"),
        ("\"test\"".to_owned(), "\"a\\nb\"".to_owned(), "`category`"),
    ];
    for (old, new, expected) in table {
        let manifest = home.file("kiso.toml", MANIFEST.replace(&old, &new));
        let args = ["skill", "add", wasm.to_str().unwrap(), "--manifest", manifest.to_str().unwrap(), "--grant", "all"];
        let ran = home.kiso(&args);
        ran.exit(2).says(&[expected, "kiso.toml:"]);
        assert!(ran.stderr.len() < 2_000, "{}", ran.stderr.len());
    }
    // Each argument is short enough, but all together are too long.
    let many: String =
        (0..40).map(|n| format!("a{n} = {{ type = \"string\", description = \"{}\" }}\n", "d".repeat(900))).collect();
    let manifest = home.file("kiso.toml", format!("{MANIFEST}{many}"));
    let args = ["skill", "add", wasm.to_str().unwrap(), "--manifest", manifest.to_str().unwrap(), "--grant", "all"];
    home.kiso(&args).exit(2).says(&["32768 are the limit for a skill"]);
}

/// A skill that an older kiso accepted and that exceeds the limits is left out with a message; runs work.
#[test]
fn what_is_installed_and_goes_too_far_is_set_aside() {
    let home = Home::new();
    home.add("echo");
    let skills = home.path().join("skills");
    let copy = |name: &str| {
        let dir = skills.join(name);
        std::fs::create_dir(&dir).unwrap();
        for file in ["skill.wasm", "kiso.toml", "installed.json"] {
            std::fs::copy(skills.join("echo").join(file), dir.join(file)).unwrap();
        }
        dir
    };
    copy("exec");
    let long = copy("long");
    let manifest = std::fs::read_to_string(long.join("kiso.toml")).unwrap();
    let described = manifest.replacen("description = \"", &format!("description = \"{}", "y".repeat(58_000)), 1);
    std::fs::write(long.join("kiso.toml"), described).unwrap();
    let huge = copy("huge");
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(huge.join("installed.json")).unwrap()).unwrap();
    record["tools"][0][1]["properties"]["text"]["enum"] = json!(names(20_000, 100));
    std::fs::write(huge.join("installed.json"), record.to_string()).unwrap();

    let listed = home.kiso(&["skill", "list"]);
    listed.exit(1).prints(&["echo"]).says(&["exec: it is set aside", "long: it is set aside", "huge: it is set aside"]);
    listed.says(&["built-in tool", "58", "installed.json", "kiso skill remove huge"]);
    let ran = home.kiso(&["run", "@echo text=still-here"]);
    ran.ok().prints(&["still-here"]).says(&["a skill is left out", "set aside"]);
    assert_eq!(ran.stderr.matches("built-in tool").count(), 1, "it is said once: {}", ran.stderr);
    for name in ["exec", "long", "huge"] {
        home.kiso(&["skill", "run", name, "text=x"]).exit(1).says(&["set aside"]);
        home.kiso(&["skill", "remove", name]).ok();
    }
    home.kiso(&["skill", "list"]).ok();
}

/// Two skills within the limit can together be too much for a small context.
#[test]
fn a_catalog_that_does_not_fit_is_told_with_the_skills_that_fill_it() {
    let home = Home::new();
    let params: String = names(100, 100).iter().map(|name| format!("(param \"{name}\" (list u8)) ")).collect();
    let file = home.file("wide.wasm", functions("", &["f"], &params, "i32"));
    home.kiso(&["skill", "add", file.to_str().unwrap()]).ok();
    let routing =
        json!({ "effort": "medium", "categories": ["other"], "tool_need": 1, "goal": "it", "durable": false });
    let config = "[model_settings.\"test:m\"]\ncontext_budget = 6_000\n[routing]\nfast_path = false\n";
    let _model = crate::crash::serve(&home, &[("router", json!({ "text": routing.to_string() }))], config);
    let ran = home.kiso(&["run", "do it with the wide one"]);
    ran.exit(5);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    for part in ["context_budget", "most of them for wide (", "`kiso skill remove` takes one away"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
