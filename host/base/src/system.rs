//! Features that only some operating systems have, and their replacements on others.
//!
//! kiso is made for Linux; its sources also compile for macOS, where less information and fewer limits are available. Only this
//! file checks the target system or reads `/proc` and `/sys`, except for two files that are specific to Linux: `mcp/confine`,
//! which confines programs, and `cli/unit`, which writes units for systemd. `tests/all/house.rs` enforces this.

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::ClockId;
use std::ffi::OsStr;
use std::fs::{File, read_to_string};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

const IS_LINUX: bool = cfg!(target_os = "linux");
const IS_MACOS: bool = cfg!(target_os = "macos");

/// Whether a program may make its own read-only data executable. Other systems may require signed code.
pub const OWN_DATA_CAN_RUN: bool = IS_LINUX;

/// A clock that also counts sleep, if the system has one; otherwise the monotonic clock.
#[cfg(target_os = "linux")]
pub const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
pub const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// The path of the running program; on Linux, also if an update has replaced the file.
pub fn this_program() -> PathBuf {
    match IS_LINUX {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("kiso")),
    }
}

/// Returns the path of an open file. An error if the system has none.
#[cfg(not(target_vendor = "apple"))]
pub fn path_of(open: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()))
}

/// Returns the path of an open file. An error if the system has none.
#[cfg(target_vendor = "apple")]
pub fn path_of(open: impl AsFd) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(open)?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

/// Returns a path that opens the same file or directory again, even if another one has its name now. `None` if the system has no
/// such path. The path is valid until `open` is closed.
pub fn path_to_open(open: impl AsFd) -> Option<PathBuf> {
    IS_LINUX.then(|| PathBuf::from(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd())))
}

/// Makes a file share all blocks of another, if the system and the file system support it; returns whether it did.
#[cfg(target_os = "linux")]
pub fn share_blocks(from: &File, to: &File) -> bool {
    // A longer file would keep its end.
    to.set_len(0).is_ok() && rustix::fs::ioctl_ficlone(to, from).is_ok()
}

/// Makes a file share all blocks of another, if the system and the file system support it; returns whether it did.
#[cfg(not(target_os = "linux"))]
pub fn share_blocks(_: &File, _: &File) -> bool {
    false
}

/// Ends a connection if sent data is not acknowledged for this long, if the system supports it; otherwise the system's own
/// timeout applies.
pub fn end_unacknowledged(connection: impl AsFd, after: Duration) {
    #[cfg(target_os = "linux")]
    {
        let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(connection, millis);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (connection.as_fd(), after);
}

/// Limits the memory of this process, in bytes: `data` for writable memory, used or not, and address space of all kinds. The
/// system ends a process that exceeds it. Systems other than Linux support only the latter, and may refuse a limit below what
/// they have reserved; then there is no limit.
pub fn limit_memory(data: u64, address_space: u64) -> io::Result<()> {
    let bytes = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    if !IS_LINUX {
        let _ = setrlimit(Resource::As, bytes(address_space));
        return Ok(());
    }
    setrlimit(Resource::Data, bytes(data))?;
    setrlimit(Resource::As, bytes(address_space))?;
    Ok(())
}

/// The machine's name; empty if unknown.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The id of the current boot; `None` if unknown.
pub fn boot_id() -> Option<String> {
    Some(read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Whether a process with this id runs, of any user.
pub fn is_running(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Total and available memory of the machine in bytes; `None` if unknown.
pub fn machine_memory() -> Option<(u64, u64)> {
    let text = read_to_string("/proc/meminfo").ok()?;
    Some((kibibytes(&text, "MemTotal:")?, kibibytes(&text, "MemAvailable:")?))
}

/// Memory of this process in bytes; `None` if unknown.
pub fn resident_memory() -> Option<u64> {
    let statm = read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Current and peak memory of another process in bytes; `None` if unknown.
pub fn memory_of(process: u32) -> Option<(u64, u64)> {
    let text = read_to_string(format!("/proc/{process}/status")).ok()?;
    Some((kibibytes(&text, "VmRSS:")?, kibibytes(&text, "VmHWM:")?))
}

/// Parses a line such as `MemTotal: 8 kB` and returns bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The kind of storage that a file is on, if it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A file system in memory.
    Memory,
    /// Layers; the uppermost is deleted with its container.
    Overlay,
    Network,
    /// An SD card or eMMC.
    FlashCard,
}

/// Opens a path below a directory. A link in the path, even as its last part, is an error.
#[cfg(target_os = "linux")]
pub fn open_beneath(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&dir, path, flags, Mode::empty(), resolve) {
        // The kernel or a sandbox lacks the call, or something was renamed meanwhile.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => open_each(dir, path, flags),
        opened => Ok(opened?),
    }
}

/// Opens a path below a directory. A link in the path, even as its last part, is an error.
#[cfg(not(target_os = "linux"))]
pub fn open_beneath(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    open_each(dir, path, flags)
}

fn open_each(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut at = dir.as_fd().try_clone_to_owned()?;
    let parts: Vec<&OsStr> = path.iter().collect();
    let Some((name, parents)) = parts.split_last() else { return Ok(at) };
    for part in parents {
        if *part == ".." {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        at =
            openat(&at, *part, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    }
    Ok(openat(&at, *name, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// The kind of storage that a file is on; `None` for other kinds, or if unknown.
#[cfg(target_os = "linux")]
pub fn storage(path: &Path) -> Option<Storage> {
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    // Magic numbers of statfs(2).
    match u32::try_from(kind & 0xffff_ffff).unwrap_or(0) {
        0x0102_1994 | 0x8584_58f6 => return Some(Storage::Memory),
        0x794c_7630 => return Some(Storage::Overlay),
        0x6969 | 0xff53_4d42 | 0xfe53_4d42 | 0x517b => return Some(Storage::Network),
        _ => {}
    }
    let device = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).ok()?);
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let block = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    block.to_string_lossy().contains("/mmcblk").then_some(Storage::FlashCard)
}

/// The kind of storage that a file is on; `None` for other kinds, or if unknown.
#[cfg(not(target_os = "linux"))]
pub fn storage(_: &Path) -> Option<Storage> {
    None
}

/// The program that opens a link in the browser of the user at this machine; `None` if nobody would see it.
pub fn opener() -> Option<&'static str> {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || is_set("SSH_TTY") {
        return None;
    }
    match IS_MACOS {
        true => Some("open"),
        false => (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")).then_some("xdg-open"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_renamed_is_found_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::create_dir(&old).unwrap();
        let open = File::open(&old).unwrap();
        std::fs::rename(&old, &new).unwrap();
        assert_eq!(path_of(&open).unwrap(), new.canonicalize().unwrap());
        let again = path_to_open(&open).map(|path| std::fs::canonicalize(path).unwrap());
        assert_eq!(again, IS_LINUX.then(|| new.canonicalize().unwrap()));
    }

    #[test]
    fn numbers_of_proc_are_read_as_bytes() {
        let text = "MemTotal:       8000 kB\nMemAvailable:    x kB\n";
        assert_eq!((kibibytes(text, "MemTotal:"), kibibytes(text, "MemAvailable:")), (Some(8_192_000), None));
        if IS_LINUX {
            let (now, most) = memory_of(std::process::id()).unwrap();
            assert!(0 < now && now <= most && most < machine_memory().unwrap().0);
        }
    }
}
