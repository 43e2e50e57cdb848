//! An archive that contains the folder of an Agent Skill, or only its files: a zip, or a [`tar`], which registries keep. Its own
//! statements are not trusted: it is unpacked in memory, sizes are counted, and none of its paths is opened.

use super::folder::{Folder, FolderError, SKILL_MD, archived_path};
use super::tar;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Bytes of an archive.
pub(in crate::skill) const MAX_PACKED: u64 = 32 << 20;

/// The kind of file in a mode of Unix; nothing said, a file and a directory.
const KIND: u32 = 0o170_000;
const PLAIN: [u32; 3] = [0, 0o100_000, 0o040_000];

/// The first bytes of a zip, and of one without files.
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Whether a file's first bytes are those of an Agent Skill: a zip archive, or a `SKILL.md`.
pub(super) fn is_agent_skill(begin: &[u8]) -> bool {
    ZIP.iter().any(|magic| begin.starts_with(magic)) || is_instructions(begin)
}

/// Whether a text begins as a `SKILL.md` does. A byte order mark is skipped.
fn is_instructions(begin: &[u8]) -> bool {
    begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start().starts_with(b"---")
}

/// Reads an archive.
pub(super) fn read(path: &Path) -> Result<Folder, FolderError> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    unpack(&packed(path)?, stem)
}

/// Reads a file that a client sent: an archive, or a `SKILL.md`, which becomes a folder with one file. The file's present name
/// has no meaning.
pub(super) fn read_upload(path: &Path) -> Result<Folder, FolderError> {
    let bytes = packed(path)?;
    if !is_instructions(&bytes) {
        return unpack(&bytes, None);
    }
    let mut folder = Folder::default();
    folder.count()?;
    folder.add(SKILL_MD.to_owned(), bytes.as_slice())?;
    Ok(folder)
}

