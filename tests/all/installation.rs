//! `kiso self`, `kiso man` and `kiso --version`: the installed files. `tests/dist/run` tests the same with real packages.

use crate::harness::{Home, KISO, Ran};
use ring::digest::{SHA256, digest};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A prefix with an unpacked archive: the program, another file, and the list of both.
struct Prefix {
    dir: tempfile::TempDir,
}

impl Prefix {
    fn new() -> Self {
        // On the program's disk, so that it can be linked instead of copied.
        let beside = Path::new(KISO).parent().expect("it lies in a directory");
        let prefix = Self { dir: tempfile::TempDir::new_in(beside).expect("there is room") };
        let file = |path: &str, bytes: &[u8]| {
            let path = prefix.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        std::fs::create_dir(prefix.path("bin")).unwrap();
        std::fs::hard_link(KISO, prefix.path("bin/kiso")).unwrap();
        file("share/doc/kiso/LICENSE", b"words");
        let line = |path: &str| format!("{}  {path}\n", hex(&std::fs::read(prefix.path(path)).unwrap()));
        let list = line("bin/kiso") + &line("share/doc/kiso/LICENSE");
        file("share/kiso/SHA256SUMS", list.as_bytes());
        prefix
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    #[track_caller]
    fn kiso(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(self.path("bin/kiso"));
        Ran::new(args, command.args(args).env("HOME", self.dir.path()).output().expect("kiso starts"))
    }
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn files_of_an_archive_are_checked_and_removed() {
    let prefix = Prefix::new();
    prefix.kiso(&["self", "check"]).ok().prints(&["installed from an archive", "2 files are as they were installed"]);
    std::fs::write(prefix.path("share/doc/kiso/LICENSE"), "other words").unwrap();
    let checked = prefix.kiso(&["--json", "self", "check"]);
    checked.exit(1);
    let line = checked.json();
    assert_eq!((line["type"].as_str(), line["way"].as_str()), (Some("installation"), Some("archive")));
    assert_eq!(line["wrong"][0]["why"], "changed", "{line}");

    prefix.kiso(&["self", "uninstall"]).exit(2).prints(&["would remove"]).says(&["--yes"]);
    assert!(prefix.path("bin/kiso").exists());
    std::fs::write(prefix.path("share/mine"), "").unwrap();
    prefix.kiso(&["self", "uninstall", "--yes"]).ok().prints(&["removed", "homes are kept"]);
    assert!(
        !prefix.path("bin/kiso").exists() && !prefix.path("share/kiso").exists() && !prefix.path("share/doc").exists()
    );
    assert!(prefix.path("share/mine").exists(), "what is not kiso's is kept");
}

#[test]
fn a_list_that_leads_elsewhere_removes_nothing() {
    let prefix = Prefix::new();
    let list = prefix.path("share/kiso/SHA256SUMS");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, format!("{text}{}  ../../outside\n", hex(b""))).unwrap();
    prefix.kiso(&["self", "uninstall", "--yes"]).exit(1).says(&["../../outside", "is not a line"]);
    assert!(prefix.path("bin/kiso").exists());
}

#[test]
fn what_was_unpacked_by_hand_is_updated_by_hand() {
    let prefix = Prefix::new();
    prefix.kiso(&["self", "update"]).exit(1).says(&["share/kiso/from", "unpack the newer archive"]);
}

#[test]
fn a_program_that_was_built_here_changes_nothing() {
    let home = Home::new();
    home.kiso(&["self", "check"]).ok().prints(&["built or copied here", "to update:"]);
    home.kiso(&["self", "update"]).exit(1).says(&["install.sh"]);
    home.kiso(&["self", "uninstall", "--yes"]).exit(1);
    assert!(Path::new(KISO).exists());
}

#[test]
fn manual_pages_are_written_for_each_command() {
    let home = Home::new();
    let dir = home.dir.path().join("share/man/man1");
    home.kiso(&["man", dir.to_str().unwrap()]).ok();
    let page = std::fs::read_to_string(dir.join("kiso-skill-add.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("\\-\\-grant"), "{page}");
    let first = std::fs::read_to_string(dir.join("kiso.1")).unwrap();
    assert!(first.contains(env!("CARGO_PKG_VERSION")), "{first}");
    assert!(!dir.join("kiso-compile-component.1").exists(), "what kiso starts itself is nobody's command");
    home.kiso(&["man", "/dev/null/there"]).exit(1).says(&["/dev/null/there"]);
}

#[test]
fn the_version_says_what_it_was_built_from() {
    let home = Home::new();
    let short = home.kiso(&["--version"]);
    assert_eq!(short.ok().stdout, concat!("kiso ", env!("CARGO_PKG_VERSION"), "\n"));
    for args in [["--version", "--verbose"], ["-v", "-V"]] {
        home.kiso(&args).ok().prints(&["commit: ", "target: ", "wasmtime: 4"]);
    }
    let line = home.kiso(&["--version", "--json"]).json();
    assert_eq!(line["type"], "version");
    assert!(line["target"].as_str().unwrap().contains(std::env::consts::ARCH), "{line}");
    home.kiso(&["--verbose"]).exit(2).says(&["--version"]);
}
