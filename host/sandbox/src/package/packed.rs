//! A package of somebody else: a folder with a `kiso.toml`, or a zip archive of one, as `kiso skill pack` writes it. The files of
//! an archive are below a directory with the package's name; files that the manifest names as `../OTHER/FILE` are below `OTHER`.

use super::PackageError;
use super::archive::unpacked;
use super::folder::{MANIFEST, PackageFolder, is_named, patterns};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveWriter};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of an archive, and of all files in it.
const MAX_PACKED: u64 = 32 << 20;
const MAX_UNPACKED: u64 = 64 << 20;

/// Files of a package, and entries of a directory that are read.
const MAX_FILES: usize = 2_000;
const MAX_ENTRIES: usize = 10_000;

/// Bytes of a manifest.
const MAX_MANIFEST: u64 = 64 << 10;

/// The files of a package by their paths below its folder.
type NamedFiles = BTreeMap<String, Vec<u8>>;

impl PackageFolder {
    /// Whether a path is a package and not another skill: a folder or an archive whose manifest has `[kiso.package]`.
    pub fn is_one(path: &Path) -> bool {
        let manifest = match path.is_dir() {
            true => read_file(&path.join(MANIFEST), MAX_MANIFEST).ok(),
            false => read_archive(path).ok().and_then(|mut files| files.remove(MANIFEST)),
        };
        manifest.is_some_and(|text| has_package_table(&text))
    }

    /// Reads a folder or an archive, and returns the package with the bytes of its archive. The same files always give the same
    /// bytes.
    pub fn read(path: &Path) -> Result<(Self, Vec<u8>), PackageError> {
        match path.is_dir() {
            true => {
                let files = read_folder(path)?;
                let folder = Self::of_files(&files)?;
                let packed = pack(&folder.package.name, &files)?;
                Ok((folder, packed))
            }
            false => {
                let bytes = read_file(path, MAX_PACKED)?;
                Ok((Self::of_files(&unzip(&bytes)?)?, bytes))
            }
        }
    }

    /// Whether another folder has the same manifest and the same files.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.manifest == other.manifest && self.contents() == other.contents()
    }

    fn of_files(files: &NamedFiles) -> Result<Self, PackageError> {
        let manifest = files.get(MANIFEST).ok_or_else(|| unfit(format!("it has no {MANIFEST}")))?;
        let manifest = String::from_utf8(manifest.clone()).map_err(|_| unfit(format!("{MANIFEST} is not UTF-8")))?;
        let there: Vec<_> = files.iter().map(|(path, bytes)| (path.clone(), Cow::Owned(bytes.clone()))).collect();
        Self::new(Cow::Owned(manifest), &there).map_err(unfit)
    }
}

fn has_package_table(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let table = text.parse::<toml::Table>().unwrap_or_default();
    table.get("kiso").and_then(|kiso| kiso.get("package")).is_some()
}

/// Reads the manifest of a folder and the files that it names. No link is followed.
fn read_folder(dir: &Path) -> Result<NamedFiles, PackageError> {
    let manifest = read_file(&dir.join(MANIFEST), MAX_MANIFEST)?;
    let text = std::str::from_utf8(&manifest).map_err(|_| unfit(format!("{MANIFEST} is not UTF-8")))?;
    let mut files = NamedFiles::new();
    for pattern in patterns(text).map_err(unfit)? {
        let (below, name) = pattern.rsplit_once('/').unwrap_or(("", &pattern));
        let entries = fs::read_dir(directory(dir, below)?).map_err(|error| unread(dir, &error))?;
        for (count, entry) in entries.enumerate() {
            if count == MAX_ENTRIES {
                return Err(unfit(format!("a directory of a package has at most {MAX_ENTRIES} entries")));
            }
            let path = entry.map_err(|error| unread(dir, &error))?.path();
            let Some(found) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if found == MANIFEST || !is_named(name, found) || !path.symlink_metadata().is_ok_and(|meta| meta.is_file())
            {
                continue;
            }
            let relative = if below.is_empty() { found.to_owned() } else { format!("{below}/{found}") };
            files.insert(relative, read_file(&path, MAX_UNPACKED)?);
            check_size(&files)?;
        }
    }
    files.insert(MANIFEST.to_owned(), manifest);
    Ok(files)
}

