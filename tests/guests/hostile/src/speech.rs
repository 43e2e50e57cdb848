//! Output of a guest: streams, log lines, progress, replies and failures.

use crate::symlink;
use kiso_sdk::{Failure, Reply};
use std::fs;
use std::io::Write;

/// Prints without end and ignores errors.
pub fn print(mut stream: impl Write) -> ! {
    let line = format!("{}\n", "la ".repeat(40));
    loop {
        let _ = stream.write_all(line.as_bytes());
    }
}

pub fn log() -> ! {
    for n in 0u64.. {
        kiso_sdk::log::info(format!("line {n} {}", "la ".repeat(40)));
    }
    unreachable!("2^64 lines")
}

pub fn progress() -> ! {
    let note = "la ".repeat(1_000);
    for n in 0u64.. {
        let done = [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.5][(n % 5) as usize];
        kiso_sdk::progress(done, &note);
    }
    unreachable!("2^64 reports")
}

/// A text of this many KiB.
pub fn long(kib: u64) -> String {
    "x".repeat((kib << 10) as usize)
}

pub fn many_files() -> Result<Reply, Failure> {
    let mut reply = Reply::text("101 files");
    for n in 0..101 {
        let path = format!("/work/many/{n}.txt");
        kiso_sdk::write(&path, "one of many")?;
        reply = reply.file(path);
    }
    Ok(reply)
}

pub fn reply_link() -> Result<Reply, Failure> {
    let _ = fs::remove_file("/work/link.txt");
    fs::write("/work/real.txt", "real")?;
    symlink("real.txt", "/work/link.txt")?;
    Ok(Reply::text("see the link").file("/work/link.txt"))
}

pub fn reply_dir() -> Result<Reply, Failure> {
    fs::create_dir_all("/work/folder")?;
    Ok(Reply::text("see the folder").file("/work/folder"))
}

pub fn flaky(times: u64) -> Result<Reply, Failure> {
    let failed: u64 = kiso_sdk::kv::get_json("failed")?.unwrap_or(0);
    if failed < times {
        kiso_sdk::kv::set_json("failed", &(failed + 1))?;
        return Err(Failure::retryable("unavailable", format!("failed {} of {times} times", failed + 1)));
    }
    kiso_sdk::kv::delete("failed")?;
    Ok(Reply::text(format!("works after {failed} failures")))
}
