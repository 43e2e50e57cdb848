//! `kiso.toml`: every key is enforced, and every error is reported with line and column.

use crate::harness::{Home, guest};

const GOOD: &str = "[kiso]
type = \"skill\"
name = \"echo\"
version = \"0.1.0\"
description = \"Answers\"

[kiso.skill]
summary = \"Answers\"

[kiso.skill.args]
text = { type = \"string\", required = true }
";

/// A manifest with an error, its position, and words that the message must contain.
const MISTAKES: &[(&str, &str, &str, &[&str])] = &[
    ("description =", "descripton =", ":5:1:", &["descripton", "description"]),
    ("summary =", "sumary =", ":8:1:", &["sumary", "summary"]),
    ("type = \"skill\"", "type = \"tool\"", ":2:8:", &["\"skill\""]),
    ("name = \"echo\"", "name = \"Echo!\"", ":3:8:", &["Echo!"]),
    ("version = \"0.1.0\"", "version = \"\"", ":4:11:", &["version"]),
    ("type = \"string\"", "type = \"text\"", ":11:17:", &["text", "string, int, number, bool, list and object"]),
    ("required = true", "requierd = true", ":11:", &["requierd", "required"]),
    ("required = true", "minimum = 3", ":11:", &["minimum", "string"]),
    ("required = true", "required = true, default = \"x\"", ":11:1:", &["required", "default"]),
    ("required = true", "default = 5", ":11:", &["default"]),
    ("required = true", "pattern = \"(\"", ":11:", &["text"]),
    ("required = true", "format = \"path\"", ":11:", &["path", "file"]),
    ("[kiso.skill.args]", "[kiso.skill.needs]\nnetwork = true\n[kiso.skill.args]", ":11:1:", &["network", "workspace"]),
    ("[kiso.skill.args]", "[kiso.skill.needs]\nworkspace = \"all\"\n[kiso.skill.args]", ":11:13:", &["all", "none"]),
    ("[kiso.skill.args]", "[kiso.skill.needs]\nmemory_mib = 0\n[kiso.skill.args]", ":11:14:", &["memory_mib"]),
    (
        "[kiso.skill.args]",
        "[kiso.skill.needs]\nmemory_mib = 99999\n[kiso.skill.args]",
        "",
        &["memory_mib", "512", "max_memory_mib"],
    ),
    (
        "[kiso.skill.args]",
        "[kiso.skill.needs]\nhttp = [{ host = \"a.org\", inject = { header = \"X\", secret = \"key\" } }]\n[kiso.skill.args]",
        ":11:9:",
        &["key", "secrets"],
    ),
    (
        "[kiso.skill.args]",
        "[kiso.skill.needs]\nhttp = [{ host = \"a.org/x\" }]\n[kiso.skill.args]",
        ":11:9:",
        &["a.org/x"],
    ),
    ("[kiso.skill.args]", "secrets = [\"API KEY\"]\n[kiso.skill.args]", ":10:12:", &["API KEY"]),
    ("[kiso.skill.args]", "[kiso.skill.effects]\nEcho = \"read\"\n[kiso.skill.args]", "", &["\"Echo\"", "(echo)"]),
    (
        "[kiso.skill.args]",
        "[kiso.skill.effects]\necho = { address = [\"to\"] }\n[kiso.skill.args]",
        "",
        &["`effects` of echo names \"to\"", "not one of its arguments"],
    ),
    (
        "[kiso.skill.args]",
        "[kiso.skill.effects]\necho = \"reads\"\n[kiso.skill.args]",
        ":11:",
        &["\"read\"", "address"],
    ),
    ("[kiso.skill]\n", "[kiso.skill\n", ":7:", &[]),
];

#[test]
fn each_mistake_is_named_with_line_and_column() {
    let home = Home::new();
    let wasm = guest("echo");
    for (good, bad, place, words) in MISTAKES {
        assert!(GOOD.contains(good));
        let file = home.file("kiso.toml", GOOD.replacen(good, bad, 1));
        let ran = home.kiso(&["skill", "add", wasm.to_str().unwrap(), "--manifest", file.to_str().unwrap()]);
        ran.exit(2).says(&["kiso.toml", place]).says(words);
    }
    home.kiso(&["skill", "list"]).ok();
    home.kiso(&["skill", "info", "echo"]).exit(2);
}

#[test]
fn the_good_manifest_holds() {
    let home = Home::new();
    let file = home.file("kiso.toml", GOOD);
    let ran = home.kiso(&["skill", "add", guest("echo").to_str().unwrap(), "--manifest", file.to_str().unwrap()]);
    ran.ok().prints(&["loaded echo 0.1.0"]);
}

#[test]
fn whoever_installs_a_skill_is_shown_what_it_says_of_its_tools() {
    let home = Home::new();
    let with =
        GOOD.replace("[kiso.skill.args]", "[kiso.skill.effects]\necho = { content = [\"text\"] }\n\n[kiso.skill.args]");
    let manifest = home.file("kiso.toml", with);
    let said = "echo changes something outside (words: text)";
    let add =
        ["skill", "add", guest("echo").to_str().unwrap(), "--manifest", manifest.to_str().unwrap()].map(str::to_owned);
    home.kiso(&add.each_ref().map(String::as_str)).ok().says(&["says of its tools, and kiso goes by it", said]);
    home.kiso(&["skill", "info", "echo"]).ok().prints(&["says of its tools:", said]);
    assert_eq!(home.kiso(&["--json", "skill", "info", "echo"]).ok().json()["effects"][0], said);
}

#[test]
fn pack_puts_the_manifest_inside_and_a_second_pack_replaces_it() {
    let home = Home::new();
    let (first, second) = (home.file("a.toml", GOOD), home.file("b.toml", GOOD.replace("\"0.1.0\"", "\"0.2.0\"")));
    let out = home.dir.path().join("packed.wasm");
    let out = out.to_str().unwrap();
    home.kiso(&["skill", "pack", guest("echo").to_str().unwrap(), "--manifest", first.to_str().unwrap(), "-o", out])
        .ok();
    home.kiso(&["skill", "add", out]).ok().prints(&["loaded echo 0.1.0"]);
    let size = std::fs::metadata(out).unwrap().len();
    home.kiso(&["skill", "pack", out, "--manifest", second.to_str().unwrap()]).ok();
    assert_eq!(std::fs::metadata(out).unwrap().len(), size);
    home.kiso(&["skill", "add", out]).ok().prints(&["loaded echo 0.2.0"]).says(&["replaces echo 0.1.0"]);
}
