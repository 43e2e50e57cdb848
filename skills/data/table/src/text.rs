//! Bytes to text, for the encodings that tables are found in.

use crate::Error;

/// Windows-1252 from 0x80 to 0x9F; zero where a byte has no character.
const WINDOWS: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0, 0,
    0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
];

/// UTF-8 and UTF-16 (by byte order mark), else Windows-1252, which older spreadsheets write; the note says so. Where most of a file is
/// UTF-8, only the bytes that are not are read as Windows-1252.
pub fn decode(file: &str, mut bytes: Vec<u8>) -> Result<(String, Option<String>), Error> {
    let wide = |pair: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|c| pair([c[0], c[1]])).collect();
        (String::from_utf16_lossy(&units), None)
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, ..] => return Ok(wide(u16::from_le_bytes)),
        [0xFE, 0xFF, ..] => return Ok(wide(u16::from_be_bytes)),
        _ => {}
    }
    if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
        bytes.drain(..3);
    }
    if bytes.contains(&0) {
        let message = format!("{file} is not text; tables are read from CSV, JSON and JSON lines");
        return Err(Error::new("not-a-table", message));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, None)),
        Err(e) => {
            let bytes = e.into_bytes();
            if let Some((text, note)) = repaired(file, &bytes) {
                return Ok((text, Some(note)));
            }
            let note = format!("{file} is not UTF-8 and was read as Windows-1252");
            Ok((bytes.iter().map(|&b| windows(b)).collect(), Some(note)))
        }
    }
}

/// The text of a file that is UTF-8 but for some bytes, with a note that names the first of them; None where as many are wrong as right.
fn repaired(file: &str, bytes: &[u8]) -> Option<(String, String)> {
    let (mut text, mut right, mut wrong, mut first) = (String::with_capacity(bytes.len()), 0, 0, None);
    for chunk in bytes.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        text.push_str(chunk.valid());
        if let Some(&byte) = chunk.invalid().first() {
            first.get_or_insert_with(|| (byte, text.matches('\n').count() + 1));
            wrong += chunk.invalid().len();
            text.extend(chunk.invalid().iter().map(|&byte| windows(byte)));
        }
    }
    let (byte, line) = first.filter(|_| right > wrong || (right == wrong && wrong == 1))?;
    let all = if wrong == 1 { "it was".to_owned() } else { format!("{wrong} such bytes were") };
    Some((text, format!("{file} line {line}: the byte {byte:02X} is not UTF-8; {all} read as Windows-1252")))
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
