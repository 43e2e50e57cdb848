//! Every way out of `/work` that the interface can express.
//!
//! The workspace is `HOME/sessions/ID/work`, so `../../../store.db` is the agent's own database; `/etc/passwd` exists on every
//! machine. Since both exist, "not found" would mean that a name was understood differently, not that it was refused.

use crate::symlink;
use crate::wasi::filesystem::preopens;
use crate::wasi::filesystem::types::{Descriptor, DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};
use kiso_sdk::{Failure, Reply};
use serde_json::json;
use std::fmt::{Debug, Display};
use std::fs::{self, File, OpenOptions};

/// Existing files outside.
const FILES: [&str; 11] = [
    "/etc/passwd",
    "//etc/passwd",
    "/work/../../../store.db",
    "/work/../../../key",
    "/work/sub/../../../../store.db",
    "/work/./../../../store.db",
    "/work//..//..//..//store.db",
    "../../../store.db",
    "../work/../../../../store.db",
    "/../etc/passwd",
    "/proc/self/environ",
];

/// Existing directories outside.
const DIRS: [&str; 9] =
    ["/", "/work/..", "/work/../", "/work/../../..", "/work/sub/../..", "..", ".", "/etc", "/work/../work"];

/// Targets of the links in `/work/links`.
const TARGETS: [&str; 10] = [
    "/",
    "/etc",
    "/etc/passwd",
    "../..",
    "../../../..",
    "../../../../store.db",
    "./../../../../store.db",
    "../sub/../../../../store.db",
    "/work/../../../store.db",
    "/proc/self/root",
];

#[derive(Default)]
struct Tries(Vec<String>);

impl Tries {
    /// Records the refusal; panics if there was none.
    fn refused<T: Debug, E: Display>(&mut self, what: impl Display, result: Result<T, E>) {
        match result {
            Ok(got) => panic!("ESCAPED: {what} worked: {got:?}"),
            Err(e) => self.0.push(format!("{what}: {e}")),
        }
    }

    fn file(&mut self, path: &str) {
        self.refused(format_args!("read {path:?}"), fs::read(path).map(|b| b.len()));
        self.refused(format_args!("stat {path:?}"), fs::metadata(path));
        self.refused(format_args!("write {path:?}"), OpenOptions::new().write(true).open(path));
        self.refused(format_args!("append {path:?}"), OpenOptions::new().append(true).open(path));
        self.refused(format_args!("truncate {path:?}"), File::create(path));
        self.refused(format_args!("copy in {path:?}"), fs::copy(path, "/work/sub/stolen"));
    }

    fn dir(&mut self, path: &str) {
        self.refused(format_args!("list {path:?}"), fs::read_dir(path).map(|d| d.count()));
        self.refused(format_args!("make file in {path:?}"), File::create(format!("{path}/kiso-escaped.txt")));
        self.refused(format_args!("make directory in {path:?}"), fs::create_dir(format!("{path}/kiso-escaped")));
    }

    /// Renames and hard links, which take two names; either may be outside.
    fn across(&mut self, path: &str) {
        fs::write("/work/mine.txt", "mine").expect("the workspace can be written");
        self.refused(format_args!("rename to {path:?}"), fs::rename("/work/mine.txt", path));
        self.refused(format_args!("rename from {path:?}"), fs::rename(path, "/work/taken.txt"));
        self.refused(format_args!("link to {path:?}"), fs::hard_link(path, "/work/twin.txt"));
        self.refused(format_args!("link at {path:?}"), fs::hard_link("/work/mine.txt", path));
        self.refused(format_args!("symbolic link at {path:?}"), symlink("mine.txt", path));
        self.refused(format_args!("remove {path:?}"), fs::remove_file(path));
    }
}

pub fn run() -> Result<Reply, Failure> {
    for dir in ["/work/sub/deeper", "/work/deeper", "/work/links"] {
        fs::create_dir_all(dir)?;
    }
    let mut tries = Tries::default();
    for path in FILES {
        tries.file(path);
        tries.across(path);
    }
    for path in DIRS {
        tries.dir(path);
    }
    links(&mut tries)?;
    moved_links(&mut tries)?;
    given_links(&mut tries)?;
    descriptors(&mut tries)?;
    let tried = tries.0;
    Ok(Reply::text(format!("{} tries, all refused\n{}", tried.len(), tried.join("\n")))
        .data(&json!({ "tried": tried })))
}

/// Creating a link to the outside may work; following it must not.
fn links(tries: &mut Tries) -> std::io::Result<()> {
    for (n, target) in TARGETS.iter().enumerate() {
        let link = format!("/work/links/l{n}");
        if let Err(e) = symlink(target, &link) {
            tries.0.push(format!("make link to {target:?}: {e}"));
            continue;
        }
        tries.file(&link);
        tries.dir(&link);
        for inner in ["store.db", "etc/passwd", "passwd", "..", "../../../store.db"] {
            tries.refused(format_args!("read {inner:?} through {target:?}"), fs::read(format!("{link}/{inner}")));
        }
        // A hard link to a link is a link still; one to what it points at would be the way out.
        let twin = format!("/work/links/t{n}");
        if fs::hard_link(&link, &twin).is_ok() {
            tries.file(&twin);
            fs::remove_file(twin)?;
        }
        // A link to a link.
        let second = format!("/work/links/s{n}");
        symlink(&format!("l{n}"), &second)?;
        tries.file(&second);
        tries.dir(&second);
        fs::remove_file(second)?;
        fs::remove_file(link)?;
    }
    Ok(())
}

