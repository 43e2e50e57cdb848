//! Copies files, and shares their blocks if the file system can.

use kiso_base::system::share_blocks;
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, fchmod, futimens, openat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;

/// Copies a file to a free name, with its mode and its times.
pub(super) fn copy_to(from: &File, dir: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = File::from(openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?);
    copy(from, &to)?;
    Ok(to)
}

/// Gives one file the content, mode and times of another.
pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
    let found = from.metadata()?;
    if !share_blocks(from, to) {
        let (mut reader, mut writer) = (from, to);
        reader.seek(SeekFrom::Start(0))?;
        writer.seek(SeekFrom::Start(0))?;
        to.set_len(0)?;
        io::copy(&mut reader, &mut writer)?;
    }
    let mode = std::os::unix::fs::MetadataExt::mode(&found) & 0o7777;
    // 16 bits on some systems, 32 on others.
    #[allow(clippy::useless_conversion)]
    let mode = Mode::from_raw_mode(mode.try_into().unwrap_or_default());
    fchmod(to, mode)?;
    set_times(to, &found)
}

/// Sets the time of a file's last change, in nanoseconds since 1970.
pub(super) fn set_modified(file: &File, modified: i64) -> io::Result<()> {
    const BILLION: i64 = 1_000_000_000;
    let (seconds, nanoseconds) = (modified.div_euclid(BILLION), modified.rem_euclid(BILLION));
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(0, rustix::fs::UTIME_OMIT as _),
        last_modification: time(seconds, nanoseconds as _),
    };
    Ok(futimens(file, &times)?)
}

fn set_times(to: &File, found: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let time = |seconds, nanoseconds: i64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    Ok(futimens(to, &times)?)
}