/// The bytes of a file, if it is not larger than an archive may be.
fn packed(path: &Path) -> Result<Vec<u8>, FolderError> {
    let shown = || path.display().to_string();
    let not_found = |why: std::io::Error| FolderError::NotFound { path: shown(), why: why.to_string() };
    let file = fs::File::open(path).map_err(not_found)?;
    if !file.metadata().map_err(not_found)?.is_file() {
        return Err(FolderError::NotFound { path: shown(), why: "it is neither a directory nor a file".to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_PACKED + 1).read_to_end(&mut bytes).map_err(not_found)?;
    if bytes.len() as u64 > MAX_PACKED {
        return Err(FolderError::TooLarge { path: shown(), bytes: bytes.len() as u64, max: MAX_PACKED });
    }
    Ok(bytes)
}

/// Makes the archive of a folder for registries: the same bytes for the same files, below a directory of this name.
pub(super) fn pack(folder: &Folder, name: &str) -> Result<Vec<u8>, FolderError> {
    // An archive with two such names could not be unpacked again.
    distinct(folder)?;
    let packed = tar::write(name, &folder.files).map_err(|error| FolderError::Archive { why: error.to_string() })?;
    let bytes = packed.len() as u64;
    if bytes > MAX_PACKED {
        return Err(FolderError::TooLarge { path: "its archive".to_owned(), bytes, max: MAX_PACKED });
    }
    Ok(packed)
}

/// `stem` is the folder's name if the archive contains only the files.
fn unpack(bytes: &[u8], stem: Option<String>) -> Result<Folder, FolderError> {
    let mut folder = Folder::default();
    match tar::is_one(bytes) {
        true => tar::read(bytes, &mut folder)?,
        false => unzip(bytes, &mut folder)?,
    }
    place_at_root(&mut folder, stem);
    distinct(&folder)?;
    Ok(folder)
}

fn unzip(bytes: &[u8], folder: &mut Folder) -> Result<(), FolderError> {
    let damaged = |error: rawzip::Error| FolderError::Archive { why: error.to_string() };
    let archive = ZipArchive::from_slice(bytes).map_err(damaged)?;
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        take(&archive, &entry, folder)?;
    }
    Ok(())
}

fn take(
    archive: &ZipSliceArchive<&[u8]>,
    entry: &ZipFileHeaderRecord<'_>,
    folder: &mut Folder,
) -> Result<(), FolderError> {
    let damaged = |error: rawzip::Error| FolderError::Archive { why: error.to_string() };
    // Files that are left out cost time, too.
    folder.count()?;
    let name = entry.file_path().as_bytes();
    let name = std::str::from_utf8(name).map_err(|_| FolderError::Path {
        path: String::from_utf8_lossy(name).chars().take(100).collect(),
        why: "it is not UTF-8",
    })?;
    let Some(path) = archived_path(name)? else { return Ok(()) };
    if !PLAIN.contains(&(entry.mode().value() & KIND)) {
        return Err(FolderError::Link { path: path.to_owned() });
    }
    if entry.is_dir() {
        return Ok(());
    }
    let flags = entry.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() {
        return Err(FolderError::Archive { why: format!("{path} is encrypted") });
    }
    let packed = archive.get_entry(entry.wayfinder()).map_err(damaged)?;
    let added = match entry.compression_method() {
        CompressionMethod::STORE => folder.add(path.to_owned(), packed.verifying_reader(packed.data())),
        CompressionMethod::DEFLATE => {
            folder.add(path.to_owned(), packed.verifying_reader(DeflateDecoder::new(packed.data())))
        }
        _ => return Err(FolderError::Archive { why: format!("{path} is packed by another method than deflate") }),
    };
    added.map_err(|error| match error {
        FolderError::NotFound { path, why } => FolderError::Archive { why: format!("{path}: {why}") },
        other => other,
    })
}

/// Removes the folder that contains all files, if there is one and it is the skill's.
fn place_at_root(folder: &mut Folder, stem: Option<String>) {
    let is_root = |folder: &Folder| folder.find(SKILL_MD).is_some();
    let first = folder.files.first().and_then(|(path, _)| path.split_once('/')).map(|(first, _)| first.to_owned());
    match first {
        Some(first) if !is_root(folder) => {
            let below = format!("{first}/");
            if folder.files.iter().all(|(path, _)| path.starts_with(&below)) {
                folder.files.iter_mut().for_each(|(path, _)| drop(path.drain(..below.len())));
                folder.name = Some(first);
            }
        }
        _ => folder.name = stem,
    }
}

/// Refuses a file that is also a directory of another one, and names that differ only in case.
fn distinct(folder: &Folder) -> Result<(), FolderError> {
    let mut seen = BTreeSet::new();
    for (path, _) in &folder.files {
        if !seen.insert(path.to_lowercase()) {
            return Err(FolderError::Twice { path: path.clone() });
        }
    }
    for (path, _) in &folder.files {
        let mut above = path.as_str();
        while let Some((dir, _)) = above.rsplit_once('/') {
            if seen.contains(&dir.to_lowercase()) {
                return Err(FolderError::Archive { why: format!("{dir} is a file and a directory") });
            }
            above = dir;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::code::ErrorCode;
    use rawzip::ZipArchiveWriter;
    use rawzip::path::EntryPath;
    use std::io::Write;

    const SKILL: &str = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        with_modes(&files.iter().map(|(path, bytes)| (*path, *bytes, 0o100_644)).collect::<Vec<_>>())
    }

    fn with_modes(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut writer = ZipArchiveWriter::new(&mut packed);
        for (path, bytes, mode) in files {
            let file = writer.new_file(EntryPath::verbatim(path.as_bytes()));
            let file = file.unix_permissions(*mode).compression_method(CompressionMethod::DEFLATE);
            let (mut entry, config) = file.start().unwrap();
            let mut data = config.wrap(flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default()));
            data.write_all(bytes).unwrap();
            let (encoder, descriptor) = data.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        writer.finish().unwrap();
        packed
    }

    fn code(bytes: &[u8]) -> String {
        unpack(bytes, Some("greet".to_owned())).map_or_else(|error| error.code().to_string(), |_| String::new())
    }

    #[test]
    fn a_file_that_is_sent_is_known_by_its_first_bytes() {
        for begin in [&b"PK\x03\x04"[..], b"PK\x05\x06", b"---\n", b"\xef\xbb\xbf---", b"\n ---\n"] {
            assert!(is_agent_skill(begin), "{begin:?}");
        }
        for other in [&b"\0asm"[..], b"PK", b"--", b"", b"# Greet"] {
            assert!(!is_agent_skill(other), "{other:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let sent = |bytes: &[u8]| {
            fs::write(dir.path().join("skill"), bytes).unwrap();
            read_upload(&dir.path().join("skill"))
        };
        let alone = sent(SKILL.as_bytes()).unwrap();
        assert_eq!((alone.files.len(), alone.find(SKILL_MD)), (1, Some(SKILL.as_bytes())));
        let packed = sent(&archive(&[("SKILL.md", SKILL.as_bytes()), ("a/b.sh", b"")])).unwrap();
        assert_eq!((packed.files.len(), packed.name), (2, None), "the name of the file here is not the skill's");
        assert!(matches!(sent(&[b'-'; 300 << 10]), Err(FolderError::TooLarge { .. })));
    }

    #[test]
    fn the_folder_may_stand_in_the_archive_or_not() {
        let inside =
            unpack(&archive(&[("greet/SKILL.md", SKILL.as_bytes()), ("greet/a/b.sh", b"")]), Some("x".into())).unwrap();
        assert_eq!((inside.name.as_deref(), inside.files.len()), (Some("greet"), 2));
        assert!(inside.find("a/b.sh").is_some());
        let alone = unpack(&archive(&[("SKILL.md", SKILL.as_bytes()), ("a/b.sh", b"")]), Some("x".into())).unwrap();
        assert_eq!(alone.name.as_deref(), Some("x"));
        assert_eq!(inside.digest().to_string(), alone.digest().to_string());
    }

    #[test]
    fn what_is_packed_is_unpacked_the_same() {
        let read = |root: &str| {
            let (skill, script) = (format!("{root}SKILL.md"), format!("{root}a/b.sh"));
            let zip = archive(&[(&script, b"x"), (&skill, SKILL.as_bytes())]);
            unpack(&zip, None).unwrap().complete().unwrap()
        };
        let packed = pack(&read("greet/"), "greet").unwrap();
        assert_eq!(pack(&read(""), "greet").unwrap(), packed);
        let again = unpack(&packed, None).unwrap().complete().unwrap();
        assert_eq!((again.name.as_deref(), &again.files), (Some("greet"), &read("").files));
        // A folder that could not be unpacked again is not packed.
        let mut twice = Folder::default();
        twice.add("A.txt".to_owned(), &b"1"[..]).unwrap();
        twice.add("a.txt".to_owned(), &b"2"[..]).unwrap();
        assert_eq!(pack(&twice, "greet").unwrap_err().code(), ErrorCode::BadArchive);
    }

    #[test]
    fn an_archive_that_wants_out_is_refused() {
        for path in ["../x", "greet/../../x", "/etc/passwd", "greet/a\\..\\b", "..", "greet/./x"] {
            assert_eq!(code(&archive(&[("greet/SKILL.md", SKILL.as_bytes()), (path, b"x")])), "unsafe-path", "{path}");
        }
        let linked = with_modes(&[("greet/SKILL.md", SKILL.as_bytes(), 0o100_644), ("greet/loop", b"loop", 0o120_777)]);
        assert_eq!(code(&linked), "link");
    }

    #[test]
    fn a_bomb_is_counted_while_it_is_unpacked() {
        let zeros = vec![0; 12 << 20];
        let bomb = archive(&[("SKILL.md", SKILL.as_bytes()), ("a", &zeros), ("b", &zeros), ("c", &zeros)]);
        assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
        assert_eq!(code(&bomb), "too-large");
        assert_eq!(code(&archive(&[("SKILL.md", &zeros)])), "too-large");
        let names: Vec<String> = (0..1_100).map(|n| format!("f{n}")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        assert_eq!(code(&archive(&many)), "too-many-files");
    }

    #[test]
    fn what_is_no_archive_is_said() {
        assert_eq!(code(b"PK\x03\x04 and no more"), "bad-archive");
        let good = archive(&[("SKILL.md", SKILL.repeat(50).as_bytes())]);
        let mut broken = good.clone();
        broken[40] ^= 0xff;
        assert_eq!(code(&broken), "bad-archive");
        assert_eq!(code(&archive(&[("A.txt", b"1"), ("a.txt", b"2")])), "bad-archive");
        assert_eq!(code(&archive(&[("a", b"1"), ("a/b", b"2")])), "bad-archive");
    }
}
