//! A check and a use of the same name, with a swap in between.
//!
//! A guest has one thread, so the real race needs two calls in one session: one swaps, one opens. Where a host resolved
//! a path by itself before it opened it, one of the opens would land outside.

use crate::symlink;
use kiso_sdk::{Failure, Reply};
use serde_json::json;
use std::fs;
use std::io;

const INSIDE: &str = "inside";

/// Prepares `/work/real` (a directory with `name` in it) and `/work/link` (to three levels above `/work`).
fn prepare(name: &str) -> io::Result<()> {
    fs::create_dir_all("/work/real")?;
    fs::write(format!("/work/real/{name}"), INSIDE)?;
    match symlink("../../..", "/work/link") {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Makes `/work/door` the directory, then the link.
fn swap_once() -> io::Result<()> {
    fs::rename("/work/real", "/work/door")?;
    fs::rename("/work/door", "/work/real")?;
    fs::rename("/work/link", "/work/door")?;
    fs::rename("/work/door", "/work/link")
}

/// Opens through the door in every way. True if it was the directory.
fn open_once(name: &str) -> bool {
    let read = match fs::read(format!("/work/door/{name}")) {
        Ok(bytes) => {
            assert_eq!(bytes, INSIDE.as_bytes(), "ESCAPED: read {name} from outside");
            true
        }
        Err(_) => false,
    };
    if let Ok(entries) = fs::read_dir("/work/door") {
        for entry in entries.flatten() {
            let found = entry.file_name();
            assert!(found == *name || found == "made", "ESCAPED: listed {found:?} from outside");
        }
    }
    // Lands in `real`, or outside, where the test looks for it.
    let _ = fs::write("/work/door/made", "made");
    read
}

pub fn swap(times: u64, name: &str) -> Result<Reply, Failure> {
    prepare(name)?;
    let mut done = 0u64;
    for _ in 0..times {
        done += u64::from(swap_once().is_ok());
    }
    Ok(Reply::text(format!("swapped {done} times")).data(&json!({ "swapped": done })))
}

pub fn open(times: u64, name: &str) -> Result<Reply, Failure> {
    let mut inside = 0u64;
    for _ in 0..times {
        inside += u64::from(open_once(name));
    }
    Ok(Reply::text(format!("{inside} of {times} inside")).data(&json!({ "inside": inside, "tried": times })))
}

/// Alone: opens at each of the four moments of a swap.
pub fn both(times: u64, name: &str) -> Result<Reply, Failure> {
    prepare(name)?;
    let mut inside = 0u64;
    for _ in 0..times {
        for (from, to) in [("real", "door"), ("door", "real"), ("link", "door"), ("door", "link")] {
            fs::rename(format!("/work/{from}"), format!("/work/{to}"))?;
            inside += u64::from(open_once(name));
        }
    }
    assert_eq!(inside, times, "the directory itself can be opened, and only it");
    Ok(Reply::text(format!("{inside} of {} inside", 4 * times)).data(&json!({ "inside": inside, "tried": 4 * times })))
}