/// The directory of files that a manifest names: below its folder, or a package folder beside that (`../OTHER`).
fn directory(dir: &Path, below: &str) -> Result<PathBuf, PackageError> {
    let refuse = || unfit(format!("{MANIFEST}: `files` cannot name what lies in {below:.80?}"));
    let mut path = dir.canonicalize().map_err(|error| unread(dir, &error))?;
    let mut parts = below.split('/').filter(|part| !part.is_empty());
    if let Some(other) = below.strip_prefix("../") {
        let other = other.split('/').next().unwrap_or_default();
        path = path.parent().ok_or_else(refuse)?.join(other);
        let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if matches!(other, "" | "." | "..") || !is_dir || !path.join(MANIFEST).is_file() {
            return Err(refuse());
        }
        parts.nth(1);
    }
    for part in parts {
        path.push(part);
        let is_plain = !part.contains(['*', '\\']) && !matches!(part, "." | "..");
        if !is_plain || !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(refuse());
        }
    }
    Ok(path)
}

fn read_archive(path: &Path) -> Result<NamedFiles, PackageError> {
    let mut begin = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin)).map_err(|error| unread(path, &error))?;
    match &begin {
        b"PK" => unzip(&read_file(path, MAX_PACKED)?),
        _ => Err(unfit(format!("{} is not a zip archive", path.display()))),
    }
}

/// The files of an archive by their paths below the folder with the one manifest. Unpacked bytes are counted.
fn unzip(bytes: &[u8]) -> Result<NamedFiles, PackageError> {
    let damaged = |error: rawzip::Error| PackageError::Archive(error.to_string());
    let archive = ZipArchive::from_slice(bytes).map_err(damaged)?;
    let (mut entries, mut all, mut left) = (archive.entries(), NamedFiles::new(), MAX_UNPACKED);
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        if entry.is_dir() {
            continue;
        }
        let path = String::from_utf8(entry.file_path().as_bytes().to_vec()).unwrap_or_default();
        if !is_plain(&path) {
            return Err(unfit(format!("{path:.80?} cannot be the path of a file of a package")));
        }
        let packed = archive.get_entry(entry.wayfinder()).map_err(damaged)?;
        let found = unpacked(entry.compression_method(), packed.data(), left)?;
        let found =
            found.ok_or_else(|| PackageError::Archive(format!("{path} is packed by another method than deflate")))?;
        left = left.checked_sub(found.len() as u64).ok_or_else(too_large)?;
        all.insert(path, found);
        check_size(&all)?;
    }
    let mut manifests = all.keys().filter(|path| path.rsplit('/').next() == Some(MANIFEST));
    let (Some(manifest), None) = (manifests.next(), manifests.next()) else {
        return Err(unfit(format!("it must have one {MANIFEST}")));
    };
    let below = manifest[..manifest.len() - MANIFEST.len()].to_owned();
    if below.matches('/').count() > 1 {
        return Err(unfit(format!("its {MANIFEST} lies too deep")));
    }
    let relative = |path: String| match path.strip_prefix(&below) {
        Some(path) => path.to_owned(),
        None => format!("../{path}"),
    };
    Ok(all.into_iter().map(|(path, bytes)| (relative(path), bytes)).collect())
}

/// Makes the archive of these files: sorted, without times and owners.
fn pack(name: &str, files: &NamedFiles) -> Result<Vec<u8>, PackageError> {
    let failed = |error: &dyn std::fmt::Display| PackageError::Archive(error.to_string());
    let mut packed = Vec::new();
    let mut writer = ZipArchiveWriter::new(&mut packed);
    let place = |path: &str| path.strip_prefix("../").map_or_else(|| format!("{name}/{path}"), str::to_owned);
    let placed: BTreeMap<String, &Vec<u8>> = files.iter().map(|(path, bytes)| (place(path), bytes)).collect();
    if placed.len() != files.len() {
        return Err(unfit("a folder beside it has its name".to_owned()));
    }
    for (path, bytes) in placed {
        let file = writer.new_file(EntryPath::verbatim(path.as_bytes()));
        let (mut entry, config) =
            file.compression_method(CompressionMethod::DEFLATE).start().map_err(|error| failed(&error))?;
        let mut data = config.wrap(flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::best()));
        data.write_all(bytes).map_err(|error| failed(&error))?;
        let (encoder, descriptor) = data.finish().map_err(|error| failed(&error))?;
        encoder.finish().map_err(|error| failed(&error))?;
        entry.finish(descriptor).map_err(|error| failed(&error))?;
    }
    writer.finish().map_err(|error| failed(&error))?;
    if packed.len() as u64 > MAX_PACKED {
        return Err(too_large());
    }
    Ok(packed)
}

