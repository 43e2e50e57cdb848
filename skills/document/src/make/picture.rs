//! Pictures of a document: found, checked and measured once.

mod decode;
mod jpeg;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::limits;

#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// A JPEG file as it is: number of components, and whether its colours are inverted.
    Jpeg { components: u8, is_inverted: bool, orientation: u8 },
    /// Deflated samples: RGB, and the opacity if it is not the same everywhere.
    Samples { rgb: Vec<u8>, alpha: Option<Vec<u8>> },
}

#[derive(Debug, Clone)]
pub struct Picture {
    /// As it is stored, before it is turned.
    pub stored: (u32, u32),
    /// As it is seen.
    pub width: u32,
    pub height: u32,
    pub pixels: Pixels,
    /// The file, and how its name ends.
    pub file: Vec<u8>,
    pub end: &'static str,
}

/// The pictures of one document.
#[derive(Debug, Default)]
pub struct Pictures {
    /// Directory from which relative paths start.
    folder: PathBuf,
    pub all: Vec<Picture>,
    known: HashMap<String, Option<usize>>,
    pixels: u64,
    bytes: usize,
    /// Sentences about pictures that are left out.
    pub notes: Vec<String>,
}

impl Pictures {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, ..Self::default() }
    }

    pub fn note(&mut self, sentence: &str) {
        if self.notes.len() < 20 && !self.notes.iter().any(|known| known == sentence) {
            self.notes.push(sentence.to_owned());
        }
    }

    /// The number of a picture; `None`, with a note, if there is none.
    pub fn load(&mut self, source: &str) -> Option<usize> {
        if let Some(known) = self.known.get(source) {
            return *known;
        }
        let number = match self.read(source) {
            Ok(picture) => {
                self.all.push(picture);
                Some(self.all.len() - 1)
            }
            Err(error) => {
                let shown: String = source.chars().take(80).collect();
                self.note(&format!("the picture {shown} is left out: {error}"));
                None
            }
        };
        if self.known.len() < limits::PICTURES {
            self.known.insert(source.to_owned(), number);
        }
        number
    }

    fn read(&mut self, source: &str) -> Result<Picture> {
        if self.all.len() >= limits::PICTURES {
            return Err(Error::limit("there are too many pictures", limits::PICTURES));
        }
        let bytes = self.bytes(source)?;
        let picture = decode(bytes)?;
        self.pixels += u64::from(picture.width) * u64::from(picture.height);
        self.bytes += picture.file.len();
        if self.pixels > limits::ALL_PIXELS {
            return Err(Error::limit("the pictures have too many pixels together", limits::ALL_PIXELS));
        }
        if self.bytes > limits::ATTACHMENT_BYTES {
            return Err(Error::limit("the pictures have too many bytes together", limits::ATTACHMENT_BYTES));
        }
        Ok(picture)
    }

    fn bytes(&self, source: &str) -> Result<Vec<u8>> {
        let source = source.trim();
        if source.is_empty() {
            return Err(Error::new("it has no address"));
        }
        let lower = source.get(..8).unwrap_or(source).to_ascii_lowercase();
        if let Some(rest) = source.strip_prefix("data:") {
            return data(rest).ok_or_else(|| Error::new("its data cannot be decoded"));
        }
        if lower.starts_with("http:") || lower.starts_with("https:") || lower.starts_with("//") {
            return Err(Error::new("it is on the network: download it first"));
        }
        let path = source.strip_prefix("file://").unwrap_or(source);
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let plain = unquote(path);
        let candidates = [self.folder.join(path), self.folder.join(&plain), PathBuf::from(&plain)];
        let mut found = candidates.iter().find(|path| path.is_file()).unwrap_or(&candidates[0]).clone();
        // Charts are often saved as both.
        if found.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) && found.with_extension("png").is_file()
        {
            found.set_extension("png");
        }
        if let Ok(size) = std::fs::metadata(&found).map(|meta| meta.len())
            && size > limits::PICTURE_BYTES
        {
            return Err(Error::limit(&format!("it has {size} bytes"), limits::PICTURE_BYTES));
        }
        crate::answer::load(&found)
    }
}

/// The directory of a file.
pub fn folder_of(path: &str) -> PathBuf {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    folder.components().filter(|part| *part != Component::CurDir).collect()
}

fn decode(bytes: Vec<u8>) -> Result<Picture> {
    if bytes.len() as u64 > limits::PICTURE_BYTES {
        return Err(Error::limit(&format!("it has {} bytes", bytes.len()), limits::PICTURE_BYTES));
    }
    match bytes.as_slice() {
        [0xff, 0xd8, 0xff, ..] => jpeg::read(bytes),
        [0x89, b'P', b'N', b'G', ..] => decode::png(bytes),
        [b'G', b'I', b'F', b'8', ..] => decode::gif(bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => decode::webp(bytes),
        [b'B', b'M', ..] => decode::bmp(bytes),
        _ if String::from_utf8_lossy(&bytes[..bytes.len().min(1_000)]).contains("<svg") => {
            Err(Error::new("it is SVG: make it PNG"))
        }
        _ => Err(Error::new("it is not PNG, JPEG, GIF, WebP or BMP")),
    }
}

/// Decodes the rest of a `data:` address.
fn data(rest: &str) -> Option<Vec<u8>> {
    let (head, body) = rest.split_once(',')?;
    if body.len() as u64 > limits::PICTURE_BYTES * 2 {
        return None;
    }
    let body = unquote(body);
    if !head.ends_with("base64") {
        return Some(body.into_bytes());
    }
    let (mut bits, mut count) = (0_u32, 0);
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    for byte in body.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            byte if byte.is_ascii_whitespace() => continue,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// Replaces `%20` and the others.
fn unquote(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
pub use decode::tests::sample;
#[cfg(test)]
pub use jpeg::tests::jpeg as sample_jpeg;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded() {
        assert_eq!(data("image/png;base64,aGk=").unwrap(), b"hi");
        assert_eq!(data("text/plain,a%20b").unwrap(), b"a b");
        assert!(data("x;base64,*").is_none() && data("nothing").is_none());
        assert_eq!(unquote("a%20b%zz%"), "a b%zz%");
        let mut pictures = Pictures::new(PathBuf::new());
        for source in ["", "https://x.y/a.png", "none.png", "data:x", "data:image/png;base64,iVBORw0KGgo="] {
            assert_eq!(pictures.load(source), None);
        }
        assert_eq!(pictures.notes.len(), 5, "{:?}", pictures.notes);
    }
}
