//! The head of a table: its bytes, its text, its format.

use super::{delimited, json};
use crate::llm::prompt::Column;
use std::io::Read;

/// Bytes of a table that are read.
pub const HEAD_BYTES: usize = 64 << 10;

/// What the ending of a file promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Delimited,
    Json,
    JsonLines,
}

impl Format {
    pub fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Some(Self::Delimited),
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// The start of a text.
#[derive(Debug)]
pub struct Head {
    pub text: String,
    /// Whether the file goes on, so that the last row may be half of one.
    pub cut: bool,
}

/// The columns of a table, or none if its head does not read as one.
pub fn columns(from: impl Read, format: Format) -> Option<Vec<Column>> {
    let mut bytes = Vec::new();
    from.take(HEAD_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > HEAD_BYTES;
    bytes.truncate(HEAD_BYTES);
    let head = Head { text: decode(bytes, cut)?, cut };
    match format {
        Format::Delimited => delimited::columns(&head),
        Format::Json if !json::is_lines(&head.text) => json::columns(&head),
        Format::Json | Format::JsonLines => json::columns_of_lines(&head),
    }
}

/// Windows-1252 from 0x80 to 0x9F; zero where a byte has no character.
const WINDOWS: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0, 0,
    0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
];

/// UTF-8 and UTF-16 (by byte order mark), else Windows-1252; none for what is not text.
fn decode(mut bytes: Vec<u8>, cut: bool) -> Option<String> {
    let wide = |pair: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|c| pair([c[0], c[1]])).collect();
        Some(String::from_utf16_lossy(&units))
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, ..] => return wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => return wide(u16::from_be_bytes),
        _ => {}
    }
    if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
        bytes.drain(..3);
    }
    if bytes.contains(&0) {
        return None;
    }
    // The cut may go through a character.
    if let Err(e) = std::str::from_utf8(&bytes)
        && cut
        && e.error_len().is_none()
    {
        bytes.truncate(e.valid_up_to());
    }
    let text = String::from_utf8(bytes);
    Some(text.unwrap_or_else(|e| e.into_bytes().iter().map(|&b| windows(b)).collect()))
}

fn windows(byte: u8) -> char {
    match byte {
        0x80..=0x9F => match WINDOWS[usize::from(byte - 0x80)] {
            0 => char::REPLACEMENT_CHARACTER,
            code => char::from_u32(code.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
        },
        _ => char::from(byte),
    }
}
