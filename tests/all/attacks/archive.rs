//! Archives that an ordinary tool would not create: names that lead outside, links, wrong sizes.

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use serde::Deserialize;
use std::io::Write;

/// An entry as written to the archive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub name: String,
    #[serde(default)]
    pub text: String,
    /// Target of a symbolic link.
    pub link: Option<String>,
    /// Target of a hard link.
    pub hard: Option<String>,
    /// Kind of a tar entry that is not a file or link: '3' is a device, '5' a directory, '6' a pipe.
    pub kind: Option<char>,
    /// The size in the header.
    pub size: Option<u64>,
    #[serde(default = "plain")]
    pub mode: u32,
}

fn plain() -> u32 {
    0o644
}

/// `fill` replaces the placeholders in the row's texts.
pub(crate) fn tar(entries: &[Entry], fill: &dyn Fn(&str) -> String) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let (name, text) = (fill(&entry.name), fill(&entry.text));
        let mut head = [0_u8; 512];
        let kind = match entry {
            Entry { kind: Some(kind), .. } => *kind,
            Entry { link: Some(_), .. } => '2',
            Entry { hard: Some(_), .. } => '1',
            _ => '0',
        };
        let target = fill(entry.link.as_ref().or(entry.hard.as_ref()).map_or("", String::as_str));
        let mut put = |at: usize, most: usize, text: &[u8]| {
            let length = text.len().min(most);
            head[at..at + length].copy_from_slice(&text[..length]);
        };
        put(0, 100, name.as_bytes());
        put(100, 8, format!("{:07o}\0", entry.mode).as_bytes());
        put(108, 8, b"0000000\0");
        put(116, 8, b"0000000\0");
        put(124, 12, format!("{:011o}\0", entry.size.unwrap_or(text.len() as u64)).as_bytes());
        put(136, 12, b"00000000000\0");
        put(148, 8, b"        ");
        put(156, 1, kind.to_string().as_bytes());
        put(157, 100, target.as_bytes());
        put(257, 8, b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(head);
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

pub(crate) fn zip(entries: &[Entry], fill: &dyn Fn(&str) -> String) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let (name, content) = (fill(&entry.name), fill(entry.link.as_ref().unwrap_or(&entry.text)));
        let content = content.as_bytes();
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).expect("memory can be written");
        let packed = encoder.finish().expect("memory can be written");
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let at = u32::try_from(bytes.len()).expect("a small archive");
        let size = u32::try_from(entry.size.unwrap_or(content.len() as u64)).expect("a small archive");
        // The fields of both headers: version, flags, method, time, date, checksum, sizes, lengths of name and extra field.
        let mut both = Vec::new();
        for half in [20_u16, 0, 8, 0, 0x21] {
            both.extend(half.to_le_bytes());
        }
        both.extend(crc.sum().to_le_bytes());
        both.extend(u32::try_from(packed.len()).expect("a small archive").to_le_bytes());
        both.extend(size.to_le_bytes());
        both.extend(u16::try_from(name.len()).expect("a short name").to_le_bytes());
        both.extend(0_u16.to_le_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&both);
        bytes.extend(name.as_bytes());
        bytes.extend(&packed);
        let kind = if entry.link.is_some() { 0o120_000 } else { 0o100_000 };
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&both);
        directory.extend([0; 6]);
        directory.extend(((kind | entry.mode) << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (at, count) = (bytes.len() as u32, entries.len() as u16);
    let length = directory.len() as u32;
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes
}
