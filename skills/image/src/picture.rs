//! A decoded picture. Its pixels have eight bits for each of one to four channels.

use crate::kind::Kind;
use image::metadata::Orientation;
use image::{DynamicImage, RgbImage, RgbaImage};

/// A decoded picture with what the file says about it.
#[derive(Clone)]
pub struct Picture {
    /// One of `ImageLuma8`, `ImageLumaA8`, `ImageRgb8` and `ImageRgba8`.
    pub pixels: DynamicImage,
    pub kind: Kind,
    /// Still to be applied.
    pub orientation: Orientation,
    pub exif: Option<Vec<u8>>,
    pub icc: Option<Vec<u8>>,
    /// Of a frame of an animation.
    pub delay_ms: u32,
    /// Bits of a sample that the file had.
    pub depth: u16,
    /// As it was named on the command line.
    pub path: String,
}

impl Picture {
    pub fn new(pixels: DynamicImage, kind: Kind) -> Self {
        Self {
            pixels: with_eight_bits(pixels),
            kind,
            orientation: Orientation::NoTransforms,
            exif: None,
            icc: None,
            delay_ms: 0,
            depth: 8,
            path: String::new(),
        }
    }

    pub fn size(&self) -> (u32, u32) {
        (self.pixels.width(), self.pixels.height())
    }

    /// Returns the memory that its pixels take.
    pub fn bytes(&self) -> u64 {
        self.pixels.as_bytes().len() as u64
    }

    /// Applies the orientation, and says so in the metadata.
    pub fn make_upright(&mut self) {
        let orientation = std::mem::replace(&mut self.orientation, Orientation::NoTransforms);
        self.pixels.apply_orientation(orientation);
        if let Some(exif) = &mut self.exif {
            let _ = Orientation::remove_from_exif_chunk(exif);
        }
    }

    /// Drops everything but the pixels.
    pub fn strip(&mut self) {
        self.exif = None;
        self.icc = None;
        self.orientation = Orientation::NoTransforms;
    }
}

fn with_eight_bits(pixels: DynamicImage) -> DynamicImage {
    match pixels {
        DynamicImage::ImageLuma8(_)
        | DynamicImage::ImageLumaA8(_)
        | DynamicImage::ImageRgb8(_)
        | DynamicImage::ImageRgba8(_) => pixels,
        DynamicImage::ImageLuma16(_) => DynamicImage::ImageLuma8(pixels.into_luma8()),
        DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLumaA8(pixels.into_luma_alpha8()),
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgb32F(_) => DynamicImage::ImageRgb8(pixels.into_rgb8()),
        other => DynamicImage::ImageRgba8(other.into_rgba8()),
    }
}

/// Whether any pixel is not opaque.
pub fn is_transparent(pixels: &DynamicImage) -> bool {
    match pixels {
        DynamicImage::ImageLumaA8(image) => image.as_raw().as_chunks::<2>().0.iter().any(|pixel| pixel[1] < 255),
        DynamicImage::ImageRgba8(image) => image.as_raw().as_chunks::<4>().0.iter().any(|pixel| pixel[3] < 255),
        _ => false,
    }
}

/// Drops the alpha channel, in the same memory where there are three colours.
pub fn without_alpha(pixels: DynamicImage) -> DynamicImage {
    match pixels {
        DynamicImage::ImageRgba8(image) => DynamicImage::ImageRgb8(three_channels(image)),
        DynamicImage::ImageLumaA8(_) => DynamicImage::ImageLuma8(pixels.into_luma8()),
        other => other,
    }
}

fn three_channels(image: RgbaImage) -> RgbImage {
    let (width, height) = image.dimensions();
    let mut raw = image.into_raw();
    let count = raw.len() / 4;
    for at in 0..count {
        raw.copy_within(4 * at..4 * at + 3, 3 * at);
    }
    raw.truncate(3 * count);
    RgbImage::from_raw(width, height, raw).unwrap_or_else(|| RgbImage::new(width, height))
}

/// Puts the picture on a colour, so that nothing is transparent any more.
pub fn flatten(pixels: DynamicImage, [r, g, b]: [u8; 3]) -> DynamicImage {
    if !pixels.color().has_alpha() {
        return pixels;
    }
    let is_gray = !pixels.color().has_color() && r == g && g == b;
    let mut image = pixels.into_rgba8();
    for pixel in image.as_chunks_mut_pixels() {
        let alpha = u32::from(pixel[3]);
        for (level, below) in pixel.iter_mut().zip([r, g, b]) {
            let mixed = u32::from(*level) * alpha + u32::from(below) * (255 - alpha);
            *level = ((mixed + 127) / 255) as u8;
        }
    }
    let image = DynamicImage::ImageRgb8(three_channels(image));
    if is_gray { DynamicImage::ImageLuma8(image.into_luma8()) } else { image }
}

/// The pixels of a picture with four channels as arrays.
pub(crate) trait AsPixels {
    fn as_chunks_mut_pixels(&mut self) -> &mut [[u8; 4]];
}

impl AsPixels for RgbaImage {
    fn as_chunks_mut_pixels(&mut self) -> &mut [[u8; 4]] {
        let samples: &mut [u8] = self.as_mut();
        samples.as_chunks_mut::<4>().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn transparency_goes_onto_a_colour() {
        let mut image = RgbaImage::from_pixel(2, 1, Rgba([10, 20, 30, 255]));
        assert!(!is_transparent(&DynamicImage::ImageRgba8(image.clone())));
        image.put_pixel(1, 0, Rgba([0, 0, 0, 0]));
        let image = DynamicImage::ImageRgba8(image);
        assert!(is_transparent(&image));
        assert_eq!(flatten(image.clone(), [255, 0, 9]).as_bytes(), [10, 20, 30, 255, 0, 9]);
        assert_eq!(without_alpha(image).as_bytes(), [10, 20, 30, 0, 0, 0]);
    }
}
