//! Signatures of skills, pinning to publishers, and the lockfile.

use crate::harness::{Home, guest, missing_tool, root};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A copy of the guest `echo` with a manifest of this version.
fn echo(home: &Home, file: &str, version: &str) -> PathBuf {
    let manifest = std::fs::read_to_string(root().join("tests/guests/echo/kiso.toml")).unwrap();
    let manifest: String = manifest
        .lines()
        .map(
            |line| if line.starts_with("version") { format!("version = \"{version}\"\n") } else { format!("{line}\n") },
        )
        .collect();
    let toml = home.file(&format!("{file}.toml"), manifest);
    let wasm = home.file(file, std::fs::read(guest("echo")).unwrap());
    home.kiso(&["skill", "pack", path(&wasm), "--manifest", path(&toml)]).ok();
    wasm
}

/// A new key. Returns its path and its public key.
fn key(home: &Home, name: &str) -> (String, String) {
    let file = home.file(&format!("{name}/placeholder"), "").with_file_name(name);
    home.kiso(&["skill", "trust", "new", path(&file)]).ok();
    (path(&file).to_owned(), format!("{}.pub", file.display()))
}

#[test]
fn a_skill_is_pinned_to_the_key_that_signed_it_first() {
    let home = Home::new();
    let (ada, ada_public) = key(&home, "ada");
    let (bob, bob_public) = key(&home, "bob");
    let first = echo(&home, "one/echo.wasm", "1.0.0");
    home.kiso(&["skill", "sign", path(&first), "--key", &ada]).ok().prints(&["signed echo by"]);
    // The signature of an untrusted key has no effect, and the message says so.
    home.kiso(&["skill", "add", path(&first), "--grant", "all"]).ok().says(&["is not trusted", "kiso skill trust add"]);
    assert_eq!(home.kiso(&["skill", "info", "echo", "--json"]).json()["signer"], json!(null));

    home.kiso(&["skill", "trust", "add", &ada_public, "--label", "ada"]).ok();
    home.kiso(&["skill", "add", path(&first), "--grant", "all"]).ok();
    home.kiso(&["skill", "info", "echo"]).ok().prints(&["signed by ada ("]);
    let listed = home.kiso(&["skill", "trust", "list", "--json"]).json();
    assert_eq!((&listed["label"], &listed["pinned"]), (&json!("ada"), &json!(["echo"])));

    // The same key at another place is the same publisher: there is no question, and the grants stay.
    let next = echo(&home, "two/echo.wasm", "1.1.0");
    home.kiso(&["skill", "sign", path(&next), "--key", &ada]).ok();
    home.kiso(&["skill", "add", path(&next)]).ok().says(&["replaces echo 1.0.0"]);
    // A downgrade needs a confirmation, whoever signed it.
    home.kiso(&["skill", "add", path(&first)]).exit(4).says(&["which is lower"]);

    // Only that key can replace it: no unsigned file and no other key, trusted or not, whatever is granted.
    let unsigned = echo(&home, "three/echo.wasm", "2.0.0");
    let pinned = ["is pinned to the key", "kiso skill remove echo"];
    home.kiso(&["skill", "add", path(&unsigned), "--grant", "all"]).exit(4).says(&pinned).says(&["by nobody"]);
    home.kiso(&["skill", "sign", path(&unsigned), "--key", &bob]).ok();
    home.kiso(&["skill", "add", path(&unsigned), "--grant", "all"]).exit(4).says(&pinned).says(&["not trusted"]);
    home.kiso(&["skill", "trust", "add", &bob_public]).ok();
    home.kiso(&["skill", "add", path(&unsigned), "--grant", "all"]).exit(4).says(&pinned);
    let info = home.kiso(&["skill", "info", "echo", "--json"]).json();
    assert_eq!(info["version"], "1.1.0");
    // Without its key, the pinned skill can be used, but not updated.
    home.kiso(&["skill", "trust", "remove", "ada"]).ok();
    home.kiso(&["skill", "add", path(&next), "--grant", "all"]).exit(4).says(&pinned);
    home.kiso(&["skill", "run", "echo", "text=hi"]).ok();
    home.kiso(&["skill", "remove", "echo"]).ok();
    home.kiso(&["skill", "add", path(&unsigned), "--grant", "all"]).ok();
}