/// Links that stay inside at first and lead outside after they are moved, by any way.
fn moved_links(tries: &mut Tries) -> std::io::Result<()> {
    fs::create_dir_all("/work/a/b/c/d")?;
    symlink("../../../../mine.txt", "/work/a/b/c/d/file")?;
    symlink("../../..", "/work/a/b/c/d/up")?;
    assert!(fs::read_dir("/work/a/b/c/d/up").is_ok(), "a link that stays inside can be followed");

    tries.refused("move a link up", fs::rename("/work/a/b/c/d/file", "/work/a/file"));
    tries.refused("give it a name further up", fs::hard_link("/work/a/b/c/d/file", "/work/a/file"));
    tries.refused("move what holds it up", fs::rename("/work/a/b/c/d", "/work/d"));
    tries.refused("move what holds that up", fs::rename("/work/a/b", "/work/b"));
    symlink("a/b/c", "/work/short")?;
    tries.refused("move it through a link", fs::rename("/work/a/b/c/d/file", "/work/short/../file"));
    tries.refused("make it through a link", symlink("../../../..", "/work/short/up"));
    tries.refused("go up behind a name", symlink("a/../..", "/work/a/b/c/d/behind"));
    fs::rename("/work/a/b/c/d", "/work/a/b/c/e")?;
    fs::remove_file("/work/short")?;
    fs::remove_dir_all("/work/a")
}

/// Links to the outside that were not created by a guest.
fn given_links(tries: &mut Tries) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir("/work/given") else { return Ok(()) };
    for entry in entries.flatten() {
        let link = format!("/work/given/{}", entry.file_name().to_string_lossy());
        tries.file(&link);
        tries.dir(&link);
        for inner in ["store.db", "etc/passwd", "passwd", "..", "../../../store.db"] {
            tries.refused(format_args!("read {inner:?} through {link:?}"), fs::read(format!("{link}/{inner}")));
        }
        let twin = "/work/given/twin";
        if fs::hard_link(&link, twin).is_ok() {
            tries.file(twin);
            fs::remove_file(twin)?;
        }
        tries.refused(format_args!("move {link:?}"), fs::rename(&link, "/work/taken"));
    }
    Ok(())
}

/// Below the C library, which resolves some names itself: descriptors as separate roots.
fn descriptors(tries: &mut Tries) -> Result<(), Failure> {
    let mut roots = preopens::get_directories();
    let names: Vec<&str> = roots.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["/work"], "/work is the only directory");
    let (work, _) = roots.pop().ok_or("no workspace")?;
    let sub = work.open_at(PathFlags::SYMLINK_FOLLOW, "sub", OpenFlags::DIRECTORY, DescriptorFlags::READ);
    let sub = sub.map_err(|e| Failure::new("failed", format!("cannot open /work/sub: {e}")))?;
    for (name, from) in [("work", &work), ("sub", &sub)] {
        for path in ["..", "../", "../..", "/", "/etc", "/work", "deeper/../..", "deeper/../../..", "./.."] {
            raw(tries, name, from, path);
        }
    }
    Ok(())
}

fn raw(tries: &mut Tries, name: &str, from: &Descriptor, path: &str) {
    const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
    let inside = format!("{path}/kiso-escaped");
    let what = |verb: &str| format!("{verb} {path:?} from {name}");
    tries.refused(what("open"), from.open_at(FOLLOW, path, OpenFlags::DIRECTORY, DescriptorFlags::READ));
    let write = DescriptorFlags::READ | DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY;
    tries.refused(what("open to change"), from.open_at(FOLLOW, path, OpenFlags::DIRECTORY, write));
    tries.refused(what("create in"), from.open_at(FOLLOW, &inside, OpenFlags::CREATE, DescriptorFlags::WRITE));
    tries.refused(what("stat"), from.stat_at(FOLLOW, path));
    tries.refused(what("hash"), from.metadata_hash_at(FOLLOW, path));
    tries.refused(what("make directory in"), from.create_directory_at(&inside));
    tries.refused(what("set times of"), from.set_times_at(FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now));
    tries.refused(what("symbolic link in"), from.symlink_at("x", &inside));
    tries.refused(what("rename into"), from.rename_at("deeper", from, &inside));
    tries.refused(what("link into"), from.link_at(PathFlags::empty(), "deeper", from, &inside));
    tries.refused(what("remove"), from.remove_directory_at(&inside));
    tries.refused(what("unlink"), from.unlink_file_at(&inside));
    tries.refused(what("read link"), from.readlink_at(&inside));
}
