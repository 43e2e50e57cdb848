//! Packages of other publishers: from a folder, an archive, a signed index and a mirror; and the cases that are refused.

use crate::harness::{Home, Ran};
use ring::digest::{SHA256, digest};
use serde_json::json;
use std::path::{Path, PathBuf};

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A program for WASI preview 1 that prints a line.
fn program(line: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
             (memory (export "memory") 1)
             (data (i32.const 0) "\10\00\00\00\{:02x}\00\00\00") (data (i32.const 16) "{line}\0a")
             (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#,
        line.len() + 1
    );
    wat::parse_str(text).expect("it is a module")
}

/// The folder of a package with these bytes as its component. `more` are lines of `[kiso.package]`.
struct Publisher<'a> {
    home: &'a Home,
}

impl Publisher<'_> {
    fn folder(&self, version: &str, component: &[u8], prints: &str, more: &str) -> PathBuf {
        let sha256 = data_encoding::HEXLOWER.encode(digest(&SHA256, component).as_ref());
        let commands = if more.contains("commands =") { "" } else { "commands = [\"hello\"]\n" };
        let manifest = format!(
            "[kiso]\ntype = \"skill\"\nname = \"tool\"\nversion = \"{version}\"\ndescription = \"Says hello\"\n\
             [kiso.skill]\nsummary = \"Says hello\"\n[kiso.skill.needs]\nworkspace = \"read\"\n\
             [kiso.package]\nlicence = \"MIT\"\n{commands}models = []\n{more}\n\
             [kiso.package.component]\nurl = \"https://example.org/tool.wasm\"\nalso = \"the disk\"\nsha256 = \"{sha256}\"\nsize = {}\n\
             download_mib = 1\n[[kiso.package.tests]]\nwords = [\"hello\"]\nprints = \"{prints}\"\n",
            component.len()
        );
        let manifest = match more.contains("commands =") {
            true => manifest.split("[[kiso.package.tests]]").next().unwrap().to_owned(),
            false => manifest,
        };
        self.home.file("source/kiso.toml", manifest).parent().unwrap().to_owned()
    }
}

fn add(home: &Home, what: &Path, from: &Path, grant: &[&str]) -> Ran {
    home.kiso(&[&["skill", "add", path(what), "--from", path(from)], grant].concat())
}

const NONE: &[&str] = &["--grant", "keep"];

#[test]
fn a_package_of_somebody_else_is_installed_kept_and_updated() {
    let home = Home::new();
    let publisher = Publisher { home: &home };
    let (one, two) = (program("hello from one"), program("hello from two"));
    let (first, second) = (home.file("one.wasm", &one), home.file("two.wasm", &two));
    home.file("source/notes.txt", "read me");
    let folder = publisher.folder("1.0", &one, "hello from one", "mount = \"/usr/share/tool\"\nfiles = [\"*.txt\"]");

    // Nobody vouches for a folder, so a person is asked; in a script, the answer must be given as an option.
    add(&home, &folder, &first, &[]).exit(4).says(&[
        "tool 1.0 (MIT, ",
        "adds the commands hello",
        "no key that is trusted here has signed it",
        "add --grant keep",
    ]);
    home.kiso(&["shell", "-c", "hello"]).exit(127);
    // A file with a wrong digest, or with a failing test, is not installed.
    add(&home, &folder, &second, NONE).exit(4).says(&["it is not tool 1.0", "nothing was installed"]);
    let wrong = publisher.folder("1.0", &one, "something else", "");
    add(&home, &wrong, &first, NONE).exit(1).says(&["its test `hello` printed", "nothing was installed"]);
    assert!(!home.path().join("skills/tool").exists());

    let folder = publisher.folder("1.0", &one, "hello from one", "mount = \"/usr/share/tool\"\nfiles = [\"*.txt\"]");
    add(&home, &folder, &first, NONE).ok().prints(&["installed tool 1.0: hello in every command line"]);
    home.kiso(&["shell", "-c", "hello | tr a-z A-Z"]).ok().prints(&["HELLO FROM ONE"]);
    home.kiso(&["shell", "-c", "tool"]).exit(127);
    assert_eq!(std::fs::read_to_string(home.path().join("packages/tool/1.0/files/notes.txt")).unwrap(), "read me");
    add(&home, &folder, &first, NONE).ok().prints(&["tool 1.0 is installed already"]);
    home.kiso(&["skill", "info", "tool"]).ok().prints(&["from file:"]);
    home.kiso(&["skill", "outdated", "tool"]).ok().prints(&["current  tool 1.0"]);
    home.kiso(&["doctor"]).prints(&["skill tool"]);

    let files = home.path().join("packages/tool/1.0");
    std::fs::rename(&files, home.path().join("packages/tool/away")).unwrap();
    home.kiso(&["doctor"]).prints(&["skill tool", "its files cannot be used"]);
    std::fs::rename(home.path().join("packages/tool/away"), files).unwrap();

    // Another file of the same version, and a new version that fails, do not change the installed one.
    let other = publisher.folder("1.0", &two, "hello from two", "");
    add(&home, &other, &second, NONE).exit(4).says(&["tool 1.0 is installed with other contents"]);
    let failing = publisher.folder("1.1", &two, "hello from three", "");
    add(&home, &failing, &second, NONE).exit(1).says(&["nothing was installed"]);
    home.kiso(&["shell", "-c", "hello"]).ok().prints(&["hello from one"]);
    assert!(!home.path().join("packages/tool/1.1").exists());

    // The publisher signs the archive, and the signer of the index vouches for it.
    let dir = home.file("hosted/x.txt", "").parent().unwrap().to_owned();
    let key = |name: &str| {
        let file = home.file(&format!("keys/{name}-x"), "").with_file_name(name);
        let made = home.kiso(&["--json", "skill", "trust", "new", path(&file)]).json();
        (path(&file).to_owned(), made["key"].as_str().unwrap().to_owned())
    };
    let ((index, public), (ada, _)) = (key("index"), key("ada"));
    let next = publisher.folder("1.1", &two, "hello from two", "");
    let zip = dir.join("tool-1.1.zip");
    home.kiso(&["skill", "pack", path(&next), "-o", path(&zip)]).ok().prints(&["packed tool into"]);
    home.kiso(&["skill", "sign", path(&zip), "--key", &ada]).ok();
    home.kiso(&["skill", "trust", "add", &format!("{ada}.pub"), "--label", "ada"]).ok();
    home.kiso(&["skill", "index", path(&dir), "--key", &index, "--name", "house"]).ok().prints(&["1 skill"]);
    home.config(&format!("[skills]\nindex = [\"{}/index.json#{public}\"]\n", path(&dir)));
    let found = home.kiso(&["--json", "skill", "search", "says", "hello"]).json();
    for (member, expected) in [
        ("kind", json!("package")),
        ("commands", json!(["hello"])),
        ("license", json!("MIT")),
        ("installed", json!("1.0")),
    ] {
        assert_eq!(found[member], expected, "{found}");
    }
    add(&home, Path::new("tool"), &second, NONE).ok().says(&["it may be another publisher's"]);
    home.kiso(&["shell", "-c", "hello"]).ok().prints(&["hello from two"]);
    home.kiso(&["skill", "info", "tool"]).ok().prints(&["from index:RW", "signed by ada"]);
    assert!(!home.path().join("packages/tool/1.0").exists(), "the files of the old version are gone");
    home.kiso(&["skill", "update", "tool"]).ok().prints(&["current  tool 1.1"]);

    // A mirror is complete: a home without network and without the index installs from it.
    let mirror = home.file("mirror/tool/tool.wasm", &two).parent().unwrap().parent().unwrap().to_owned();
    home.kiso(&["skill", "mirror", path(&mirror)]).ok().prints(&["unchanged tool"]);
    assert_eq!(std::fs::read(mirror.join("tool/tool.zip")).unwrap(), std::fs::read(&zip).unwrap());
    assert!(mirror.join("tool/tool.zip.minisig").exists());
    assert!(std::fs::read_to_string(mirror.join("skills.lock")).unwrap().contains("kind = \"package\""));
    let offline = Home::new();
    add(&offline, Path::new("tool"), &mirror, NONE).ok().prints(&["installed tool 1.1"]);
    offline.kiso(&["shell", "-c", "hello"]).ok().prints(&["hello from two"]);

    // Somebody has changed the archive.
    let packed = std::fs::read(&zip).unwrap();
    std::fs::write(&zip, [&packed[..packed.len() - 1], b"x"].concat()).unwrap();
    home.kiso(&["skill", "remove", "tool"]).ok().prints(&["removed tool"]);
    assert!(!home.path().join("packages/tool").exists());
    home.kiso(&["shell", "-c", "hello"]).exit(127);
    add(&home, Path::new("tool"), &second, NONE).exit(4).says(&["is not what the index says"]);
}