#[test]
fn what_was_changed_after_it_was_signed_is_refused() {
    let home = Home::new();
    let (ada, public) = key(&home, "ada");
    home.kiso(&["skill", "trust", "add", &public]).ok();
    let wrong = ["is not one of this skill"];
    // The component.
    let file = echo(&home, "one/echo.wasm", "1.0.0");
    home.kiso(&["skill", "sign", path(&file), "--key", &ada]).ok();
    let other = echo(&home, "other/echo.wasm", "1.0.1");
    std::fs::copy(&other, &file).unwrap();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).exit(4).says(&wrong);
    // The manifest beside it, with more requests.
    let plain = home.file("two/echo.wasm", std::fs::read(guest("echo")).unwrap());
    let manifest = std::fs::read_to_string(root().join("tests/guests/echo/kiso.toml")).unwrap();
    let beside = home.file("two/kiso.toml", &manifest);
    home.kiso(&["skill", "sign", path(&plain), "--key", &ada]).ok();
    std::fs::write(&beside, manifest.replace("[kiso.skill]", "# swapped\n[kiso.skill]")).unwrap();
    home.kiso(&["skill", "add", path(&plain), "--manifest", path(&beside), "--grant", "all"]).exit(4).says(&wrong);
    std::fs::write(&beside, &manifest).unwrap();
    home.kiso(&["skill", "add", path(&plain), "--grant", "all"]).ok();
    // A file of an Agent Skill.
    let skill = home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBe warm.\n");
    let dir = path(skill.parent().unwrap()).to_owned();
    home.file("greet/tone.md", "warm");
    home.kiso(&["skill", "sign", &dir, "--key", &ada]).ok();
    home.file("greet/tone.md", "cold");
    home.kiso(&["skill", "add", &dir]).exit(4).says(&wrong);
    home.file("greet/tone.md", "warm");
    home.kiso(&["skill", "add", &dir]).ok();
    home.kiso(&["skill", "info", "greet"]).ok().prints(&["signed by"]);
    // The signature itself.
    let signature = format!("{dir}.minisig");
    std::fs::write(&signature, "not a signature").unwrap();
    home.kiso(&["skill", "add", &dir]).exit(4).says(&["not a signature of minisign"]);
}

#[test]
fn only_what_is_signed_where_the_configuration_says_so() {
    let home = Home::new();
    home.config("[skills]\nrequire_signature = true\n");
    let file = echo(&home, "one/echo.wasm", "1.0.0");
    let wants = ["it is not signed", "require_signature"];
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).exit(4).says(&wants);
    let skill = home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBe warm.\n");
    home.kiso(&["skill", "add", path(skill.parent().unwrap())]).exit(4).says(&wants);
    let (ada, public) = key(&home, "ada");
    home.kiso(&["skill", "sign", path(&file), "--key", &ada]).ok();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).exit(4).says(&["is not trusted", "require_signature"]);
    home.kiso(&["skill", "trust", "add", &public]).ok();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).ok();
}

#[test]
fn keys_that_are_none_are_refused_and_none_is_overwritten() {
    let home = Home::new();
    let (ada, public) = key(&home, "ada");
    home.kiso(&["skill", "trust", "new", &ada]).exit(1).says(&["cannot make", "exists"]);
    home.kiso(&["skill", "trust", "add", "nonsense"]).exit(2).says(&["not a public key of minisign"]);
    home.kiso(&["skill", "trust", "add", &ada]).exit(2).says(&["not a public key of minisign"]);
    home.kiso(&["skill", "trust", "remove", "nobody"]).exit(2).says(&["kiso skill trust list"]);
    home.kiso(&["skill", "trust", "add", &public, "--label", "ada"]).ok();
    home.kiso(&["skill", "trust", "add", &public, "--label", "ada lovelace"]).ok();
    assert_eq!(home.kiso(&["skill", "trust", "list", "--json"]).json()["label"], "ada lovelace");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&ada).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let file = echo(&home, "one/echo.wasm", "1.0.0");
    home.kiso(&["skill", "sign", path(&file), "--key", &public]).exit(2).says(&["not a secret key"]);
}

