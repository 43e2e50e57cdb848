//! A workspace that may only be read, and a call without one.

use crate::symlink;
use crate::wasi::filesystem::preopens;
use kiso_sdk::{Failure, Reply};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::time::SystemTime;

type Try = (&'static str, fn() -> io::Result<()>);

const CHANGES: [Try; 12] = [
    ("create", || File::create("/work/new.txt").map(drop)),
    ("truncate", || OpenOptions::new().write(true).truncate(true).open("/work/given.txt").map(drop)),
    ("open for writing", || OpenOptions::new().write(true).open("/work/given.txt").map(drop)),
    ("append", || OpenOptions::new().append(true).open("/work/given.txt")?.write_all(b"more")),
    ("set length", || File::open("/work/given.txt")?.set_len(0)),
    ("set times", || File::open("/work/given.txt")?.set_modified(SystemTime::UNIX_EPOCH)),
    ("make directory", || fs::create_dir("/work/dir")),
    ("rename", || fs::rename("/work/given.txt", "/work/taken.txt")),
    ("hard link", || fs::hard_link("/work/given.txt", "/work/twin.txt")),
    ("symbolic link", || symlink("given.txt", "/work/link.txt")),
    ("remove", || fs::remove_file("/work/given.txt")),
    ("remove directory", || fs::remove_dir("/work")),
];

fn all_refused() -> Vec<String> {
    let mut tried = Vec::new();
    for (what, change) in CHANGES {
        match change() {
            Ok(()) => panic!("ESCAPED: {what} worked"),
            Err(e) => tried.push(format!("{what}: {e}")),
        }
    }
    tried
}

/// The test puts `given.txt` into the workspace.
pub fn read_only() -> Result<Reply, Failure> {
    let before = fs::read("/work/given.txt")?;
    let tried = all_refused();
    assert_eq!(fs::read("/work/given.txt")?, before, "given.txt is as it was");
    Ok(Reply::text(tried.join("\n")).data(&json!({ "tried": tried })))
}

pub fn none() -> Result<Reply, Failure> {
    let mut tried = all_refused();
    assert_eq!(preopens::get_directories().len(), 0, "no directory is open");
    for path in ["/work", "/work/given.txt", "/", ".", ""] {
        match fs::metadata(path) {
            Ok(found) => panic!("ESCAPED: {path:?} is there: {found:?}"),
            Err(e) => tried.push(format!("{path:?}: {e}")),
        }
    }
    Ok(Reply::text(tried.join("\n")).data(&json!({ "tried": tried })))
}
