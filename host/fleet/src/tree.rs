//! Directories with their content, as a list and blobs: this is how members share a session's files and the home's skills.
//!
//! Guests may have left anything in a workspace, including links. So every entry is opened relative to its directory, without
//! following links, and links are stored as links.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};

use super::FleetError;
use super::blob::{BlobDigest, Blobs};

/// Maximum number of entries in a tree.
const MAX_ENTRIES: usize = 1_000_000;

/// Maximum size of the list in bytes, decompressed.
const MAX_LIST: u64 = 512 << 20;

/// Maximum depth of nested directories.
const MAX_DEPTH: usize = 256;

/// Nanoseconds within which a file may be written again with the same timestamps: longer than the clock granularity of any file
/// system.
const TICK_NS: i64 = 100_000_000;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntry {
    Dir { mode: u32 },
    File { mode: u32, modified_ns: i64, blob: BlobDigest },
    Link { to: Vec<u8> },
}

/// Entries by their path below the directory; a directory precedes its content.
pub type FileTree = BTreeMap<PathBuf, TreeEntry>;

/// Stamps of files when they were last read: a file with an unchanged stamp is not read again.
#[derive(Debug, Default)]
pub struct FileStamps(HashMap<PathBuf, (Stamp, BlobDigest)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
}

/// Stores a directory; returns the name of its list. `leave` returns whether to leave out a top-level entry.
pub fn keep(
    blobs: &Blobs,
    dir: &Path,
    seen: &mut FileStamps,
    leave: impl Fn(&OsStr) -> bool,
) -> Result<BlobDigest, FleetError> {
    let failed = |error| FleetError::file(dir, error);
    let open = Dir::open_ambient_dir(dir, ambient_authority()).map_err(failed)?;
    let mut walk = Walk { blobs, root: dir, tree: FileTree::new(), before: std::mem::take(seen), seen };
    walk.directory(&open, Path::new(""), 0, &leave)?;
    let tree = walk.tree;
    let mut list = Vec::new();
    DeflateEncoder::new(encode(&tree).as_slice(), Compression::fast()).read_to_end(&mut list).map_err(failed)?;
    blobs.put(&list)
}

struct Walk<'a> {
    blobs: &'a Blobs,
    root: &'a Path,
    tree: FileTree,
    before: FileStamps,
    seen: &'a mut FileStamps,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        dir: &Dir,
        path: &Path,
        depth: usize,
        leave: &dyn Fn(&OsStr) -> bool,
    ) -> Result<(), FleetError> {
        let whole = self.root.join(path);
        let failed = |error| FleetError::file(&whole, error);
        if depth > MAX_DEPTH || self.tree.len() > MAX_ENTRIES {
            return Err(FleetError::TooLarge { path: whole });
        }
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if depth == 0 && leave(&name) {
                continue;
            }
            let path = path.join(&name);
            match self.entry(&entry, dir, &name, &path, depth, leave) {
                // The file was deleted in the meantime.
                Err(FleetError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &DirEntry,
        dir: &Dir,
        name: &OsStr,
        path: &Path,
        depth: usize,
        leave: &dyn Fn(&OsStr) -> bool,
    ) -> Result<(), FleetError> {
        let whole = self.root.join(path);
        let failed = |error| FleetError::file(&whole, error);
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            let mode = entry.metadata().map_err(failed)?.permissions().mode_bits();
            self.tree.insert(path.to_owned(), TreeEntry::Dir { mode });
            let below = entry.open_dir().map_err(failed)?;
            self.directory(&below, path, depth + 1, leave)
        } else if kind.is_symlink() {
            let to = dir.read_link_contents(name).map_err(failed)?;
            self.tree.insert(path.to_owned(), TreeEntry::Link { to: to.into_os_string().into_vec() });
            Ok(())
        } else if kind.is_file() {
            let file = entry.open().map_err(failed)?.into_std();
            self.file(file, path)
        } else {
            // A socket or a pipe is useless without the process that created it.
            Ok(())
        }
    }

    fn file(&mut self, mut file: File, path: &Path) -> Result<(), FleetError> {
        let whole = self.root.join(path);
        let found = file.metadata().map_err(|error| FleetError::file(&whole, error))?;
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let modified_ns = nanoseconds(found.mtime(), found.mtime_nsec());
        let changed_ns = nanoseconds(found.ctime(), found.ctime_nsec());
        let stamp = Stamp { inode: found.ino(), bytes: found.len(), modified_ns, changed_ns };
        let blob = match self.before.0.get(path) {
            Some((before, blob)) if *before == stamp => *blob,
            _ => self.blobs.put_from(&mut file, &whole)?,
        };
        // Two writes between two ticks of the file system's clock have the same timestamps, so a stamp is valid only if it is
        // older.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        if now.saturating_sub(changed_ns) > TICK_NS {
            self.seen.0.insert(path.to_owned(), (stamp, blob));
        }
        self.tree.insert(path.to_owned(), TreeEntry::File { mode: found.mode() & 0o777, modified_ns, blob });
        Ok(())
    }
}

