//! Takes metadata out of a file without touching its pixels.

use crate::kind::Kind;

/// The part of the metadata that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    All,
    /// The place where a photo was taken.
    Place,
}

/// Returns the file without the part, or a sentence about why that is not possible.
pub fn strip(bytes: &[u8], kind: Kind, part: Part) -> Result<Vec<u8>, String> {
    let cut = || "it is damaged: the file ends too early".to_owned();
    let found = match (kind, part) {
        (Kind::Jpeg, _) => jpeg(bytes, part),
        (Kind::Png, _) => png(bytes, part),
        (Kind::Webp, _) => webp(bytes, part),
        (Kind::Gif, Part::All) => gif(bytes),
        (Kind::Gif | Kind::Bmp | Kind::Pnm, _) => Some(bytes.to_vec()),
        (Kind::Tiff, _) => {
            return Err(
                "metadata cannot be taken out of a TIFF; write a new one with: convert IN -strip OUT".to_owned()
            );
        }
    };
    found.ok_or_else(cut)
}

/// Drops the segments with metadata. Adobe's stays: it says how the colours are stored.
fn jpeg(bytes: &[u8], part: Part) -> Option<Vec<u8>> {
    let mut kept = bytes.get(..2)?.to_vec();
    let mut at = 2;
    loop {
        let head = *bytes.get(at..)?.first_chunk::<4>()?;
        if head[0] != 0xff {
            return None;
        }
        match head[1] {
            0xff => {
                at += 1;
                continue;
            }
            // From the first scan on there are pixels.
            0xda => break,
            0x01 | 0xd0..=0xd9 => {
                kept.extend(&head[..2]);
                at += 2;
                continue;
            }
            _ => {}
        }
        let length = 2 + usize::from(u16::from_be_bytes([head[2], head[3]]));
        let segment = bytes.get(at..at + length)?;
        let is_metadata = matches!(head[1], 0xe1..=0xed | 0xef | 0xfe);
        let is_exif = head[1] == 0xe1 && segment.get(4..10) == Some(b"Exif\0\0");
        match part {
            Part::All if is_metadata => {}
            Part::Place if is_exif => {
                let mut segment = segment.to_vec();
                without_place(&mut segment[10..]);
                kept.extend(segment);
            }
            // XMP may name the place, too.
            Part::Place if head[1] == 0xe1 && names_a_place(segment) => {}
            _ => kept.extend(segment),
        }
        at += length;
    }
    kept.extend(&bytes[at..]);
    Some(kept)
}

fn names_a_place(text: &[u8]) -> bool {
    text.windows(7).any(|window| window == b"exif:GP" || window == b"GPSLati")
}

fn png(bytes: &[u8], part: Part) -> Option<Vec<u8>> {
    const METADATA: [&[u8; 4]; 7] = [b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME", b"iCCP", b"zxIf"];
    let mut kept = bytes.get(..8)?.to_vec();
    let mut at = 8;
    while at < bytes.len() {
        let head = *bytes.get(at..)?.first_chunk::<8>()?;
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let name = [head[4], head[5], head[6], head[7]];
        let chunk = bytes.get(at..at.checked_add(12)?.checked_add(length)?)?;
        let drops = match part {
            Part::All => METADATA.contains(&&name),
            // A block with a checksum of its own goes as a whole.
            Part::Place => name == *b"eXIf" || (name == *b"iTXt" && names_a_place(chunk)),
        };
        if !drops {
            kept.extend(chunk);
        }
        at += chunk.len();
        if name == *b"IEND" {
            break;
        }
    }
    Some(kept)
}

fn webp(bytes: &[u8], part: Part) -> Option<Vec<u8>> {
    let mut kept = bytes.get(..12)?.to_vec();
    let mut at = 12;
    while at + 8 <= bytes.len() {
        let head = *bytes.get(at..)?.first_chunk::<8>()?;
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let end = at.checked_add(8)?.checked_add(size)?.checked_add(size & 1)?;
        // Some writers leave out the last byte of an odd chunk.
        let mut chunk = bytes.get(at..end.min(bytes.len()))?.to_vec();
        if chunk.len() < 8 + size {
            return None;
        }
        let drops = match (&head[..4], part) {
            (b"EXIF" | b"XMP ", Part::All) | (b"ICCP", Part::All) => true,
            (b"XMP ", Part::Place) => names_a_place(&chunk),
            _ => false,
        };
        match &head[..4] {
            // The flags say which chunks there are: a profile, EXIF, XMP.
            b"VP8X" if part == Part::All => *chunk.get_mut(8)? &= !0b0010_1100,
            b"EXIF" if part == Part::Place => {
                let start = if chunk.get(8..14) == Some(b"Exif\0\0") { 14 } else { 8 };
                without_place(chunk.get_mut(start..)?);
            }
            _ => {}
        }
        if !drops {
            kept.extend(chunk);
        }
        at = end;
    }
    let size = u32::try_from(kept.len() - 8).ok()?.to_le_bytes();
    kept[4..8].copy_from_slice(&size);
    Some(kept)
}

/// Drops comments and the blocks of programs, but for the one that says how often an animation is shown.
fn gif(bytes: &[u8]) -> Option<Vec<u8>> {
    let table = |packed: u8| if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) };
    let blocks = |mut at: usize| -> Option<usize> {
        loop {
            let length = usize::from(*bytes.get(at)?);
            at += 1 + length;
            if length == 0 {
                return Some(at);
            }
        }
    };
    let mut at = 13 + table(*bytes.get(10)?);
    let mut kept = bytes.get(..at)?.to_vec();
    loop {
        let (end, drops) = match *bytes.get(at)? {
            0x21 => {
                let label = *bytes.get(at + 1)?;
                let end = blocks(at + 2)?;
                let repeats = bytes.get(at + 3..at + 14) == Some(b"NETSCAPE2.0");
                (end, label == 0xfe || (label == 0xff && !repeats))
            }
            0x2c => (blocks(at + 11 + table(*bytes.get(at + 9)?))?, false),
            _ => {
                kept.push(0x3b);
                return Some(kept);
            }
        };
        if !drops {
            kept.extend(bytes.get(at..end)?);
        }
        at = end;
    }
}