/// Each program accepts the signatures of the other one.
#[test]
fn minisign_itself_makes_and_checks_the_same_signatures() {
    let run = |home: &Home, args: &[&str]| {
        let mut command = Command::new("minisign");
        command.args(args).current_dir(home.path().parent().unwrap()).stdin(std::process::Stdio::null()).output()
    };
    let home = Home::new();
    if run(&home, &["-v"]).is_err() {
        return missing_tool("signatures that minisign itself made", "there is no minisign (Debian: minisign)");
    }
    let ok = |args: &[&str]| {
        let ran = run(&home, args).unwrap();
        assert!(ran.status.success(), "minisign {args:?}: {ran:?}");
    };
    let file = echo(&home, "one/echo.wasm", "1.0.0");
    let statement = home.file("statement", home.kiso(&["skill", "statement", path(&file)]).ok().stdout.clone());
    let signature = format!("{}.minisig", file.display());
    // It accepts our signature.
    let (ada, public) = key(&home, "ada");
    home.kiso(&["skill", "sign", path(&file), "--key", &ada]).ok();
    ok(&["-V", "-m", path(&statement), "-x", &signature, "-p", &public]);
    // It signs with our key.
    ok(&["-S", "-m", path(&statement), "-x", &signature, "-s", &ada]);
    home.kiso(&["skill", "trust", "add", &public]).ok();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).ok();
    home.kiso(&["skill", "info", "echo"]).ok().prints(&["signed by"]);
    // We sign with its key.
    ok(&["-G", "-W", "-p", "its.pub", "-s", "its.key"]);
    let its = home.path().with_file_name("its.key");
    home.kiso(&["skill", "remove", "echo"]).ok();
    home.kiso(&["skill", "sign", path(&file), "--key", path(&its)]).ok();
    ok(&["-V", "-m", path(&statement), "-x", &signature, "-p", "its.pub"]);
    home.kiso(&["skill", "trust", "add", path(&home.path().with_file_name("its.pub"))]).ok();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).ok();
}

#[test]
fn a_lockfile_makes_another_home_the_same() {
    let (home, other) = (Home::new(), Home::new());
    let (ada, public) = key(&home, "ada");
    home.kiso(&["skill", "trust", "add", &public]).ok();
    let file = echo(&home, "one/echo.wasm", "1.0.0");
    home.kiso(&["skill", "sign", path(&file), "--key", &ada]).ok();
    home.kiso(&["skill", "add", path(&file), "--grant", "all"]).ok();
    let skill = home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBe warm.\n");
    home.kiso(&["skill", "add", path(skill.parent().unwrap())]).ok();
    let lock = home.path().join("skills.lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    for part in [
        "name = \"echo\"",
        "kind = \"component\"",
        "version = \"1.0.0\"",
        "signer = \"RW",
        "name = \"greet\"",
        "source = \"file:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Its key is not known there, so its owner cannot be named.
    let ran = other.kiso(&["skill", "sync", path(&lock)]);
    ran.exit(1).says(&["no signature of that key counts here"]).prints(&["installed greet"]);
    other.kiso(&["skill", "trust", "add", &public]).ok();
    other.kiso(&["skill", "sync", path(&lock)]).ok().prints(&["installed echo", "unchanged greet"]);
    assert_eq!(std::fs::read_to_string(other.path().join("skills.lock")).unwrap(), text);
    // It added no grants.
    let more = other.file("more/SKILL.md", "---\nname: more\ndescription: More.\n---\nMore.\n");
    other.kiso(&["skill", "add", path(more.parent().unwrap())]).ok();
    other.kiso(&["skill", "sync", path(&lock)]).ok().prints(&["kept more", "--remove-others"]);
    let ran = other.kiso(&["--json", "skill", "sync", path(&lock), "--remove-others"]);
    assert!(
        ran.ok().json_lines().contains(&json!({ "type": "sync", "skill": "more", "status": "removed", "why": null })),
        "{ran:?}"
    );
    // Another file at the same place does not match the lockfile.
    home.file("greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nBe cold.\n");
    other.kiso(&["skill", "remove", "greet"]).ok();
    other.kiso(&["skill", "sync", path(&lock)]).exit(1).says(&["is another one by now"]);
    for (text, says) in [
        ("form = 7\n", "update kiso"),
        ("nonsense", "not a skills.lock"),
        ("form = 1\nother = 2\n", "not a skills.lock"),
    ] {
        let broken = other.file("broken.lock", text);
        other.kiso(&["skill", "sync", path(&broken)]).exit(2).says(&[says]);
    }
}