fn permissions(mode: u32) -> cap_std::fs::Permissions {
    cap_std::fs::Permissions::from_std(Permissions::from_mode(mode))
}

trait ModeBits {
    fn mode_bits(&self) -> u32;
}

impl ModeBits for cap_std::fs::Permissions {
    fn mode_bits(&self) -> u32 {
        cap_std::fs::PermissionsExt::mode(self) & 0o777
    }
}

/// Returns the tree with this name.
pub fn load(blobs: &Blobs, name: BlobDigest) -> Result<FileTree, FleetError> {
    let packed = blobs.get(name, usize::try_from(MAX_LIST).unwrap_or(usize::MAX))?;
    let mut list = Vec::new();
    let unpacked = DeflateDecoder::new(packed.as_slice()).take(MAX_LIST).read_to_end(&mut list);
    unpacked.ok().and_then(|_| decode(&list)).ok_or(FleetError::Damaged { digest: name })
}

/// Returns the blobs of a tree's files.
pub fn blobs_of(tree: &FileTree) -> impl Iterator<Item = BlobDigest> {
    tree.values().filter_map(|entry| match entry {
        TreeEntry::File { blob, .. } => Some(*blob),
        _ => None,
    })
}

/// Makes a directory equal to the tree. Other entries are removed, except top-level ones for which `leave` returns true; equal
/// entries stay.
pub fn restore(blobs: &Blobs, tree: &FileTree, dir: &Path, leave: impl Fn(&OsStr) -> bool) -> Result<(), FleetError> {
    let failed = |error| FleetError::file(dir, error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let root = Dir::open_ambient_dir(dir, ambient_authority()).map_err(failed)?;
    remove_others(&root, Path::new(""), tree, &leave).map_err(failed)?;
    for (path, entry) in tree {
        let whole = dir.join(path);
        let failed = |error| FleetError::file(&whole, error);
        match entry {
            TreeEntry::Dir { .. } => match root.create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            },
            TreeEntry::Link { to } => {
                root.symlink_contents(OsStr::from_bytes(to), path).map_err(failed)?;
            }
            TreeEntry::File { mode, modified_ns, blob } => {
                restore_file(blobs, &root, path, (*mode, *modified_ns, *blob), &whole)?;
            }
        }
    }
    // Last, and innermost first, because nothing can be created in a directory without write permission.
    for (path, entry) in tree.iter().rev() {
        if let TreeEntry::Dir { mode } = entry {
            root.set_permissions(path, permissions(*mode)).map_err(failed)?;
        }
    }
    Ok(())
}

fn restore_file(
    blobs: &Blobs,
    root: &Dir,
    path: &Path,
    (mode, modified_ns, blob): (u32, i64, BlobDigest),
    whole: &Path,
) -> Result<(), FleetError> {
    let failed = |error| FleetError::file(whole, error);
    let is_same = match root.open(path) {
        Ok(mut there) => blobs.is_same(blob, &mut there).map_err(failed)?,
        Err(_) => false,
    };
    let file = if is_same {
        root.open(path).map_err(failed)?.into_std()
    } else {
        let mut options = OpenOptions::new();
        let mut file =
            root.open_with(path, options.write(true).create(true).truncate(true)).map_err(failed)?.into_std();
        blobs.write(blob, &mut file, None, whole)?;
        file
    };
    file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    let seconds = rustix::fs::Timespec {
        tv_sec: modified_ns.div_euclid(1_000_000_000),
        tv_nsec: modified_ns.rem_euclid(1_000_000_000),
    };
    let times = rustix::fs::Timestamps { last_access: seconds, last_modification: seconds };
    rustix::fs::futimens(&file, &times).map_err(|error| failed(error.into()))
}

