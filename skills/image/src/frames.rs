//! Counts the pictures in a file without decoding any.

use crate::kind::Kind;
use crate::limits::MAX_PAGES;
use crate::tiff_page;

/// Returns the number of frames or pages, at least 1.
pub fn count(bytes: &[u8], kind: Kind) -> usize {
    let found = match kind {
        Kind::Gif => of_gif(bytes).unwrap_or_default(),
        Kind::Webp => of_webp(bytes),
        Kind::Tiff => tiff_page::offsets(bytes).map(|pages| pages.len()).unwrap_or_default(),
        _ => 1,
    };
    found.clamp(1, MAX_PAGES)
}

/// Returns how often a GIF is repeated, 0 for without end, or `None` if it does not say.
pub fn loops(bytes: &[u8]) -> Option<u16> {
    let at = bytes.windows(11).take(4096).position(|window| window == b"NETSCAPE2.0")? + 11;
    let block = bytes.get(at..at + 4)?;
    (block[..2] == [3, 1]).then(|| u16::from_le_bytes([block[2], block[3]]))
}

/// Walks over the blocks of a GIF. `None` at its unexpected end, after what was counted so far is lost; a cut file shows its first frame.
fn of_gif(bytes: &[u8]) -> Option<usize> {
    let mut frames = 0;
    let mut at = 13 + color_table(*bytes.get(10)?);
    while frames < MAX_PAGES {
        match bytes.get(at) {
            Some(0x2c) => {
                let Some(packed) = bytes.get(at + 9) else { break };
                // The descriptor, the table, and the byte with the size of the codes.
                at = skip_blocks(bytes, at + 11 + color_table(*packed));
                frames += 1;
            }
            Some(0x21) => at = skip_blocks(bytes, at + 2),
            _ => break,
        }
    }
    Some(frames)
}

fn color_table(packed: u8) -> usize {
    if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) }
}

fn skip_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(length) = bytes.get(at).filter(|length| **length > 0) {
        at += 1 + usize::from(*length);
    }
    at + 1
}

fn of_webp(bytes: &[u8]) -> usize {
    let mut frames = 0;
    let mut at = 12;
    while let Some(&[a, b, c, d, e, f, g, h]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        if [a, b, c, d] == *b"ANMF" {
            frames += 1;
        }
        let size = u32::from_le_bytes([e, f, g, h]) as usize;
        at = at.saturating_add(8).saturating_add(size).saturating_add(size & 1);
        if frames >= MAX_PAGES {
            break;
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn frames_of_animations_are_counted() {
        let gif = samples::gif(3);
        assert_eq!(count(&gif, Kind::Gif), 3);
        assert_eq!(loops(&gif), Some(0));
        for end in 0..gif.len() {
            assert!(count(&gif[..end], Kind::Gif) <= 3);
        }
        assert_eq!(count(b"RIFF\0\0\0\0WEBPANMF\x01\0\0\0x\0ANMF\xff\xff\xff\xff", Kind::Webp), 2);
        assert_eq!(count(b"II*\0", Kind::Tiff), 1);
    }
}
