//! The limits that a picture's own numbers cannot raise.

/// Pixels of one picture. Cameras of phones have 12 to 50 million, and a file of a few bytes can claim four thousand million.
const MAX_PIXELS: u64 = 100_000_000;

/// Bytes of decoded pixels at once, within the 512 MiB that the manifest asks for.
pub const MAX_BYTES: u64 = 400 << 20;

/// Bytes of a file.
pub const MAX_FILE: u64 = 256 << 20;

/// Pixels on a side.
const MAX_SIDE: u32 = 65_535;

/// Pictures in one command: frames, pages, tiles and files.
pub const MAX_PICTURES: usize = 1_000;

/// Pages or frames that are counted.
pub const MAX_PAGES: usize = 100_000;

/// Checks that a picture of this size may be held in memory.
pub fn check(width: u32, height: u32, bytes_per_pixel: u64) -> Result<(), String> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        return Err(format!("a picture of {width}x{height} has no pixels"));
    }
    if width > MAX_SIDE || height > MAX_SIDE {
        return Err(format!("a picture of {width}x{height} is too large: a side may have {MAX_SIDE} pixels"));
    }
    if pixels > MAX_PIXELS {
        let megapixels = pixels / 1_000_000;
        return Err(format!(
            "a picture of {width}x{height} is too large: {megapixels} megapixels, and at most {} are decoded",
            MAX_PIXELS / 1_000_000
        ));
    }
    check_bytes(pixels * bytes_per_pixel)
}

/// Checks that this many bytes of pixels may be held at once.
pub fn check_bytes(bytes: u64) -> Result<(), String> {
    if bytes > MAX_BYTES {
        return Err(format!(
            "it needs {} MiB of memory, and at most {} MiB are used for pixels",
            bytes >> 20,
            MAX_BYTES >> 20
        ));
    }
    Ok(())
}

/// The same limits for the decoders, which keep more than the pixels.
pub(crate) fn of_decoder() -> image::Limits {
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_limited() {
        assert_eq!(check(4000, 3000, 3), Ok(()));
        assert_eq!(check(10_000, 10_000, 4), Ok(()));
        assert!(check(0, 5, 3).unwrap_err().contains("no pixels"));
        assert!(check(65_535, 65_535, 3).unwrap_err().contains("megapixels"));
        assert!(check(70_000, 1, 3).unwrap_err().contains("a side"));
        assert!(check(9_000, 9_000, 8).unwrap_err().contains("MiB"));
    }
}