/// Removes entries that are missing from the tree, or have another kind there.
fn remove_others(dir: &Dir, path: &Path, tree: &FileTree, leave: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        if path.as_os_str().is_empty() && leave(&name) {
            continue;
        }
        let below = path.join(&name);
        let kind = entry.file_type()?;
        match tree.get(&below) {
            Some(TreeEntry::Dir { .. }) if kind.is_dir() => {
                // The directory may not be readable for this process.
                dir.set_permissions(&name, permissions(0o700))?;
                remove_others(&entry.open_dir()?, &below, tree, leave)?;
            }
            Some(TreeEntry::File { .. }) if kind.is_file() => {}
            _ if kind.is_dir() => dir.remove_dir_all(&name)?,
            _ => dir.remove_file(&name)?,
        }
    }
    Ok(())
}

/// Encodes a list: for each entry its kind, its path, and the data of the kind.
#[expect(clippy::expect_used, reason = "paths are short")]
fn encode(tree: &FileTree) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.extend(u32::try_from(text.len()).expect("paths are short").to_le_bytes());
        bytes.extend(text);
    };
    for (path, entry) in tree {
        match entry {
            TreeEntry::Dir { mode } => {
                bytes.push(0);
                text(&mut bytes, path.as_os_str().as_bytes());
                bytes.extend(mode.to_le_bytes());
            }
            TreeEntry::File { mode, modified_ns, blob } => {
                bytes.push(1);
                text(&mut bytes, path.as_os_str().as_bytes());
                bytes.extend(mode.to_le_bytes());
                bytes.extend(modified_ns.to_le_bytes());
                bytes.extend(blob.as_bytes());
            }
            TreeEntry::Link { to } => {
                bytes.push(2);
                text(&mut bytes, path.as_os_str().as_bytes());
                text(&mut bytes, to);
            }
        }
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<FileTree> {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = bytes.split_at_checked(count)?;
        *bytes = rest;
        Some(taken)
    }
    fn short(bytes: &mut &[u8]) -> Option<u32> {
        Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?))
    }
    fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let count = short(bytes)? as usize;
        take(bytes, count)
    }
    let mut tree = FileTree::new();
    while !bytes.is_empty() {
        let kind = take(&mut bytes, 1)?[0];
        let path = PathBuf::from(OsString::from_vec(text(&mut bytes)?.to_vec()));
        let is_plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_plain || path.as_os_str().is_empty() || tree.len() >= MAX_ENTRIES {
            return None;
        }
        let entry = match kind {
            0 => TreeEntry::Dir { mode: short(&mut bytes)? & 0o777 },
            1 => {
                let mode = short(&mut bytes)? & 0o777;
                let modified_ns = i64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?);
                TreeEntry::File { mode, modified_ns, blob: BlobDigest::try_from(take(&mut bytes, 32)?).ok()? }
            }
            2 => TreeEntry::Link { to: text(&mut bytes)?.to_vec() },
            _ => return None,
        };
        tree.insert(path, entry);
    }
    Some(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_leads_nowhere_else() {
        let blob = BlobDigest::try_from([7; 32].as_slice()).unwrap();
        let entries = [
            ("work", TreeEntry::Dir { mode: 0o700 }),
            ("work/a", TreeEntry::File { mode: 0o600, modified_ns: -5, blob }),
            ("work/b", TreeEntry::Link { to: b"../../elsewhere".to_vec() }),
        ];
        let tree: FileTree = entries.into_iter().map(|(path, entry)| (PathBuf::from(path), entry)).collect();
        assert_eq!(decode(&encode(&tree)), Some(tree));
        for path in ["../a", "/a", "a/../../b", ""] {
            let tree = FileTree::from([(PathBuf::from(path), TreeEntry::Dir { mode: 0o700 })]);
            assert_eq!(decode(&encode(&tree)), None, "{path}");
        }
        assert_eq!(decode(&[1, 200, 0, 0, 0]), None);
    }
}
