//! A folder as a tar archive in gzip, the form in which registries keep Agent Skills. It is read in memory, none of its paths is
//! opened, and sizes are counted while it is unpacked. A written archive depends only on the files: it has no times and no
//! owners, and a fixed order.

use super::folder::{Folder, FolderError, MAX_BYTES, MAX_FILES, archived_path};
use ::tar::{Archive, Builder, EntryType, Header};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Read};

/// Bytes of an archive without gzip: those of the files, and some blocks of 512 for each of them.
const MAX_UNPACKED: u64 = MAX_BYTES + (8 * 512 * MAX_FILES) as u64;

/// Whether the bytes look like such an archive.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

pub(super) fn read(packed: &[u8], folder: &mut Folder) -> Result<(), FolderError> {
    let mut bytes = Vec::new();
    let unpacked = GzDecoder::new(packed).take(MAX_UNPACKED + 1).read_to_end(&mut bytes);
    unpacked.map_err(|error| damaged(&error))?;
    if bytes.len() as u64 > MAX_UNPACKED {
        return Err(FolderError::TooMuch);
    }
    let mut archive = Archive::new(bytes.as_slice());
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        let (kind, name) = (entry.header().entry_type(), entry.path_bytes().into_owned());
        // A header for all entries has their times and similar values.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(|error| damaged(&error))?;
        if content.len() as u64 != entry.size() {
            return Err(FolderError::Archive { why: "it ends in the middle of a file".to_owned() });
        }
        take(kind, &name, &content, folder)?;
    }
    Ok(())
}

fn take(kind: EntryType, name: &[u8], content: &[u8], folder: &mut Folder) -> Result<(), FolderError> {
    // Files that are left out cost time, too.
    folder.count()?;
    let name = std::str::from_utf8(name).map_err(|_| FolderError::Path {
        path: String::from_utf8_lossy(name).chars().take(100).collect(),
        why: "it is not UTF-8",
    })?;
    // Names in an archive of `.` begin in this way, and `./` itself is an entry.
    let name = name.strip_prefix("./").unwrap_or(name);
    if name.is_empty() || name == "." {
        return Ok(());
    }
    let Some(path) = archived_path(name)? else { return Ok(()) };
    match kind {
        EntryType::Regular if !name.ends_with('/') => folder.add(path.to_owned(), content),
        // The oldest archives mark a directory only by the slash.
        EntryType::Regular | EntryType::Directory => Ok(()),
        _ => Err(FolderError::Link { path: path.to_owned() }),
    }
}

fn damaged(error: &io::Error) -> FolderError {
    FolderError::Archive { why: error.to_string() }
}