fn is_plain(path: &str) -> bool {
    path.len() <= 400
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !path.contains(|c: char| c.is_control() || c == '\\')
}

fn check_size(files: &NamedFiles) -> Result<(), PackageError> {
    let bytes: usize = files.values().map(Vec::len).sum();
    match files.len() > MAX_FILES || bytes as u64 > MAX_UNPACKED {
        true => Err(too_large()),
        false => Ok(()),
    }
}

fn read_file(path: &Path, max: u64) -> Result<Vec<u8>, PackageError> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(max + 1).read_to_end(&mut bytes));
    read.map_err(|error| unread(path, &error))?;
    if bytes.len() as u64 > max {
        return Err(unfit(format!("{} has more than {max} bytes", path.display())));
    }
    Ok(bytes)
}

fn too_large() -> PackageError {
    unfit(format!("a package has at most {MAX_FILES} files of {MAX_UNPACKED} bytes, and an archive of {MAX_PACKED}"))
}

fn unread(path: &Path, error: &std::io::Error) -> PackageError {
    unfit(format!("cannot read {}: {error}", path.display()))
}

fn unfit(why: String) -> PackageError {
    PackageError::Unfit(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(more: &str) -> String {
        format!(
            "[kiso]\ntype = \"skill\"\nname = \"tool\"\nversion = \"1\"\n[kiso.package]\nlicence = \"MIT\"\ncommands = [\"tool\"]\n{more}\n\
             [kiso.package.component]\nurl = \"https://h/x\"\nalso = \"x\"\nsha256 = \"{}\"\nsize = 1\ndownload_mib = 1\n",
            "0".repeat(64)
        )
    }

    #[test]
    fn a_folder_and_its_archive_are_the_same_package() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("tool/kiso.toml", &manifest("mount = \"/usr/lib/tool\"\nfiles = [\"*.txt\", \"../base/b.txt\"]"));
        write("tool/a.txt", "a");
        write("tool/other.bin", "not named");
        write("base/b.txt", "b");
        let tool = dir.path().join("tool");
        let error = PackageFolder::read(&tool).unwrap_err().to_string();
        assert!(error.contains("cannot name what lies in \"../base\""), "base is not a package: {error}");
        write("base/kiso.toml", "");
        std::os::unix::fs::symlink("/etc/passwd", tool.join("passwd.txt")).unwrap();
        let (folder, packed) = PackageFolder::read(&tool).unwrap();
        let zip = dir.path().join("tool.zip");
        fs::write(&zip, &packed).unwrap();
        assert!(PackageFolder::is_one(&tool) && PackageFolder::is_one(&zip));
        assert!(!PackageFolder::is_one(&dir.path().join("base")) && !PackageFolder::is_one(&tool.join("a.txt")));
        let (unpacked, same) = PackageFolder::read(&zip).unwrap();
        assert_eq!((&unpacked.package, &unpacked.manifest), (&folder.package, &folder.manifest));
        assert_eq!(same, packed);
        assert_eq!(PackageFolder::read(&tool).unwrap().1, packed, "the same files make the same archive");
        let names: Vec<_> = unzip(&packed).unwrap().into_keys().collect();
        assert_eq!(names, ["../base/b.txt", "a.txt", "kiso.toml"]);
    }

    #[test]
    fn what_leads_out_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("tool");
        fs::create_dir(&tool).unwrap();
        std::os::unix::fs::symlink("/etc", tool.join("etc")).unwrap();
        for file in ["../../x.txt", "../x.txt", "etc/passwd", "../../etc/passwd", "a/../../x", "/etc/passwd"] {
            fs::write(tool.join(MANIFEST), manifest(&format!("mount = \"/usr/lib/tool\"\nfiles = [\"{file}\"]")))
                .unwrap();
            assert!(PackageFolder::read(&tool).is_err(), "{file}");
        }
        let files = |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), manifest("").into_bytes())).collect();
        for paths in [&["a.txt"][..], &["b/kiso.toml"], &["b/c/kiso.toml"]] {
            let packed = pack("tool", &files(paths)).unwrap();
            assert!(unzip(&packed).is_err(), "{paths:?}");
        }
        assert!(pack("tool", &files(&["kiso.toml", "../tool/kiso.toml"])).is_err());
        assert!(unzip(&pack("tool", &files(&["kiso.toml", "../up/kiso.toml"])).unwrap()).is_err());
    }
}
