//! A package's component out of the bytes that were fetched: the component itself, or a zip archive (a Python wheel is one) with
//! a file of its size and digest.

use super::Package;
use data_encoding::HEXLOWER;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive};
use ring::digest::{SHA256, digest};
use std::io::Read;

/// Entries of an archive that are looked at. Only their sizes are, but a directory of millions takes long to read.
const MAX_ENTRIES: usize = 10_000;

/// Why bytes are not the package's.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("it is not {name} {version}: its SHA-256 is {found}, and not {expected}; nothing was installed")]
    Digest { name: &'static str, version: &'static str, found: String, expected: &'static str },
    #[error("{0}")]
    Stack(String),
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    #[error("the archive has more than {MAX_ENTRIES} entries, so it is another one")]
    Entries,
    #[error("the archive contains no file with the SHA-256 of {name} {version}, {expected}; nothing was installed")]
    Missing { name: &'static str, version: &'static str, expected: &'static str },
}

pub fn component(package: &Package, bytes: Vec<u8>) -> Result<Vec<u8>, PackageError> {
    let &Package { name, version, sha256: expected, .. } = package;
    if !bytes.starts_with(b"PK") {
        let found = hex(&bytes);
        return if found == expected {
            Ok(bytes)
        } else {
            Err(PackageError::Digest { name, version, found, expected })
        };
    }
    let unreadable = |error: rawzip::Error| PackageError::Archive(error.to_string());
    let archive = ZipArchive::from_slice(&bytes[..]).map_err(unreadable)?;
    let mut entries = archive.entries();
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = entries.next_entry().map_err(unreadable)? else {
            return Err(PackageError::Missing { name, version, expected });
        };
        if entry.is_dir() || entry.uncompressed_size_hint() != package.size {
            continue;
        }
        let packed = archive.get_entry(entry.wayfinder()).map_err(unreadable)?;
        let reader: Box<dyn Read> = match entry.compression_method() {
            CompressionMethod::STORE => Box::new(packed.data()),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(packed.data())),
            _ => continue,
        };
        let mut found = Vec::new();
        // What an archive says of its sizes is not believed.
        reader.take(package.size + 1).read_to_end(&mut found).map_err(|e| PackageError::Archive(e.to_string()))?;
        if hex(&found) == expected {
            return Ok(found);
        }
    }
    Err(PackageError::Entries)
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::PACKAGES;
    use rawzip::ZipArchiveWriter;
    use rawzip::path::EntryPath;
    use std::io::Write;

    /// A package whose component is these bytes.
    fn package(component: &[u8]) -> Package {
        let sha256: &'static str = hex(component).leak();
        let of = PACKAGES[0];
        Package { sha256, size: component.len() as u64, ..*of }
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
        assert_eq!(component(&package, b"component".to_vec()).unwrap(), b"component");
        assert!(matches!(component(&package, b"Component".to_vec()), Err(PackageError::Digest { .. })));
        let wheel = archive(&[("a/readme", b"text"), ("a/other.wasm", b"Component"), ("a/x.wasm", b"component")]);
        assert_eq!(component(&package, wheel).unwrap(), b"component");
        let tampered = archive(&[("a/x.wasm", b"Component")]);
        assert!(matches!(component(&package, tampered), Err(PackageError::Missing { .. })));
        assert!(matches!(component(&package, b"PK\x03\x04 and no more".to_vec()), Err(PackageError::Archive(_))));
        assert!(matches!(component(&package, Vec::new()), Err(PackageError::Digest { .. })));
    }
}
