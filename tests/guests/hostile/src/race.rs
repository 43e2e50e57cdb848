//! A check and a use of the same name, with a swap in between.
//!
//! No guest can create such a link, so the test swaps on the host. If a host resolved a path itself before opening it, one of the
//! opens would land outside.

use kiso_sdk::{Failure, Reply};
use serde_json::json;
use std::fs;

const INSIDE: &str = "inside";

/// Opens through the door in every way. Returns true if it was the directory.
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
    // Lands in `real`, or outside, where the test checks for it.
    let _ = fs::write("/work/door/made", "made");
    read
}

pub fn open(times: u64, name: &str) -> Result<Reply, Failure> {
    let mut inside = 0u64;
    for _ in 0..times {
        inside += u64::from(open_once(name));
    }
    Ok(Reply::text(format!("{inside} of {times} inside")).data(&json!({ "inside": inside, "tried": times })))
}
