//! Entries of a ZIP package, within limits.

use std::cell::Cell;
use std::io::{Cursor, Read};

use crate::error::{Error, Result};
use crate::limits;

pub struct Package<'a> {
    archive: zip::ZipArchive<Cursor<&'a [u8]>>,
    names: Vec<String>,
    unpacked: Cell<u64>,
}

impl<'a> Package<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| Error::damaged("the ZIP package", e))?;
        if archive.len() > limits::ENTRIES {
            return Err(Error::limit(&format!("it has {} entries", archive.len()), limits::ENTRIES));
        }
        // Some writers separate directories with backslashes.
        let names = (0..archive.len())
            .map(|index| archive.name_for_index(index).and_then(std::result::Result::ok).unwrap_or_default())
            .map(|name| name.replace('\\', "/").trim_start_matches('/').to_owned())
            .collect();
        Ok(Self { archive, names, unpacked: Cell::new(0) })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn index(&self, name: &str) -> Option<usize> {
        let name = name.trim_start_matches('/');
        let exact = self.names.iter().position(|known| known == name);
        exact.or_else(|| self.names.iter().position(|known| known.eq_ignore_ascii_case(name)))
    }

    pub fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// Size of an entry as the package says it, which need not be true.
    pub fn size(&mut self, name: &str) -> usize {
        let index = self.index(name);
        let entry = index.and_then(|index| self.archive.by_index_raw(index).ok());
        entry.map_or(0, |entry| usize::try_from(entry.size()).unwrap_or(usize::MAX))
    }

    /// Unpacks an entry.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>> {
        let index = self.index(name).ok_or_else(|| Error::new(format!("it is damaged: {name} is missing")))?;
        let mut entry = self.archive.by_index(index).map_err(|e| match e {
            zip::result::ZipError::UnsupportedArchive(reason) if reason.contains("assword") => {
                Error::new("it is a ZIP package that is encrypted with a password, which cannot be opened here")
            }
            e => Error::damaged(name, e),
        })?;
        let packed = entry.compressed_size();
        let ratio = limits::RATIO.saturating_mul(packed.max(1)).max(limits::RATIO_FREE_BYTES);
        let limit = limits::ENTRY_BYTES.min(limits::UNPACKED_BYTES - self.unpacked.get()).min(ratio);
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size().min(1 << 20)).unwrap_or(0));
        let read = entry.by_ref().take(limit + 1).read_to_end(&mut bytes);
        let length = bytes.len() as u64;
        if length > limit {
            let sentence =
                format!("it unpacks to too many bytes ({name}: {packed} bytes packed, more than {limit} unpacked)");
            return Err(Error::limit(
                &sentence,
                format!(
                    "{} times its packed size, {} MiB for an entry, {} MiB in total",
                    limits::RATIO,
                    limits::ENTRY_BYTES >> 20,
                    limits::UNPACKED_BYTES >> 20
                ),
            ));
        }
        self.unpacked.set(self.unpacked.get() + length);
        match read {
            Ok(_) => Ok(bytes),
            // A wrong checksum or a cut entry: what there is may still be read.
            Err(_) if length > 0 => Ok(bytes),
            Err(e) => Err(Error::damaged(name, e)),
        }
    }

    /// Checks the size of an entry that a library will read as a stream, and that no text in a large one goes on for ever. The size is
    /// the one that the package says: the reader stops at it.
    pub fn check(&mut self, name: &str) -> Result<()> {
        const UNCHECKED: u64 = 64 << 20;
        const RUN: usize = 8 << 20;
        let Some(index) = self.index(name) else { return Ok(()) };
        let Ok(mut entry) = self.archive.by_index(index) else { return Ok(()) };
        let (packed, size) = (entry.compressed_size().max(1), entry.size());
        let limit = (limits::RATIO.saturating_mul(packed)).clamp(limits::RATIO_FREE_BYTES, limits::UNPACKED_BYTES);
        if size > limit {
            return Err(Error::limit(
                &format!("it unpacks to too many bytes ({name}: {packed} bytes packed, {size} unpacked)"),
                format!("{} times its packed size, {} MiB for an entry", limits::RATIO, limits::UNPACKED_BYTES >> 20),
            ));
        }
        if size < UNCHECKED || !(name.ends_with(".xml") || name.ends_with(".rels")) {
            return Ok(());
        }
        let mut buffer = vec![0; 64 << 10];
        let mut run = 0;
        while let Ok(length @ 1..) = entry.read(&mut buffer) {
            run = match buffer[..length].iter().rposition(|byte| *byte == b'<') {
                Some(last) => length - last,
                None => run + length,
            };
            if run > RUN {
                return Err(Error::limit(&format!("a text in it is too long ({name})"), format!("{} MiB", RUN >> 20)));
            }
        }
        Ok(())
    }

    /// Unpacks an entry of XML.
    pub fn read_text(&mut self, name: &str) -> Result<String> {
        let bytes = self.read(name)?;
        Ok(crate::xml::decode(&bytes))
    }

    /// Relationships of a part: id, type and target. Targets of the package are paths from its root.
    pub fn relationships(&mut self, part: &str) -> Vec<Relationship> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let path = format!("{folder}/_rels/{name}.rels");
        let Ok(text) = self.read_text(path.trim_start_matches('/')) else { return Vec::new() };
        let mut found = Vec::new();
        let mut xml = crate::xml::Xml::new(&text);
        while let Some(node) = xml.next() {
            if let crate::xml::Node::Open(tag) = node
                && tag.name() == "Relationship"
            {
                let target = tag.attribute("Target").unwrap_or_default();
                let external = tag.attribute("TargetMode").is_some_and(|mode| mode == "External");
                found.push(Relationship {
                    id: tag.attribute("Id").unwrap_or_default(),
                    kind: tag.attribute("Type").unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned(),
                    target: if external { target } else { resolve(folder, &target) },
                });
            }
        }
        found
    }

    /// The content type of a part. Empty if the package does not say.
    pub fn content_type(&mut self, part: &str) -> String {
        let Ok(text) = self.read_text("[Content_Types].xml") else { return String::new() };
        let mut xml = crate::xml::Xml::new(&text);
        while let Some(node) = xml.next() {
            if let crate::xml::Node::Open(tag) = node
                && tag.name() == "Override"
                && tag.attribute("PartName").is_some_and(|name| name.trim_start_matches('/').eq_ignore_ascii_case(part))
            {
                return tag.attribute("ContentType").unwrap_or_default();
            }
        }
        String::new()
    }

    /// The path of the main part. Empty if the package does not say.
    pub fn main_part(&mut self) -> String {
        let found = self.relationships("").into_iter().find(|relationship| relationship.kind == "officeDocument");
        found.map(|relationship| relationship.target).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub struct Relationship {
    pub id: String,
    /// The last word of its type: `hyperlink`, `image`, `slide`.
    pub kind: String,
    pub target: String,
}

/// A path relative to a folder of the package, without `.` and `..`.
pub fn resolve(folder: &str, target: &str) -> String {
    let target = target.split(['#', '?']).next().unwrap_or_default().replace('\\', "/");
    let absolute = target.starts_with('/');
    let mut parts: Vec<&str> = if absolute { Vec::new() } else { folder.split('/').collect() };
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("/")
}

/// Makes packages for tests.
#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::Write;

    pub fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
        let entries: Vec<(&str, &[u8])> = entries.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        zip_bytes(&entries)
    }

    pub fn zip_bytes(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_bomb_is_refused() {
        let bytes = zip_bytes(&[("a", &vec![0; 20 << 20]), ("b", b"fine")]);
        let mut package = Package::open(&bytes).unwrap();
        let error = package.read("a").unwrap_err().to_string();
        assert!(error.contains("unpacks to too many bytes") && error.contains("250 times"), "{error}");
        assert_eq!(package.read("B").unwrap(), b"fine");
        assert!(package.read("c").is_err());
    }

    #[test]
    fn targets_are_resolved() {
        assert_eq!(resolve("word", "media/a.png"), "word/media/a.png");
        assert_eq!(resolve("ppt/slides", "../media/a.png"), "ppt/media/a.png");
        assert_eq!(resolve("word", "/xl/a.xml#x"), "xl/a.xml");
        assert_eq!(resolve("", "../../a"), "a");
    }
}
