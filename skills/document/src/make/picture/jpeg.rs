//! JPEG files, which PDF and DOCX take as they are.

use super::{Picture, Pixels};
use crate::error::{Error, Result};
use crate::limits;

/// Reads the sizes of a JPEG file.
pub fn read(bytes: Vec<u8>) -> Result<Picture> {
    let damaged = || Error::new("it is damaged: it has no frame");
    let mut orientation = 1;
    let mut is_adobe = false;
    let mut at = 2;
    while let Some([0xff, marker]) = bytes.get(at..at + 2) {
        let marker = *marker;
        if marker == 0xff {
            at += 1;
            continue;
        }
        if (0xd0..=0xd9).contains(&marker) || marker == 1 {
            at += 2;
            continue;
        }
        let length = usize::from(u16_at(&bytes, at + 2).ok_or_else(damaged)?);
        let segment = bytes.get(at + 4..at + 2 + length.max(2)).ok_or_else(damaged)?;
        match marker {
            0xe1 => orientation = exif(segment).unwrap_or(orientation),
            0xee => is_adobe |= segment.starts_with(b"Adobe"),
            0xc0..=0xc2 => {
                let [8, rest @ ..] = segment else { return Err(Error::new("its samples do not have 8 bits")) };
                let height = u32::from(u16_at(rest, 0).ok_or_else(damaged)?);
                let width = u32::from(u16_at(rest, 2).ok_or_else(damaged)?);
                let components = *rest.get(4).ok_or_else(damaged)?;
                if width == 0 || height == 0 || !matches!(components, 1 | 3 | 4) {
                    return Err(damaged());
                }
                if f64::from(width) * f64::from(height) > limits::PIXELS * 2.0 {
                    return Err(Error::limit("it has too many pixels", limits::PIXELS * 2.0));
                }
                let is_turned = orientation >= 5;
                return Ok(Picture {
                    stored: (width, height),
                    width: if is_turned { height } else { width },
                    height: if is_turned { width } else { height },
                    pixels: Pixels::Jpeg { components, is_inverted: components == 4 && is_adobe, orientation },
                    file: bytes,
                    end: "jpeg",
                });
            }
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err(Error::new("it is a kind of JPEG that no viewer of PDF files reads"));
            }
            0xda => break,
            _ => {}
        }
        at += 2 + length;
    }
    Err(damaged())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The orientation from EXIF.
fn exif(segment: &[u8]) -> Option<u8> {
    let tiff = segment.strip_prefix(b"Exif\0\0")?;
    let is_little = tiff.starts_with(b"II");
    let short = |at: usize| {
        let pair: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    };
    let long = |at: usize| {
        let four: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let count = usize::from(short(directory)?);
    (0..count.min(200))
        .find_map(|entry| {
            let at = directory.checked_add(2 + entry * 12)?;
            (short(at)? == 0x112).then(|| short(at + 8)).flatten()
        })
        .and_then(|value| u8::try_from(value).ok())
        .filter(|value| (1..=8).contains(value))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The head of a JPEG file with an orientation.
    pub fn jpeg(width: u16, height: u16, orientation: u8) -> Vec<u8> {
        let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        exif.extend([orientation, 0, 0]);
        let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1, 0, (exif.len() + 2) as u8];
        bytes.extend(exif);
        bytes.extend([0xff, 0xc0, 0, 17, 8]);
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes.extend([3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
        bytes
    }

    #[test]
    fn sizes_are_read() {
        let picture = read(jpeg(40, 30, 1)).unwrap();
        assert_eq!((picture.width, picture.height), (40, 30));
        let picture = read(jpeg(40, 30, 6)).unwrap();
        assert_eq!((picture.width, picture.height, picture.stored), (30, 40, (40, 30)));
        let whole = jpeg(40, 30, 6);
        for end in 0..whole.len() - 9 {
            assert!(read(whole[..end].to_vec()).is_err(), "{end}");
        }
        assert!(read(jpeg(60_000, 60_000, 1)).is_err());
    }
}
