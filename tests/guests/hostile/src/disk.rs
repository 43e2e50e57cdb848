//! Disk space, inodes and open files.

use crate::{refused, symlink};
use kiso_sdk::{Failure, Reply};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};

static CHUNK: [u8; 64 << 10] = [b'k'; 64 << 10];
const TIB: u64 = 1 << 40;

/// Repeats `step` without end; without `stubborn`, until it is refused.
fn flood(what: &str, stubborn: bool, mut step: impl FnMut(u64) -> io::Result<()>) -> Result<Reply, Failure> {
    let mut done = 0;
    for n in 0.. {
        match step(n) {
            Ok(()) => done += 1,
            Err(e) if !stubborn => return Err(refused(what, done, e)),
            Err(_) => {}
        }
    }
    unreachable!("2^64 steps")
}

pub fn write(stubborn: bool) -> Result<Reply, Failure> {
    let mut file = File::create("/work/flood.bin")?;
    flood("chunks of 64 KiB", stubborn, |_| file.write_all(&CHUNK))
}

pub fn append(stubborn: bool) -> Result<Reply, Failure> {
    flood("appended chunks of 64 KiB", stubborn, |_| {
        // Opened each time: a quota for each open file would start again.
        OpenOptions::new().append(true).create(true).open("/work/append.bin")?.write_all(&CHUNK)
    })
}

pub fn rewrite(stubborn: bool) -> Result<Reply, Failure> {
    flood("rewrites of 64 KiB", stubborn, |_| fs::write("/work/again.bin", CHUNK))
}

pub fn sparse_length() -> Result<Reply, Failure> {
    let file = File::create("/work/sparse.bin")?;
    file.set_len(TIB).map_err(|e| refused("bytes", file.metadata().map_or(0, |m| m.len()), e))?;
    Ok(Reply::text(format!("{} bytes", file.metadata()?.len())))
}

pub fn sparse_offset() -> Result<Reply, Failure> {
    let mut file = File::create("/work/sparse.bin")?;
    file.seek(SeekFrom::Start(TIB))?;
    let written = file.write_all(b"!").and_then(|()| file.flush());
    written.map_err(|e| refused("bytes", file.metadata().map_or(0, |m| m.len()), e))?;
    Ok(Reply::text(format!("{} bytes", file.metadata()?.len())))
}

pub fn files(stubborn: bool) -> Result<Reply, Failure> {
    flood("files", stubborn, |n| File::create(format!("/work/f{n}")).map(drop))
}

pub fn dirs(stubborn: bool) -> Result<Reply, Failure> {
    flood("directories", stubborn, |n| fs::create_dir(format!("/work/d{n}")))
}

/// Puts the tree below a new directory again and again, so that no path is ever longer than a few letters.
pub fn deep_dirs(depth: u64, stubborn: bool) -> Result<Reply, Failure> {
    fs::create_dir("/work/deep")?;
    let down = |_| {
        fs::create_dir("/work/next")?;
        fs::rename("/work/deep", "/work/next/deep")?;
        fs::rename("/work/next", "/work/deep")
    };
    if depth == u64::MAX {
        return flood("levels", stubborn, down);
    }
    for n in 0..depth {
        down(n).map_err(|e| refused("levels", n, e))?;
    }
    Ok(Reply::text(format!("{depth} levels deep")))
}

/// Each link names the one before it twice, so that following the last walks 2^n links.
pub fn symlinks(stubborn: bool) -> Result<Reply, Failure> {
    fs::create_dir("/work/s")?;
    symlink(".", "/work/s/l0")?;
    flood("links", stubborn, |n| {
        let next = n + 1;
        symlink(&format!("l{n}/l{n}"), &format!("/work/s/l{next}"))?;
        // Following must end, with any result.
        let _ = fs::metadata(format!("/work/s/l{next}"));
        Ok(())
    })
}

pub fn open(stubborn: bool) -> Result<Reply, Failure> {
    fs::write("/work/one.txt", "one")?;
    let mut kept = Vec::new();
    flood("open files", stubborn, |_| {
        kept.push(File::open("/work/one.txt")?);
        Ok(())
    })
}

pub fn produce(path: &str, kib: u64) -> Result<Reply, Failure> {
    let full = kiso_sdk::resolve(path)?;
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = File::create(&full).map_err(|e| refused("KiB", 0, e))?;
    for n in 0..kib {
        file.write_all(&CHUNK[..1024]).map_err(|e| refused("KiB", n, e))?;
    }
    Ok(Reply::text(format!("{kib} KiB in {path}")).file(path))
}