#[test]
fn a_package_takes_no_command_and_no_name_of_kiso() {
    let home = Home::new();
    let publisher = Publisher { home: &home };
    let component = program("mine");
    let wasm = home.file("mine.wasm", &component);
    for (commands, why) in [
        ("ls", "`ls` is a command of kiso, which no package can replace"),
        ("cd", "`cd` is a command of kiso"),
        ("sh", "`sh` is a command of kiso"),
        ("curl", "`curl` is a command of kiso"),
        ("data", "`data` is a command of kiso"),
        ("pdftotext", "`pdftotext` is a command of kiso"),
        ("python3", "`python3` is a command of kiso's package"),
    ] {
        let folder = publisher.folder("1.0", &component, "", &format!("commands = [\"hello\", \"{commands}\"]"));
        add(&home, &folder, &wasm, NONE).exit(4).says(&[why, "nothing was installed"]);
    }
    let manifest = publisher.folder("1.0", &component, "mine", "").join("kiso.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    home.file("source/kiso-commands", "");
    let control = "mount = \"/usr/share/tool\"\nfiles = [\"kiso-commands\"]\n[kiso.package.component]";
    for (from, to, why) in [
        ("name = \"tool\"", "name = \"python\"", "`python` is a package of kiso, and this one differs from it"),
        ("name = \"tool\"", "name = \"data\"", "`data` is a bundled skill"),
        ("[kiso.package.component]", control, "only packages of kiso may do that"),
        ("models = []", "mount = \"/work/x\"", "cannot be a place for its files"),
        ("models = []", "mount = \"/usr/x\"\nfiles = [\"../../*\"]", "cannot name what lies in"),
        ("https://", "http://", "is not an https:// address"),
    ] {
        std::fs::write(&manifest, text.replace(from, to)).unwrap();
        add(&home, manifest.parent().unwrap(), &wasm, NONE).exit(2).says(&[why]);
    }
    std::fs::write(&manifest, &text).unwrap();
    home.config("[skills]\nrequire_signature = true\n");
    add(&home, manifest.parent().unwrap(), &wasm, NONE).exit(4).says(&["require_signature"]);
    assert!(!home.path().join("skills/tool").exists());
    home.config("");

    // A package cannot take another one's command, and cannot add commands by the names of its files.
    add(&home, manifest.parent().unwrap(), &wasm, NONE).ok();
    let second = text.replace("name = \"tool\"", "name = \"other\"");
    let other = home.file("other/kiso.toml", second);
    add(&home, other.parent().unwrap(), &wasm, NONE).exit(4).says(&["`hello` is a command of tool"]);
}