/// Writes the files below a folder of this name.
pub(super) fn write(root: &str, files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    // No time, and nothing of this machine.
    let gzip = GzBuilder::new().mtime(0).operating_system(255);
    let mut out = Builder::new(gzip.write(Vec::new(), Compression::default()));
    for (path, bytes) in files {
        let mut head = Header::new_gnu();
        head.set_entry_type(EntryType::Regular);
        // A folder is read without its modes, and an archive may lack them. Other programs than kiso run scripts directly.
        head.set_mode(if bytes.starts_with(b"#!") { 0o755 } else { 0o644 });
        head.set_size(bytes.len() as u64);
        head.set_mtime(0);
        head.set_uid(0);
        head.set_gid(0);
        out.append_data(&mut head, format!("{root}/{path}"), bytes.as_slice())?;
    }
    out.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SKILL: &[u8] = b"---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";

    /// A header, also with values that no normal program writes.
    fn head(name: &str, kind: u8, size: u64) -> Header {
        let mut head = Header::new_gnu();
        head.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        head.set_entry_type(EntryType::new(kind));
        head.set_mode(0o644);
        head.set_size(size);
        head.set_cksum();
        head
    }

    /// Makes an archive with these entries, in gzip.
    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut out = Builder::new(GzBuilder::new().write(Vec::new(), Compression::fast()));
        for (name, kind, content) in entries {
            out.append(&head(name, *kind, content.len() as u64), *content).unwrap();
        }
        out.into_inner().unwrap().finish().unwrap()
    }

    /// Compresses these bytes with gzip.
    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzBuilder::new().write(Vec::new(), Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// A POSIX record for values that do not fit into a header. Its length includes its own digits.
    fn record(key: &str, value: &str) -> String {
        let rest = format!(" {key}={value}\n");
        let length = (rest.len()..).find(|length| length.to_string().len() + rest.len() == *length).unwrap();
        format!("{length}{rest}")
    }

    fn read_all(packed: &[u8]) -> Result<Vec<(String, Vec<u8>)>, FolderError> {
        let mut folder = Folder::default();
        read(packed, &mut folder).map(|()| folder.files)
    }

    fn code(packed: &[u8]) -> String {
        read_all(packed).map_or_else(|error| error.code().to_string(), |_| String::new())
    }

    fn paths(packed: &[u8]) -> Vec<String> {
        read_all(packed).unwrap().into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let long = format!("references/{}.md", "ä".repeat(100));
        let files: Vec<(String, Vec<u8>)> = [
            ("SKILL.md", SKILL),
            ("empty", b""),
            (long.as_str(), b"x"),
            ("block", &[7; 512]),
            ("scripts/a b.sh", b"#!/bin/sh\n"),
        ]
        .into_iter()
        .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
        .collect();
        let packed = write("greet", &files).unwrap();
        assert!(is_one(&packed));
        let below: Vec<_> = files.iter().map(|(path, bytes)| (format!("greet/{path}"), bytes.clone())).collect();
        assert_eq!(read_all(&packed).unwrap(), below);
        assert_eq!(write("greet", &files).unwrap(), packed);
    }

    #[test]
    fn archives_of_other_programs_are_read() {
        let long = format!("greet/{}", "x".repeat(150));
        let record = record("path", &long);
        for (entries, wanted) in [
            // GNU's tar of the directory `.`.
            (vec![("./", b'5', &b""[..]), ("./SKILL.md", b'0', SKILL)], "SKILL.md"),
            // The oldest ones, in which a slash at the end means a directory.
            (vec![("greet/", 0, &b""[..]), ("greet/SKILL.md", 0, SKILL)], "greet/SKILL.md"),
            (vec![("././@LongLink", b'L', long.as_bytes()), ("cut", b'0', SKILL)], long.as_str()),
            (vec![("x", b'x', record.as_bytes()), ("cut", b'0', SKILL)], long.as_str()),
            (vec![("pax_global_header", b'g', &b"19 comment=0123456\n"[..]), ("SKILL.md", b'0', SKILL)], "SKILL.md"),
            (vec![("greet/.git/config", b'0', SKILL), ("greet/SKILL.md", b'0', SKILL)], "greet/SKILL.md"),
        ] {
            assert_eq!(paths(&archive(&entries)), [wanted]);
        }
        // The first part of the path in a separate field.
        let mut parted = Header::new_ustar();
        parted.set_path(format!("greet/{}/SKILL.md", "x".repeat(95))).unwrap();
        assert_ne!(parted.as_ustar().unwrap().prefix[0], 0);
        parted.set_size(0);
        parted.set_cksum();
        assert_eq!(paths(&gzipped(parted.as_bytes())), [format!("greet/{}/SKILL.md", "x".repeat(95))]);
    }

    #[test]
    fn an_archive_that_wants_out_is_refused() {
        for path in ["../x", "greet/../../x", "/etc/passwd", "greet/a\\..\\b", "..", "greet/./x", "a\nb"] {
            assert_eq!(code(&archive(&[("greet/SKILL.md", b'0', SKILL), (path, b'0', b"x")])), "unsafe-path", "{path}");
        }
        let record = record("path", "greet/../../x");
        assert_eq!(code(&archive(&[("x", b'x', record.as_bytes()), ("a", b'0', b"x")])), "unsafe-path");
        for kind in [b'1', b'2', b'3', b'4', b'6'] {
            assert_eq!(code(&archive(&[("greet/loop", kind, b"")])), "link", "{kind}");
        }
        // A sparse file, which this reader does not support.
        assert_eq!(code(&archive(&[("greet/loop", b'S', b"")])), "bad-archive");
    }

    #[test]
    fn a_bomb_is_counted_while_it_is_unpacked() {
        let zeros = vec![0; 40 << 20];
        let bomb = archive(&[("greet/a", b'0', &zeros)]);
        assert!(bomb.len() < zeros.len() / 50, "{} bytes", bomb.len());
        assert_eq!(code(&bomb), "too-large");
        assert_eq!(code(&archive(&[("greet/a", b'0', &zeros[..33 << 20])])), "too-large");
        let names: Vec<String> = (0..1_100).map(|n| format!("f{n}")).collect();
        let many: Vec<(&str, u8, &[u8])> = names.iter().map(|name| (name.as_str(), b'0', &b""[..])).collect();
        assert_eq!(code(&archive(&many)), "too-many-files");
    }

    #[test]
    fn what_is_no_archive_is_said() {
        assert_eq!(code(&[0x1f, 0x8b, 8, 0]), "bad-archive");
        let good = archive(&[("SKILL.md", b'0', SKILL)]);
        assert_eq!(code(&good[..good.len() - 1]), "bad-archive");
        assert_eq!(code(&gzipped(&[b'x'; 1024])), "bad-archive");
        // A size beyond the end, in each field that has one.
        for size in [1, 1 << 20, 8 << 30] {
            assert_eq!(code(&gzipped(head("a", b'0', size).as_bytes())), "bad-archive", "{size}");
        }
        let record = record("size", "4000");
        assert_eq!(code(&archive(&[("x", b'x', record.as_bytes()), ("a", b'0', b"x")])), "bad-archive");
    }
}