/// Takes the place out of an EXIF block: the entry that leads to it goes, and what it led to becomes zero. Nothing moves, so that all
/// other fields are found where they were.
fn without_place(block: &mut [u8]) -> Option<()> {
    let is_little = block.first() == Some(&b'I');
    let two = |block: &[u8], at: usize| -> Option<u16> {
        let two = *block.get(at..)?.first_chunk::<2>()?;
        Some(if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    };
    let four = |block: &[u8], at: usize| -> Option<usize> {
        let four = *block.get(at..)?.first_chunk::<4>()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) } as usize)
    };
    let first = four(block, 4)?;
    let count = usize::from(two(block, first)?);
    let entry = (0..count).map(|number| first + 2 + 12 * number).find(|at| two(block, *at) == Some(0x8825))?;
    let place = four(block, entry + 8)?;
    // The values of the fields, then the fields.
    let fields = usize::from(two(block, place)?);
    for field in (0..fields).map(|number| place + 2 + 12 * number) {
        const SIZES: [usize; 13] = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8];
        let size = SIZES.get(usize::from(two(block, field + 2)?)).copied().unwrap_or(0);
        let bytes = size.saturating_mul(four(block, field + 4)?);
        if bytes > 4 {
            let start = four(block, field + 8)?;
            if let Some(value) = block.get_mut(start..start.saturating_add(bytes)) {
                value.fill(0);
            }
        }
        block.get_mut(field..field + 12)?.fill(0);
    }
    block.get_mut(place..place + 2)?.fill(0);
    // The entries behind it move up, with the offset of the next directory.
    let end = first + 2 + 12 * count + 4;
    if end > block.len() {
        return None;
    }
    block.copy_within(entry + 12..end, entry);
    block[end - 12..end].fill(0);
    let count = u16::try_from(count - 1).ok()?;
    let count = if is_little { count.to_le_bytes() } else { count.to_be_bytes() };
    block[first..first + 2].copy_from_slice(&count);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Format, encode};
    use crate::metadata;
    use crate::samples;
    use crate::source::Source;

    fn names(bytes: &[u8]) -> Vec<String> {
        let source = Source::new(bytes.to_vec()).unwrap();
        let block = source.header(0).unwrap().exif.unwrap_or_default();
        metadata::parse(block).into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn all_metadata_goes_and_the_pixels_stay() {
        let jpeg = samples::jpeg_with_exif(&samples::photo(30, 20), 6);
        let picture = Source::new(jpeg.clone()).unwrap().decode(0).unwrap();
        for kind in [Kind::Jpeg, Kind::Png, Kind::Webp] {
            let bytes = if kind == Kind::Jpeg {
                jpeg.clone()
            } else {
                encode(std::slice::from_ref(&picture), &Format::new(kind)).unwrap()
            };
            assert!(names(&bytes).contains(&"Make".to_owned()), "{kind:?}");
            let bare = strip(&bytes, kind, Part::All).unwrap();
            assert_eq!(names(&bare), [] as [String; 0]);
            let pixels = |bytes: Vec<u8>| Source::new(bytes).unwrap().decode(0).unwrap().pixels;
            assert_eq!(pixels(bare), pixels(bytes), "{kind:?}");
        }
    }

    #[test]
    fn the_place_goes_and_the_rest_stays() {
        let jpeg = samples::jpeg_with_exif(&samples::photo(30, 20), 6);
        let bare = strip(&jpeg, Kind::Jpeg, Part::Place).unwrap();
        let left = names(&bare);
        assert!(left.contains(&"Make".to_owned()) && left.contains(&"FNumber".to_owned()), "{left:?}");
        assert!(!left.iter().any(|name| name.starts_with("GPS")), "{left:?}");
        assert_eq!(bare.len(), jpeg.len());
    }

    #[test]
    fn a_cut_file_is_refused_and_an_animation_goes_on() {
        let jpeg = samples::jpeg_with_exif(&samples::photo(30, 20), 6);
        assert!(strip(&jpeg[..100], Kind::Jpeg, Part::All).is_err());
        for end in 0..jpeg.len() {
            let _ = strip(&jpeg[..end], Kind::Jpeg, Part::Place);
        }
        let gif = samples::gif(3);
        let bare = strip(&gif, Kind::Gif, Part::All).unwrap();
        assert_eq!(Source::new(bare).unwrap().decode_all().unwrap().len(), 3);
        for end in 0..gif.len() {
            let _ = strip(&gif[..end], Kind::Gif, Part::All);
        }
    }
}
